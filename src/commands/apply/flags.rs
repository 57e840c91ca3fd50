//! The flags of `ds-apply` for the pace of a rollout and for the guards that are allowed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum, ValueHint, value_parser};
use jiff::{SignedDuration, Timestamp};

use crate::check_flags::CheckFlags;
use crate::flags::name::{GivenName, NAME};
use crate::flags::{OwnershipFlags, duration, heading};
use crate::notifications::NotifyFlags;
use crate::output::{Format, formats};
use cluster::{Clock, LockOptions};
use daemonset::model::{
    Deadline, DesiredDaemonSet, IntOrPercent, OnFailure, PolicySpec, Ramp, RolloutPolicy,
};
use planner::plan::GuardCode;

/// Heading of the flags that change a rollout's pace.
const PACE: &str = "Pace";
/// Heading of the flags that allow a plan in spite of a guard.
const ALLOWANCES: &str = "Allowances";

/// Heading of the flags of a rehearsal.
const REHEARSAL: &str = "Rehearsal";

/// The flags of every command that changes the cluster.
#[derive(Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub(super) struct CommonFlags {
    /// Apply without asking
    #[arg(short, long)]
    pub(super) yes: bool,

    /// Print the plan and end; nothing is asked and nothing is written
    ///
    /// Exits with 6 if a guard blocks the plan. Other than kubectl's flag, it takes no value: the
    /// plan is made from what the server has, and no request that writes is sent to it.
    #[arg(long, conflicts_with = "rehearse")]
    pub(super) dry_run: bool,

    /// Continue with the next DaemonSet when one is paused
    #[arg(long)]
    pub(super) keep_going: bool,

    /// Output format: one line or one JSON object per event; with html, text on standard error and
    /// at the end a page on standard output
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    #[arg(value_parser = formats([Format::Text, Format::Json, Format::Html]))]
    #[arg(help_heading = heading::OUTPUT)]
    pub(super) output: Format,

    /// Also write the page of -o html to this file, atomically
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(help_heading = heading::OUTPUT)]
    pub(super) report: Option<PathBuf>,

    /// Exit with 0 instead of these codes, 7, 8 or 9: for a schedule that comes again, and counts
    /// every other code as a failure
    #[arg(long, value_name = "CODES", value_delimiter = ',', help_heading = heading::OUTPUT)]
    #[arg(value_parser = value_parser!(u8).range(7..=9))]
    pub(super) success_exit_codes: Vec<u8>,

    /// When new pods fail, show the last log lines of their containers
    #[arg(long, help_heading = heading::OUTPUT)]
    pub(super) logs: bool,

    #[command(flatten)]
    pub(super) ownership: OwnershipFlags,

    #[command(flatten)]
    pub(super) pace: PaceFlags,

    #[command(flatten)]
    pub(super) allow: AllowFlags,

    #[command(flatten)]
    pub(super) checks: CheckFlags,

    #[command(flatten)]
    pub(super) notify: NotifyFlags,

    #[command(flatten)]
    pub(super) rehearsal: RehearsalFlags,
}

/// The flags of a command that works on live DaemonSets and reads no source.
#[derive(Args, Clone, Debug)]
pub(super) struct NamedFlags {
    /// DaemonSets: NAME or ds/NAME (in the namespace of -n), or NAMESPACE/NAME
    #[arg(value_name = NAME, required = true)]
    pub(super) names: Vec<GivenName>,

    #[command(flatten)]
    pub(super) common: CommonFlags,
}

/// The flag for policies of a command that reads no source.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct PolicyFlags {
    /// Read RolloutPolicy documents from this file; repeatable
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = PACE)]
    pub(super) policy: Vec<OsString>,
}

/// The flags of a rehearsal.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct RehearsalFlags {
    /// Rehearse on an embedded copy of the live or recorded cluster, which is only read
    #[arg(long, help_heading = REHEARSAL)]
    pub(super) rehearse: bool,

    /// Faults to inject: a document of kind Faults
    #[arg(long, value_name = "FILE", help_heading = REHEARSAL, requires = "rehearse")]
    pub(super) fault: Option<PathBuf>,

    /// Answer checks with those that `ds-plan checks --record` saved, from the beginning on
    #[arg(long, value_name = "FILE", help_heading = REHEARSAL, requires = "rehearse")]
    #[arg(value_hint = ValueHint::FilePath)]
    pub(super) check_answers: Option<PathBuf>,

    /// Write the resulting cluster to a file, as `ds-plan snapshot` does
    #[arg(long, value_name = "FILE", help_heading = REHEARSAL, requires = "rehearse")]
    pub(super) save: Option<PathBuf>,

    /// Random seed: the same number gives the same run
    #[arg(long, value_name = "N", help_heading = REHEARSAL, requires = "rehearse")]
    #[arg(default_value_t = 0)]
    pub(super) seed: u64,
}

/// The flags for the pace and the end of a rollout.
#[derive(Args, Clone, Debug)]
pub(super) struct PaceFlags {
    /// Maximum number (or percentage) of nodes without an available pod; makes the DaemonSet's own
    /// limit stricter, never looser
    #[arg(long, value_name = "N or %", help_heading = PACE, value_parser = int_or_percent)]
    pub(super) max_unavailable: Option<IntOrPercent>,

    /// Seconds that a new pod must be Ready without a restart to count as available; makes the
    /// DaemonSet's own minReadySeconds stricter, never looser. Default: 10 on the first node, and
    /// where a container has no readiness probe; else 0
    #[arg(long, value_name = "SECONDS", help_heading = PACE)]
    pub(super) min_ready_seconds: Option<u32>,

    /// Growth of the number of nodes updated at once, up to the budget; default: double
    #[arg(long, value_name = "RAMP", help_heading = PACE)]
    pub(super) ramp: Option<RampFlag>,

    /// Time that a node's new pod may take to become available; default: 10m
    #[arg(long, value_name = "TIME", help_heading = PACE, value_parser = deadline)]
    pub(super) progress_deadline: Option<Deadline>,

    /// Action when new pods fail; default: abort
    #[arg(long, value_name = "ACTION", help_heading = PACE)]
    pub(super) on_failure: Option<OnFailureFlag>,

    /// Stop the whole run safely after this time, and exit with 4 (1 if a surge could not be paused);
    /// default: never
    #[arg(long, value_name = "TIME", help_heading = PACE, value_parser = duration)]
    pub(super) timeout: Option<Duration>,

    /// Time for which the run itself waits for soaks, approvals and windows of its policy, instead of
    /// exiting with 8 or 9; default: not at all
    #[arg(long, value_name = "TIME", help_heading = PACE, value_parser = duration)]
    pub(super) wait: Option<Duration>,

    /// Time to wait for another run's lock
    #[arg(long, value_name = "TIME", help_heading = PACE, value_parser = duration)]
    #[arg(default_value = "30s")]
    pub(super) lock_timeout: Duration,

    /// Lease duration of the lock; for tests, which kill runs and cannot wait for each lock to
    /// expire
    #[arg(long, value_name = "TIME", hide = true, value_parser = duration)]
    lease: Option<Duration>,
}

/// `--ramp`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum RampFlag {
    /// The first node alone, then one more for each new pod that became available
    Double,
    /// As many as the budget allows, from the start
    None,
}

impl From<RampFlag> for Ramp {
    fn from(flag: RampFlag) -> Self {
        match flag {
            RampFlag::Double => Self::Double,
            RampFlag::None => Self::None,
        }
    }
}

/// `--on-failure`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum OnFailureFlag {
    /// Put back the last good template and pause; no pod is deleted
    Abort,
    /// Pause and leave everything as it is
    Pause,
    /// Put back the last good template, and replace the failed pods too
    Rollback,
}

impl From<OnFailureFlag> for OnFailure {
    fn from(flag: OnFailureFlag) -> Self {
        match flag {
            OnFailureFlag::Abort => Self::Abort,
            OnFailureFlag::Pause => Self::Pause,
            OnFailureFlag::Rollback => Self::Rollback,
        }
    }
}

/// The flags that allow a plan in spite of a guard.
#[derive(Args, Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
pub(super) struct AllowFlags {
    /// Let the controller evict more pods at once than the budget
    #[arg(long, help_heading = ALLOWANCES)]
    pub(super) allow_mass_eviction: bool,

    /// Start although unavailable pods that do not recover use up the budget
    #[arg(long, help_heading = ALLOWANCES)]
    pub(super) allow_deadlock: bool,

    /// Accept the template as admission changes it
    #[arg(long, help_heading = ALLOWANCES)]
    pub(super) allow_mutation: bool,

    /// Apply a template that failed before
    #[arg(long, help_heading = ALLOWANCES)]
    pub(super) retry: bool,

    /// The default for commands that delete no DaemonSet.
    #[arg(skip)]
    pub(super) deletion: DeletionFlags,
}

/// The same for the only command that deletes DaemonSets.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(super) struct DeletionFlags {
    /// Delete more than half of the DaemonSets that the source applied
    #[arg(long, help_heading = ALLOWANCES)]
    allow_mass_deletion: bool,

    /// Delete DaemonSets that were applied from another place with the same --source-id
    #[arg(long, help_heading = ALLOWANCES)]
    allow_other_source: bool,
}

impl AllowFlags {
    /// Whether a guard is allowed. Conflicts with managers named in `--force-conflicts` are not
    /// guards.
    pub(super) fn passes(self, guard: GuardCode) -> bool {
        match guard {
            GuardCode::MassEviction => self.allow_mass_eviction,
            // Pods that failed before use up the budget; with --retry they may recover.
            GuardCode::Deadlock => self.allow_deadlock || self.retry,
            GuardCode::FailedTemplate => self.retry,
            GuardCode::MassDeletion => self.deletion.allow_mass_deletion,
            GuardCode::OtherSource => self.deletion.allow_other_source,
            GuardCode::SelectorChange
            | GuardCode::ForceConflicts
            | GuardCode::GitOps
            | GuardCode::PolicyChange
            | GuardCode::EmptyStep
            | GuardCode::SurgeUnderPolicy
            | GuardCode::WindowTooShort
            | GuardCode::ManagedBy => false,
        }
    }
}

impl PaceFlags {
    /// The time left until `--timeout`; `None` without `--timeout`.
    pub(super) fn left(&self, elapsed: Duration) -> Option<Duration> {
        Some(self.timeout?.saturating_sub(elapsed))
    }

    /// The time at which the run stops, if `elapsed` has passed at `now`.
    pub(super) fn ends(&self, now: Timestamp, elapsed: Duration) -> Option<Timestamp> {
        now.checked_add(SignedDuration::try_from(self.left(elapsed)?).ok()?).ok()
    }

    /// The options of the lock. The wait for it is limited by `--timeout`.
    pub(super) fn lock(&self, clock: Clock, elapsed: Duration) -> LockOptions {
        let wait = self.left(elapsed).map_or(self.lock_timeout, |left| left.min(self.lock_timeout));
        let options = LockOptions { wait, ..LockOptions::new(clock) };
        match self.lease {
            Some(lease) => LockOptions { lease, request: lease, ..options },
            None => options,
        }
    }

    /// Overrides a DaemonSet's policy with the flags of the command line.
    pub(super) fn put_over(&self, desired: &mut DesiredDaemonSet) {
        let mut policy = desired.policy.as_deref().cloned().unwrap_or_else(of_command_line);
        let before = policy.spec.clone();
        self.put_into(&mut policy.spec);
        if policy.spec != before {
            desired.policy = Some(policy.into());
        }
    }

    /// As [`put_over`](Self::put_over), for the spec of a policy.
    pub(super) fn put_into(&self, spec: &mut PolicySpec) {
        let Self {
            max_unavailable, min_ready_seconds, ramp, progress_deadline, on_failure, ..
        } = self;
        spec.min_ready_seconds = min_ready_seconds.or(spec.min_ready_seconds);
        spec.ramp = ramp.map_or(spec.ramp, Into::into);
        spec.max_unavailable = max_unavailable.or(spec.max_unavailable);
        spec.progress_deadline = progress_deadline.unwrap_or(spec.progress_deadline);
        spec.on_failure = on_failure.map_or(spec.on_failure, Into::into);
    }
}

/// A policy with default values.
fn of_command_line() -> RolloutPolicy {
    RolloutPolicy::named("command line")
}

fn int_or_percent(text: &str) -> Result<IntOrPercent, String> {
    let error = || format!("`{text}` is neither a number nor a percentage such as 10%");
    let limit = match text.strip_suffix('%') {
        Some(percent) => percent.parse().map(IntOrPercent::Percent).map_err(|_| error())?,
        None => text.parse().map(IntOrPercent::Int).map_err(|_| error())?,
    };
    if limit.is_zero() {
        return Err("no node could ever begin; use 1 or more".to_owned());
    }
    Ok(limit)
}

fn deadline(text: &str) -> Result<Deadline, String> {
    Deadline::try_from(text.to_owned())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        pace: PaceFlags,
    }

    #[test]
    fn a_limit_of_no_node_is_refused() {
        assert_eq!(int_or_percent("1"), Ok(IntOrPercent::Int(1)));
        assert_eq!(int_or_percent("1%"), Ok(IntOrPercent::Percent(1)));
        for none in ["0", "0%"] {
            let refused = int_or_percent(none).unwrap_err();
            assert_eq!(refused, "no node could ever begin; use 1 or more", "{none}");
        }
    }

    #[test]
    fn the_timeout_is_that_of_the_whole_run() {
        let now: Timestamp = "2026-08-01T12:00:00Z".parse().unwrap();
        let seconds = |seconds| Duration::from_secs(seconds);
        for (line, elapsed, ends, lock_wait) in [
            ("apply", 900, None, 30),
            ("apply --timeout=10m", 0, Some("2026-08-01T12:10:00Z"), 30),
            ("apply --timeout=10m", 540, Some("2026-08-01T12:01:00Z"), 30),
            ("apply --timeout=10m", 590, Some("2026-08-01T12:00:10Z"), 10),
            ("apply --timeout=10m", 601, Some("2026-08-01T12:00:00Z"), 0),
        ] {
            let pace = Line::try_parse_from(line.split(' ')).unwrap().pace;
            let elapsed = seconds(elapsed);
            let want = ends.map(|at| at.parse().unwrap());
            assert_eq!(pace.ends(now, elapsed), want, "{line} {elapsed:?}");
            let clock = Clock::new(|| Duration::ZERO);
            assert_eq!(pace.lock(clock, elapsed).wait, seconds(lock_wait), "{line} {elapsed:?}");
        }
    }
}
