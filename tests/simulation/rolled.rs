//! `ds-apply roll`, as a schedule runs it: another client applies templates under `OnDelete`, requests
//! fail, and runs are killed. Own laws, with own counts: the other ones expect that runs write the
//! DaemonSet.
//!
//! A node is replaced once for each template, within the budget, after the soaks of the steps before its
//! own; and no run ends as done before the soak of the last step is over. Not here: new pods that fail,
//! nodes that are down, approvals, windows, gates.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use daemonset::model::{DaemonSet, NodeName, Pod, Uid};
use ds_plan::{Exit, ds_apply_at};
use embedded::{
    Fault, Hook, Kind, Reason, Rehearsal, Route, Seen, Status, Store, VirtualClock, World,
    on_virtual_time,
};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use crate::cluster::{self, NAMESPACE};
use crate::crash::scenario;
use crate::dice::Dice;
use crate::external_actors::{EXTERNAL_USER, send};
use crate::objects::{is_updated, live, pods};
use crate::scenario::{NodeSpec, Scenario};
use crate::setting;

/// The default number of seeds.
const SEEDS: u64 = 200;

/// A rollout that is not done by then is stuck.
const LONGEST: Duration = Duration::from_hours(4);

/// Times of nodes are whole seconds.
const ROUNDED: SignedDuration = SignedDuration::from_secs(1);

/// The policy. The counts of its steps add up, and the last step has all nodes.
#[derive(Clone, Debug)]
struct Pace {
    nodes: usize,
    max_unavailable: usize,
    min_ready: u64,
    /// The nodes of each step together with those before, and its soak in seconds.
    steps: Vec<(usize, i64)>,
}

impl Pace {
    fn random(dice: &mut Dice) -> Self {
        let nodes = dice.between(3, 9);
        let mut steps = Vec::new();
        let mut count = 0;
        while count < nodes {
            count = if dice.one_in(2) { nodes } else { dice.between(count + 1, nodes) };
            steps.push((usize::try_from(count).unwrap(), dice.pick(&[0, 20, 90, 600])));
        }
        Self {
            nodes: usize::try_from(nodes).unwrap(),
            max_unavailable: usize::try_from(dice.between(1, 3)).unwrap(),
            min_ready: dice.pick(&[0, 0, 15]),
            steps,
        }
    }

    fn json(&self) -> Value {
        let step = |(at, (count, soak)): (usize, &(usize, i64))| json!({"name": format!("step-{at}"), "nodes": count, "soak": format!("{soak}s")});
        json!({
            "apiVersion": "ds-plan.dev/v1alpha1", "kind": "RolloutPolicy",
            "metadata": {"name": "pace"},
            "spec": {
                "selects": {"names": [format!("{NAMESPACE}/agent")]},
                "maxUnavailable": self.max_unavailable, "minReadySeconds": self.min_ready,
                "steps": self.steps.iter().enumerate().map(step).collect::<Vec<_>>(),
            },
        })
    }

    /// The first step that is not over, of those that have at most `until` nodes; `new` are the times since
    /// which the new pods are up.
    fn not_over(&self, mut new: Vec<Timestamp>, until: usize, now: Timestamp) -> Option<usize> {
        new.sort();
        let mut earlier = self.steps.iter().filter(|(count, _)| *count <= until);
        let is_over = |(count, soak): &(usize, i64)| {
            let complete = new.get(count - 1);
            let soak = SignedDuration::from_secs(*soak);
            complete.is_some_and(|at| at.duration_until(now) + ROUNDED >= soak)
        };
        earlier.find(|step| !is_over(step)).map(|(count, _)| *count)
    }
}

/// What the runs may do, and what they have done.
struct Laws {
    clock: VirtualClock,
    pace: Pace,
    dice: Dice,
    /// Whether requests fail.
    has_faults: bool,
    /// The nodes whose old pod was deleted, for the live template, with that pod. A delete whose answer was
    /// lost is sent again.
    begun: BTreeMap<NodeName, Uid>,
    killed: BTreeSet<String>,
    broken: Vec<String>,
}

impl Laws {
    fn fault(&mut self) -> Option<Fault> {
        if !self.has_faults || !self.dice.one_in(25) {
            return None;
        }
        let busy = Fault::Answer(Status::new(Reason::TooManyRequests, "too many requests"));
        let late = Fault::Delay(Duration::from_secs(self.dice.between(1, 40)));
        Some(self.dice.pick(&[busy, Fault::Break, late, Fault::CutAfter(Duration::from_secs(9))]))
    }

    /// The law that is broken by the delete of this pod.
    fn judge(&self, pod: &Pod, live: &DaemonSet, store: &Store) -> Option<String> {
        let node = pod.node()?;
        if is_updated(pod, live, store) {
            return Some(format!("the new pod of {node} is deleted"));
        }
        if let Some(before) = self.begun.get(node) {
            return (*before != pod.uid).then(|| format!("{node} is replaced twice"));
        }
        let own = pods(store).filter(|it| it.name.as_str().starts_with("agent"));
        let is_up = |it: &&Pod| it.is_ready() && !it.terminating && it.node() != Some(node);
        let down = self.pace.nodes - 1 - own.filter(is_up).count();
        if pod.is_ready() && down >= self.pace.max_unavailable {
            return Some(format!("{down} other nodes are down while {node} begins"));
        }
        let new = new_since(live, store);
        let step = self.pace.not_over(new, self.begun.len(), self.clock.now())?;
        Some(format!("{node} begins before the step of {step} nodes is over"))
    }

    /// The law that is broken if the rollout is done now.
    fn judge_end(&self, store: &Store) -> Option<String> {
        let live = live("agent", store)?;
        let new = new_since(live, store);
        if new.len() < self.pace.nodes {
            return Some(format!("it is done with {} of {} nodes", new.len(), self.pace.nodes));
        }
        let step = self.pace.not_over(new, self.pace.nodes, self.clock.now())?;
        Some(format!("it is done before the step of {step} nodes is over"))
    }
}

/// The times since which the new pods are up.
fn new_since(live: &DaemonSet, store: &Store) -> Vec<Timestamp> {
    let new = pods(store).filter(|it| is_updated(it, live, store));
    new.filter_map(Pod::up_since).map(Timestamp::from).collect()
}

struct Watcher(Arc<Mutex<Laws>>);

/// The pod that a request deletes.
fn deleted<'s>(request: &Seen, store: &'s Store) -> Option<&'s Pod> {
    let Route::Objects(it) = &request.route else { return None };
    let is_delete = request.verb == "delete" && it.kind == Kind::Pod && !request.dry_run;
    is_delete.then(|| pods(store).find(|pod| *pod.name.as_str() == *it.name)).flatten()
}

impl Hook for Watcher {
    fn before(&mut self, request: &Seen, store: &Store) -> Vec<Fault> {
        let laws = &mut *self.0.lock().unwrap();
        if laws.killed.contains(&request.user) {
            return vec![Fault::Silence];
        }
        if !request.user.starts_with("roll") {
            return Vec::new();
        }
        let fault = laws.fault();
        let arrives = !matches!(fault, Some(Fault::Answer(_) | Fault::Break));
        if let (Some(pod), Some(live)) = (deleted(request, store), live("agent", store))
            && arrives
            && !pod.terminating
        {
            let found = laws.judge(pod, live, store);
            let at = laws.clock.elapsed().as_secs();
            laws.broken.extend(found.map(|law| format!("{at} s, {}: {law}", request.user)));
            laws.begun.extend(pod.node().map(|node| (node.clone(), pod.uid.clone())));
        }
        fault.into_iter().collect()
    }
}

/// Another client applies an image.
async fn sync(world: &World, laws: &Mutex<Laws>, image: u64) {
    laws.lock().unwrap().begun.clear();
    let image = format!("registry.example/agent:{image}");
    let containers = json!([{"name": "main", "image": image, "env": []}]);
    let patch = json!({"spec": {"template": {"spec": {"containers": containers}}}});
    let object = format!("/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/agent");
    send(world.server().as_user(EXTERNAL_USER), "PATCH", &object, &patch).await;
}

fn fleet(nodes: usize) -> Scenario {
    let calm = scenario("by hand");
    let node = |at| NodeSpec { name: format!("node-{at}"), ..calm.nodes[0].clone() };
    Scenario { nodes: (0..nodes).map(node).collect(), policy: None, ..calm.clone() }
}

/// The laws that the runs of a seed break, and how each run has ended.
fn rolled(seed: u64) -> (Vec<String>, Vec<Option<Exit>>) {
    let mut dice = Dice::new(seed);
    let pace = Pace::random(&mut dice);
    let [has_faults, kills, changes] = [0; 3].map(|_| dice.one_in(2));
    let interval = Duration::from_secs(dice.pick(&[15, 60, 300]));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("policy.yaml"), pace.json().to_string()).unwrap();
    let snapshot = cluster::snapshot(&fleet(pace.nodes));
    on_virtual_time(async {
        let world = World::begin(&snapshot, Rehearsal { seed, ..Rehearsal::default() }).unwrap();
        let laws = Laws {
            clock: world.clock(),
            pace,
            dice: Dice::new(seed ^ 1),
            has_faults,
            begun: BTreeMap::new(),
            killed: BTreeSet::new(),
            broken: Vec::new(),
        };
        let laws = Arc::new(Mutex::new(laws));
        world.server().set_hook(Some(Box::new(Watcher(Arc::clone(&laws)))));
        sync(&world, &laws, 2).await;
        let mut exits = Vec::new();
        let name = format!("{NAMESPACE}/agent");
        let line = ["roll", &name, "--yes", "--policy", "policy.yaml", "--lock-timeout", "5m"];
        while world.clock().elapsed() < LONGEST && exits.last() != Some(&Some(Exit::Done)) {
            sleep(interval).await;
            if changes && exits.len() == 2 {
                sync(&world, &laws, 3).await;
            }
            let user = format!("roll-{:02}", exits.len());
            let limit = if kills && dice.one_in(3) { dice.between(1, 60) } else { 100_000 };
            let run = ds_apply_at(&world, &user, folder.path(), mpsc::channel(1).1, &line);
            let ended = timeout(Duration::from_secs(limit), run).await.ok();
            let laws = &mut *laws.lock().unwrap();
            if ended.is_none() {
                laws.killed.insert(user.clone());
            }
            exits.push(ended.map(|ended| ended.exit));
            if exits.last() == Some(&Some(Exit::Done)) {
                let found = laws.judge_end(&world.server().store());
                laws.broken.extend(found.map(|law| format!("{user}: {law}")));
            }
            if !laws.broken.is_empty() {
                break;
            }
        }
        let mut broken = std::mem::take(&mut laws.lock().unwrap().broken);
        let is_done = exits.last() == Some(&Some(Exit::Done));
        broken.extend((broken.is_empty() && !is_done).then(|| "it is stuck".to_owned()));
        (broken, exits)
    })
    .unwrap()
}

#[test]
fn a_roll_by_schedule_keeps_to_its_policy() {
    let first = setting("SIMULATION_FROM", 0);
    let seeds = first..first + setting("SIMULATION_SEEDS", SEEDS);
    let mut waits = 0;
    for seed in seeds.clone() {
        let (broken, exits) = rolled(seed);
        assert!(broken.is_empty(), "seed {seed}: {broken:#?}, runs: {exits:?}");
        waits += exits.iter().filter(|exit| **exit == Some(Exit::Waiting)).count();
    }
    // Otherwise hardly any soak was longer than a run.
    assert!(waits as u64 > seeds.end - seeds.start, "{waits}");
}
