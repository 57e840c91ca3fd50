//! A story: several commits of one DaemonSet under a policy with steps, or of several with a shared
//! budget, and the runs that roll them out, one after the other. Between and during the runs, people
//! approve steps, edit the policy and lose notes.

use std::fmt;

use serde_json::{Value, json};

use crate::checks::Checks;
use crate::dice::Dice;
use crate::rules::Rules;
use crate::scenario::{AgentSpec, Change, NodeSpec, PodSpec, Scenario};

/// Commits, and the runs that roll them out.
#[derive(Clone, Debug)]
pub(crate) struct Story {
    /// The policy at the beginning.
    pub(crate) rules: Rules,
    /// What happens, and when, in seconds after the beginning.
    pub(crate) events: Vec<(u64, Turn)>,
    pub(crate) kills: Vec<Kill>,
    /// Ctrl-C: the number of the run, and the seconds after its beginning.
    pub(crate) interrupts: Vec<(usize, u64)>,
    /// `--wait`, in seconds.
    pub(crate) wait: Option<u64>,
    /// Seconds between the end of a run and the next one.
    pub(crate) interval: u64,
    /// Seconds after which a person approves what a run asks for; nobody does if it is `None`.
    pub(crate) approves_after: Option<u64>,
    /// How far the clock of the machine that runs the program is off, in seconds.
    pub(crate) local_clock: i64,
    /// The time at the beginning, if it matters.
    pub(crate) start: Option<&'static str>,
    /// The limit of runs after the last event: a story that has not ended by then is stuck.
    pub(crate) most_runs: usize,
}

/// An event of a story.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Turn {
    /// A commit with this image.
    Commit(u32),
    /// The soak of a step becomes one second longer.
    EditStep(usize),
    /// Somebody writes an approval.
    Approve(usize, Given),
    /// The note about the steps is removed from the lease, unless a run is active.
    LoseNote,
}

/// What an approval is given for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// The commit as it is then.
    Right,
    /// Another image.
    Image(u32),
    /// The step with another soak.
    OtherStep,
    /// A DaemonSet with another uid.
    OtherUid,
}

/// The run of this number is killed at its request of this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kill {
    pub(crate) run: usize,
    pub(crate) request: usize,
    /// Whether the request is executed.
    pub(crate) after: bool,
}

/// The default limit of runs, beside those that only soak.
pub(crate) const MOST_RUNS: usize = 40;

/// The images that commits have; 1 is that of the beginning.
pub(crate) const IMAGES: [u32; 4] = [1, 2, 3, 4];

impl Story {
    /// A random one.
    fn random(scenario: &Scenario, dice: &mut Dice) -> Self {
        let names: Vec<String> = scenario.nodes.iter().map(|node| node.name.clone()).collect();
        let rules = Rules::random(&names, scenario.managed, dice);
        let mut events = Vec::new();
        let steps = rules.steps.len();
        for _ in 0..dice.between(0, 5) {
            let at = dice.pick(&[30, 120, 600, 1_800, 4_000]);
            events.push((dice.between(at / 10, at), Turn::random(steps, scenario.managed, dice)));
        }
        events.sort_by_key(|(at, _)| *at);
        let kill = |dice: &mut Dice| Kill {
            run: usize::try_from(dice.between(0, 4)).expect("a small number"),
            request: usize::try_from(dice.between(1, 90)).expect("a small number"),
            after: dice.one_in(2),
        };
        let mut story = Self {
            rules,
            events,
            kills: (0..dice.between(0, 5).saturating_sub(2)).map(|_| kill(dice)).collect(),
            interrupts: Vec::new(),
            wait: dice.pick(&[None, None, Some(100), Some(3_600)]),
            interval: dice.pick(&[35, 150, 900]),
            approves_after: dice.pick(&[None, Some(5), Some(50), Some(700)]),
            local_clock: dice.pick(&[0, 0, 86_400, -86_400]),
            start: None,
            most_runs: MOST_RUNS,
        };
        let in_soaks = story.rules.longest_soaks() / story.interval;
        story.most_runs += usize::try_from(in_soaks).expect("a small number");
        story
    }

    /// Whether each rollout must end done, if enough runs try: nothing fails, somebody approves, and
    /// no run comes at the wrong time.
    pub(crate) fn is_benign(&self) -> bool {
        let Rules { steps, window, exclusion, others, .. } = &self.rules;
        let is_always_open = window.is_none() && exclusion.is_none();
        let asks = steps.iter().any(|step| step.approve);
        let is_approved = !asks || self.approves_after.is_some();
        let passes = self.rules.checks.as_ref().is_none_or(Checks::always_pass);
        is_approved && is_always_open && passes && others.get("maxDuration").is_none()
    }

    /// The number of parts that can be left out.
    pub(crate) fn parts(&self) -> usize {
        self.events.len() + self.kills.len() + self.interrupts.len() + 8
    }

    /// Leaves out the parts for which `stays` says no.
    pub(crate) fn reduce(&mut self, mut stays: impl FnMut() -> bool) {
        self.events.retain(|_| stays());
        self.kills.retain(|_| stays());
        self.interrupts.retain(|_| stays());
        if !stays() {
            self.wait = None;
        }
        if !stays() {
            self.local_clock = 0;
        }
        if !stays() {
            self.rules.domains = None;
        }
        if !stays() {
            self.rules.window = None;
        }
        if !stays() {
            self.rules.exclusion = None;
        }
        if !stays() {
            self.rules.steps.clear();
        }
        if !stays() {
            self.rules.checks = None;
        }
        if !stays() {
            self.rules.pulls_for = None;
        }
    }
}

impl Turn {
    fn random(steps: usize, managed: bool, dice: &mut Dice) -> Self {
        let last = u64::try_from(steps.saturating_sub(1)).expect("a small number");
        let step = |dice: &mut Dice| usize::try_from(dice.between(0, last)).expect("small");
        let given = |dice: &mut Dice| match dice.between(0, 5) {
            0..=2 => Given::Right,
            3 => Given::Image(dice.pick(&IMAGES)),
            4 => Given::OtherStep,
            _ => Given::OtherUid,
        };
        match dice.between(0, 9) {
            0..=3 => Self::Commit(dice.pick(&IMAGES)),
            4 => Self::EditStep(step(dice)),
            5 => Self::LoseNote,
            _ if managed => Self::LoseNote,
            _ => Self::Approve(step(dice), given(dice)),
        }
    }
}

impl Scenario {
    /// The scenario with a random story, for which its faults and people become simpler.
    pub(crate) fn with_story(mut self, dice: &mut Dice) -> Self {
        use crate::scenario::What::{Label, Pod};
        self.agents.truncate(1);
        let agent = &mut self.agents[0];
        (agent.change, agent.live, agent.pool) = (Change::Image, true, None);
        agent.strategy = rolling(dice);
        agent.min_ready_seconds = dice.pick(&[0, 0, 5]);
        for node in &mut self.nodes {
            let NodeSpec { pod, .. } = node;
            if *pod == PodSpec::Orphan {
                *pod = PodSpec::Available;
            }
        }
        self.policy = None;
        self.external_actors.retain(|it| matches!(it.what, Label | Pod));
        self.fates.clear();
        self.clocks.clear();
        if dice.one_in(2) {
            self.faults.retain(|(list, _)| *list != "api");
        }
        self.story = Some(Story::random(&self, dice));
        if dice.one_in(3) {
            self.with_siblings(dice);
        }
        self
    }

    /// Gives a story checks and pulls. They have dice of their own: everything else stays as it was.
    pub(crate) fn with_checks(&mut self, dice: &mut Dice) {
        let names: Vec<String> = self.nodes.iter().map(|node| node.name.clone()).collect();
        let start = crate::cluster::start(self).as_second();
        let Some(story) = &mut self.story else { return };
        if dice.one_in(2) {
            story.rules.checks = Some(Checks::random(&names, start, dice));
        }
        // The two do not go together.
        if dice.one_in(4) && story.rules.shared_budget.is_none() {
            story.rules.pulls_for = Some(dice.pick(&[5, 60, 60, 120]));
        }
    }

    /// Adds DaemonSets that share a budget with the first one, and what may happen to their run.
    fn with_siblings(&mut self, dice: &mut Dice) {
        use crate::scenario::{Interference, What};
        let count = usize::try_from(dice.between(1, 2)).expect("a small number");
        for name in ["probe", "relay"].into_iter().take(count) {
            let mut sibling = AgentSpec { name, ..self.agents[0].clone() };
            sibling.strategy = rolling(dice);
            sibling.min_ready_seconds = dice.pick(&[0, 0, 5]);
            sibling.tolerates = dice.one_in(3);
            sibling.probed = dice.one_in(2);
            self.agents.push(sibling);
        }
        if dice.one_in(4) {
            // Only slow requests: one that loses its lock has to stop soon.
            self.faults.retain(|(list, _)| *list != "api");
            let at = dice.between(1, 400);
            self.external_actors.push(Interference { at, what: What::Unlock });
        }
        let Some(story) = &mut self.story else { return };
        story.rules.shared_budget = Some(dice.pick(&[json!(1), json!(1), json!(2), json!("30%")]));
        if dice.one_in(2) {
            let Rules { steps, domains, window, exclusion, .. } = &mut story.rules;
            steps.clear();
            (*domains, *window, *exclusion) = (None, None, None);
        }
        if dice.one_in(3) {
            let run = usize::try_from(dice.between(0, 2)).expect("a small number");
            story.interrupts.push((run, dice.between(1, 90)));
        }
    }
}

/// A strategy that deletes first.
fn rolling(dice: &mut Dice) -> Value {
    let limit = dice.pick(&[json!(1), json!(2), json!("40%")]);
    json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": limit}})
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rules, events, kills, interrupts, wait, interval, approves_after, .. } = self;
        let Self { local_clock, .. } = self;
        writeln!(f, "  {rules:?}")?;
        writeln!(
            f,
            "  wait {wait:?}, again after {interval} s, approves after {approves_after:?}"
        )?;
        writeln!(f, "  local clock {local_clock} s off")?;
        events.iter().try_for_each(|event| writeln!(f, "  {event:?}"))?;
        kills.iter().try_for_each(|kill| writeln!(f, "  {kill:?}"))?;
        let ctrl_c = |(run, at): &(usize, u64)| writeln!(f, "  Ctrl-C in run {run}, after {at} s");
        interrupts.iter().try_for_each(ctrl_c)
    }
}
