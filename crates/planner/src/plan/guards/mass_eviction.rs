//! Guard of a change after which the controller deletes the pods of more nodes at once than may be
//! unavailable: those of the live DaemonSet, or orphans that a new one adopts.

use super::Judged;
use crate::plan::daemon_set_view::DaemonSetView;
use crate::plan::document::{Guard, GuardCode};
use crate::plan::pause::as_declared;
use crate::words::{agree, count, grouped};
use daemonset::controller::limits::Limits;
use daemonset::model::{NodeName, UpdateStrategy};

/// Simultaneous evictions allowed without a guard under `OnDelete`, which has no budget.
const ON_DELETE_BUDGET: u32 = 1;

/// Flag that allows the eviction of more pods at once than the budget.
const ALLOW_MASS_EVICTION: &str = "--allow-mass-eviction";

/// The controller deletes the pods of nodes that are no longer eligible all at once, regardless of
/// the update strategy and its budget.
pub(super) fn mass_eviction(judged: &Judged<'_>) -> Option<Guard> {
    let Evicted { nodes, to_come } = Evicted::of(judged);
    let (evicted, allowed) = (nodes.len(), budget(judged));
    if evicted <= usize::try_from(allowed).unwrap_or(usize::MAX) {
        return None;
    }
    let not_yet = match to_come {
        0 => String::new(),
        _ => format!(" ({} of them have no pod yet)", grouped(to_come)),
    };
    let deletes = match judged.live {
        Some(_) => agree(
            evicted,
            "is no longer eligible, and the controller deletes its pods",
            "are no longer eligible, and the controller deletes their pods",
        ),
        None => agree(
            evicted,
            "is not eligible, and the controller adopts its pods and deletes them",
            "are not eligible, and the controller adopts their pods and deletes them",
        ),
    };
    let message = format!(
        "{} {deletes} all at once, regardless of the update strategy{not_yet}; at most {} may be \
         unavailable",
        count(evicted, "node"),
        grouped(allowed),
    );
    Some(judged.plan.guard(GuardCode::MassEviction, message, Some(ALLOW_MASS_EVICTION), nodes))
}

/// The nodes that lose their pods by the change.
struct Evicted {
    nodes: Vec<NodeName>,
    /// Number of them that have no pod yet.
    to_come: usize,
}

impl Evicted {
    /// A node that is about to get its pod counts as having one: the controller may create it between
    /// the plan and the write. A new DaemonSet has only the orphans that it adopts.
    fn of(judged: &Judged<'_>) -> Self {
        let (before, after) = (judged.now.map(DaemonSetView::view), judged.daemon_set_view.view());
        let (mut nodes, mut to_come) = (Vec::new(), 0);
        for (at, node) in after.fleet.nodes().iter().enumerate() {
            let has_pod = after.pods.at(at).iter().any(|pod| !pod.terminating);
            let was_kept = match before.as_ref().map(|before| &before.placements[at]) {
                Some(was) => was.may_stay && (has_pod || was.may_start),
                None => has_pod,
            };
            if was_kept && !after.placements[at].may_stay {
                nodes.push(node.name.clone());
                to_come += usize::from(!has_pod);
            }
        }
        Self { nodes, to_come }
    }
}

/// Number of nodes that may lose their pods at once: the strictest of the limits that the manifest
/// declares, that were declared before, and of the policy with the flags of the command line. So a
/// change cannot raise the limit that it is measured by.
fn budget(judged: &Judged<'_>) -> u32 {
    let Judged { plan, applied, live, now, daemon_set_view, .. } = *judged;
    let policy = applied.desired.policy_spec();
    let within = |strategy: &UpdateStrategy, desired| match Limits::of(strategy, desired) {
        None => ON_DELETE_BUDGET,
        Some(limits) => policy.stricter(limits.max_unavailable.max(1), desired),
    };
    let after = daemon_set_view.view();
    let declared = within(&after.owner.spec.update_strategy, after.desired());
    let before = live.zip(now).map(|(live, now)| {
        let live = as_declared(live, plan.pause.as_ref());
        within(&live.spec.update_strategy, now.view().desired())
    });
    before.map_or(declared, |before| before.min(declared))
}
