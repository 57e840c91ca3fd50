//! What runs did, according to their own output: the nodes that were updated in each step, and what
//! was waited for then.
//!
//! A run that waits itself, as a rehearsal of a whole rollout does, has the same course as several
//! runs, each of which ends with a wait.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Output;

use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;
use serde_json::Value;

use super::{output_text, stdout};

/// The part of a rollout up to a wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Leg {
    /// The nodes that were updated, by step.
    pub(super) updated: BTreeMap<String, BTreeSet<String>>,
    /// What is waited for afterwards.
    pub(super) waits_for: Vec<Wait>,
    /// The exit code; none if the run itself waits.
    pub(super) exit: Option<i64>,
    /// The first delete.
    began: Option<Timestamp>,
    ended: Timestamp,
}

/// What is waited for.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Wait {
    kind: String,
    pub(super) step: String,
    domain: Option<String>,
    until: Option<Timestamp>,
}

impl Leg {
    /// Nodes by step, and waits.
    pub(super) fn what(&self) -> (BTreeMap<String, BTreeSet<String>>, String) {
        (self.updated.clone(), self.waits())
    }

    /// What is waited for: kind, step and domain.
    pub(super) fn waits(&self) -> String {
        let wait = |it: &Wait| {
            let domain = it.domain.iter().map(|domain| format!(" {domain}"));
            format!("{} {}{}", it.kind, it.step, domain.collect::<String>())
        };
        self.waits_for.iter().map(wait).collect::<Vec<_>>().join(", ")
    }

    /// Number of nodes that were updated.
    pub(super) fn nodes(&self) -> usize {
        self.updated.values().map(BTreeSet::len).sum()
    }

    /// The end of the wait.
    pub(super) fn until(&self) -> Option<Timestamp> {
        self.waits_for.iter().filter_map(|wait| wait.until).max()
    }

    /// From the first delete to the end of the soak that follows.
    fn took(&self) -> SignedDuration {
        let Some(began) = self.began else { return SignedDuration::ZERO };
        self.until().unwrap_or(self.ended).duration_since(began)
    }
}

/// The duration of a rollout: of updates and soaks. The time that passes before somebody approves, or
/// before the next run begins, is not part of it.
pub(super) fn took(legs: &[Leg]) -> SignedDuration {
    legs.iter().map(Leg::took).sum()
}

/// The course of a run with `-o json`.
pub(super) fn legs(run: &Output) -> Vec<Leg> {
    let text = stdout(run);
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut step_of: BTreeMap<String, String> = BTreeMap::new();
    let (mut legs, mut leg) = (Vec::new(), Leg::default());
    for event in events {
        let at: Timestamp = event["time"].as_str().unwrap().parse().unwrap();
        match event["event"].as_str().unwrap() {
            "plan" => {
                for wave in event["plan"]["daemonSets"][0]["waves"].as_array().unwrap() {
                    let step = wave["step"].as_str().unwrap();
                    let nodes = wave["nodes"].as_array().unwrap().iter();
                    let nodes = nodes.map(|node| node.as_str().unwrap().to_owned());
                    step_of.extend(nodes.map(|node| (node, step.to_owned())));
                }
            }
            "deleting" => {
                leg.began.get_or_insert(at);
                let node = event["node"].as_str().unwrap();
                leg.updated.entry(step_of[node].clone()).or_default().insert(node.to_owned());
            }
            kind @ ("waitingFor" | "ended") => {
                let waits_for =
                    event.get("waitsFor").cloned().unwrap_or_else(|| Value::Array(vec![]));
                leg.waits_for = serde_json::from_value(waits_for).unwrap();
                leg.exit = event["exitCode"].as_i64();
                leg.ended = at;
                legs.push(std::mem::take(&mut leg));
                if kind == "ended" {
                    return legs;
                }
            }
            _ => {}
        }
    }
    panic!("no end: {}", output_text(run));
}
