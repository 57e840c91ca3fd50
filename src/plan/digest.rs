//! The plan's digest: a hash over what the plan decides. The same cluster and manifests give the
//! same digest, live or recorded, on every machine; texts, paths and times play no part.

use std::fmt::Write as _;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::document::{DaemonSetPlan, NodePlan};
use crate::controller::revision_data::canonical_json;
use crate::model::Uid;

/// What of one DaemonSet goes into the digest, beside its plan.
pub(super) struct Decided<'a> {
    /// The plan, with every node that has something to do.
    pub plan: &'a DaemonSetPlan,
    /// The template now.
    pub live_template: Option<&'a Value>,
    /// The template to come.
    pub target_template: &'a Value,
}

/// `sha256:` and the digest in hexadecimal.
pub(super) fn digest(cluster: Option<&Uid>, decided: &[Decided<'_>]) -> String {
    let daemon_sets: Vec<Value> = decided.iter().map(daemon_set).collect();
    hash(&json!({ "cluster": cluster, "daemonSets": daemon_sets }))
}

fn daemon_set(decided: &Decided<'_>) -> Value {
    let Decided { plan, live_template, target_template } = decided;
    json!({
        "namespace": plan.namespace,
        "name": plan.name,
        "uid": plan.uid,
        "change": plan.change,
        "changed": plan.changes.iter().map(|change| &change.path).collect::<Vec<_>>(),
        "strategy": plan.strategy,
        "revision": plan.revision,
        "liveTemplate": live_template.map(hash),
        "targetTemplate": hash(target_template),
        "waves": plan.waves,
        "nodes": plan.nodes.iter().map(node).collect::<Vec<_>>(),
    })
}

fn node(node: &NodePlan) -> Value {
    let pods: Vec<Value> =
        node.pods.iter().map(|pod| json!([pod.uid, pod.fate, pod.reason.reason.code()])).collect();
    let reasons: Vec<&str> = node.reasons.iter().map(|reason| reason.reason.code()).collect();
    json!([node.name, node.action, node.wave, pods, reasons])
}

fn hash(value: &Value) -> String {
    let digest = Sha256::digest(canonical_json(value));
    digest.iter().fold(String::from("sha256:"), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
