//! What a careful reader should know of one DaemonSet before going on.

use super::document::Warning;
use super::scene::Scene;
use crate::model::{DaemonSet, NodeName, Pod, Snapshot};

/// A DaemonSet's name is part of its revisions' names, which may have 253 characters: one hyphen
/// and a hash of ten come after it.
const LONGEST_NAME: usize = 242;

/// All warnings about the DaemonSet of `scene`.
pub(super) fn about(
    scene: &Scene<'_>,
    live: Option<&DaemonSet>,
    snapshot: &Snapshot,
) -> Vec<Warning> {
    let key = scene.owner.key;
    let warning = |code: &str, message: String, nodes: Vec<NodeName>| Warning {
        code: code.to_owned(),
        message,
        daemon_set: Some(key.to_string()),
        nodes,
    };
    let mut warnings = Vec::new();
    if live.is_some_and(|live| live.terminating) {
        let message = format!("{key} is being deleted: its controller does nothing more");
        warnings.push(warning("daemonSetTerminating", message, Vec::new()));
    }
    let namespace = snapshot.namespaces.iter().find(|namespace| namespace.name == key.namespace);
    match namespace {
        None if snapshot.coverage.namespaces => {
            let message = format!("namespace {} does not exist", key.namespace);
            warnings.push(warning("namespaceMissing", message, Vec::new()));
        }
        Some(namespace) if namespace.terminating => {
            let message = format!(
                "namespace {} is being deleted: no pod can be created in it",
                key.namespace
            );
            warnings.push(warning("namespaceTerminating", message, Vec::new()));
        }
        Some(_) | None => {}
    }
    if key.name.as_str().len() > LONGEST_NAME {
        let message = format!(
            "the name has more than {LONGEST_NAME} characters: the controller can make no revision \
             of that name, and so no pod"
        );
        warnings.push(warning("nameTooLong", message, Vec::new()));
    }
    if !scene.pods.adopted.is_empty() {
        let message = format!("{key} adopts {}", orphans(scene.pods.adopted.len()));
        warnings.push(warning("adoptsOrphans", message, nodes_of(&scene.pods.adopted)));
    }
    if !scene.pods.released.is_empty() {
        let message = format!(
            "{key} lets go of {} that no longer match its selector; they run on",
            pods(scene.pods.released.len())
        );
        warnings.push(warning("releasesPods", message, nodes_of(&scene.pods.released)));
    }
    warnings
}

fn pods(count: usize) -> String {
    if count == 1 { "1 pod".to_owned() } else { format!("{count} pods") }
}

fn orphans(count: usize) -> String {
    format!("{} that match its selector and belong to nobody", pods(count))
}

fn nodes_of(pods: &[&Pod]) -> Vec<NodeName> {
    let mut nodes: Vec<NodeName> = pods.iter().filter_map(|pod| pod.node()).cloned().collect();
    nodes.sort();
    nodes.dedup();
    nodes
}
