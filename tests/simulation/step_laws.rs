//! The laws of a policy with steps: which node may begin when. Own counts of nodes, pods and times;
//! no rule is shared with the planner.
//!
//! Each replacement of an outdated pod is judged when it is sent. Where the policy leaves a choice
//! (which nodes a count takes), any choice is fine that keeps the number. Budgets of the whole
//! DaemonSet are judged elsewhere (`budget`).

mod approvals;
mod checks;
mod domains;
mod here;
mod order;
mod progress;

use std::collections::{BTreeMap, BTreeSet};

use daemonset::controller::placement::judge;
use daemonset::model::{CheckQuestion, DaemonSet, Node, NodeName, Pod};
use ds_plan::Exit;
use embedded::{Kind, Store};
use jiff::{SignedDuration, Timestamp};
use planner::plan::{PauseState, PausedRollout};

use crate::budget::{Nodes, owns};
use crate::objects::{image_of, pods, revisions};
use crate::pulls::Pulls;
use crate::rules::Rules;
pub(crate) use approvals::Approvals;
use checks::{CheckLaws, Seen};
use domains::{Zones, zones_with};
use here::{Here, desired_nodes_of, zone_of};
use order::Evidence;
use progress::Progress;

/// How much later than the program a law may see a time: it has whole seconds.
const ROUNDED: SignedDuration = SignedDuration::from_secs(1);

/// What the laws of steps remember.
pub(crate) struct StepLaws {
    /// The time at the beginning, to which exclusions are relative.
    start: Timestamp,
    rules: Rules,
    /// The image of the run's commit.
    target: u32,
    /// The image that finished all steps last.
    good: u32,
    /// The image that was live without a pause after that: its run may have been killed before it
    /// said that all is done, or have ended otherwise because of another DaemonSet.
    perhaps: Option<u32>,
    /// The images whose rollout was recorded as failed since they were good last.
    failed: BTreeSet<u32>,
    /// The image of the rollout in progress.
    rollout: Option<u32>,
    /// The last good image after an abort, while the pods of the failed one are replaced. That is no
    /// rollout of its own: it only keeps to budgets, and uses up no approval.
    goes_back: Option<u32>,
    progress: Progress,
    /// How far other images were, as long as no rollout of another one has begun.
    others: BTreeMap<u32, Progress>,
    zones: Zones,
    /// The nodes that did not get the image in time, and are skipped.
    not_pulled: BTreeSet<NodeName>,
    checks: CheckLaws,
    pub(crate) approvals: Approvals,
}

/// A replacement that is about to begin.
struct Begin<'b, 'a> {
    here: &'b [Here<'a>],
    it: &'b Here<'a>,
    /// Whether the pod is available, so that its delete costs something.
    is_available: bool,
    /// The Ready nodes that are down.
    down: &'b [NodeName],
    /// The zones of nodes that are not Ready and count: they are more than may be skipped.
    with_unready: &'b BTreeSet<String>,
    /// The nodes that wait for the image of the target, or for another DaemonSet of a shared budget.
    waiting: &'b BTreeSet<NodeName>,
    /// Whether it is skipped: it could not, or a precondition holds it back.
    is_skipped: &'b dyn Fn(&NodeName) -> bool,
    now: Timestamp,
}

impl StepLaws {
    /// `is_calm` says that nothing fails, and nobody interferes.
    pub(crate) fn new(rules: Rules, start: Timestamp, is_calm: bool) -> Self {
        Self {
            progress: Progress::of(&rules, start),
            start,
            rules,
            target: 1,
            good: 1,
            failed: BTreeSet::new(),
            perhaps: None,
            rollout: None,
            goes_back: None,
            others: BTreeMap::new(),
            zones: Zones::default(),
            not_pulled: BTreeSet::new(),
            checks: CheckLaws::new(is_calm),
            approvals: Approvals::default(),
        }
    }

    /// The policy of the last run.
    pub(crate) fn rules(&self) -> &Rules {
        &self.rules
    }

    /// The image of the last run's commit.
    pub(crate) fn target(&self) -> u32 {
        self.target
    }

    /// Whether the pods of a failed image are replaced by the last good one.
    pub(crate) fn goes_back(&self) -> bool {
        self.goes_back == Some(self.target)
    }

    /// A run of a commit begins.
    pub(crate) fn run_begins(&mut self, image: u32, rules: Rules, now: Timestamp) {
        let same = |at: &usize| rules.steps.get(*at) == self.rules.steps.get(*at);
        let edited = (0..rules.steps.len()).find(|at| !same(at));
        self.rules = rules;
        self.checks.run_begins(image != self.target);
        if image != self.target {
            let known = self.others.remove(&image);
            let known = known.unwrap_or_else(|| Progress::of(&self.rules, now));
            let before = std::mem::replace(&mut self.progress, known);
            self.others.insert(std::mem::replace(&mut self.target, image), before);
        }
        if let Some(edited) = edited {
            self.all().for_each(|progress| progress.steps.begin_again(edited, now));
        }
    }

    fn all(&mut self) -> impl Iterator<Item = &mut Progress> {
        self.others.values_mut().chain([&mut self.progress])
    }

    /// The note about the steps is lost.
    pub(crate) fn forget(&mut self, now: Timestamp) {
        self.all().for_each(|progress| progress.begin_again(now));
        self.approvals.forget_use();
        self.checks.forget();
    }

    /// The law that is broken by a question of the run.
    pub(crate) fn asked(
        &self,
        question: &CheckQuestion,
        live: &DaemonSet,
        (store, nodes): (&Store, &Nodes),
        now: Timestamp,
    ) -> Option<String> {
        let here = self.here(live, store, nodes, None, now);
        let seen = Seen { rules: &self.rules, here: &here, live, nodes, now };
        CheckLaws::bad_question(&seen, question)
    }

    /// The run has got an answer, to a question that it asked at this time.
    pub(crate) fn answered(&mut self, question: &CheckQuestion, asked: Timestamp) {
        if let Some(checks) = &self.rules.checks {
            self.checks.answered(checks, question, asked, self.target);
        }
    }

    /// The rollout of the run's image begins, unless it has begun before: that of any other one ends.
    fn rollout_begins(&mut self) {
        if self.rollout == Some(self.target) {
            return;
        }
        self.rollout = Some(self.target);
        self.others.clear();
        self.progress.begun.clear();
        self.progress.unfinished.clear();
        let target = self.target;
        self.approvals.use_up(|image| image != target);
    }

    /// The rollout has ended: it is done, or it has failed.
    fn rollout_ends(&mut self, is_done: bool, now: Timestamp) {
        self.approvals.use_up(|_| true);
        self.checks.rollout_ends();
        if is_done {
            self.perhaps = Some(self.target);
        } else {
            self.rollout = None;
            self.progress.begin_again(now);
        }
    }

    fn is_good(&self, image: u32) -> bool {
        image == self.good || Some(image) == self.perhaps
    }

    /// Whether what is good may have failed: then it is not put back.
    fn good_has_failed(&self) -> bool {
        self.failed.iter().any(|image| self.is_good(*image))
    }

    /// Whether a rollout may wait with this image live.
    fn may_wait_with(&self, image: u32) -> bool {
        let is_kept = self.rules.keeps_target || self.good_has_failed();
        self.is_good(image) || (image == self.target && is_kept)
    }

    /// A failed template was recorded.
    pub(crate) fn failed(&mut self, now: Timestamp) {
        self.failed.insert(self.target);
        self.rollout_ends(false, now);
    }

    /// The program has written the DaemonSet. Returns the broken law.
    pub(crate) fn written(&mut self, live: &DaemonSet, now: Timestamp) -> Option<String> {
        let image = image_of(live.spec.template.raw());
        let pause = PausedRollout::of(live).ok().flatten().map(|pause| pause.state);
        let went_back = self.goes_back.take().filter(|good| [image, self.target] == [*good; 2]);
        let (good, is_good) = (self.good, self.is_good(image));
        match pause {
            Some(PauseState::Aborted) => {
                self.rollout_ends(false, now);
                self.all().for_each(|progress| progress.unfinished.clear());
                self.goes_back = Some(image);
                (!is_good).then(|| format!(" was aborted to image {image}, {good} is good"))
            }
            Some(PauseState::Waiting) => {
                self.goes_back = went_back;
                // Nodes that a killed run has left without a pod get one of the good template now.
                let puts_back = image != self.target;
                self.all()
                    .filter(|_| puts_back)
                    .for_each(|progress| progress.unfinished.put_back());
                (!self.may_wait_with(image))
                    .then(|| format!(" waits with image {image}, {good} is good"))
            }
            Some(PauseState::Paused) => {
                self.goes_back = went_back;
                if image == self.target && went_back.is_none() {
                    self.rollout_begins();
                }
                None
            }
            None if went_back.is_some() => None,
            None if image == self.target => {
                self.rollout_begins();
                self.rollout_ends(true, now);
                None
            }
            None => None,
        }
    }

    /// The broken law at the end of a run: of its checks, or of the template with which it waits.
    pub(crate) fn run_ended(
        &mut self,
        exit: Exit,
        live: &DaemonSet,
        (store, nodes): (&Store, &Nodes),
        now: Timestamp,
    ) -> Option<String> {
        let image = image_of(live.spec.template.raw());
        let here = self.here(live, store, nodes, None, now);
        if exit == Exit::Done && image == self.target {
            let begun = here.iter().filter(|one| self.progress.begun.contains(&one.node.name));
            let up = begun.filter(|one| one.has_new()).map(|one| one.up_for(now)).min();
            if let Some(law) = self.checks.done(&self.rules, image, up, now) {
                return Some(format!("{}: {law}", live.key));
            }
        }
        if exit == Exit::Done && image == self.target {
            (self.good, self.perhaps) = (self.target, None);
            self.failed.remove(&self.target);
        }
        let has_good = !self.good_has_failed();
        let stays = image == self.target && !self.is_good(image) && has_good;
        let may_begin = self.may_begin(&here, now);
        if let Some(law) = self.checks.run_ended(&self.rules, exit, (stays, may_begin)) {
            return Some(format!("{}: {law}", live.key));
        }
        let waits = matches!(exit, Exit::Waiting | Exit::ApprovalNeeded);
        // If the good one has failed, nothing is written: that of an earlier commit stays.
        let is_left = image != self.target && !has_good;
        (waits && !self.may_wait_with(image) && !is_left)
            .then(|| format!("{}: it waits with image {image}, {} is good", live.key, self.good))
    }

    /// Updates what is complete, done, and disturbed.
    pub(crate) fn look(
        &mut self,
        live: &DaemonSet,
        store: &Store,
        (nodes, pulls): (&Nodes, &Pulls),
        now: Timestamp,
    ) {
        self.not_pulled = pulls.timed_out(self.target, self.rules.pulls_for, nodes.sight(), now);
        let here = self.here(live, store, nodes, None, now);
        self.progress.unfinished.look(&here);
        self.checks.look(&here, nodes, now);
        let Self { rules, target, approvals, progress, checks, .. } = self;
        // The samples of a rollout do not begin before it, and it begins before its first node.
        let begun_at = checks.begun_at(now);
        let evidence = Evidence {
            is_approved: &|step| approvals.has(step, *target),
            has_passed: &|last, end| checks.has_passed(rules, *target, (last.max(begun_at), end)),
        };
        progress.steps.look(&here, rules, &evidence, now);
        progress.soaks.look(&here, rules, now);
        let all = store.objects(Kind::Node, None).filter_map(|it| it.node());
        self.zones.look(&here);
        for node in all.filter(|node| may_be_down(node, live, store, nodes)) {
            self.zones.disturb(zone_of(node), now);
        }
    }

    /// The law that is broken if this outdated pod is deleted now. `waiting` are nodes that wait for
    /// something else than a step; `has_begun` says whether this one was begun for another DaemonSet.
    pub(crate) fn broken(
        &mut self,
        pod: &Pod,
        live: &DaemonSet,
        (store, nodes, pulls): (&Store, &Nodes, &Pulls),
        (waiting, has_begun): (&BTreeSet<NodeName>, bool),
        now: Timestamp,
    ) -> Option<String> {
        self.look(live, store, (nodes, pulls), now);
        let is_forward = image_of(live.spec.template.raw()) == self.target;
        if is_forward && !self.goes_back() {
            self.rollout_begins();
        }
        let here = self.here(live, store, nodes, Some(pod), now);
        let it = here.iter().find(|one| Some(&one.node.name) == pod.node())?;
        let (down, unready) = nodes.down(live, store, now);
        let with_unready = &zones_with(unready, &self.rules, here.len(), store);
        let is_available = crate::budget::is_available(pod, live, nodes.seen_by(now));
        let holds_back = |node: &NodeName| self.checks.holds_back(&self.rules, node);
        let is_skipped = |node: &NodeName| self.not_pulled.contains(node) || holds_back(node);
        let (here, down, is_skipped) = (&here[..], &down[..], &is_skipped);
        let begin = Begin { here, it, is_available, down, with_unready, waiting, is_skipped, now };
        if let Some(law) = self.zones.over_limits(&begin, &self.rules, nodes.seen_by(now)) {
            return Some(law);
        }
        if !is_forward {
            return (self.rules.on_failure != "rollback")
                .then(|| " although another template is rolled out".to_owned());
        }
        if self.progress.unfinished.contains(&it.node.name) {
            return Some(", and its node was disturbed before".to_owned());
        }
        if self.goes_back() {
            return None;
        }
        let seen = Seen { rules: &self.rules, here, live, nodes, now };
        let closed = self.closed(now).filter(|_| !has_begun);
        if let Some(law) = closed.or_else(|| self.checks.broken(&seen, it)) {
            return Some(law);
        }
        // The program may still choose by what a node was before.
        if !nodes.are_known(now) {
            return None;
        }
        let Progress { soaks, unfinished, .. } = &self.progress;
        let order = || soaks.out_of_order(&begin, &self.rules, (&self.zones, unfinished));
        self.too_early(&begin).or_else(|| order().filter(|_| !has_begun))
    }

    /// Records that this pod of a node is deleted.
    pub(crate) fn begins(
        &mut self,
        pod: &Pod,
        live: &DaemonSet,
        (store, nodes): (&Store, &Nodes),
        now: Timestamp,
    ) {
        let Some(node) = pod.node() else { return };
        if image_of(live.spec.template.raw()) != self.target {
            return;
        }
        if self.goes_back() {
            self.progress.unfinished.insert(node.clone(), pod);
            return;
        }
        self.checks.begins(now);
        let here = self.here(live, store, nodes, Some(pod), now);
        if !here.iter().any(|one| one.node.name == *node && self.is_broken(one)) {
            self.progress.begun.insert(node.clone());
        }
        self.progress.unfinished.insert(node.clone(), pod);
    }

    /// Whether a node has an unavailable pod, not of the target nor good: it counts for no step.
    fn is_broken(&self, it: &Here<'_>) -> bool {
        let is_intermediate = |image| image != self.target && !self.is_good(image);
        it.image.is_some_and(is_intermediate) && !it.is_up()
    }

    /// Steps, soaks, approvals, and the budgets of steps.
    fn too_early(&self, begin: &Begin<'_, '_>) -> Option<String> {
        let Begin { here, it, is_available, down, .. } = *begin;
        let done = self.progress.steps.done();
        let all = &self.rules.steps;
        if done == all.len() {
            return None;
        }
        let admits = |at: &usize| order::admits(here, it, *at, self);
        let mut of: Vec<usize> = (0..=done).filter(admits).collect();
        if self.is_broken(it) {
            of.push(done);
        }
        if of.is_empty() {
            return Some(format!(" before step {} is done", all[done].name));
        }
        of.retain(|at| !all[*at].approve || self.approvals.has(&all[*at], self.target));
        if of.is_empty() {
            return Some(", and its step is not approved".to_owned());
        }
        let limit = of.iter().map(|at| all[*at].max_unavailable.unwrap_or(u64::MAX)).max();
        let limit = limit.unwrap_or(u64::MAX);
        let others = down.iter().filter(|name| **name != it.node.name).count() as u64;
        (is_available && others >= limit)
            .then(|| format!(", {others} nodes are down, {limit} allowed in its step"))
    }

    fn here<'s>(
        &self,
        live: &DaemonSet,
        store: &'s Store,
        nodes: &Nodes,
        judged: Option<&Pod>,
        now: Timestamp,
    ) -> Vec<Here<'s>> {
        let mut images: BTreeMap<String, u32> = BTreeMap::new();
        for revision in revisions(live, store) {
            if let Some(hash) = revision.hash() {
                images.insert(hash.to_string(), image_of(&revision.data["spec"]["template"]));
            }
        }
        let image = |pod: &Pod| {
            let hash = pod.revision_hash()?.to_string();
            images.get(&hash).copied()
        };
        let is_judged = |pod: &Pod| judged.is_some_and(|judged| judged.uid == pod.uid);
        let goes = |pod: &Pod| pod.terminating || (nodes.is_leaving(pod) && !is_judged(pod));
        let stays = |pod: &&Pod| owns(live, pod) && !goes(pod);
        // Its own store outlives the object.
        let desired: Vec<&'s Node> = desired_nodes_of(live, store);
        let here = desired.into_iter().map(|node| {
            let mut own = pods(store).filter(stays);
            let pod = own.find(|pod| pod.node() == Some(&node.name));
            let image = pod.and_then(image);
            Here {
                node,
                is_ready: nodes.is_ready(&node.name, now) && !self.not_pulled.contains(&node.name),
                zone: zone_of(node),
                pod,
                image,
                is_updated: image == Some(self.target),
            }
        });
        here.collect()
    }
}

/// Whether the program may count a node as down. One where no pod may start counts while its pod
/// goes.
fn may_be_down(node: &Node, live: &DaemonSet, store: &Store, nodes: &Nodes) -> bool {
    let is_desired = judge(&live.spec.template.placement, node).may_start;
    let has_pod = || pods(store).any(|pod| pod.node() == Some(&node.name) && owns(live, pod));
    nodes.may_be_down(live, &node.name) || (!is_desired && has_pod())
}
