//! Warnings about objects of the cluster that could not be read completely.

use crate::plan::Warning;
use daemonset::model::{Snapshot, Unreadable};

/// Code of the warning about an object that cannot be read completely.
pub const UNREADABLE: &str = "unreadable";

/// A warning for each unreadable object: its name, the reason, and how it is treated.
pub(in crate::plan) fn warnings(snapshot: &Snapshot) -> impl Iterator<Item = Warning> {
    snapshot.unreadable.iter().map(|object| Warning {
        code: UNREADABLE.to_owned(),
        message: words(object),
        daemon_set: None,
        nodes: Vec::new(),
    })
}

fn words(object: &Unreadable) -> String {
    let Unreadable { kind, namespace, name, reason } = object;
    let place = namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    let (kind, counts) = match *kind {
        "Pod" | "Node" => (*kind, "it counts as not Ready"),
        "ControllerRevision" => (*kind, "its template is ignored"),
        Unreadable::APPROVAL => ("ConfigMap", "it counts as no approval"),
        _record => (*kind, "its DaemonSet is not changed"),
    };
    format!("{kind} {place}{name} cannot be read ({reason}); {counts}")
}
