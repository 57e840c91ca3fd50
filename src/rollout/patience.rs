//! What is waited for though nothing moves, and for how long.

use jiff::SignedDuration;

use super::decide::{Flow, Pause, Step};
use super::effect::Purpose;
use super::gate::GRACE;
use super::outcome::{ControllerStep, Held, Outcome};
use super::progress::Report;
use super::sight::{Kubelet, Sight, Spot, Stand};
use super::state::Standstill;
use super::world::{is_older, resource_version};
use crate::model::{DaemonSet, ManagedBy, NodeName};

impl Step<'_, '_> {
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

    pub(super) fn patience(&self) -> SignedDuration {
        SignedDuration::from_secs(self.task.pace.progress_deadline.0.into())
    }

    /// Notes that nothing moves; for how many seconds it has not, once that is too long.
    pub(super) fn stand(&mut self, what: Standstill) -> Option<i64> {
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
    pub(super) fn stand_for(&mut self, step: ControllerStep) -> Pause {
        match self.stand(Standstill::Controller(step)) {
            Some(seconds) => {
                Pause::End(Outcome::Held { why: Held::ControllerStands { step, seconds } })
            }
            None => Pause::Wait,
        }
    }

    /// Whether every node has its pod, where the run is the controller and nobody else will create
    /// one after it. For strategies that ask no gates, which wait for pods by themselves. When the
    /// server refuses them, the grace is enough.
    pub(super) fn filled(&mut self, sight: &Sight<'_>) -> Flow<()> {
        match sight.live.managed_by {
            ManagedBy::DaemonSetController => return Ok(()),
            ManagedBy::DsApply => {}
        }
        let nodes = without_pod(sight);
        if nodes.is_empty() {
            return Ok(());
        }
        let waited = self.stand(Standstill::Empty { nodes: nodes.len() });
        let since = self.state.standstill.as_ref().map_or(self.now, |(since, _)| *since);
        let said = self.state.pods.create_failed.as_ref().filter(|said| said.at + GRACE >= since);
        let message = said.map(|said| said.message.clone());
        let refused = said.is_some_and(|said| said.refused);
        let over = refused && self.now.duration_since(since) >= GRACE;
        self.wake_at(refused.then_some(since + GRACE).filter(|at| *at > self.now));
        let seconds = waited.or_else(|| over.then(|| self.now.duration_since(since).as_secs()));
        Err(match seconds {
            None => Pause::Wait,
            Some(seconds) => {
                Pause::End(Outcome::Held { why: Held::NotCreated { nodes, seconds, message } })
            }
        })
    }
}

/// Desired nodes that have no pod, or will have none in a moment.
pub(super) fn without_pod(sight: &Sight<'_>) -> Vec<NodeName> {
    let empty = |spot: &&Spot<'_>| match spot.stand {
        Stand::Empty => spot.is_desired(),
        // A kubelet that is not Ready may never let go of it.
        Stand::Leaving(_) => spot.is_desired() && spot.kubelet == Kubelet::Ready,
        // Of one that has ended, the failed-pod back-off decides when.
        Stand::Well(_) | Stand::New(_) | Stand::Old(_) | Stand::Crowd { .. } | Stand::Ended(_) => {
            false
        }
    };
    sight.spots.iter().filter(empty).map(|spot| spot.node.name.clone()).collect()
}
