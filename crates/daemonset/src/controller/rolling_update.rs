//! What one sync does of a rolling update: the outdated pods to delete within the budget, and with
//! surge the new pods to create (upstream: `rollingUpdate`).
//!
//! Candidates are in the order of node names; upstream uses the order of a hash map, so only the
//! counts are equal. `manage` creates the missing pods in a later sync. The stricter waves of a
//! paced rollout are elsewhere.

use std::sync::Arc;

use super::limits::Limits;
use super::manage::View;
use super::placement::Obstacle;
use super::reasons::{CreateReason, Creation, DeleteReason, Deletion, WaitReason, Waiting};
use crate::model::{NodeName, Pod};

/// What one sync does of a rolling update.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RollingUpdate<'a> {
    /// Nodes that should run a pod.
    pub desired: u32,
    /// The budget.
    pub limits: Limits,
    /// The part of the budget in use before the sync.
    pub usage: Usage,
    /// Pods to delete: outdated ones, by reason and node name.
    pub delete: Vec<Deletion<'a>>,
    /// Pods to create next to outdated ones; only with surge.
    pub create: Vec<Creation<'a>>,
    /// Outdated pods that have to wait.
    pub waiting: Vec<Waiting<'a>>,
}

/// The counts on which it is based.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Usage {
    /// Without surge.
    Unavailable {
        /// Nodes without an available pod, vanished ones and those with several pods included.
        nodes: u32,
    },
    /// With surge.
    Surge {
        /// Nodes with an old pod and a new one that is not available, or with several pods of a
        /// kind.
        surging: u32,
        /// Nodes with an available pod; the old pod counts if there are two.
        available: u32,
    },
}

/// The sync fails as a whole, as upstream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// With surge: the only pod of a node that no longer exists is outdated. The sync succeeds
    /// after the pod has been garbage-collected.
    #[error("node {node} does not exist, but has an outdated pod")]
    VanishedNode {
        /// That node.
        node: NodeName,
    },
}

/// Decides what this sync does. `Ok(None)` under `OnDelete`.
///
/// # Errors
/// [`Error::VanishedNode`], with surge only.
pub fn rolling_update<'a>(view: &View<'_, 'a>) -> Result<Option<RollingUpdate<'a>>, Error> {
    let desired = view.desired();
    let Some(limits) = Limits::of(&view.owner.spec.update_strategy, desired) else {
        return Ok(None);
    };
    if limits.max_surge == 0 {
        Ok(Some(delete_first(view, desired, limits)))
    } else {
        create_first(view, desired, limits).map(Some)
    }
}

/// The pods on a node, without terminating ones (upstream: `findUpdatedPodsOnNode`).
enum Found<'a> {
    /// Two pods of a kind, which `manage` resolves.
    Excess,
    Neither,
    New(&'a Pod),
    Old(&'a Pod),
    Both {
        new: &'a Pod,
        old: &'a Pod,
    },
}

fn find<'a>(view: &View<'_, 'a>, pods: &[&'a Pod]) -> Found<'a> {
    let (mut new, mut old) = (None, None);
    for &pod in pods.iter().filter(|pod| !pod.terminating) {
        let slot = if view.current.is_updated(pod) { &mut new } else { &mut old };
        if slot.replace(pod).is_some() {
            return Found::Excess;
        }
    }
    match (new, old) {
        (None, None) => Found::Neither,
        (Some(new), None) => Found::New(new),
        (None, Some(old)) => Found::Old(old),
        (Some(new), Some(old)) => Found::Both { new, old },
    }
}

/// One node of a rolling update.
struct NodeEntry<'a> {
    node: &'a NodeName,
    /// Position in the fleet; `None` if the node no longer exists.
    position: Option<usize>,
    found: Found<'a>,
}

/// Every node with pods, and every node that should have one; nodes that do not exist come last.
fn entries<'a>(view: &View<'_, 'a>) -> impl Iterator<Item = NodeEntry<'a>> {
    let nodes = view.fleet.nodes().iter().enumerate();
    let existing = nodes.filter_map(|(at, node)| {
        let pods = view.pods.at(at);
        let mapped = view.placements[at].may_start || !pods.is_empty();
        mapped.then(|| NodeEntry { node: &node.name, position: Some(at), found: find(view, pods) })
    });
    let vanished = view.pods.vanished().filter_map(|pods| {
        let node = pods.first()?.node()?;
        Some(NodeEntry { node, position: None, found: find(view, pods) })
    });
    existing.chain(vanished)
}

/// `maxSurge` is 0: old pods are deleted within the budget. Unavailable ones are always deleted,
/// and count against the budget.
fn delete_first<'a>(view: &View<'_, 'a>, desired: u32, limits: Limits) -> RollingUpdate<'a> {
    let mut unavailable = 0;
    let mut delete = Vec::new();
    let mut candidates = Vec::new();
    for NodeEntry { node, position: _, found } in entries(view) {
        match found {
            Found::New(new) if view.is_available(new) => {}
            Found::New(_) | Found::Excess | Found::Neither | Found::Both { .. } => unavailable += 1,
            Found::Old(old) if view.is_available(old) => candidates.push((node, old)),
            Found::Old(pod) => {
                unavailable += 1;
                delete.push(Deletion { pod, node, reason: DeleteReason::OutdatedNotAvailable });
            }
        }
    }
    let allowed = limits.max_unavailable;
    let (chosen, left) = take(candidates, allowed.saturating_sub(unavailable));
    let taken = unavailable + count(&chosen);
    delete.extend(chosen.into_iter().map(|(node, pod)| Deletion {
        pod,
        node,
        reason: DeleteReason::Outdated { unavailable, allowed },
    }));
    let waiting = left.into_iter().map(|(node, pod)| Waiting {
        pod,
        node,
        reason: WaitReason::MaxUnavailableReached { unavailable: taken, allowed },
    });
    RollingUpdate {
        desired,
        limits,
        usage: Usage::Unavailable { nodes: unavailable },
        delete,
        create: Vec::new(),
        waiting: waiting.collect(),
    }
}

/// `maxSurge` is above 0: new pods are created next to old ones within the budget, and always next
/// to unavailable ones. Outdated pods on nodes where no pod may start are deleted when enough other
/// pods are available.
fn create_first<'a>(
    view: &View<'_, 'a>,
    desired: u32,
    limits: Limits,
) -> Result<RollingUpdate<'a>, Error> {
    let mut surge = Surge::default();
    for NodeEntry { node, position, found } in entries(view) {
        match found {
            Found::Excess => surge.surging += 1,
            Found::Neither => {}
            Found::New(new) => surge.available += u32::from(view.is_available(new)),
            Found::Old(old) => {
                let available = view.is_available(old);
                surge.available += u32::from(available);
                let Some(position) = position else {
                    return Err(Error::VanishedNode { node: node.clone() });
                };
                surge.old_alone(node, old, available, view.placements[position].obstacle.clone());
            }
            Found::Both { new, old } => {
                surge.available += u32::from(view.is_available(old));
                surge.old_beside_new(node, old, new, view.is_available(new));
            }
        }
    }
    Ok(surge.finish(desired, limits))
}

/// The state of an update with surge while it iterates over nodes.
#[derive(Default)]
struct Surge<'a> {
    surging: u32,
    available: u32,
    delete: Vec<Deletion<'a>>,
    create: Vec<Creation<'a>>,
    waiting: Vec<Waiting<'a>>,
    candidates: Vec<(&'a NodeName, &'a Pod)>,
    sunset: Vec<(&'a NodeName, &'a Pod, Arc<Obstacle>)>,
}

impl<'a> Surge<'a> {
    fn old_alone(
        &mut self,
        node: &'a NodeName,
        pod: &'a Pod,
        available: bool,
        obstacle: Option<Arc<Obstacle>>,
    ) {
        match (available, obstacle) {
            (true, None) => self.candidates.push((node, pod)),
            (true, Some(obstacle)) => self.sunset.push((node, pod, obstacle)),
            (false, None) => {
                let reason = CreateReason::OldNotAvailable { old: pod.name.clone() };
                self.create.push(Creation { node, reason });
            }
            (false, Some(obstacle)) => {
                let reason = DeleteReason::NotAvailableAndMayNotStart { obstacle };
                self.delete.push(Deletion { pod, node, reason });
            }
        }
    }

    fn old_beside_new(&mut self, node: &'a NodeName, pod: &'a Pod, new: &'a Pod, available: bool) {
        let new = new.name.clone();
        if available {
            self.delete.push(Deletion { pod, node, reason: DeleteReason::Replaced { by: new } });
        } else {
            self.surging += 1;
            self.waiting.push(Waiting { pod, node, reason: WaitReason::NewNotAvailable { new } });
        }
    }

    fn finish(mut self, desired: u32, limits: Limits) -> RollingUpdate<'a> {
        let Self { surging, available, .. } = self;
        let (going, needed) = take(self.sunset, available.saturating_sub(desired));
        self.delete.extend(going.into_iter().map(|(node, pod, obstacle)| Deletion {
            pod,
            node,
            reason: DeleteReason::Sunset { obstacle, available, desired },
        }));
        self.waiting.extend(needed.into_iter().map(|(node, pod, obstacle)| {
            let reason = WaitReason::StillNeeded { obstacle, available, desired };
            Waiting { pod, node, reason }
        }));

        let allowed = limits.max_surge;
        let (chosen, left) = take(self.candidates, allowed.saturating_sub(surging));
        let taken = surging + count(&chosen);
        self.create.extend(chosen.into_iter().map(|(node, old)| {
            let reason = CreateReason::WithinSurge { old: old.name.clone(), surging, allowed };
            Creation { node, reason }
        }));
        self.waiting.extend(left.into_iter().map(|(node, pod)| Waiting {
            pod,
            node,
            reason: WaitReason::SurgeTaken { surging: taken, allowed },
        }));
        RollingUpdate {
            desired,
            limits,
            usage: Usage::Surge { surging, available },
            delete: self.delete,
            create: self.create,
            waiting: self.waiting,
        }
    }
}

/// Splits off the first `room` candidates.
fn take<T>(mut candidates: Vec<T>, room: u32) -> (Vec<T>, Vec<T>) {
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    let left = candidates.split_off(room.min(candidates.len()));
    (candidates, left)
}

fn count<T>(items: &[T]) -> u32 {
    u32::try_from(items.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
