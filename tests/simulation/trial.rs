//! Runs one scenario, from its cluster to the end of its runs.

mod visits;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ds_plan::{Ended, Exit, Outside, ds_apply_within};
use embedded::{
    Fault, Hook, Kind, Rehearsal, Route, Seen, Store, Timings, VirtualClock, World, on_virtual_time,
};
use executor::Interrupt;
use jiff::SignedDuration;
use planner::plan::PausedRollout;
use tokio::sync::{Notify, mpsc};
use tokio::time::sleep;

use crate::bounded::{self, Bounded};
use crate::cluster;
use crate::dice::Dice;
use crate::end;
use crate::external_actors::{EXTERNAL_USER, interfere};
use crate::laws::{LawChecker, is_rolled};
use crate::objects::live;
use crate::scenario::{AgentSpec, Fate, NodeSpec, PodSpec, Scenario};

/// The longest duration of a run, by the cluster's clock.
const LONGEST: Duration = Duration::from_hours(12);

/// The limit of requests of a trial, or of one run of a story: a run that loops for ever ends here.
const MOST_REQUESTS: usize = 20_000;

/// How long the cluster may take to settle after a run.
const SETTLED: Duration = Duration::from_mins(5);

/// The result of a trial.
pub(crate) struct Outcome {
    /// The end of each run that was not killed, in order.
    pub(crate) ended: Vec<(String, Ended)>,
    pub(crate) broken: Vec<String>,
    pub(crate) history: String,
    /// The number of requests of the first run; in a story, of the last one.
    pub(crate) requests: usize,
    /// The number of requests of each run of a story.
    pub(crate) requests_of_runs: Vec<usize>,
    /// The cluster at the end, without names and times.
    pub(crate) state: String,
    /// The pause of the first DaemonSet at the end.
    pub(crate) pause: Option<PausedRollout>,
}

/// The first run's user.
pub(crate) const FIRST: &str = "first";
/// The user of the run that follows a killed one.
const SECOND: &str = "second";
/// The user who starts the same run while the first one is active.
const OTHER: &str = "other";
/// The user of the repeated run.
const AGAIN: &str = "again";

/// The state that the hook and the trial share.
pub(crate) struct Shared {
    pub(crate) checker: LawChecker,
    requests: usize,
    /// The number of requests of all runs; in a story, of one: forty may wait for an hour each.
    all_requests: usize,
    /// The fates of the run that is observed: the first one, or each one of a story.
    fates: Vec<Fate>,
    /// The user of that run.
    user: String,
    /// The users whose runs were killed.
    killed: BTreeSet<String>,
    /// The user whose run may change nothing, because all is done.
    idle: Option<&'static str>,
    /// Notified when a law is broken: the trial then ends.
    over: Arc<Notify>,
}

impl Shared {
    fn has(&self, fate: Fate) -> bool {
        self.fates.contains(&fate)
    }

    /// Counts a request of the program.
    fn count(&mut self) {
        self.all_requests += 1;
        if self.all_requests == MOST_REQUESTS {
            let text = format!("did not end within {MOST_REQUESTS} requests");
            self.checker.broken.push(text);
        }
        self.tell();
    }

    /// Ends the trial if a law is broken.
    pub(crate) fn tell(&self) {
        if !self.checker.broken.is_empty() {
            self.over.notify_one();
        }
    }
}

struct Watcher {
    faults: Option<Box<dyn Hook>>,
    shared: Arc<Mutex<Shared>>,
    death: Arc<Notify>,
    clock: VirtualClock,
    /// The clock offset of each API server.
    clocks: Vec<i64>,
}

impl Watcher {
    fn dies(&self, shared: &mut Shared) -> Vec<Fault> {
        shared.killed.insert(shared.user.clone());
        self.death.notify_one();
        vec![Fault::Silence]
    }

    /// A random API server for this request, if there are several.
    fn answering(&self, number: u64) -> Option<Fault> {
        let off = (!self.clocks.is_empty()).then(|| Dice::new(number).pick(&self.clocks))?;
        Some(Fault::Clock(SignedDuration::from_secs(off)))
    }

    /// The delay of the first run's requests while it is cut off.
    fn cut_off(&self, shared: &Shared) -> Option<Fault> {
        let now = self.clock.elapsed();
        shared.fates.iter().find_map(|fate| match fate {
            Fate::CutOff(from, until) => {
                let [from, until] = [from, until].map(|it| Duration::from_secs(*it));
                (from <= now && now < until).then(|| Fault::Delay(until.saturating_sub(now)))
            }
            _ => None,
        })
    }
}

pub(crate) fn locked(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hook for Watcher {
    fn before(&mut self, request: &Seen, store: &Store) -> Vec<Fault> {
        let mut shared = locked(&self.shared);
        if request.user == EXTERNAL_USER {
            shared.checker.before_others(store, self.clock.now());
            return Vec::new();
        }
        let mut faults = Vec::from_iter(self.answering(request.number));
        if shared.killed.contains(&request.user) {
            return vec![Fault::Silence];
        }
        if request.user == shared.user {
            shared.requests += 1;
            let number = shared.requests;
            if shared.has(Fate::KilledBefore(number)) {
                return self.dies(&mut shared);
            }
            faults.extend(self.cut_off(&shared));
        }
        faults.extend(self.faults.as_mut().into_iter().flat_map(|it| it.before(request, store)));
        shared.checker.before(request, &faults, store, self.clock.now());
        shared.count();
        faults
    }

    fn after(&mut self, request: &Seen, code: u16, store: &Store) -> Vec<Fault> {
        let mut shared = locked(&self.shared);
        shared.checker.after(request, code, store, self.clock.now());
        shared.tell();
        if request.user == EXTERNAL_USER {
            return Vec::new();
        }
        let number = shared.requests;
        if request.user == shared.user && shared.has(Fate::KilledAfter(number)) {
            return self.dies(&mut shared);
        }
        let writes = matches!(request.verb, "create" | "update" | "patch" | "delete");
        if shared.idle == Some(request.user.as_str())
            && writes
            && !request.dry_run
            && is_work(request)
        {
            let text = format!("all was done, but {} sent {:?}", request.user, request.route);
            shared.checker.broken.push(text);
        }
        let after = |faults: &mut Box<dyn Hook>| faults.after(request, code, store);
        let faults = self.faults.as_mut().map(after).unwrap_or_default();
        if faults.is_empty() {
            shared.checker.answered(request, code);
        }
        faults
    }
}

/// Whether a request changes anything except the lock.
fn is_work(request: &Seen) -> bool {
    match &request.route {
        Route::Objects(objects) => objects.kind != Kind::Lease && !is_status(request),
        Route::AccessReview | Route::Version => false,
    }
}

/// Whether a request writes the status of a record, which changes as time passes.
fn is_status(request: &Seen) -> bool {
    let sent: serde_json::Value = serde_json::from_slice(&request.body).unwrap_or_default();
    sent["data"].get("status").is_some() && sent["data"].get("daemonSet").is_none()
}

/// Runs a scenario; a killed run is followed by another one. Without faults, a run without a
/// controller must end in the same state as one with a controller.
pub(crate) fn run(scenario: &Scenario) -> Outcome {
    let mut outcome = alone(scenario);
    if scenario.managed && has_twin(scenario) {
        let twin = alone(&Scenario { managed: false, ..scenario.clone() });
        let exits = |it: &Outcome| it.ended.iter().map(|(_, it)| it.exit).collect::<Vec<_>>();
        // A blocked run does nothing, but a controller still creates missing pods.
        let is_done = exits(&outcome).last() == Some(&Exit::Done);
        if exits(&twin) != exits(&outcome) || (is_done && twin.state != outcome.state) {
            let (ended, state) = (twin.ended, twin.state);
            let now = &outcome.state;
            outcome.broken.push(format!("{now}\nwith a controller {ended:?}, and\n{state}"));
        }
    }
    outcome
}

/// Whether a scenario ends in the same state with and without a controller.
fn has_twin(scenario: &Scenario) -> bool {
    let is_calm = scenario.is_quiet() && scenario.fates.iter().all(|it| *it == Fate::Again);
    let by_hand = |agent: &AgentSpec| agent.strategy["type"] == "OnDelete";
    let surges = |agent: &AgentSpec| !by_hand(agent) && !is_rolled(&agent.strategy);
    let is_unready = scenario.nodes.iter().any(|node| node.pod == PodSpec::Unready);
    let is_alike = |node: &NodeSpec| match node.pod {
        // With `OnDelete`, a pod that the controller created first has the old template and keeps
        // it. And a run that creates pods watches all pods, whereas a controller may have created
        // them before the run, which then has nothing to do.
        PodSpec::Missing => !scenario.agents.iter().any(by_hand) && !is_unready,
        // A controller counts an orphan as updated if its template generation matches, and a surge
        // does not replace it; a record has no template generation.
        PodSpec::Orphan => !scenario.agents.iter().any(surges),
        // While a controller waits for a young pod to be available, it forgets to wait for the new
        // one (`surge-over-young` of the scenarios that are also played on a real cluster).
        PodSpec::Young => !scenario.agents.iter().any(|it| surges(it) && it.min_ready_seconds > 0),
        PodSpec::Available | PodSpec::Unready => true,
    };
    // The pods that a dead node loses depend on the duration of the run.
    scenario.story.is_none()
        && is_calm
        && scenario.nodes.iter().all(|node| node.ready && is_alike(node))
}

/// Runs all plans on this thread: such clusters are too small for several threads.
fn alone(scenario: &Scenario) -> Outcome {
    thread_local! {
        static ALONE: rayon::ThreadPool =
            rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread");
    }
    ALONE.with(|alone| alone.install(|| on_virtual_time(trial(scenario)).expect("a runtime")))
}

/// A cluster, and the runs on it.
struct Trial<'a> {
    scenario: &'a Scenario,
    world: World,
    folder: tempfile::TempDir,
    shared: Arc<Mutex<Shared>>,
    death: Arc<Notify>,
    /// The end of each run, in order.
    ended: Mutex<Vec<(String, Ended)>>,
}

impl<'a> Trial<'a> {
    fn begin(scenario: &'a Scenario) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("agents.yaml"), cluster::manifests(scenario))
            .expect("a folder to write to");
        let faults = serde_json::from_value(scenario.fault_document()).expect("faults");
        let rehearsal = Rehearsal { timings: Timings::default(), faults, seed: scenario.seed };
        let world = World::begin(&cluster::snapshot(scenario), rehearsal).expect("a cluster");
        let checker = LawChecker::new(scenario, &world.server().store());
        let fates = scenario.fates.clone();
        let shared = Shared {
            checker,
            requests: 0,
            all_requests: 0,
            fates,
            user: FIRST.to_owned(),
            killed: BTreeSet::new(),
            idle: None,
            over: Arc::default(),
        };
        let shared = Arc::new(Mutex::new(shared));
        let death = Arc::new(Notify::new());
        world.server().set_hook(Some(Box::new(Watcher {
            faults: world.server().take_hook(),
            shared: Arc::clone(&shared),
            death: Arc::clone(&death),
            clock: world.clock(),
            clocks: scenario.clocks.clone(),
        })));
        let ended = Mutex::new(Vec::new());
        Self { scenario, world, folder, shared, death, ended }
    }

    /// One run of the program.
    async fn apply(&self, user: &str, interrupts: mpsc::Receiver<Interrupt>) {
        let mut line = vec!["-f", "agents.yaml", "--yes", "--keep-going", "--lock-timeout", "10m"];
        line.extend(["--managed-by", self.scenario.managed_by().as_str()]);
        let off = self.scenario.fates.iter().find_map(|fate| match fate {
            Fate::LocalClock(off) => Some(SignedDuration::from_secs(*off)),
            _ => None,
        });
        let (world, folder) = (&self.world, self.folder.path());
        let local = world.clock().now() + off.unwrap_or_default();
        let outside = Outside { local, ask: None };
        let run = ds_apply_within(world, user, folder, interrupts, &line, outside);
        self.ends(user, run).await;
    }

    /// Waits for the end of a run.
    async fn ends(&self, user: &str, run: impl Future<Output = Ended>) {
        let why = match tokio::time::timeout(LONGEST, Bounded::new(run)).await {
            Ok(Ok(ended)) => {
                let store = self.world.server().store();
                let checker = &mut locked(&self.shared).checker;
                checker.ended(user, self.world.clock().now());
                let is_alone = self.scenario.fates.is_empty() && self.scenario.story.is_none();
                // A run that finds nothing to do waits for no lock.
                if is_alone && ended.exit == Exit::Done {
                    let broken = end::not_whole(self.scenario, &store, checker);
                    checker.broken.extend(broken);
                }
                return self.ended().push((user.to_owned(), ended));
            }
            Ok(Err(bounded::Spins { polls })) => {
                format!("loops for ever: it was polled {polls} times at one moment")
            }
            Err(_) => format!("did not end within {} h", LONGEST.as_secs() / 3600),
        };
        locked(&self.shared).checker.broken.push(format!("{user} {why}"));
    }

    fn ended(&self) -> MutexGuard<'_, Vec<(String, Ended)>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first run, unless it is killed.
    async fn first(&self) {
        let (interrupt, interrupts) = mpsc::channel(1);
        let stopped = async {
            for fate in &self.scenario.fates {
                let Fate::Interrupted(at) = fate else { continue };
                sleep(Duration::from_secs(*at)).await;
                locked(&self.shared).checker.interrupt(FIRST);
                let _ = interrupt.send(Interrupt).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = self.death.notified() => {}
            () = stopped => {}
            () = self.apply(FIRST, interrupts) => {}
        }
    }

    /// The concurrent run of another user, if there is one.
    async fn other(&self) {
        let at = self.scenario.fates.iter().find_map(|fate| match fate {
            Fate::Another(at) => Some(*at),
            _ => None,
        });
        if let Some(at) = at {
            sleep(Duration::from_secs(at)).await;
            self.apply(OTHER, mpsc::channel(1).1).await;
        }
    }

    async fn external_actors(&self) {
        let mut external_actors = self.scenario.external_actors.clone();
        external_actors.sort_by_key(|one| one.at);
        for one in external_actors {
            self.world
                .clock()
                .reach(self.world.clock().start() + Duration::from_secs(one.at))
                .await;
            interfere(&self.world, self.scenario, one.what).await;
        }
    }

    /// All runs.
    async fn runs(&self) -> Vec<usize> {
        if let Some(story) = &self.scenario.story {
            return tokio::join!(self.visits(story), self.external_actors()).0;
        }
        tokio::join!(self.first(), self.other(), self.external_actors());
        if locked(&self.shared).killed.contains(FIRST) {
            self.apply(SECOND, mpsc::channel(1).1).await;
        }
        if self.scenario.fates.contains(&Fate::Again) {
            let is_done = self.ended().last().is_some_and(|(_, it)| it.exit == Exit::Done);
            let quiet = self.scenario.is_quiet();
            locked(&self.shared).idle = (is_done && quiet).then_some(AGAIN);
            self.apply(AGAIN, mpsc::channel(1).1).await;
        }
        Vec::new()
    }
}

async fn trial(scenario: &Scenario) -> Outcome {
    let trial = Trial::begin(scenario);
    let over = Arc::clone(&locked(&trial.shared).over);
    let requests_of_runs = tokio::select! {
        biased;
        () = over.notified() => Vec::new(),
        requests = trial.runs() => requests,
    };
    let ended = trial.ended().clone();
    let mut broken: Vec<String> =
        ended.iter().filter_map(|(user, ended)| end::bad_end(scenario, user, ended)).collect();
    let server = trial.world.server();
    broken.extend(end::bad_pause(scenario, &server.store()));
    broken.extend(end::left(scenario, &ended, &server.store()));
    if let Some((_, last)) = ended.last().filter(|(_, last)| last.exit == Exit::Done) {
        debug_assert_eq!(last.errors, Vec::new());
        sleep(SETTLED).await;
        broken.extend(end::not_done(scenario, &server.store(), &locked(&trial.shared).checker));
    } else {
        sleep(SETTLED).await;
    }
    let state = end::state(&server.store());
    let pause = live(scenario.agents[0].name, &server.store())
        .and_then(|live| PausedRollout::of(live).ok().flatten());
    let mut shared = locked(&trial.shared);
    broken.append(&mut shared.checker.broken);
    let history = std::mem::take(&mut shared.checker.history);
    let requests = shared.requests;
    Outcome { ended, broken, history, requests, requests_of_runs, state, pause }
}
