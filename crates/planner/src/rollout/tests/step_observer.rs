//! An observer of rollouts with steps: it knows the policy as text and numbers, counts pods and nodes
//! itself, and shares no rule with the planner.
//!
//! It judges each delete by what the run had observed when it decided on it, and by the deletes that
//! the run had sent before. Where the policy leaves a choice (which nodes a count takes), any choice
//! is fine that keeps the number.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::run::Decision;
use super::sim::{Seen, images};
use super::step_here::Here;
use super::step_rules::{NODE_SECONDS, OPEN, PERIOD, Rules};
use daemonset::model::{Node, Pod, REVISION_HASH_LABEL, Uid, UpdateStrategy};

/// Time for which a delete that was sent may still be executed, in seconds.
const UNDER_WAY: i64 = 60;

/// How far a step, or a zone, is.
#[derive(Clone, Copy, Default)]
struct Soaking {
    /// When it was seen complete first: how long its pods have been up is read from them.
    complete_since: Option<Timestamp>,
    is_complete: bool,
    /// Whether all of its pods have been up for long enough at the last look.
    has_soaked: bool,
    is_done: bool,
}

impl Soaking {
    fn look(&mut self, is_complete: bool, up_for: i64, soak: i64, now: Timestamp) {
        self.is_complete = is_complete;
        self.has_soaked = is_complete && up_for >= soak;
        if self.is_done || !is_complete {
            return;
        }
        let since = *self.complete_since.get_or_insert(now);
        self.is_done = up_for >= soak && now.duration_since(since).as_secs() >= soak;
    }
}

/// How far the rollout of one image is.
#[derive(Default)]
struct Progress {
    steps: Vec<Soaking>,
    zones: BTreeMap<String, Soaking>,
    /// Whether a pod was deleted, or a surge begun.
    has_begun: bool,
    /// Nodes of which a run has deleted the outdated pod. A node that joined while the target was
    /// live has it without having been chosen.
    begun: BTreeSet<String>,
}

impl Progress {
    fn of(rules: &Rules) -> Self {
        Self { steps: vec![Soaking::default(); rules.steps.len()], ..Self::default() }
    }
}

/// What the observer remembers.
pub(super) struct Observer {
    pub rules: Rules,
    /// The image that is rolled out.
    pub target: String,
    /// The last image that finished all steps.
    pub last_good: String,
    /// How far the target is.
    progress: Progress,
    /// How far others were whose rollout no delete of another one has ended.
    others: BTreeMap<String, Progress>,
    /// Deletes of this run, and when they were sent.
    sent: BTreeMap<Uid, Timestamp>,
    /// The pods of those that were executed, or had no answer, at the last decision.
    deleted: BTreeSet<Uid>,
    /// Approvals that count, each with its step and image; and those that are used up.
    approvals: BTreeSet<(usize, String)>,
    used: BTreeSet<(usize, String)>,
    is_way_back: bool,
    /// Broken laws.
    pub broken: Vec<String>,
}

impl Observer {
    pub(super) fn new(rules: Rules) -> Self {
        Self {
            progress: Progress::of(&rules),
            others: BTreeMap::new(),
            rules,
            target: "v1".into(),
            last_good: "v1".into(),
            sent: BTreeMap::new(),
            deleted: BTreeSet::new(),
            approvals: BTreeSet::new(),
            used: BTreeSet::new(),
            is_way_back: false,
            broken: Vec::new(),
        }
    }

    /// A run of an image begins; `noted` are the names of the steps that are noted as done. What a
    /// run knew that was killed before its note arrived is forgotten.
    pub(super) fn begins(&mut self, image: &str, is_way_back: bool, noted: &BTreeSet<String>) {
        if image != self.target {
            let known = self.others.remove(image);
            let known = known.unwrap_or_else(|| Progress::of(&self.rules));
            let before = std::mem::replace(&mut self.progress, known);
            self.others.insert(std::mem::replace(&mut self.target, image.to_owned()), before);
        }
        for (at, step) in self.progress.steps.iter_mut().enumerate() {
            step.is_done &= noted.contains(&Rules::step_name(at));
        }
        self.sent.clear();
        self.is_way_back = is_way_back;
    }

    pub(super) fn approve(&mut self, step: usize, image: &str) {
        self.approvals.insert((step, image.to_owned()));
    }

    /// A step is edited: it and all later ones begin again.
    pub(super) fn edits(&mut self, step: usize) {
        for progress in self.others.values_mut().chain([&mut self.progress]) {
            progress.steps[step..].fill(Soaking::default());
        }
        self.approvals.retain(|(it, _)| *it != step);
        self.used.retain(|(it, _)| *it != step);
    }

    /// The note is lost: all steps begin again.
    pub(super) fn loses_note(&mut self) {
        for progress in self.others.values_mut().chain([&mut self.progress]) {
            progress.steps.fill(Soaking::default());
            progress.zones.clear();
        }
    }

    /// A rollout has ended: approvals are used up.
    pub(super) fn ends(&mut self, is_done: bool) {
        let given = std::mem::take(&mut self.approvals);
        self.used.extend(given);
        if is_done {
            self.target.clone_into(&mut self.last_good);
        } else {
            self.progress.steps.fill(Soaking::default());
            self.progress.zones.clear();
            self.progress.has_begun = false;
        }
    }

    /// One step of the run.
    pub(super) fn judge(&mut self, decision: &Decision) {
        let Decision { seen, now, deletes, deleted, resumes, noted } = decision;
        self.deleted.clone_from(deleted);
        let here = self.here(seen, *now);
        self.look(&here, *now);
        // A failure puts the last good template back before it replaces pods, those of a version
        // that was abandoned, too.
        let live = seen.daemon_set.as_ref().map(|it| it.spec.template.raw());
        let image = live.map(|it| &it["spec"]["containers"][0]["image"]);
        let goes_back = image.is_some_and(|image| *image != *self.target);
        if self.rules.surges && *resumes && here.iter().any(Here::is_outdated) {
            // A write whose answer was lost is sent again.
            let strategy = seen.daemon_set.as_ref().map(|it| it.spec.update_strategy);
            let has_begun = !goes_back && strategy != Some(UpdateStrategy::OnDelete);
            let law = self.surge_too_early(&here, has_begun, noted, *now);
            self.broken.extend(law.map(|law| format!("{now}: {law}")));
        }
        // Pods that others have deleted are replaced by the target, once that is live.
        let has_begun = !goes_back && here.iter().any(|it| it.is_updated);
        self.progress.has_begun |= *resumes || !deletes.is_empty() || has_begun;
        for delete in deletes {
            let here = self.here(seen, *now);
            if !self.sent.contains_key(&delete.uid) {
                let law = self.broken_by(&here, delete.node.as_str(), goes_back, *now);
                self.broken.extend(law.map(|law| format!("{now}: {}: {law}", delete.node)));
            }
            let others = self.approvals.extract_if(.., |(_, image)| *image != self.target);
            let others: Vec<_> = others.collect();
            self.used.extend(others);
            self.others.clear();
            let it = here.iter().find(|it| it.node.name == delete.node);
            if it.is_none_or(|it| !it.is_broken()) {
                self.progress.begun.insert(delete.node.to_string());
            }
            self.sent.insert(delete.uid.clone(), *now);
        }
    }

    fn here<'s>(&self, seen: &'s Seen, now: Timestamp) -> Vec<Here<'s>> {
        let images = images(&seen.revisions);
        let image = |pod: &Pod| pod.labels.get(REVISION_HASH_LABEL).and_then(|it| images.get(it));
        let stays = |pod: &&Pod| {
            let sent = self.sent.get(&pod.uid);
            let goes = sent.is_some_and(|sent| now.duration_since(*sent).as_secs() < UNDER_WAY);
            !pod.terminating && !goes
        };
        let here = |node| {
            let Node { name, labels, readiness, .. }: &Node = node;
            // Of the two pods of a surge, the new one if it is up.
            let pods = seen.pods.iter().filter(|pod| pod.node() == Some(name)).filter(stays);
            let is_new = |pod: &Pod| image(pod).is_some_and(|image| *image == self.target);
            let pod = pods.max_by_key(|pod| (pod.is_ready(), is_new(pod)));
            Here {
                node,
                is_ready: readiness.is_ready(),
                is_skipped: false,
                zone: labels.get("zone").unwrap_or(""),
                pod,
                is_updated: pod.and_then(image).is_some_and(|image| *image == self.target),
                is_intermediate: pod
                    .and_then(image)
                    .is_some_and(|image| *image != self.target && *image != self.last_good),
            }
        };
        let mut here: Vec<Here<'_>> = seen.nodes.iter().map(here).collect();
        here.sort_by_key(|it| &it.node.name);
        let skippable = if self.rules.skips_all { usize::MAX } else { 1 };
        let unready = here.iter_mut().filter(|it| !it.is_ready);
        unready.take(skippable).for_each(|it| it.is_skipped = true);
        here
    }

    /// Updates what is complete, and for how long.
    fn look(&mut self, here: &[Here<'_>], now: Timestamp) {
        let min_ready = i64::try_from(self.rules.min_ready).unwrap();
        let is_available = |it: &Here<'_>| it.has_new() && it.up_for(now) >= min_ready;
        for (at, (rule, step)) in self.rules.steps.iter().zip(&mut self.progress.steps).enumerate()
        {
            let given = self.approvals.contains(&(at, self.target.clone()));
            if rule.approve && !given && !step.is_done {
                break;
            }
            let (is_complete, up_for) = match rule.nodes.count(here.len()) {
                None => {
                    let of = here.iter().filter(|it| rule.nodes.names(it.node) && it.is_ready);
                    let of: Vec<_> = of.collect();
                    let up = of.iter().map(|it| it.up_for(now)).min().unwrap_or(i64::MAX);
                    (of.iter().all(|it| is_available(it)), up)
                }
                Some(count) => {
                    let mut up: Vec<i64> = here
                        .iter()
                        .filter(|it| is_available(it))
                        .map(|it| it.up_for(now))
                        .collect();
                    up.sort_unstable_by(|a, b| b.cmp(a));
                    let all = here.iter().filter(|it| it.is_ready).all(is_available);
                    let wanted = count.clamp(1, up.len().max(1));
                    let is_complete = up.len() >= count || all;
                    (is_complete && !up.is_empty(), up.get(wanted - 1).copied().unwrap_or(-1))
                }
            };
            // As long as there are no nodes at all, the first ones wait for one.
            let has_nodes = self.rules.steps[..=at].iter().any(|rule| {
                let names = |it: &Here<'_>| it.is_ready && rule.nodes.names(it.node);
                rule.nodes.count(here.len()).is_some() || here.iter().any(names)
            });
            step.look(is_complete && has_nodes, up_for, rule.soak, now);
            if !step.is_done {
                break;
            }
        }
        let Some(domains) = &self.rules.domains else { return };
        for zone in here.iter().map(|it| it.zone).collect::<BTreeSet<_>>() {
            let of = || here.iter().filter(|it| it.zone == zone && it.is_ready);
            let is_complete = of().next().is_some() && of().all(Here::has_new);
            let up = of().map(|it| it.up_for(now)).min().unwrap_or(-1);
            let soaking = self.progress.zones.entry(zone.to_owned()).or_default();
            soaking.look(is_complete, up, domains.soak, now);
        }
    }

    /// The law that a delete on this node breaks.
    fn broken_by(
        &self,
        here: &[Here<'_>],
        node: &str,
        goes_back: bool,
        now: Timestamp,
    ) -> Option<String> {
        let it = here.iter().find(|it| *it.node.name.as_str() == *node)?;
        if !it.is_ready {
            return Some("it is not Ready".into());
        }
        let back = self.is_way_back || goes_back || it.is_updated;
        let limits = self.over_limits(here, it, back, now);
        if back { limits } else { limits.or_else(|| self.too_early(here, it, now)) }
    }

    /// The budgets: they hold on the way back, too.
    fn over_limits(
        &self,
        here: &[Here<'_>],
        it: &Here<'_>,
        back: bool,
        now: Timestamp,
    ) -> Option<String> {
        let Some(domains) = &self.rules.domains else { return self.over_total(here, it) };
        let disturbed: BTreeSet<&str> =
            here.iter().filter(|it| it.is_down()).map(|it| it.zone).collect();
        let mut open = disturbed.clone();
        if !back && self.rules.steps.is_empty() {
            let soaks = |zone: &str| {
                let soaking = self.progress.zones.get(zone).copied().unwrap_or_default();
                soaking.is_complete && !soaking.is_done
            };
            open.extend(here.iter().map(|it| it.zone).filter(|zone| soaks(zone)));
        }
        let min_ready = i64::try_from(self.rules.min_ready).unwrap();
        let may_be_open: BTreeSet<&str> =
            here.iter().filter(|it| it.may_be_down(min_ready, now)).map(|it| it.zone).collect();
        let is_open = open.contains(it.zone) || may_be_open.contains(it.zone);
        if !is_open && open.len() >= domains.at_once {
            return Some(format!("zone {:?} is begun beside {open:?}", it.zone));
        }
        open.extend(may_be_open);
        let in_zone = here.iter().filter(|other| other.zone == it.zone);
        let unavailable = in_zone.filter(|it| it.is_down()).count();
        let limit = domains.max_unavailable.unwrap_or(usize::MAX);
        if it.is_up() && unavailable >= limit {
            return Some(format!("zone {:?} has {unavailable} unavailable", it.zone));
        }
        self.over_total(here, it).or_else(|| self.out_of_order(here, it, &open, back))
    }

    fn over_total(&self, here: &[Here<'_>], it: &Here<'_>) -> Option<String> {
        let unavailable = here.iter().filter(|it| it.is_down()).count();
        let of_policy = self.rules.max_unavailable;
        let limit = if self.rules.surges {
            of_policy.unwrap_or(1)
        } else {
            of_policy.unwrap_or(usize::MAX).min(self.rules.declared)
        };
        (it.is_up() && unavailable >= limit).then(|| format!("{unavailable} are unavailable"))
    }

    /// Without steps, zones come in their order.
    fn out_of_order(
        &self,
        here: &[Here<'_>],
        it: &Here<'_>,
        open: &BTreeSet<&str>,
        back: bool,
    ) -> Option<String> {
        let first = self.rules.domains.as_ref().and_then(|domains| domains.first);
        let rank = |zone: &str| (zone.is_empty(), Some(zone) != first, zone.to_owned());
        if back || !self.rules.steps.is_empty() {
            return None;
        }
        let waits = |other: &&Here<'_>| {
            other.is_ready && other.is_outdated() && rank(other.zone) < rank(it.zone)
        };
        let is_begun = |zone: &str| {
            open.contains(zone) || here.iter().any(|it| it.zone == zone && self.is_deleted(it))
        };
        if is_begun(it.zone) {
            return None;
        }
        let before = here.iter().filter(waits).find(|other| !is_begun(other.zone))?;
        Some(format!("zone {:?} is begun before {:?}", it.zone, before.zone))
    }

    /// Steps, soaks, approvals and windows.
    fn too_early(&self, here: &[Here<'_>], it: &Here<'_>, now: Timestamp) -> Option<String> {
        let second = now.as_second() % PERIOD;
        if self.rules.windows && second + i64::from(NODE_SECONDS) > OPEN {
            return Some(format!("no window, {second} s after the last opening"));
        }
        let done = self.progress.steps.iter().take_while(|step| step.is_done).count();
        if done == self.progress.steps.len() {
            return None;
        }
        let admits = |step: &usize| self.admits(here, it, *step);
        let mut of: Vec<usize> = (0..=done).filter(admits).collect();
        if it.is_broken() {
            of.push(done);
        }
        if of.is_empty() {
            return Some(format!("step {done} is not done"));
        }
        let approved = |step: &usize| {
            let given = (*step, self.target.clone());
            !self.rules.steps[*step].approve || self.approvals.contains(&given)
        };
        of.retain(approved);
        if of.is_empty() {
            return Some("its step is not approved".into());
        }
        let unavailable = here.iter().filter(|it| it.is_down()).count();
        let limits = |step: &usize| self.rules.steps[*step].max_unavailable.unwrap_or(usize::MAX);
        let limit = of.iter().map(limits).max().unwrap_or(usize::MAX);
        let is_over = it.is_up() && unavailable >= limit;
        is_over.then(|| format!("{unavailable} are unavailable in its step"))
    }

    /// The law that is broken if the controller begins a surge now.
    fn surge_too_early(
        &self,
        here: &[Here<'_>],
        has_begun: bool,
        noted: &BTreeSet<String>,
        now: Timestamp,
    ) -> Option<String> {
        let second = now.as_second() % PERIOD;
        // A rollout that has begun ends, and leaves nodes that are not Ready to the controller.
        let is_over = self.progress.has_begun
            && here.iter().filter(|it| it.is_outdated()).all(|it| !it.is_ready);
        if self.rules.windows && !is_over && second + i64::from(NODE_SECONDS) > OPEN {
            return Some(format!("a surge, {second} s after the last opening"));
        }
        // A step that was complete before may have lost a pod that nobody missed: then only the pods
        // count.
        // What the run has found done counts once it is noted: until then, a node may be lost again.
        let is_over = |(at, step): &(usize, &Soaking)| {
            step.has_soaked || (step.is_done && noted.contains(&Rules::step_name(*at)))
        };
        let done = self.progress.steps.iter().enumerate().take_while(is_over).count();
        if done == self.rules.steps.len() {
            return None;
        }
        let rule = &self.rules.steps[done];
        let is_approved = !rule.approve || self.approvals.contains(&(done, self.target.clone()));
        let begins_in_time = is_approved && (has_begun || self.is_last(here, done));
        (!begins_in_time).then(|| format!("a surge, but step {done} is not done"))
    }

    /// Whether a step is the last one: nothing else is outdated.
    fn is_last(&self, here: &[Here<'_>], step: usize) -> bool {
        let steps = &self.rules.steps[..=step];
        let named = |it: &Here<'_>| steps.iter().any(|rule| rule.nodes.names(it.node));
        // A count takes nodes that are not Ready last, unless they have an available new pod. One that
        // was begun and is not Ready proves nothing: another one takes its place.
        let is_outdated = |it: &Here<'_>| it.is_outdated() && !self.is_deleted(it);
        let counts = |it: &&Here<'_>| it.is_ready || it.has_new() || is_outdated(it);
        let taken = here.iter().filter(counts).count();
        let count = steps[step].nodes.count(here.len());
        count.is_some_and(|count| count >= taken)
            || here.iter().filter(|it| is_outdated(it)).all(named)
    }

    /// Whether the run has deleted its pod, however long ago that was sent, and however old the
    /// observation is.
    fn is_deleted(&self, it: &Here<'_>) -> bool {
        it.pod.is_some_and(|pod| self.deleted.contains(&pod.uid))
    }

    /// Whether a node may be one of a step.
    fn admits(&self, here: &[Here<'_>], it: &Here<'_>, step: usize) -> bool {
        let rules = &self.rules.steps[..=step];
        if rules[step].nodes.names(it.node) {
            return true;
        }
        let Some(count) = rules[step].nodes.count(here.len()) else { return false };
        let is_named = |other: &Here<'_>| {
            let steps = rules.iter().zip(&self.progress.steps);
            // Who joins after a step is done belongs to the last one.
            steps.into_iter().any(|(rule, at)| !at.is_done && rule.nodes.names(other.node))
        };
        let is_in = |other: &&Here<'_>| {
            let begun = self.progress.begun.contains(other.node.name.as_str());
            let has_begun = begun && other.is_ready && !other.is_outdated();
            has_begun || other.node.name == it.node.name || is_named(other)
        };
        here.iter().filter(is_in).count() <= count.max(1)
    }
}
