//! PriorityClasses that do not exist: the server refuses pods that name one (upstream: admission
//! `Priority`).
//!
//! Not here: those that were not looked up (`unchecked`).

use crate::plan::document::{Change, DaemonSetPlan, Warning};
use daemonset::model::{PodTemplate, Snapshot};

/// A warning when the target template names a PriorityClass that does not exist.
pub(in crate::plan) fn warning(
    plan: &DaemonSetPlan,
    target: &PodTemplate,
    snapshot: &Snapshot,
) -> Option<Warning> {
    let name = target.needed_priority_class()?;
    let is_missing = snapshot.priority_classes.get(name) == Some(&false);
    (is_missing && plan.change != Change::Delete).then(|| Warning {
        code: "priorityClassMissing".to_owned(),
        message: format!("PriorityClass {name} does not exist: the server refuses new pods"),
        daemon_set: Some(plan.key().to_string()),
        nodes: Vec::new(),
    })
}
