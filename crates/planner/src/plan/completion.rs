//! Whether the rollout of a DaemonSet is complete, as `status --watch --exit` waits for.
//!
//! Other than `kubectl rollout status`, it knows a paused rollout, counts by the stricter rules of
//! `status`, and does not wait for a few nodes that are not Ready. Not here: what blocks each node
//! (`status`).

use std::fmt;

use super::pause::PauseState;
use super::reason::Reason;
use super::status::{DaemonSetStatusReport, NodeObstacles};
use crate::steps::WaitKind;
use crate::words::{agree, count};
use daemonset::model::SkipUnreadyNodes;

/// How far the rollout of a DaemonSet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completion {
    /// Each node runs the live template, and its pod is available.
    Complete {
        /// Number of nodes with an up-to-date pod.
        updated: u32,
        /// Number of nodes that are not Ready and are not waited for.
        unready: u32,
    },
    /// A run or the controller is at work, or pods are not available yet.
    InProgress {
        /// Number of nodes with an up-to-date pod.
        updated: u32,
        /// Number of nodes with an available pod.
        available: u32,
        /// Number of nodes that have to run a pod.
        desired: u32,
    },
    /// It is paused, and no run is in progress.
    Paused,
    /// Its policy lets no more nodes begin for now, and no run is in progress. Of a rollout by `roll`,
    /// this is known only with the policy at hand.
    Waiting {
        /// Whether it waits for a person.
        for_approval: bool,
    },
    /// It failed and was aborted: the last good template is live again.
    Aborted,
    /// The strategy is `OnDelete`, and no run is in progress: outdated pods stay.
    OnDelete {
        /// Number of nodes with an outdated pod.
        outdated: usize,
    },
}

impl Completion {
    /// The completion at the time of a status.
    pub fn of(status: &DaemonSetStatusReport) -> Self {
        let counted = status.counted;
        let in_progress = Self::InProgress {
            updated: counted.updated,
            available: counted.available,
            desired: counted.desired,
        };
        if status.lock.as_ref().is_some_and(|lock| lock.live) {
            return in_progress;
        }
        match status.pause.as_ref().map(|pause| pause.state) {
            Some(PauseState::Aborted) => return Self::Aborted,
            Some(PauseState::Paused) => return Self::Paused,
            Some(PauseState::Waiting) => {
                let waits_for = status.pause.iter().flat_map(|pause| &pause.waits_for);
                let for_approval = waits_for.map(|wait| wait.kind).any(WaitKind::needs_person);
                return Self::Waiting { for_approval };
            }
            None => {}
        }
        if status.observed_generation < status.generation {
            return in_progress;
        }
        if let Some(for_approval) = roll_that_waits(status) {
            return Self::Waiting { for_approval };
        }
        let blocking = status.obstacles.iter().filter(|node| blocks(node));
        let (unready, waited_for): (Vec<_>, Vec<_>) =
            blocking.partition(|node| has(node, is_unready_node));
        let outdated = waited_for.iter().filter(|node| has(node, |it| *it == Reason::OnDelete));
        let outdated = outdated.count();
        if outdated > 0 && outdated == waited_for.len() {
            return Self::OnDelete { outdated };
        }
        // A rollout that breaks its nodes is not complete: only as many are not waited for as a
        // run skips without a policy.
        let unready = u32::try_from(unready.len()).unwrap_or(u32::MAX);
        let too_many = unready > SkipUnreadyNodes::default().of(counted.desired);
        if too_many || !waited_for.is_empty() {
            return in_progress;
        }
        Self::Complete { updated: counted.updated, unready }
    }
}

/// Whether a rollout by `ds-apply roll` waits for a person; none if it does not wait, or no policy is at
/// hand. Nothing on the object says so.
fn roll_that_waits(status: &DaemonSetStatusReport) -> Option<bool> {
    let progress = status.progress.as_ref().filter(|progress| progress.roll_since.is_some())?;
    let waits_for = &progress.waits_for;
    (!waits_for.is_empty()).then(|| waits_for.iter().any(|wait| wait.kind.needs_person()))
}

fn has(node: &NodeObstacles, is: impl Fn(&Reason) -> bool) -> bool {
    node.reasons.iter().any(|coded| is(&coded.reason))
}

/// Whether a rollout is not complete while a node is like this. It does not wait for a pod where no
/// new one may start.
fn blocks(node: &NodeObstacles) -> bool {
    let is_misscheduled = has(node, |it| matches!(it, Reason::Misscheduled { .. }));
    has(node, |it| is_blocking(it) && !(is_misscheduled && is_of_pod(it)))
}

fn is_of_pod(reason: &Reason) -> bool {
    matches!(reason, Reason::PodNotReady(_) | Reason::NotAvailableYet { .. })
}

fn is_unready_node(reason: &Reason) -> bool {
    matches!(
        reason,
        Reason::NodeNotReady(_) | Reason::SkippedUnreadyNode(_) | Reason::UnreadyNodeCounts { .. }
    )
}

/// Whether a rollout is not complete while a node has this reason.
fn is_blocking(reason: &Reason) -> bool {
    match reason {
        Reason::NoPod
        | Reason::NoLivePod
        | Reason::Outdated { .. }
        | Reason::Failed
        | Reason::Succeeded
        | Reason::MayBeDelayed
        | Reason::Surplus { .. }
        | Reason::Superseded { .. }
        | Reason::NotEligible { .. }
        | Reason::Terminating
        | Reason::OnDelete
        | Reason::SkippedUnreadyNode(_)
        | Reason::UnreadyNodeCounts { .. }
        | Reason::MaxUnavailableReached { .. }
        | Reason::NodeNotReady(_)
        | Reason::PodNotReady(_)
        | Reason::NotAvailableYet { .. }
        | Reason::DaemonSetTerminating => true,
        // Pods that stay as they are, or that others delete.
        Reason::UpToDate
        | Reason::DeletedNotRecreated { .. }
        | Reason::NodeVanished
        | Reason::LeftToGarbageCollector
        | Reason::Misscheduled { .. }
        | Reason::Adopted
        | Reason::Released
        | Reason::MustBeRecreated
        | Reason::GoesWithOwner
        | Reason::Orphaned => false,
    }
}

impl fmt::Display for Completion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete { updated, unready: 0 } => {
                write!(f, "complete: {} up to date", count(*updated, "node"))
            }
            Self::Complete { updated, unready } => write!(
                f,
                "complete: {} up to date; not waited for: {} NotReady",
                count(*updated, "node"),
                count(*unready, "node")
            ),
            Self::InProgress { updated, available, desired } => write!(
                f,
                "in progress: {updated} of {} up to date, {available} available",
                count(*desired, "node")
            ),
            Self::Paused => f.write_str("paused, and no run is in progress"),
            Self::Waiting { for_approval: true } => {
                f.write_str("waiting for an approval, and no run is in progress")
            }
            Self::Waiting { for_approval: false } => {
                f.write_str("waiting, and no run is in progress")
            }
            Self::Aborted => f.write_str("aborted: it failed, and the last good template is live"),
            Self::OnDelete { outdated } => write!(
                f,
                "strategy OnDelete, and no run is in progress: {} {}",
                count(*outdated, "outdated pod"),
                agree(*outdated, "stays", "stay")
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::plan::{Counters, LockStatus, PausedRollout, PolicyProgress};
    use crate::steps::WaitsFor;
    use daemonset::controller::placement::Obstacle;

    /// 40 nodes, and these reasons on the first ones.
    fn status(reasons: &[Reason]) -> DaemonSetStatusReport {
        let all = Counters {
            desired: 40,
            current: 40,
            ready: 40,
            updated: 40,
            available: 40,
            unavailable: 0,
            misscheduled: 0,
        };
        let obstacle = |(at, reason): (usize, &Reason)| NodeObstacles {
            node: format!("node-{at}").into(),
            reasons: vec![reason.clone().into()],
        };
        DaemonSetStatusReport {
            namespace: "logging".into(),
            name: "agent".into(),
            generation: 2,
            observed_generation: 2,
            reported: all,
            counted: all,
            node_selector: String::new(),
            age_seconds: None,
            pause: None,
            waits_since: None,
            pulling: Vec::new(),
            progress: None,
            lock: None,
            obstacles: reasons.iter().enumerate().map(obstacle).collect(),
        }
    }

    fn pause(state: PauseState) -> PausedRollout {
        PausedRollout {
            state,
            declared: json!({}),
            plan_digest: String::new(),
            from: None,
            since: jiff::Timestamp::UNIX_EPOCH,
            commit: None,
            by: None,
            failed: None,
            target: None,
            waits_for: Vec::new(),
            failed_gate: None,
        }
    }

    fn lock(live: bool) -> LockStatus {
        LockStatus {
            holder: "alice".to_owned(),
            since: None,
            renewed_seconds_ago: None,
            lease_seconds: 15,
            live,
        }
    }

    #[test]
    fn nodes_decide_unless_a_few_are_not_ready() {
        let outdated = Reason::Outdated { revision: None };
        let unready = Reason::NodeNotReady(Box::default());
        for (reasons, want) in [
            (vec![], "complete: 40 nodes up to date"),
            (vec![Reason::Released], "complete: 40 nodes up to date"),
            (vec![outdated], "in progress: 40 of 40 nodes up to date, 40 available"),
            (
                vec![Reason::OnDelete; 2],
                "strategy OnDelete, and no run is in progress: 2 outdated pods stay",
            ),
            (vec![Reason::OnDelete, Reason::NoPod], "in progress"),
            (
                vec![unready.clone(); 2],
                "complete: 40 nodes up to date; not waited for: 2 nodes \
                 NotReady",
            ),
            (vec![unready.clone(); 3], "in progress"),
            (vec![unready, Reason::NoPod], "in progress"),
        ] {
            let found = Completion::of(&status(&reasons)).to_string();
            assert!(found.starts_with(want), "{reasons:?}: {found}");
        }
    }

    #[test]
    fn a_pod_where_no_new_one_may_start_is_not_waited_for() {
        let unready = Reason::NotAvailableYet { min_ready_seconds: 10 };
        let found = |reasons: &[&Reason]| {
            let mut status = status(std::slice::from_ref(&unready));
            status.obstacles[0].reasons = reasons.iter().map(|it| (*it).clone().into()).collect();
            Completion::of(&status)
        };
        let obstacle = Obstacle::OtherNodeName { want: "another".into() };
        let misscheduled = Reason::Misscheduled { obstacle: Arc::new(obstacle) };
        assert!(matches!(found(&[&unready]), Completion::InProgress { .. }));
        assert!(matches!(found(&[&misscheduled, &unready]), Completion::Complete { .. }));
    }

    #[test]
    fn a_pause_without_a_run_is_an_end() {
        for (state, live, want) in [
            (PauseState::Paused, None, "paused, and no run"),
            (PauseState::Paused, Some(false), "paused, and no run"),
            (PauseState::Paused, Some(true), "in progress"),
            (PauseState::Waiting, None, "waiting, and no run"),
            (PauseState::Waiting, Some(true), "in progress"),
            (PauseState::Aborted, None, "aborted: it failed"),
            (PauseState::Aborted, Some(true), "in progress"),
        ] {
            let mut status = status(&[]);
            (status.pause, status.lock) = (Some(pause(state)), live.map(lock));
            let found = Completion::of(&status).to_string();
            assert!(found.starts_with(want), "{state:?} {live:?}: {found}");
        }
    }

    #[test]
    fn a_roll_waits_by_its_note_and_its_policy() {
        let progress = |roll_since, kinds: &[WaitKind]| PolicyProgress {
            policy: "p".to_owned(),
            roll_since,
            steps: Vec::new(),
            waits_for: kinds.iter().map(|kind| WaitsFor::of(*kind, "canary")).collect(),
            approvals: Vec::new(),
            next_opening: None,
        };
        let since = Some(jiff::Timestamp::UNIX_EPOCH);
        let both = [WaitKind::Window, WaitKind::Approval];
        let outdated = "strategy OnDelete, and no run is in progress";
        for (progress, live, want) in [
            (progress(since, &[WaitKind::Soak]), false, "waiting, and no run"),
            (progress(since, &both), false, "waiting for an approval, and no run"),
            (progress(since, &both), true, "in progress"),
            (progress(since, &[]), false, outdated),
            (progress(None, &both), false, outdated),
        ] {
            let mut status = status(&[Reason::OnDelete]);
            (status.progress, status.lock) = (Some(progress), live.then(|| lock(true)));
            let found = Completion::of(&status).to_string();
            assert!(found.starts_with(want), "{live} {status:?}: {found}");
        }
    }

    #[test]
    fn an_old_status_is_not_complete() {
        let status = DaemonSetStatusReport { generation: 3, ..status(&[]) };
        assert!(matches!(Completion::of(&status), Completion::InProgress { .. }));
    }
}
