//! The effect of applying a plan, in one sentence.

use super::daemon_set::DaemonSetView;
use planner::plan::{ActionTotals, Change};
use planner::words::{agree, count, grouped};

/// `replaces 409 pods in 2 DaemonSets; deletes 1 DaemonSet with all pods`.
pub(crate) fn effect(daemon_sets: &[&DaemonSetView<'_>]) -> String {
    let (gone, stay): (Vec<&DaemonSetView<'_>>, Vec<_>) =
        daemon_sets.iter().partition(|it| it.change == Change::Delete);
    let staying = (!stay.is_empty()).then(|| effect_on_pods(&stay));
    let going = gone.first().map(|one| {
        let sets = count(gone.len(), "DaemonSet");
        let pods = if one.keeps_pods { "and keeps the pods" } else { "with all pods" };
        format!("deletes {sets} {pods}")
    });
    staying.into_iter().chain(going).collect::<Vec<_>>().join("; ")
}

/// `deletes 1 pod, replaces 409 and creates 1 in 1 DaemonSet; 1 node waits`.
fn effect_on_pods(daemon_sets: &[&DaemonSetView<'_>]) -> String {
    let mut totals = ActionTotals::default();
    for daemon_set in daemon_sets {
        totals += daemon_set.totals;
    }
    let ActionTotals { create, delete, replace, surge, wait, keep: _ } = totals;
    let verbs =
        [("deletes", delete), ("replaces", replace), ("surges", surge), ("creates", create)];
    let mut done = verbs.into_iter().filter(|(_, pods)| *pods > 0);
    let sets = count(daemon_sets.len(), "DaemonSet");
    let words = match done.next() {
        None => {
            let recreated = daemon_sets.iter().all(|it| it.change == Change::Recreate);
            let verb = if recreated { "cannot update" } else { "updates" };
            format!("{verb} {sets} and touches no pod")
        }
        Some((verb, pods)) => {
            let rest: Vec<String> =
                done.map(|(verb, pods)| format!("{verb} {}", grouped(pods))).collect();
            let rest = match rest.split_last() {
                None => String::new(),
                Some((last, [])) => format!(" and {last}"),
                Some((last, others)) => format!(", {} and {last}", others.join(", ")),
            };
            format!("{verb} {}{rest} in {sets}", count(pods, "pod"))
        }
    };
    if wait == 0 {
        return words;
    }
    format!("{words}; {} {}", count(wait, "node"), agree(wait, "waits", "wait"))
}
