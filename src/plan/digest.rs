//! The plan's digest: a hash over what the plan decides. The same cluster and manifests give the
//! same digest, live or recorded, on every machine; texts, paths and times play no part.

use std::fmt::Write as _;

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::document::{Action, DaemonSetPlan, Fate, NodePlan};
use crate::controller::revision_data::canonical_json;
use crate::model::{ManagedBy, Uid};

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
    let mut decided = json!({
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
        "nodes": hash_nodes(plan.nodes.iter().filter(|node| node.action != Action::Keep)),
    });
    // Plans of earlier versions, which knew only the other one, keep their digests.
    if plan.managed_by == ManagedBy::DsApply {
        decided["managedBy"] = plan.managed_by.as_str().into();
    }
    decided
}

/// What is decided about the nodes that have something to do. There may be a pod of each of them in
/// each plan, so their texts are hashed as they are, each with a byte after it that is in no text.
fn hash_nodes<'a>(nodes: impl Iterator<Item = &'a NodePlan>) -> String {
    const END: u8 = 0xff;
    let mut hash = Sha256::new();
    let mut line = Vec::new();
    for node in nodes {
        line.clear();
        let mut add = |text: &str| {
            line.extend_from_slice(text.as_bytes());
            line.push(END);
        };
        add(node.name.as_str());
        add(node.action.symbol());
        add(node.wave.map(|wave| wave.to_string()).as_deref().unwrap_or_default());
        for pod in &node.pods {
            add(pod.uid.as_str());
            add(match pod.fate {
                Fate::Keep => "keep",
                Fate::Delete => "delete",
            });
            add(pod.reason.reason.code());
        }
        // No pod has an empty uid, so reasons cannot be taken for pods.
        add("");
        node.reasons.iter().for_each(|reason| add(reason.reason.code()));
        line.push(END);
        hash.update(&line);
    }
    text(&hash.finalize())
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
