//! The nodes without an available pod: since when, caused by whom, and how many the budget allows.
//! Computed from the documented rules, independently of the program's code.

use std::collections::{BTreeMap, BTreeSet};

use daemonset::controller::placement::judge;
use daemonset::model::{DaemonSet, DaemonSetKey, Node, NodeName, Pod, Uid};
use embedded::{Event, Kind, Store};
use jiff::{SignedDuration, Timestamp};
use planner::digest::template_digest;
use serde_json::Value;

use crate::objects::{is_of_rollout, pods, template_of_rollout};

/// The age below which the program need not have seen a change, if watches are cut and answers
/// late.
const DIM: SignedDuration = SignedDuration::from_secs(30);

/// The same if all requests are answered at once.
const CLEAR: SignedDuration = SignedDuration::from_secs(2);

/// How long a request may be in flight: after that its sender has given it up, and it does not
/// arrive.
const UNDER_WAY: SignedDuration = SignedDuration::from_secs(10);

/// A delete that was sent, and has neither arrived nor timed out.
struct Flight {
    user: String,
    pod: Uid,
    until: Timestamp,
    /// Until when its sender waits for an answer.
    awaited: Timestamp,
}

/// The nodes of the cluster, from the view of each DaemonSet.
pub(crate) struct Nodes {
    /// The age below which the program need not have seen a change.
    sight: SignedDuration,
    /// The deletes in flight, by the number of their request.
    flights: BTreeMap<u64, Flight>,
    /// Whether each node is Ready, and since when.
    ready: BTreeMap<NodeName, (bool, Timestamp)>,
    /// When any node last changed.
    changed: Option<Timestamp>,
    /// The previous state of each node, and until when it applied.
    former: BTreeMap<NodeName, (Node, Timestamp)>,
    /// Since when a desired node has no available pod.
    without: BTreeMap<(DaemonSetKey, NodeName), Timestamp>,
    /// The nodes whose available pod the program deleted.
    pod_deleted: BTreeSet<(DaemonSetKey, NodeName)>,
    /// The run that has deleted a pod last.
    acting: String,
    /// The nodes whose available pod it has deleted to have a new one, with the digest of its template.
    begun: BTreeMap<(DaemonSetKey, NodeName), String>,
    /// The highest number of desired nodes so far: an upper bound for percentages.
    desired: BTreeMap<DaemonSetKey, u64>,
}

impl Nodes {
    /// The state at the beginning. If requests may fail, the program sees changes later.
    pub(crate) fn new(is_cut_off: bool) -> Self {
        Self {
            sight: if is_cut_off { DIM } else { CLEAR },
            flights: BTreeMap::new(),
            ready: BTreeMap::new(),
            changed: None,
            former: BTreeMap::new(),
            without: BTreeMap::new(),
            pod_deleted: BTreeSet::new(),
            acting: String::new(),
            begun: BTreeMap::new(),
            desired: BTreeMap::new(),
        }
    }

    /// Whether every request is answered at once.
    pub(crate) fn sees_clearly(&self) -> bool {
        self.sight == CLEAR
    }

    /// The longest delay until the program sees a change.
    pub(crate) fn sight(&self) -> SignedDuration {
        self.sight
    }

    /// The latest moment whose state the program must have seen.
    pub(crate) fn seen_by(&self, now: Timestamp) -> Timestamp {
        now.saturating_sub(self.sight).unwrap_or(now)
    }

    /// Records a change of a node.
    pub(crate) fn node(&mut self, event: &Event, now: Timestamp) {
        let Some(node) = event.object.node() else { return };
        let before = event.previous.as_ref().and_then(|it| it.node());
        if before.is_none_or(|it| it.readiness.is_ready() != node.readiness.is_ready()) {
            self.ready.insert(node.name.clone(), (node.readiness.is_ready(), now));
        }
        self.changed = Some(now);
        if let Some(before) = before {
            self.former.insert(node.name.clone(), (before.clone(), now));
        }
    }

    /// The previous state of a node, if the program may still see it.
    pub(crate) fn former(&self, node: &NodeName, now: Timestamp) -> Option<&Node> {
        let (before, until) = self.former.get(node)?;
        (*until > self.seen_by(now)).then_some(before)
    }

    /// Whether no node has changed for so long that the program must know them all.
    pub(crate) fn are_known(&self, now: Timestamp) -> bool {
        self.changed.is_none_or(|at| at + 4 * self.sight <= now)
    }

    /// Updates the state of all nodes.
    pub(crate) fn look(&mut self, all: &[DaemonSet], store: &Store, now: Timestamp) {
        self.flights.retain(|_, flight| now < flight.until);
        let seen = self.seen_by(now);
        for node in store.objects(Kind::Node, None).filter_map(|it| it.node()) {
            let ready = node.readiness.is_ready();
            let known = self.ready.entry(node.name.clone()).or_insert((ready, seen));
            if known.0 != ready {
                *known = (ready, now);
            }
        }
        for live in all {
            self.pods_of(live, store, now);
        }
    }

    fn pods_of(&mut self, live: &DaemonSet, store: &Store, now: Timestamp) {
        let available: BTreeSet<&NodeName> = pods(store)
            .filter(|pod| owns(live, pod) && is_available(pod, live, now))
            .filter(|pod| !self.flights.values().any(|flight| flight.pod == pod.uid))
            .filter_map(Pod::node)
            .collect();
        let mut without = BTreeSet::new();
        let mut desired = 0;
        for node in desired_nodes(live, store) {
            desired += 1;
            if !available.contains(&node.name) {
                let key = (live.key.clone(), node.name.clone());
                self.without.entry(key.clone()).or_insert(now);
                without.insert(key);
            }
        }
        self.without.retain(|key, _| key.0 != live.key || without.contains(key));
        let without = &self.without;
        self.pod_deleted.retain(|key| without.contains_key(key));
        let most = self.desired.entry(live.key.clone()).or_default();
        *most = desired.max(*most);
    }

    /// Records that a delete is sent, under a lock that expires at a known time.
    pub(crate) fn takes_off(
        &mut self,
        number: u64,
        user: &str,
        pod: &Pod,
        lock: Option<Timestamp>,
        now: Timestamp,
    ) {
        let until = now + UNDER_WAY;
        let awaited = lock.map_or(until, |it| it.min(until));
        let flight = Flight { user: user.to_owned(), pod: pod.uid.clone(), until, awaited };
        self.flights.insert(number, flight);
    }

    /// Records that a delete has arrived.
    pub(crate) fn lands(&mut self, number: u64) {
        self.flights.remove(&number);
    }

    /// Whether a delete of the pod is already in flight, and the same user still waits for its
    /// answer.
    pub(crate) fn is_under_way(&self, user: &str, pod: &Pod, now: Timestamp) -> bool {
        let is_it = |flight: &Flight| flight.user == user && flight.pod == pod.uid;
        self.flights.values().any(|flight| is_it(flight) && now < flight.awaited)
    }

    /// A run deletes a pod: it does not know what another one has begun.
    pub(crate) fn acts(&mut self, user: &str) {
        if self.acting != user {
            user.clone_into(&mut self.acting);
            self.begun.clear();
        }
    }

    /// Records that the program deletes the available pod of a node.
    pub(crate) fn pod_deleted(
        &mut self,
        live: &DaemonSet,
        node: &NodeName,
        store: &Store,
        now: Timestamp,
    ) {
        let key = (live.key.clone(), node.clone());
        if desired_nodes(live, store).any(|it| it.name == *node) {
            self.begun.insert(key.clone(), template_digest(live.spec.template.raw()));
        }
        self.pod_deleted.insert(key.clone());
        self.without.entry(key).or_insert(now);
    }

    /// The nodes without an available pod, and how many there may be. Counts the nodes that have
    /// been without one for long enough to be seen, and those whose pod the program deleted. Uses
    /// the declared strategy and the policy's `spec`.
    pub(crate) fn budget(
        &self,
        live: &DaemonSet,
        (declared, policy): (&Value, &Value),
        store: &Store,
        now: Timestamp,
    ) -> (Vec<NodeName>, u64) {
        let (mut without, unready) = self.down(live, store, now);
        let desired = self.desired.get(&live.key).copied().unwrap_or_default();
        without.extend(unready.into_iter().skip(skippable(policy, desired)));
        (without, allowed(declared, policy, desired))
    }

    /// The Ready nodes without an available pod, as far as the program must know of them or has
    /// deleted the pod itself; and the nodes that are not Ready, also those that are lost.
    pub(crate) fn down(
        &self,
        live: &DaemonSet,
        store: &Store,
        now: Timestamp,
    ) -> (Vec<NodeName>, Vec<NodeName>) {
        let seen = self.seen_by(now);
        let (mut without, mut unready) = (Vec::new(), Vec::new());
        for node in desired_nodes(live, store) {
            let key = (live.key.clone(), node.name.clone());
            let since = self.without.get(&key);
            match self.ready.get(&node.name) {
                Some((false, since)) if *since <= seen => unready.push(node.name.clone()),
                Some((true, ready)) if *ready <= seen => {
                    let is_seen = since.is_some_and(|at| *at <= seen);
                    if is_seen || self.pod_deleted.contains(&key) {
                        without.push(key.1);
                    }
                }
                Some(_) | None => {}
            }
        }
        unready.extend(self.lost(live, store, seen));
        (without, unready)
    }

    /// The nodes that are not Ready, and have a pod of the rollout, or none since this run has deleted it,
    /// although no pod may start there: the pods do not tolerate the taint that such a node gets.
    fn lost(&self, live: &DaemonSet, store: &Store, seen: Timestamp) -> Vec<NodeName> {
        let is_down = |node: &&Node| {
            let placement = judge(&live.spec.template.placement, node);
            self.ready.get(&node.name).is_some_and(|(ready, at)| !ready && *at <= seen)
                && !placement.may_start
                && placement.may_stay
        };
        let nodes = store.objects(Kind::Node, None).filter_map(|it| it.node());
        let down: Vec<&Node> = nodes.filter(is_down).collect();
        if down.is_empty() {
            return Vec::new();
        }
        let is_known = |pod: &Pod| pod.created.is_some_and(|at| Timestamp::from(at) <= seen);
        let all = || pods(store).filter(|pod| owns(live, pod) && !pod.terminating);
        let known = all().filter(|pod| is_known(pod) && is_of_rollout(pod, live, store));
        let updated: BTreeSet<&NodeName> = known.filter_map(Pod::node).collect();
        let rollout = template_of_rollout(live);
        let is_begun = |node: &NodeName| {
            let begun = self.begun.get(&(live.key.clone(), node.clone()));
            begun == Some(&rollout) && !all().any(|pod| pod.node() == Some(node))
        };
        let names = down.into_iter().map(|node| &node.name);
        names.filter(|name| updated.contains(name) || is_begun(name)).cloned().collect()
    }

    /// Whether a node has no available pod, or is not Ready, whether the program knows or not.
    pub(crate) fn may_be_down(&self, live: &DaemonSet, node: &NodeName) -> bool {
        let is_unready = self.ready.get(node).is_none_or(|(ready, _)| !ready);
        is_unready || self.without.contains_key(&(live.key.clone(), node.clone()))
    }

    /// Whether the program must know that a node has no available pod: it has deleted the pod, or has
    /// had time to see it.
    pub(crate) fn must_miss_pod(&self, live: &DaemonSet, node: &NodeName, now: Timestamp) -> bool {
        let key = (live.key.clone(), node.clone());
        let since = self.without.get(&key);
        self.pod_deleted.contains(&key) || since.is_some_and(|at| *at <= self.seen_by(now))
    }

    /// Whether the program has deleted the pod of a node, and no new one is available.
    pub(crate) fn is_in_flight(&self, live: &DaemonSet, node: &NodeName) -> bool {
        self.pod_deleted.contains(&(live.key.clone(), node.clone()))
    }

    /// Whether a delete of the pod is in flight, of whomever.
    pub(crate) fn is_leaving(&self, pod: &Pod) -> bool {
        self.flights.values().any(|flight| flight.pod == pod.uid)
    }

    /// Whether the program must know that a node is Ready.
    pub(crate) fn is_ready(&self, node: &NodeName, now: Timestamp) -> bool {
        self.ready.get(node).is_some_and(|(ready, since)| *ready && *since <= self.seen_by(now))
    }

    /// How many pods may be deleted at once.
    pub(crate) fn allowed(&self, live: &DaemonSet, declared: &Value, policy: &Value) -> u64 {
        allowed(declared, policy, self.desired.get(&live.key).copied().unwrap_or_default())
    }
}

/// How many nodes may be without an available pod while pods are deleted: the declared strategy's
/// limit, or the policy's if it is stricter, and at least one. A DaemonSet with `maxSurge` declares
/// none (Kubernetes requires `maxUnavailable: 0` there): the policy's limit applies, else one.
fn allowed(declared: &Value, policy: &Value, desired: u64) -> u64 {
    let own = declared["rollingUpdate"].get("maxUnavailable").map_or(1, |it| share(it, desired));
    let of_policy = policy.get("maxUnavailable").map(|it| share(it, desired).max(1));
    match (own, of_policy) {
        (0, limit) => limit.unwrap_or(1),
        (own, limit) => limit.map_or(own, |limit| limit.min(own)),
    }
}

/// How many nodes that are not Ready do not count.
pub(crate) fn skippable(policy: &Value, desired: u64) -> usize {
    let most = match policy["skipUnreadyNodes"].get("max") {
        Some(most) => share(most, desired),
        None => (5 * desired).div_ceil(100),
    };
    usize::try_from(most.max(1)).unwrap_or(usize::MAX)
}

/// The value of a number or a percentage (rounded up).
pub(crate) fn share(value: &Value, of: u64) -> u64 {
    match (value.as_u64(), value.as_str().and_then(|text| text.strip_suffix('%'))) {
        (Some(number), _) => number,
        (None, Some(percent)) => (percent.parse::<u64>().unwrap() * of).div_ceil(100),
        (None, None) => panic!("{value} is not a number or percentage"),
    }
}

/// Whether the DaemonSet owns a pod, or would adopt it: the pod has no owner and matches the
/// selector.
pub(crate) fn owns(live: &DaemonSet, pod: &Pod) -> bool {
    match &pod.controller {
        Some(owner) => owner.uid == live.uid,
        None => live.spec.selector.matches(&pod.labels),
    }
}

/// Whether a pod has been Ready for `minReadySeconds`, and is not terminating.
pub(crate) fn is_available(pod: &Pod, live: &DaemonSet, now: Timestamp) -> bool {
    !pod.terminating && pod.is_available(live.spec.min_ready_seconds, now)
}

/// The nodes that should have a pod.
pub(crate) fn desired_nodes<'s>(
    live: &'s DaemonSet,
    store: &'s Store,
) -> impl Iterator<Item = &'s Node> {
    let nodes = store.objects(Kind::Node, None).filter_map(|it| it.node());
    nodes.filter(|node| judge(&live.spec.template.placement, node).may_start)
}
