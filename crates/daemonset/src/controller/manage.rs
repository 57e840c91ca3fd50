//! Changes that do not depend on the update strategy (upstream: `manage`, `podsShouldBeOnNode`):
//! missing pods are created; failed, ended, surplus and misplaced pods are deleted. Outdated pods
//! are left to `rolling_update`, except for the old pods of a surge.

use jiff::Timestamp;

use super::Owner;
use super::backoff::FailedPods;
use super::limits;
use super::node_pods::{Fleet, NodePods};
use super::placement::Placement;
use super::reasons::{CreateReason, Creation, DeleteReason, Deletion, WaitReason, Waiting};
use super::updated::CurrentTemplate;
use crate::model::{NodeName, Pod, PodPhase, PodTarget};

/// The input of the controller's decisions about pods.
#[derive(Clone, Copy, Debug)]
pub struct View<'v, 'a> {
    /// The DaemonSet.
    pub owner: Owner<'v>,
    /// All nodes.
    pub fleet: &'v Fleet<'a>,
    /// The placement of its template on each node, in their order.
    pub placements: &'v [Placement],
    /// Its pods by node, without pods that have ended and are being deleted.
    pub pods: &'v NodePods<'a>,
    /// The current template.
    pub current: &'v CurrentTemplate,
    /// The time of the decision.
    pub now: Timestamp,
}

impl View<'_, '_> {
    /// Number of nodes that should run a pod.
    pub fn desired(&self) -> u32 {
        let desired = self.placements.iter().filter(|placement| placement.may_start).count();
        u32::try_from(desired).unwrap_or(u32::MAX)
    }

    /// Whether a pod is available now by upstream's rule; terminating pods may be, too.
    pub(super) fn is_available(&self, pod: &Pod) -> bool {
        pod.is_available(self.owner.spec.min_ready_seconds, self.now)
    }
}

/// Creations and deletions that do not depend on the update strategy, by node name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manage<'a> {
    /// Pods to create.
    pub create: Vec<Creation<'a>>,
    /// Pods to delete.
    pub delete: Vec<Deletion<'a>>,
    /// Nodes without a running pod, or with a failed one, that have to wait, with the reason.
    pub waiting: Vec<Waiting<'a>>,
}

impl Manage<'_> {
    /// Whether there is nothing to do. Only then does the same sync continue with a rolling update.
    pub fn is_idle(&self) -> bool {
        self.create.is_empty() && self.delete.is_empty()
    }
}

/// Decides on every node, and on unbound pods of nodes that no longer exist. Bound pods of such
/// nodes are left to the pod garbage collector.
pub fn manage<'a>(view: &View<'_, 'a>, failed_pods: FailedPods<'_>) -> Manage<'a> {
    let mut plan = Manage::default();
    let surge = limits::allows_surge(&view.owner.spec.update_strategy);
    for (at, node) in view.fleet.nodes().iter().enumerate() {
        let managed_node = ManagedNode {
            view,
            node: &node.name,
            placement: &view.placements[at],
            pods: view.pods.at(at),
            surge,
        };
        managed_node.decide(failed_pods, &mut plan);
    }
    for pod in view.pods.vanished().flatten().copied() {
        // Terminating pods are deleted again, as upstream.
        if let PodTarget::Aimed(node) = &pod.target {
            plan.delete.push(Deletion { pod, node, reason: DeleteReason::NodeVanished });
        }
    }
    plan
}

/// One node with its pods.
struct ManagedNode<'v, 'a> {
    view: &'v View<'v, 'a>,
    node: &'a NodeName,
    placement: &'v Placement,
    pods: &'v [&'a Pod],
    surge: bool,
}

impl<'a> ManagedNode<'_, 'a> {
    /// Applies the first matching rule (upstream: `podsShouldBeOnNode`).
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

    /// Deletes ended pods and returns running ones, oldest first. Terminating pods are neither. At
    /// most one failed pod per node is deleted, because its deletion starts a delay.
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
                // Without surge the replacement is created when these pods are gone.
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

    /// With surge an outdated pod and a new one run on the same node until the old one is no longer
    /// ready or the new one is available. Only the hash label distinguishes them.
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
