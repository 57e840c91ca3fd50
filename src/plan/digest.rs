//! The plan's digest: a hash over what the plan decides. The same cluster and manifests give the
//! same digest, live or recorded, on every machine; texts, paths and times play no part.

use std::fmt::Write as _;

use serde::{Serialize, Serializer};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::document::{Action, DaemonSetPlan, NodePlan};
use crate::controller::revision_data::canonical_json;
use crate::model::Uid;

/// `sha256:` and the digest in hexadecimal.
pub(super) fn digest(cluster: Option<&Uid>, decided: &[Value]) -> String {
    hash(&json!({ "cluster": cluster, "daemonSets": decided }))
}

/// The digest of a pod template: the same for templates with the same revision data.
pub fn template_digest(template: &Value) -> String {
    hash(template)
}

/// What is decided about a DaemonSet, of whose nodes every one that has something to do is in its
/// plan.
pub(super) fn decided(plan: &DaemonSetPlan) -> Value {
    json!({
        "namespace": plan.namespace,
        "name": plan.name,
        "uid": plan.uid,
        "change": plan.change,
        "cascade": plan.cascade,
        "changed": plan.changes.iter().map(|change| &change.path).collect::<Vec<_>>(),
        "strategy": plan.strategy,
        "hold": plan.hold.as_ref().map(|hold| (hold.state, &hold.declared)),
        "takenOver": plan.taken_over,
        "revision": plan.revision,
        "liveTemplate": plan.live_template,
        "targetTemplate": plan.target_template,
        "waves": hash_each(&plan.waves),
        "nodes": hash_each(plan.nodes.iter().filter(|node| node.action != Action::Keep).map(node)),
    })
}

/// What is decided about a node that has something to do.
fn node(node: &NodePlan) -> impl Serialize {
    let pods = node.pods.iter().map(|pod| (&pod.uid, pod.fate, pod.reason.reason.code()));
    let reasons = node.reasons.iter().map(|reason| reason.reason.code());
    (&node.name, node.action, node.wave, Each(pods), Each(reasons))
}

/// A sequence of what an iterator gives.
struct Each<I>(I);

impl<I: Iterator<Item: Serialize> + Clone> Serialize for Each<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone())
    }
}

/// A hash of many items, one line of JSON each, of which only one is in memory at a time.
fn hash_each<T: Serialize>(items: impl IntoIterator<Item = T>) -> String {
    let mut hash = Sha256::new();
    let mut line = Vec::new();
    for item in items {
        line.clear();
        // Writing texts and numbers to memory cannot fail.
        let _ = serde_json::to_writer(&mut line, &item);
        line.push(b'\n');
        hash.update(&line);
    }
    text(&hash.finalize())
}

fn hash(value: &Value) -> String {
    text(&Sha256::digest(canonical_json(value)))
}

fn text(digest: &[u8]) -> String {
    digest.iter().fold(String::from("sha256:"), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
