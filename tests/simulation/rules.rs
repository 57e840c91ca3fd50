//! A policy with steps, as text and numbers: what the laws of steps know of it, and its YAML.

use std::collections::BTreeSet;

use daemonset::model::Node;
use serde_json::{Value, json};

use crate::checks::Checks;
use crate::dice::Dice;

/// The label of the nodes' zones.
pub(crate) const ZONE: &str = "topology.kubernetes.io/zone";

/// A policy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rules {
    pub(crate) steps: Vec<StepRule>,
    pub(crate) domains: Option<DomainRule>,
    pub(crate) window: Option<WindowRule>,
    /// An exclusion, in seconds since the beginning.
    pub(crate) exclusion: Option<(i64, i64)>,
    /// Whether the target stays live between runs.
    pub(crate) keeps_target: bool,
    pub(crate) on_failure: &'static str,
    /// `sharedBudget`, if there are several DaemonSets.
    pub(crate) shared_budget: Option<Value>,
    pub(crate) checks: Option<Checks>,
    /// Whether the nodes pull images before their pods are replaced, and for how many seconds at most.
    pub(crate) pulls_for: Option<u32>,
    /// Other fields of `spec`.
    pub(crate) others: Value,
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StepRule {
    pub(crate) name: String,
    pub(crate) nodes: Selects,
    pub(crate) spreads: bool,
    /// In seconds.
    pub(crate) soak: i64,
    pub(crate) approve: bool,
    pub(crate) max_unavailable: Option<u64>,
}

/// The nodes of a step.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Selects {
    Count(usize),
    Percent(usize),
    /// Nodes of this pool.
    Pool(&'static str),
    Names(Vec<String>),
}

/// Domains: the zones.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DomainRule {
    pub(crate) at_once: usize,
    /// A number or a percentage.
    pub(crate) max_unavailable: Option<Value>,
    /// In seconds.
    pub(crate) soak: i64,
    pub(crate) first: Option<&'static str>,
}

/// A window in every hour.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WindowRule {
    /// The minute at which it opens.
    pub(crate) minute: i64,
    /// The minutes for which it stays open.
    pub(crate) minutes: i64,
}

impl Rules {
    /// Random ones, for nodes with these names. Nobody approves where no controller acts.
    pub(crate) fn random(names: &[String], managed: bool, dice: &mut Dice) -> Self {
        let mut steps: Vec<StepRule> = Vec::new();
        let mut least = 1;
        for at in 0..dice.between(0, 3) {
            let step = StepRule::random(at, &mut least, names, managed, dice);
            steps.push(step);
        }
        let mut others = json!({
            "progressDeadline": dice.pick(&["1m", "3m"]),
            "minReadySeconds": dice.pick(&[0, 3]),
            "ramp": dice.pick(&["double", "none"]),
        });
        if dice.one_in(3) {
            others["maxUnavailable"] = dice.pick(&[json!(1), json!(2), json!("30%")]);
        }
        if dice.one_in(2) {
            others["skipUnreadyNodes"] = json!({"max": dice.pick(&[json!(1), json!("100%")])});
        }
        if dice.one_in(12) {
            others["maxDuration"] = dice.pick(&["10m", "1h"]).into();
        }
        let window = |dice: &mut Dice| {
            let minute = dice.pick(&[0, 7, 20, 40]);
            WindowRule { minute, minutes: dice.pick(&[5, 12, 30]) }
        };
        Self {
            steps,
            domains: dice.one_in(2).then(|| DomainRule::random(dice)),
            window: dice.one_in(4).then(|| window(dice)),
            exclusion: dice.one_in(8).then(|| {
                let from = dice.pick(&[-600, 60, 900]);
                (from, from + dice.pick(&[700, 4_000]))
            }),
            keeps_target: dice.one_in(6),
            on_failure: dice.pick(&["abort", "abort", "pause", "rollback", "rollback"]),
            shared_budget: None,
            checks: None,
            pulls_for: None,
            others,
        }
    }

    /// Whether every node may begin at any time, as far as budgets have room.
    pub(crate) fn let_all_begin(&self) -> bool {
        let Self { steps, domains, window, exclusion, checks, .. } = self;
        let passes = checks.as_ref().is_none_or(Checks::always_pass);
        passes && steps.is_empty() && domains.is_none() && window.is_none() && exclusion.is_none()
    }

    /// How long all soaks may take together, in seconds: each of the three zones may soak after each
    /// step and at the end.
    pub(crate) fn longest_soaks(&self) -> u64 {
        let of_steps: i64 = self.steps.iter().map(|step| step.soak).sum();
        let of_zones = self.domains.as_ref().map_or(0, |rule| rule.soak * 3);
        let rounds = i64::try_from(self.steps.len()).expect("a few steps") + 1;
        (of_steps + of_zones * rounds).unsigned_abs()
    }

    /// The policy's `spec`, without `selects`. Exclusions are relative to `start`, in seconds since
    /// 1970.
    pub(crate) fn json(&self, start: i64) -> Value {
        let mut spec = self.others.clone();
        spec["onFailure"] = self.on_failure.into();
        spec["whileWaiting"] = if self.keeps_target { "target" } else { "lastGood" }.into();
        spec["steps"] = self.steps.iter().map(StepRule::json).collect::<Vec<_>>().into();
        if let Some(budget) = &self.shared_budget {
            spec["sharedBudget"] = budget.clone();
        }
        if let Some(checks) = &self.checks {
            checks.add_to(&mut spec);
        }
        if let Some(timeout) = self.pulls_for {
            spec["prePull"] = json!({"parallel": 3, "timeout": format!("{timeout}s")});
        }
        if let Some(rule) = &self.domains {
            spec["domains"] = rule.json();
        }
        if let Some(WindowRule { minute, minutes }) = self.window {
            let window =
                json!({"schedule": format!("{minute} * * * *"), "duration": format!("{minutes}m")});
            spec["windows"] = json!([window]);
        }
        if let Some((from, to)) = self.exclusion {
            let at = |second: i64| {
                jiff::Timestamp::from_second(start + second).expect("a time").to_string()
            };
            spec["exclusions"] = json!([{"from": at(from), "to": at(to), "reason": "quiet"}]);
        }
        spec
    }
}

impl StepRule {
    /// A random one. Counts grow: `least` is the least that the next one may be.
    fn random(
        at: u64,
        least: &mut usize,
        names: &[String],
        managed: bool,
        dice: &mut Dice,
    ) -> Self {
        let size = |number: u64| usize::try_from(number).expect("a small number");
        let nodes = match dice.between(0, 7) {
            0..=2 => {
                let count = *least + size(dice.between(0, 1));
                *least = count + 1;
                Selects::Count(count)
            }
            3 | 4 => Selects::Percent(size(dice.between(1, 20) + 25 * at)),
            5 => Selects::Pool(dice.pick(&["blue", "green"])),
            _ => {
                let some: BTreeSet<String> =
                    (0..dice.between(1, 2)).map(|_| dice.pick(names)).collect();
                Selects::Names(some.into_iter().collect())
            }
        };
        Self {
            name: format!("s{at}"),
            nodes,
            spreads: dice.one_in(3),
            soak: dice.pick(&[0, 0, 45, 200, 600]),
            approve: !managed && dice.one_in(4),
            max_unavailable: dice.one_in(4).then(|| dice.between(1, 2)),
        }
    }

    /// The step as in the policy.
    pub(crate) fn json(&self) -> Value {
        let nodes = match &self.nodes {
            Selects::Count(count) => json!(count),
            Selects::Percent(percent) => json!(format!("{percent}%")),
            Selects::Pool(pool) => json!({"matchLabels": {"pool": pool}}),
            Selects::Names(names) => json!({"names": names}),
        };
        let soak = format!("{}s", self.soak);
        let mut step = json!({"name": self.name, "nodes": nodes, "soak": soak});
        step["approve"] = self.approve.into();
        if self.spreads && matches!(self.nodes, Selects::Count(_) | Selects::Percent(_)) {
            step["spread"] = ZONE.into();
        }
        if let Some(limit) = self.max_unavailable {
            step["maxUnavailable"] = limit.into();
        }
        step
    }
}

impl DomainRule {
    fn random(dice: &mut Dice) -> Self {
        Self {
            at_once: if dice.one_in(4) { 2 } else { 1 },
            max_unavailable: dice.pick(&[None, Some(json!(1)), Some(json!("50%"))]),
            soak: dice.pick(&[0, 0, 90]),
            first: dice.pick(&[None, Some("zone-c"), Some("no such zone")]),
        }
    }

    fn json(&self) -> Value {
        let mut domains = json!({"key": ZONE, "atOnce": self.at_once});
        domains["soak"] = format!("{}s", self.soak).into();
        domains["first"] = self.first.into_iter().collect::<Vec<_>>().into();
        if let Some(limit) = &self.max_unavailable {
            domains["maxUnavailable"] = limit.clone();
        }
        domains
    }
}

impl Selects {
    /// Whether it selects a node by its name or its labels.
    pub(crate) fn names(&self, node: &Node) -> bool {
        match self {
            Self::Count(_) | Self::Percent(_) => false,
            Self::Pool(pool) => node.labels.get("pool") == Some(pool),
            Self::Names(names) => names.iter().any(|name| *name == *node.name.as_str()),
        }
    }

    /// The number of nodes, if it is a number.
    pub(crate) fn count(&self, desired: usize) -> Option<usize> {
        match self {
            Self::Count(count) => Some((*count).min(desired)),
            Self::Percent(percent) => Some((desired * percent).div_ceil(100)),
            Self::Pool(_) | Self::Names(_) => None,
        }
    }
}

impl WindowRule {
    /// Whether it is open at this second since 1970, and was two seconds before.
    pub(crate) fn is_open(self, second: i64) -> bool {
        let since = (second - self.minute * 60).rem_euclid(3_600);
        since < self.minutes * 60 + 2
    }

    /// Whether it is open at this second, and stays so for a number of seconds.
    pub(crate) fn has_time(self, second: i64, seconds: i64) -> bool {
        (second - self.minute * 60).rem_euclid(3_600) + seconds <= self.minutes * 60
    }
}
