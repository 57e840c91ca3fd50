//! Checks whether a plan is stale: compares the approved plan with a plan made now.
//!
//! Nodes and pods that come and go do not make a plan stale. The approval covers the change of the
//! objects, the update strategy, and the reasons for which pods may be deleted.

use std::collections::BTreeSet;
use std::fmt;

use super::document::{Action, Change, DaemonSetPlan, Fate, FieldChange, NodePlan, Plan, Strategy};
use super::reason::{SUPERSEDED, TERMINATING};
use daemonset::model::{DaemonSetKey, Uid};

/// The part of the approved plan that must not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// The reasons for which pods are deleted.
    Reasons,
    /// The exact set of deleted pods (`--strict`).
    Pods,
}

/// A difference between the approved plan and the current one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    /// The DaemonSet that differs.
    pub daemon_set: DaemonSetKey,
    /// The difference.
    pub what: Difference,
}

/// A difference of one DaemonSet from the approved plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The DaemonSet is not in the plan.
    NotPlanned,
    /// The DaemonSet is in the plan, but no longer in the manifests.
    NoLongerDesired,
    /// It was to be deleted, and no longer has the annotation of the source.
    NotMarked,
    /// The DaemonSet was created, deleted or recreated.
    Object,
    /// Its live template is neither the planned one nor the target.
    LiveTemplate,
    /// Its target template is different.
    Target,
    /// Other fields would change than planned; their paths.
    Fields(Vec<String>),
    /// Its update strategy is different, or allows more unavailable pods.
    Strategy,
    /// It would be managed by the other controller: the DaemonSet controller or `ds-apply`.
    ManagedBy,
    /// Pods would be deleted for reasons that are not in the plan; their codes.
    Reasons(Vec<&'static str>),
    /// Other pods would be deleted.
    Pods {
        /// Number of deleted pods that were not planned.
        more: Vec<Uid>,
        /// Number of planned deletions that are missing.
        fewer: Vec<Uid>,
    },
}

/// Returns the differences between the approved plan and the plan made now; empty when the approved
/// plan can be applied.
pub fn stale(agreed: &Plan, now: &Plan, binding: Binding) -> Vec<Stale> {
    let mut found = Vec::new();
    for fresh in &now.daemon_sets {
        let old = agreed.daemon_sets.iter().find(|old| old.key() == fresh.key());
        let differences = match old {
            None => vec![Difference::NotPlanned],
            Some(old) => differences(old, fresh, binding),
        };
        found.extend(differences.into_iter().map(|what| Stale { daemon_set: fresh.key(), what }));
    }
    for old in &agreed.daemon_sets {
        if !now.daemon_sets.iter().any(|fresh| fresh.key() == old.key()) {
            found.push(Stale { daemon_set: old.key(), what: Difference::NoLongerDesired });
        }
    }
    found
}

fn differences(old: &DaemonSetPlan, fresh: &DaemonSetPlan, binding: Binding) -> Vec<Difference> {
    let mut found = Vec::new();
    if (old.change == Change::Delete) != (fresh.change == Change::Delete) {
        return vec![Difference::Object];
    }
    // A run that was interrupted after it created the object may be resumed.
    let created = old.uid.is_none() && fresh.live_template.as_ref() == Some(&old.target_template);
    if old.uid != fresh.uid && !created {
        return vec![Difference::Object];
    }
    if old.managed_by != fresh.managed_by {
        return vec![Difference::ManagedBy];
    }
    let as_seen = old.live_template == fresh.live_template;
    let begun = fresh.live_template.as_ref() == Some(&old.target_template);
    if !as_seen && !begun {
        found.push(Difference::LiveTemplate);
    }
    if old.target_template != fresh.target_template {
        found.push(Difference::Target);
    }
    // Fields of the template are covered by its digests before and after.
    let settings = fresh.changes.iter().filter(|change| !change.path.starts_with("spec.template"));
    let other = settings.filter(|change| !is_planned(change, &old.changes));
    let other: Vec<String> = other.map(|change| change.path.clone()).collect();
    if !other.is_empty() && old.change != Change::Create {
        found.push(Difference::Fields(other));
    }
    if is_looser(old.strategy, fresh.strategy) {
        found.push(Difference::Strategy);
    }
    found.extend(match binding {
        Binding::Reasons => other_reasons(old, fresh),
        Binding::Pods => other_pods(old, fresh),
    });
    found
}

/// Whether the plan sets a field to this value, regardless of its value before.
fn is_planned(change: &FieldChange, planned: &[FieldChange]) -> bool {
    planned.iter().any(|old| old.path == change.path && old.after == change.after)
}

/// Whether the update strategy is a different one than planned, or allows more unavailable pods. A
/// stricter one is accepted. Percentages change with the number of nodes.
fn is_looser(old: Strategy, fresh: Strategy) -> bool {
    match (old, fresh) {
        (Strategy::OnDelete, Strategy::OnDelete) => false,
        (
            Strategy::RollingUpdate { max_unavailable: old, max_surge: old_surge, desired: before },
            Strategy::RollingUpdate { max_unavailable, max_surge, desired },
        ) => {
            let more = max_unavailable > old || max_surge > old_surge;
            (max_surge > 0) != (old_surge > 0) || desired == before && more
        }
        (Strategy::OnDelete, Strategy::RollingUpdate { .. })
        | (Strategy::RollingUpdate { .. }, Strategy::OnDelete) => true,
    }
}

/// The reasons for which pods are deleted, with the action on their node.
fn treatments(plan: &DaemonSetPlan) -> BTreeSet<(Action, &'static str)> {
    let of_node = |node: &NodePlan| {
        let action = node.action;
        let gone = node.pods.iter().filter(|pod| pod.fate == Fate::Delete);
        gone.map(|pod| (action, pod.reason.reason.code())).collect::<Vec<_>>()
    };
    plan.nodes.iter().flat_map(of_node).collect()
}

fn other_reasons(old: &DaemonSetPlan, fresh: &DaemonSetPlan) -> Option<Difference> {
    let planned = treatments(old);
    // The second half of a surge: the old pod is deleted once the new one is available.
    let surges = match old.strategy {
        Strategy::RollingUpdate { max_surge, .. } => max_surge > 0,
        Strategy::OnDelete => false,
    };
    // A terminating pod is deleted anyway: no approval is needed.
    let other = treatments(fresh).into_iter().filter(|(_, code)| *code != TERMINATING);
    let other = other.filter(|it| !planned.contains(it));
    let other = other.filter(|(_, code)| !(surges && *code == SUPERSEDED));
    let other: BTreeSet<&'static str> = other.map(|(_, code)| code).collect();
    (!other.is_empty()).then(|| Difference::Reasons(other.into_iter().collect()))
}

fn other_pods(old: &DaemonSetPlan, fresh: &DaemonSetPlan) -> Option<Difference> {
    let (planned, now) = (going(old), going(fresh));
    let more: Vec<Uid> = now.difference(&planned).map(|uid| (*uid).clone()).collect();
    let fewer: Vec<Uid> = planned.difference(&now).map(|uid| (*uid).clone()).collect();
    (!more.is_empty() || !fewer.is_empty()).then_some(Difference::Pods { more, fewer })
}

fn going(plan: &DaemonSetPlan) -> BTreeSet<&Uid> {
    let pods = plan.nodes.iter().flat_map(|node| &node.pods);
    pods.filter(|pod| pod.fate == Fate::Delete).map(|pod| &pod.uid).collect()
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { daemon_set, what } = self;
        write!(f, "{daemon_set}: {what}")
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotPlanned => f.write_str("is not in the plan"),
            Self::NoLongerDesired => f.write_str("is in the plan, but not in the manifests"),
            Self::NotMarked => f.write_str("no longer has the annotation of the source"),
            Self::Object => f.write_str("was created, deleted or recreated since the plan"),
            Self::LiveTemplate => f.write_str("its live template was changed since the plan"),
            Self::Target => f.write_str("would get a different template than planned"),
            Self::Fields(paths) => write!(f, "other fields would change: {}", paths.join(", ")),
            Self::Strategy => f.write_str("has a different or looser update strategy"),
            Self::ManagedBy => {
                f.write_str("would be managed by a different controller than planned")
            }
            Self::Reasons(codes) => {
                let codes = codes.join(", ");
                write!(f, "pods would be deleted for other reasons than planned: {codes}")
            }
            Self::Pods { more, fewer } => write!(
                f,
                "other pods would be deleted than planned: {} more, {} fewer",
                more.len(),
                fewer.len()
            ),
        }
    }
}
