//! A random scenario from a seed: a small cluster, a change, and the faults during it.

mod faults;

use std::fmt;

use daemonset::model::ManagedBy;
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::story::Story;
use faults::fault;

pub(crate) use faults::slow_deletes;

/// One node of the cluster, at the beginning.
#[derive(Clone, Debug)]
pub(crate) struct NodeSpec {
    pub(crate) name: String,
    pub(crate) zone: char,
    pub(crate) pool: &'static str,
    pub(crate) ready: bool,
    pub(crate) cordoned: bool,
    pub(crate) tainted: bool,
    /// The state of the agents' pods on it.
    pub(crate) pod: PodSpec,
}

/// The state of a pod at the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodSpec {
    /// Old template, available.
    Available,
    /// Old template, never Ready.
    Unready,
    /// Old template, Ready for less than a minute.
    Young,
    /// No pod.
    Missing,
    /// Old template, without an owner: to be adopted.
    Orphan,
}

/// One DaemonSet, and its change.
#[derive(Clone, Debug)]
pub(crate) struct AgentSpec {
    pub(crate) name: &'static str,
    /// `spec.updateStrategy` as declared, before and after the change.
    pub(crate) strategy: Value,
    pub(crate) min_ready_seconds: u64,
    /// Only nodes of this pool.
    pub(crate) pool: Option<&'static str>,
    pub(crate) change: Change,
    /// Whether it tolerates every taint, as many agents do: only then is a node that is down still
    /// a desired node.
    pub(crate) tolerates: bool,
    /// Whether its container has a readiness probe.
    pub(crate) probed: bool,
    /// Whether it exists at the beginning.
    pub(crate) live: bool,
}

/// The change of a DaemonSet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Image,
    Env,
    Pool,
    /// A struct with fields becomes `{}`: the server drops it on the first apply and stores it on
    /// the next.
    Emptied,
    /// The reverse, with another image: a rollback empties it.
    Filled,
    Nothing,
}

/// A cluster, the DaemonSets, and everything that happens during the run.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) nodes: Vec<NodeSpec>,
    pub(crate) agents: Vec<AgentSpec>,
    /// The `spec` of their policy, if there is one.
    pub(crate) policy: Option<Value>,
    /// Entries of a fault document, each with the list that it belongs to.
    pub(crate) faults: Vec<(&'static str, Value)>,
    /// The changes by other clients during the run.
    pub(crate) external_actors: Vec<Interference>,
    /// Events of the run itself: interrupts, kills, repetitions.
    pub(crate) fates: Vec<Fate>,
    /// Whether no controller acts except the run (`managedBy: ds-apply`).
    pub(crate) managed: bool,
    /// The clock offset of each API server, in seconds; any of them may answer. Empty means one
    /// server with a correct clock.
    pub(crate) clocks: Vec<i64>,
    /// Commits under a policy with steps, in place of one change and its fates.
    pub(crate) story: Option<Story>,
}

/// A change by another client to the first DaemonSet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Interference {
    /// Seconds after the beginning.
    pub(crate) at: u64,
    pub(crate) what: What,
}

/// The changes that other clients make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// `kubectl rollout restart`.
    Restart,
    /// `kubectl set image`.
    Image,
    /// Another strategy, which ends the pause.
    Strategy,
    /// A label that does not matter to anyone.
    Label,
    /// The DaemonSet is deleted.
    Delete,
    /// A pod is deleted.
    Pod,
    /// The lock is taken by force, as `ds-apply unlock --force` does.
    Unlock,
}

/// An event of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Ctrl-C, at this many seconds after the beginning.
    Interrupted(u64),
    /// The run is killed before its request of this number is applied; another run follows.
    KilledBefore(usize),
    /// The same after the request, before the answer arrives.
    KilledAfter(usize),
    /// Requests sent between these two seconds do not arrive, or arrive too late.
    CutOff(u64, u64),
    /// Another user starts the same run, this many seconds after the first.
    Another(u64),
    /// The same run again, after it has ended.
    Again,
    /// The local clock of each run is off by this many seconds.
    #[cfg_attr(not(test), expect(dead_code, reason = "only named tests set it"))]
    LocalClock(i64),
}

/// Distinguishes the dice of checks.
const CHECKS: u64 = 0x63_6865_636b;

/// The image of the new template, if the change sets one.
const NEW: &str = "registry.example/agent:2";

impl Scenario {
    /// The scenario of a seed; its story has checks and pulls, or none.
    pub(crate) fn of(seed: u64, has_checks: bool) -> Self {
        let mut dice = Dice::new(seed);
        let nodes: Vec<NodeSpec> = (0..dice.between(3, 12)).map(|at| node(at, &mut dice)).collect();
        let names = if dice.one_in(4) { &["agent", "probe"][..] } else { &["agent"] };
        let agents = names.iter().map(|name| agent(name, &mut dice)).collect();
        let policy = dice.one_in(2).then(|| policy(&mut dice));
        let mut faults = Vec::new();
        let calm = dice.one_in(4);
        if !calm {
            for _ in 0..dice.between(1, 4) {
                faults.extend(fault(&nodes, &mut dice));
            }
        }
        let external_actors =
            (0..dice.between(0, 9).saturating_sub(7)).map(|_| interference(&mut dice));
        let external_actors = if calm { Vec::new() } else { external_actors.collect() };
        let fates = if calm && dice.one_in(2) { vec![Fate::Again] } else { fates(&mut dice) };
        let mut scenario = Self {
            seed,
            nodes,
            agents,
            policy,
            faults,
            external_actors,
            fates,
            managed: false,
            clocks: Vec::new(),
            story: None,
        };
        for agent in &mut scenario.agents {
            agent.tolerates = dice.one_in(3);
        }
        if dice.one_in(16) {
            scenario.killed_while_rolling_back(&mut dice);
        }
        scenario.managed = dice.one_in(4);
        if dice.one_in(16) {
            scenario.lost_its_lock(&mut dice);
        }
        if dice.one_in(6) {
            scenario.clocks = clocks(&mut dice);
        }
        scenario.careful(&mut dice);
        let mut scenario = if dice.one_in(4) { scenario.with_story(&mut dice) } else { scenario };
        if has_checks {
            scenario.with_checks(&mut Dice::new(seed ^ CHECKS));
        }
        scenario
    }

    /// Adds probes, `minReadySeconds` and crashing pods.
    fn careful(&mut self, dice: &mut Dice) {
        for agent in &mut self.agents {
            agent.probed = dice.one_in(2);
        }
        if dice.one_in(3) {
            let policy = self.policy.get_or_insert_with(|| json!({}));
            policy["minReadySeconds"] = dice.pick(&[0, 3, 15]).into();
        }
        if dice.one_in(4) {
            self.policy.get_or_insert_with(|| json!({}))["ramp"] = "none".into();
        }
        for (_, fault) in self.faults.iter_mut().filter(|(_, it)| it["fault"] == "crashLoops") {
            fault["after"] = dice.pick(&["0s", "1s", "3s", "8s", "20s", "2m"]).into();
        }
    }

    /// Adds a combination that is rare at random: slow deletes, and a lock that is taken by force.
    fn lost_its_lock(&mut self, dice: &mut Dice) {
        self.agents.truncate(1);
        self.agents[0].change = Change::Image;
        self.faults.retain(|(list, _)| *list != "api");
        self.faults.push(("api", slow_deletes(dice.pick(&["3s", "9s", "25s"]))));
        let at = dice.between(1, 90);
        self.external_actors = vec![Interference { at, what: What::Unlock }];
        self.fates.retain(|fate| matches!(fate, Fate::Interrupted(_)));
        if dice.one_in(3) {
            self.fates = vec![Fate::Interrupted(at + dice.between(0, 12))];
        }
    }

    /// Adds a combination that is rare at random: an image that fails, its rollback, and a run that
    /// is killed during it.
    fn killed_while_rolling_back(&mut self, dice: &mut Dice) {
        self.agents.truncate(1);
        self.agents[0].change = Change::Image;
        self.policy = Some(json!({"onFailure": "rollback", "progressDeadline": "1m"}));
        let bad = json!({"fault": "neverPulls", "image": NEW, "nodes": {"names": []}});
        self.faults = vec![("images", bad)];
        self.external_actors.clear();
        self.fates = vec![Fate::KilledAfter(usize::try_from(dice.between(40, 90)).unwrap())];
    }

    /// The scenario without the parts of these numbers; `None` if nothing is left to test.
    pub(crate) fn without(&self, left_out: &[usize]) -> Option<Self> {
        let mut at = 0;
        let mut stays = || {
            at += 1;
            !left_out.contains(&(at - 1))
        };
        let mut less = self.clone();
        less.fates.retain(|_| stays());
        less.external_actors.retain(|_| stays());
        less.faults.retain(|_| stays());
        less.nodes.retain(|_| stays());
        less.agents.retain(|_| stays());
        if !stays() {
            less.policy = None;
        }
        if !stays() {
            less.managed = false;
        }
        if !stays() {
            less.clocks.clear();
        }
        if let Some(story) = &mut less.story {
            story.reduce(stays);
        }
        (!less.nodes.is_empty() && !less.agents.is_empty()).then_some(less)
    }

    /// The number of parts that can be left out.
    pub(crate) fn parts(&self) -> usize {
        let Self { seed: _, nodes, agents, policy: _, faults, external_actors, fates, .. } = self;
        let of_story = self.story.as_ref().map_or(0, Story::parts);
        let lists = fates.len() + external_actors.len() + faults.len() + nodes.len();
        lists + agents.len() + 3 + of_story
    }

    /// The controller of the DaemonSets.
    pub(crate) fn managed_by(&self) -> ManagedBy {
        if self.managed { ManagedBy::DsApply } else { ManagedBy::DaemonSetController }
    }

    /// Whether requests may fail, and so the run.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.faults.iter().any(|(list, _)| *list == "api")
            || self.fates.iter().any(|fate| matches!(fate, Fate::CutOff(..)))
    }

    /// Whether only the API has faults: none of nodes, images or the controller.
    pub(crate) fn faults_are_of_api(&self) -> bool {
        self.faults.iter().all(|(list, _)| *list == "api")
    }

    /// Whether there are no faults at all.
    pub(crate) fn is_quiet(&self) -> bool {
        self.faults.is_empty() && self.external_actors.is_empty() && self.clocks.is_empty()
    }

    /// The nodes that join: the seconds after the beginning, and the name.
    pub(crate) fn joining(&self) -> impl Iterator<Item = (u64, &str)> {
        self.faults.iter().filter(|(_, fault)| fault["event"] == "added").map(|(_, fault)| {
            let at = fault["at"].as_str().and_then(|at| at.strip_suffix('s')?.parse().ok());
            (at.expect("seconds"), fault["name"].as_str().expect("a name"))
        })
    }

    /// The fault document.
    pub(crate) fn fault_document(&self) -> Value {
        let mut document = json!({"apiVersion": "ds-plan.dev/v1alpha1", "kind": "Faults"});
        for (list, fault) in &self.faults {
            match document[*list].as_array_mut() {
                Some(all) => all.push(fault.clone()),
                None => document[*list] = json!([fault]),
            }
        }
        document
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seed, nodes, agents, policy, faults, external_actors, fates, managed, .. } =
            self;
        let Self { clocks, story, .. } = self;
        writeln!(f, "seed {seed}{}", if *managed { ", managed by ds-apply" } else { "" })?;
        nodes.iter().try_for_each(|node| writeln!(f, "  {node:?}"))?;
        agents.iter().try_for_each(|agent| writeln!(f, "  {agent:?}"))?;
        policy.iter().try_for_each(|policy| writeln!(f, "  policy {policy}"))?;
        external_actors.iter().try_for_each(|one| writeln!(f, "  {one:?}"))?;
        fates.iter().try_for_each(|fate| writeln!(f, "  {fate:?}"))?;
        if !clocks.is_empty() {
            writeln!(f, "  clocks {clocks:?}")?;
        }
        story.iter().try_for_each(|story| write!(f, "{story}"))?;
        faults.iter().try_for_each(|(list, fault)| writeln!(f, "  {list} {fault}"))
    }
}

fn node(at: u64, dice: &mut Dice) -> NodeSpec {
    use PodSpec::{Available, Missing, Orphan, Unready, Young};
    let well = [Available; 12];
    let pods: Vec<_> = well.into_iter().chain([Unready, Missing, Orphan, Young]).collect();
    NodeSpec {
        name: format!("node-{at:02}"),
        zone: dice.pick(&['a', 'b', 'c']),
        pool: dice.pick(&["blue", "blue", "green"]),
        ready: !dice.one_in(12),
        cordoned: dice.one_in(12),
        tainted: dice.one_in(12),
        pod: dice.pick(&pods),
    }
}

fn agent(name: &'static str, dice: &mut Dice) -> AgentSpec {
    let rolling = |key: &str, value: Value| {
        let mut limits = json!({});
        limits[key] = value;
        json!({"type": "RollingUpdate", "rollingUpdate": limits})
    };
    let strategies = [
        rolling("maxUnavailable", json!(1)),
        rolling("maxUnavailable", json!(2)),
        rolling("maxUnavailable", json!(3)),
        rolling("maxUnavailable", json!("10%")),
        rolling("maxUnavailable", json!("50%")),
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}),
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": "40%"}}),
        json!({"type": "OnDelete"}),
    ];
    AgentSpec {
        name,
        strategy: dice.pick(&strategies),
        min_ready_seconds: dice.pick(&[0, 0, 0, 5, 20, 90]),
        pool: dice.pick(&[None, None, Some("blue")]),
        change: dice.pick(&[
            Change::Image,
            Change::Image,
            Change::Image,
            Change::Env,
            Change::Pool,
            Change::Emptied,
            Change::Filled,
            Change::Nothing,
        ]),
        tolerates: false,
        probed: false,
        live: !dice.one_in(10),
    }
}

fn interference(dice: &mut Dice) -> Interference {
    use What::{Delete, Image, Label, Pod, Restart, Strategy};
    let what = dice.pick(&[Restart, Image, Strategy, Label, Delete, Pod, Pod, Pod]);
    Interference { at: dice.between(1, 120), what }
}

fn fates(dice: &mut Dice) -> Vec<Fate> {
    let at = dice.between(1, 120);
    let number = usize::try_from(dice.between(1, 60)).unwrap();
    match dice.between(0, 11) {
        0 => vec![Fate::Interrupted(at)],
        1 => vec![Fate::KilledBefore(number)],
        2 => vec![Fate::KilledAfter(number)],
        3 => vec![Fate::CutOff(at, at + dice.between(5, 60))],
        4 => vec![Fate::Another(at)],
        5 => vec![Fate::CutOff(at, at + dice.between(20, 90)), Fate::Another(at)],
        6 => vec![Fate::Again],
        _ => Vec::new(),
    }
}

fn policy(dice: &mut Dice) -> Value {
    let mut spec = json!({
        "onFailure": dice.pick(&["abort", "pause", "rollback"]),
        "progressDeadline": dice.pick(&["1m", "3m", "10m"]),
    });
    if dice.one_in(2) {
        spec["maxUnavailable"] = dice.pick(&[json!(1), json!(2), json!("30%")]);
    }
    if dice.one_in(3) {
        spec["skipUnreadyNodes"] = json!({"max": dice.pick(&[json!(1), json!(3), json!("50%")])});
    }
    spec
}

/// Several API servers, some of them with a correct clock.
fn clocks(dice: &mut Dice) -> Vec<i64> {
    let year = 365 * 24 * 3600;
    let off = dice.pick(&[90, 3_600, year, year, -90, -3_600]);
    let right = usize::try_from(dice.between(1, 20)).unwrap();
    std::iter::repeat_n(0, right).chain([off]).collect()
}
