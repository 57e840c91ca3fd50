//! The example fleet (`examples/fleet`): its history runs on a real control plane, is recorded and
//! planned.
//!
//! With `UPDATE_EXAMPLES=1` in the environment, the recording in the repository is written again,
//! with the timestamps of `story`. Otherwise the plan of the existing recording must be that of the
//! live fleet.

mod decisions;
mod history;
pub(crate) mod nodes;
mod story;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use cluster::{Scope, read_recorded, read_recorded_from};
use serde_json::Value;

use crate::harness::{Component, ControlPlane};
use crate::planning::{connect, desired_in, planned, recorded_by_kubectl};
use decisions::decisions;
use history::Fleet;
use story::Story;

/// The fleet's recording in the repository.
fn recording() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/fleet/cluster.json")
}

#[tokio::test]
async fn the_fleet_and_its_recording_have_the_same_plan() {
    // The fake kubelets are stopped before the end, and only one of them is to be missed.
    let patience = "--node-monitor-grace-period=1h";
    let plane = ControlPlane::builder().flag(Component::ControllerManager, patience).start();
    let mut fleet = Fleet::new(&plane);
    history::live_through(&mut fleet);

    let cluster = connect(&plane).await;
    let live = cluster.snapshot(&Scope::All, story::now()).await.unwrap();
    let by_kubectl = recorded_by_kubectl(&plane);
    let mut by_us = Vec::new();
    let recorded = cluster.record(&Scope::All, None, story::now()).await.unwrap();
    recorded.write_to(&mut by_us).unwrap();

    if update() {
        fs::write(recording(), replayed(&by_us, &fleet.story())).unwrap();
    }
    let desired = desired_in(&history::manifests());
    let plan = planned(&live, &desired);
    let by_us = read_recorded_from(&by_us[..], "recorded.json").unwrap();
    assert_eq!(planned(&by_us, &desired).digest, plan.digest, "recorded by ds-plan");
    assert_eq!(planned(&by_kubectl, &desired).digest, plan.digest, "recorded by kubectl");
    let in_repository = planned(&read_recorded(&recording()).unwrap(), &desired);
    assert_eq!(decisions(&in_repository), decisions(&plan), "the recording in the repository");
}

#[expect(clippy::disallowed_methods, reason = "a setting of the tests")]
fn update() -> bool {
    env::var_os("UPDATE_EXAMPLES").is_some()
}

/// A recording with the timestamps of the story, under the cluster name of the story; still one
/// object per line.
fn replayed(recording: &[u8], story: &Story) -> String {
    let mut list: Value = serde_json::from_slice(recording).unwrap();
    story.retell(&mut list);
    list["dsPlan"]["cluster"]["name"] = "prod-eu".into();
    let items: Vec<String> =
        list["items"].as_array().unwrap().iter().map(Value::to_string).collect();
    let header = &list["dsPlan"];
    format!(
        "{{\"apiVersion\":\"v1\",\"kind\":\"List\",\"dsPlan\":{header},\"items\":[\n{}\n]}}\n",
        items.join(",\n")
    )
}
