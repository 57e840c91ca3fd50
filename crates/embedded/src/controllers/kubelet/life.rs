//! The life of one pod on its node: images are pulled, containers start, become ready, crash and
//! restart (upstream: kubelet's `SyncPod`, `EnsureImageExists`, `doBackOff`).
//!
//! Pure: the next stage, and its time. All containers except the one with a fault behave well. Not
//! here: the status in the API (`status`), and termination.

use std::time::Duration;

use jiff::Timestamp;

/// The first delay before an image is pulled again, or a container is restarted (upstream:
/// `imageBackOffPeriod`, `backOffPeriod`).
const FIRST_WAIT: Duration = Duration::from_secs(10);

/// The maximum delay (upstream: `MaxImageBackOff`, `MaxContainerBackOff`).
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// Duration of `ErrImagePull` before `ImagePullBackOff` is shown.
const SHOWN: Duration = Duration::from_secs(1);

/// The start-up of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StartUp {
    /// Time until its containers run, or an image turns out to be missing.
    pub(super) creating: Duration,
    /// Time from there until they are ready.
    pub(super) ready: Duration,
    /// A fault that keeps the pod from becoming ready.
    pub(super) fault: Option<ContainerFault>,
    /// Whether its containers have a command that does not exist (a puller): they end when they
    /// would start, and are not restarted.
    pub(super) starts_nothing: bool,
}

/// A fault of one container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ContainerFault {
    /// Index of the container in the template.
    pub(super) container: usize,
    /// Cause of the fault.
    pub(super) cause: Cause,
}

/// The cause of a container's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The image cannot be pulled.
    NeverPulls,
    /// The container exits after this time.
    Ends(Duration),
}

/// The stage of a pod's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Images are pulled and containers are created.
    Creating,
    /// An image could not be pulled.
    PullFailed,
    /// The kubelet waits before it pulls again.
    PullBackOff,
    /// The containers run.
    Running,
    /// The containers are ready.
    Ready,
    /// A container has exited and is restarted after the delay.
    CrashBackOff,
}

/// The life of a pod so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Life {
    /// The current stage.
    pub(super) stage: Stage,
    /// Start of the current stage.
    pub(super) since: Timestamp,
    /// Time at which the containers first ran.
    pub(super) started: Option<Timestamp>,
    /// Number of restarts of the container with the fault.
    pub(super) restarts: u32,
    /// Last start of the container with the fault.
    pub(super) began: Option<Timestamp>,
    /// Last exit of that container.
    pub(super) ended: Option<Timestamp>,
    /// The next delay.
    wait: Duration,
}

impl Life {
    /// A pod that starts now.
    pub(super) fn begin(now: Timestamp) -> Self {
        Self::at(Stage::Creating, now)
    }

    /// A pod that was loaded in that stage.
    pub(super) fn at(stage: Stage, now: Timestamp) -> Self {
        let started = matches!(stage, Stage::Running | Stage::Ready).then_some(now);
        let (began, wait) = (started, FIRST_WAIT);
        Self { stage, since: now, started, restarts: 0, began, ended: None, wait }
    }

    /// Time of the next stage; `None` if the pod stays in this one.
    pub(super) fn next(&self, plan: &StartUp) -> Option<Timestamp> {
        let cause = plan.fault.map(|fault| fault.cause);
        let after = match self.stage {
            Stage::Creating => plan.creating,
            Stage::PullFailed => SHOWN,
            // The delay was doubled when it began.
            Stage::PullBackOff | Stage::CrashBackOff => before_doubling(self.wait),
            Stage::Running => match cause {
                Some(Cause::Ends(after)) => after.min(plan.ready),
                Some(Cause::NeverPulls) | None => plan.ready,
            },
            Stage::Ready => match cause {
                Some(Cause::Ends(after)) => after.saturating_sub(plan.ready),
                Some(Cause::NeverPulls) | None => return None,
            },
        };
        Some(self.since + after)
    }

    /// Advances to the next stage, which is due by now.
    pub(super) fn advance(&mut self, plan: &StartUp, now: Timestamp) {
        let cause = plan.fault.map(|fault| fault.cause);
        match (self.stage, cause) {
            (Stage::Creating | Stage::PullBackOff, Some(Cause::NeverPulls)) => {
                self.enter(Stage::PullFailed, now);
            }
            (Stage::PullFailed, _) => {
                self.enter(Stage::PullBackOff, now);
                self.double();
            }
            (Stage::PullBackOff, _) => self.enter(Stage::Creating, now),
            (Stage::Creating, _) => {
                self.started = Some(now);
                self.run(plan, now);
            }
            (Stage::Running, Some(Cause::Ends(after))) if after <= plan.ready => {
                self.end(plan, now);
            }
            (Stage::Running, _) => self.enter(Stage::Ready, now),
            (Stage::Ready, Some(Cause::Ends(_))) => self.end(plan, now),
            (Stage::Ready, _) => {}
            (Stage::CrashBackOff, _) => self.restart(plan, now),
        }
    }

    /// A container exits. The first time it is restarted at once, later after a delay.
    fn end(&mut self, plan: &StartUp, now: Timestamp) {
        let first = self.ended.replace(now).is_none();
        if first {
            self.restart(plan, now);
        } else {
            self.enter(Stage::CrashBackOff, now);
            self.double();
        }
    }

    fn restart(&mut self, plan: &StartUp, now: Timestamp) {
        self.restarts += 1;
        self.run(plan, now);
    }

    /// Containers start. Without a probe they are ready at once, unless one ends at once.
    fn run(&mut self, plan: &StartUp, now: Timestamp) {
        let ends = plan.fault.is_some_and(|it| it.cause == Cause::Ends(Duration::ZERO));
        let is_ready = plan.ready.is_zero() && !ends;
        self.began = Some(now);
        self.enter(if is_ready { Stage::Ready } else { Stage::Running }, now);
    }

    fn enter(&mut self, stage: Stage, now: Timestamp) {
        self.stage = stage;
        self.since = now;
    }

    /// Whether all images were tried.
    pub(super) fn has_pulled(&self) -> bool {
        match self.stage {
            Stage::Creating => false,
            Stage::PullFailed
            | Stage::PullBackOff
            | Stage::Running
            | Stage::Ready
            | Stage::CrashBackOff => true,
        }
    }

    fn double(&mut self) {
        self.wait = (self.wait * 2).min(LONGEST_WAIT * 2);
    }
}

fn before_doubling(wait: Duration) -> Duration {
    (wait / 2).min(LONGEST_WAIT)
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemonset::controller::test_cluster::at;

    /// The stages until `until`, with the seconds in which they begin.
    fn lived(plan: &StartUp, until: i64) -> Vec<(i64, Stage, u32)> {
        let mut life = Life::begin(at(0));
        let mut seen = Vec::new();
        while let Some(next) = life.next(plan).filter(|next| *next <= at(until)) {
            life.advance(plan, next);
            seen.push((next.as_second(), life.stage, life.restarts));
        }
        seen
    }

    fn plan(fault: Option<Cause>) -> StartUp {
        StartUp {
            creating: Duration::from_secs(4),
            ready: Duration::from_secs(3),
            fault: fault.map(|cause| ContainerFault { container: 0, cause }),
            starts_nothing: false,
        }
    }

    #[test]
    fn a_pod_comes_up_and_stays() {
        assert_eq!(lived(&plan(None), 10_000), [(4, Stage::Running, 0), (7, Stage::Ready, 0)]);
    }

    #[test]
    fn pulls_are_tried_again_after_10_s_doubling_to_5_min() {
        let seen = lived(&plan(Some(Cause::NeverPulls)), 2000);
        let failed: Vec<i64> =
            seen.iter().filter(|it| it.1 == Stage::PullFailed).map(|it| it.0).collect();
        let gaps: Vec<i64> = failed.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(gaps, [11, 21, 41, 81, 161, 301, 301, 301, 301, 301]);
        assert_eq!(seen[1], (5, Stage::PullBackOff, 0));
    }

    #[test]
    fn a_crash_is_followed_by_a_start_at_once_and_later_by_waits() {
        let ends = plan(Some(Cause::Ends(Duration::from_secs(2))));
        let seen = lived(&ends, 100);
        let want = [
            (4, Stage::Running, 0),
            (6, Stage::Running, 1),
            (8, Stage::CrashBackOff, 1),
            (18, Stage::Running, 2),
            (20, Stage::CrashBackOff, 2),
            (40, Stage::Running, 3),
            (42, Stage::CrashBackOff, 3),
            (82, Stage::Running, 4),
            (84, Stage::CrashBackOff, 4),
        ];
        assert_eq!(seen, want);
        let last = *lived(&ends, 10_000).last().unwrap();
        let mut life = Life::at(Stage::CrashBackOff, at(last.0));
        for _ in 0..10 {
            life.double();
        }
        assert_eq!(life.next(&ends), Some(at(last.0 + 300)));
    }

    #[test]
    fn without_a_probe_it_is_ready_when_it_starts() {
        let unprobed = |cause| StartUp { ready: Duration::ZERO, ..plan(cause) };
        assert_eq!(lived(&unprobed(None), 10_000), [(4, Stage::Ready, 0)]);
        let seen = lived(&unprobed(Some(Cause::Ends(Duration::from_secs(3)))), 30);
        let want = [
            (4, Stage::Ready, 0),
            (7, Stage::Ready, 1),
            (10, Stage::CrashBackOff, 1),
            (20, Stage::Ready, 2),
            (23, Stage::CrashBackOff, 2),
        ];
        assert_eq!(seen, want);
        let seen = lived(&unprobed(Some(Cause::Ends(Duration::ZERO))), 5);
        assert_eq!(seen[..2], [(4, Stage::Running, 0), (4, Stage::Running, 1)]);
    }

    #[test]
    fn one_that_runs_long_enough_is_ready_in_between() {
        let seen = lived(&plan(Some(Cause::Ends(Duration::from_secs(5)))), 20);
        let want = [
            (4, Stage::Running, 0),
            (7, Stage::Ready, 0),
            (9, Stage::Running, 1),
            (12, Stage::Ready, 1),
            (14, Stage::CrashBackOff, 1),
        ];
        assert_eq!(seen, want);
    }
}
