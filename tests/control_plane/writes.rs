//! Writing to a real API server: each answer is recognized, and preconditions are enforced.

mod applying;
mod deleting;
mod faults;
mod locking;
mod observing;

use std::path::PathBuf;

use cluster::{Clock, ConnectOptions, Holder, Lock, LockOptions, WritableCluster, Writer, connect};
use daemonset::model::{DaemonSet, DaemonSetKey};
use serde_json::{Value, json};

use crate::harness::{Component, ControlPlane};

/// A control plane without controllers.
fn quiet() -> ControlPlane {
    ControlPlane::builder()
        .without(Component::Kwok)
        .without(Component::Scheduler)
        .without(Component::ControllerManager)
        .user("dev", &[])
        .start()
}

/// The cluster as one of its users accesses it.
async fn cluster_of(plane: &ControlPlane, user: &str) -> WritableCluster {
    connected(plane.kubeconfig_of(user)).await
}

async fn connected(kubeconfig: PathBuf) -> WritableCluster {
    let options = ConnectOptions { kubeconfig: Some(kubeconfig), ..ConnectOptions::default() };
    connect(&options).await.unwrap().writable()
}

async fn admin(plane: &ControlPlane) -> WritableCluster {
    cluster_of(plane, "admin").await
}

fn agent() -> DaemonSetKey {
    DaemonSetKey::new("default", "agent")
}

/// A lock holder, distinguished from others by `id`.
fn holder(id: &str) -> Holder {
    Holder {
        host: "build-7".to_owned(),
        pid: 4711,
        user: "alice".to_owned(),
        run: Some("https://ci.example/runs/5".to_owned()),
        id: id.to_owned(),
    }
}

async fn locked(cluster: &WritableCluster) -> (Lock, Writer) {
    let options = LockOptions::new(Clock::of_machine());
    let lock = cluster.lock(&agent(), &holder("test"), &options).await.unwrap();
    let writer = lock.writer();
    (lock, writer)
}

/// A DaemonSet of one container.
fn manifest(image: &str) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"namespace": "default", "name": "agent"},
        "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {"containers": [{"name": "agent", "image": image}]},
            },
        },
    })
}

/// The live DaemonSet, which must exist.
async fn live(cluster: &WritableCluster) -> DaemonSet {
    cluster.live().daemon_set(&agent()).await.unwrap().expect("the DaemonSet exists")
}

fn image(daemon_set: &DaemonSet) -> &str {
    daemon_set.raw["spec"]["template"]["spec"]["containers"][0]["image"].as_str().unwrap()
}
