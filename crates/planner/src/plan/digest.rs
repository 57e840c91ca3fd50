//! The plan's digest: a hash of the planned changes. The same cluster and manifests have the same
//! digest, live or recorded, on every machine; texts, paths and times are not part of it.

use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::document::{Action, DaemonSetPlan, Fate, NodePlan};
use crate::digest::{json_digest, text};
use daemonset::model::{ManagedBy, Uid};

/// `sha256:` and the digest in hexadecimal.
pub(super) fn digest(cluster: Option<&Uid>, decided: &[Value]) -> String {
    json_digest(&json!({ "cluster": cluster, "daemonSets": decided }))
}

/// The planned changes of a DaemonSet, as input of the digest. Its plan must contain every node
/// with something to do.
pub(super) fn decided(plan: &DaemonSetPlan) -> Value {
    let mut decided = json!({
        "namespace": plan.namespace,
        "name": plan.name,
        "uid": plan.uid,
        "change": plan.change,
        "cascade": plan.cascade,
        "changed": plan.changes.iter().map(|change| &change.path).collect::<Vec<_>>(),
        "strategy": plan.strategy,
        "pause": plan.pause.as_ref().map(|pause| (pause.state, &pause.declared)),
        "forcedConflicts": plan.forced_conflicts,
        "revision": plan.revision,
        "liveTemplate": plan.live_template,
        "targetTemplate": plan.target_template,
        "waves": hash_each(&plan.waves),
        "nodes": hash_nodes(plan.nodes.iter().filter(|node| node.action != Action::Keep)),
    });
    // Defaults are left out, so that plans of earlier versions keep their digests.
    if plan.managed_by == ManagedBy::DsApply {
        decided["managedBy"] = plan.managed_by.as_str().into();
    }
    if !plan.after.is_empty() {
        decided["after"] = plan.after.clone().into();
    }
    decided
}

/// A hash of the planned changes of the nodes with something to do. There may be many pods, so
/// their texts are hashed directly, each followed by a byte that never occurs in UTF-8.
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
            pod.uid.with_text(&mut add);
            add(match pod.fate {
                Fate::Keep => "keep",
                Fate::Delete => "delete",
            });
            add(pod.reason.reason.code());
        }
        // No pod has an empty uid, so reasons cannot be confused with pods.
        add("");
        node.reasons.iter().for_each(|reason| add(reason.reason.code()));
        line.push(END);
        hash.update(&line);
    }
    text(&hash.finalize())
}

/// A hash of many items, one line of JSON each; only one line is in memory at a time.
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
