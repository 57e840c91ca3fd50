//! Replacing pods, or watching the controller do so, through the gates.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::decide::{Pause, Step};
use super::effect::{Delete, Effect};
use super::gate;
use super::outcome::{Attempt, Held, Outcome, Replaced, Trouble};
use super::patience::without_pod;
use super::progress::Report;
use super::sight::{Sight, Stand};
use super::state::{Awaited, Request, Standstill};
use super::waves::{self, Hands, Next};
use crate::model::NodeName;
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
        let verdict = gate::check(sight, &mut self.state.pods, &self.task.pace);
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

    pub(super) fn tell_progress(&mut self, sight: &Sight<'_>) {
        let wave = waves::current(sight, self.state);
        let progress = sight.progress(wave, self.state.pods.waiting.len());
        if self.state.told.progress != Some(progress) {
            self.state.told.progress = Some(progress);
            self.report(Report::Progress(progress));
        }
    }
}
