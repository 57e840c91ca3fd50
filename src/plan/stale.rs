//! Whether a cluster is still the one that a plan was made for: the plan as it was agreed to,
//! against the plan as it would be made now.
//!
//! Nodes and pods come and go on a living cluster; that alone makes no plan stale. What was agreed
//! to is which object becomes which, under which strategy, and for which reasons pods may go.

use std::collections::BTreeSet;
use std::fmt;

use super::document::{Action, Change, DaemonSetPlan, Fate, FieldChange, NodePlan, Plan, Strategy};
use super::reason::{SUPERSEDED, TERMINATING};
use crate::model::{DaemonSetKey, Uid};

/// How much of a plan binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Binding {
    /// The reasons for which pods may go.
    Reasons,
    /// The very pods (`--strict`).
    Pods,
}

/// Something that is no longer as it was planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stale {
    /// Of which DaemonSet.
    pub daemon_set: DaemonSetKey,
    /// What.
    pub what: Difference,
}

/// What differs from the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// It is not in the plan.
    NotPlanned,
    /// It was in the plan, and the manifests lack it now.
    NoLongerDesired,
    /// It was to be deleted, and does not carry the mark of the source any more.
    NotMarked,
    /// It was created, deleted, or is another object of the same name.
    Object,
    /// Its live template is neither the one that was seen nor the target.
    LiveTemplate,
    /// It would get another template.
    Target,
    /// Other fields would change than those that were planned.
    Fields(Vec<String>),
    /// Its update strategy is another one, or lets more pods go at once.
    Strategy,
    /// Another one is to act on it, the DaemonSet controller or `ds-apply`.
    ManagedBy,
    /// Pods would go for reasons that the plan did not have.
    Reasons(Vec<&'static str>),
    /// Other pods would go.
    Pods {
        /// Those that were not planned to go.
        more: Vec<Uid>,
        /// Those that were, and would not.
        fewer: Vec<Uid>,
    },
}

/// What of `agreed` no longer holds in `now`; nothing when it can be carried out.
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
    // A run that was broken off after it had created the object goes on.
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
    // The template's are bound by its digests, before and after.
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

/// Whether a field was to become just this. What it was before does not matter.
fn is_planned(change: &FieldChange, planned: &[FieldChange]) -> bool {
    planned.iter().any(|old| old.path == change.path && old.after == change.after)
}

/// Whether the strategy is another one than was planned, or lets more pods go at once. A stricter
/// one does no harm. Percentages of another number of nodes are other numbers.
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

/// For which reasons, and within which treatment, pods go.
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
    // The other half of a surge: an old pod that waited beside a new one goes when that is available.
    let surges = match old.strategy {
        Strategy::RollingUpdate { max_surge, .. } => max_surge > 0,
        Strategy::OnDelete => false,
    };
    // What is on its way out goes whatever is done here: nobody needs to agree to it.
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
            Self::NotMarked => f.write_str("does not carry the mark of the source any more"),
            Self::Object => f.write_str("is no longer the object that was planned on"),
            Self::LiveTemplate => f.write_str("somebody changed its template meanwhile"),
            Self::Target => f.write_str("would get another template than was planned"),
            Self::Fields(paths) => write!(f, "other fields would change: {}", paths.join(", ")),
            Self::Strategy => f.write_str("has another update strategy, or a looser one"),
            Self::ManagedBy => f.write_str("is to be managed by another than was planned"),
            Self::Reasons(codes) => {
                write!(f, "pods would go for other reasons than planned: {}", codes.join(", "))
            }
            Self::Pods { more, fewer } => write!(
                f,
                "other pods would go than planned: {} more, {} fewer",
                more.len(),
                fewer.len()
            ),
        }
    }
}
