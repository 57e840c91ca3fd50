//! Policies for the laws of steps, as numbers and text: the planner reads them, the observer judges by
//! them.

use serde_json::{Value, json};

use daemonset::model::Node;

/// A policy.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is drawn by itself")]
pub(super) struct Rules {
    pub steps: Vec<StepRule>,
    pub domains: Option<DomainRule>,
    /// Whether there are windows: three minutes of every ten.
    pub windows: bool,
    pub keeps_target: bool,
    pub on_failure: &'static str,
    pub max_unavailable: Option<usize>,
    /// Limit of the object's own strategy.
    pub declared: usize,
    /// Whether that is `maxSurge`.
    pub surges: bool,
    /// Whether any number of NotReady nodes is skipped, or just one.
    pub skips_all: bool,
    pub min_ready: usize,
    pub ramps: bool,
}

#[derive(Clone, Debug)]
pub(super) struct StepRule {
    pub nodes: Selects,
    pub spreads: bool,
    pub soak: i64,
    pub approve: bool,
    pub max_unavailable: Option<usize>,
}

/// The nodes of a step.
#[derive(Clone, Debug)]
pub(super) enum Selects {
    Count(usize),
    Percent(usize),
    /// Nodes with the label `pool: canary`.
    Pool,
    Names(Vec<String>),
}

#[derive(Clone, Debug)]
pub(super) struct DomainRule {
    pub at_once: usize,
    pub max_unavailable: Option<usize>,
    pub soak: i64,
    pub first: Option<&'static str>,
}

/// Seconds that one node takes.
pub(super) const NODE_SECONDS: u32 = 20;
/// The period of the windows and their length, in seconds.
pub(super) const PERIOD: i64 = 600;
pub(super) const OPEN: i64 = 180;

impl Rules {
    pub(super) fn step_name(at: usize) -> String {
        format!("s{at}")
    }

    /// The policy's `spec`.
    pub(super) fn json(&self) -> Value {
        let mut spec = json!({
            "selects": {"names": ["default/foo"]},
            "onFailure": self.on_failure,
            "progressDeadline": "60s",
            "minReadySeconds": self.min_ready,
            "ramp": if self.ramps { "double" } else { "none" },
            "whileWaiting": if self.keeps_target { "target" } else { "lastGood" },
            "skipUnreadyNodes": {"max": if self.skips_all { json!("100%") } else { json!(1) }},
        });
        spec["steps"] = self
            .steps
            .iter()
            .enumerate()
            .map(|(at, step)| step.json(at))
            .collect::<Vec<_>>()
            .into();
        if let Some(limit) = self.max_unavailable {
            spec["maxUnavailable"] = limit.into();
        }
        if let Some(rule) = &self.domains {
            let mut domains = json!({"key": "zone", "atOnce": rule.at_once});
            domains["soak"] = format!("{}s", rule.soak).into();
            domains["first"] = rule.first.into_iter().collect::<Vec<_>>().into();
            if let Some(limit) = rule.max_unavailable {
                domains["maxUnavailable"] = limit.into();
            }
            spec["domains"] = domains;
        }
        if self.windows {
            spec["windows"] = json!([{"schedule": "*/10 * * * *", "duration": "3m"}]);
        }
        spec
    }
}

impl StepRule {
    fn json(&self, at: usize) -> Value {
        let nodes = match &self.nodes {
            Selects::Count(count) => json!(count),
            Selects::Percent(percent) => json!(format!("{percent}%")),
            Selects::Pool => json!({"matchLabels": {"pool": "canary"}}),
            Selects::Names(names) => json!({"names": names}),
        };
        let soak = format!("{}s", self.soak);
        let mut step = json!({"name": Rules::step_name(at), "nodes": nodes, "soak": soak});
        step["approve"] = self.approve.into();
        if self.spreads && matches!(self.nodes, Selects::Count(_) | Selects::Percent(_)) {
            step["spread"] = "zone".into();
        }
        if let Some(limit) = self.max_unavailable {
            step["maxUnavailable"] = limit.into();
        }
        step
    }
}

impl Selects {
    pub(super) fn names(&self, node: &Node) -> bool {
        match self {
            Self::Count(_) | Self::Percent(_) => false,
            Self::Pool => node.labels.get("pool") == Some("canary"),
            Self::Names(names) => names.iter().any(|name| *name == *node.name.as_str()),
        }
    }

    pub(super) fn count(&self, desired: usize) -> Option<usize> {
        match self {
            Self::Count(count) => Some((*count).min(desired)),
            Self::Percent(percent) => Some((desired * percent).div_ceil(100)),
            Self::Pool | Self::Names(_) => None,
        }
    }
}
