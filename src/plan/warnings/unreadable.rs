//! Objects of the cluster of which something could not be read.

use crate::model::{Snapshot, Unreadable};
use crate::plan::Warning;

/// A warning for each, which names it. What is left of it counts as not Ready.
pub(in crate::plan) fn warnings(snapshot: &Snapshot) -> impl Iterator<Item = Warning> {
    snapshot.unreadable.iter().map(|object| Warning {
        code: "unreadable".to_owned(),
        message: words(object),
        daemon_set: None,
        nodes: Vec::new(),
    })
}

fn words(object: &Unreadable) -> String {
    let Unreadable { kind, namespace, name, reason } = object;
    let place = namespace.as_ref().map(|namespace| format!("{namespace}/")).unwrap_or_default();
    let counts = match *kind {
        "Pod" | "Node" => "it counts as not Ready",
        "ControllerRevision" => "no template is taken from it",
        _record => "the DaemonSet that it stands for is left alone",
    };
    format!("{kind} {place}{name} cannot be read ({reason}); {counts}")
}
