//! How long carrying the plan out will take, roughly: waves one after the other, each in rounds of
//! its budget, each round as long as a pod takes to stop, start and become available.
//!
//! How long pods take to start is what the cluster's own pods tell. Not here: what goes wrong, and
//! what a rehearsal finds out.

use std::time::Duration;

use super::document::{Action, DaemonSetPlan, Forecast};
use crate::controller::start_times::{DEFAULT_START, StartTimes, images};
use crate::model::DesiredDaemonSet;

/// How long an old pod takes to go, when it does as it is asked.
const STOP: Duration = Duration::from_secs(1);

/// So many pods the controller manager creates in a second (upstream: `--kube-api-qps`).
const CREATES_A_SECOND: u32 = 20;

/// The forecast for the whole plan; `None` when no pod is to come.
pub(super) fn forecast(
    planned: &[DaemonSetPlan],
    desired: &[&DesiredDaemonSet],
    starts: &StartTimes,
) -> Option<Forecast> {
    let (mut total, mut seen, mut guessed) = (Duration::ZERO, 0, false);
    for one in planned {
        let key = one.key();
        let Some(desired) = desired.iter().find(|desired| desired.key == key) else { continue };
        let start = starts.of(images(&desired.spec.template.raw()["spec"]));
        let min_ready = Duration::from_secs(desired.spec.min_ready_seconds.into());
        let (start, told_by) = start.unwrap_or((DEFAULT_START, 0));
        let takes = takes(one, start + min_ready);
        if takes > Duration::ZERO {
            total += takes;
            seen += told_by;
            guessed |= told_by == 0;
        }
    }
    (total > Duration::ZERO).then(|| Forecast {
        seconds: total.as_secs(),
        starts_seen: u32::try_from(seen).unwrap_or(u32::MAX),
        default_start_seconds: guessed.then_some(DEFAULT_START.as_secs()),
    })
}

/// How long one DaemonSet takes whose pods need so long to be available.
fn takes(plan: &DaemonSetPlan, available: Duration) -> Duration {
    let waves = plan.waves.iter().map(|wave| {
        let nodes = u32::try_from(wave.nodes.len()).unwrap_or(u32::MAX);
        let budget = wave.max_unavailable.max(wave.max_surge).max(1);
        let stop = if wave.max_surge > 0 { Duration::ZERO } else { STOP };
        rounds(nodes, budget, stop + available)
    });
    let at_once = plan.nodes.iter().filter(|node| node.wave.is_none());
    let created = at_once.filter(|node| matches!(node.action, Action::Create | Action::Replace));
    let created = u32::try_from(created.count()).unwrap_or(u32::MAX);
    // Pods that are created at once come beside the first waves.
    waves.sum::<Duration>().max(rounds(created, created, available))
}

/// So many nodes, so many at a time; no faster than the controller manager creates pods.
fn rounds(nodes: u32, budget: u32, each: Duration) -> Duration {
    if nodes == 0 {
        return Duration::ZERO;
    }
    let creating = Duration::from_secs(u64::from(nodes / CREATES_A_SECOND));
    (each * nodes.div_ceil(budget)).max(creating + each)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_take_their_time_and_pods_are_created_one_by_one() {
        let seconds = Duration::from_secs;
        for (nodes, budget, want) in
            [(0, 1, 0), (1, 1, 10), (10, 1, 100), (10, 3, 40), (10, 10, 10), (5_000, 500, 260)]
        {
            assert_eq!(rounds(nodes, budget, seconds(10)), seconds(want), "{nodes} by {budget}");
        }
    }
}
