//! The end of a rollout: what is said about it, what can be done next, and its exit code.

use super::timing;
use crate::commands::apply::evidence::Evidence;
use crate::exit::Exit;
use daemonset::model::{DaemonSetKey, NodeName};
use planner::plan::Reason;
use planner::rollout::{Arrival, Ending, Interference, Outcome, PauseReason, Report, RolledBack};
use planner::steps::WaitsFor;
use planner::words::{agree, count};

/// Number of nodes that are listed in one message.
const NAMED: usize = 20;

/// The rollback that the end of a rollout suggests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::commands::apply) enum SuggestedUndo {
    /// To the previous revision.
    Previous,
    /// To an earlier one: the run was an `undo`, and the same again would end in the same way.
    Earlier,
    /// In git, from which Argo CD or Flux would apply what `undo` replaces.
    InGit,
}

/// Number of nodes that got a pod without a delete of this run.
#[derive(Debug, Default)]
pub(super) struct Arrivals {
    created: usize,
    surged: usize,
    recreated: usize,
}

impl Arrivals {
    pub(super) fn count(&mut self, report: &Report) {
        if let Report::Arrived { node: _, how, seconds: _ } = report {
            match how {
                Arrival::Created => self.created += 1,
                Arrival::Surged => self.surged += 1,
                Arrival::Recreated => self.recreated += 1,
            }
        }
    }

    /// A line for each number above zero.
    fn words(&self) -> Vec<String> {
        let Self { created, surged, recreated } = *self;
        [
            (surged, "got the new pod next to the old one"),
            (created, agree(created, "got its first pod", "got their first pod")),
            (recreated, "got a pod again from the controller"),
        ]
        .into_iter()
        .filter(|(nodes, _)| *nodes > 0)
        .map(|(nodes, what)| format!("{} {what}", count(nodes, "node")))
        .collect()
    }
}

/// The lines about the end: outcome, failed and unfinished nodes, durations.
pub(super) fn words_of(ending: &Ending, arrivals: &Arrivals, evidence: &Evidence) -> Vec<String> {
    let Ending { outcome, replaced, left } = ending;
    let failed = outcome.failed();
    let mut words = vec![ending.to_string()];
    words.extend(some_of(failed.into_iter().flatten().map(|(node, it)| {
        let below = evidence.of(node).into_iter().map(|line| format!("    {line}"));
        [vec![format!("{node}: {it}")], below.collect()].concat()
    })));
    let not_pulled = outcome.not_pulled();
    words.extend(some_of(
        not_pulled.into_iter().flatten().map(|(node, why)| vec![format!("{node}: {why}")]),
    ));
    // These nodes are listed above already.
    let is_reported = |node: &NodeName| {
        failed.is_some_and(|failed| failed.contains_key(node))
            || not_pulled.is_some_and(|nodes| nodes.contains_key(node))
    };
    words.extend(some_of(left.iter().filter(|(node, _)| !is_reported(node)).map(|(node, why)| {
        let why: Vec<String> = why.iter().map(ToString::to_string).collect();
        vec![format!("{node}: {}", why.join("; "))]
    })));
    words.extend(timing::words(replaced));
    words.extend(arrivals.words());
    words
}

/// The lines of the first nodes, indented, and the number of the others.
fn some_of(details: impl Iterator<Item = Vec<String>>) -> Vec<String> {
    let mut all: Vec<Vec<String>> = details.collect();
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    let mut lines: Vec<String> =
        all.into_iter().flatten().map(|line| format!("  {line}")).collect();
    if more > 0 {
        lines.push(format!("  and {} more", count(more, "node")));
    }
    lines
}

pub(super) fn codes(reasons: &[Reason]) -> Vec<String> {
    reasons.iter().map(|reason| reason.code().to_owned()).collect()
}

/// The next steps: how to resume, and how to roll back.
pub(super) fn ways(ending: &Ending, key: &DaemonSetKey, undo: SuggestedUndo) -> Vec<String> {
    let Ending { outcome, replaced, left } = ending;
    let on = "to resume: run it again";
    let retry = "to resume: fix the cause and run it again, with --retry for the same template";
    let back = to_roll_back(key, undo);
    let release = format!("to let the controller continue by itself: ds-apply release {key}");
    match outcome {
        Outcome::Aborted { .. } | Outcome::Paused { why: PauseReason::Failed { .. } } => {
            vec![retry.to_owned(), back]
        }
        Outcome::Paused { why: PauseReason::Refused { .. } } => {
            let grant = format!(
                "to resume: fix what the server refuses (ds-apply can-i {key}) and run it again"
            );
            vec![grant, back, release]
        }
        // Nothing may have begun yet.
        Outcome::Paused { why: PauseReason::NotPulled { .. } } => {
            let again = "to resume: make the images available and run it again".to_owned();
            let back = (!replaced.is_empty()).then_some(back);
            [again].into_iter().chain(back).collect()
        }
        Outcome::Paused { .. } | Outcome::Interrupted { paused: true } => {
            vec![on.to_owned(), back]
        }
        Outcome::Waiting { waits_for } => {
            let mut ways = to_continue(waits_for, key);
            // Nothing may have begun yet.
            if !replaced.is_empty() || !left.is_empty() {
                ways.push(back);
            }
            ways
        }
        Outcome::Interrupted { paused: false } => vec![on.to_owned()],
        Outcome::Stale { change, paused: true } => while_paused(change, back, release),
        Outcome::Stale { change, paused: false } => not_paused(change, back),
        Outcome::Done | Outcome::Gone { .. } | Outcome::LockLost | Outcome::Failed { .. } => {
            Vec::new()
        }
    }
}

/// The next steps after another client has changed a DaemonSet that is still paused.
fn while_paused(change: &Interference, back: String, release: String) -> Vec<String> {
    match change {
        Interference::Template { restarted: true, .. } => vec![
            "to resume, and restart all pods: run it again".to_owned(),
            "to resume without the restart: run it again with --force-conflicts=kubectl-rollout"
                .to_owned(),
            back,
            release,
        ],
        Interference::Template { restarted: false, .. }
        | Interference::Strategy
        | Interference::Pause => {
            vec!["to resume: review the new plan and apply it".to_owned(), back, release]
        }
    }
}

/// The same for one that is not paused: the controller may replace pods, and no run watches them. Undo is
/// for the target of the run only: from another template, it would lead to one that is not proven.
fn not_paused(change: &Interference, back: String) -> Vec<String> {
    match change {
        Interference::Strategy => vec![
            "the DaemonSet controller continues by itself".to_owned(),
            "to pause it and resume: run it again; roll needs OnDelete first".to_owned(),
            back,
        ],
        Interference::Template { .. } | Interference::Pause => vec![
            "if its strategy is RollingUpdate, the DaemonSet controller continues by itself"
                .to_owned(),
            "to continue: review the new plan and run it again".to_owned(),
        ],
    }
}

fn to_roll_back(key: &DaemonSetKey, undo: SuggestedUndo) -> String {
    match undo {
        SuggestedUndo::Previous => format!("to roll back: ds-apply undo {key}"),
        SuggestedUndo::Earlier => format!(
            "to roll back further: ds-apply undo {key} --to-revision N (ds-plan history {key} \
             lists them)"
        ),
        SuggestedUndo::InGit => {
            "to roll back: revert it in git, and run it again after the sync".to_owned()
        }
    }
}

/// The approvals that are waited for; without any, only time is.
fn to_continue(waits_for: &[WaitsFor], key: &DaemonSetKey) -> Vec<String> {
    let approvals = waits_for.iter().filter(|wait| wait.kind.needs_person());
    let approve = approvals.map(|wait| {
        let step = &wait.step;
        // Another DaemonSet of a shared budget may wait for it.
        let whose = wait.daemon_set.clone().unwrap_or_else(|| key.to_string());
        format!("to approve: ds-apply approve {whose} {step}, then run it again")
    });
    let ways: Vec<String> = approve.collect();
    if ways.is_empty() {
        return vec!["to continue: run it again then, or let a schedule do it".to_owned()];
    }
    ways
}

/// The outcome of the process for the outcome of a rollout.
pub(in crate::commands::apply) fn exit(outcome: &Outcome) -> Exit {
    match outcome {
        Outcome::Done => Exit::Done,
        Outcome::Paused { .. } | Outcome::Stale { paused: true, .. } => Exit::Paused,
        Outcome::Waiting { waits_for } => {
            if waits_for.iter().any(|wait| wait.kind.needs_person()) {
                Exit::ApprovalNeeded
            } else {
                Exit::Waiting
            }
        }
        Outcome::Aborted { rolled_back, .. } => match rolled_back {
            None | Some(RolledBack::Fully | RolledBack::Failed(_) | RolledBack::Stopped(_)) => {
                Exit::Paused
            }
        },
        Outcome::Stale { paused: false, .. } | Outcome::Gone { .. } => Exit::Stale,
        Outcome::Interrupted { paused: _ } => Exit::Interrupted,
        Outcome::LockLost => Exit::Locked,
        Outcome::Failed { .. } => Exit::Failed,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use daemonset::model::PullProblem;
    use planner::rollout::{Interference, NotAborted, NotPulled, PodFailure, Replaced};

    fn failed(nodes: usize) -> BTreeMap<NodeName, PodFailure> {
        let node = |at: usize| format!("n-{at:02}").as_str().into();
        let pod_failure =
            || PodFailure::Restarts { pod: "agent-x".into(), restarts: 4, allowed: 3 };
        (0..nodes).map(|at| (node(at), pod_failure())).collect()
    }

    fn words(outcome: Outcome) -> Vec<String> {
        let left = ["n-00", "z-99"].map(|node| (node.into(), vec![Reason::NoPod]));
        let replaced = |seconds: i64| Replaced {
            node: format!("r-{seconds}").as_str().into(),
            wave: Some(1),
            seconds,
            terminating: None,
            restarts: 0,
        };
        let (replaced, left) = ([9, 11, 10].map(replaced).into(), left.into());
        let ending = Ending { outcome, replaced, left };
        let words = words_of(&ending, &Arrivals::default(), &Evidence::default());
        let ways = ways(&ending, &DaemonSetKey::new("log", "agent"), SuggestedUndo::Previous);
        words.into_iter().chain(ways).collect()
    }

    #[test]
    fn one_node_has_its_own_words() {
        let words = |created| Arrivals { created, ..Arrivals::default() }.words();
        assert_eq!(words(1), ["1 node got its first pod"]);
        assert_eq!(words(2), ["2 nodes got their first pod"]);
    }

    #[test]
    fn the_end_lists_nodes_and_next_steps() {
        let replaced = "3 nodes replaced, each in 9s to 11s";
        let [first, last] = ["  n-00: node has no pod yet", "  z-99: node has no pod yet"];
        let why = "  n-00: pod agent-x restarted 4 times, at most 3 allowed";
        let back = "to roll back: ds-apply undo log/agent";
        let again = "to resume: fix the cause and run it again, with --retry for the same template";
        for (outcome, want) in [
            (Outcome::Done, vec!["done", first, last, replaced]),
            (
                Outcome::Aborted {
                    failed: failed(1),
                    to: "agent-a".into(),
                    rolled_back: None,
                    cause: None,
                },
                vec![
                    "aborted: new pods failed on 1 node; agent-a is live; 1 more node has no \
                     available pod",
                    why,
                    last,
                    replaced,
                    again,
                    back,
                ],
            ),
            (
                Outcome::Paused {
                    why: PauseReason::Failed {
                        failed: failed(1),
                        not_aborted: Some(NotAborted::NothingBefore),
                        cause: None,
                    },
                },
                vec![
                    "paused: new pods failed on 1 node; not aborted: there is no earlier template to roll \
                     back to; 1 more node has no available pod",
                    why,
                    last,
                    replaced,
                    again,
                    back,
                ],
            ),
            (
                Outcome::Paused { why: PauseReason::Timeout },
                vec![
                    "paused: the run timed out",
                    first,
                    last,
                    replaced,
                    "to resume: run it again",
                    back,
                ],
            ),
        ] {
            assert_eq!(words(outcome), want);
        }
    }

    /// Cases: the change, whether the DaemonSet is paused, and the next steps.
    #[test]
    fn after_a_change_by_another_client_the_end_says_who_continues() {
        let template = |restarted| Interference::Template { revision: None, restarted };
        let back = "to roll back: ds-apply undo log/agent";
        let release = "to let the controller continue by itself: ds-apply release log/agent";
        let planned = ["to resume: review the new plan and apply it", back, release];
        let restarted = [
            "to resume, and restart all pods: run it again",
            "to resume without the restart: run it again with --force-conflicts=kubectl-rollout",
            back,
            release,
        ];
        let continues = [
            "the DaemonSet controller continues by itself",
            "to pause it and resume: run it again; roll needs OnDelete first",
            back,
        ];
        let may_continue = [
            "if its strategy is RollingUpdate, the DaemonSet controller continues by itself",
            "to continue: review the new plan and run it again",
        ];
        for (change, paused, want) in [
            (template(true), true, &restarted[..]),
            (template(false), true, &planned[..]),
            (Interference::Strategy, true, &planned[..]),
            (Interference::Pause, true, &planned[..]),
            (Interference::Strategy, false, &continues[..]),
            (template(true), false, &may_continue[..]),
            (template(false), false, &may_continue[..]),
            (Interference::Pause, false, &may_continue[..]),
        ] {
            let case = format!("{change}, paused: {paused}");
            let outcome = Outcome::Stale { change, paused };
            let ending = Ending { outcome, replaced: Vec::new(), left: BTreeMap::new() };
            let key = DaemonSetKey::new("log", "agent");
            assert_eq!(ways(&ending, &key, SuggestedUndo::Previous), want, "{case}");
        }
    }

    fn not_pulled() -> PauseReason {
        let problem = PullProblem {
            image: "r/agent:2".into(),
            reason: "ErrImagePull".into(),
            message: "not found".into(),
        };
        let nodes = [("n-00".into(), NotPulled { seconds: 600, problem })].into();
        PauseReason::NotPulled { nodes, skippable: 1 }
    }

    #[test]
    fn missing_images_are_listed_by_node_with_the_words_of_the_kubelet() {
        let words = words(Outcome::Paused { why: not_pulled() });
        assert_eq!(
            words,
            [
                "paused: images could not be pulled to 1 node, at most 1 may be skipped; no pod \
                 there was deleted",
                "  n-00: r/agent:2 not pulled after 10m: ErrImagePull: not found",
                "  z-99: node has no pod yet",
                "3 nodes replaced, each in 9s to 11s",
                "to resume: make the images available and run it again",
                "to roll back: ds-apply undo log/agent",
            ]
        );
    }

    #[test]
    fn where_git_is_applied_a_revert_is_suggested() {
        let ending = Ending {
            outcome: Outcome::Paused {
                why: PauseReason::Failed { failed: failed(1), cause: None, not_aborted: None },
            },
            replaced: Vec::new(),
            left: BTreeMap::new(),
        };
        assert_eq!(
            ways(&ending, &DaemonSetKey::new("log", "agent"), SuggestedUndo::InGit)[1],
            "to roll back: revert it in git, and run it again after the sync"
        );
    }

    #[test]
    fn after_a_failed_undo_another_revision_is_suggested() {
        let outcome = Outcome::Aborted {
            failed: failed(1),
            to: "agent-a".into(),
            rolled_back: None,
            cause: None,
        };
        let ending = Ending { outcome, replaced: Vec::new(), left: BTreeMap::new() };
        assert_eq!(
            ways(&ending, &DaemonSetKey::new("log", "agent"), SuggestedUndo::Earlier)[1],
            "to roll back further: ds-apply undo log/agent --to-revision N (ds-plan history \
             log/agent lists them)"
        );
    }

    #[test]
    fn many_nodes_are_counted() {
        let outcome = Outcome::Aborted {
            failed: failed(25),
            to: "agent-a".into(),
            rolled_back: None,
            cause: None,
        };
        let words = words(outcome);
        assert_eq!(words[NAMED + 1], "  and 5 nodes more");
        assert_eq!(words.iter().filter(|line| line.contains("restarted")).count(), NAMED);
    }

    #[test]
    fn each_ending_has_its_exit_code() {
        let paused = |why| Outcome::Paused { why };
        let stale = |paused| Outcome::Stale { change: Interference::Pause, paused };
        for (outcome, code) in [
            (Outcome::Done, 0),
            (paused(PauseReason::Timeout), 4),
            (
                Outcome::Aborted {
                    failed: failed(1),
                    to: "a".into(),
                    rolled_back: None,
                    cause: None,
                },
                4,
            ),
            (paused(not_pulled()), 4),
            (stale(true), 4),
            (stale(false), 5),
            (Outcome::Gone { replaced_by: None }, 5),
            (Outcome::LockLost, 7),
            (Outcome::Interrupted { paused: true }, 130),
        ] {
            assert_eq!(exit(&outcome).code(), code, "{outcome}");
        }
    }
}
