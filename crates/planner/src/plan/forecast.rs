//! Estimates the duration of an apply: waves one after another, each in rounds up to its budget,
//! each round as long as a pod takes to stop, start and become available. The first pod has to be
//! Ready for longer than the others.
//!
//! Start times are taken from pods in the cluster. If the policy makes a rollout wait, its course
//! over time is in `timeline`. Not here: failures, and the results of a rehearsal.

mod timeline;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;

use super::document::{
    Action, DaemonSetForecast, DaemonSetPlan, Forecast, PrePullForecast, PrePullPlan, Strategy,
    rounds as nodes_in_rounds,
};
use crate::time::{later, next_whole_second};
use daemonset::controller::start_times::{DEFAULT_START, StartTimes, images};
use daemonset::model::{
    Calendar, DaemonSetKey, DaemonSetSpec, DesiredDaemonSet, ManagedBy, MinReady, PolicySpec, Ramp,
    Snapshot,
};
use timeline::{Pace, Timeline, timeline};

/// Assumed duration of stopping an old pod that exits on SIGTERM.
const STOP: Duration = Duration::from_secs(1);

/// Number of pods that the controller manager creates per second (upstream: `--kube-api-qps`).
const CREATES_A_SECOND: u32 = 20;

/// The forecast for the whole plan, whose snapshot is of `now`; `None` when no pod is created and
/// nothing soaks.
pub(super) fn forecast(
    planned: &[DaemonSetPlan],
    desired: &[&DesiredDaemonSet],
    starts: &StartTimes,
    now: Timestamp,
) -> Option<Forecast> {
    let (mut seen, mut guessed) = (0, false);
    let mut parts = BTreeMap::new();
    let mut begins = Begins { now, ends: BTreeMap::new(), waiting: Vec::new() };
    for one in by_precedence(planned) {
        let key = one.key();
        let Some(desired) = desired.iter().find(|desired| desired.key == key) else { continue };
        let measured = starts.of(images(&desired.spec.template.raw()["spec"]));
        let (start, reported_by) = measured.unwrap_or((DEFAULT_START, 0));
        let pulled = one.pre_pull.as_ref().and_then(|it| pull(it, desired, starts));
        let part = match pulled {
            None => of_one(one, desired, starts, start, &mut begins),
            Some(pulled) => {
                begins.now = later(begins.now, pulled.first.as_secs());
                let part = of_one(one, desired, starts, pulled.start, &mut begins);
                pulled.put_into(part, start)
            }
        };
        if part.seconds > 0 || part.soak_seconds > 0 {
            seen += reported_by;
            guessed |= reported_by == 0;
            parts.insert(key, part);
        }
    }
    let daemon_sets: Vec<DaemonSetForecast> =
        planned.iter().filter_map(|one| parts.remove(&one.key())).collect();
    (!daemon_sets.is_empty()).then(|| Forecast {
        seconds: daemon_sets.iter().map(|one| one.seconds).sum(),
        starts_seen: u32::try_from(seen).unwrap_or(u32::MAX),
        default_start_seconds: guessed.then_some(DEFAULT_START.as_secs()),
        earliest_end: begins.all_end(),
        daemon_sets,
    })
}

/// Images that are pulled before: how long that takes, and what it saves.
#[derive(Clone, Copy, Debug)]
struct Pull {
    /// Time until the first nodes have them.
    first: Duration,
    /// Time until all nodes have them.
    all: Duration,
    /// Start time of a pod whose images are there.
    start: Duration,
}

/// Pulling takes the difference between a usual start and the fastest one, whose images were there;
/// `None` if no pod was measured.
fn pull(plan: &PrePullPlan, desired: &DesiredDaemonSet, starts: &StartTimes) -> Option<Pull> {
    let spec = &desired.spec.template.raw()["spec"];
    let (usual, _) = starts.of(images(spec))?;
    let start = starts.with_images(images(spec))?.min(usual);
    let first = usual.saturating_sub(start);
    let rounds = plan.nodes.div_ceil(plan.parallel.max(1));
    Some(Pull { first, all: first * rounds, start })
}

impl Pull {
    /// The forecast with the time of pulling, for pods that would start in `usual` without it. Nodes
    /// are updated while others pull.
    fn put_into(self, part: DaemonSetForecast, usual: Duration) -> DaemonSetForecast {
        let Self { first, all, start } = self;
        let last = (all + STOP + start).as_secs();
        DaemonSetForecast {
            seconds: (part.seconds + first.as_secs()).max(last),
            pre_pull: Some(PrePullForecast {
                node_seconds: (STOP + start).as_secs(),
                without_seconds: (STOP + usual).as_secs(),
            }),
            ..part
        }
    }
}

/// When the next DaemonSet begins.
struct Begins {
    /// The end of the first runs of those before it.
    now: Timestamp,
    /// The end of each that was forecast.
    ends: BTreeMap<DaemonSetKey, Option<Timestamp>>,
    /// The ends of those that a policy may make wait; none for one that never ends.
    waiting: Vec<Option<Timestamp>>,
}

impl Begins {
    /// The end of all; none if no policy makes one wait, or one never ends.
    fn all_end(&self) -> Option<Timestamp> {
        let ends: Option<Vec<Timestamp>> = self.waiting.iter().copied().collect();
        ends?.into_iter().max().map(|end| end.max(next_whole_second(self.now)))
    }
}

/// The forecast of one DaemonSet whose pods need `start` to become Ready.
fn of_one(
    plan: &DaemonSetPlan,
    desired: &DesiredDaemonSet,
    starts: &StartTimes,
    start: Duration,
    begins: &mut Begins,
) -> DaemonSetForecast {
    let policy = &*desired.policy_spec();
    let min_ready = policy.min_ready(&desired.spec);
    let waves = waves(plan, start);
    let creates = creates(plan, start, min_ready, policy.ramp);
    let one = DaemonSetForecast {
        daemon_set: plan.key().to_string(),
        waves: waves.iter().map(Duration::as_secs).collect(),
        ..DaemonSetForecast::default()
    };
    if !waits(policy) {
        let seconds = waves.iter().sum::<Duration>().max(creates).as_secs();
        begins.now = later(begins.now, seconds);
        begins.ends.insert(plan.key(), Some(begins.now));
        return DaemonSetForecast { seconds, ..one };
    }
    let node_seconds = node_seconds(&desired.policy_spec(), &desired.spec, starts);
    let calendar = Calendar::of(&policy.windows, &policy.exclusions);
    let pace = Pace {
        calendar: &calendar,
        fits: node_seconds.unwrap_or(policy.progress_deadline.0).into(),
        start: start.as_secs(),
        stop: STOP.as_secs(),
    };
    let predecessors = policy.after.iter().filter_map(|key| begins.ends.get(key));
    let predecessors: Option<Vec<Timestamp>> = predecessors.copied().collect();
    let from = predecessors.map(|ends| ends.into_iter().fold(begins.now, Timestamp::max));
    let Timeline { work, first_run, soak, steps, spans, window_opens, end } =
        timeline(plan, pace, from.unwrap_or(begins.now));
    let seconds = work.max(creates.as_secs());
    let end = end.map(|end| next_whole_second(end.max(later(begins.now, creates.as_secs()))));
    let end = from.and(end);
    begins.waiting.push(end);
    begins.now = later(begins.now, first_run);
    begins.ends.insert(plan.key(), end);
    DaemonSetForecast {
        seconds,
        node_seconds,
        soak_seconds: soak,
        steps,
        timeline: spans,
        window_opens,
        time_zone: (!policy.windows.is_empty()).then(|| calendar.time_zone().clone()),
        earliest_end: end,
        ..one
    }
}

/// Whether a rollout by this policy may have to wait.
fn waits(policy: &PolicySpec) -> bool {
    let soaks = policy.domains.as_ref().is_some_and(|domains| !domains.soak.is_zero());
    soaks || !policy.steps.is_empty() || !policy.windows.is_empty() || !policy.exclusions.is_empty()
}

/// The plans, each behind those that must be done before it; else in their order.
fn by_precedence(planned: &[DaemonSetPlan]) -> Vec<&DaemonSetPlan> {
    let mut left: Vec<&DaemonSetPlan> = planned.iter().collect();
    let mut ordered = Vec::with_capacity(left.len());
    while !left.is_empty() {
        let names: Vec<String> = left.iter().map(|one| one.key().to_string()).collect();
        let is_free = |one: &&DaemonSetPlan| !one.after.iter().any(|key| names.contains(key));
        // Policies in a cycle are refused when they are read.
        let next = left.iter().position(is_free).unwrap_or(0);
        ordered.push(left.remove(next));
    }
    ordered
}

/// The time that the update of one node takes, in seconds, by the start times of pods in the
/// cluster; `None` if none has started with these images.
pub(super) fn node_seconds(
    policy: &PolicySpec,
    spec: &DaemonSetSpec,
    starts: &StartTimes,
) -> Option<u32> {
    let (start, _) = starts.of(images(&spec.template.raw()["spec"]))?;
    let min_ready = policy.min_ready(spec);
    let seconds = (STOP + start).as_secs() + u64::from(min_ready.first);
    Some(u32::try_from(seconds).unwrap_or(u32::MAX))
}

/// The time that a window has to be open for a node, in seconds: as measured, else the progress
/// deadline. Without windows, nothing is measured.
pub(super) fn seconds_in_window(
    policy: &PolicySpec,
    spec: &DaemonSetSpec,
    snapshot: &Snapshot,
) -> u32 {
    let has_windows = !policy.windows.is_empty() || !policy.exclusions.is_empty();
    let starts = has_windows.then(|| StartTimes::seen_in(snapshot));
    let measured = starts.and_then(|starts| node_seconds(policy, spec, &starts));
    measured.unwrap_or(policy.progress_deadline.0)
}

/// Duration of each wave of a DaemonSet whose pods need `start` to become Ready.
fn waves(plan: &DaemonSetPlan, start: Duration) -> Vec<Duration> {
    let waves = plan.waves.iter().map(|wave| {
        let stop = if wave.max_surge > 0 { Duration::ZERO } else { STOP };
        rounds(wave.rounds(), stop + start, wave.min_ready_seconds)
    });
    waves.collect()
}

/// Duration of creating the pods outside of waves, which happens during the first waves.
fn creates(plan: &DaemonSetPlan, start: Duration, min_ready: MinReady, ramp: Ramp) -> Duration {
    let at_once = plan.nodes.iter().filter(|node| node.wave.is_none());
    let created = at_once.filter(|node| matches!(node.action, Action::Create | Action::Replace));
    let created = created.count();
    // The built-in controller creates them all at once; ds-apply follows the ramp.
    let (at_a_time, ramp) = match (plan.managed_by, plan.strategy) {
        (ManagedBy::DsApply, Strategy::RollingUpdate { max_unavailable, max_surge: 0, .. }) => {
            (max_unavailable.max(1), ramp)
        }
        (ManagedBy::DsApply | ManagedBy::DaemonSetController, _) => (u32::MAX, Ramp::None),
    };
    rounds(nodes_in_rounds(created, at_a_time, ramp), start, min_ready)
}

/// Duration of these rounds of nodes, limited by the rate at which the controller manager creates
/// pods.
fn rounds(nodes: impl Iterator<Item = u32>, start: Duration, min_ready: MinReady) -> Duration {
    let up = |seconds: u32| start + Duration::from_secs(seconds.into());
    let (mut total, mut takes) = (0, Duration::ZERO);
    for nodes in nodes {
        takes += if total == 0 { up(min_ready.first) } else { up(min_ready.others) };
        total += nodes;
    }
    let creating = Duration::from_secs(u64::from(total / CREATES_A_SECOND));
    if total == 0 { takes } else { takes.max(creating + up(min_ready.others)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_that_are_pulled_before_make_nodes_faster_and_take_their_own_time() {
        let seconds = Duration::from_secs;
        let pull = |all| Pull { first: seconds(16), all: seconds(all), start: seconds(4) };
        // The last nodes to pull decide if that takes longer than the updates.
        for (all, want) in [(16, 56), (64, 69)] {
            let updates = DaemonSetForecast { seconds: 40, ..DaemonSetForecast::default() };
            let part = pull(all).put_into(updates, seconds(20));
            assert_eq!(part.seconds, want);
            let times = PrePullForecast { node_seconds: 5, without_seconds: 21 };
            assert_eq!(part.pre_pull, Some(times));
        }
    }

    #[test]
    fn the_duration_depends_on_rounds_and_on_the_rate_of_creation() {
        let seconds = Duration::from_secs;
        let plain = MinReady::default();
        for (nodes, min_ready, want) in [
            (&[][..], plain, 0),
            (&[1], plain, 10),
            (&[1; 10], plain, 100),
            (&[3, 3, 3, 1], plain, 40),
            (&[10], plain, 10),
            (&[500; 10], plain, 260),
            (&[1, 2, 4], MinReady { first: 10, others: 0 }, 40),
            (&[1, 2, 4], MinReady { first: 10, others: 10 }, 60),
        ] {
            let takes = rounds(nodes.iter().copied(), seconds(10), min_ready);
            assert_eq!(takes, seconds(want), "{nodes:?} {min_ready:?}");
        }
    }
}
