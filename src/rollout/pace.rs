//! Replacing pods, or watching the controller do so, through the gates.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::decide::{Pause, Step};
use super::effect::{Delete, Effect};
use super::gate;
use super::outcome::{Attempt, Held, Outcome, Replaced, Trouble};
use super::patience::without_pod;
use super::progress::Report;
use super::sight::{Sight, Stand};
use super::state::{Awaited, Creates, Request, Standstill, State};
use super::task::Target;
use super::waves::{self, Hands, Next};
use crate::controller::limits::allows_surge;
use crate::model::{ManagedBy, NodeName, Ramp, UpdateStrategy};
use crate::planted::planted;

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

impl Step<'_, '_> {
    /// Replaces pods, or watches the controller do so, through the gates.
    pub(super) fn pace(&mut self, sight: &Sight<'_>, hands: Hands<'_>) -> Paced {
        let failed = self.ask_gates(sight);
        self.tell_progress(sight);
        self.tell_lost_ready(sight, hands);
        if planted!(!failed.is_empty(), "a failed gate is passed over" => false) {
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

    pub(super) fn delete(&mut self, delete: Delete) {
        let pods = &mut self.state.pods;
        if pods.deleted.insert(delete.uid.clone(), Request::Out).is_none() {
            pods.count += 1;
        }
        pods.replacing.entry(delete.node.clone()).or_insert(self.now);
        pods.renewed.insert(delete.node.clone());
        self.report(Report::Deleting(delete.clone()));
        self.effects.push(Effect::Delete(delete));
    }

    pub(super) fn why_held(sight: &Sight<'_>, what: Standstill, seconds: i64) -> Held {
        match what {
            Standstill::Controller(step) => Held::ControllerStands { step, seconds },
            Standstill::Budget { unavailable, outdated: _ } => {
                Held::BudgetTaken { unavailable, allowed: sight.allowed, seconds }
            }
            Standstill::OldPods { nodes: _ } => {
                Held::OldPodsRemain { nodes: waves::ready_on_unready_nodes(sight), seconds }
            }
            Standstill::Empty { nodes: _ } => {
                Held::NotCreated { nodes: without_pod(sight), seconds, message: None }
            }
        }
    }

    /// What has failed, by node; also notes which nodes are well again.
    pub(super) fn ask_gates(&mut self, sight: &Sight<'_>) -> BTreeMap<NodeName, Trouble> {
        self.note_recovered(sight);
        self.note_arrived(sight);
        let State { pods, creates, .. } = &mut *self.state;
        let verdict = gate::check(sight, pods, creates, &self.task.pace);
        self.wake_at(verdict.next);
        for (node, trouble) in &verdict.failed {
            if self.state.told.failed.insert(node.clone()) {
                self.report(Report::Failed { node: node.clone(), trouble: trouble.clone() });
            }
        }
        verdict.failed
    }

    pub(super) fn note_recovered(&mut self, sight: &Sight<'_>) {
        for spot in &sight.spots {
            let Stand::Well(pod) = spot.stand else { continue };
            let node = &spot.node.name;
            let Some(since) = self.state.pods.replacing.remove(node) else { continue };
            let seconds = |until: Timestamp| until.duration_since(since).as_secs();
            // Since when the new pod was waited for is since when the old one was gone.
            let gone = self.state.pods.waiting.get(node).filter(|it| it.what == Awaited::Pod);
            let replaced = Replaced {
                node: node.clone(),
                wave: self.state.waves.get(node).copied(),
                seconds: seconds(self.now),
                leaving: gone.map(|waiting| seconds(waiting.since).max(0)),
                restarts: pod.restarts,
            };
            let Replaced { node, seconds, .. } = replaced.clone();
            self.state.pods.replaced.push(replaced);
            self.report(Report::Recovered { node, seconds });
        }
    }

    fn note_arrived(&mut self, sight: &Sight<'_>) {
        let pods = &mut self.state.pods;
        let waits =
            |node: &NodeName| pods.waiting.get(node).is_some_and(|it| it.what == Awaited::Pod);
        let well = sight.spots.iter().filter(|spot| matches!(spot.stand, Stand::Well(_)));
        let arrived = well.map(|spot| &spot.node.name).filter(|node| waits(node)).cloned();
        let arrived: Vec<_> = arrived.collect();
        pods.arrived.extend(arrived);
    }

    /// Where the run is the controller: on which nodes a pod may be created now. Those from which it
    /// has deleted one; of the others, by name, as many as the ramp has room for. A strategy under
    /// which pods are replaced by hand asks nothing of the pods that come, so they all come at once;
    /// and a surge has its own limit.
    pub(super) fn may_create(&self, target: &Target, sight: &Sight<'_>) -> Creates {
        let unpaced = *target.declared.strategy() == UpdateStrategy::OnDelete
            || allows_surge(target.declared.strategy())
            || sight.live.managed_by == ManagedBy::DaemonSetController
            || self.task.pace.ramp == Ramp::None;
        if unpaced {
            return Creates::All;
        }
        let pods = &self.state.pods;
        let (mut ours, mut empty, mut flying) = (BTreeSet::new(), Vec::new(), 0);
        for spot in sight.spots.iter().filter(|spot| spot.is_desired()) {
            let name = &spot.node.name;
            match spot.stand {
                _ if pods.replacing.contains_key(name) => {
                    ours.insert(name.clone());
                    flying += u32::from(spot.is_in_flight());
                }
                Stand::Empty => empty.push(name),
                Stand::Leaving(_) | Stand::Ended(_) => {
                    ours.insert(name.clone());
                }
                Stand::New(_) | Stand::Well(_) | Stand::Old(_) | Stand::Crowd { .. } => {
                    flying += u32::from(spot.is_in_flight());
                }
            }
        }
        let window = self.task.pace.ramp.window(pods.arrived.len(), sight.allowed);
        let room = usize::try_from(window.saturating_sub(flying)).unwrap_or(usize::MAX);
        ours.extend(empty.into_iter().take(room).cloned());
        Creates::Only(ours)
    }

    /// Tells once that many pods have turned NotReady together, until that is over.
    fn tell_lost_ready(&mut self, sight: &Sight<'_>, hands: Hands<'_>) {
        let lost = match hands {
            Hands::Ours(_) => waves::lost_ready(sight),
            Hands::Controllers => None,
        };
        let told = std::mem::replace(&mut self.state.told.lost_ready, lost.is_some());
        if let Some(nodes) = lost.filter(|_| !told) {
            self.report(Report::LostReady { nodes });
        }
    }

    pub(super) fn tell_progress(&mut self, sight: &Sight<'_>) {
        let wave = waves::current(sight, self.state);
        let progress = sight.progress(wave, self.state.pods.waiting.len());
        if self.state.told.progress != Some(progress) {
            self.state.told.progress = Some(progress);
            self.report(Report::Progress(progress));
        }
    }
}
