//! Estimates the duration of an apply: waves one after another, each in rounds up to its budget,
//! each round as long as a pod takes to stop, start and become available. The first pod has to be
//! Ready for longer than the others.
//!
//! Start times are taken from pods in the cluster. Not here: failures, and the results of a
//! rehearsal.

use std::time::Duration;

use super::document::{
    Action, DaemonSetForecast, DaemonSetPlan, Forecast, Strategy, rounds as nodes_in_rounds,
};
use daemonset::controller::start_times::{DEFAULT_START, StartTimes, images};
use daemonset::model::{DesiredDaemonSet, ManagedBy, MinReady, Ramp};

/// Assumed duration of stopping an old pod that exits on SIGTERM.
const STOP: Duration = Duration::from_secs(1);

/// Number of pods that the controller manager creates per second (upstream: `--kube-api-qps`).
const CREATES_A_SECOND: u32 = 20;

/// The forecast for the whole plan; `None` when no pod is created.
pub(super) fn forecast(
    planned: &[DaemonSetPlan],
    desired: &[&DesiredDaemonSet],
    starts: &StartTimes,
) -> Option<Forecast> {
    let (mut total, mut seen, mut guessed) = (Duration::ZERO, 0, false);
    let mut daemon_sets = Vec::new();
    for one in planned {
        let key = one.key();
        let Some(desired) = desired.iter().find(|desired| desired.key == key) else { continue };
        let start = starts.of(images(&desired.spec.template.raw()["spec"]));
        let pace = desired.policy.as_ref().map(|policy| &policy.spec);
        let min_ready = MinReady::of(&desired.spec, pace.and_then(|it| it.min_ready_seconds));
        let (start, reported_by) = start.unwrap_or((DEFAULT_START, 0));
        let ramp = pace.map_or_else(Ramp::default, |it| it.ramp);
        let waves = waves(one, start);
        let takes = waves.iter().sum::<Duration>().max(creates(one, start, min_ready, ramp));
        if takes > Duration::ZERO {
            daemon_sets.push(DaemonSetForecast {
                daemon_set: key.to_string(),
                seconds: takes.as_secs(),
                waves: waves.iter().map(Duration::as_secs).collect(),
            });
            total += takes;
            seen += reported_by;
            guessed |= reported_by == 0;
        }
    }
    (total > Duration::ZERO).then(|| Forecast {
        seconds: total.as_secs(),
        starts_seen: u32::try_from(seen).unwrap_or(u32::MAX),
        default_start_seconds: guessed.then_some(DEFAULT_START.as_secs()),
        daemon_sets,
    })
}

/// The time that the update of one node takes, in seconds, by the start times of pods in the
/// cluster; `None` if none has started with these images.
pub(super) fn node_seconds(desired: &DesiredDaemonSet, starts: &StartTimes) -> Option<u32> {
    let (start, _) = starts.of(images(&desired.spec.template.raw()["spec"]))?;
    let min_ready = desired.policy_spec().min_ready(&desired.spec);
    let seconds = (STOP + start).as_secs() + u64::from(min_ready.first);
    Some(u32::try_from(seconds).unwrap_or(u32::MAX))
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
