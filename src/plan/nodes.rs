//! What happens on each node: the controller's own decisions, and on top of them which outdated
//! pods are to be replaced. When that happens is decided in `waves`.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use jiff::{SignedDuration, Timestamp};

use super::coded::Coded;
use super::document::{Action, Fate, NodePlan, PodPlan};
use super::reason::Reason;
use super::scene::Scene;
use super::waves::{NodeStanding, PodStanding, Standing};
use crate::controller::backoff::FailedPods;
use crate::controller::limits::allows_surge;
use crate::controller::manage::{Manage, View, manage};
use crate::controller::placement::Placement;
use crate::controller::reasons::DeleteReason;
use crate::model::{
    Node, NodeName, NodeReadiness, Pod, PodPhase, PodTarget, PolicySpec, REVISION_HASH_LABEL,
    RevisionHash, RevisionNumber, Uid, UpdateStrategy,
};

/// Which pods come from which template.
#[derive(Debug)]
pub(crate) struct Templates {
    /// Hashes of the target template. There may be several: two revisions may hold templates
    /// that only an old server's spelling tells apart.
    pub target: BTreeSet<RevisionHash>,
    /// Number of each revision that exists.
    pub numbers: BTreeMap<RevisionHash, RevisionNumber>,
}

impl Templates {
    /// Whether the pod's hash label is the target's. Stricter than upstream, which also accepts
    /// the template generation.
    pub(crate) fn is_updated(&self, pod: &Pod) -> bool {
        pod.labels.get(REVISION_HASH_LABEL).is_some_and(|hash| self.target.contains(hash))
    }

    /// Which other template the pod comes from.
    pub(crate) fn outdated(&self, pod: &Pod) -> Reason {
        let hash = pod.labels.get(REVISION_HASH_LABEL);
        Reason::Outdated { revision: hash.and_then(|hash| self.numbers.get(hash).copied()) }
    }
}

/// What planning sees of one DaemonSet's nodes and pods.
struct Site<'a> {
    /// The DaemonSet as it will be, and all that the controller sees.
    view: View<'a, 'a>,
    /// When a pod counts as stuck.
    pace: &'a PolicySpec,
    templates: &'a Templates,
    /// Its pods that it will let go, by node.
    released: HashMap<&'a NodeName, Vec<&'a Pod>>,
    /// Pods that it will adopt.
    adopted: HashSet<&'a Uid>,
    /// Which nodes are described.
    described: Described,
}

/// Which nodes are described, with their pods and reasons. Most nodes of a large cluster have
/// nothing to do, and describing them takes most of the time and memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Described {
    /// Those with something to do.
    Busy,
    /// All of them.
    All,
}

/// One node's plan, and what the budget has to know of it.
struct Outcome {
    /// The plan, before waves.
    plan: NodePlan,
    /// For the budget.
    standing: Standing,
}

/// What was decided about the nodes of a cluster.
pub(super) struct Outcomes {
    /// The plans in the order of the nodes' names.
    pub nodes: Vec<NodePlan>,
    /// What the budget has to know, one for each of `nodes`.
    pub standings: Vec<Standing>,
    /// How many nodes beside them have no pod and get none, and need no description.
    pub idle: u32,
}

/// Decides about every node in name order, and about pods of nodes that do not exist.
pub(super) fn outcomes(scene: &Scene<'_>, pace: &PolicySpec, described: Described) -> Outcomes {
    let mut released: HashMap<&NodeName, Vec<&Pod>> = HashMap::new();
    for pod in &scene.pods.released {
        if let Some(node) = pod.node() {
            released.entry(node).or_default().push(pod);
        }
    }
    let site = Site {
        view: scene.view(),
        pace,
        templates: &scene.target.templates,
        released,
        adopted: scene.pods.adopted.iter().map(|pod| &pod.uid).collect(),
        described,
    };
    let now = Immediate::of(&manage(&site.view, FailedPods::Unknown));
    let all = 0..site.view.fleet.nodes().len();
    let is_told = |at: &usize| described == Described::All || !site.is_idle(*at);
    // Plans are large, and there may be many: room is made for them once.
    let told = all.clone().filter(is_told).count();
    let (mut nodes, mut standings) = (Vec::with_capacity(told), Vec::with_capacity(told));
    for at in all.clone().filter(is_told) {
        let Outcome { plan, standing } = site.outcome(at, &site.view.fleet.nodes()[at], &now);
        nodes.push(plan);
        standings.push(standing);
    }
    let idle = u32::try_from(all.len() - told).unwrap_or(u32::MAX);
    let vanished: Vec<_> = site.vanished().map(|it| (it.plan, it.standing)).collect();
    if !vanished.is_empty() {
        let mut all: Vec<_> = nodes.into_iter().zip(standings).chain(vanished).collect();
        all.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        (nodes, standings) = all.into_iter().unzip();
    }
    Outcomes { nodes, standings, idle }
}

impl Site<'_> {
    fn outcome(&self, at: usize, node: &Node, now: &Immediate) -> Outcome {
        let placement = &self.view.placements[at];
        let here = self.view.pods.at(at);
        let fates: Vec<(&Pod, PodFate)> =
            here.iter().map(|pod| (*pod, self.fate(pod, now))).collect();
        let verdict = self.verdict(placement, &fates, now.creates_on(node));
        let standing = Standing {
            desired: placement.may_start,
            node: node_standing(node, self.view.now),
            pod: self.pod_standing(&fates),
        };
        let mut plan = NodePlan {
            name: node.name.clone(),
            action: verdict.action,
            wave: None,
            pods: Vec::new(),
            reasons: Vec::new(),
        };
        if verdict.action != Action::Keep || self.described == Described::All {
            self.describe(&mut plan, &fates, placement, verdict.reasons);
        }
        Outcome { plan, standing }
    }

    /// Whether the node at this position has no pod and gets none. The budget does not count it.
    fn is_idle(&self, at: usize) -> bool {
        self.view.pods.at(at).is_empty() && !self.view.placements[at].may_start
    }

    /// Adds pods and reasons.
    fn describe(
        &self,
        plan: &mut NodePlan,
        fates: &[(&Pod, PodFate)],
        placement: &Placement,
        mut reasons: Vec<Reason>,
    ) {
        let own = fates.iter();
        plan.pods =
            own.map(|(pod, fate)| self.pod_plan(pod, fate, placement, plan.action)).collect();
        let released = self.released.get(&plan.name).into_iter().flatten();
        plan.pods.extend(released.map(|pod| released_plan(pod)));
        if fates.iter().any(|(pod, _)| self.adopted.contains(&pod.uid)) {
            reasons.push(Reason::Adopted);
        }
        plan.reasons = reasons.into_iter().map(Coded::from).collect();
    }

    /// What becomes of one pod that belongs to an existing node.
    fn fate(&self, pod: &Pod, now: &Immediate) -> PodFate {
        if pod.terminating {
            PodFate::Leaving
        } else if let Some(reason) = now.deletes.get(&pod.uid) {
            PodFate::DeletedNow(reason.clone())
        } else if pod.phase == PodPhase::Failed {
            // One failed pod a node goes at a time; the others follow.
            PodFate::DeletedNow(Reason::Failed)
        } else if self.templates.is_updated(pod) {
            PodFate::Updated
        } else {
            PodFate::Outdated
        }
    }

    /// The net effect on a node, and why.
    fn verdict(&self, placement: &Placement, fates: &[(&Pod, PodFate)], creates: bool) -> Verdict {
        let mut reasons: Vec<Reason> = Vec::new();
        for (_, fate) in fates {
            if let PodFate::DeletedNow(reason) = fate
                && !reasons.contains(reason)
            {
                reasons.push(reason.clone());
            }
        }
        let deletes = !reasons.is_empty();
        if reasons.contains(&Reason::Failed) {
            reasons.push(Reason::MayBeDelayed);
        }
        let has = |wanted: &PodFate| fates.iter().any(|(_, fate)| fate == wanted);
        if has(&PodFate::Outdated) {
            let outdated = fates.iter().find(|(_, fate)| *fate == PodFate::Outdated);
            let why = outdated.map(|(pod, _)| self.templates.outdated(pod));
            return self.outdated_verdict(placement, why, reasons, deletes);
        }
        if has(&PodFate::Updated) {
            let action = if deletes { Action::Delete } else { Action::Keep };
            if !deletes {
                reasons.push(Reason::UpToDate);
            }
            return Verdict { action, reasons };
        }
        no_pod_stays(placement, deletes, creates, has(&PodFate::Leaving), reasons)
    }

    /// The net effect where an outdated pod would stay if nobody replaced it.
    fn outdated_verdict(
        &self,
        placement: &Placement,
        outdated: Option<Reason>,
        now: Vec<Reason>,
        deletes: bool,
    ) -> Verdict {
        let strategy = &self.view.owner.spec.update_strategy;
        let (action, main) = match (strategy, &placement.obstacle) {
            (UpdateStrategy::OnDelete, _) => {
                let action = if deletes { Action::Delete } else { Action::Wait };
                (action, Some(Reason::OnDelete))
            }
            (UpdateStrategy::RollingUpdate { .. }, Some(obstacle)) => {
                let obstacle = obstacle.clone();
                (Action::Delete, Some(Reason::NothingComesBack { obstacle }))
            }
            (UpdateStrategy::RollingUpdate { .. }, None) if allows_surge(strategy) => {
                (Action::Surge, outdated)
            }
            (UpdateStrategy::RollingUpdate { .. }, None) => (Action::Replace, outdated),
        };
        Verdict { action, reasons: main.into_iter().chain(now).collect() }
    }

    fn pod_plan(
        &self,
        pod: &Pod,
        fate: &PodFate,
        placement: &Placement,
        action: Action,
    ) -> PodPlan {
        let rolled = match action {
            Action::Replace | Action::Surge => true,
            Action::Delete => self.view.owner.spec.update_strategy != UpdateStrategy::OnDelete,
            Action::Create | Action::Wait | Action::Keep => false,
        };
        let (fate, reason) = match fate {
            PodFate::Leaving => (Fate::Delete, Reason::Terminating),
            PodFate::DeletedNow(reason) => (Fate::Delete, reason.clone()),
            PodFate::Updated => (Fate::Keep, Reason::UpToDate),
            PodFate::Outdated => {
                let reason = match &placement.obstacle {
                    Some(obstacle) if rolled => {
                        Reason::NothingComesBack { obstacle: obstacle.clone() }
                    }
                    Some(_) | None => self.templates.outdated(pod),
                };
                (if rolled { Fate::Delete } else { Fate::Keep }, reason)
            }
        };
        pod_plan(pod, fate, reason)
    }

    fn pod_standing(&self, fates: &[(&Pod, PodFate)]) -> PodStanding {
        let find = |wanted: &PodFate| fates.iter().find(|(_, fate)| fate == wanted);
        match (find(&PodFate::Outdated), find(&PodFate::Updated)) {
            (Some((pod, _)), _) if pod.is_ready() => PodStanding::OutdatedReady,
            (Some(_), _) => PodStanding::OutdatedUnready,
            (None, Some((pod, _))) if is_stuck(pod, self.view.now, self.pace) => PodStanding::Stuck,
            (None, _) => PodStanding::Other,
        }
    }

    /// Pods of nodes that do not exist.
    fn vanished(&self) -> impl Iterator<Item = Outcome> {
        let exists = |node: &NodeName| self.view.fleet.position(node).is_some();
        let claimed = self.view.pods.vanished().flatten().map(|pod| (*pod, vanished_plan(pod)));
        let released = self.released.iter().filter(|(node, _)| !exists(node));
        let released = released.flat_map(|(_, pods)| pods).map(|pod| (*pod, released_plan(pod)));
        let mut by_node: BTreeMap<&NodeName, Vec<PodPlan>> = BTreeMap::new();
        for (pod, plan) in claimed.chain(released) {
            if let Some(node) = pod.node() {
                by_node.entry(node).or_default().push(plan);
            }
        }
        by_node.into_iter().filter_map(|(node, pods)| self.vanished_outcome(node, pods))
    }

    fn vanished_outcome(&self, node: &NodeName, pods: Vec<PodPlan>) -> Option<Outcome> {
        let deleted = pods.iter().find(|plan| plan.fate == Fate::Delete);
        let action = if deleted.is_some() { Action::Delete } else { Action::Keep };
        let mut reasons = vec![deleted.or(pods.first())?.reason.clone()];
        if pods.iter().any(|plan| self.adopted.contains(&plan.uid)) {
            reasons.push(Reason::Adopted.into());
        }
        Some(Outcome {
            plan: NodePlan { name: node.clone(), action, wave: None, pods, reasons },
            standing: Standing {
                desired: false,
                node: NodeStanding::Ready,
                pod: PodStanding::Other,
            },
        })
    }
}

/// What becomes of a pod if nobody replaces outdated ones.
#[derive(Clone, Debug, PartialEq)]
enum PodFate {
    /// It is being deleted already.
    Leaving,
    /// The controller deletes it at once.
    DeletedNow(Reason),
    /// It stays, and it comes from the target template.
    Updated,
    /// It stays, and it comes from another template.
    Outdated,
}

struct Verdict {
    action: Action,
    reasons: Vec<Reason>,
}

/// What the controller does at once.
struct Immediate {
    deletes: HashMap<Uid, Reason>,
    creates: HashSet<String>,
}

impl Immediate {
    fn of(manage: &Manage<'_>) -> Self {
        let deletes = manage.delete.iter();
        let creates = manage.create.iter();
        Self {
            deletes: deletes.map(|d| (d.pod.uid.clone(), Reason::from(&d.reason))).collect(),
            creates: creates.map(|creation| creation.node.to_string()).collect(),
        }
    }

    fn creates_on(&self, node: &Node) -> bool {
        self.creates.contains(node.name.as_str())
    }
}

impl From<&DeleteReason> for Reason {
    fn from(reason: &DeleteReason) -> Self {
        match reason {
            DeleteReason::NodeNotEligible { obstacle } => {
                Self::NotEligible { obstacle: obstacle.clone() }
            }
            DeleteReason::Surplus { keeps } => Self::Surplus { kept: keeps.clone() },
            DeleteReason::Failed => Self::Failed,
            DeleteReason::Succeeded => Self::Succeeded,
            DeleteReason::NodeVanished => Self::NodeVanished,
            DeleteReason::OldNotReady { new: by } | DeleteReason::Replaced { by } => {
                Self::Superseded { by: by.clone() }
            }
            DeleteReason::OutdatedNotAvailable | DeleteReason::Outdated { .. } => {
                Self::Outdated { revision: None }
            }
            DeleteReason::NotAvailableAndMayNotStart { obstacle }
            | DeleteReason::Sunset { obstacle, .. } => {
                Self::NothingComesBack { obstacle: obstacle.clone() }
            }
        }
    }
}

/// The net effect where no pod stays.
fn no_pod_stays(
    placement: &Placement,
    deletes: bool,
    creates: bool,
    leaving: bool,
    mut reasons: Vec<Reason>,
) -> Verdict {
    let action = match &placement.obstacle {
        None if deletes => Action::Replace,
        None if creates => {
            reasons.push(if leaving { Reason::NoLivePod } else { Reason::NoPod });
            Action::Create
        }
        None => {
            reasons.push(Reason::Terminating);
            Action::Wait
        }
        Some(obstacle) if deletes => {
            if placement.may_stay {
                reasons.push(Reason::NothingComesBack { obstacle: obstacle.clone() });
            }
            Action::Delete
        }
        Some(obstacle) => {
            reasons.push(Reason::NotEligible { obstacle: obstacle.clone() });
            Action::Keep
        }
    };
    Verdict { action, reasons }
}

pub(super) fn pod_plan(pod: &Pod, fate: Fate, reason: Reason) -> PodPlan {
    PodPlan {
        name: pod.name.clone(),
        uid: pod.uid.clone(),
        revision_hash: pod.revision_hash(),
        fate,
        reason: reason.into(),
    }
}

/// A pod that the DaemonSet lets go.
fn released_plan(pod: &Pod) -> PodPlan {
    pod_plan(pod, Fate::Keep, Reason::Released)
}

/// A pod whose node does not exist: an unbound one is deleted, a bound one left to the pod garbage
/// collector.
fn vanished_plan(pod: &Pod) -> PodPlan {
    match &pod.target {
        PodTarget::Aimed(_) => pod_plan(pod, Fate::Delete, Reason::NodeVanished),
        PodTarget::Bound(_) | PodTarget::Nowhere => {
            pod_plan(pod, Fate::Keep, Reason::LeftToGarbageCollector)
        }
    }
}

fn node_standing(node: &Node, now: Timestamp) -> NodeStanding {
    match node.readiness {
        NodeReadiness::Ready => NodeStanding::Ready,
        NodeReadiness::NotReady { since } | NodeReadiness::Unknown { since } => {
            let seconds = since.map(|since| now.duration_since(since).as_secs());
            NodeStanding::NotReady { since, seconds }
        }
    }
}

/// Whether a pod that is not Ready may not become so by itself: a container says why it waits,
/// it restarts again and again, or it has had its time.
fn is_stuck(pod: &Pod, now: Timestamp, pace: &PolicySpec) -> bool {
    let deadline = SignedDuration::from_secs(pace.progress_deadline.0.into());
    let late = || pod.created.is_some_and(|at| now.duration_since(at) > deadline);
    !pod.is_ready() && (pod.trouble.is_some() || pod.restarts > pace.max_restarts || late())
}
