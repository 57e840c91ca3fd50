//! Laws of checks: random answers over time, and several runs one after the other, some of which are
//! killed.
//!
//! What is right is judged from the answers that were delivered, and from the pods of the simulated
//! cluster.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::json;

use super::run::{Post, Run, cases};
use super::sim::{Measured, Sim};
use super::steps::policy;
use crate::plan::PauseState;
use crate::rollout::{Event, Outcome};
use daemonset::model::{CheckQuestion, CheckResponse, Pod, PolicySpec, Series, Uid};

const SOAK: i64 = 43;
const INTERVAL: i64 = 10;
const NODES: usize = 6;

/// What happens next.
#[derive(Clone, Copy, Debug)]
enum Op {
    /// Time passes, in seconds, while the run is there.
    Pass(i64),
    /// A check measures something else from now on.
    Measure(&'static str, Measured),
    /// The run is killed, and nobody is there for this time.
    Kill(i64),
    /// An answer arrives only later.
    Delay,
}

fn op() -> impl Strategy<Value = Op> {
    let check = prop::sample::select(vec!["errors", "quiet"]);
    let measured = prop_oneof![
        3 => Just(Measured::Value(1.0)),
        1 => Just(Measured::Value(5.0)),
        2 => Just(Measured::Down),
    ];
    prop_oneof![
        6 => (1..30_i64).prop_map(Op::Pass),
        2 => (check, measured).prop_map(|(check, measured)| Op::Measure(check, measured)),
        2 => (1..90_i64).prop_map(Op::Kill),
        1 => Just(Op::Delay),
    ]
}

fn checked(interval: i64) -> PolicySpec {
    let gate = json!({
        "name": "errors", "interval": format!("{interval}s"), "allow": 1,
        "prometheus": {"address": "https://a", "query": "x", "max": 1},
    });
    let precondition =
        json!({"name": "quiet", "interval": format!("{interval}s"), "http": {"url": "https://a"}});
    policy(json!({
        "steps": [{"name": "canary", "nodes": 2, "soak": format!("{SOAK}s")}],
        "gates": [gate], "preconditions": [precondition],
    }))
}

/// What an answer says, by counts of its own.
fn passes(response: &CheckResponse) -> bool {
    let is_good = |series: &Series| {
        let outside = series.points.iter().filter(|(_, value)| *value > 1.0).count();
        !series.points.is_empty() && outside <= 1
    };
    match response {
        CheckResponse::Series(found) => found.series.iter().all(is_good),
        CheckResponse::Sample { is_expected, .. } => *is_expected,
        CheckResponse::Unanswered(_) => false,
    }
}

/// The answers that all runs got, and what they have deleted.
#[derive(Default)]
struct Watch {
    /// Questions and answers of the run in progress that were seen.
    seen: usize,
    deleted: BTreeSet<Uid>,
    /// Times up to which a gate passed, in any run.
    passed: Vec<Timestamp>,
    /// The nodes with the first deletes.
    canaries: BTreeSet<String>,
}

impl Watch {
    /// Judges what the run has done since the last look.
    fn look(&mut self, run: &Run, updated_before: bool, now: Timestamp) {
        for (question, response) in &run.answers[self.seen..] {
            if question.name == "errors" && passes(response) {
                self.passed.push(question.until);
            }
        }
        self.seen = run.answers.len();
        let new: Vec<_> =
            run.deletes.iter().filter(|delete| self.deleted.insert(delete.uid.clone())).collect();
        if new.is_empty() {
            return;
        }
        let last = |name: &str| run.answers.iter().rev().find(|(it, _)| it.name == name);
        let is_valid = |(question, response): &(CheckQuestion, CheckResponse)| {
            let age = now.duration_since(question.until).as_secs();
            passes(response) && age <= INTERVAL
        };
        assert!(last("quiet").is_some_and(is_valid), "deleted without a precondition: {new:?}");
        assert!(!updated_before || last("errors").is_some_and(is_valid), "without a gate: {new:?}");
        for delete in new {
            if self.canaries.len() < 2 {
                self.canaries.insert(delete.node.to_string());
            } else if !self.canaries.contains(delete.node.as_str()) {
                self.soaked(run, now);
            }
        }
    }

    /// The rollout is done: its gate has passed after its last new pod was available.
    fn done(&self, run: &Run) {
        let up = run.sim.cluster.pods.iter().filter_map(Pod::up_since).map(Timestamp::from);
        let last = up.max().unwrap_or(Timestamp::MAX);
        assert!(self.passed.iter().any(|at| *at >= last), "no gate has passed after {last}");
    }

    /// A node outside of the canaries begins: their gate has passed after their soak.
    fn soaked(&self, run: &Run, now: Timestamp) {
        let is_canary = |node: &str| self.canaries.contains(node);
        let pods = run.sim.cluster.pods.iter();
        let canaries = pods.filter(|pod| pod.node().is_some_and(|it| is_canary(it.as_str())));
        let ready: Vec<Timestamp> =
            canaries.filter_map(Pod::up_since).map(Timestamp::from).collect();
        let Some(latest) = ready.iter().max() else { return };
        let end = *latest + SignedDuration::from_secs(SOAK);
        assert!(now >= end, "the soak is not over");
        assert!(self.passed.iter().any(|at| *at >= end), "no gate has passed after {end}");
    }
}

/// Whether a node has an available new pod.
fn has_updated(run: &Run) -> bool {
    run.sim.nodes_with("v2").iter().any(|node| {
        let mut pods = run.sim.cluster.pods.iter().filter(|pod| !pod.terminating);
        pods.any(|pod| pod.node().is_some_and(|it| *it == **node) && pod.is_ready())
    })
}

fn start(sim: Sim, policy: &PolicySpec) -> Run {
    let note = sim.note.clone();
    // The run waits itself for a time.
    let until = sim.now() + SignedDuration::from_secs(90);
    let mut run = Run::apply(sim, "v2").with(|task| {
        task.policy = policy.clone();
        task.note = note;
        task.wait_until = Some(until);
    });
    run.look();
    run
}

fn judge(ops: &[Op]) {
    let policy = checked(INTERVAL);
    let mut watch = Watch::default();
    let mut run = start(Sim::of(NODES, &json!(2)), &policy);
    for op in ops {
        match op {
            Op::Pass(seconds) => {
                for _ in 0..*seconds {
                    let updated = has_updated(&run);
                    let now = run.sim.now();
                    run.settle();
                    watch.look(&run, updated, now);
                }
            }
            Op::Measure(check, measured) => run.sim.measure(check, *measured),
            Op::Delay => {
                let (updated, now) = (has_updated(&run), run.sim.now());
                run.post(Post::AnswerDelayed);
                run.pass(1);
                if run.ended.is_none() {
                    run.observe();
                    run.feed(Event::Observed, 0);
                }
                watch.look(&run, updated, now);
            }
            Op::Kill(seconds) => {
                let is_aborted = run.pause().is_some_and(|it| it.state == PauseState::Aborted);
                let mut sim = run.sim;
                sim.pass(*seconds);
                // A failed template is in the note or, if the run was killed right after the abort, in
                // the annotation of the pause: no plan applies it again.
                if is_aborted || !sim.remembered.is_empty() {
                    return;
                }
                run = start(sim, &policy);
                watch.seen = 0;
            }
        }
        if run.ended.is_some() {
            match run.outcome() {
                Outcome::Done => return watch.done(&run),
                Outcome::Aborted { .. } => return,
                _ => {}
            }
            let mut sim = run.sim;
            sim.pass(15);
            run = start(sim, &policy);
            watch.seen = 0;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(192), ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_deleted_while_a_check_is_unknown_and_every_gate_passes_after_the_soak(
        ops in prop::collection::vec(op(), 10..60),
    ) {
        judge(&ops);
    }
}
