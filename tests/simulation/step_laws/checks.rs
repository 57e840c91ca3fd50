//! The laws of checks: what the answers that a run got let it do. Judged by what the world has
//! measured, with own counts; no rule is shared with the planner.
//!
//! A node begins only after a fresh pass of each precondition and, while there are updated nodes, of
//! each gate; never after a gate has failed. A step is done only after a pass of each gate whose
//! samples reach from its last new pod to the end of its soak. A run does not wait for a check that
//! has been unknown for too long.

use std::collections::BTreeMap;

use daemonset::model::{CheckQuestion, DaemonSet, NodeName, Pod, PodReadiness};
use ds_plan::Exit;
use jiff::{SignedDuration, Timestamp};

use super::{Here, ROUNDED};
use crate::budget::Nodes;
use crate::checks::{Asks, BROKEN, CheckRule, Checks, Verdict};
use crate::rules::Rules;

/// How long the program may take from an answer to a request, beside the age that answers may have.
const ON_ITS_WAY: SignedDuration = SignedDuration::from_secs(2);

/// What the laws of checks remember of one DaemonSet.
#[derive(Default)]
pub(crate) struct CheckLaws {
    /// Whether nothing fails, and nobody interferes.
    is_calm: bool,
    /// Whether a node has begun since a rollout was done last.
    has_begun: bool,
    /// When the first node of the rollout in progress began; none before it. A rollout that was paused may
    /// have failed: the next one is another.
    begun_at: Option<Timestamp>,
    /// The number of the run in progress.
    run: usize,
    /// Whether it has noted what it found: it was not killed, and no request failed.
    is_noted: bool,
    answers: Vec<Answered>,
    /// The samples of the run that have failed, by check.
    failed_samples: BTreeMap<String, usize>,
    /// The gate that has failed in the run.
    failed: Option<String>,
    /// Since when each check is unknown, in all runs.
    unknown_since: BTreeMap<String, Timestamp>,
    /// Since when each node is not known to be well.
    broken_since: BTreeMap<NodeName, Timestamp>,
    /// When all nodes were well last whose new pod is up, or was in the rollout in progress.
    well_at: Option<Timestamp>,
}

/// An answer that a run got.
struct Answered {
    check: String,
    run: usize,
    /// The image of the run's commit.
    image: u32,
    asked: Timestamp,
    from: Timestamp,
    until: Timestamp,
    verdict: Verdict,
}

/// The nodes with a new pod, as far as the program must know.
struct Updated<'h, 'a> {
    known: Vec<&'h Here<'a>>,
    /// Since when the first and the last of all new pods are up.
    first: Timestamp,
    last: Timestamp,
}

/// What a request is judged by.
pub(super) struct Seen<'h, 'a> {
    pub(super) rules: &'h Rules,
    pub(super) here: &'h [Here<'a>],
    pub(super) live: &'h DaemonSet,
    pub(super) nodes: &'h Nodes,
    pub(super) now: Timestamp,
}

impl CheckLaws {
    pub(super) fn new(is_calm: bool) -> Self {
        Self { is_calm, ..Self::default() }
    }

    /// When the first node of the rollout began: now, if none has.
    pub(super) fn begun_at(&self, now: Timestamp) -> Timestamp {
        self.begun_at.unwrap_or(now)
    }

    /// A node begins.
    pub(super) fn begins(&mut self, now: Timestamp) {
        self.has_begun = true;
        self.begun_at.get_or_insert(now);
    }

    /// A rollout is complete, or aborted.
    pub(super) fn rollout_ends(&mut self) {
        self.begun_at = None;
    }

    /// The law that is broken if a rollout is done now. `up` is the time for which the last new pod of
    /// the nodes that it has begun has been up.
    pub(super) fn done(
        &mut self,
        rules: &Rules,
        image: u32,
        up: Option<SignedDuration>,
        now: Timestamp,
    ) -> Option<String> {
        // A pod that comes again for another reason has no gates to pass, nor has one of a step that
        // was done before.
        let is_judged = std::mem::take(&mut self.has_begun) && self.is_calm;
        let is_judged = is_judged && rules.steps.is_empty();
        let last = now.checked_sub(up?).ok()?;
        let is_proven = self.has_passed(rules, image, (last, last));
        (is_judged && !is_proven).then(|| format!("done, but no gate has passed since {last}"))
    }

    /// A run begins.
    pub(super) fn run_begins(&mut self, is_other_image: bool) {
        if !self.is_noted || is_other_image {
            self.unknown_since.clear();
        }
        if is_other_image {
            self.begun_at = None;
        }
        (self.run, self.is_noted, self.failed) = (self.run + 1, false, None);
        self.failed_samples.clear();
    }

    /// The note about the steps is lost.
    pub(super) fn forget(&mut self) {
        self.unknown_since.clear();
    }

    /// Updates which nodes are well.
    pub(super) fn look(&mut self, here: &[Here<'_>], nodes: &Nodes, now: Timestamp) {
        for one in here {
            let condition = one.node.condition(BROKEN);
            if condition.is_some_and(|it| it.status.as_str() == "False") {
                self.broken_since.remove(&one.node.name);
            } else {
                self.broken_since.entry(one.node.name.clone()).or_insert(now);
            }
        }
        // A pod of the target from before the rollout may be down on a node that is skipped.
        let is_of_rollout = |pod: &Pod| {
            let created = pod.created.map(Timestamp::from);
            let was_up = matches!(pod.readiness, PodReadiness::NotReady { since: Some(_) });
            was_up && self.begun_at.is_some_and(|begun| created >= Some(begun))
        };
        let is_lost = |one: &Here<'_>| one.is_updated && one.pod.is_some_and(is_of_rollout);
        let mut updated = here.iter().filter(|one| one.has_new() || is_lost(one));
        if updated.all(|one| !self.is_known_broken(&one.node.name, nodes, now)) {
            self.well_at = Some(now);
        }
    }

    /// Whether a precondition about nodes holds this one back.
    pub(super) fn holds_back(&self, rules: &Rules, node: &NodeName) -> bool {
        let looks = |rule: &CheckRule| rule.asks == Asks::Nodes;
        let checks = rules.checks.as_ref();
        checks.is_some_and(|checks| checks.preconditions.iter().any(looks))
            && self.broken_since.contains_key(node)
    }

    fn is_known_broken(&self, node: &NodeName, nodes: &Nodes, now: Timestamp) -> bool {
        self.broken_since.get(node).is_some_and(|since| *since <= nodes.seen_by(now))
    }

    /// A run has got an answer, to a question that it asked at this time.
    pub(super) fn answered(
        &mut self,
        checks: &Checks,
        question: &CheckQuestion,
        asked: Timestamp,
        image: u32,
    ) {
        let CheckQuestion { name, from, until, .. } = question;
        let failed = self.failed_samples.entry(name.clone()).or_default();
        let verdict = checks.verdict(question, asked, *failed);
        *failed += usize::from(checks.sample_fails(question, asked));
        let is_gate = checks.gates.iter().any(|gate| gate.name == *name);
        match verdict {
            Verdict::Unknown => {
                self.unknown_since.entry(name.clone()).or_insert(*until);
            }
            Verdict::Fail if is_gate => self.failed = Some(name.clone()),
            Verdict::Pass | Verdict::Fail => {}
        }
        if verdict != Verdict::Unknown {
            self.unknown_since.remove(name);
        }
        let (check, run) = (name.clone(), self.run);
        let (from, until) = (*from, *until);
        self.answers.push(Answered { check, run, image, asked, from, until, verdict });
    }

    /// The law that is broken by a question.
    pub(super) fn bad_question(seen: &Seen<'_, '_>, question: &CheckQuestion) -> Option<String> {
        let Seen { rules, here, nodes, now, .. } = *seen;
        let checks = rules.checks.as_ref()?;
        let CheckQuestion { name, from, until, .. } = question;
        let Some(rule) = checks.rule(name) else { return Some(format!("{name} is no check")) };
        if *until > now || now.duration_since(*until) > nodes.sight() + ON_ITS_WAY {
            return Some(format!("{name} was asked about the time up to {until}"));
        }
        let is_gate = checks.gates.iter().any(|gate| gate.name == *name);
        let samples = SignedDuration::from_secs(rule.interval * i64::try_from(rule.allow).ok()?);
        if !is_gate && rule.asks == Asks::Prometheus && until.duration_since(*from) < samples {
            return Some(format!("{name} was asked from {from} on"));
        }
        let updated = Updated::of(seen);
        let lacks = |one: &&&Here<'_>| !question.nodes.contains(&one.node.name);
        if let Some(one) = updated.iter().flat_map(|it| &it.known).find(lacks) {
            return Some(format!("{name} was asked without {}", one.node.name));
        }
        let is_old = |one: &&Here<'_>| {
            let created = one.pod.and_then(|pod| pod.created);
            let is_known = created.is_some_and(|at| at <= nodes.seen_by(now));
            question.nodes.contains(&one.node.name) && one.is_outdated() && is_known
        };
        let old = here.iter().find(is_old)?;
        Some(format!("{name} was asked about {}, which has an old pod", old.node.name))
    }

    /// The law that is broken if the outdated pod of a node is deleted now.
    pub(super) fn broken(&self, seen: &Seen<'_, '_>, it: &Here<'_>) -> Option<String> {
        let Seen { rules, nodes, now, .. } = *seen;
        let checks = rules.checks.as_ref()?;
        if let Some(gate) = &self.failed {
            return Some(format!(", although {gate} has failed"));
        }
        let is_broken = |one: &Here<'_>| self.is_known_broken(&one.node.name, nodes, now);
        for rule in &checks.preconditions {
            let law = match rule.asks {
                Asks::Nodes => is_broken(it).then(|| ", whose node is not well".to_owned()),
                Asks::Prometheus | Asks::Http => self.not_passed(rule, now),
            };
            if law.is_some() {
                return law;
            }
        }
        let updated = Updated::of(seen)?;
        let applies = |rule: &&CheckRule| updated.are_sampled(rule, seen, self.begun_at);
        checks.gates.iter().filter(applies).find_map(|rule| match rule.asks {
            Asks::Nodes => {
                let broken = updated.known.iter().find(|one| is_broken(one))?;
                Some(format!(", while {} is not well", broken.node.name))
            }
            Asks::Prometheus | Asks::Http => self.not_passed(rule, now),
        })
    }

    /// Why a check does not count as passed now.
    fn not_passed(&self, rule: &CheckRule, now: Timestamp) -> Option<String> {
        let Some(last) = self.last_of_run(&rule.name) else {
            return Some(format!(", and {} was not asked", rule.name));
        };
        let age = now.duration_since(last.asked);
        let is_fresh = age <= SignedDuration::from_secs(rule.interval) + ON_ITS_WAY;
        let name = &rule.name;
        match last.verdict {
            Verdict::Pass if is_fresh => None,
            Verdict::Pass => Some(format!(", and {name} has passed {age:#} ago")),
            Verdict::Fail => Some(format!(", and {name} fails")),
            Verdict::Unknown => Some(format!(", and {name} is unknown")),
        }
    }

    fn last_of_run(&self, check: &str) -> Option<&Answered> {
        let mut of_run = self.answers.iter().rev().take_while(|it| it.run == self.run);
        of_run.find(|it| *it.check == *check)
    }

    /// Whether all gates have passed after the end of a soak, by samples that reach back to the time
    /// at which its last new pod was up.
    pub(super) fn has_passed(
        &self,
        rules: &Rules,
        image: u32,
        (last, end): (Timestamp, Timestamp),
    ) -> bool {
        let gates = rules.checks.iter().flat_map(|checks| &checks.gates);
        let passes = |gate: &CheckRule| {
            let begins = last + SignedDuration::from_secs(gate.delay) + ROUNDED;
            self.answers.iter().any(|it| {
                let is_it = it.check == gate.name && it.image == image;
                let is_pass = it.verdict == Verdict::Pass;
                let is_whole = gate.asks == Asks::Http || it.from <= begins;
                is_it && is_pass && is_whole && it.until + ROUNDED >= end
            })
        };
        let mut gates = gates;
        gates.all(|gate| match gate.asks {
            Asks::Nodes => self.well_at.is_some_and(|at| at + ROUNDED >= end),
            Asks::Prometheus | Asks::Http => passes(gate),
        })
    }

    /// The law that is broken by the end of a run. `stays` says whether it leaves the target live,
    /// `may_begin` whether some node might begin if no check held it back.
    pub(super) fn run_ended(
        &mut self,
        rules: &Rules,
        exit: Exit,
        (stays, may_begin): (bool, bool),
    ) -> Option<String> {
        let checks = rules.checks.as_ref()?;
        if exit == Exit::Paused {
            self.begun_at = None;
        }
        let waits = matches!(exit, Exit::Waiting | Exit::ApprovalNeeded);
        self.is_noted = waits || exit == Exit::Paused;
        if let Some(gate) = &self.failed {
            if waits || exit == Exit::Done {
                return Some(format!("{gate} has failed, and the run ends with {exit:?}"));
            }
            let goes_back = rules.on_failure != "pause";
            if exit == Exit::Paused && goes_back && stays {
                return Some(format!("{gate} has failed, and the new template stays"));
            }
        }
        let is_unknown =
            |name: &str| self.last_of_run(name).is_some_and(|it| it.verdict == Verdict::Unknown);
        // Then no precondition matters, nor while no node may begin.
        let waits_for_gate = checks.gates.iter().any(|gate| is_unknown(&gate.name));
        let is_gate = |name: &str| checks.gates.iter().any(|gate| gate.name == *name);
        let matters =
            |name: &str| is_unknown(name) && (is_gate(name) || (may_begin && !waits_for_gate));
        let mut unknown = self.unknown_since.clone();
        unknown.retain(|name, _| matters(name));
        self.unknown_since.clear();
        for (name, since) in unknown {
            let last = self.last_of_run(&name);
            let (Some(last), Some(rule)) = (last, checks.rule(&name)) else { continue };
            let seconds = last.until.duration_since(since).as_secs();
            if waits && seconds > rule.unknown_for {
                return Some(format!("the run waits, and {name} was unknown for {seconds} s"));
            }
            self.unknown_since.insert(name, since);
        }
        None
    }
}

impl<'h, 'a> Updated<'h, 'a> {
    /// None if the program need not know of any.
    fn of(seen: &Seen<'h, 'a>) -> Option<Self> {
        let Seen { rules, here, live, nodes, now } = *seen;
        let of_policy = rules.others["minReadySeconds"].as_i64().unwrap_or_default();
        let of_its_own = i64::from(live.spec.min_ready_seconds);
        // The first one of a run has to stay up for ten seconds.
        let bar = SignedDuration::from_secs(of_policy.max(of_its_own).max(10)) + ROUNDED;
        let up = || here.iter().filter(|one| one.has_new());
        let since = |one: &Here<'_>| now.saturating_sub(one.up_for(now)).unwrap_or(now);
        let known = up().filter(|one| one.up_for(now) >= bar + nodes.sight()).collect::<Vec<_>>();
        let (first, last) = (up().map(since).min()?, up().map(since).max()?);
        (!known.is_empty()).then_some(Self { known, first, last })
    }

    /// Whether a gate is sampled, for sure: the delay of the step in progress is over. That begins
    /// with the first new pod of the step, which is not later than the last one of all, but not before
    /// the rollout.
    fn are_sampled(
        &self,
        rule: &CheckRule,
        seen: &Seen<'_, '_>,
        begun_at: Option<Timestamp>,
    ) -> bool {
        let since = if seen.rules.steps.is_empty() { self.first } else { self.last };
        let delay = SignedDuration::from_secs(rule.delay);
        let is_over = |begun_at: Timestamp| {
            seen.nodes.seen_by(seen.now) >= since.max(begun_at) + delay + ROUNDED
        };
        rule.delay == 0 || begun_at.is_some_and(is_over)
    }
}
