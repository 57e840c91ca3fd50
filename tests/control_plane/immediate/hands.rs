//! Changes, copies and deletes pods while the controllers are stopped.

use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};

use super::cases::{Case, Copy, Original, Site};
use crate::controller::{node_of, pods};
use crate::harness::ControlPlane;

/// The number of concurrent changes.
const AT_ONCE: usize = 16;

/// Applies the changes of the cases to their pods.
pub(super) async fn break_pods(plane: &ControlPlane, cases: &[Case], foreign: &Value) {
    let pods = pods(plane).await;
    let hands = Hands { api: Api::default_namespaced(plane.client()), foreign };
    let find = |case: &Case, node: &str| {
        let on_node = pods.iter().filter(|pod| node_of(pod).as_deref() == Some(node));
        let mut of_case = on_node.filter(|pod| pod.labels()["app"] == case.name);
        of_case.next().cloned() // none where the second version may not run
    };
    let sites = cases.iter().flat_map(|case| {
        let find = &find;
        case.sites.iter().filter_map(move |(node, site)| Some((find(case, node)?, site)))
    });
    stream::iter(sites)
        .for_each_concurrent(AT_ONCE, |(pod, site)| hands.break_site(pod, site))
        .await;
}

struct Hands<'a> {
    api: Api<Pod>,
    /// The owner reference of foreign pods.
    foreign: &'a Value,
}

impl Hands<'_> {
    async fn break_site(&self, pod: Pod, site: &Site) {
        for (index, copy) in site.copies.iter().enumerate() {
            self.add(&pod, index, *copy).await;
        }
        self.change(&pod, site.original).await;
    }

    async fn change(&self, pod: &Pod, what: Original) {
        let name = &pod.name_any();
        match what {
            Original::Ready => {}
            Original::Unready => self.status(name, &status("Running", false)).await,
            Original::Missing => self.delete(name, 0).await,
            Original::Failed => self.status(name, &status("Failed", false)).await,
            Original::Succeeded => self.status(name, &status("Succeeded", false)).await,
            Original::Orphaned => self.metadata(name, &json!({"ownerReferences": null})).await,
            Original::Released => self.metadata(name, &json!({"labels": {"app": "other"}})).await,
            Original::Terminating => self.delete(name, GRACE).await,
            Original::TerminatingFailed => {
                // In the other order it would be removed at once.
                self.delete(name, GRACE).await;
                self.status(name, &status("Failed", false)).await;
            }
            Original::OtherHash => {
                let labels = json!({"labels": {HASH: "5d8d7f9b6"}});
                self.metadata(name, &labels).await;
            }
            Original::Outdated => self.metadata(name, &json!({"labels": outdated()})).await,
        }
    }

    async fn add(&self, pod: &Pod, index: usize, what: Copy) {
        let mut copy = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": format!("{}-{index}", pod.name_any()),
                "labels": pod.metadata.labels,
                "ownerReferences": pod.metadata.owner_references,
            },
            "spec": pod.spec,
        });
        let metadata = &mut copy["metadata"];
        match what {
            Copy::Orphan | Copy::FailedOrphan | Copy::TerminatingOrphan => {
                metadata["ownerReferences"] = Value::Null;
            }
            Copy::Foreign => metadata["ownerReferences"] = json!([self.foreign]),
            Copy::Unbound => copy["spec"]["nodeName"] = Value::Null,
            Copy::Outdated | Copy::OutdatedUnready => {
                for (key, value) in outdated().as_object().unwrap() {
                    metadata["labels"][key] = value.clone();
                }
            }
            Copy::Ready | Copy::Unready | Copy::Failed | Copy::Succeeded | Copy::Terminating => {}
        }
        let copy = serde_json::from_value(copy).unwrap();
        let name = self.api.create(&PostParams::default(), &copy).await.unwrap().name_any();
        self.status(&name, &status_of(what)).await;
        if matches!(what, Copy::Terminating | Copy::TerminatingOrphan) {
            self.delete(&name, GRACE).await;
        }
    }

    async fn metadata(&self, name: &str, metadata: &Value) {
        let patch = json!({"metadata": metadata});
        self.api.patch(name, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
    }

    async fn status(&self, name: &str, status: &Value) {
        let patch = json!({"status": status});
        let patch = Patch::Merge(&patch);
        self.api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }

    async fn delete(&self, name: &str, seconds: u32) {
        let grace = DeleteParams { grace_period_seconds: Some(seconds), ..DeleteParams::default() };
        self.api.delete(name, &grace).await.unwrap();
    }
}

/// The grace period of a pod whose kubelet is stopped, in seconds.
const GRACE: u32 = 600;
const HASH: &str = "controller-revision-hash";

/// The labels of a pod of an earlier template.
fn outdated() -> Value {
    json!({HASH: "68d9b7c85", "pod-template-generation": "99"})
}

fn status_of(copy: Copy) -> Value {
    match copy {
        Copy::Ready
        | Copy::Terminating
        | Copy::Orphan
        | Copy::TerminatingOrphan
        | Copy::Foreign
        | Copy::Outdated => status("Running", true),
        Copy::Unready | Copy::OutdatedUnready => status("Running", false),
        Copy::Unbound => status("Pending", false),
        Copy::Failed | Copy::FailedOrphan => status("Failed", false),
        Copy::Succeeded => status("Succeeded", false),
    }
}

fn status(phase: &str, ready: bool) -> Value {
    let ready = if ready { "True" } else { "False" };
    let long_ago = "2020-01-01T00:00:00Z";
    json!({
        "phase": phase,
        "conditions": [{"type": "Ready", "status": ready, "lastTransitionTime": long_ago}],
    })
}

/// Gives every DaemonSet a status that is wrong in every counter, so that correct counters prove a
/// write.
pub(super) async fn spoil_status(client: Client, names: impl Iterator<Item = String>) {
    let api: Api<k8s_openapi::api::apps::v1::DaemonSet> = Api::default_namespaced(client);
    let status = json!({"status": {
        "desiredNumberScheduled": 90, "currentNumberScheduled": 91, "numberMisscheduled": 92,
        "numberReady": 93, "updatedNumberScheduled": 94, "numberAvailable": 95,
        "numberUnavailable": 96,
    }});
    for name in names {
        let patch = Patch::Merge(&status);
        api.patch_status(&name, &PatchParams::default(), &patch).await.unwrap();
    }
}
