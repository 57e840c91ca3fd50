//! What becomes of a rollout whose gate has failed: the last good template is put back under the
//! hold, or everything is left as it is. No pod is deleted, but for those that a rollback replaces.
//!
//! The template is put back *before* it is remembered as failed: a run that dies in between is
//! begun again with the same template, and fails again, instead of being refused while the bad
//! template is live.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::decide::{Flow, Pause, Step, is_template};
use super::effect::{Effect, Purpose};
use super::forward::is_outdated_for;
use super::gate;
use super::outcome::{Attempt, Held, Interference, NotParked, Outcome, RolledBack, Trouble};
use super::pace::Paced;
use super::sight::{Spot, count};
use super::state::{Creates, Request};
use super::task::{Extent, Provenance, Target};
use super::waves::Hands;
use super::world::World;
use crate::controller::Owner;
use crate::controller::claims::Claims;
use crate::controller::placement::judge;
use crate::controller::revision_data::template_of;
use crate::model::{
    DaemonSet, NodeName, OnFailure, PodPlacement, PodTemplate, Revision, UpdateStrategy,
};
use crate::plan::{Hold, HoldState, RevisionRef, template_digest};
use crate::planted::planted;

/// The template to go back to.
struct Good<'w> {
    revision: &'w Revision,
    template: Arc<Value>,
    placement: PodPlacement,
}

/// What was parked: the revision that is live again, and the digest of the template that failed.
fn parked(live: &DaemonSet) -> Option<(RevisionRef, String)> {
    match Hold::of(live).ok().flatten()? {
        Hold { state: HoldState::Parked, from: Some(from), failed: Some(failed), .. } => {
            Some((from, failed))
        }
        Hold { state: HoldState::Parked | HoldState::Holding, .. } => None,
    }
}

/// Whether a rollout of the template with this digest failed and is parked, and pods of it are left:
/// what a way back ([`Goal::GoBack`](super::Goal::GoBack)) is for.
pub fn is_on_the_way_back(world: &World<'_>, failed: &str) -> bool {
    let Some(live) = world.daemon_set else { return false };
    if parked(live).is_none_or(|(_, digest)| digest != failed) {
        return false;
    }
    is_outdated_for(live.spec.template.raw(), live, world)
}

impl<'w> Step<'_, 'w> {
    /// A gate has failed: by policy, back to the last good template, or no further.
    pub(super) fn go_back(
        &mut self,
        target: &Target,
        live: Option<&'w DaemonSet>,
        failed: BTreeMap<NodeName, Trouble>,
    ) -> Flow<Pause> {
        let Some(live) = live else {
            return Ok(Pause::End(Outcome::Gone { replaced_by: None }));
        };
        self.appeared(live)?;
        if !is_template(live, target.template.raw()) {
            self.state.creates = Creates::All;
        }
        let good = match self.task.pace.on_failure {
            OnFailure::Hold => return self.stay(target, live, failed, None),
            OnFailure::Park | OnFailure::Rollback => self.good(target, live, &failed),
        };
        match good {
            Ok(good) => {
                self.park(target, live, &good)?;
                self.remember(target)?;
                Ok(self.roll_back(live, &good, failed))
            }
            Err(why) => self.stay(target, live, failed, Some(why)),
        }
    }

    /// A run before has parked the DaemonSet and was to replace the bad pods too: the rest of that.
    pub(super) fn go_on_back(&mut self, live: Option<&'w DaemonSet>) -> Flow<Pause> {
        let Some(live) = live else {
            return Ok(Pause::End(Outcome::Gone { replaced_by: None }));
        };
        let stale = |change| Ok(Pause::End(Outcome::Stale { change, held: true }));
        let Some((from, digest)) = parked(live) else { return stale(Interference::Hold) };
        let good = self.at(&from, live).ok().filter(|good| is_template(live, &good.template));
        let Some(good) = good else { return stale(self.another_template(live)) };
        self.note(Effect::Remember { digest })?;
        Ok(self.roll_back(live, &good, BTreeMap::new()))
    }

    /// The last good template, if it can be put back.
    fn good(
        &self,
        target: &Target,
        live: &'w DaemonSet,
        failed: &BTreeMap<NodeName, Trouble>,
    ) -> Result<Good<'w>, NotParked> {
        let from = self.state.from.as_ref().ok_or(NotParked::NothingBefore)?;
        let good = self.at(from, live)?;
        if is_template(live, target.template.raw()) && !self.task.allow_mass_eviction {
            self.would_evict(live, &good.placement, failed)?;
        }
        Ok(good)
    }

    /// The template of a revision.
    fn at(&self, from: &RevisionRef, live: &DaemonSet) -> Result<Good<'w>, NotParked> {
        let gone = || NotParked::RevisionGone { name: from.name.clone(), number: from.number };
        let claimed = Claims::of(&Owner::from(live), self.world.revisions).claimed;
        let revision = claimed.into_iter().find(|it| it.name == from.name).ok_or_else(gone)?;
        let template = template_of(&revision.data).ok_or_else(gone)?;
        let parsed = PodTemplate::from_json(template.clone()).map_err(|_| gone())?;
        Ok(Good { revision, template: Arc::new(template), placement: parsed.placement })
    }

    /// Refuses to go back where the controller would then remove more pods at once than may be
    /// unavailable.
    ///
    /// A pod that is on its way counts as one that is there: it may be Ready by the time of the
    /// write. What has failed serves nobody, and nobody misses it.
    fn would_evict(
        &self,
        live: &'w DaemonSet,
        good: &PodPlacement,
        failed: &BTreeMap<NodeName, Trouble>,
    ) -> Result<(), NotParked> {
        let sight = self.look(live);
        let may_stay = |spot: &&Spot<'_>| judge(good, spot.node).may_stay;
        let evicted: Vec<_> = sight.spots.iter().filter(|spot| !may_stay(spot)).collect();
        let serving = count(evicted.iter().filter(|spot| spot.serves));
        let is_to_come = |spot: &&&Spot<'_>| {
            !spot.serves && !failed.contains_key(&spot.node.name) && gate::may_yet_serve(spot)
        };
        let to_come = count(evicted.iter().filter(is_to_come));
        let (pods, allowed) = (serving + to_come, sight.allowed);
        if pods > allowed { Err(NotParked::WouldEvict { pods, to_come, allowed }) } else { Ok(()) }
    }

    /// Puts the good template back under the hold, unless it is there.
    fn park(&mut self, target: &Target, live: &DaemonSet, good: &Good<'_>) -> Flow<()> {
        let found = Hold::of(live).ok().flatten();
        let is_parked = found.is_some_and(|hold| hold.state == HoldState::Parked);
        if is_template(live, &good.template) && is_parked {
            return Ok(());
        }
        let on_delete = live.spec.update_strategy == UpdateStrategy::OnDelete;
        let stale = |change| Err(Pause::End(Outcome::Stale { change, held: on_delete }));
        if !is_template(live, &good.template) && !is_template(live, target.template.raw()) {
            let change = Interference::Template { revision: None };
            return stale(change);
        }
        if self.is_done(Purpose::Park) {
            return stale(Interference::Hold);
        }
        let Revision { name, number, .. } = good.revision;
        let from = RevisionRef { name: name.clone(), number: *number };
        let failed = Some(template_digest(target.template.raw()));
        let hold = Hold { failed, ..self.hold(target, HoldState::Parked, Some(from)) };
        let provenance = Some(Provenance::of(&good.revision.annotations));
        let good = Some(Arc::clone(&good.template));
        let template = planted!(good, "parked with the failed template" => None);
        Err(self.write(Purpose::Park, target, Some(live), template, Some(hold), provenance))
    }

    /// Has the failed template remembered. After some attempts it goes on without: the hold
    /// remembers it too.
    fn remember(&mut self, target: &Target) -> Flow<()> {
        let digest = template_digest(target.template.raw());
        self.note(Effect::Remember { digest })
    }

    /// Has a template forgotten that failed before, once it is rolled out whole. After some
    /// attempts it stays remembered, and `--retry` is asked for once more than needed.
    pub(super) fn forget(&mut self, target: &Target) -> Flow<()> {
        if !self.task.failed_before {
            return Ok(());
        }
        let digest = template_digest(target.template.raw());
        self.note(Effect::Forget { digest })
    }

    fn note(&mut self, effect: Effect) -> Flow<()> {
        let remembering = self.state.remembering;
        if planted!(remembering.done, "what failed is not remembered" => true) {
            return Ok(());
        }
        self.may_go(remembering.request, Attempt::Remember)?;
        self.state.remembering.request = Request::Out;
        self.push(effect);
        Err(Pause::Wait)
    }

    /// Ends parked; with a rollback, when the bad pods are replaced too.
    fn roll_back(
        &mut self,
        live: &'w DaemonSet,
        good: &Good<'_>,
        failed: BTreeMap<NodeName, Trouble>,
    ) -> Pause {
        let to = good.revision.name.clone();
        let parked = |failed, rolled_back| Pause::End(Outcome::Parked { failed, to, rolled_back });
        match self.task.pace.on_failure {
            OnFailure::Park | OnFailure::Hold => return parked(failed, None),
            OnFailure::Rollback => {}
        }
        if self.is_timed_out() {
            let why = Box::new(Held::Timeout);
            return parked(failed, Some(RolledBack::Stopped(why)));
        }
        let sight = self.look(live);
        if let Err(pause) = self.settled(&sight) {
            return match pause {
                Pause::End(Outcome::Held { why }) => {
                    parked(failed, Some(RolledBack::Stopped(Box::new(why))))
                }
                Pause::End(_) | Pause::Wait => pause,
            };
        }
        match self.pace(&sight, Hands::Ours(&Extent::All)) {
            Paced::Wait => Pause::Wait,
            Paced::Clean => parked(failed, Some(RolledBack::Fully)),
            Paced::Failed(again) => parked(failed, Some(RolledBack::Failed(again))),
            Paced::Stands(why) => parked(failed, Some(RolledBack::Stopped(Box::new(why)))),
        }
    }

    /// Leaves everything as it is, but sees to it that the controller goes no further either.
    fn stay(
        &mut self,
        target: &Target,
        live: &DaemonSet,
        failed: BTreeMap<NodeName, Trouble>,
        not_parked: Option<NotParked>,
    ) -> Flow<Pause> {
        if live.spec.update_strategy != UpdateStrategy::OnDelete {
            if !is_template(live, target.template.raw()) {
                let change = Interference::Template { revision: None };
                return Ok(Pause::End(Outcome::Stale { change, held: false }));
            }
            let from = self.state.from.clone();
            let hold = Some(self.hold(target, HoldState::Holding, from));
            let provenance = Some(self.task.provenance.clone());
            return Ok(self.write(Purpose::Hold, target, Some(live), None, hold, provenance));
        }
        self.remember(target)?;
        Ok(Pause::End(Outcome::Held { why: Held::Failed { failed, not_parked } }))
    }
}
