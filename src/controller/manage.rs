//! What each node needs at once, whatever the update strategy (upstream: `manage`,
//! `podsShouldBeOnNode`): missing pods are created; failed, ended, surplus and misplaced ones are
//! deleted. Outdated pods stay (`rolling_update`), except for what a surge leaves behind.

use jiff::Timestamp;

use super::Owner;
use super::backoff::FailedPods;
use super::limits;
use super::node_pods::{Fleet, NodePods};
use super::placement::Placement;
use super::reasons::{CreateReason, Creation, DeleteReason, Deletion, WaitReason, Waiting};
use super::updated::CurrentTemplate;
use crate::model::{NodeName, Pod, PodPhase, PodTarget};

/// What the controller sees when it decides about pods.
#[derive(Clone, Copy, Debug)]
pub struct View<'v, 'a> {
    /// The DaemonSet.
    pub owner: Owner<'v>,
    /// All nodes.
    pub fleet: &'v Fleet<'a>,
    /// What its template says about each of them, in their order.
    pub placements: &'v [Placement],
    /// Its pods by node, without those that have ended and are being deleted.
    pub pods: &'v NodePods<'a>,
    /// The current template.
    pub current: &'v CurrentTemplate,
    /// The moment of the decision.
    pub now: Timestamp,
}

impl View<'_, '_> {
    /// How many nodes should run a pod.
    pub fn desired(&self) -> u32 {
        let desired = self.placements.iter().filter(|placement| placement.may_start).count();
        u32::try_from(desired).unwrap_or(u32::MAX)
    }

    /// Upstream's availability of a pod now; terminating pods may have it too.
    pub(super) fn is_available(&self, pod: &Pod) -> bool {
        pod.is_available(self.owner.spec.min_ready_seconds, self.now)
    }
}

/// Everything that is done at once, by node name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manage<'a> {
    /// Pods to create.
    pub create: Vec<Creation<'a>>,
    /// Pods to delete.
    pub delete: Vec<Deletion<'a>>,
    /// Why a node that lacks a running pod, or has a failed one, gets nothing now.
    pub waiting: Vec<Waiting<'a>>,
}

impl Manage<'_> {
    /// Whether there is nothing to do. Only then does the same sync go on to roll.
    pub fn is_idle(&self) -> bool {
        self.create.is_empty() && self.delete.is_empty()
    }
}

/// Decides on every node, and on unbound pods of nodes that do not exist any more. Bound ones of
/// such nodes are left to the pod garbage collector.
pub fn manage<'a>(view: &View<'_, 'a>, failed_pods: FailedPods<'_>) -> Manage<'a> {
    let mut plan = Manage::default();
    let surge = limits::allows_surge(&view.owner.spec.update_strategy);
    for (at, node) in view.fleet.nodes().iter().enumerate() {
        let site = Site {
            view,
            node: &node.name,
            placement: &view.placements[at],
            pods: view.pods.at(at),
            surge,
        };
        site.decide(failed_pods, &mut plan);
    }
    for pod in view.pods.vanished().flatten().copied() {
        // Terminating ones are deleted again, as upstream does.
        if let PodTarget::Aimed(node) = &pod.target {
            plan.delete.push(Deletion { pod, node, reason: DeleteReason::NodeVanished });
        }
    }
    plan
}

/// One node, and what is there.
struct Site<'v, 'a> {
    view: &'v View<'v, 'a>,
    node: &'a NodeName,
    placement: &'v Placement,
    pods: &'v [&'a Pod],
    surge: bool,
}

impl<'a> Site<'_, 'a> {
    /// The first case that fits decides (upstream: `podsShouldBeOnNode`).
    fn decide(&self, failed_pods: FailedPods<'_>, plan: &mut Manage<'a>) {
        if self.placement.may_start && self.pods.is_empty() {
            plan.create.push(Creation { node: self.node, reason: CreateReason::NoPod });
        } else if self.placement.may_stay {
            let running = self.clear_ended(failed_pods, plan);
            self.keep_one(&running, plan);
        } else if let Some(obstacle) = &self.placement.obstacle {
            for &pod in self.pods.iter().filter(|pod| !pod.terminating) {
                let obstacle = obstacle.clone();
                self.delete(pod, DeleteReason::NodeNotEligible { obstacle }, plan);
            }
        }
    }

    /// Deletes what has ended and returns what has not, oldest first. Terminating pods are
    /// neither. At most one failed pod a node goes, because its deletion starts a delay.
    fn clear_ended(&self, failed_pods: FailedPods<'_>, plan: &mut Manage<'a>) -> Vec<&'a Pod> {
        let (owner, now) = (&self.view.owner, self.view.now);
        let mut delay = failed_pods.delay(owner, self.node, now);
        let mut running = Vec::new();
        for &pod in self.pods.iter().filter(|pod| !pod.terminating) {
            match (pod.phase, delay) {
                (PodPhase::Failed, Some(delay)) => {
                    let seconds = delay.as_secs().unsigned_abs();
                    self.wait(pod, WaitReason::BackOff { seconds }, plan);
                }
                (PodPhase::Failed, None) => {
                    self.delete(pod, DeleteReason::Failed, plan);
                    delay = Some(failed_pods.next_delay(owner, self.node, now));
                }
                (PodPhase::Succeeded, _) => self.delete(pod, DeleteReason::Succeeded, plan),
                (PodPhase::Pending | PodPhase::Running | PodPhase::Unknown, _) => running.push(pod),
            }
        }
        running
    }

    fn keep_one(&self, running: &[&'a Pod], plan: &mut Manage<'a>) {
        match running {
            [] if self.surge && self.placement.may_start => {
                let reason = CreateReason::NoLivePod;
                plan.create.push(Creation { node: self.node, reason });
            }
            [] if self.placement.may_start => {
                // Without surge the replacement comes when the last of these has gone.
                for &pod in self.pods.iter().filter(|pod| pod.terminating) {
                    self.wait(pod, WaitReason::Terminating, plan);
                }
            }
            [] | [_] => {}
            [_, ..] if self.surge => self.keep_old_and_new(running, plan),
            [oldest, surplus @ ..] => {
                for &pod in surplus {
                    let keeps = oldest.name.clone();
                    self.delete(pod, DeleteReason::Surplus { keeps }, plan);
                }
            }
        }
    }

    /// With surge an outdated pod and a new one may stand side by side, until the old one is not
    /// ready any more or the new one is available. Only the hash label tells them apart.
    fn keep_old_and_new(&self, running: &[&'a Pod], plan: &mut Manage<'a>) {
        let is_new = |pod: &Pod| self.view.current.has_hash(pod);
        let new = running.iter().copied().find(|pod| is_new(pod));
        let old = running.iter().copied().find(|pod| !is_new(pod));
        for &pod in running {
            let kept = if is_new(pod) { new } else { old };
            if let Some(kept) = kept.filter(|kept| !std::ptr::eq(*kept, pod)) {
                let keeps = kept.name.clone();
                self.delete(pod, DeleteReason::Surplus { keeps }, plan);
            }
        }
        let (Some(new), Some(old)) = (new, old) else { return };
        if !old.is_ready() {
            self.delete(old, DeleteReason::OldNotReady { new: new.name.clone() }, plan);
        } else if self.view.is_available(new) {
            self.delete(old, DeleteReason::Replaced { by: new.name.clone() }, plan);
        } else {
            self.wait(old, WaitReason::NewNotAvailable { new: new.name.clone() }, plan);
        }
    }

    fn delete(&self, pod: &'a Pod, reason: DeleteReason, plan: &mut Manage<'a>) {
        plan.delete.push(Deletion { pod, node: self.node, reason });
    }

    fn wait(&self, pod: &'a Pod, reason: WaitReason, plan: &mut Manage<'a>) {
        plan.waiting.push(Waiting { pod, node: self.node, reason });
    }
}

#[cfg(test)]
mod tests;
