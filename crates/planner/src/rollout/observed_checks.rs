//! The checks of a policy that the observed cluster answers, in a rollout: `nodeConditions` and
//! `pods`.
//!
//! No request is sent, so the answer is always that of the newest view. A precondition about each node
//! on its own keeps back only the nodes that do not pass: they take no slot, and the others are
//! updated. When none is left that could begin, the rollout waits. Not here: what a check finds
//! ([`checks`](crate::checks)).

use jiff::Timestamp;

use super::checks::{Asking, Missing, Now, may_be_replaced};
use super::task::ClusterChecks;
use crate::checks::{self, CheckAnswer, CheckFinding, CheckReason, CheckedCluster, CheckedNode};
use crate::classification::NodeStanding;
use crate::steps::{WaitKind, WaitsFor};
use daemonset::controller::limits::allows_surge;
use daemonset::model::Check;

impl<'a> Asking<'a, '_, '_, '_> {
    /// Whether the observed cluster answers a check. In a rehearsal, the fault file does.
    pub(super) fn is_observed(&self, check: &Check) -> bool {
        check.is_of_cluster() && self.decision.task.cluster_checks == ClusterChecks::Observed
    }

    /// What a gate says about the updated nodes. While something is bad that may recover within the
    /// interval of the check, the answer is missing.
    pub(super) fn observe_gate(
        &mut self,
        gate: &Check,
        from: Timestamp,
        after: Option<Timestamp>,
    ) -> Now {
        if let Some(early) = self.too_early(from, after) {
            return early;
        }
        // A bad condition may be a taint, too: no pod may start there then, but the new one is there.
        let updated = self.nodes.iter();
        let updated: Vec<CheckedNode<'_>> = updated
            .filter(|node| node.is_gated(self.began))
            .map(|node| CheckedNode { node: node.node, pod_created: node.pod_created })
            .collect();
        let found = checks::gate(gate, &updated, self.cluster());
        let (answer, now) = (found.answer(), self.now());
        match answer {
            CheckAnswer::Fail(ref reason) => {
                let since = reason.since().unwrap_or(now);
                return Now::Answered(answer, since);
            }
            CheckAnswer::Pass | CheckAnswer::Unknown(_) if found.pending.is_some() => {
                self.decision.wake_at(found.pending);
                return Now::Asking(Missing::Unknown);
            }
            CheckAnswer::Pass => {
                let step = self.evaluation.current_step().to_owned();
                if self.decision.state.checks.mark_passed(&step, gate, now, after) {
                    // The step may be done now: it is evaluated again.
                    self.lacks(Missing::Unknown);
                    self.decision.wake_at(Some(now));
                }
            }
            CheckAnswer::Unknown(_) => {}
        }
        Now::Answered(answer, now)
    }

    /// The positions of the nodes that could begin now.
    pub(super) fn candidates(&self) -> Vec<usize> {
        let is_ready = |at: &usize| self.nodes[*at].standing == NodeStanding::Ready;
        let all = (0..self.nodes.len()).filter(is_ready);
        all.filter(|at| may_be_replaced(self.nodes, self.evaluation, *at)).collect()
    }

    /// Holds back the nodes that do not pass a precondition, or all of them if it is not about each
    /// node on its own.
    pub(super) fn observe_precondition(&mut self, check: &Check) {
        let candidates = self.candidates();
        let node = |at: &usize| CheckedNode { node: self.nodes[*at].node, pod_created: None };
        let checked: Vec<CheckedNode<'_>> = candidates.iter().map(node).collect();
        let found = checks::precondition(check, &checked, self.cluster());
        let held_back: Vec<usize> = found.nodes().map(|at| candidates[at]).collect();
        let (kind, finding) = match found.answer() {
            CheckAnswer::Pass => return self.is_known(check),
            CheckAnswer::Fail(reason) => {
                self.is_known(check);
                let since = reason.since().unwrap_or_else(|| self.now());
                (WaitKind::Precondition, finding(check, since, reason))
            }
            CheckAnswer::Unknown(reason) => {
                let since = self.unknown_since(check, self.now());
                (WaitKind::Unknown, finding(check, since, reason))
            }
        };
        if held_back.is_empty() {
            return self.wait(kind, Some(finding), None);
        }
        self.evaluation.held_back.extend(held_back);
        let wait = WaitsFor::check(kind, self.evaluation.current_step(), Some(finding));
        self.evaluation.held_back_by.push(wait);
    }

    /// Lets the rollout wait if none of the nodes is left that could begin, or if the controller
    /// begins with any of them, by a surge.
    pub(super) fn wait_if_held_back(&mut self, candidates: &[usize]) {
        let is_held_back = |at: &usize| self.evaluation.held_back.contains(at);
        let target = self.decision.task.goal.target();
        let surges = target.is_some_and(|target| allows_surge(target.declared.strategy()));
        let is_stopped = candidates.iter().all(is_held_back)
            || (surges && self.evaluation.is_last() && candidates.iter().any(is_held_back));
        if is_stopped {
            self.wait_for_all(self.evaluation.held_back_by.clone());
        }
    }

    fn cluster(&self) -> CheckedCluster<'a> {
        let observed = self.decision.observed;
        CheckedCluster {
            nodes: observed.nodes,
            neighbours: observed.neighbours,
            owner: &self.live.uid,
            now: self.decision.now,
        }
    }
}

fn finding(check: &Check, since: Timestamp, reason: CheckReason) -> CheckFinding {
    CheckFinding { check: check.name.clone(), since, reason }
}
