//! What a step sees: for each node that should run a pod or has one, how it stands, and what the
//! budget says.
//!
//! Two words are stricter than upstream's: a pod is *available* when it has been Ready for
//! `minReadySeconds` and is not on its way out, and a new one only when none of its containers has
//! restarted or ended meanwhile; it is *updated* when its hash label is that of the live template's
//! revision. Not here: what follows (`waves`, `gate`).

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

use super::progress::Progress;
use super::state::{Request, State};
use super::task::{Goal, Task};
use super::world::World;
use crate::controller::Owner;
use crate::controller::claims::Claims;
use crate::controller::ground::Ground;
use crate::controller::history::hash_of;
use crate::controller::limits::Limits;
use crate::controller::node_pods::{EndedPods, NodePods};
use crate::controller::placement::{Obstacle, Placement};
use crate::controller::revision_data::{Matching, matches};
use crate::model::{
    DaemonSet, MinReady, Node, NodeName, Pod, PodReadiness, Revision, UpdateStrategy,
};
use crate::plan::{Hold, Reason, Templates, ailments, node_not_ready, not_available};
use crate::planted::planted;

/// How long after a delete came to nothing it may still be carried out: servers give a request up
/// after a minute.
const UNDER_WAY: SignedDuration = SignedDuration::from_secs(60);

/// One DaemonSet, its nodes by name, and the budget.
pub(super) struct Sight<'a> {
    pub live: &'a DaemonSet,
    /// Revisions of the live template, the current one last.
    pub revisions: Vec<&'a Revision>,
    /// Which pods are updated.
    pub templates: Templates,
    pub spots: Vec<Spot<'a>>,
    /// Nodes that should run a pod.
    pub desired: u32,
    /// How many of them may be without an available one.
    pub allowed: u32,
    /// How many of them may be skipped because they are not Ready.
    skippable: u32,
    /// How long an updated pod must have stayed up to be available, in seconds.
    pub min_ready: u32,
    pub now: Timestamp,
}

/// One node.
pub(super) struct Spot<'a> {
    pub node: &'a Node,
    /// In which wave its outdated pod is to be replaced, if there is one and it was planned.
    pub wave: Option<u32>,
    /// Why no pod may start here; `None` on a desired node.
    pub obstacle: Option<Arc<Obstacle>>,
    pub kubelet: Kubelet,
    pub stand: Stand<'a>,
    /// It has an available pod, of whatever revision.
    pub serves: bool,
    /// It has a pod on its way out.
    leaving: Option<&'a Pod>,
}

/// Whether the node itself is well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kubelet {
    Ready,
    /// Not Ready: left for later, and not counted.
    Skipped,
    /// Not Ready, and one too many to be skipped.
    Counts,
}

/// How the pods of a node stand. Pods that are on their way out, or have been sent a delete, are
/// looked at only where there is no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stand<'a> {
    /// An updated, available pod.
    Well(&'a Pod),
    /// An updated pod that is not available.
    New(&'a Pod),
    /// An outdated pod.
    Old(&'a Pod),
    /// Several pods: the controller has them down to one, or both halves of a surge.
    Crowd {
        /// The updated one, if there is one.
        new: Option<&'a Pod>,
        /// The outdated one, if there is one.
        old: Option<&'a Pod>,
    },
    /// Nothing but one on its way out.
    Leaving(&'a Pod),
    /// Nothing but one that has ended; the controller replaces it.
    Ended(&'a Pod),
    /// Nothing.
    Empty,
}

impl<'a> Sight<'a> {
    /// Looks at the live object, its nodes and pods.
    pub(super) fn of(
        live: &'a DaemonSet,
        world: &World<'a>,
        state: &State,
        now: Timestamp,
    ) -> Self {
        let owner = Owner::from(live);
        let claimed = Claims::of(&owner, world.revisions).claimed;
        let (templates, revisions) = of_template(live.spec.template.raw(), &claimed);
        let made = || Ground::of(&live.spec.template.placement, world.nodes);
        let ground = world.ground.map_or_else(|| Cow::Owned(made()), Cow::Borrowed);
        debug_assert_eq!(*ground, made(), "the ground that is known is that of this world");
        let (fleet, placements) = (ground.fleet(world.nodes), ground.placements());
        let own = Claims::of(&owner, world.pods).claimed;
        let pods = planted!(own, "other people's pods are ours" => world.pods.iter().collect());
        let pods = NodePods::group(&fleet, &pods, EndedPods::Dropped);
        let desired = placements.iter().filter(|placement| placement.may_start).count();
        let desired = u32::try_from(desired).unwrap_or(u32::MAX);
        let skippable = state.task.pace.skip_unready_nodes.of(desired);
        let mut sight = Self {
            live,
            revisions,
            templates,
            spots: Vec::with_capacity(world.nodes.len()),
            desired,
            allowed: allowed(&state.task, live, desired),
            skippable,
            min_ready: min_ready(state, live),
            now,
        };
        let mut unready = 0;
        for ((at, node), placement) in world.nodes.iter().enumerate().zip(placements) {
            let here = pods.at(at);
            if !placement.may_start && (!placement.may_stay || here.is_empty()) {
                continue;
            }
            let kubelet = if node.readiness.is_ready() {
                Kubelet::Ready
            } else {
                unready += u32::from(placement.may_start);
                let skipped = planted!(skippable, "one more node is skipped" => skippable + 1);
                let counts = placement.may_start && unready > skipped;
                if counts { Kubelet::Counts } else { Kubelet::Skipped }
            };
            let spot = sight.spot(node, placement, kubelet, here, state);
            sight.spots.push(spot);
        }
        sight
    }

    fn spot(
        &self,
        node: &'a Node,
        placement: &Placement,
        kubelet: Kubelet,
        pods: &[&'a Pod],
        state: &State,
    ) -> Spot<'a> {
        let deleted = &state.pods.deleted;
        let leaves = |pod: &Pod| {
            pod.terminating
                || match planted!(deleted.get(&pod.uid), "deletes are forgotten" => None) {
                    None => false,
                    Some(Request::Idle | Request::Out) => true,
                    // It may never have been deleted, and there is no reason left to do so; or it
                    // got well, and so long after the delete none is under way any more.
                    Some(Request::RetryAt(at)) => {
                        let spared = self.templates.is_updated(pod)
                            || (pod.is_ready() && self.now >= *at + UNDER_WAY);
                        self.now < *at || !spared
                    }
                }
        };
        let (leaving, mut alive): (Vec<&Pod>, Vec<&Pod>) =
            pods.iter().copied().partition(|pod| leaves(pod));
        alive.retain(|pod| !pod.is_terminal());
        let leaving = leaving.first().copied();
        let ended = pods.iter().copied().find(|pod| pod.is_terminal());
        let is_new = |pod: &&&Pod| {
            let is_updated = self.templates.is_updated(pod);
            planted!(is_updated, "an updated pod is outdated" => false)
        };
        let stand = match (alive.as_slice(), leaving, ended) {
            ([pod], ..) if is_new(&pod) && self.serves(pod) => Stand::Well(pod),
            ([pod], ..) if is_new(&pod) => Stand::New(pod),
            ([pod], ..) => Stand::Old(pod),
            ([_, _, ..], ..) => Stand::Crowd {
                new: alive.iter().find(is_new).copied(),
                old: alive.iter().find(|pod| !is_new(pod)).copied(),
            },
            ([], Some(pod), _) => Stand::Leaving(pod),
            ([], None, Some(pod)) => Stand::Ended(pod),
            ([], None, None) => Stand::Empty,
        };
        let serves = alive.iter().any(|pod| self.serves(pod));
        let obstacle = placement.obstacle.clone();
        let mut spot = Spot { node, wave: None, obstacle, kubelet, stand, serves, leaving };
        if spot.has_old() {
            spot.wave = state.waves.get(&node.name).copied();
        }
        spot
    }

    /// Whether a pod that is not on its way out is available.
    pub(super) fn serves(&self, pod: &Pod) -> bool {
        let declared = self.live.spec.min_ready_seconds;
        let serves = if self.templates.is_updated(pod) {
            let min_ready = planted!(self.min_ready, "a new pod need not stay up" => declared);
            let stays = pod.has_stayed_up(min_ready, self.now);
            planted!(stays, "a restart does not count" => pod.serves(min_ready, self.now))
        } else {
            let min_ready = planted!(declared, "minReadySeconds do not count" => 0);
            pod.serves(min_ready, self.now)
        };
        planted!(serves, "a pod that is not Ready is available" => !pod.terminating)
    }

    /// How long a pod must be Ready to be available, in seconds.
    fn min_ready_of(&self, pod: &Pod) -> u32 {
        let declared = self.live.spec.min_ready_seconds;
        if self.templates.is_updated(pod) { self.min_ready } else { declared }
    }

    /// When a pod that is Ready is available, if it stays so.
    pub(super) fn serves_at(&self, pod: &Pod) -> Option<Timestamp> {
        let since = match pod.readiness {
            PodReadiness::NotReady { since: _ } => return None,
            PodReadiness::Ready { since } if self.templates.is_updated(pod) => {
                pod.up_since().or(since)
            }
            PodReadiness::Ready { since } => since,
        };
        let wanted = SignedDuration::from_secs(self.min_ready_of(pod).into());
        Some(since.unwrap_or(self.now) + wanted)
    }

    /// How many nodes the budget counts.
    pub(super) fn unavailable(&self) -> u32 {
        count(self.spots.iter().filter(|spot| spot.is_unavailable()))
    }

    /// Nodes with an outdated pod that this run could replace.
    pub(super) fn outdated(&self) -> u32 {
        count(self.spots.iter().filter(|spot| spot.kubelet == Kubelet::Ready && spot.has_old()))
    }

    /// How far it is, in numbers.
    pub(super) fn progress(&self, wave: Option<u32>, recovering: usize) -> Progress {
        let desired = || self.spots.iter().filter(|spot| spot.is_desired());
        let is_updated = |spot: &&Spot<'_>| match spot.stand {
            Stand::Well(_) | Stand::New(_) | Stand::Crowd { new: Some(_), old: None } => true,
            Stand::Old(_)
            | Stand::Crowd { .. }
            | Stand::Leaving(_)
            | Stand::Ended(_)
            | Stand::Empty => false,
        };
        Progress {
            desired: self.desired,
            updated: count(desired().filter(is_updated)),
            available: count(desired().filter(|spot| spot.serves)),
            unavailable: self.unavailable(),
            allowed: self.allowed,
            recovering: u32::try_from(recovering).unwrap_or(u32::MAX),
            outdated: count(self.spots.iter().filter(|spot| spot.has_old())),
            skipped: count(desired().filter(|spot| spot.kubelet == Kubelet::Skipped)),
            wave,
        }
    }

    /// Why the pod of an outdated spot goes.
    pub(super) fn why(&self, spot: &Spot<'_>, pod: &Pod) -> Reason {
        match &spot.obstacle {
            Some(obstacle) => Reason::NothingComesBack { obstacle: Arc::clone(obstacle) },
            None => self.templates.outdated(pod),
        }
    }

    /// Nodes that are not as they should be, and why.
    pub(super) fn left(&self) -> BTreeMap<NodeName, Vec<Reason>> {
        let told = self.spots.iter().map(|spot| (spot.node.name.clone(), self.reasons(spot)));
        told.filter(|(_, reasons)| !reasons.is_empty()).collect()
    }

    fn reasons(&self, spot: &Spot<'_>) -> Vec<Reason> {
        let of_pod = match spot.stand {
            Stand::Well(_) => return Vec::new(),
            Stand::Old(pod) | Stand::Crowd { old: Some(pod), .. } => {
                let declared = self.live.spec.min_ready_seconds;
                let ailing = ailments(spot.node, &[pod], declared, self.now);
                let ailing =
                    ailing.into_iter().filter(|it| !matches!(it, Reason::NodeNotReady { .. }));
                [self.why(spot, pod)].into_iter().chain(ailing).collect()
            }
            Stand::New(pod) => vec![not_available(pod, self.min_ready)],
            Stand::Crowd { new: _, old: None } => Vec::new(),
            Stand::Leaving(_) => vec![Reason::Terminating],
            Stand::Ended(_) => vec![Reason::NoLivePod],
            Stand::Empty => vec![Reason::NoPod],
        };
        let unready = count(self.spots.iter().filter(|it| it.is_desired() && it.is_not_ready()));
        let of_node = match (spot.kubelet, node_not_ready(spot.node, self.now)) {
            (Kubelet::Skipped, Some(Reason::NodeNotReady { since, seconds })) => {
                Some(Reason::SkippedUnreadyNode { since, seconds })
            }
            (Kubelet::Counts, _) => {
                Some(Reason::UnreadyNodeCounts { unready, skippable: self.skippable })
            }
            (Kubelet::Ready | Kubelet::Skipped, other) => other,
        };
        of_node.into_iter().chain(of_pod).collect()
    }
}

impl<'a> Spot<'a> {
    /// Whether it should run a pod.
    pub(super) fn is_desired(&self) -> bool {
        self.obstacle.is_none()
    }

    fn is_not_ready(&self) -> bool {
        self.kubelet != Kubelet::Ready
    }

    /// Whether an outdated pod stands on it.
    pub(super) fn has_old(&self) -> bool {
        self.old().is_some()
    }

    /// The outdated pod that stands on it.
    pub(super) fn old(&self) -> Option<&'a Pod> {
        match self.stand {
            Stand::Old(pod) | Stand::Crowd { new: _, old: Some(pod) } => Some(pod),
            Stand::Well(_)
            | Stand::New(_)
            | Stand::Crowd { new: _, old: None }
            | Stand::Leaving(_)
            | Stand::Ended(_)
            | Stand::Empty => None,
        }
    }

    /// Whether its new pod is on its way: nothing available stands here, and no outdated pod.
    pub(super) fn is_in_flight(&self) -> bool {
        self.is_desired() && self.kubelet == Kubelet::Ready && !self.serves && !self.has_old()
    }

    /// The pod that was sent a delete, or is terminating.
    pub(super) fn leaving(&self) -> Option<&'a Pod> {
        self.leaving
    }

    /// Whether the budget counts it. A node that may not start a pod is no desired one; it counts
    /// while its pod is on the way out, so that such pods go at the same pace.
    pub(super) fn is_unavailable(&self) -> bool {
        if !self.is_desired() {
            return self.leaving.is_some();
        }
        match self.kubelet {
            Kubelet::Skipped => false,
            Kubelet::Counts => true,
            Kubelet::Ready => planted!(
                !self.serves,
                "a node whose pod leaves does not count" => matches!(self.stand, Stand::New(_))
            ),
        }
    }
}

/// Which pods are of this template, and its revisions, the current one last: the controller
/// compares bytes, so an exact match comes after one that an older server wrote.
pub(super) fn of_template<'a>(
    template: &serde_json::Value,
    claimed: &[&'a Revision],
) -> (Templates, Vec<&'a Revision>) {
    let is = |revision: &Revision, how| matches(template, &revision.data, how);
    let mut same: Vec<&Revision> =
        claimed.iter().copied().filter(|revision| is(revision, Matching::Tolerant)).collect();
    let templates = Templates {
        target: same.iter().map(|revision| hash_of(revision)).collect(),
        numbers: claimed.iter().map(|revision| (hash_of(revision), revision.number)).collect(),
    };
    if same.iter().any(|revision| is(revision, Matching::Exact)) {
        same.retain(|revision| is(revision, Matching::Exact));
    }
    same.sort_by_key(|revision| revision.number);
    (templates, same)
}

/// How many desired nodes may be without an available pod.
fn allowed(task: &Task, live: &DaemonSet, desired: u32) -> u32 {
    let declared = match &task.goal {
        Goal::Apply(target) => Some(*target.declared.strategy()),
        Goal::GoBack | Goal::Roll(_) | Goal::Release { .. } => Hold::of(live)
            .ok()
            .flatten()
            .and_then(|hold| serde::Deserialize::deserialize(&hold.declared).ok()),
    };
    let of = planted!(desired, "percentages are rounded wrongly" => desired + 1);
    let limits = declared.and_then(|strategy: UpdateStrategy| Limits::of(&strategy, of));
    match (limits, task.pace.max_unavailable) {
        // With a surge none may be; going back by deletes needs one.
        (Some(limits), _) => {
            let own = limits.max_unavailable.max(1);
            planted!(task.pace.stricter(own, desired), "the policy's budget does not count" => own)
        }
        (None, Some(limit)) => limit.scaled(desired).max(1),
        (None, None) => 1,
    }
}

/// How long an updated pod must have stayed up to be available. The first one that this run has made
/// proves the template, whatever runs of it already: what failed elsewhere may fail here.
fn min_ready(state: &State, live: &DaemonSet) -> u32 {
    let MinReady { first, others } = state.task.pace.min_ready(&live.spec);
    if state.pods.replaced.is_empty() { first } else { others }
}

pub(super) fn count<T>(items: impl Iterator<Item = T>) -> u32 {
    u32::try_from(items.count()).unwrap_or(u32::MAX)
}
