//! One scenario, from its cluster to the end of its run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ds_plan::cli::{Ended, Exit, ds_apply_at};
use ds_plan::simulator::{
    Fault, Hook, Kind, Rehearsal, Seen, Store, Timings, VirtualClock, World, on_virtual_time,
};
use serde_json::json;
use tokio::sync::{Notify, mpsc};

use crate::cluster::{self, NAMESPACE};
use crate::laws::{Ledger, desired_nodes, is_updated, pods};
use crate::scenario::{Change, Scenario};

/// No run may last longer, by the cluster's clock.
const LONGEST: Duration = Duration::from_hours(12);

/// How long everything else may take to settle after a run.
const SETTLED: Duration = Duration::from_mins(5);

/// Where a run is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kill {
    /// Before its request of this number is carried out.
    Before(usize),
    /// After that, before it hears the answer.
    After(usize),
}

/// What came of a trial.
pub(crate) struct Outcome {
    /// How the run ended; `None` when it was killed.
    pub(crate) ended: Option<Ended>,
    /// How the one after it ended, if there was one.
    pub(crate) again: Option<Ended>,
    pub(crate) broken: Vec<String>,
    pub(crate) history: String,
    /// How many requests the first run made.
    pub(crate) requests: usize,
    /// The cluster at the end, without names and times.
    pub(crate) state: String,
}

/// What the hook shares with the trial.
struct Shared {
    ledger: Ledger,
    requests: usize,
    kill: Option<Kill>,
    killed: bool,
}

struct Watcher {
    faults: Option<Box<dyn Hook>>,
    shared: Arc<Mutex<Shared>>,
    death: Arc<Notify>,
    clock: VirtualClock,
}

/// The user of the run that may be killed.
const FIRST: &str = "first";
/// The user of the one after it.
const SECOND: &str = "second";

impl Watcher {
    fn dies(&self, shared: &mut Shared) -> Vec<Fault> {
        shared.killed = true;
        self.death.notify_one();
        vec![Fault::Silence]
    }
}

fn locked(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hook for Watcher {
    fn before(&mut self, request: &Seen, store: &Store) -> Vec<Fault> {
        let mut shared = locked(&self.shared);
        if request.user == FIRST {
            if shared.killed {
                return vec![Fault::Silence];
            }
            shared.requests += 1;
            if shared.kill == Some(Kill::Before(shared.requests)) {
                return self.dies(&mut shared);
            }
        }
        drop(shared);
        self.faults.as_mut().map(|faults| faults.before(request, store)).unwrap_or_default()
    }

    fn after(&mut self, request: &Seen, code: u16, store: &Store) -> Vec<Fault> {
        let mut shared = locked(&self.shared);
        shared.ledger.after(request, code, store, self.clock.now());
        if request.user == FIRST && shared.kill == Some(Kill::After(shared.requests)) {
            return self.dies(&mut shared);
        }
        drop(shared);
        self.faults.as_mut().map(|faults| faults.after(request, code, store)).unwrap_or_default()
    }
}

/// Runs a scenario; a run that is killed is followed by another one.
pub(crate) fn run(scenario: &Scenario, kill: Option<Kill>) -> Outcome {
    on_virtual_time(trial(scenario, kill)).expect("a runtime")
}

async fn trial(scenario: &Scenario, kill: Option<Kill>) -> Outcome {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("agents.yaml"), cluster::manifests(scenario))
        .expect("a folder to write to");
    let faults = serde_json::from_value(scenario.fault_document()).expect("faults");
    let rehearsal = Rehearsal { timings: Timings::default(), faults, seed: scenario.seed };
    let world = World::begin(&cluster::snapshot(scenario), rehearsal).expect("a cluster");
    let ledger = Ledger::new(scenario, &world.server().store());
    let shared = Shared { ledger, requests: 0, kill, killed: false };
    let shared = Arc::new(Mutex::new(shared));
    let death = Arc::new(Notify::new());
    world.server().set_hook(Some(Box::new(Watcher {
        faults: world.server().take_hook(),
        shared: Arc::clone(&shared),
        death: Arc::clone(&death),
        clock: world.clock(),
    })));
    let apply = async |user| {
        let (_interrupt, interrupts) = mpsc::channel(1);
        let line = ["-f", "agents.yaml", "--yes", "--keep-going", "--lock-timeout", "10m"];
        let run = ds_apply_at(&world, user, folder.path(), interrupts, &line);
        tokio::time::timeout(LONGEST, run).await
    };
    let first = tokio::select! {
        biased;
        () = death.notified() => None,
        ended = apply(FIRST) => Some(ended),
    };
    let mut broken = Vec::new();
    let mut in_time = |ended: Result<Ended, tokio::time::error::Elapsed>| {
        if ended.is_err() {
            broken.push("the run has no end".to_owned());
        }
        ended.ok()
    };
    let ended = first.and_then(&mut in_time);
    let again = if locked(&shared).killed { in_time(apply(SECOND).await) } else { None };
    let last = again.as_ref().or(ended.as_ref());
    if let Some(last) = last {
        broken.extend(bad_end(scenario, last));
        tokio::time::sleep(SETTLED).await;
        if last.exit == Exit::Done {
            broken.extend(not_done(scenario, &world.server().store()));
        }
    }
    let state = state(&world.server().store());
    let mut shared = locked(&shared);
    broken.append(&mut shared.ledger.broken);
    Outcome {
        ended,
        again,
        broken,
        history: std::mem::take(&mut shared.ledger.history),
        requests: shared.requests,
        state,
    }
}

/// A run ends in one of the ways that have a name.
fn bad_end(scenario: &Scenario, ended: &Ended) -> Option<String> {
    match ended.exit {
        Exit::Done | Exit::Held | Exit::Stale | Exit::Refused | Exit::Locked => None,
        Exit::Failed if scenario.api_fails() => None,
        Exit::Changes
        | Exit::Drift
        | Exit::Failed
        | Exit::Usage
        | Exit::Interrupted
        | Exit::Terminated => Some(format!("the run ended with {ended:?}")),
    }
}

/// What is not as it should be after a run that says that all is done.
fn not_done(scenario: &Scenario, store: &Store) -> Vec<String> {
    let quiet = scenario.faults.iter().all(|(list, _)| *list == "api");
    let mut broken = Vec::new();
    for agent in &scenario.agents {
        if let Some(pod) = pods(store).find(|pod| pod.controller.is_none() && quiet) {
            broken.push(format!("done, and {} is still nobody's", pod.name));
        }
        let Some(object) = store.get(Kind::DaemonSet, NAMESPACE, agent.name) else {
            broken.push(format!("done, and {} is not there", agent.name));
            continue;
        };
        let Some(live) = object.daemon_set() else { continue };
        let image = &live.raw["spec"]["template"]["spec"]["containers"][0]["image"];
        if agent.change == Change::Image && *image != "registry.example/agent:2" {
            broken.push(format!("done, and {} has the image {image}", agent.name));
        }
        if agent.strategy["type"] != "OnDelete"
            && live.spec.update_strategy == ds_plan::model::UpdateStrategy::OnDelete
        {
            broken.push(format!("done, and {} is held", agent.name));
        }
        if agent.strategy["type"] == "OnDelete" || !quiet {
            continue;
        }
        for node in desired_nodes(live, store).filter(|node| node.readiness.is_ready()) {
            let here = pods(store).filter(|pod| {
                pod.node() == Some(&node.name)
                    && pod.controller.as_ref().is_some_and(|it| it.uid == live.uid)
            });
            if !here.into_iter().all(|pod| {
                // What is not to be changed stays as it was, Ready or not.
                let ready = pod.is_ready() || agent.change == Change::Nothing;
                ready && is_updated(pod, live, store)
            }) {
                broken.push(format!("done, and {} is not new on {}", agent.name, node.name));
            }
        }
    }
    broken
}

/// What two ways to the same end must agree on.
fn state(store: &Store) -> String {
    let daemon_sets = store.objects(Kind::DaemonSet, Some(NAMESPACE)).filter_map(|object| {
        let live = object.daemon_set()?;
        let mut pods: Vec<String> = pods(store)
            .filter(|pod| pod.controller.as_ref().is_some_and(|it| it.uid == live.uid))
            .map(|pod| {
                let node = pod.node().map(ToString::to_string).unwrap_or_default();
                format!("{node} {:?} {}", pod.revision_hash(), pod.is_ready())
            })
            .collect();
        pods.sort();
        let owned = |object: &&Arc<ds_plan::simulator::Object>| {
            object.meta().owners.iter().any(|owner| owner.uid == live.uid)
        };
        let revisions: Vec<_> = store
            .objects(Kind::ControllerRevision, Some(NAMESPACE))
            .filter(owned)
            .filter_map(|it| it.revision())
            .map(|it| json!({"number": it.number, "data": *it.data}))
            .collect();
        let held = live.annotations.get(ds_plan::plan::ROLLOUT_ANNOTATION).is_some();
        let spec = &live.raw["spec"];
        Some(json!({"spec": spec, "held": held, "pods": pods, "revisions": revisions}))
    });
    let daemon_sets: Vec<String> = daemon_sets.map(|it| format!("{it:#}")).collect();
    daemon_sets.join("\n")
}
