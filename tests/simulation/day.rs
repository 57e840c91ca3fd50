//! Runs of a day and more, on an API server that is busy, forgets, and is wrong about the time; and one whose
//! token expires.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ds_plan::{Ended, Exit, ds_apply_at};
use embedded::{
    Fault, Hook, Reason, Rehearsal, Route, Seen, Status, Store, VirtualClock, World,
    on_virtual_time,
};
use jiff::SignedDuration;
use tokio::sync::mpsc;

use crate::cluster;
use crate::crash::scenario;
use crate::scenario::{AgentSpec, Scenario};

/// The user of the runs.
const WORKER: &str = "worker";

/// Time that each of the three new pods must stay Ready before the next one is replaced.
const MIN_READY: u64 = (8 * 60 + 10) * 60;

const MINUTE: u64 = 60;
const HOUR: u64 = 60 * MINUTE;

/// Injects faults by the time, and records when the run deleted pods.
struct TimedFaults<F> {
    clock: VirtualClock,
    fault: F,
    deleted: Arc<Mutex<Vec<Duration>>>,
}

impl<F: FnMut(&Seen, u64) -> Option<Fault> + Send> Hook for TimedFaults<F> {
    fn before(&mut self, request: &Seen, _store: &Store) -> Vec<Fault> {
        let second = self.clock.elapsed().as_secs();
        let is_own = request.user == WORKER;
        is_own.then(|| (self.fault)(request, second)).flatten().into_iter().collect()
    }

    fn after(&mut self, request: &Seen, code: u16, _store: &Store) -> Vec<Fault> {
        let is_pods = matches!(&request.route, Route::Objects(it) if it.resource() == "pods");
        if request.user == WORKER && request.verb == "delete" && is_pods && code < 300 {
            self.deleted.lock().unwrap().push(self.clock.elapsed());
        }
        Vec::new()
    }
}

/// The rollout of three nodes, one after the other.
struct Rollout {
    /// The ends of the runs, the last one complete.
    ended: Vec<Ended>,
    /// The time of the cluster at the end.
    took: Duration,
    /// The requests that had a fault.
    faults: usize,
}

/// Rolls out, with another run after each that fails, three at most. Checks that pods go one by one,
/// each after the one before has been Ready for long enough.
fn roll_out(mut fault: impl FnMut(&Seen, u64, usize) -> Option<Fault> + Send + 'static) -> Rollout {
    let calm = scenario("image");
    let agents = calm.agents.iter().cloned();
    let agents = agents.map(|agent| AgentSpec { min_ready_seconds: MIN_READY, ..agent }).collect();
    let scenario = Scenario { agents, policy: None, ..calm };
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("agents.yaml"), cluster::manifests(&scenario)).unwrap();
    let snapshot = cluster::snapshot(&scenario);
    let deleted = Arc::<Mutex<Vec<Duration>>>::default();
    let (run, faults) = (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let (of_run, counted) = (Arc::clone(&run), Arc::clone(&faults));
    let (ended, took) = on_virtual_time(async {
        let world = World::begin(&snapshot, Rehearsal::default()).unwrap();
        let fault = move |request: &Seen, second| {
            let fault = fault(request, second, of_run.load(Ordering::Relaxed));
            counted.fetch_add(usize::from(fault.is_some()), Ordering::Relaxed);
            fault
        };
        let hook = TimedFaults { clock: world.clock(), fault, deleted: Arc::clone(&deleted) };
        world.server().set_hook(Some(Box::new(hook)));
        let mut ended: Vec<Ended> = Vec::new();
        while ended.len() < 3 && ended.last().is_none_or(|it| it.exit != Exit::Done) {
            let line = ["-f", "agents.yaml", "--yes"];
            let interrupts = mpsc::channel(1).1;
            ended.push(ds_apply_at(&world, WORKER, folder.path(), interrupts, &line).await);
            run.fetch_add(1, Ordering::Relaxed);
        }
        (ended, world.clock().elapsed())
    })
    .unwrap();
    let deleted = deleted.lock().unwrap().clone();
    assert_eq!(deleted.len(), 3, "{deleted:?}: {ended:?}");
    for pair in deleted.windows(2) {
        assert!(pair[1] >= pair[0] + Duration::from_secs(MIN_READY), "{deleted:?}: {ended:?}");
    }
    Rollout { ended, took, faults: faults.load(Ordering::Relaxed) }
}

/// In each hour, for some minutes: watches have expired (410), after etcd was compacted; one request in three
/// is rejected by priority and fairness (429); one answer in sixteen comes from a server whose clock
/// is an hour off; all watches end.
#[test]
fn a_day_of_storms_changes_nothing() {
    let rollout = roll_out(|request, second, _run| {
        let is_watch = request.verb == "watch";
        match second / MINUTE % 60 {
            3..6 if is_watch || (request.verb == "list" && request.number.is_multiple_of(2)) => {
                Some(Fault::Answer(Status::new(Reason::Expired, "too old resource version")))
            }
            10..15 if request.number.is_multiple_of(3) => {
                Some(Fault::Answer(Status::new(Reason::TooManyRequests, "too many requests")))
            }
            20..30 if request.number.is_multiple_of(16) => {
                let hours = if (second / HOUR).is_multiple_of(2) { 1 } else { -1 };
                Some(Fault::Clock(SignedDuration::from_hours(hours)))
            }
            30..45 if is_watch => Some(Fault::CutAfter(Duration::from_secs(50))),
            _calm => None,
        }
    });
    let [ended] = &rollout.ended[..] else { panic!("{:?}", rollout.ended) };
    assert_eq!((ended.exit, &ended.errors[..]), (Exit::Done, &[][..]));
    assert!(rollout.took >= Duration::from_secs(24 * HOUR), "{:?}", rollout.took);
    // Otherwise the day was calm.
    assert!(rollout.faults > 1_000, "{}", rollout.faults);
}

/// A run whose token expires is paused. The next one, with a new token, resumes the rollout.
#[test]
fn a_run_whose_token_expires_is_resumed_by_the_next() {
    let rollout = roll_out(|_request, second, run| {
        let is_expired = second >= 10 * HOUR && run == 0;
        is_expired.then(|| Fault::Answer(Status::new(Reason::Unauthorized, "Unauthorized")))
    });
    let [first, second] = &rollout.ended[..] else { panic!("{:?}", rollout.ended) };
    assert_eq!((first.exit, &first.errors[..]), (Exit::Paused, &[][..]));
    assert_eq!((second.exit, &second.errors[..]), (Exit::Done, &[][..]));
}
