//! The DaemonSet controller for the length of a run, where no other one acts (upstream:
//! `DaemonSetsController`).
//!
//! What a sync decides is `controller::sync`, and what it sends `controller::program`, both on what
//! the run's own observer sees. The next sync waits until what the last one wrote is seen, by name
//! and uid, where upstream counts expectations.
//!
//! It does what the run leaves to it ([`Leave`]), and never paces: whatever strategy is live, it
//! takes no step of a rolling update but a surge's, while the run stands by. Not here: the run
//! itself; the requests (`keep`).

mod keep;
mod unseen;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use self::keep::Hands;
use self::unseen::Unseen;
use super::rest;
use crate::cluster::{Lock, Observer};
use crate::controller::Owner;
use crate::controller::backoff::{Backoff, FailedPods};
use crate::controller::claims::OwnerIndex;
use crate::controller::ground::Survey;
use crate::controller::limits::allows_surge;
use crate::controller::program::{Program, Request};
use crate::controller::revision_data::Matching;
use crate::controller::sync::{Expectations, Input, Outcome, sync};
use crate::model::{DaemonSet, DaemonSetKey, DaemonSetStatus, ManagedBy, NodeName, Snapshot};
use crate::planted::planted;
use crate::rollout::{Creates, Leave};

/// The first wait after a sync that failed; it doubles.
const FIRST_RETRY: Duration = Duration::from_millis(250);

/// The longest one, and the longest sleep between two looks.
const LONGEST_SLEEP: Duration = Duration::from_secs(15);

/// The shortest rest between two syncs: many changes are one.
const SHORTEST_REST: Duration = Duration::from_millis(50);

/// How long a run that has ended waits for what is still to be done at once: nodes that have just
/// lost their pod, the status.
const SETTLING: Duration = Duration::from_secs(30);

/// The same after an interrupt.
const HURRY: Duration = Duration::from_secs(2);

/// A controller at work. Dropped, it stops at once.
pub(super) struct Keeper {
    work: JoinSet<()>,
    orders: watch::Sender<Order>,
    /// What it could not create, in upstream's words.
    pub(super) complaints: mpsc::UnboundedReceiver<String>,
}

impl Keeper {
    /// Begins to act on the DaemonSet, once it is told to.
    pub(super) fn begin(key: DaemonSetKey, lock: &Arc<Lock>, observer: Observer) -> Self {
        let (tell, complaints) = mpsc::unbounded_channel();
        let (orders, order) = watch::channel(Order::default());
        let hands = Hands::new(key.clone(), lock.writer(), tell);
        let mut work = JoinSet::new();
        work.spawn(Work { key, lock: Arc::clone(lock), observer, hands, order }.run());
        Self { work, orders, complaints }
    }

    /// Does from now on what the run leaves to it.
    pub(super) fn may(&self, leave: Leave, creates: &Creates) {
        self.orders.send_if_modified(|order| {
            let changes = order.leave != leave || order.creates != *creates;
            if changes {
                *order = Order { leave, creates: creates.clone(), ends: false };
            }
            changes
        });
    }

    /// Does what can be done at once of what the run has left to it, and stops; in a hurry after an
    /// interrupt, when somebody waits for the end.
    pub(super) async fn settle(mut self, leave: Leave) {
        self.orders.send_modify(|order| {
            order.leave = leave;
            order.ends = true;
        });
        let limit = match leave {
            Leave::Nothing | Leave::Fill => HURRY,
            Leave::Upkeep | Leave::Surge => SETTLING,
        };
        let _ = tokio::time::timeout(limit, self.work.join_next()).await;
    }
}

/// What a controller is told to do: at first nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Order {
    leave: Leave,
    creates: Creates,
    /// It is to do what can be done at once, and then nothing more.
    ends: bool,
}

struct Work {
    key: DaemonSetKey,
    lock: Arc<Lock>,
    observer: Observer,
    hands: Hands,
    order: watch::Receiver<Order>,
}

/// What a controller has in mind between two syncs.
#[derive(Default)]
struct Mind {
    backoff: Backoff,
    unseen: Unseen,
    survey: Survey,
    failures: u32,
}

/// What a look comes to.
enum Decision {
    /// There is nothing to be done.
    Idle,
    /// What was written has to be seen first, or the world; or a pod is about to be gone, after which
    /// a node may need another, and the status is another.
    Wait,
    /// These requests, and the status that was seen.
    Send(Box<Program>, DaemonSetStatus),
}

impl Work {
    async fn run(mut self) {
        let mut mind = Mind::default();
        loop {
            let (decision, nodes) = self.look(&mut mind);
            let pause = match decision {
                Decision::Idle if self.order.borrow().ends => return,
                Decision::Idle | Decision::Wait => LONGEST_SLEEP,
                Decision::Send(program, status) => self.send(*program, status, &mut mind).await,
            };
            tokio::time::sleep(rest(nodes).max(SHORTEST_REST)).await;
            tokio::select! {
                biased;
                Ok(()) = self.order.changed() => {}
                () = self.observer.changed() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Decides on what is seen now, and on how many nodes.
    fn look(&self, mind: &mut Mind) -> (Decision, usize) {
        let is_current = self.observer.is_current() && self.lock.is_fresh();
        let order = self.order.borrow();
        self.observer.look(|view| {
            let snapshot = &view.snapshot;
            let (now, nodes) = (snapshot.observed_at, snapshot.nodes.len());
            if !is_current || !mind.unseen.is_seen(snapshot, now) {
                return (Decision::Wait, nodes);
            }
            let sees = Sees { snapshot, nodes_version: view.nodes_version, key: &self.key, now };
            (decide(&sees, &order, mind), nodes)
        })
    }

    /// Sends what was decided; how long to wait for the next look, if nothing happens.
    async fn send(
        &mut self,
        mut program: Program,
        status: DaemonSetStatus,
        mind: &mut Mind,
    ) -> Duration {
        let sent = self.hands.send(&mut program, &status).await;
        mind.unseen.expect(sent, self.now());
        if program.failed {
            let wait = FIRST_RETRY.saturating_mul(2_u32.saturating_pow(mind.failures));
            mind.failures = mind.failures.saturating_add(1);
            tokio::time::sleep(wait.min(LONGEST_SLEEP)).await;
            return Duration::ZERO;
        }
        mind.failures = 0;
        program.again.into_iter().min().unwrap_or(LONGEST_SLEEP).min(LONGEST_SLEEP)
    }

    fn now(&self) -> Timestamp {
        self.observer.look(|view| view.snapshot.observed_at)
    }
}

/// What a sync decides on.
struct Sees<'a> {
    snapshot: &'a Snapshot,
    nodes_version: u64,
    key: &'a DaemonSetKey,
    now: Timestamp,
}

/// One sync on what is seen (upstream: `syncDaemonSet`), as far as it is left to the controller.
fn decide(sees: &Sees<'_>, order: &Order, mind: &mut Mind) -> Decision {
    let leave = order.leave;
    let Sees { snapshot, nodes_version, key, now } = *sees;
    let waits = leave == Leave::Nothing;
    if planted!(waits, "the run's own controller does not wait for it" => false) {
        return Decision::Wait;
    }
    let live = snapshot.daemon_set(key).filter(|live| live.managed_by == ManagedBy::DsApply);
    let Some(live) = live else { return Decision::Idle };
    let owner = Owner::from(live);
    let ground = mind.survey.ground(live, &snapshot.nodes, nodes_version);
    let fleet = ground.fleet(&snapshot.nodes);
    let pods = OwnerIndex::new(snapshot.pods_in(&key.namespace));
    let outcome = sync(&Input {
        owner,
        fleet: &fleet,
        placements: ground.placements(),
        pods: &pods,
        revisions: snapshot.revisions_in(&key.namespace),
        matching: Matching::Tolerant,
        expectations: Expectations::Satisfied,
        failed_pods: FailedPods::Known(&mind.backoff),
        now,
    });
    let program = match outcome {
        Outcome::Untouched(_) => return Decision::Idle,
        Outcome::NameTaken(error) => Program::of_collision(&owner, &live.uid, &error),
        Outcome::Synced(mut effects) => {
            let surges = leave == Leave::Surge && allows_surge(&live.spec.update_strategy);
            if planted!(!surges, "the run's own controller rolls" => false) {
                effects.leave_outdated();
            }
            let may = |node: &NodeName| order.creates.may(node);
            effects.create_only(|node| planted!(may(node), "all pods are created at once" => true));
            let spares = leave == Leave::Fill;
            if planted!(spares, "the run's own controller deletes after an interrupt" => false) {
                effects.leave_pods();
            }
            Program::of(&owner, &live.uid, &effects)
        }
    };
    let requests = program.batches.iter().flat_map(|batch| &batch.requests);
    for request in requests {
        if let Request::DeletePod { node, failed: true, .. } = request {
            mind.backoff.record(&owner, node, now);
        }
    }
    if !program.batches.is_empty() {
        Decision::Send(Box::new(program), live.status)
    } else if is_one_leaving(snapshot, live) {
        Decision::Wait
    } else {
        Decision::Idle
    }
}

/// Whether a pod of it is on its way out, and its kubelet will say when it is gone.
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
    use crate::controller::test_cluster::{Cluster, OURS};
    use crate::model::{NodeReadiness, PodPhase};
    use crate::plan::test_snapshot;

    /// The cluster, where a ledger stands for its DaemonSet and owns the pods.
    fn managed(mut cluster: Cluster) -> Snapshot {
        cluster.manage();
        test_snapshot(&cluster)
    }

    fn sees(snapshot: &Snapshot) -> Sees<'_> {
        let key = &snapshot.daemon_sets[0].key;
        Sees { snapshot, nodes_version: 1, key, now: snapshot.observed_at }
    }

    fn order(leave: Leave) -> Order {
        Order { leave, ..Order::default() }
    }

    fn deleted(decision: &Decision) -> Vec<String> {
        let Decision::Send(program, _) = decision else { return Vec::new() };
        let requests = program.batches.iter().flat_map(|batch| &batch.requests);
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
        let (snapshot, mut mind) = (managed(cluster), Mind::default());
        let mut at = |seconds: i64| {
            let now = snapshot.observed_at + jiff::SignedDuration::from_secs(seconds);
            let sees = Sees { now, ..sees(&snapshot) };
            deleted(&decide(&sees, &order(Leave::Upkeep), &mut mind)).len()
        };
        assert_eq!([at(0), at(0), at(1), at(2), at(3)], [1, 0, 1, 0, 1]);
    }

    #[test]
    fn a_pod_on_its_way_out_is_waited_for_unless_nobody_lets_go_of_it() {
        let mut cluster = Cluster::of(1);
        for _ in 0..20 {
            cluster.sync();
            cluster.make_all_ready();
        }
        cluster.add_pods("node-0", OURS, 1);
        cluster.pods[1].terminating = true;
        let mut snapshot = managed(cluster);
        let look = |snapshot: &Snapshot| {
            decide(&sees(snapshot), &order(Leave::Upkeep), &mut Mind::default())
        };
        if let Decision::Send(program, _) = look(&snapshot)
            && let Some(Request::WriteStatus(status)) = program.batches[0].requests.front()
        {
            snapshot.daemon_sets[0].status = *status;
        }
        assert!(matches!(look(&snapshot), Decision::Wait));
        snapshot.nodes[0].readiness = NodeReadiness::NotReady { since: None };
        assert!(matches!(look(&snapshot), Decision::Idle), "a dead kubelet is not waited for");
    }

    #[test]
    fn a_daemon_set_is_left_to_its_controller() {
        let snapshot = test_snapshot(&Cluster::of(2));
        let decision = decide(&sees(&snapshot), &order(Leave::Surge), &mut Mind::default());
        assert!(matches!(decision, Decision::Idle));
    }

    /// How many pods are created and deleted on five nodes, each of which has an available pod of
    /// the template before.
    fn changes(limits: (u32, u32), leave: Leave) -> (usize, usize) {
        let mut cluster = Cluster::of(5);
        cluster.set_limits(&limits.0.into(), &limits.1.into());
        for _ in 0..10 {
            cluster.sync();
            cluster.make_all_ready();
        }
        cluster.set_image("another");
        let decision = decide(&sees(&managed(cluster)), &order(leave), &mut Mind::default());
        let Decision::Send(program, _) = &decision else { return (0, 0) };
        let requests = program.batches.iter().flat_map(|batch| &batch.requests);
        let created = requests.filter(|it| matches!(it, Request::CreatePod(_))).count();
        (created, deleted(&decision).len())
    }

    #[test]
    fn it_never_paces_and_surges_only_while_the_run_stands_by() {
        for (limits, leave, want) in [
            ((2, 0), Leave::Nothing, (0, 0)),
            ((2, 0), Leave::Upkeep, (0, 0)),
            ((2, 0), Leave::Fill, (0, 0)),
            ((2, 0), Leave::Surge, (0, 0)),
            ((0, 2), Leave::Nothing, (0, 0)),
            ((0, 2), Leave::Upkeep, (0, 0)),
            ((0, 2), Leave::Surge, (2, 0)),
        ] {
            assert_eq!(changes(limits, leave), want, "{limits:?} {leave:?}");
        }
    }

    #[test]
    fn nothing_is_done_until_the_run_leaves_something_to_it() {
        let snapshot = managed(Cluster::of(2));
        let look = |leave| decide(&sees(&snapshot), &order(leave), &mut Mind::default());
        assert!(matches!(look(Leave::Nothing), Decision::Wait));
        assert!(matches!(look(Leave::Upkeep), Decision::Send(..)));
    }

    #[test]
    fn pods_are_created_where_they_may_be() {
        let snapshot = managed(Cluster::of(5));
        for (creates, want) in [
            (Creates::All, 5),
            (Creates::Only(["node-1".into(), "node-3".into()].into()), 2),
            (Creates::Only([].into()), 0),
        ] {
            let order = Order { creates: creates.clone(), ..order(Leave::Upkeep) };
            let decision = decide(&sees(&snapshot), &order, &mut Mind::default());
            let Decision::Send(program, _) = &decision else { panic!("a revision is made") };
            let requests = program.batches.iter().flat_map(|batch| &batch.requests);
            let created = requests.filter(|it| matches!(it, Request::CreatePod(_))).count();
            assert_eq!(created, want, "{creates:?}");
        }
    }

    #[test]
    fn after_an_interrupt_nothing_is_deleted() {
        let mut cluster = Cluster::of(2);
        cluster.add_pods("node-0", OURS, 2);
        let snapshot = managed(cluster);
        for (leave, deletes) in [(Leave::Fill, 0), (Leave::Upkeep, 1)] {
            let decision = decide(&sees(&snapshot), &order(leave), &mut Mind::default());
            assert_eq!(deleted(&decision).len(), deletes, "{leave:?}");
        }
    }
}
