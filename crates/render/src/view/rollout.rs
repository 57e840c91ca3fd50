//! A rollout that has ended, or a rehearsal of one, ready to be laid out: the use of the budget over
//! time, and what happened on each node.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::nodes::sentence;
use daemonset::model::NodeName;
use planner::plan::{Coded, Reason};
use planner::rollout::{
    Delete, Ending, Outcome, PauseReason, PodFailure, Progress, Record, Report, RolledBack,
};

/// The rollout of one DaemonSet. Times are seconds since its first event.
#[derive(Debug)]
pub(crate) struct RolloutView<'a> {
    /// `NAMESPACE/NAME`.
    pub key: String,
    /// How it ended.
    pub outcome: String,
    /// Whether the target state is reached.
    pub is_done: bool,
    pub began: Option<Timestamp>,
    /// Time of the last event.
    pub lasted: u32,
    /// The nodes that were touched or need attention.
    pub nodes: BTreeMap<&'a str, RolloutNode<'a>>,
    /// Number of nodes whose pod was replaced.
    pub replaced: usize,
    /// Number of nodes that are not in the desired state.
    pub left: usize,
    /// The durations of all replacements in seconds, the shortest first.
    pub durations: Vec<i64>,
    pub uses: Vec<BudgetUse>,
    /// The events that are not a node's own, with their times.
    pub events: Vec<(u32, String)>,
}

/// What happened on one node.
#[derive(Debug)]
pub(crate) struct RolloutNode<'a> {
    pub state: RolloutState,
    /// From the delete of its pod to its next available pod.
    pub span: Option<(u32, u32)>,
    /// The duration of that, if it ended.
    pub seconds: Option<i64>,
    /// Index of its wave, if there are several.
    pub wave: Option<u32>,
    /// Why its pod was deleted.
    reason: Option<&'a Reason>,
    /// Why it failed, or why it needs attention.
    pod_failure: Option<String>,
}

/// The state of a node at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RolloutState {
    Failed,
    Underway,
    Left,
    Replaced,
    Untouched,
}

/// Nodes without an available pod at one time, and the allowed number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BudgetUse {
    pub at: u32,
    pub unavailable: u32,
    pub allowed: u32,
    /// The wave in progress.
    pub wave: Option<u32>,
}

/// Seconds from `began` to `at`.
fn since(began: Option<Timestamp>, at: Timestamp) -> u32 {
    let seconds = began.map_or(0, |began| at.duration_since(began).as_secs());
    u32::try_from(seconds).unwrap_or_default()
}

impl<'a> RolloutView<'a> {
    pub(crate) fn of(record: &'a Record) -> Self {
        let Record { key, events, ending } = record;
        let Ending { outcome, interrupted: _, replaced, left } = ending;
        let began = events.first().map(|(at, _)| *at);
        let mut durations: Vec<i64> = replaced.iter().map(|replaced| replaced.seconds).collect();
        durations.sort_unstable();
        let mut view = Self {
            key: key.to_string(),
            outcome: outcome.to_string(),
            is_done: *outcome == Outcome::Done,
            began,
            lasted: events.last().map_or(0, |(at, _)| since(began, *at)),
            nodes: BTreeMap::new(),
            replaced: replaced.len(),
            left: left.len(),
            durations,
            uses: Vec::new(),
            events: Vec::new(),
        };
        let mut wave = None;
        for (at, report) in events {
            view.takes_in(since(began, *at), report, &mut wave);
        }
        view.ends(ending);
        // A later wave than the first is the only sign that there are several.
        if view.uses.iter().all(|it| it.wave <= Some(1)) {
            view.nodes.values_mut().for_each(|node| node.wave = None);
        }
        view
    }

    fn takes_in(&mut self, at: u32, report: &'a Report, current: &mut Option<u32>) {
        match report {
            Report::Deleting(Delete { pod: _, uid: _, node, reason, cost: _ }) => {
                let node_view = RolloutNode {
                    span: Some((at, self.lasted)),
                    wave: *current,
                    reason: Some(reason),
                    ..RolloutNode::of(RolloutState::Underway)
                };
                self.nodes.insert(node.as_str(), node_view);
            }
            Report::Recovered { node, seconds } => {
                if let Some(node) = self.nodes.get_mut(node.as_str()) {
                    node.state = RolloutState::Replaced;
                    node.seconds = Some(*seconds);
                    node.span = node.span.map(|(from, _)| (from, at));
                }
            }
            Report::Progress(Progress { unavailable, allowed, wave, .. }) => {
                *current = *wave;
                let (unavailable, allowed, wave) = (*unavailable, *allowed, *wave);
                self.uses.push(BudgetUse { at, unavailable, allowed, wave });
            }
            Report::Failed { node, pod_failure } => {
                self.failed(node, pod_failure);
                self.events.push((at, report.to_string()));
            }
            Report::Writing(_) | Report::Revision(_) | Report::LostReady { .. } => {
                self.events.push((at, report.to_string()));
            }
        }
    }

    fn failed(&mut self, node: &'a NodeName, pod_failure: &PodFailure) {
        let failed = RolloutNode::of(RolloutState::Failed);
        let node = self.nodes.entry(node.as_str()).or_insert(failed);
        node.state = RolloutState::Failed;
        node.pod_failure = Some(pod_failure.to_string());
    }

    /// Adds the nodes that failed or were not finished, from the outcome of the run.
    fn ends(&mut self, ending: &'a Ending) {
        for (node, pod_failure) in failures(&ending.outcome).into_iter().flatten() {
            self.failed(node, pod_failure);
        }
        for (node, reasons) in &ending.left {
            let left = RolloutNode::of(RolloutState::Left);
            let node = self.nodes.entry(node.as_str()).or_insert(left);
            // A node that was replaced and now needs attention for another reason.
            if node.state == RolloutState::Replaced {
                node.state = RolloutState::Left;
            }
            let coded: Vec<Coded<Reason>> = reasons.iter().cloned().map(Coded::from).collect();
            node.pod_failure.get_or_insert_with(|| sentence(&coded));
        }
    }

    /// Number of nodes in `state`.
    pub(crate) fn count(&self, state: RolloutState) -> usize {
        self.nodes.values().filter(|node| node.state == state).count()
    }
}

impl RolloutNode<'_> {
    fn of(state: RolloutState) -> Self {
        Self { state, span: None, seconds: None, wave: None, reason: None, pod_failure: None }
    }

    /// Why it failed or needs attention, otherwise why its pod was deleted.
    pub(crate) fn why(&self) -> String {
        let reason = || self.reason.map(ToString::to_string);
        self.pod_failure.clone().or_else(reason).unwrap_or_default()
    }
}

/// The failed nodes of an outcome, if it has any.
fn failures(outcome: &Outcome) -> Option<&BTreeMap<NodeName, PodFailure>> {
    match outcome {
        Outcome::Aborted { failed: _, to: _, rolled_back: Some(RolledBack::Failed(failed)) }
        | Outcome::Aborted { failed, to: _, rolled_back: None | Some(RolledBack::Stopped(_)) }
        | Outcome::Paused { why: PauseReason::Failed { failed, not_aborted: _ } } => Some(failed),
        Outcome::Aborted { failed: _, to: _, rolled_back: Some(RolledBack::Fully) }
        | Outcome::Done
        | Outcome::Paused { .. }
        | Outcome::Stale { .. }
        | Outcome::Gone { .. }
        | Outcome::Interrupted
        | Outcome::LockLost
        | Outcome::Failed { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemonset::model::DaemonSetKey;
    use planner::rollout::Cost;

    #[test]
    fn nodes_have_a_wave_where_there_are_several() {
        for (last, want) in [(1, [None, None]), (2, [Some(1), Some(2)])] {
            let progress = |wave| Report::Progress(Progress { wave, ..Progress::default() });
            let delete = |node: &str| {
                Report::Deleting(Delete {
                    pod: "p".into(),
                    uid: "u".into(),
                    node: node.into(),
                    reason: Reason::NoPod,
                    cost: Cost::Nothing,
                })
            };
            let reports = [progress(Some(1)), delete("a"), progress(Some(last)), delete("b")];
            let at = |second| Timestamp::from_second(second).unwrap();
            let ending = Ending {
                outcome: Outcome::Done,
                interrupted: false,
                replaced: Vec::new(),
                left: BTreeMap::new(),
            };
            let events = (0..).map(at).zip(reports).collect();
            let record = Record { key: DaemonSetKey::new("logging", "agent"), events, ending };
            let view = RolloutView::of(&record);
            assert_eq!(["a", "b"].map(|node| view.nodes[node].wave), want, "{last}");
        }
    }
}
