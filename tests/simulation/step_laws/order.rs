//! Which steps are done, which nodes a step may take, and when.

use daemonset::model::{DaemonSet, Pod, PodReadiness};
use embedded::Store;
use jiff::{SignedDuration, Timestamp};

use super::{Here, ROUNDED, StepLaws};
use crate::budget::owns;
use crate::objects::{image_of, is_updated};
use crate::rules::{Rules, StepRule};

/// The steps of the policy.
pub(super) struct Steps {
    all: Vec<Soaking>,
}

/// What a step needs beside its pods.
pub(super) struct Evidence<'e> {
    /// Whether a step is approved.
    pub(super) is_approved: &'e dyn Fn(&StepRule) -> bool,
    /// Whether the gates have passed since the end of a soak: the time at which its last pod was up,
    /// and its end.
    pub(super) has_passed: &'e dyn Fn(Timestamp, Timestamp) -> bool,
}

/// How far a step is.
#[derive(Clone, Copy)]
struct Soaking {
    /// Since when it is done.
    done_at: Option<Timestamp>,
    /// Its soak began after this.
    after: Timestamp,
    /// The end of its soak, if all stays as it was at the last look.
    ends: Option<Timestamp>,
}

impl Soaking {
    fn begun(now: Timestamp) -> Self {
        Self { done_at: None, after: now, ends: None }
    }
}

impl StepLaws {
    /// Records that a pod has changed since the last look: between two requests, the program may have
    /// seen that a soak was over. Gates are not looked back at: an answer is a look.
    pub(crate) fn look_back(&mut self, live: &DaemonSet, (was, is): (&Pod, &Pod), store: &Store) {
        let is_new = owns(live, was) && is_updated(was, live, store);
        let is_target = image_of(live.spec.template.raw()) == self.target;
        let was_up = was.is_ready() && !was.terminating;
        if !is_new || !is_target || !was_up || self.rules.checks.is_some() {
            return;
        }
        match is.readiness {
            _ if is.terminating => self.progress.steps.changes(None),
            PodReadiness::NotReady { since: Some(at) } => {
                self.progress.steps.changes(Some(at.into()));
            }
            PodReadiness::NotReady { since: None } | PodReadiness::Ready { .. } => {}
        }
    }
}

impl Steps {
    pub(super) fn of(rules: &Rules, now: Timestamp) -> Self {
        Self { all: vec![Soaking::begun(now); rules.steps.len()] }
    }

    /// This step and all later ones begin again.
    pub(super) fn begin_again(&mut self, from: usize, now: Timestamp) {
        let later = self.all.iter_mut().skip(from);
        later.for_each(|step| *step = Soaking::begun(now));
    }

    /// A new pod is not up any more since this time, which is after the last look; or it is about to go.
    fn changes(&mut self, at: Option<Timestamp>) {
        let Some(step) = self.all.iter_mut().find(|step| step.done_at.is_none()) else { return };
        let ends = step.ends.take();
        step.done_at = at.filter(|at| ends.is_some_and(|ends| ends <= *at));
    }

    /// The number of steps that are done.
    pub(super) fn done(&self) -> usize {
        self.all.iter().take_while(|step| step.done_at.is_some()).count()
    }

    pub(super) fn is_done(&self, at: usize) -> bool {
        self.all[at].done_at.is_some()
    }

    /// Updates what is done. A step that is done stays so.
    pub(super) fn look(
        &mut self,
        here: &[Here<'_>],
        rules: &Rules,
        evidence: &Evidence<'_>,
        now: Timestamp,
    ) {
        let is_outdated = here.iter().any(Here::is_outdated);
        self.all.iter_mut().for_each(|step| step.ends = None);
        // All pods of a step may have come with an earlier one: its gates look at them since that is done.
        let mut begins = Timestamp::MIN;
        for (at, rule) in rules.steps.iter().enumerate() {
            let step = &mut self.all[at];
            // Nodes that got the new pod by themselves do not stand for an approval.
            if rule.approve
                && !(evidence.is_approved)(rule)
                && step.done_at.is_none()
                && is_outdated
            {
                break;
            }
            let up_for = match rule.nodes.count(here.len()) {
                None => of_named(here, rules, at, now),
                Some(count) => of_count(here, count, now),
            };
            let soak = SignedDuration::from_secs(rule.soak);
            let has_soaked = |time: SignedDuration| time.saturating_add(ROUNDED) >= soak;
            let is_seen = has_soaked(now.duration_since(step.after));
            let has_passed = |time: SignedDuration| {
                // Without a node there is nothing that a gate could look at.
                let Ok(last) = now.checked_sub(time) else { return true };
                (evidence.has_passed)(last.max(begins), last.max(step.after) + soak)
            };
            let since = up_for.and_then(|time| now.checked_sub(time).ok());
            step.ends = since.map(|since| since.max(step.after) + soak - ROUNDED);
            if is_seen && up_for.is_some_and(|time| has_soaked(time) && has_passed(time)) {
                step.done_at.get_or_insert(now);
            }
            let Some(done_at) = step.done_at else { break };
            begins = done_at;
        }
    }
}

/// The time for which all nodes of a label or of names have been up; none if one is not, or if an outage
/// has taken them and no node is updated.
fn of_named(here: &[Here<'_>], rules: &Rules, at: usize, now: Timestamp) -> Option<SignedDuration> {
    let selects = |one: &&Here<'_>| rules.steps[at].nodes.names(one.node) && one.is_ready;
    let of: Vec<_> = here.iter().filter(selects).collect();
    if of.is_empty() && !here.is_empty() && !here.iter().any(Here::has_new) {
        return None;
    }
    let is_complete = of.iter().all(|one| one.has_new());
    is_complete.then(|| of.iter().map(|one| one.up_for(now)).min().unwrap_or(SignedDuration::MAX))
}

/// The time for which as many nodes as the step wants have been up; none if there are not so many.
fn of_count(here: &[Here<'_>], count: usize, now: Timestamp) -> Option<SignedDuration> {
    let mut up: Vec<SignedDuration> =
        here.iter().filter(|one| one.has_new()).map(|one| one.up_for(now)).collect();
    up.sort_unstable_by(|a, b| b.cmp(a));
    let all = here.iter().filter(|one| one.is_ready).all(Here::has_new);
    let is_complete = up.len() >= count || all;
    let wanted = count.clamp(1, up.len().max(1));
    up.get(wanted - 1).copied().filter(|_| is_complete)
}

/// Whether a node may be one of a step.
pub(super) fn admits(here: &[Here<'_>], it: &Here<'_>, step: usize, laws: &StepLaws) -> bool {
    let rules = &laws.rules.steps[..=step];
    if rules[step].nodes.names(it.node) {
        return true;
    }
    let Some(count) = rules[step].nodes.count(here.len()) else { return false };
    // Who joins after a step is done belongs to the last one.
    let is_named = |other: &Here<'_>| {
        let mut steps = rules.iter().enumerate();
        steps.any(|(at, rule)| !laws.progress.steps.is_done(at) && rule.nodes.names(other.node))
    };
    let is_in = |other: &&Here<'_>| {
        let begun = laws.progress.begun.contains(&other.node.name);
        let has_begun = begun && other.is_ready && !other.is_outdated();
        has_begun || other.node.name == it.node.name || is_named(other)
    };
    here.iter().filter(is_in).count() <= count.max(1)
}

impl StepLaws {
    /// Whether some node may begin, and has the time for it before a window closes.
    pub(super) fn may_begin(&self, here: &[Here<'_>], now: Timestamp) -> bool {
        let done = self.progress.steps.done();
        let is_its_turn = |it: &Here<'_>| {
            done == self.rules.steps.len()
                || self.is_broken(it)
                || (0..=done).any(|at| admits(here, it, at, self))
        };
        let mut outdated = here.iter().filter(|it| it.is_ready && it.is_outdated());
        self.has_time(now) && outdated.any(is_its_turn)
    }

    /// Whether a node that begins now is finished before a window closes, however long it takes.
    fn has_time(&self, now: Timestamp) -> bool {
        let Rules { window, exclusion, shared_budget, .. } = &self.rules;
        let deadline = self.rules.others["progressDeadline"].as_str().unwrap_or("10m");
        let deadline: SignedDuration = deadline.parse().expect("a duration");
        // Of a shared budget, at most three DaemonSets follow on a node.
        let rollouts = if shared_budget.is_some() { 3 } else { 1 };
        let needs = deadline.as_secs() * rollouts + 2;
        let second = now.as_second();
        let since = second - self.start.as_second();
        window.is_none_or(|window| window.has_time(second, needs))
            && exclusion.is_none_or(|(from, to)| since + needs < from || to + 2 <= since)
    }

    /// The windows.
    pub(super) fn closed(&self, now: Timestamp) -> Option<String> {
        let second = now.as_second();
        if self.rules.window.is_some_and(|window| !window.is_open(second)) {
            return Some(", and no window is open".to_owned());
        }
        let since = second - self.start.as_second();
        let (from, to) = self.rules.exclusion?;
        (from + 2 <= since && since < to - 2).then(|| " during an exclusion".to_owned())
    }
}
