//! The process around a rollout: its cluster, the lock, and how it is interrupted.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc;

use super::evidence;
use super::flags::PaceFlags;
use super::identity;
use super::told::{Format, Teller};
use crate::apply::{self, Interrupt, Run};
use crate::cli::connection::{self, Connection};
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::flags::GlobalFlags;
use crate::cli::printer::Printer;
use crate::cli::shell::Shell;
use crate::cluster::{
    Access, Clock, Holder, Kind, Lock, LockWait, Observer, Resource, Scope, Target, Verb, Verdict,
    WritableCluster,
};
use crate::controller::Owner;
use crate::model::{DaemonSetKey, DesiredDaemonSet, LabelSelector, ManagedBy, Node, Snapshot};
use crate::render::{self, HtmlOptions, RolloutReport};
use crate::rollout::{Ending, Record, Task};

/// The process around a run.
pub(super) struct Session {
    /// What is taken from the process.
    pub shell: Shell,
    /// Where things are done.
    pub cluster: WritableCluster,
    /// Who does them.
    pub holder: Holder,
    /// Whether to show what containers that fail have printed.
    pub logs: bool,
    /// What time is measured with.
    clock: Clock,
    /// What happened, if there is to be a page about it.
    recording: Option<Recording>,
    /// What it said when the run began.
    begun: Duration,
    interrupts: mpsc::Receiver<Interrupt>,
    /// Whether one came while a rollout was under way, however that ended.
    interrupted: bool,
}

/// What a page about a run is made from.
#[derive(Default)]
struct Recording {
    /// Nodes of the cluster, as they were last seen.
    nodes: Vec<Node>,
    /// What was carried out, in order.
    records: Vec<Record>,
}

impl Session {
    /// Makes ready to speak to the cluster.
    ///
    /// # Errors
    /// There is no way to it, or it is a recording.
    pub(super) async fn open(
        global: &GlobalFlags,
        shell: &Shell,
        interrupts: mpsc::Receiver<Interrupt>,
    ) -> Result<Self, Error> {
        match connection::open(global, shell).await? {
            Connection::Recorded(_) => Err(Error::WritingToRecording),
            Connection::Live(live) => Ok(Self::on(
                live.writable(),
                shell,
                identity::holder(shell)?,
                Clock::of_machine(),
                interrupts,
            )),
        }
    }

    /// A run on that cluster, whose time is measured with that clock.
    pub(super) fn on(
        cluster: WritableCluster,
        shell: &Shell,
        holder: Holder,
        clock: Clock,
        interrupts: mpsc::Receiver<Interrupt>,
    ) -> Self {
        let begun = clock.now();
        let shell = shell.clone();
        let (recording, interrupted, logs) = (None, false, false);
        Self { shell, cluster, holder, logs, clock, recording, begun, interrupts, interrupted }
    }

    /// Keeps standard output for the page about the run, if there is to be one.
    pub(super) fn telling(mut self, output: Format) -> Self {
        match output {
            Format::Html => {
                self.shell.printer = self.shell.printer.aside();
                self.recording = Some(Recording::default());
            }
            Format::Text | Format::Json => {}
        }
        self
    }

    /// How the run came out, once the page about it is printed, if there is to be one.
    ///
    /// # Errors
    /// The run's own, whatever becomes of the page; or that the page cannot be written.
    pub(super) fn reported(
        &self,
        done: Result<Exit, Error>,
        rehearsed: bool,
        printer: Printer,
    ) -> Result<Exit, Error> {
        let Some(Recording { nodes, records }) = &self.recording else { return done };
        let report = RolloutReport { rehearsed, records, tool_version: env!("CARGO_PKG_VERSION") };
        let options = HtmlOptions { nodes, verbose: false };
        let page = render::rollout_html(&report, &options).map_err(Error::from);
        let told = page.and_then(|page| printer.out(page).map_err(Error::Output));
        done.and_then(|exit| told.map(|()| exit))
    }

    /// Whether it was interrupted: no further DaemonSet has its turn.
    pub(super) fn is_interrupted(&self) -> bool {
        self.interrupted
    }

    /// When the whole run stops, by a server's clock that says `now`.
    pub(super) fn ends(&self, pace: &PaceFlags, now: Timestamp) -> Option<Timestamp> {
        pace.ends(now, self.elapsed())
    }

    fn elapsed(&self) -> Duration {
        self.clock.now().saturating_sub(self.begun)
    }

    /// Does something that changes no pod; an interrupt ends it.
    ///
    /// # Errors
    /// Its own, or that it was interrupted.
    pub(super) async fn unless_interrupted<T>(
        &mut self,
        work: impl AsyncFnOnce(&Shell, &WritableCluster) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let Self { shell, cluster, interrupts, .. } = self;
        tokio::select! {
            biased;
            Some(Interrupt) = interrupts.recv() => Err(Error::Interrupted),
            done = work(shell, cluster) => done,
        }
    }

    /// What is live in the namespace of a DaemonSet.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) async fn snapshot(&mut self, key: &DaemonSetKey) -> Result<Snapshot, Error> {
        self.snapshot_for(key, &[]).await
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
                Ok(cluster.live().snapshot_for(desired, &scope, shell.now).await?)
            })
            .await?;
        if let Some(recording) = &mut self.recording {
            recording.nodes.clone_from(&snapshot.nodes);
        }
        Ok(snapshot)
    }

    /// Takes a DaemonSet's lock, which is how its turn begins. Says whom it waits for.
    ///
    /// # Errors
    /// Somebody else has it, and keeps it; or the time of the run is over.
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
            let (printer, now) = (shell.printer, shell.now);
            let waits = |wait: &LockWait| Teller::plain(key, output, printer).waits(wait, now);
            Ok(Arc::new(cluster.lock_telling(key, &holder, &options, &waits).await?))
        })
        .await
    }

    /// Sees to a DaemonSet on which no controller acts, and of which nothing is to be changed.
    ///
    /// # Errors
    /// The cluster cannot be watched, another run took the lock, or it was interrupted.
    pub(super) async fn tend(&mut self, owner: &Owner<'_>, lock: &Arc<Lock>) -> Result<(), Error> {
        let observer = self.observe(owner).await?;
        let tend = apply::tend(owner.key, lock, observer);
        self.unless_interrupted(async |_, _| Ok(tend.await?)).await
    }

    /// Begins to watch a DaemonSet and what is about it.
    async fn observe(&mut self, owner: &Owner<'_>) -> Result<Observer, Error> {
        let clock = self.clock.clone();
        let Owner { key, managed_by, .. } = *owner;
        self.unless_interrupted(async |shell, cluster| {
            let (selector, events) = match managed_by {
                ManagedBy::DaemonSetController => {
                    (owner.spec.selector.clone(), may_watch_events(cluster, key).await)
                }
                // A controller lets go of pods that the selector does not match any more, and need
                // not complain to itself.
                ManagedBy::DsApply => (LabelSelector::default(), false),
            };
            let target = Target { key: key.clone(), managed_by, selector, events };
            Ok(cluster.live().observe(&target, clock, shell.now).await?)
        })
        .await
    }

    /// Carries a task out, and tells of it.
    ///
    /// # Errors
    /// The cluster cannot be watched.
    pub(super) async fn carry_out(
        &mut self,
        owner: &Owner<'_>,
        lock: &Arc<Lock>,
        task: Task,
        output: Format,
    ) -> Result<Ending, Error> {
        let Owner { key, managed_by, .. } = *owner;
        let observer = self.observe(owner).await?;
        let mut teller = Teller::new(key, output, &self.shell);
        let mut clocks = Clocks { cluster: &self.cluster, told: false };
        let (recorded, mut events) = (self.recording.is_some(), Vec::new());
        let lock = Arc::clone(lock);
        let interrupts = &mut self.interrupts;
        let last_seen = observer.clone();
        let run = Run { key, lock, managed_by, observer, interrupts, task };
        let ending = run.to_its_end(|report, now| {
            clocks.tell(&teller, now);
            teller.tell(report, now);
            if recorded {
                events.push((now, report.clone()));
            }
        });
        let (ending, now) = ending.await;
        clocks.tell(&teller, now);
        self.interrupted |= ending.interrupted;
        let evidence = evidence::gather(&ending, key, &last_seen, &self.cluster, self.logs).await;
        teller.end(&ending, &evidence, now);
        if let Some(recording) = &mut self.recording {
            let record = Record { key: key.clone(), events, ending: ending.clone() };
            recording.records.push(record);
        }
        Ok(ending)
    }
}

/// Tells once that the clocks of the API servers differ.
struct Clocks<'a> {
    cluster: &'a WritableCluster,
    told: bool,
}

impl Clocks<'_> {
    fn tell(&mut self, teller: &Teller<'_>, now: Timestamp) {
        if !self.told
            && let Some(apart) = self.cluster.live().clocks_differ()
        {
            self.told = true;
            teller.clocks_differ(apart, now);
        }
    }
}

/// Gives a lock back, so that whoever waits for it need not wait for its lease to run out.
pub(super) async fn unlock(lock: Arc<Lock>) {
    if let Some(lock) = Arc::into_inner(lock)
        && let Err(error) = lock.release().await
    {
        tracing::warn!(%error, "cannot give the lock back");
    }
}

/// Whether the controller's complaints can be heard. They are worth having, not needing. They are
/// watched only: those of earlier times are of no use.
async fn may_watch_events(cluster: &WritableCluster, key: &DaemonSetKey) -> bool {
    let access = Access {
        verb: Verb::Watch,
        resource: Resource::Of(Kind::Event),
        namespace: Some(key.namespace.clone()),
        name: None,
    };
    cluster.review(vec![access]).await == [Verdict::Allowed]
}
