//! A rollout that has ended, or a rehearsal of one, ready to be laid out: the use of the budget over
//! time, and what happened on each node.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::nodes::sentence;
use daemonset::model::NodeName;
use planner::plan::{Coded, Reason};
use planner::rollout::{
    Arrival, Delete, Ending, Outcome, PauseReason, PodFailure, Progress, Report, RolledBack,
    RunHistory,
};

/// The rollout of one DaemonSet. Times are seconds since its first event.
#[derive(Debug)]
pub(crate) struct RolloutView<'a> {
    /// `NAMESPACE/NAME`.
    pub key: String,
    /// The label by which its policy divides nodes into domains.
    pub domain_key: Option<&'a str>,
    /// How it ended.
    pub outcome: String,
    /// Whether the target state is reached.
    pub is_done: bool,
    pub began: Option<Timestamp>,
    /// Time of the last event.
    pub lasted: u32,
    /// The nodes that were touched or need attention.
    pub nodes: BTreeMap<&'a str, RolloutNode<'a>>,
    /// Number of nodes whose pod was replaced by deleting it.
    pub replaced: usize,
    /// Number of nodes that got a pod next to their old one.
    pub surged: usize,
    /// Number of nodes that had no pod and got one.
    pub created: usize,
    /// Number of nodes that are not in the desired state.
    pub left: usize,
    /// The durations of all replacements in seconds, the shortest first.
    pub durations: Vec<i64>,
    pub uses: Vec<BudgetUse>,
    /// The largest number of nodes that were skipped, which count in no number of `uses`.
    pub skipped: u32,
    /// The times in which the run itself has waited for what its policy wants.
    pub waits: Vec<(u32, u32)>,
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
    Surged,
    Created,
    Untouched,
}

impl RolloutState {
    /// Whether the node got a new pod that is available.
    pub(crate) fn is_well(self) -> bool {
        match self {
            Self::Replaced | Self::Surged | Self::Created => true,
            Self::Failed | Self::Underway | Self::Left | Self::Untouched => false,
        }
    }
}

/// The nodes that use the budget at one time, and the allowed number. All charts are made from
/// these.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BudgetUse {
    pub at: u32,
    /// Nodes that have lost their available pod.
    pub unavailable: u32,
    pub allowed: u32,
    /// Nodes that wait for the first pod that they ever had. No budget holds for these.
    pub awaiting_first_pod: u32,
    /// Nodes with an old and a new pod.
    pub surging: u32,
    pub may_surge: u32,
    /// The wave in progress.
    pub wave: Option<u32>,
}

/// One number of [`BudgetUse`], over the time of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Series {
    Unavailable,
    Surging,
    AwaitingFirstPod,
}

impl Series {
    pub(crate) const ALL: [Self; 3] = [Self::Unavailable, Self::Surging, Self::AwaitingFirstPod];

    /// What is counted.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::Unavailable => "without an available pod",
            Self::Surging => "with an old and a new pod",
            Self::AwaitingFirstPod => "waiting for their first pod",
        }
    }

    /// The number at one time.
    pub(crate) fn value(self, of: &BudgetUse) -> u32 {
        match self {
            Self::Unavailable => of.unavailable,
            Self::Surging => of.surging,
            Self::AwaitingFirstPod => of.awaiting_first_pod,
        }
    }

    /// The budget at one time, if there is one for this number.
    pub(crate) fn allowed(self, of: &BudgetUse) -> Option<u32> {
        match self {
            Self::Unavailable => Some(of.allowed),
            Self::Surging => Some(of.may_surge),
            Self::AwaitingFirstPod => None,
        }
    }
}

/// Seconds from `began` to `at`.
fn since(began: Option<Timestamp>, at: Timestamp) -> u32 {
    let seconds = began.map_or(0, |began| at.duration_since(began).as_secs());
    u32::try_from(seconds).unwrap_or_default()
}

impl<'a> RolloutView<'a> {
    pub(crate) fn of(run: &'a RunHistory) -> Self {
        let RunHistory { key, domain_key, events, ending } = run;
        let Ending { outcome, replaced, left } = ending;
        let began = events.first().map(|(at, _)| *at);
        let mut durations: Vec<i64> = replaced.iter().map(|replaced| replaced.seconds).collect();
        durations.sort_unstable();
        let mut view = Self {
            key: key.to_string(),
            domain_key: domain_key.as_deref(),
            outcome: ending.to_string(),
            is_done: *outcome == Outcome::Done,
            began,
            lasted: events.last().map_or(0, |(at, _)| since(began, *at)),
            nodes: BTreeMap::new(),
            replaced: replaced.len(),
            surged: 0,
            created: 0,
            left: left.len(),
            durations,
            uses: Vec::new(),
            skipped: 0,
            waits: waits(events, began),
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
            Report::Arrived { node, how, seconds } => {
                let state = match how {
                    Arrival::Created => RolloutState::Created,
                    Arrival::Surged => RolloutState::Surged,
                    Arrival::Recreated => RolloutState::Replaced,
                };
                self.replaced += usize::from(*how == Arrival::Recreated);
                self.surged += usize::from(*how == Arrival::Surged);
                self.created += usize::from(*how == Arrival::Created);
                let waited = u32::try_from(*seconds).unwrap_or_default();
                let node_view = RolloutNode {
                    span: Some((at.saturating_sub(waited), at)),
                    seconds: Some(*seconds),
                    ..RolloutNode::of(state)
                };
                self.nodes.insert(node.as_str(), node_view);
            }
            Report::Progress(progress) => {
                *current = progress.wave;
                self.skipped = self.skipped.max(progress.skipped);
                self.uses.push(BudgetUse::of(at, progress));
            }
            Report::Failed { node, pod_failure } => {
                self.failed(node, pod_failure);
                self.events.push((at, report.to_string()));
            }
            Report::Writing(_)
            | Report::Revision(_)
            | Report::Stopping { .. }
            | Report::LostReady { .. }
            | Report::NotObserved { .. }
            | Report::NotPulled { .. }
            | Report::RemovingPullers { .. }
            | Report::WaitingFor(_) => {
                self.events.push((at, report.to_string()));
            }
            // As many as nodes.
            Report::Pulling { .. } | Report::Pulled { .. } => {}
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
            // A node that got its pod and now needs attention for another reason.
            if node.state.is_well() {
                node.state = RolloutState::Left;
            }
            let coded: Vec<Coded<Reason>> = reasons.iter().cloned().map(Coded::from).collect();
            node.pod_failure.get_or_insert_with(|| sentence(&coded));
        }
    }

    /// The numbers that were ever above zero.
    pub(crate) fn series(&self) -> impl Iterator<Item = Series> {
        let is_used = |series: &Series| self.uses.iter().any(|it| series.value(it) > 0);
        Series::ALL.into_iter().filter(is_used)
    }

    /// Number of nodes in `state`.
    pub(crate) fn count(&self, state: RolloutState) -> usize {
        self.nodes.values().filter(|node| node.state == state).count()
    }
}

/// The times in which a run waits: each ends with the next write or delete, or with the run.
fn waits(events: &[(Timestamp, Report)], began: Option<Timestamp>) -> Vec<(u32, u32)> {
    let mut waits: Vec<(u32, u32)> = Vec::new();
    let mut is_open = false;
    for (at, report) in events {
        let at = since(began, *at);
        if let Some((_, until)) = waits.last_mut().filter(|_| is_open) {
            *until = at;
        }
        match report {
            Report::WaitingFor(_) if !is_open => {
                waits.push((at, at));
                is_open = true;
            }
            Report::Deleting(_) | Report::Writing(_) | Report::Stopping { .. } => is_open = false,
            Report::WaitingFor(_)
            | Report::Recovered { .. }
            | Report::Arrived { .. }
            | Report::Progress(_)
            | Report::Failed { .. }
            | Report::Revision(_)
            | Report::Pulling { .. }
            | Report::Pulled { .. }
            | Report::NotPulled { .. }
            | Report::RemovingPullers { .. }
            | Report::NotObserved { .. }
            | Report::LostReady { .. } => {}
        }
    }
    waits
}

impl BudgetUse {
    fn of(at: u32, progress: &Progress) -> Self {
        let Progress {
            desired: _,
            updated: _,
            available: _,
            unavailable,
            awaiting_first_pod,
            allowed,
            surging,
            may_surge,
            recovering: _,
            outdated: _,
            skipped: _,
            wave,
        } = *progress;
        let unavailable = unavailable.saturating_sub(awaiting_first_pod);
        Self { at, unavailable, allowed, awaiting_first_pod, surging, may_surge, wave }
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
        Outcome::Aborted { rolled_back: Some(RolledBack::Failed(failed)), .. }
        | Outcome::Aborted { failed, rolled_back: None | Some(RolledBack::Stopped(_)), .. }
        | Outcome::Paused { why: PauseReason::Failed { failed, .. } } => Some(failed),
        Outcome::Aborted { rolled_back: Some(RolledBack::Fully), .. }
        | Outcome::Done
        | Outcome::Paused { .. }
        | Outcome::Waiting { .. }
        | Outcome::Stale { .. }
        | Outcome::Gone { .. }
        | Outcome::Interrupted { .. }
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
            let ending =
                Ending { outcome: Outcome::Done, replaced: Vec::new(), left: BTreeMap::new() };
            let events = (0..).map(at).zip(reports).collect();
            let key = DaemonSetKey::new("logging", "agent");
            let run = RunHistory { key, domain_key: None, events, ending };
            let view = RolloutView::of(&run);
            assert_eq!(["a", "b"].map(|node| view.nodes[node].wave), want, "{last}");
        }
    }
}
