//! The effects of the real DaemonSet controller, and how to detect that it has nothing left to do.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::try_join_all;
use k8s_openapi::api::apps::v1::DaemonSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt as _};
use planner::plan::Counters;
use serde_json::{Value, json};

use crate::harness::{ControlPlane, wait_until_async};

/// The timeout for what an idle machine does in seconds.
const SOON: Duration = Duration::from_mins(2);

/// `NAMESPACE/NAME`.
pub(crate) fn key(daemon_set: &DaemonSet) -> String {
    format!("{}/{}", daemon_set.namespace().unwrap(), daemon_set.name_any())
}

pub(crate) async fn daemon_sets(plane: &ControlPlane) -> Vec<DaemonSet> {
    let api: Api<DaemonSet> = Api::all(plane.client());
    api.list(&ListParams::default()).await.unwrap().items
}

pub(crate) async fn pods(plane: &ControlPlane) -> Vec<Pod> {
    let api: Api<Pod> = Api::all(plane.client());
    api.list(&ListParams::default()).await.unwrap().items
}

/// Waits until the controller has completed one whole sync of each DaemonSet that began after this
/// call: each spec gets a harmless change, and the controller reports that generation as observed
/// only after a sync that has seen the effects of all earlier ones and has applied its own.
pub(crate) async fn settle(plane: &ControlPlane) {
    let limits =
        daemon_sets(plane).await.into_iter().map(|it| {
            let limit = it.spec.as_ref().unwrap().revision_history_limit.unwrap();
            let api: Api<DaemonSet> = Api::namespaced(plane.client(), &it.namespace().unwrap());
            let patch = json!({"spec": {"revisionHistoryLimit": limit + 1}});
            async move {
                api.patch(&it.name_any(), &PatchParams::default(), &Patch::Merge(&patch)).await
            }
        });
    try_join_all(limits).await.unwrap();
    wait_until_async("every generation is observed", SOON, async || {
        daemon_sets(plane).await.iter().all(|it| {
            it.status.as_ref().and_then(|it| it.observed_generation) == it.metadata.generation
        })
    })
    .await;
}

/// The status counters that the controller has written, by DaemonSet.
pub(crate) async fn counters(plane: &ControlPlane) -> BTreeMap<String, Counters> {
    let all = daemon_sets(plane).await;
    all.iter().map(|it| (key(it), counters_of(it))).collect()
}

fn counters_of(daemon_set: &DaemonSet) -> Counters {
    let status = daemon_set.status.clone().unwrap_or_default();
    let count = |number: i32| u32::try_from(number).unwrap();
    let optional = |number: Option<i32>| count(number.unwrap_or_default());
    Counters {
        desired: count(status.desired_number_scheduled),
        current: count(status.current_number_scheduled),
        ready: count(status.number_ready),
        updated: optional(status.updated_number_scheduled),
        available: optional(status.number_available),
        unavailable: optional(status.number_unavailable),
        misscheduled: count(status.number_misscheduled),
    }
}

/// The node that a daemon pod is bound to or targets.
pub(crate) fn node_of(pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    if let Some(node) = &spec.node_name {
        return Some(node.clone());
    }
    let affinity = spec.affinity.as_ref()?.node_affinity.as_ref()?;
    let terms =
        &affinity.required_during_scheduling_ignored_during_execution.as_ref()?.node_selector_terms;
    terms.first()?.match_fields.as_ref()?.first()?.values.as_ref()?.first().cloned()
}

/// The DaemonSet that controls a pod, as `NAMESPACE/NAME`.
pub(crate) fn owner_of(pod: &Pod) -> Option<String> {
    let owner = pod.owner_references().iter().find(|owner| owner.controller == Some(true))?;
    (owner.kind == "DaemonSet").then(|| format!("{}/{}", pod.namespace().unwrap(), owner.name))
}

/// A successful request of the controller that changes a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Act {
    pub(crate) verb: Verb,
    /// The pod's name; empty for a new one.
    pub(crate) name: String,
}

/// The verb of the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Create,
    Delete,
    /// An adoption or a release.
    Patch,
}

/// The controller's requests that changed pods, oldest first; requires an audited control plane.
pub(crate) fn acts(plane: &ControlPlane) -> Vec<Act> {
    plane.audit_log().iter().filter_map(act).collect()
}

fn act(event: &Value) -> Option<Act> {
    let ours = event["userAgent"].as_str()?.ends_with("daemon-set-controller")
        && event["objectRef"]["resource"] == "pods"
        && event["responseStatus"]["code"].as_u64()? < 300;
    let verb = match event["verb"].as_str()? {
        "create" => Verb::Create,
        "delete" => Verb::Delete,
        "patch" => Verb::Patch,
        _only_reads => return None,
    };
    let name = event["objectRef"]["name"].as_str().unwrap_or_default().to_owned();
    ours.then_some(Act { verb, name })
}
