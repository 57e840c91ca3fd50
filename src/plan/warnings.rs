//! What a careful reader should know of one DaemonSet before going on.

use std::ops::RangeInclusive;

use super::document::Warning;
use super::scene::Scene;
use crate::model::{ClusterInfo, DaemonSet, NodeName, Pod, Snapshot};

/// A DaemonSet's name is part of its revisions' names, which may have 253 characters: one hyphen
/// and a hash of ten come after it.
const LONGEST_NAME: usize = 242;

/// Minor versions of Kubernetes 1 whose servers behave as planned here.
const MINORS: RangeInclusive<u32> = 28..=36;

/// A warning when the server is one that this was not made for.
pub(super) fn about_server(cluster: &ClusterInfo) -> Option<Warning> {
    let version = cluster.version.as_deref()?;
    let known = minor(version).is_some_and(|minor| MINORS.contains(&minor));
    (!known).then(|| Warning {
        code: "serverVersion".to_owned(),
        message: format!(
            "the server is Kubernetes {version}; the rules here are those of 1.{} to 1.{}",
            MINORS.start(),
            MINORS.end()
        ),
        daemon_set: None,
        nodes: Vec::new(),
    })
}

/// The `36` of `v1.36.3`, of `v1.36+`, and of `v1.36.0-rc.1+k3s1`.
fn minor(version: &str) -> Option<u32> {
    let rest = version.trim_start_matches('v').strip_prefix("1.")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().ok()
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_outside_the_range_are_warned_about() {
        for (version, warned) in [
            ("v1.27.16", true),
            ("v1.28.0", false),
            ("v1.36.3", false),
            ("v1.30.4-eks-a737599", false),
            ("v1.31.1+k3s1", false),
            ("v1.36+", false),
            ("v1.37.0-alpha.1", true),
            ("v1.3", true),
            ("v2.0.0", true),
            ("unknown", true),
        ] {
            let version = Some(version.to_owned());
            let cluster = ClusterInfo { version: version.clone(), ..ClusterInfo::default() };
            assert_eq!(about_server(&cluster).is_some(), warned, "{version:?}");
        }
        assert_eq!(about_server(&ClusterInfo::default()), None, "kubectl does not record it");
    }
}
