//! Drift of pods: nodes without the pod that the live object requires, and conflicts between the
//! object and its namespace. The decisions are those of a plan that does not change the object.

use super::document::{Deviation, NodeDrift};
use crate::intermediate::Intermediate;
use crate::plan::daemon_set_view::DaemonSetView;
use crate::plan::document::{NodePlan, PodPlan};
use crate::plan::nodes::{self, Described};
use crate::plan::reason::Reason;
use crate::plan::status::counted;
use crate::plan::warnings::{Conflict, namespace_conflicts};
use daemonset::model::{Namespace, PolicySpec};

/// Deviation of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Surplus,
    Outdated,
    Failed,
    Misscheduled,
}

/// Returns the deviations of pods, of the rollout, and of eligibility.
pub(super) fn deviations(
    daemon_set_view: &DaemonSetView<'_>,
    namespace: Option<&Namespace>,
) -> Vec<Deviation> {
    let (policy, none) = (PolicySpec::default(), Intermediate::none());
    let plans = nodes::planned_nodes(daemon_set_view, &policy, &none, Described::All).nodes;
    let faulty = |fault: Fault| plans.iter().filter_map(|plan| at_fault(plan, fault)).collect();
    let some = |nodes: Vec<NodeDrift>, deviation: fn(Vec<NodeDrift>) -> Deviation| {
        (!nodes.is_empty()).then(|| deviation(nodes))
    };
    let outdated: Vec<NodeDrift> = faulty(Fault::Outdated);
    let unfinished = (!outdated.is_empty()).then(|| unfinished(daemon_set_view));
    let missing = plans.iter().filter_map(missing).collect();
    let of_nodes = [
        some(missing, |nodes| Deviation::PodMissing { nodes }),
        some(faulty(Fault::Surplus), |nodes| Deviation::PodSurplus { nodes }),
        some(outdated, |nodes| Deviation::PodOutdated { nodes }),
        some(faulty(Fault::Failed), |nodes| Deviation::PodFailed { nodes }),
        some(faulty(Fault::Misscheduled), |nodes| Deviation::PodMisscheduled { nodes }),
        some(counted_as_updated(daemon_set_view), |nodes| Deviation::StatusDisagrees { nodes }),
        some(not_eligible(daemon_set_view), |nodes| Deviation::RunsWhereNoneMayStart { nodes }),
    ];
    let mut found: Vec<Deviation> = of_nodes.into_iter().flatten().chain(unfinished).collect();
    found.extend(namespace.into_iter().flat_map(|namespace| kept_off(daemon_set_view, namespace)));
    found
}

fn at_fault(plan: &NodePlan, fault: Fault) -> Option<NodeDrift> {
    let faulty = plan.pods.iter().filter(|pod| fault_of(&pod.reason.reason) == Some(fault));
    let pods: Vec<&PodPlan> = faulty.collect();
    let mut reasons = Vec::new();
    for pod in &pods {
        if !reasons.contains(&pod.reason) {
            reasons.push(pod.reason.clone());
        }
    }
    let names = pods.iter().map(|pod| pod.name.clone()).collect();
    (!pods.is_empty()).then(|| NodeDrift { node: plan.name.clone(), pods: names, reasons })
}

/// The deviation of a pod with this reason; `None` for a pod that is up to date, and for a
/// terminating one.
fn fault_of(reason: &Reason) -> Option<Fault> {
    match reason {
        Reason::Outdated { .. } | Reason::Superseded { .. } | Reason::DeletedNotRecreated { .. } => {
            Some(Fault::Outdated)
        }
        Reason::Failed | Reason::Succeeded => Some(Fault::Failed),
        Reason::Surplus { .. } | Reason::Released => Some(Fault::Surplus),
        Reason::NotEligible { .. } | Reason::NodeVanished | Reason::LeftToGarbageCollector => {
            Some(Fault::Misscheduled)
        }
        // The pod does not deviate, or the reason is about its node.
        Reason::UpToDate
        | Reason::Terminating
        | Reason::Adopted
        | Reason::NoPod
        | Reason::NoLivePod
        | Reason::MayBeDelayed
        | Reason::OnDelete
        | Reason::SkippedUnreadyNode(_)
        | Reason::UnreadyNodeCounts { .. }
        | Reason::MaxUnavailableReached { .. }
        | Reason::NodeNotReady(_)
        | Reason::PodNotReady(_)
        | Reason::NotAvailableYet { .. }
        | Reason::Misscheduled { .. }
        | Reason::DaemonSetTerminating
        | Reason::MustBeRecreated
        // Drift detection does not delete DaemonSets.
        | Reason::GoesWithOwner
        | Reason::Orphaned => None,
    }
}

/// A node that should run a pod and has none, apart from terminating ones.
fn missing(plan: &NodePlan) -> Option<NodeDrift> {
    let lacks =
        |reason: &Reason| matches!(reason, Reason::NoPod | Reason::NoLivePod | Reason::Terminating);
    let reasons: Vec<_> =
        plan.reasons.iter().filter(|coded| lacks(&coded.reason)).cloned().collect();
    let pods = plan.pods.iter().map(|pod| pod.name.clone()).collect();
    (!reasons.is_empty()).then(|| NodeDrift { node: plan.name.clone(), pods, reasons })
}

fn unfinished(daemon_set_view: &DaemonSetView<'_>) -> Deviation {
    let counted = counted(daemon_set_view);
    let revision = daemon_set_view.target.plan.current.as_ref().map(|current| current.number);
    Deviation::Unfinished { revision, updated: counted.updated, desired: counted.desired }
}

/// Nodes whose pods upstream counts as updated by their template generation, although they have the
/// hash of another template.
fn counted_as_updated(daemon_set_view: &DaemonSetView<'_>) -> Vec<NodeDrift> {
    let (view, templates) = (daemon_set_view.view(), &daemon_set_view.target.templates);
    let mut found = Vec::new();
    for (at, placement) in view.placements.iter().enumerate() {
        let Some(speaker) = view.pods.at(at).first().filter(|_| placement.may_start) else {
            continue;
        };
        if view.current.is_updated(speaker) && !templates.is_updated(speaker) {
            found.push(NodeDrift {
                node: view.fleet.nodes()[at].name.clone(),
                pods: vec![speaker.name.clone()],
                reasons: vec![templates.outdated(speaker).into()],
            });
        }
    }
    found
}

/// Nodes whose pod may stay although a new one may not start.
fn not_eligible(daemon_set_view: &DaemonSetView<'_>) -> Vec<NodeDrift> {
    let view = daemon_set_view.view();
    let mut found = Vec::new();
    for (at, placement) in view.placements.iter().enumerate() {
        let pods = view.pods.at(at).iter().filter(|pod| !pod.terminating);
        let pods: Vec<_> = pods.map(|pod| pod.name.clone()).collect();
        if let Some(obstacle) = &placement.obstacle
            && placement.may_stay
            && !pods.is_empty()
        {
            found.push(NodeDrift {
                node: view.fleet.nodes()[at].name.clone(),
                pods,
                reasons: vec![Reason::Misscheduled { obstacle: obstacle.clone() }.into()],
            });
        }
    }
    found
}

/// Eligible nodes that the namespace's node selector does not match.
fn kept_off(daemon_set_view: &DaemonSetView<'_>, namespace: &Namespace) -> Vec<Deviation> {
    let conflicts = namespace_conflicts(daemon_set_view, namespace).into_iter();
    let deviation = |conflict: Conflict<'_>| {
        let Conflict { reader, selector, contradicts: _, nodes } = conflict;
        Deviation::NamespaceNodeSelector {
            annotation: reader.annotation().to_owned(),
            selector: selector.to_owned(),
            nodes,
        }
    };
    conflicts.map(deviation).collect()
}
