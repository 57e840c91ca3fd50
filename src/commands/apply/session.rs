//! The session of a run: its cluster, its locks, and interrupts.

mod rollouts;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;

pub(super) use rollouts::Rollout;

use super::asking::CheckSource;
use super::flags::PaceFlags;
use super::identity;
use super::progress::{ProgressReporter, SuggestedUndo};
use super::unmet_predecessor::NotDone;
use crate::atomic_write;
use crate::connection::{self, Connection};
use crate::error::{self, Error, Place, RehearsalError, Report};
use crate::exit::Exit;
use crate::flags::GlobalFlags;
use crate::output::Format;
use crate::printer::Printer;
use crate::shell::Shell;
use crate::warnings;
use cluster::{
    Access, Clock, Holder, Kind, Lock, LockWait, Observer, Resource, Scope, Verb, Verdict,
    WatchedDaemonSet, WritableCluster,
};
use daemonset::controller::Owner;
use daemonset::model::mask::Salt;
use daemonset::model::{
    DaemonSet, DaemonSetKey, DesiredDaemonSet, LabelSelector, ManagedBy, NeighbourQuery, Node,
    RehearsedApproval, Snapshot,
};
use executor::Interrupt;
use planner::rollout::{ClusterChecks, Outcome, RunHistory, Task};
use render::{self, HtmlOptions, RolloutReport};

/// The state of a run.
#[expect(clippy::struct_excessive_bools, reason = "each is a separate fact about the run")]
pub(super) struct Session {
    /// The environment of the process.
    pub shell: Shell,
    /// The cluster to write to.
    pub cluster: WritableCluster,
    /// The lock holder of this run.
    pub holder: Holder,
    /// Whether to show the logs of failed containers (`--logs`).
    pub logs: bool,
    /// The rollback that the end of a rollout suggests.
    pub suggested_undo: SuggestedUndo,
    /// The clock for elapsed time.
    clock: Clock,
    /// The format of the output.
    output: Format,
    /// The file for the page (`--report`).
    report: Option<PathBuf>,
    /// The events of the run, for `-o html` and the charts of a rehearsal.
    kept: Option<Kept>,
    /// The value of the clock at the start of the run.
    begun: Duration,
    interrupts: mpsc::Receiver<Interrupt>,
    /// Whether an interrupt came during a rollout, whatever its outcome.
    interrupted: bool,
    /// Whether there was anything to do.
    acted: bool,
    /// Whether the local clock was compared with the server's.
    is_clock_checked: bool,
    /// What people approve during a rehearsal, with the time.
    pub rehearsed_approvals: Vec<(RehearsedApproval, Timestamp)>,
    /// The salt of the recording that is rehearsed on, if its values are masked.
    pub masked: Option<Salt>,
    /// Whom the checks of policies are asked.
    pub checks: CheckSource,
    /// The outcome of the last rollout of each DaemonSet.
    outcomes: BTreeMap<DaemonSetKey, Outcome>,
    /// Whether each DaemonSet is done, as far as the run knows.
    states: BTreeMap<DaemonSetKey, Result<(), NotDone>>,
    /// The errors that were reported, each with its exit code and hints.
    errors: Vec<(Exit, String)>,
}

/// The data of the charts and of the HTML page about a run.
#[derive(Default)]
struct Kept {
    /// Nodes of the cluster, as they were last read.
    nodes: Vec<Node>,
    /// The rollouts, in order.
    runs: Vec<RunHistory>,
}

impl Session {
    /// Opens a session on the cluster that the flags name.
    ///
    /// # Errors
    /// The cluster cannot be connected to, or it is a recording.
    pub(super) async fn open(
        global: &GlobalFlags,
        shell: &Shell,
        interrupts: mpsc::Receiver<Interrupt>,
    ) -> Result<Self, Error> {
        match connection::open(global, shell).await? {
            Connection::Recorded(_) => Err(RehearsalError::WritingToRecording.into()),
            Connection::Live(live) => Ok(Self::on(
                live.writable(),
                shell,
                identity::holder(shell)?,
                Clock::of_machine(),
                interrupts,
            )),
        }
    }

    /// A session on this cluster, with this clock.
    pub(super) fn on(
        cluster: WritableCluster,
        shell: &Shell,
        holder: Holder,
        clock: Clock,
        interrupts: mpsc::Receiver<Interrupt>,
    ) -> Self {
        let begun = clock.now();
        let shell = shell.clone();
        Self {
            cluster,
            holder,
            logs: false,
            suggested_undo: SuggestedUndo::Previous,
            rehearsed_approvals: Vec::new(),
            masked: None,
            checks: CheckSource::Endpoints(Arc::default()),
            clock,
            output: Format::Text,
            report: None,
            kept: shell.rehearsal.then(Kept::default),
            shell,
            begun,
            interrupts,
            interrupted: false,
            acted: false,
            is_clock_checked: false,
            outcomes: BTreeMap::new(),
            states: BTreeMap::new(),
            errors: Vec::new(),
        }
    }

    /// Sets the output format, and the file for the page. For `-o html`, standard output is reserved
    /// for the page.
    pub(super) fn with_output(mut self, output: Format, report: Option<PathBuf>) -> Self {
        self.output = output;
        if report.is_some() {
            self.kept.get_or_insert_default();
        }
        self.report = report;
        if output == Format::Html {
            self.shell.printer = self.shell.printer.on_stderr();
            self.kept.get_or_insert_default();
        }
        self
    }

    /// Prints the page of `-o html`, writes that of `--report`, and returns the outcome of the run.
    ///
    /// # Errors
    /// The error of the run, even if the page fails too; or the error of writing the page.
    pub(super) fn reported(
        &self,
        done: Result<Exit, Error>,
        printer: Printer,
    ) -> Result<Exit, Error> {
        let Some(Kept { nodes, runs }) = &self.kept else { return done };
        if self.output != Format::Html && self.report.is_none() {
            return done;
        }
        let rehearsed = self.shell.rehearsal;
        let report = RolloutReport { rehearsed, runs, tool_version: env!("CARGO_PKG_VERSION") };
        let options = HtmlOptions { nodes, verbose: false };
        let page = render::rollout_html(&report, &options).map_err(Error::from);
        let shown = page.and_then(|page| self.show_page(&page, printer));
        done.and_then(|exit| shown.map(|()| exit))
    }

    fn show_page(&self, page: &str, printer: Printer) -> Result<(), Error> {
        if let Some(file) = &self.report {
            let written = atomic_write::write(file, page);
            written.map_err(|source| Error::Save { file: file.clone(), source })?;
        }
        match self.output {
            Format::Html => printer.out(page).map_err(Error::Output),
            _text => Ok(()),
        }
    }

    /// The rollouts of the run, in order, if they are recorded.
    pub(super) fn runs(&self) -> &[RunHistory] {
        self.kept.as_ref().map_or(&[], |kept| &kept.runs)
    }

    /// Prints an error, and remembers it; returns its exit code.
    pub(super) fn report(&mut self, error: &Error) -> Exit {
        self.errors.push((error.exit(), Report(error).to_string()));
        error::report(error, self.shell.printer)
    }

    /// The errors that were reported, in order.
    pub(super) fn into_errors(self) -> Vec<(Exit, String)> {
        self.errors
    }

    /// Remembers that the run does something.
    pub(super) fn acts(&mut self) {
        self.acted = true;
    }

    /// Whether there was anything to do.
    pub(super) fn has_acted(&self) -> bool {
        self.acted
    }

    /// Sets how the apply of a DaemonSet ended.
    pub(super) fn set_exit(&mut self, key: &DaemonSetKey, exit: Exit) {
        let state = NotDone::after(exit, self.outcomes.get(key));
        self.set_state(key, state);
    }

    /// Sets whether a DaemonSet is done.
    pub(super) fn set_state(&mut self, key: &DaemonSetKey, state: Result<(), NotDone>) {
        self.states.insert(key.clone(), state);
    }

    /// Whether a DaemonSet is done; `None` if the run does not know it.
    pub(super) fn state(&self, key: &DaemonSetKey) -> Option<Result<(), NotDone>> {
        self.states.get(key).copied()
    }

    /// Whether the run was interrupted, so that no further DaemonSet is applied.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// The time by the server's clock, or that of the start before its first answer.
    pub(super) fn server_time(&self) -> Timestamp {
        self.cluster.live().server_time().unwrap_or(self.shell.now)
    }

    /// The time at which the whole run stops, if the clock of the server is at `now`.
    pub(super) fn ends(&self, pace: &PaceFlags, now: Timestamp) -> Option<Timestamp> {
        pace.ends(now, self.elapsed())
    }

    /// The time until which the run itself waits for steps, if the clock of the server is at `now`.
    pub(super) fn waits_until(&self, pace: &PaceFlags, now: Timestamp) -> Option<Timestamp> {
        let left = pace.wait?.saturating_sub(self.elapsed());
        now.checked_add(left).ok()
    }

    fn elapsed(&self) -> Duration {
        self.clock.now().saturating_sub(self.begun)
    }

    /// Does work that changes no pod; an interrupt ends it.
    ///
    /// # Errors
    /// The error of the work, or that it was interrupted.
    pub(super) async fn unless_interrupted<T>(
        &mut self,
        work: impl AsyncFnOnce(&Shell, &WritableCluster) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let Self { shell, cluster, interrupts, .. } = self;
        let done = tokio::select! {
            biased;
            Some(Interrupt) = interrupts.recv() => Err(Error::Interrupted),
            done = work(shell, cluster) => done,
        };
        self.check_local_clock();
        done
    }

    /// Warns once, after the first answer of the server, if the local clock is wrong.
    fn check_local_clock(&mut self) {
        let Some(server) = self.cluster.live().server_time() else { return };
        if !std::mem::replace(&mut self.is_clock_checked, true) && !self.shell.rehearsal {
            let local = self.shell.now.checked_add(self.elapsed()).unwrap_or(self.shell.now);
            warnings::print_local_clock(local, Some(server), self.shell.printer);
        }
    }

    /// Reads the namespace of a DaemonSet, and whether its PriorityClass exists.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) async fn snapshot(&mut self, key: &DaemonSetKey) -> Result<Snapshot, Error> {
        let mut snapshot = self.snapshot_for(key, &[]).await?;
        let live = snapshot.daemon_set(key);
        let class = live.and_then(|live| live.spec.template.needed_priority_class());
        let names = class.into_iter().map(str::to_owned).collect();
        snapshot.priority_classes = self
            .unless_interrupted(async |_, cluster| {
                Ok(cluster.live().priority_classes(names).await?)
            })
            .await?;
        Ok(snapshot)
    }

    /// As [`snapshot`](Self::snapshot), for a plan of these DaemonSets.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) async fn snapshot_for(
        &mut self,
        key: &DaemonSetKey,
        desired: &[DesiredDaemonSet],
    ) -> Result<Snapshot, Error> {
        let scope = Scope::Namespaces([key.namespace.clone()].into());
        let snapshot = self
            .unless_interrupted(async |shell, cluster| {
                let live = cluster.live();
                let mut snapshot = live.snapshot_for(desired, &scope, shell.now).await?;
                live.read_approvals(desired, &mut snapshot).await?;
                Ok(snapshot)
            })
            .await?;
        if let Some(kept) = &mut self.kept {
            kept.nodes.clone_from(&snapshot.nodes);
        }
        Ok(snapshot)
    }

    /// Takes the lock of a DaemonSet, and reports the holder that it waits for.
    ///
    /// # Errors
    /// Another run holds the lock until `--lock-timeout`, or the run timed out.
    pub(super) async fn lock(
        &mut self,
        key: &DaemonSetKey,
        pace: &PaceFlags,
        output: Format,
    ) -> Result<Arc<Lock>, Error> {
        let elapsed = self.elapsed();
        if pace.left(elapsed) == Some(Duration::ZERO) {
            return Err(Error::TimeIsOver(key.clone()));
        }
        let (holder, options) = (self.holder.clone(), pace.lock(self.clock.clone(), elapsed));
        self.unless_interrupted(async |shell, cluster| {
            let waits = |wait: &LockWait| {
                ProgressReporter::plain(key, output, shell).waits(wait, shell.now);
            };
            Ok(Arc::new(cluster.lock_reports(key, &holder, &options, &waits).await?))
        })
        .await
    }

    /// Reconciles the pods of a DaemonSet that is managed by `ds-apply` and does not change.
    ///
    /// # Errors
    /// The cluster cannot be watched, another run took the lock, it was interrupted, or was not done in
    /// time.
    pub(super) async fn reconcile(
        &mut self,
        owner: &Owner<'_>,
        lock: &Arc<Lock>,
    ) -> Result<(), Error> {
        let observer = self.observe(owner, Beside::default()).await?;
        let reconcile = executor::reconcile(owner.key, lock, observer);
        let unreconciled = self.unless_interrupted(async |_, _| Ok(reconcile.await?)).await?;
        let failed = |source| Error::NotReconciled { daemon_set: owner.key.clone(), source };
        unreconciled.map_or(Ok(()), |source| Err(failed(source)))
    }

    /// Starts to watch a DaemonSet and its related objects, and the pods beside it.
    pub(super) async fn observe(
        &mut self,
        owner: &Owner<'_>,
        beside: Beside,
    ) -> Result<Observer, Error> {
        let Owner { key, managed_by, .. } = *owner;
        let selector = match managed_by {
            ManagedBy::DaemonSetController => owner.spec.selector.clone(),
            // As the controller, ds-apply has to see pods that the selector no longer matches.
            ManagedBy::DsApply => LabelSelector::default(),
        };
        self.observe_as(key, managed_by, selector, beside).await
    }

    /// As [`observe`](Self::observe), for a DaemonSet that does not exist, or is not known.
    pub(super) async fn observe_unknown(
        &mut self,
        key: &DaemonSetKey,
        managed_by: ManagedBy,
    ) -> Result<Observer, Error> {
        self.observe_as(key, managed_by, LabelSelector::default(), Beside::default()).await
    }

    async fn observe_as(
        &mut self,
        key: &DaemonSetKey,
        managed_by: ManagedBy,
        selector: LabelSelector,
        beside: Beside,
    ) -> Result<Observer, Error> {
        let clock = self.clock.clone();
        self.unless_interrupted(async |shell, cluster| {
            let events = match managed_by {
                ManagedBy::DaemonSetController => may_watch_events(cluster, key).await,
                // ds-apply needs no events about itself.
                ManagedBy::DsApply => false,
            };
            let key = key.clone();
            let Beside { pullers, neighbours } = beside;
            let target =
                WatchedDaemonSet { key, managed_by, selector, events, pullers, neighbours };
            Ok(cluster.live().observe(&target, clock, shell.now).await?)
        })
        .await
    }
}

/// What is watched beside a DaemonSet and its own objects.
#[derive(Clone, Debug, Default)]
pub(super) struct Beside {
    /// The pods that pull images for it.
    pub pullers: bool,
    /// The other pods that its checks look at.
    pub neighbours: Vec<NeighbourQuery>,
}

impl Beside {
    /// What is watched for this task.
    fn of(task: &Task) -> Self {
        let Task { policy, has_pullers, cluster_checks, .. } = task;
        Self {
            pullers: *has_pullers || policy.pre_pull.is_some(),
            neighbours: match cluster_checks {
                ClusterChecks::Observed => NeighbourQuery::all(policy),
                ClusterChecks::Asked => Vec::new(),
            },
        }
    }
}

/// Releases a lock, so that other runs need not wait until its lease expires.
pub(super) async fn unlock(lock: Arc<Lock>) {
    if let Some(lock) = Arc::into_inner(lock)
        && let Err(error) = lock.release().await
    {
        tracing::warn!(%error, "cannot release the lock");
    }
}

/// Whether the events of the controller may be watched. They are useful but not required. They are
/// only watched, not listed: a run takes no notice of those from before it.
async fn may_watch_events(cluster: &WritableCluster, key: &DaemonSetKey) -> bool {
    let access = Access {
        verb: Verb::Watch,
        resource: Resource::Of(Kind::Event),
        namespace: Some(key.namespace.clone()),
        name: None,
    };
    cluster.review(vec![access]).await == [Verdict::Allowed]
}

/// The live DaemonSet; an error if it does not exist.
pub(super) fn find<'s>(snapshot: &'s Snapshot, key: &DaemonSetKey) -> Result<&'s DaemonSet, Error> {
    snapshot.daemon_set(key).ok_or_else(|| Error::NotFound {
        missing: vec![key.clone()],
        // No other namespace was read.
        place: Place::Namespace,
        known: snapshot.daemon_sets.iter().map(|one| one.key.clone()).collect(),
    })
}
