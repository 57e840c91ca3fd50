//! The laws of a budget that several DaemonSets share: few nodes are disturbed at once, and each one
//! once. Own counts of nodes and pods; no rule is shared with the planner.
//!
//! The replacement of an available pod is judged when it is sent. A node is *disturbed* while one of
//! the DaemonSets should have a pod there and has no available one; it is *open* while a rollout has
//! updated it and another one has not yet. Open nodes keep their slots, but only if the policy lets
//! every node begin at any time; the order on a node is judged only then, too.

use std::collections::{BTreeMap, BTreeSet};

use daemonset::model::{DaemonSet, DaemonSetKey, NodeName, Pod, Revision};
use embedded::Store;
use jiff::Timestamp;
use planner::digest::template_digest;
use planner::plan::{PauseState, PausedRollout};
use serde_json::Value;

use crate::budget::{Nodes, desired_nodes, is_available, owns, share};
use crate::flights::{Bar, new_pods, old_pods, stays_up};
use crate::objects::{failed_before, image_of, pods, revisions};
use crate::rules::Rules;

/// What the laws of a shared budget remember.
pub(crate) struct SharedLaws {
    /// The names of the DaemonSets, in the order in which they follow on a node.
    order: Vec<&'static str>,
    /// When the program may last have counted each node as disturbed.
    disturbed: BTreeMap<NodeName, Timestamp>,
    /// The DaemonSets whose record another client has changed: a guard blocks them.
    blocked: BTreeSet<DaemonSetKey>,
    /// The highest number of nodes so far on which one of the DaemonSets should have a pod.
    desired: u64,
}

/// A replacement that is about to begin.
pub(crate) struct Replacement<'r> {
    /// The pod that is deleted. It is available.
    pub(crate) pod: &'r Pod,
    /// Its DaemonSet.
    pub(crate) live: &'r DaemonSet,
    /// All DaemonSets of the budget.
    pub(crate) all: &'r [DaemonSet],
    /// The nodes of one of them of which the program must know that they are down.
    pub(crate) down: &'r dyn Fn(&DaemonSet) -> Vec<NodeName>,
    /// The image of the commit.
    pub(crate) target: u32,
}

impl SharedLaws {
    pub(crate) fn new(order: Vec<&'static str>) -> Self {
        Self { order, disturbed: BTreeMap::new(), blocked: BTreeSet::new(), desired: 0 }
    }

    /// Another client has changed the record of a DaemonSet.
    pub(crate) fn record_changed(&mut self, key: DaemonSetKey) {
        self.blocked.insert(key);
    }

    /// Updates what is disturbed.
    pub(crate) fn look(
        &mut self,
        all: &[DaemonSet],
        policy: &Value,
        (store, nodes): (&Store, &Nodes),
        now: Timestamp,
    ) {
        if policy.get("sharedBudget").is_none() {
            return;
        }
        let mut desired = BTreeSet::new();
        for live in all {
            // Times of pods have whole seconds.
            let seconds = Bar::of(live, policy).longest() + 1;
            let serves = |pod: &Pod| {
                owns(live, pod) && !pod.terminating && !nodes.is_leaving(pod) && pod.is_ready()
            };
            let up = pods(store).filter(|pod| serves(pod) && stays_up(pod, seconds, now));
            let up: BTreeSet<&NodeName> = up.filter_map(Pod::node).collect();
            for node in desired_nodes(live, store) {
                desired.insert(&node.name);
                if !node.readiness.is_ready() || !up.contains(&node.name) {
                    self.disturbed.insert(node.name.clone(), now);
                }
            }
        }
        self.desired = self.desired.max(desired.len() as u64);
    }

    /// Number of nodes that may be disturbed at the same time, if the DaemonSets share a budget.
    pub(crate) fn limit(&self, rules: &Rules) -> Option<u64> {
        Some(share(rules.shared_budget.as_ref()?, self.desired).max(1))
    }

    /// The law that is broken if this pod is deleted now.
    pub(crate) fn broken(
        &self,
        replacement: &Replacement<'_>,
        rules: &Rules,
        (store, nodes): (&Store, &Nodes),
        now: Timestamp,
    ) -> Option<String> {
        let Replacement { pod, live, all, down, target } = *replacement;
        let limit = self.limit(rules)?;
        let node = pod.node()?;
        let rolling = self.rolling(all, target, store);
        let others = || rolling.iter().copied().filter(|other| other.key != live.key);
        if image_of(live.spec.template.raw()) == target {
            // One that has had no available pod since a rollout before may have its outdated one.
            let is_in_flight = |other: &&DaemonSet| {
                nodes.is_in_flight(other, node) && !has_outdated(other, node, store, nodes)
            };
            if let Some(other) = others().find(is_in_flight) {
                return Some(format!(", while the new pod of {} is not available", other.key));
            }
            if rules.let_all_begin()
                && let Some(other) = self.first_on(node, live, &rolling, (store, nodes))
            {
                return Some(format!(" before that of {}", other.key));
            }
        }
        let mut taken: BTreeSet<NodeName> = all.iter().flat_map(down).collect();
        // What has begun is finished, whatever else is open.
        if rules.let_all_begin() && !has_begun(node, (live, all), target, store) {
            taken.extend(open(&rolling, (store, nodes), now));
        }
        taken.remove(node);
        let was_disturbed = self.disturbed.get(node).is_some_and(|at| *at >= nodes.seen_by(now));
        let is_over = !was_disturbed && taken.len() as u64 >= limit;
        is_over.then(|| format!(" on {node}, beside {taken:?}, and {limit} share the budget"))
    }

    /// Whether a node has to wait for another DaemonSet, which comes first there, or whose new pod
    /// there need not be known to be available.
    pub(crate) fn waits(
        &self,
        node: &NodeName,
        (live, all): (&DaemonSet, &[DaemonSet]),
        (policy, target): (&Value, u32),
        (store, nodes): (&Store, &Nodes),
        now: Timestamp,
    ) -> bool {
        let rolling = self.rolling(all, target, store);
        let is_under_way = |other: &DaemonSet| {
            // Times of pods have whole seconds.
            let seconds = Bar::of(other, policy).longest() + 1;
            let pod = new_pods(other, store).remove(node);
            let is_up = pod.is_some_and(|pod| stays_up(pod, seconds, nodes.seen_by(now)));
            let is_desired = desired_nodes(other, store).any(|it| it.name == *node);
            is_desired && !is_up && !has_outdated(other, node, store, nodes)
        };
        let mut others = rolling.iter().filter(|other| other.key != live.key);
        self.first_on(node, live, &rolling, (store, nodes)).is_some()
            || others.any(|other| is_under_way(other))
    }

    fn rolling<'d>(&self, all: &'d [DaemonSet], target: u32, store: &Store) -> Vec<&'d DaemonSet> {
        let rolling = all.iter().filter(|it| is_rolling(it, target, store));
        rolling.filter(|it| !self.blocked.contains(&it.key)).collect()
    }

    /// The DaemonSet that comes before this one on a node, and still has an outdated pod there.
    fn first_on<'d>(
        &self,
        node: &NodeName,
        live: &DaemonSet,
        rolling: &[&'d DaemonSet],
        (store, nodes): (&Store, &Nodes),
    ) -> Option<&'d DaemonSet> {
        let position =
            |it: &DaemonSet| self.order.iter().position(|name| *name == it.key.name.as_str());
        let is_before = |other: &&DaemonSet| position(other) < position(live);
        let is_left = |other: &&DaemonSet| has_outdated(other, node, store, nodes);
        rolling.iter().copied().filter(is_before).find(is_left)
    }
}

/// Whether a node was begun for another DaemonSet than this one, whatever template is live there now. What
/// has begun is finished, also in a closed window.
pub(crate) fn has_begun(
    node: &NodeName,
    (live, all): (&DaemonSet, &[DaemonSet]),
    target: u32,
    store: &Store,
) -> bool {
    let has_target = |other: &DaemonSet| {
        let all = revisions(other, store);
        let of_target = all.filter(|it| image_of(&it.data["spec"]["template"]) == target);
        let hashes: Vec<_> = of_target.filter_map(Revision::hash).collect();
        let here = |pod: &&Pod| pod.node() == Some(node) && owns(other, pod) && !pod.terminating;
        pods(store).filter(here).any(|pod| hashes.iter().any(|hash| pod.has_hash(hash)))
    };
    all.iter().any(|other| other.key != live.key && has_target(other))
}

/// The nodes that one rollout has updated, as the program must know, and another one has not yet.
fn open(
    rolling: &[&DaemonSet],
    (store, nodes): (&Store, &Nodes),
    now: Timestamp,
) -> BTreeSet<NodeName> {
    let mut open = BTreeSet::new();
    for live in rolling {
        let known = new_pods(live, store).into_iter();
        let known = known.filter(|(_, pod)| is_available(pod, live, nodes.seen_by(now)));
        for (node, _) in known.filter(|(node, _)| nodes.is_ready(node, now)) {
            if rolling.iter().any(|other| has_outdated(other, &node, store, nodes)) {
                open.insert(node);
            }
        }
    }
    open
}

/// Whether a DaemonSet should have a pod on a node, and has an outdated one that stays for now.
fn has_outdated(live: &DaemonSet, node: &NodeName, store: &Store, nodes: &Nodes) -> bool {
    let is_desired = desired_nodes(live, store).any(|it| it.name == *node);
    let stays = |pod: &&Pod| !pod.terminating && !nodes.is_leaving(pod);
    is_desired && old_pods(live, store).get(node).copied().as_ref().is_some_and(stays)
}

/// Whether a rollout of the image is in progress, and has not failed.
fn is_rolling(live: &DaemonSet, target: u32, store: &Store) -> bool {
    let template = live.spec.template.raw();
    let pause = PausedRollout::of(live).ok().flatten();
    pause.is_some_and(|pause| pause.state == PauseState::Paused)
        && image_of(template) == target
        && !failed_before(live, store).contains(&template_digest(template))
}
