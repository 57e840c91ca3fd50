//! The policy of a roll, and what goes wrong with its new pods and its gate.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::cluster::NAMESPACE;
use crate::dice::Dice;
use crate::rules::WindowRule;

/// Times of nodes are whole seconds.
const ROUNDED: SignedDuration = SignedDuration::from_secs(1);

/// The first image that is applied, which may be bad.
pub(super) const BAD: u64 = 2;

/// The gate of a policy.
pub(super) const GATE: &str = "errors";

/// The policy. The counts of its steps add up, and the last step has all nodes.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    pub(super) nodes: usize,
    pub(super) max_unavailable: usize,
    min_ready: u64,
    pub(super) steps: Vec<Step>,
    pub(super) window: Option<WindowRule>,
    pub(super) gate: Option<Gate>,
    /// The node on which [`BAD`] can never be pulled.
    pub(super) bad_node: Option<u64>,
}

/// A step of a policy.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// Its nodes together with those of the steps before.
    pub(super) count: usize,
    soak: SignedDuration,
    pub(super) approve: bool,
}

/// A gate that is asked over HTTP.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gate {
    /// When it fails, from the beginning on.
    fails: Option<(Duration, Duration)>,
}

impl Gate {
    fn random(dice: &mut Dice) -> Self {
        let begin = Duration::from_secs(dice.pick(&[0, 60, 300, 1_200]));
        let lasts = Duration::from_secs(dice.pick(&[20, 120, 900]));
        Self { fails: dice.one_in(2).then_some((begin, begin + lasts)) }
    }

    pub(super) fn fails_at(self, elapsed: Duration) -> bool {
        self.fails.is_some_and(|(from, to)| (from..to).contains(&elapsed))
    }
}

impl Pace {
    pub(super) fn random(dice: &mut Dice) -> Self {
        let nodes = dice.between(3, 9);
        let mut steps = Vec::new();
        let mut count = 0;
        while count < nodes {
            count = if dice.one_in(2) { nodes } else { dice.between(count + 1, nodes) };
            steps.push(Step {
                count: usize::try_from(count).unwrap(),
                soak: SignedDuration::from_secs(dice.pick(&[0, 20, 90, 600])),
                approve: dice.one_in(4),
            });
        }
        // Long enough that a run begins in it while there is time for a node.
        let window = |dice: &mut Dice| WindowRule {
            minute: dice.pick(&[0, 7, 20, 40]),
            minutes: dice.pick(&[12, 30]),
        };
        Self {
            nodes: usize::try_from(nodes).unwrap(),
            max_unavailable: usize::try_from(dice.between(1, 3)).unwrap(),
            min_ready: dice.pick(&[0, 0, 15]),
            steps,
            window: dice.one_in(4).then(|| window(dice)),
            gate: dice.one_in(3).then(|| Gate::random(dice)),
            bad_node: dice.one_in(4).then(|| dice.between(0, nodes - 1)),
        }
    }

    pub(super) fn json(&self) -> Value {
        let step = |(at, step): (usize, &Step)| {
            json!({
                "name": step_name(at), "nodes": step.count, "approve": step.approve,
                "soak": format!("{}s", step.soak.as_secs()),
            })
        };
        let mut spec = json!({
            "selects": {"names": [format!("{NAMESPACE}/agent")]},
            "maxUnavailable": self.max_unavailable, "minReadySeconds": self.min_ready,
            "progressDeadline": "2m",
            "steps": self.steps.iter().enumerate().map(step).collect::<Vec<_>>(),
        });
        if let Some(WindowRule { minute, minutes }) = self.window {
            let schedule = format!("{minute} * * * *");
            spec["windows"] = json!([{"schedule": schedule, "duration": format!("{minutes}m")}]);
        }
        if self.gate.is_some() {
            let http = json!({"url": "https://quiet.example/errors"});
            spec["gates"] = json!([{"name": GATE, "interval": "15s", "http": http}]);
        }
        json!({
            "apiVersion": "ds-plan.dev/v1alpha1", "kind": "RolloutPolicy",
            "metadata": {"name": "pace"}, "spec": spec,
        })
    }

    /// The first step that is not over, of those that have at most `until` nodes. `new` are the times since
    /// which the new pods are up, and `passed` is when the gate has passed last.
    pub(super) fn not_over(
        &self,
        mut new: Vec<Timestamp>,
        passed: Option<Timestamp>,
        until: usize,
        now: Timestamp,
    ) -> Option<usize> {
        new.sort();
        let is_over = |step: &&Step| {
            let Some(complete) = new.get(step.count - 1) else { return false };
            let soaked = *complete + step.soak - ROUNDED;
            soaked <= now && (self.gate.is_none() || passed.is_some_and(|at| soaked <= at))
        };
        let mut earlier = self.steps.iter().filter(|step| step.count <= until);
        earlier.find(|step| !is_over(step)).map(|step| step.count)
    }

    /// The place of the step that a node belongs to, if so many have begun before it.
    pub(super) fn step_after(&self, begun: usize) -> Option<usize> {
        self.steps.iter().position(|step| begun < step.count)
    }
}

/// The name of a step by its place.
pub(super) fn step_name(at: usize) -> String {
    format!("step-{at}")
}
