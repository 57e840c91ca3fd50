//! The in-process DaemonSet controller, for the length of a run, where no other one acts (upstream:
//! `DaemonSetsController`).
//!
//! `controller::sync` decides a sync and `controller::sync_requests` lists its requests, both on
//! what the run's observer shows. The next sync waits until the writes of the last one are
//! observed, by name and uid, where upstream counts expectations.
//!
//! It takes only the actions that the run allows ([`AllowedActions`]), and never paces: whatever
//! strategy is live, it does nothing of a rolling update except a surge, while the run checks the
//! gates. Not here: the run itself; the requests (`sync_sender`).
//!
//! With `managedBy: ds-apply` the model stays the same: a DaemonSet whose `managed_by` says that a
//! ConfigMap, the *record*, stands for it. A record is decoded into a DaemonSet with the identity
//! and version of the ConfigMap, and written back as one; so status, history and drift need no
//! special cases. What differs: the owner of pods and revisions, the guard that keeps the two modes
//! apart, the rule that a run is not complete while a node has no pod, and the writer (this
//! module). The controller of the embedded cluster uses the same sync and the same requests, and is
//! compared with a real one.
//!
//! What the run allows, in this order:
//!
//! - `None`, until the target is in place, or another template stays live because the rollout waits or
//!   was aborted: no pod is created from a template that is about to be replaced. A request in flight may
//!   still be executed.
//! - `Reconcile` after that, whatever the live strategy: nodes without a pod get one, and failed,
//!   surplus and misplaced pods are deleted. Outdated pods stay, because the run itself deletes
//!   them during its pause; if outdated pods appear next to a target without a pause, the run
//!   pauses the rollout first.
//! - `ReconcileAndSurge` also creates new pods next to outdated ones, within `maxSurge`, only while
//!   the run checks its gates.
//! - `CreateOnly` after an interrupt: it deletes nothing.
//!
//! So `release` restores the strategy, and outdated pods wait for the next run, which paces them.
//! After the run the controller drains for half a minute at most: a node that has just lost its pod
//! gets one. It does not after a run that has ended before that.
//!
//! Records are listed only if a revision belongs to one, or a plan needs one, so other users need
//! no permission to list ConfigMaps.

mod pending_writes;
mod sync_sender;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use self::pending_writes::PendingWrites;
use self::sync_sender::{Sent, SyncSender};
use super::rest::rest;
use super::unreconciled::Unreconciled;
use cluster::{Lock, Observer};
use daemonset::controller::Owner;
use daemonset::controller::backoff::{Backoff, FailedPods};
use daemonset::controller::claims::OwnerIndex;
use daemonset::controller::limits::allows_surge;
use daemonset::controller::node_placements::PlacementCache;
use daemonset::controller::revision_data::Matching;
use daemonset::controller::sync::{Expectations, Input, Outcome, sync};
use daemonset::controller::sync_requests::{Request, SyncRequests};
use daemonset::model::{DaemonSet, DaemonSetKey, DaemonSetStatus, ManagedBy, NodeName, Snapshot};
use planner::rollout::{AllowedActions, Creates};

/// Delay before the first retry of a failed sync; it doubles.
const FIRST_RETRY: Duration = Duration::from_millis(250);

/// The longest delay of a retry, and the longest sleep between two syncs.
const LONGEST_SLEEP: Duration = Duration::from_secs(15);

/// How soon to look again while no request may be sent: no change says that a watch is open again.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

/// The shortest rest between two syncs: changes during it are handled together.
const SHORTEST_REST: Duration = Duration::from_millis(50);

/// Time limit of the drain after a run has ended: nodes that have just lost their pod, the status.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(30);

/// Time limit of the drain after an interrupt.
const INTERRUPTED_DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// A running in-process controller. When dropped, it stops at once.
pub(super) struct InProcessController {
    work: JoinSet<()>,
    commands: watch::Sender<Command>,
    /// Why something is left to do; none if nothing is.
    unreconciled: watch::Receiver<Option<Unreconciled>>,
    /// Messages about pods that could not be created, worded as upstream.
    pub(super) create_failures: mpsc::UnboundedReceiver<String>,
}

impl InProcessController {
    /// Starts the controller; it acts once actions are allowed.
    pub(super) fn begin(key: DaemonSetKey, lock: &Arc<Lock>, observer: Observer) -> Self {
        let (failures_sender, create_failures) = mpsc::unbounded_channel();
        let (commands, command) = watch::channel(Command::default());
        let sender = SyncSender::new(key.clone(), lock.writer(), failures_sender);
        let (left, unreconciled) = watch::channel(Some(Unreconciled::NotObserved));
        let lock = Arc::clone(lock);
        let mut work = JoinSet::new();
        work.spawn(Work { key, lock, observer, sender, command, left }.run());
        Self { work, commands, unreconciled, create_failures }
    }

    /// Sets the actions that the run allows from now on.
    pub(super) fn may(&self, allowed_actions: AllowedActions, creates: &Creates) {
        self.commands.send_if_modified(|command| {
            let changes = command.allowed_actions != allowed_actions || command.creates != *creates;
            if changes {
                *command = Command { allowed_actions, creates: creates.clone(), ends: false };
            }
            changes
        });
    }

    /// Takes the allowed actions that are possible at once, and stops. After an interrupt the time
    /// limit is short, because the user waits. Returns why something is left to do, other than to wait
    /// for terminating pods.
    pub(super) async fn drain(mut self, allowed_actions: AllowedActions) -> Option<Unreconciled> {
        self.commands.send_modify(|command| {
            command.allowed_actions = allowed_actions;
            command.ends = true;
        });
        let limit = match allowed_actions {
            AllowedActions::None | AllowedActions::CreateOnly => INTERRUPTED_DRAIN_TIMEOUT,
            AllowedActions::Reconcile | AllowedActions::ReconcileAndSurge => DRAIN_TIMEOUT,
        };
        let _ = tokio::time::timeout(limit, self.work.join_next()).await;
        self.unreconciled.borrow().clone()
    }
}

/// The command to the controller; at first no action is allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Command {
    allowed_actions: AllowedActions,
    creates: Creates,
    /// Whether to drain: take the actions that are possible at once, and stop.
    ends: bool,
}

struct Work {
    key: DaemonSetKey,
    lock: Arc<Lock>,
    observer: Observer,
    sender: SyncSender,
    command: watch::Receiver<Command>,
    /// Why something is left to do.
    left: watch::Sender<Option<Unreconciled>>,
}

/// The state of the controller between two syncs.
#[derive(Default)]
struct LoopState {
    backoff: Backoff,
    pending_writes: PendingWrites,
    placement_cache: PlacementCache,
    failures: u32,
}

/// The decision of a sync.
enum Decision {
    /// Nothing to do.
    Idle,
    /// Wait until actions are allowed.
    NotAllowed,
    /// Wait until requests may be sent.
    Wait(Unreconciled),
    /// A pod is terminating: after that its node may need another, and the status changes.
    WaitForPod,
    /// Send these requests; with the status that was observed.
    Send(Box<SyncRequests>, DaemonSetStatus),
}

impl Work {
    async fn run(mut self) {
        let mut state = LoopState::default();
        loop {
            let (decision, nodes) = self.look(&mut state);
            let longest = match decision {
                Decision::NotAllowed => LONGEST_SLEEP,
                Decision::Wait(why) => {
                    self.left.send_replace(Some(why));
                    LOOK_AGAIN
                }
                Decision::Idle | Decision::WaitForPod => {
                    self.left.send_replace(None);
                    if matches!(decision, Decision::Idle) && self.command.borrow().ends {
                        return;
                    }
                    LONGEST_SLEEP
                }
                Decision::Send(sync_requests, status) => {
                    self.send(*sync_requests, status, &mut state).await
                }
            };
            tokio::time::sleep(rest(nodes).max(SHORTEST_REST)).await;
            tokio::select! {
                biased;
                Ok(()) = self.command.changed() => {}
                () = self.observer.changed() => {}
                () = tokio::time::sleep(longest) => {}
            }
        }
    }

    /// Decides on the current view; returns the number of nodes too.
    fn look(&mut self, state: &mut LoopState) -> (Decision, usize) {
        let is_current = self.observer.is_current();
        let is_locked = self.lock.is_fresh();
        let command = self.command.borrow_and_update();
        self.observer.look(|view| {
            let snapshot = &view.snapshot;
            let (now, nodes) = (snapshot.observed_at, snapshot.nodes.len());
            if !is_current {
                return (Decision::Wait(Unreconciled::NotObserved), nodes);
            }
            if !is_locked {
                return (Decision::Wait(Unreconciled::LockNotRenewed), nodes);
            }
            if !state.pending_writes.is_seen(snapshot, now) {
                return (Decision::Wait(Unreconciled::WritesNotObserved), nodes);
            }
            let sees = Sees { snapshot, nodes_version: view.nodes_version, key: &self.key, now };
            (decide(&sees, &command, state), nodes)
        })
    }

    /// Sends the requests; returns the time until the next sync if nothing changes.
    async fn send(
        &mut self,
        mut sync_requests: SyncRequests,
        status: DaemonSetStatus,
        state: &mut LoopState,
    ) -> Duration {
        // While it is tried again, the failure says more.
        self.left.send_if_modified(|left| {
            let has_failed = matches!(left, Some(Unreconciled::RequestFailed(_)));
            if !has_failed {
                *left = Some(Unreconciled::NotAnswered);
            }
            !has_failed
        });
        let is_allowed = || !self.command.has_changed().is_ok_and(|it| it);
        let sent = self.sender.send(&mut sync_requests, &status, is_allowed).await;
        let Sent { written, failure } = sent;
        state.pending_writes.expect(written, self.now());
        if let Some(why) = failure {
            self.left.send_replace(Some(Unreconciled::RequestFailed(why)));
        }
        if sync_requests.failed {
            let wait = FIRST_RETRY.saturating_mul(2_u32.saturating_pow(state.failures));
            state.failures = state.failures.saturating_add(1);
            tokio::time::sleep(wait.min(LONGEST_SLEEP)).await;
            return Duration::ZERO;
        }
        state.failures = 0;
        sync_requests.again.into_iter().min().unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP)
    }

    fn now(&self) -> Timestamp {
        self.observer.look(|view| view.snapshot.observed_at)
    }
}

/// The input of a sync.
struct Sees<'a> {
    snapshot: &'a Snapshot,
    nodes_version: u64,
    key: &'a DaemonSetKey,
    now: Timestamp,
}

/// One sync (upstream: `syncDaemonSet`), limited to the allowed actions.
fn decide(sees: &Sees<'_>, command: &Command, state: &mut LoopState) -> Decision {
    let allowed_actions = command.allowed_actions;
    let Sees { snapshot, nodes_version, key, now } = *sees;
    if allowed_actions == AllowedActions::None {
        return Decision::NotAllowed;
    }
    let live = snapshot.daemon_set(key).filter(|live| live.managed_by == ManagedBy::DsApply);
    let Some(live) = live else { return Decision::Idle };
    let owner = Owner::from(live);
    let node_placements =
        state.placement_cache.node_placements(live, &snapshot.nodes, nodes_version);
    let fleet = node_placements.fleet(&snapshot.nodes);
    let pods = OwnerIndex::new(snapshot.pods_in(&key.namespace));
    let outcome = sync(&Input {
        owner,
        fleet: &fleet,
        placements: node_placements.placements(),
        pods: &pods,
        revisions: snapshot.revisions_in(&key.namespace),
        matching: Matching::Tolerant,
        expectations: Expectations::Satisfied,
        failed_pods: FailedPods::Known(&state.backoff),
        now,
    });
    let sync_requests = match outcome {
        Outcome::Untouched(_) => return Decision::Idle,
        Outcome::NameTaken(error) => SyncRequests::of_collision(&owner, &live.uid, &error),
        Outcome::Synced(mut effects) => {
            let surges = allowed_actions == AllowedActions::ReconcileAndSurge
                && allows_surge(&live.spec.update_strategy);
            if !surges {
                effects.leave_outdated();
            }
            effects.create_only(|node| command.creates.may(node));
            if allowed_actions == AllowedActions::CreateOnly {
                effects.leave_pods();
            }
            SyncRequests::of(&owner, &live.uid, &effects)
        }
    };
    let requests = sync_requests.batches.iter().flat_map(|batch| &batch.requests);
    for request in requests {
        if let Request::DeletePod { node, failed: true, .. } = request {
            state.backoff.record(&owner, node, now);
        }
    }
    if !sync_requests.batches.is_empty() {
        Decision::Send(Box::new(sync_requests), live.status)
    } else if is_one_leaving(snapshot, live) {
        Decision::WaitForPod
    } else {
        Decision::Idle
    }
}

/// Whether a pod of the DaemonSet is terminating on a Ready node, whose kubelet will finish it.
fn is_one_leaving(snapshot: &Snapshot, live: &DaemonSet) -> bool {
    let is_ready = |name: &NodeName| {
        let found = snapshot.nodes.binary_search_by(|node| node.name.cmp(name));
        found.is_ok_and(|at| snapshot.nodes[at].readiness.is_ready())
    };
    let pods = snapshot.pods_in(&live.key.namespace).iter();
    let mut leaving = pods.filter(|pod| pod.terminating);
    leaving.any(|pod| {
        let is_own = pod.controller.as_ref().is_some_and(|it| it.uid == live.uid);
        is_own && pod.node().is_some_and(is_ready)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemonset::controller::test_cluster::{Cluster, OURS};
    use daemonset::model::{NodeReadiness, PodPhase};

    /// The cluster with the DaemonSet as a record ConfigMap, which owns the pods.
    fn managed(mut cluster: Cluster) -> Snapshot {
        cluster.manage();
        cluster.snapshot()
    }

    fn sees(snapshot: &Snapshot) -> Sees<'_> {
        let key = &snapshot.daemon_sets[0].key;
        Sees { snapshot, nodes_version: 1, key, now: snapshot.observed_at }
    }

    fn command(allowed_actions: AllowedActions) -> Command {
        Command { allowed_actions, ..Command::default() }
    }

    fn deleted(decision: &Decision) -> Vec<String> {
        let Decision::Send(sync_requests, _) = decision else { return Vec::new() };
        let requests = sync_requests.batches.iter().flat_map(|batch| &batch.requests);
        let names = requests.filter_map(|request| match request {
            Request::DeletePod { name, .. } => Some(name.to_string()),
            _other => None,
        });
        names.collect()
    }

    #[test]
    fn failed_pods_are_deleted_after_a_wait_that_doubles() {
        let mut cluster = Cluster::of(1);
        cluster.add_pods("node-0", OURS, 1);
        cluster.pods[0].phase = PodPhase::Failed;
        let (snapshot, mut state) = (managed(cluster), LoopState::default());
        let mut at = |seconds: i64| {
            let now = snapshot.observed_at + jiff::SignedDuration::from_secs(seconds);
            let sees = Sees { now, ..sees(&snapshot) };
            deleted(&decide(&sees, &command(AllowedActions::Reconcile), &mut state)).len()
        };
        assert_eq!([at(0), at(0), at(1), at(2), at(3)], [1, 0, 1, 0, 1]);
    }

    #[test]
    fn a_terminating_pod_is_waited_for_unless_its_kubelet_is_dead() {
        let mut cluster = Cluster::of(1);
        for _ in 0..20 {
            cluster.sync();
            cluster.make_all_ready();
        }
        cluster.add_pods("node-0", OURS, 1);
        cluster.pods[1].terminating = true;
        let mut snapshot = managed(cluster);
        let look = |snapshot: &Snapshot| {
            decide(&sees(snapshot), &command(AllowedActions::Reconcile), &mut LoopState::default())
        };
        if let Decision::Send(sync_requests, _) = look(&snapshot)
            && let Some(Request::WriteStatus(status)) = sync_requests.batches[0].requests.front()
        {
            snapshot.daemon_sets[0].status = *status;
        }
        assert!(matches!(look(&snapshot), Decision::WaitForPod));
        snapshot.nodes[0].readiness = NodeReadiness::NotReady { since: None };
        assert!(matches!(look(&snapshot), Decision::Idle), "a dead kubelet is not waited for");
    }

    #[test]
    fn a_daemon_set_is_left_to_its_controller() {
        let snapshot = Cluster::of(2).snapshot();
        let decision = decide(
            &sees(&snapshot),
            &command(AllowedActions::ReconcileAndSurge),
            &mut LoopState::default(),
        );
        assert!(matches!(decision, Decision::Idle));
    }

    /// The numbers of pods that are created and deleted on five nodes, each of which has an
    /// available pod of the previous template.
    fn changes(limits: (u32, u32), allowed_actions: AllowedActions) -> (usize, usize) {
        let mut cluster = Cluster::of(5);
        cluster.set_limits(&limits.0.into(), &limits.1.into());
        for _ in 0..10 {
            cluster.sync();
            cluster.make_all_ready();
        }
        cluster.set_image("another");
        let decision =
            decide(&sees(&managed(cluster)), &command(allowed_actions), &mut LoopState::default());
        let Decision::Send(sync_requests, _) = &decision else { return (0, 0) };
        let requests = sync_requests.batches.iter().flat_map(|batch| &batch.requests);
        let created = requests.filter(|it| matches!(it, Request::CreatePod(_))).count();
        (created, deleted(&decision).len())
    }

    #[test]
    fn it_never_paces_and_surges_only_when_allowed() {
        for (limits, allowed_actions, want) in [
            ((2, 0), AllowedActions::None, (0, 0)),
            ((2, 0), AllowedActions::Reconcile, (0, 0)),
            ((2, 0), AllowedActions::CreateOnly, (0, 0)),
            ((2, 0), AllowedActions::ReconcileAndSurge, (0, 0)),
            ((0, 2), AllowedActions::None, (0, 0)),
            ((0, 2), AllowedActions::Reconcile, (0, 0)),
            ((0, 2), AllowedActions::ReconcileAndSurge, (2, 0)),
        ] {
            assert_eq!(changes(limits, allowed_actions), want, "{limits:?} {allowed_actions:?}");
        }
    }

    #[test]
    fn nothing_is_done_until_the_run_allows_it() {
        let snapshot = managed(Cluster::of(2));
        let look = |allowed_actions| {
            decide(&sees(&snapshot), &command(allowed_actions), &mut LoopState::default())
        };
        assert!(matches!(look(AllowedActions::None), Decision::NotAllowed));
        assert!(matches!(look(AllowedActions::Reconcile), Decision::Send(..)));
    }

    #[test]
    fn pods_are_created_on_allowed_nodes_only() {
        let snapshot = managed(Cluster::of(5));
        for (creates, want) in [
            (Creates::All, 5),
            (Creates::Only(["node-1".into(), "node-3".into()].into()), 2),
            (Creates::Only([].into()), 0),
        ] {
            let command =
                Command { creates: creates.clone(), ..command(AllowedActions::Reconcile) };
            let decision = decide(&sees(&snapshot), &command, &mut LoopState::default());
            let Decision::Send(sync_requests, _) = &decision else { panic!("a revision is made") };
            let requests = sync_requests.batches.iter().flat_map(|batch| &batch.requests);
            let created = requests.filter(|it| matches!(it, Request::CreatePod(_))).count();
            assert_eq!(created, want, "{creates:?}");
        }
    }

    #[test]
    fn after_an_interrupt_nothing_is_deleted() {
        let mut cluster = Cluster::of(2);
        cluster.add_pods("node-0", OURS, 2);
        let snapshot = managed(cluster);
        for (allowed_actions, deletes) in
            [(AllowedActions::CreateOnly, 0), (AllowedActions::Reconcile, 1)]
        {
            let decision =
                decide(&sees(&snapshot), &command(allowed_actions), &mut LoopState::default());
            assert_eq!(deleted(&decision).len(), deletes, "{allowed_actions:?}");
        }
    }
}
