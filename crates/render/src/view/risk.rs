//! How much a reviewer has to look at a DaemonSet of a plan.

use planner::plan::{ActionTotals, Change, DaemonSetPlan, PauseState, Strategy};

/// The most severe thing that happens to a DaemonSet, and the number of its nodes. The most severe
/// one is first; of equal ones, that with the most nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Risk(Severity, std::cmp::Reverse<u32>);

/// What happens to a DaemonSet or its pods, the most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Severity {
    /// It would have to be deleted, or it is, or pods are deleted and not replaced.
    Deleted,
    /// Nodes wait: the rollout does not reach them.
    Waiting,
    /// Its last rollout failed.
    Failed,
    Replaced,
    Surged,
    Created,
    /// Only the object changes.
    Object,
    Nothing,
}

impl Risk {
    pub(super) fn of(plan: &DaemonSetPlan) -> Self {
        let ActionTotals { create, delete, replace, surge, wait, keep: _ } = plan.totals;
        let aborted = plan.pause.as_ref().is_some_and(|pause| pause.state == PauseState::Aborted);
        let goes = matches!(plan.change, Change::Delete | Change::Recreate);
        // With OnDelete, nodes wait for a person, as they always do.
        let waits = if plan.strategy == Strategy::OnDelete { 0 } else { wait };
        let severities = [
            (Severity::Deleted, goes || delete > 0, delete),
            (Severity::Waiting, waits > 0, waits),
            (Severity::Failed, aborted, replace),
            (Severity::Replaced, replace > 0, replace),
            (Severity::Surged, surge > 0, surge),
            (Severity::Created, create > 0, create),
            (Severity::Object, plan.change != Change::None, 0),
        ];
        let most_severe = severities.into_iter().find(|(_, happens, _)| *happens);
        most_severe
            .map_or(Self(Severity::Nothing, std::cmp::Reverse(wait)), |(severity, _, nodes)| {
                Self(severity, std::cmp::Reverse(nodes))
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::{WithNodes as _, node, outdated, quiet, updated};
    use crate::view::PlanView;
    use planner::plan::{Action, Reason};

    #[test]
    fn the_riskiest_daemon_set_is_first() {
        let with = |name: &str, actions: &[Action]| {
            let nodes = actions.iter().map(|it| node("n", *it, vec![Reason::NoPod]));
            updated(name, vec![]).with(nodes.collect::<Vec<_>>())
        };
        let mut deleted = quiet("logging", "h-deleted");
        deleted.change = Change::Delete;
        let mut on_delete = with("b-on-delete", &[Action::Wait]);
        on_delete.strategy = Strategy::OnDelete;
        let plan = crate::examples::plan(vec![
            quiet("logging", "a-quiet").with([node("n", Action::Keep, vec![outdated(7)])]),
            on_delete,
            with("c-creates", &[Action::Create]),
            with("d-surges", &[Action::Surge]),
            with("e-replaces", &[Action::Replace]),
            with("f-replaces-more", &[Action::Replace, Action::Replace, Action::Create]),
            with("g-waits", &[Action::Wait, Action::Replace]),
            deleted,
            with("i-deletes", &[Action::Delete, Action::Replace]),
        ]);
        let view = PlanView::of(&plan);
        let (shown, _) = view.by_risk();
        let keys: Vec<&str> =
            shown.iter().map(|it| it.key.trim_start_matches("logging/")).collect();
        assert_eq!(
            keys,
            [
                "i-deletes",
                "h-deleted",
                "g-waits",
                "f-replaces-more",
                "e-replaces",
                "d-surges",
                "c-creates",
                "b-on-delete",
                "a-quiet",
            ]
        );
    }
}
