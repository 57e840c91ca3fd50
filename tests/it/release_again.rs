//! `ds-apply release` looks again under the lock: what it releases is what it has shown.

use std::fs;
use std::path::Path;
use std::time::Duration;

use cluster::read_recorded_from;
use daemonset::model::Snapshot;
use ds_plan::{Ended, Exit, ds_apply_at};
use embedded::{Rehearsal, World, on_virtual_time};
use http::Request;
use serde_json::{Value, json};
use testkit::fixture::{self, AGENT};
use tokio::sync::mpsc;
use tokio::time::sleep;

async fn run(world: &World, user: &str, folder: &Path, line: &str) -> Ended {
    let words: Vec<&str> = line.split(' ').collect();
    ds_apply_at(world, user, folder, mpsc::channel(1).1, &words).await
}

/// Sends a request about the DaemonSet; returns the object.
async fn send(world: &World, method: &str, body: Vec<u8>) -> Value {
    let request = Request::builder()
        .method(method)
        .uri("/apis/apps/v1/namespaces/logging/daemonsets/agent?fieldManager=kubectl")
        .header("content-type", "application/merge-patch+json")
        .body(body)
        .unwrap();
    world.server().client().request(request).await.unwrap()
}

/// The plan is shown while a rollout of version 2 holds the lock. Before that run ends, another client
/// sets version 3, which a release would roll out to every node.
#[test]
fn a_release_of_another_template_than_it_has_shown_is_stale() {
    let folder = tempfile::tempdir().unwrap();
    let slow = "spec:\n  minReadySeconds: 3600\n  selector";
    let second = AGENT.replace("agent:1", "agent:2").replace("spec:\n  selector", slow);
    fs::write(folder.path().join("v1.yaml"), AGENT).unwrap();
    fs::write(folder.path().join("v2.yaml"), second).unwrap();
    let list = fixture::cluster().to_string();
    let recorded = read_recorded_from(list.as_bytes(), "cluster").unwrap();
    let snapshot = Snapshot { observed_at: "2026-01-02T00:00:00Z".parse().unwrap(), ..recorded };
    on_virtual_time(async {
        let world = World::begin(&snapshot, Rehearsal::default()).unwrap();
        let first = run(&world, "first", folder.path(), "-f v1.yaml --yes").await;
        assert_eq!(first.exit, Exit::Done, "{:?}", first.errors);

        let rollout = run(&world, "first", folder.path(), "-f v2.yaml --yes");
        let release = async {
            sleep(Duration::from_secs(20)).await;
            let line = "release logging/agent --yes --lock-timeout 10m";
            run(&world, "other", folder.path(), line).await
        };
        let edit = async {
            sleep(Duration::from_secs(30)).await;
            let containers = json!([{"name": "agent", "image": "registry.example/agent:3"}]);
            let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
            send(&world, "PATCH", patch.to_string().into_bytes()).await
        };
        let (_, released, edited) = tokio::join!(rollout, release, edit);
        assert_eq!(edited["spec"]["updateStrategy"]["type"], "OnDelete", "paused by the rollout");
        assert_eq!(released.exit, Exit::Stale, "{:?}", released.errors);
        let words = released.messages();
        assert!(words.contains("its live template was changed since the plan"), "{words}");
        let live = send(&world, "GET", Vec::new()).await;
        assert_eq!(live["spec"]["updateStrategy"]["type"], "OnDelete", "not released");
    })
    .unwrap();
}
