//! Runs the rollouts of a session, one or several with a shared budget: watches what each of them
//! needs, reports its progress and notifies of it, and keeps its outcome.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;

use super::{Beside, Session};
use crate::commands::apply::evidence;
use crate::commands::apply::progress::ProgressReporter;
use crate::commands::apply::sharing::Sharing;
use crate::error::Error;
use crate::output::Format;
use crate::shell::Shell;
use cluster::{Lock, Observer, WritableCluster};
use daemonset::controller::Owner;
use daemonset::model::DaemonSetKey;
use executor::Run;
use planner::rollout::{Ending, RunHistory, Secrets, Task};

/// A rollout to run.
pub(in crate::commands::apply) struct Rollout<'a> {
    /// The DaemonSet.
    pub owner: &'a Owner<'a>,
    /// The lock on it.
    pub lock: Arc<Lock>,
    /// The task.
    pub task: Task,
}

impl Session {
    /// Runs a task, and reports its progress.
    ///
    /// # Errors
    /// The cluster cannot be watched.
    pub(in crate::commands::apply) async fn run_rollout(
        &mut self,
        owner: &Owner<'_>,
        lock: &Arc<Lock>,
        task: Task,
        output: Format,
    ) -> Result<Ending, Error> {
        let rollout = Rollout { owner, lock: Arc::clone(lock), task };
        let mut endings = self.run_rollouts(vec![rollout], None, output).await?;
        // One rollout has one ending.
        endings.pop().ok_or(Error::Interrupted)
    }

    /// Runs rollouts, and reports their progress; several share a budget. The endings have the same
    /// order.
    ///
    /// # Errors
    /// The cluster cannot be watched.
    pub(in crate::commands::apply) async fn run_rollouts(
        &mut self,
        rollouts: Vec<Rollout<'_>>,
        sharing: Option<&Sharing>,
        output: Format,
    ) -> Result<Vec<Ending>, Error> {
        self.acts();
        let observers = self.observers(&rollouts).await?;
        let shared = match sharing {
            Some(sharing) => Some(sharing.begin(&observers, self).await?),
            None => None,
        };
        // Several bars would overwrite each other.
        let draws = self.shell.draws && rollouts.len() == 1;
        let Self { shell, cluster, interrupts, suggested_undo, kept, logs, .. } = self;
        let checks = &self.checks;
        let shell = &Shell { draws, ..shell.clone() };
        let (cluster, keeps, logs) = (&*cluster, kept.is_some(), *logs);
        let clocks = &Clocks { cluster, shown: AtomicBool::new(false) };
        let begin = |at: usize, mut interrupts| {
            let Rollout { owner: Owner { key, managed_by, .. }, lock, task } = &rollouts[at];
            let (key, observer) = ((*key).clone(), observers[*key].clone());
            let reporter = ProgressReporter::new(rollouts[at].owner.key, output, shell);
            let secrets = secrets(&rollouts[at], &observer);
            let mut reporter = reporter.suggesting(*suggested_undo).without(secrets);
            reporter.started(task, cluster.live().server_time().unwrap_or(shell.now));
            let run = Run {
                ask: checks.asker(&task.policy),
                seat: shared.as_ref().and_then(|shared| shared.seat(&key)),
                lock: Arc::clone(lock),
                managed_by: *managed_by,
                cluster: cluster.live().clone(),
                observer: observer.clone(),
                task: task.clone(),
                key: key.clone(),
            };
            let domain_key = task.policy.domains.as_ref().map(|domains| domains.key.clone());
            async move {
                let mut events = Vec::new();
                let ending = run.to_its_end(&mut interrupts, |report, now| {
                    clocks.report(&reporter, now);
                    reporter.report(report, now);
                    if keeps {
                        events.push((now, report.clone()));
                    }
                });
                let (ending, now) = ending.await;
                clocks.report(&reporter, now);
                let evidence = evidence::gather(&ending, &key, &observer, cluster, logs).await;
                reporter.end(&ending, &evidence, now);
                RunHistory { key, domain_key, events, ending }
            }
        };
        let (ended, is_interrupted) =
            executor::together(rollouts.len(), shared.as_deref(), interrupts, begin).await;
        self.interrupted |= is_interrupted;
        Ok(ended.into_iter().map(|run| self.keep(run)).collect())
    }

    /// An observer of each DaemonSet, and of what its rollout looks at beside it.
    async fn observers(
        &mut self,
        rollouts: &[Rollout<'_>],
    ) -> Result<BTreeMap<DaemonSetKey, Observer>, Error> {
        let mut observers = BTreeMap::new();
        for rollout in rollouts {
            let observer = self.observe(rollout.owner, Beside::of(&rollout.task)).await?;
            observers.insert(rollout.owner.key.clone(), observer);
        }
        Ok(observers)
    }

    /// Keeps the outcome of a run, and all of it for a report; returns its ending.
    fn keep(&mut self, run: RunHistory) -> Ending {
        self.outcomes.insert(run.key.clone(), run.ending.outcome.clone());
        let ending = run.ending.clone();
        if let Some(kept) = &mut self.kept {
            kept.runs.push(run);
        }
        ending
    }
}

/// What the notifications about a rollout must not contain.
fn secrets(rollout: &Rollout<'_>, observer: &Observer) -> Secrets {
    let Rollout { owner: Owner { key, spec, .. }, lock: _, task } = rollout;
    observer.look(|view| Secrets::of(&spec.template, &task.goal, &view.snapshot, key))
}

/// Reports once that the clocks of the API servers differ.
struct Clocks<'a> {
    cluster: &'a WritableCluster,
    shown: AtomicBool,
}

impl Clocks<'_> {
    fn report(&self, reporter: &ProgressReporter<'_>, now: Timestamp) {
        if !self.shown.load(Ordering::Relaxed)
            && let Some(apart) = self.cluster.live().clocks_differ()
        {
            self.shown.store(true, Ordering::Relaxed);
            reporter.clocks_differ(apart, now);
        }
    }
}
