//! The way to the target: written once, under a hold if pods must be replaced; recorded; replaced
//! in waves; the strategy given back.
//!
//! The live object decides how far that is: what is in place is not written again. Whoever else
//! changes it ends the run. Not here: what a failed gate leads to (`failure`).

use jiff::Timestamp;
use serde_json::Value;

use super::decide::{Flow, Pause, Step, is_template};
use super::effect::{Effect, Purpose};
use super::outcome::{Attempt, Held, Interference, Outcome};
use super::pace::Paced;
use super::sight::{Kubelet, Sight, Spot, Stand, of_template};
use super::state::{Course, Leave, Request, Standstill};
use super::task::{Extent, Provenance, Target};
use super::waves::{self, Hands};
use super::world::World;
use crate::controller::Owner;
use crate::controller::claims::Claims;
use crate::controller::history::hash_of;
use crate::controller::limits::allows_surge;
use crate::controller::revision_data::{Matching, matches};
use crate::model::{DaemonSet, ManagedBy, Pod, Revision, UpdateStrategy};
use crate::plan::{Hold, HoldState, ROLLOUT_ANNOTATION, RevisionRef};
use crate::planted::planted;

impl<'w> Step<'_, 'w> {
    /// The way to the target.
    pub(super) fn apply(&mut self, target: &Target, live: Option<&'w DaemonSet>) -> Flow<Pause> {
        let Some(live) = live else { return Ok(self.create(target)) };
        if !self.is_done(Purpose::Apply) {
            self.put_in_place(target, live)?;
        }
        self.appeared(live)?;
        self.state.leave = Leave::Upkeep;
        let hands = self.as_written(target, live)?;
        let sight = self.look(live);
        self.state.creates = self.may_create(target, &sight);
        planted!(self.settled(&sight), "nobody waits for the controller" => Ok(()))?;
        self.recorded(&sight)?;
        if *target.declared.strategy() == UpdateStrategy::OnDelete {
            self.filled(&sight)?;
            return Ok(Pause::End(Outcome::Done));
        }
        self.take_up(target, &sight, hands)?;
        match self.pace(&sight, hands) {
            Paced::Wait => {
                let surges = allows_surge(target.declared.strategy());
                if surges && matches!(hands, Hands::Controllers) {
                    self.state.leave = Leave::Surge;
                }
                Ok(Pause::Wait)
            }
            Paced::Failed(failed) if rolls_nothing(target, &sight, hands) => {
                Ok(Pause::End(Outcome::Held { why: Held::Failed { failed, not_parked: None } }))
            }
            Paced::Failed(failed) => {
                self.state.course = Course::Failed(failed.clone());
                self.go_back(target, Some(live), failed)
            }
            Paced::Stands(why) => Ok(Pause::End(Outcome::Held { why })),
            Paced::Clean => match hands {
                Hands::Ours(_) => Ok(self.give_back(target, &sight)),
                Hands::Controllers => {
                    self.forget(target)?;
                    Ok(Pause::End(Outcome::Done))
                }
            },
        }
    }

    /// The first write, unless the live object is what it would make.
    pub(super) fn put_in_place(&mut self, target: &Target, live: &'w DaemonSet) -> Flow<()> {
        let outdated = is_outdated_for(target.template.raw(), live, self.world);
        let declared = target.declared.strategy();
        let paced = is_paced(target);
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
        let ours = planted!(paced && outdated, "applied without a hold" => false);
        let hold = ours.then(|| self.hold(target, HoldState::Holding, from));
        Err(self.write_target(target, Some(live), hold))
    }

    /// Outdated pods that turn up beside a target without a hold are the controller's to replace.
    /// Where the run brings its own, nobody would: it takes the hold, and paces.
    fn take_up(&mut self, target: &Target, sight: &Sight<'w>, hands: Hands<'_>) -> Flow<()> {
        let is_old =
            |spot: &Spot<'_>| spot.kubelet == Kubelet::Ready && matches!(spot.stand, Stand::Old(_));
        let nobody_paces = match (hands, sight.live.managed_by) {
            (Hands::Controllers, ManagedBy::DsApply) => is_paced(target),
            (Hands::Controllers, ManagedBy::DaemonSetController) | (Hands::Ours(_), _) => false,
        };
        if nobody_paces && sight.spots.iter().any(is_old) {
            return self.put_in_place(target, sight.live);
        }
        Ok(())
    }

    /// The first write of an object that is not there. Pods that lost theirs become the new one's;
    /// where the plan replaces some, it is under the hold from birth: the controller would take
    /// them for updated by their generation, or replace them by its own rules.
    fn create(&mut self, target: &Target) -> Pause {
        let replaces = is_paced(target) && !self.task.waves.is_empty();
        let adopts = planted!(replaces, "orphans are adopted without a hold" => false);
        let hold = adopts.then(|| self.hold(target, HoldState::Holding, None));
        self.write_target(target, None, hold)
    }

    pub(super) fn write_target(
        &mut self,
        target: &Target,
        live: Option<&DaemonSet>,
        hold: Option<Hold>,
    ) -> Pause {
        let change = Some(self.task.provenance.clone());
        let provenance = planted!(change, "the change is not recorded" => None);
        self.state.writing.held |= hold.is_some();
        self.write(Purpose::Apply, target, live, None, hold, provenance)
    }

    /// The revision to go back to: that of the hold, else that of the live template, else the
    /// newest one that outdated pods are of.
    pub(super) fn came_from(
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
            let is_other = |revision: &&&Revision| {
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
        let declared = planted!(
            target.declared.value().clone(),
            "the hold forgets what was declared" => serde_json::json!({"type": "RollingUpdate"})
        );
        // Whole seconds, as everywhere in Kubernetes.
        let since = Timestamp::from_second(self.now.as_second()).unwrap_or(self.now);
        Hold { state, declared, plan_digest, from, since, commit, by, failed: None }
    }

    /// Whether the live object still is as it was written, and so who replaces pods.
    pub(super) fn as_written(&mut self, target: &Target, live: &DaemonSet) -> Flow<Hands<'static>> {
        let found = Hold::of(live);
        let held = live.spec.update_strategy == UpdateStrategy::OnDelete
            && *target.declared.strategy() != UpdateStrategy::OnDelete;
        let stale = |change| Err(Pause::End(Outcome::Stale { change, held }));
        if !is_template(live, target.template.raw()) {
            return stale(self.another_template(live));
        }
        let Ok(found) = found else { return stale(Interference::Hold) };
        let standing = found.map(|hold| hold.state);
        match planted!(standing, "deletes without a hold" => Some(HoldState::Holding)) {
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

    pub(super) fn another_template(&self, live: &DaemonSet) -> Interference {
        let claimed = Claims::of(&Owner::from(live), self.world.revisions).claimed;
        let revision = of_template(live.spec.template.raw(), &claimed).1.pop();
        Interference::Template { revision: revision.map(|revision| revision.name.clone()) }
    }

    /// The provenance stands on the revision.
    pub(super) fn recorded(&mut self, sight: &Sight<'_>) -> Flow<()> {
        let Some(revision) = sight.revisions.last() else { return Ok(()) };
        let known = self.state.recorded || self.task.provenance.is_on(&revision.annotations);
        if planted!(known, "the change is not recorded" => true) {
            return Ok(());
        }
        let request = self.state.recording;
        self.may_go(request, Attempt::Record)?;
        self.state.recording = Request::Out;
        self.effects
            .push(Effect::Record { revision: revision.name.clone(), uid: revision.uid.clone() });
        Err(Pause::Wait)
    }

    /// The declared strategy, once no Ready outdated pod remains: the controller would roll it by
    /// its own rules at once.
    pub(super) fn give_back(&mut self, target: &Target, sight: &Sight<'_>) -> Pause {
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
}

/// Whether nothing changes and no pod is outdated: nodes without a pod get theirs, which is watched,
/// but there is no rollout that could fail. A pod that is not well is told; no hold is written, and
/// the template is not remembered as failed.
fn rolls_nothing(target: &Target, sight: &Sight<'_>, hands: Hands<'_>) -> bool {
    match hands {
        Hands::Controllers => !target.changes && !sight.spots.iter().any(Spot::has_old),
        Hands::Ours(_) => false,
    }
}

/// Whether any pod that lives is of another template than this one.
pub(super) fn is_outdated_for(template: &Value, live: &DaemonSet, world: &World<'_>) -> bool {
    let owner = Owner::from(live);
    let revisions = Claims::of(&owner, world.revisions).claimed;
    let (templates, _) = of_template(template, &revisions);
    let pods = Claims::of(&owner, world.pods).claimed;
    pods.into_iter().any(|pod| !pod.terminating && !templates.is_updated(pod))
}

/// Whether pods are replaced by us: neither by hand nor by a surge of the controller's.
fn is_paced(target: &Target) -> bool {
    let declared = target.declared.strategy();
    *declared != UpdateStrategy::OnDelete && !allows_surge(declared)
}
