//! One decision: what is wanted now, or why nothing is, or how it ends.
//!
//! The steps of a run stand in their order. Each either finds what it is about in place and lets
//! the next one go on, or says what is wanted and pauses. Not here: whom to delete (`waves`), what
//! has failed (`gate`), what becomes of a failure (`failure`).

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::effect::{Effect, Precondition, Purpose, Write};
use super::gate;
use super::outcome::{
    Attempt, ControllerStep, Ending, Held, Interference, Outcome, Replaced, Trouble,
};
use super::progress::Report;
use super::sight::{Kubelet, Sight, Spot, Stand, of_template};
use super::state::{Course, Failing, Request, Standstill, State, Stop};
use super::task::{Extent, Goal, Provenance, Target, Task};
use super::waves::{self, Hands, Next};
use super::world::{World, is_older, resource_version};
use crate::controller::Owner;
use crate::controller::claims::Claims;
use crate::controller::history::hash_of;
use crate::controller::limits::allows_surge;
use crate::controller::revision_data::{Matching, data_for, matches};
use crate::model::{DaemonSet, NodeName, Pod, UpdateStrategy};
use crate::plan::{Hold, HoldState, ROLLOUT_ANNOTATION, RevisionRef};

/// Why a step goes no further.
#[derive(Debug)]
pub(super) enum Pause {
    /// Something is on its way, or a request was made.
    Wait,
    /// It is over.
    End(Outcome),
}

pub(super) type Flow<T> = Result<T, Pause>;

/// How replacing pods stands.
pub(super) enum Paced {
    /// Going on.
    Wait,
    /// Nothing more to do.
    Clean,
    /// Gates have failed.
    Failed(BTreeMap<NodeName, Trouble>),
    /// Nothing has moved for too long.
    Stands(Held),
}

/// One step in the making.
pub(super) struct Step<'s, 'w> {
    pub state: &'s mut State,
    pub world: &'s World<'w>,
    pub task: Arc<Task>,
    pub now: Timestamp,
    effects: Vec<Effect>,
    wake: Option<Timestamp>,
    /// Whether something was found that does not move.
    stands: bool,
}

/// Decides what is wanted now.
pub(super) fn decide(state: &mut State, world: &World<'_>, now: Timestamp) -> Vec<Effect> {
    let task = Arc::clone(&state.task);
    let mut step = Step { state, world, task, now, effects: Vec::new(), wake: None, stands: false };
    let pause = step.go_on().unwrap_or_else(|pause| pause);
    if !step.stands {
        step.state.standstill = None;
    }
    step.finish(pause)
}

impl<'w> Step<'_, 'w> {
    /// The whole of it.
    fn go_on(&mut self) -> Flow<Pause> {
        self.leave_at_once()?;
        let task = Arc::clone(&self.task);
        let live = self.find()?;
        self.wind_down(live)?;
        match (&task.goal, self.state.course.clone()) {
            (Goal::Apply(target), Course::Forward) => self.apply(target, live),
            (Goal::Apply(target), Course::Failed(failed)) => self.go_back(target, live, failed),
            (Goal::Roll(extent), Course::Forward) => self.roll(extent, live),
            (Goal::Roll(_), Course::Failed(failed)) => {
                Ok(Pause::End(Outcome::Held { why: Held::Failed { failed, not_parked: None } }))
            }
            (Goal::Release { written }, _) => self.release(written, live),
        }
    }

    /// Reasons to stop that ask nothing of the world.
    fn leave_at_once(&self) -> Flow<()> {
        let outcome = if let Some((request, failure)) = &self.state.fatal {
            Outcome::Failed { request: *request, failure: failure.clone() }
        } else if self.state.stop == Some(Stop::LockLost) {
            Outcome::LockLost
        } else if self.state.stop == Some(Stop::InterruptedTwice) {
            Outcome::Interrupted
        } else if self.state.course == Course::Forward && self.is_timed_out() {
            Outcome::Held { why: Held::Timeout }
        } else {
            return Ok(());
        };
        Err(Pause::End(outcome))
    }

    pub(super) fn is_timed_out(&self) -> bool {
        self.task.deadline.is_some_and(|deadline| self.now >= deadline)
    }

    /// The live object, if it is the one that this is about; `None` if it is still to be made.
    fn find(&mut self) -> Flow<Option<&'w DaemonSet>> {
        let Some(live) = self.world.daemon_set else {
            let planned = match &self.task.goal {
                Goal::Apply(target) => target.uid.is_some(),
                Goal::Roll(_) | Goal::Release { .. } => true,
            };
            if self.state.seen || planned {
                return Err(Pause::End(Outcome::Gone { replaced_by: None }));
            }
            if self.is_done(Purpose::Apply) {
                return Err(self.stand_for(ControllerStep::Appear));
            }
            return Ok(None);
        };
        let known = self.state.uid.get_or_insert_with(|| live.uid.clone());
        if *known != live.uid {
            let replaced_by = Some(live.uid.clone());
            return Err(Pause::End(Outcome::Gone { replaced_by }));
        }
        if live.terminating {
            return Err(Pause::End(Outcome::Gone { replaced_by: None }));
        }
        self.state.seen = true;
        Ok(Some(live))
    }

    /// After the first interrupt: nothing is begun; pods that were deleted may come back.
    fn wind_down(&mut self, live: Option<&'w DaemonSet>) -> Flow<()> {
        if self.state.stop != Some(Stop::Interrupted) {
            return Ok(());
        }
        let Some(live) = live else { return Err(Pause::End(Outcome::Interrupted)) };
        let sight = self.look(live);
        let verdict = self.ask_gates(&sight);
        let waits = |spot: &Spot<'_>| {
            let name = &spot.node.name;
            spot.is_desired()
                && spot.kubelet == Kubelet::Ready
                && self.state.pods.replacing.contains_key(name)
                && !verdict.contains_key(name)
        };
        let waits = sight.spots.iter().any(waits);
        Err(if waits { Pause::Wait } else { Pause::End(Outcome::Interrupted) })
    }

    /// The way to the target.
    fn apply(&mut self, target: &Target, live: Option<&'w DaemonSet>) -> Flow<Pause> {
        let Some(live) = live else { return Ok(self.write_target(target, None, None)) };
        if !self.is_done(Purpose::Apply) {
            self.put_in_place(target, live)?;
        }
        self.appeared(live)?;
        let hands = self.as_written(target, live)?;
        let sight = self.look(live);
        self.settled(&sight)?;
        self.recorded(&sight)?;
        if *target.declared.strategy() == UpdateStrategy::OnDelete {
            return Ok(Pause::End(Outcome::Done));
        }
        match self.pace(&sight, hands) {
            Paced::Wait => Ok(Pause::Wait),
            Paced::Failed(failed) => {
                self.state.course = Course::Failed(failed.clone());
                self.go_back(target, Some(live), failed)
            }
            Paced::Stands(why) => Ok(Pause::End(Outcome::Held { why })),
            Paced::Clean => match hands {
                Hands::Ours(_) => Ok(self.give_back(target, &sight)),
                Hands::Controllers => Ok(Pause::End(Outcome::Done)),
            },
        }
    }

    /// The first write, unless the live object is what it would make.
    fn put_in_place(&mut self, target: &Target, live: &'w DaemonSet) -> Flow<()> {
        let outdated = self.is_outdated_for(target, live);
        let declared = target.declared.strategy();
        let paced = *declared != UpdateStrategy::OnDelete && !allows_surge(declared);
        let hold = Hold::of(live).ok().flatten();
        if self.state.from.is_none() {
            self.state.from = self.came_from(target, live, hold.as_ref());
        }
        let same_template = is_template(live, target.template.raw());
        if target.uid.is_none() && !same_template {
            let change = self.another_template(live);
            return Err(Pause::End(Outcome::Stale { change, held: hold.is_some() }));
        }
        let standing = match &hold {
            Some(hold) => {
                paced
                    && hold.state == HoldState::Holding
                    && hold.declared == *target.declared.value()
            }
            None => {
                live.spec.update_strategy == *declared
                    && live.annotations.get(ROLLOUT_ANNOTATION).is_none()
                    && !(paced && outdated)
            }
        };
        if same_template && standing && !target.changes {
            self.state.writing.done.insert(Purpose::Apply);
            self.state.writing.held |= hold.is_some();
            return Ok(());
        }
        let from = self.state.from.clone();
        let hold = (paced && outdated).then(|| self.hold(target, HoldState::Holding, from));
        Err(self.write_target(target, Some(live), hold))
    }

    fn write_target(
        &mut self,
        target: &Target,
        live: Option<&DaemonSet>,
        hold: Option<Hold>,
    ) -> Pause {
        let provenance = Some(self.task.provenance.clone());
        self.state.writing.held |= hold.is_some();
        self.write(Purpose::Apply, target, live, None, hold, provenance)
    }

    /// Whether any pod that lives is of another template than the target.
    fn is_outdated_for(&self, target: &Target, live: &DaemonSet) -> bool {
        let owner = Owner::from(live);
        let revisions = Claims::of(&owner, self.world.revisions).claimed;
        let (templates, _) = of_template(target.template.raw(), &revisions);
        let pods = Claims::of(&owner, self.world.pods).claimed;
        pods.into_iter().any(|pod| !pod.terminating && !templates.is_updated(pod))
    }

    /// The revision to go back to: that of the hold, else that of the live template, else the
    /// newest one that outdated pods are of.
    fn came_from(
        &self,
        target: &Target,
        live: &DaemonSet,
        hold: Option<&Hold>,
    ) -> Option<RevisionRef> {
        if let Some(from) = hold.and_then(|hold| hold.from.clone()) {
            return Some(from);
        }
        let owner = Owner::from(live);
        let claimed = Claims::of(&owner, self.world.revisions).claimed;
        let from = if is_template(live, target.template.raw()) {
            let pods = Claims::of(&owner, self.world.pods).claimed;
            let is_other = |revision: &&&crate::model::Revision| {
                !matches(target.template.raw(), &revision.data, Matching::Tolerant)
                    && pods.iter().any(|pod| !pod.terminating && pod.has_hash(&hash_of(revision)))
            };
            claimed.iter().filter(is_other).max_by_key(|revision| revision.number).copied()
        } else {
            of_template(live.spec.template.raw(), &claimed).1.pop()
        };
        from.map(|it| RevisionRef { name: it.name.clone(), number: it.number })
    }

    pub(super) fn hold(
        &self,
        target: &Target,
        state: HoldState,
        from: Option<RevisionRef>,
    ) -> Hold {
        let Provenance { commit, plan_digest, change_cause: _, by } = self.task.provenance.clone();
        let declared = target.declared.value().clone();
        Hold { state, declared, plan_digest, from, since: self.now, commit, by, failed: None }
    }

    /// Whether what is seen is as new as the last write.
    pub(super) fn appeared(&mut self, live: &DaemonSet) -> Flow<()> {
        match &self.state.writing.version {
            Some(written) if is_older(resource_version(live), &written.resource_version) => {
                Err(self.stand_for(ControllerStep::Appear))
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn is_done(&self, purpose: Purpose) -> bool {
        self.state.writing.done.contains(&purpose)
    }

    /// Whether the live object still is as it was written, and so who replaces pods.
    fn as_written(&mut self, target: &Target, live: &DaemonSet) -> Flow<Hands<'static>> {
        let found = Hold::of(live);
        let held = live.spec.update_strategy == UpdateStrategy::OnDelete
            && *target.declared.strategy() != UpdateStrategy::OnDelete;
        let stale = |change| Err(Pause::End(Outcome::Stale { change, held }));
        if !is_template(live, target.template.raw()) {
            return stale(self.another_template(live));
        }
        let Ok(found) = found else { return stale(Interference::Hold) };
        match found.map(|hold| hold.state) {
            Some(HoldState::Holding) => {
                self.state.writing.held = true;
                Ok(Hands::Ours(&Extent::All))
            }
            Some(HoldState::Parked) => stale(Interference::Hold),
            None if live.spec.update_strategy != *target.declared.strategy() => {
                stale(Interference::Strategy)
            }
            None => {
                let writing = &self.state.writing;
                let ours = !writing.held || writing.sent.contains(&Purpose::GiveBack);
                let gone_on =
                    self.look(live).spots.iter().any(|spot| spot.old().is_some_and(Pod::is_ready));
                if ours || !gone_on {
                    Ok(Hands::Controllers)
                } else {
                    stale(Interference::Strategy)
                }
            }
        }
    }

    fn another_template(&self, live: &DaemonSet) -> Interference {
        let claimed = Claims::of(&Owner::from(live), self.world.revisions).claimed;
        let revision = of_template(live.spec.template.raw(), &claimed).1.pop();
        Interference::Template { revision: revision.map(|revision| revision.name.clone()) }
    }

    /// Whether the controller has seen the live object and made its one revision. Pods that are
    /// deleted before might come back with the template before.
    pub(super) fn settled(&mut self, sight: &Sight<'_>) -> Flow<()> {
        let generation = sight.live.generation;
        let observed = sight.live.status.observed_generation;
        let step = match sight.revisions.as_slice() {
            _ if observed < generation => ControllerStep::Observe { generation, observed },
            [] => ControllerStep::MakeRevision,
            [revision] => {
                if self.state.told.revision.as_ref() != Some(&revision.name) {
                    self.state.told.revision = Some(revision.name.clone());
                    self.report(Report::Revision(revision.name.clone()));
                }
                return Ok(());
            }
            several => ControllerStep::DropDuplicates { revisions: several.len() },
        };
        Err(self.stand_for(step))
    }

    /// The provenance stands on the revision.
    fn recorded(&mut self, sight: &Sight<'_>) -> Flow<()> {
        let Some(revision) = sight.revisions.last() else { return Ok(()) };
        if self.state.recorded || self.task.provenance.is_on(&revision.annotations) {
            return Ok(());
        }
        let request = self.state.recording;
        self.may_go(request, Attempt::Record)?;
        self.state.recording = Request::Out;
        self.effects
            .push(Effect::Record { revision: revision.name.clone(), uid: revision.uid.clone() });
        Err(Pause::Wait)
    }

    /// Replaces pods, or watches the controller do so, through the gates.
    pub(super) fn pace(&mut self, sight: &Sight<'_>, hands: Hands<'_>) -> Paced {
        let failed = self.ask_gates(sight);
        self.tell_progress(sight);
        if !failed.is_empty() {
            return Paced::Failed(failed);
        }
        match waves::next(sight, self.state, hands) {
            Next::Wait { until } => {
                self.wake_at(until);
                Paced::Wait
            }
            Next::Clean => Paced::Clean,
            Next::Stand(what) => match self.stand(what) {
                Some(seconds) => Paced::Stands(Self::why_held(sight, what, seconds)),
                None => Paced::Wait,
            },
            Next::Delete(deletes) => {
                for delete in deletes {
                    let request = self.state.pods.deleted.get(&delete.uid).copied();
                    if let Err(pause) =
                        self.may_go(request.unwrap_or(Request::Idle), Attempt::Delete)
                    {
                        return match pause {
                            Pause::End(Outcome::Held { why }) => Paced::Stands(why),
                            Pause::End(_) | Pause::Wait => Paced::Wait,
                        };
                    }
                    self.delete(delete);
                }
                Paced::Wait
            }
        }
    }

    fn delete(&mut self, delete: super::Delete) {
        let pods = &mut self.state.pods;
        if pods.deleted.insert(delete.uid.clone(), Request::Out).is_none() {
            pods.count += 1;
        }
        pods.replacing.entry(delete.node.clone()).or_insert(self.now);
        self.report(Report::Deleting(delete.clone()));
        self.effects.push(Effect::Delete(delete));
    }

    fn why_held(sight: &Sight<'_>, what: Standstill, seconds: i64) -> Held {
        match what {
            Standstill::Controller(step) => Held::ControllerStands { step, seconds },
            Standstill::Budget { unavailable, outdated: _ } => {
                Held::BudgetTaken { unavailable, allowed: sight.allowed, seconds }
            }
            Standstill::OldPods { nodes: _ } => {
                Held::OldPodsRemain { nodes: waves::ready_on_unready_nodes(sight), seconds }
            }
        }
    }

    /// The declared strategy, once no Ready outdated pod remains: the controller would roll it by
    /// its own rules at once.
    fn give_back(&mut self, target: &Target, sight: &Sight<'_>) -> Pause {
        let nodes = waves::ready_on_unready_nodes(sight).len();
        if nodes > 0 {
            let what = Standstill::OldPods { nodes };
            return match self.stand(what) {
                Some(seconds) => {
                    let why = Self::why_held(sight, what, seconds);
                    Pause::End(Outcome::Held { why })
                }
                None => Pause::Wait,
            };
        }
        let provenance = Some(self.task.provenance.clone());
        self.write(Purpose::GiveBack, target, Some(sight.live), None, None, provenance)
    }

    /// Pods go to the live template, which somebody else wrote, and nobody writes here.
    fn roll(&mut self, extent: &Extent, live: Option<&'w DaemonSet>) -> Flow<Pause> {
        let Some(live) = live else {
            return Ok(Pause::End(Outcome::Gone { replaced_by: None }));
        };
        let held = Hold::of(live).is_ok_and(|hold| hold.is_some());
        let stale = |change| Ok(Pause::End(Outcome::Stale { change, held }));
        if live.spec.update_strategy != UpdateStrategy::OnDelete {
            return stale(Interference::Strategy);
        }
        let template = live.spec.template.raw();
        let began = self.state.template.get_or_insert_with(|| Arc::new(template.clone()));
        if **began != *template {
            return stale(self.another_template(live));
        }
        let sight = self.look(live);
        self.settled(&sight)?;
        Ok(match self.pace(&sight, Hands::Ours(extent)) {
            Paced::Wait => Pause::Wait,
            Paced::Clean => Pause::End(Outcome::Done),
            Paced::Stands(why) => Pause::End(Outcome::Held { why }),
            Paced::Failed(failed) => {
                self.state.course = Course::Failed(failed.clone());
                Pause::End(Outcome::Held { why: Held::Failed { failed, not_parked: None } })
            }
        })
    }

    /// The declared strategy, whatever the controller then does.
    fn release(&mut self, written: &Arc<Value>, live: Option<&'w DaemonSet>) -> Flow<Pause> {
        let Some(live) = live else {
            return Ok(Pause::End(Outcome::Gone { replaced_by: None }));
        };
        self.appeared(live)?;
        match Hold::of(live) {
            Ok(None) => Ok(Pause::End(Outcome::Done)),
            Err(_) => {
                let change = Interference::Hold;
                Ok(Pause::End(Outcome::Stale { change, held: true }))
            }
            Ok(Some(hold)) => Ok(self.send(Write {
                precondition: unchanged(live),
                purpose: Purpose::GiveBack,
                written: Arc::clone(written),
                template: None,
                strategy: hold.declared,
                hold: None,
                provenance: None,
            })),
        }
    }

    pub(super) fn look(&self, live: &'w DaemonSet) -> Sight<'w> {
        Sight::of(live, self.world, self.state, self.now)
    }

    /// What has failed, by node; also notes which nodes are well again.
    fn ask_gates(&mut self, sight: &Sight<'_>) -> BTreeMap<NodeName, Trouble> {
        self.note_recovered(sight);
        let verdict = gate::check(sight, &mut self.state.pods, &self.task.pace);
        self.wake_at(verdict.next);
        for (node, trouble) in &verdict.failed {
            if self.state.told.failed.insert(node.clone()) {
                self.report(Report::Failed { node: node.clone(), trouble: trouble.clone() });
            }
        }
        verdict.failed
    }

    fn note_recovered(&mut self, sight: &Sight<'_>) {
        for spot in &sight.spots {
            let Stand::Well(_) = spot.stand else { continue };
            let Some(since) = self.state.pods.replacing.remove(&spot.node.name) else { continue };
            let node = spot.node.name.clone();
            let seconds = self.now.duration_since(since).as_secs();
            self.state.pods.replaced.push(Replaced { node: node.clone(), seconds });
            self.report(Report::Recovered { node, seconds });
        }
    }

    fn tell_progress(&mut self, sight: &Sight<'_>) {
        let wave = waves::current(sight, self.state);
        let progress = sight.progress(wave, self.state.pods.waiting.len());
        if self.state.told.progress != Some(progress) {
            self.state.told.progress = Some(progress);
            self.report(Report::Progress(progress));
        }
    }

    /// Writes the DaemonSet as `target` has it, but for what is given.
    pub(super) fn write(
        &mut self,
        purpose: Purpose,
        target: &Target,
        live: Option<&DaemonSet>,
        template: Option<Arc<Value>>,
        hold: Option<Hold>,
        provenance: Option<Provenance>,
    ) -> Pause {
        let strategy = match &hold {
            Some(_) => serde_json::json!({"type": "OnDelete"}),
            None => target.declared.value().clone(),
        };
        self.send(Write {
            precondition: live.map_or(Precondition::Absent, unchanged),
            purpose,
            written: Arc::clone(&target.written),
            template,
            strategy,
            hold,
            provenance,
        })
    }

    fn send(&mut self, write: Write) -> Pause {
        let request = self.state.writing.request;
        if let Err(pause) = self.may_go(request, Attempt::Write) {
            return pause;
        }
        self.state.writing.request = Request::Out;
        self.state.writing.last = Some(write.purpose);
        self.state.writing.sent.insert(write.purpose);
        self.report(Report::Writing(write.purpose));
        self.effects.push(Effect::Write(Box::new(write)));
        Pause::Wait
    }

    /// Whether a request may be made now. One that has come to nothing for too long ends the run.
    pub(super) fn may_go(&mut self, request: Request, attempt: Attempt) -> Flow<()> {
        match request {
            Request::Idle => Ok(()),
            Request::Out => Err(Pause::Wait),
            Request::RetryAt(at) if self.now < at => {
                self.wake_at(Some(at));
                Err(Pause::Wait)
            }
            Request::RetryAt(_) => match &self.state.failing {
                Some(Failing { since, request, failure, last: _ }) if *request == attempt => {
                    let waited = self.now.duration_since(*since);
                    if waited < self.patience() {
                        return Ok(());
                    }
                    let (request, failure) = (*request, failure.clone());
                    let why = Held::NoAnswer { request, failure, seconds: waited.as_secs() };
                    Err(Pause::End(Outcome::Held { why }))
                }
                Some(_) | None => Ok(()),
            },
        }
    }

    fn patience(&self) -> SignedDuration {
        SignedDuration::from_secs(self.task.pace.progress_deadline.0.into())
    }

    /// Notes that nothing moves; for how many seconds it has not, once that is too long.
    fn stand(&mut self, what: Standstill) -> Option<i64> {
        self.stands = true;
        let since = match self.state.standstill {
            Some((since, before)) if before == what => since,
            Some(_) | None => self.now,
        };
        self.state.standstill = Some((since, what));
        let waited = self.now.duration_since(since);
        if waited >= self.patience() {
            return Some(waited.as_secs());
        }
        self.wake_at(Some(since + self.patience()));
        None
    }

    /// Waits for the controller, but not for ever.
    fn stand_for(&mut self, step: ControllerStep) -> Pause {
        match self.stand(Standstill::Controller(step)) {
            Some(seconds) => {
                Pause::End(Outcome::Held { why: Held::ControllerStands { step, seconds } })
            }
            None => Pause::Wait,
        }
    }

    pub(super) fn wake_at(&mut self, at: Option<Timestamp>) {
        self.wake = self.wake.into_iter().chain(at).min();
    }

    fn report(&mut self, report: Report) {
        self.effects.push(Effect::Report(report));
    }

    pub(super) fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// An end waits for the answers to all requests, so that nothing happens after it.
    fn finish(mut self, pause: Pause) -> Vec<Effect> {
        let leaves = self.state.stop == Some(Stop::InterruptedTwice);
        match pause {
            Pause::End(outcome) if leaves || !self.state.awaits_answers() => {
                self.state.finished = true;
                let live =
                    self.world.daemon_set.filter(|live| Some(&live.uid) == self.state.uid.as_ref());
                let left = live.map(|live| self.look(live).left()).unwrap_or_default();
                let replaced = std::mem::take(&mut self.state.pods.replaced);
                let ending = Ending { outcome, replaced, left };
                self.effects.push(Effect::Finish(Box::new(ending)));
            }
            Pause::End(_) | Pause::Wait => {
                self.wake_at(self.task.deadline.filter(|at| *at > self.now));
                self.effects.extend(self.wake.map(Effect::WakeAt));
            }
        }
        self.effects
    }
}

/// Whether the live template is this one, whatever an older server's spelling.
pub(super) fn is_template(live: &DaemonSet, template: &Value) -> bool {
    matches(live.spec.template.raw(), &data_for(template), Matching::Tolerant)
}

fn unchanged(live: &DaemonSet) -> Precondition {
    let resource_version = resource_version(live).to_owned();
    Precondition::Unchanged { uid: live.uid.clone(), resource_version }
}
