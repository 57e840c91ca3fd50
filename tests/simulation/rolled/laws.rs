//! What the runs of a roll may do.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use daemonset::model::{CheckQuestion, CheckResponse, DaemonSet, NodeName, Pod, Uid};
use ds_plan::Exit;
use embedded::{Fault, Hook, Kind, Reason, Route, Seen, Status, Store, VirtualClock};
use executor::{Ask, Asked};
use jiff::Timestamp;

use super::pace::{BAD, Pace};
use crate::dice::Dice;
use crate::objects::{is_updated, live, pods};

/// The user names of runs begin with it.
pub(super) const RUN: &str = "run-";

/// What the runs may do, and what they have done.
pub(super) struct Laws {
    pub(super) clock: VirtualClock,
    pub(super) pace: Pace,
    pub(super) dice: Dice,
    /// Whether requests fail.
    pub(super) has_faults: bool,
    pub(super) killed: BTreeSet<String>,
    pub(super) broken: Vec<String>,
    /// The images with which a run has failed.
    pub(super) failed: BTreeSet<u64>,
    pub(super) rollout: Rollout,
}

/// What was done for the live template.
#[derive(Default)]
pub(super) struct Rollout {
    /// The nodes whose old pod was deleted, with that pod. A delete whose answer was lost is sent again.
    pub(super) begun: BTreeMap<NodeName, Uid>,
    /// The steps that a person has approved since the last failure, by their place.
    pub(super) approved: BTreeSet<usize>,
    /// When the gate has passed last.
    passed: Option<Timestamp>,
    /// When the gate failed in the present run.
    gate_failed: Option<Duration>,
    /// Whether a run has failed, and none with `--retry` has begun since.
    pub(super) has_failed: bool,
    /// Whether pods that fail use up the budget, so that no node can begin.
    pub(super) is_deadlocked: bool,
    /// Whether a person runs it without its policy.
    pub(super) is_unpaced: bool,
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
        let Rollout { begun, approved, passed, gate_failed, has_failed, is_unpaced, .. } =
            &self.rollout;
        if is_updated(pod, live, store) {
            return Some(format!("the new pod of {node} is deleted"));
        }
        if let Some(before) = begun.get(node) {
            return (*before != pod.uid).then(|| format!("{node} is replaced twice"));
        }
        let own = pods(store).filter(|it| it.name.as_str().starts_with("agent"));
        let is_up = |it: &&Pod| it.is_ready() && !it.terminating && it.node() != Some(node);
        let down = self.pace.nodes - 1 - own.filter(is_up).count();
        if pod.is_ready() && down >= self.pace.max_unavailable {
            return Some(format!("{down} other nodes are down while {node} begins"));
        }
        if *is_unpaced {
            return None;
        }
        if *has_failed {
            return Some(format!("{node} begins after the rollout has failed"));
        }
        if gate_failed.is_some_and(|at| at < self.clock.elapsed()) {
            return Some(format!("{node} begins after the gate has failed"));
        }
        let now = self.clock.now();
        if self.pace.window.is_some_and(|window| !window.is_open(now.as_second())) {
            return Some(format!("{node} begins outside of the window"));
        }
        let step = self.pace.step_after(begun.len())?;
        if self.pace.steps[step].approve && !approved.contains(&step) {
            return Some(format!("{node} begins without an approval of step {step}"));
        }
        let new = new_since(live, store);
        let step = self.pace.not_over(new, *passed, begun.len(), now)?;
        Some(format!("{node} begins before the step of {step} nodes is over"))
    }

    /// The law that is broken if the rollout is done now.
    pub(super) fn judge_end(&self, store: &Store) -> Option<String> {
        let live = live("agent", store)?;
        let new = new_since(live, store);
        let (pace, passed, now) = (&self.pace, self.rollout.passed, self.clock.now());
        if new.len() < pace.nodes {
            return Some(format!("it is done with {} of {} nodes", new.len(), pace.nodes));
        }
        if self.rollout.is_unpaced {
            return None;
        }
        let step = pace.not_over(new, passed, pace.nodes, now)?;
        Some(format!("it is done before the step of {step} nodes is over"))
    }

    /// The law that is broken by the outcome of a run; requests of it that failed explain any other.
    pub(super) fn judge_exit(&self, exit: Exit, retries: bool, image: u64) -> Option<String> {
        let Rollout { gate_failed, has_failed, is_unpaced, .. } = &self.rollout;
        if self.has_faults {
            return None;
        }
        // The pod of a template that has failed is replaced first.
        let is_replaced = image > BAD && self.failed.contains(&BAD);
        let may_deadlock = self.pace.bad_node.is_some() && !is_unpaced && !is_replaced;
        match exit {
            Exit::Blocked if *has_failed || may_deadlock => None,
            _ if *has_failed && !retries => Some(format!("{exit:?} after it has failed")),
            Exit::Paused if gate_failed.is_some() => None,
            Exit::Paused if image == BAD && self.pace.bad_node.is_some() => None,
            Exit::Waiting | Exit::ApprovalNeeded | Exit::Done if gate_failed.is_none() => None,
            // The lock of a killed run.
            Exit::Locked if !self.killed.is_empty() => None,
            _ => Some(format!("{exit:?} without a cause")),
        }
    }

    /// The outcome of a run with this image, or `None` if it was killed.
    pub(super) fn ended(&mut self, exit: Option<Exit>, image: u64) {
        self.failed.extend((exit == Some(Exit::Paused)).then_some(image));
        let Rollout { gate_failed, has_failed, is_deadlocked, .. } = &mut self.rollout;
        *gate_failed = None;
        *has_failed |= exit == Some(Exit::Paused);
        *is_deadlocked = exit == Some(Exit::Blocked) && !*has_failed;
    }

    /// A run with `--retry` begins.
    pub(super) fn retried(&mut self) {
        let Rollout { approved, passed, has_failed, .. } = &mut self.rollout;
        if std::mem::take(has_failed) {
            approved.clear();
            *passed = None;
        }
    }
}

/// The times since which the new pods are up.
fn new_since(live: &DaemonSet, store: &Store) -> Vec<Timestamp> {
    let new = pods(store).filter(|it| is_updated(it, live, store));
    new.filter_map(Pod::up_since).map(Timestamp::from).collect()
}

pub(super) struct Watcher(pub(super) Arc<Mutex<Laws>>);

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
        if !request.user.starts_with(RUN) {
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
            laws.rollout.begun.extend(pod.node().map(|node| (node.clone(), pod.uid.clone())));
        }
        fault.into_iter().collect()
    }
}

/// Answers the gate.
pub(super) struct Answers(pub(super) Arc<Mutex<Laws>>);

impl Ask for Answers {
    fn ask<'a>(&'a self, question: &'a CheckQuestion) -> Asked<'a> {
        Box::pin(async move {
            let laws = &mut *self.0.lock().unwrap();
            let (elapsed, now) = (laws.clock.elapsed(), laws.clock.now());
            let is_expected = laws.pace.gate.is_none_or(|gate| !gate.fails_at(elapsed));
            if is_expected {
                laws.rollout.passed = Some(now);
            } else {
                laws.rollout.gate_failed.get_or_insert(elapsed);
            }
            let detail = if is_expected { "status 200" } else { "status 503" }.to_owned();
            CheckResponse::Sample { at: question.until, is_expected, detail }
        })
    }
}
