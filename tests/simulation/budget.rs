//! Which nodes are without an available pod, since when, and through whom; and how many may be. All
//! of it is counted here, by the words of the documentation, and not by the program's own code.

use std::collections::{BTreeMap, BTreeSet};

use ds_plan::controller::placement::judge;
use ds_plan::model::{DaemonSet, DaemonSetKey, Node, NodeName, Pod, Uid};
use ds_plan::simulator::{Event, Kind, Store};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::objects::pods;

/// What is newer than this, the program need not have seen where watches are cut and answers late.
const DIM: SignedDuration = SignedDuration::from_secs(30);

/// The same where all requests are answered at once.
const CLEAR: SignedDuration = SignedDuration::from_secs(2);

/// How long a request may be under way: then its sender has given it up, and it does not arrive.
const UNDER_WAY: SignedDuration = SignedDuration::from_secs(10);

/// A delete that was sent, and has neither arrived nor been given up.
struct Flight {
    user: String,
    pod: Uid,
    until: Timestamp,
    /// Until when its sender waits for an answer.
    awaited: Timestamp,
}

/// The nodes of the cluster, as they are to each DaemonSet.
pub(crate) struct Nodes {
    /// What is newer than this, the program need not have seen.
    sight: SignedDuration,
    /// The deletes under way, by the number of their request.
    flights: BTreeMap<u64, Flight>,
    /// Since when a node is Ready, and not.
    ready: BTreeMap<NodeName, (bool, Timestamp)>,
    /// When anything about a node changed last.
    changed: Option<Timestamp>,
    /// As what each node was known until then.
    former: BTreeMap<NodeName, (Node, Timestamp)>,
    /// Since when a desired node is without an available pod.
    without: BTreeMap<(DaemonSetKey, NodeName), Timestamp>,
    /// Those that we took it from.
    robbed: BTreeSet<(DaemonSetKey, NodeName)>,
    /// The most nodes that were ever desired: what percentages are of, at most.
    desired: BTreeMap<DaemonSetKey, u64>,
}

impl Nodes {
    /// Nothing is known yet. Where requests may fail, the program sees less.
    pub(crate) fn new(is_cut_off: bool) -> Self {
        Self {
            sight: if is_cut_off { DIM } else { CLEAR },
            flights: BTreeMap::new(),
            ready: BTreeMap::new(),
            changed: None,
            former: BTreeMap::new(),
            without: BTreeMap::new(),
            robbed: BTreeSet::new(),
            desired: BTreeMap::new(),
        }
    }

    /// Whether every request is answered at once.
    pub(crate) fn sees_clearly(&self) -> bool {
        self.sight == CLEAR
    }

    /// How long it may take until the program sees a change.
    pub(crate) fn sight(&self) -> SignedDuration {
        self.sight
    }

    /// The last moment that the program must have seen.
    pub(crate) fn seen_by(&self, now: Timestamp) -> Timestamp {
        now.saturating_sub(self.sight).unwrap_or(now)
    }

    /// A node has changed.
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

    /// A node as it was before, if the program may see it so yet.
    pub(crate) fn former(&self, node: &NodeName, now: Timestamp) -> Option<&Node> {
        let (before, until) = self.former.get(node)?;
        (*until > self.seen_by(now)).then_some(before)
    }

    /// Whether all nodes have been what they are for so long that the program must know.
    pub(crate) fn are_known(&self, now: Timestamp) -> bool {
        self.changed.is_none_or(|at| at + 4 * self.sight <= now)
    }

    /// Looks at all nodes as they are.
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
        self.robbed.retain(|key| without.contains_key(key));
        let most = self.desired.entry(live.key.clone()).or_default();
        *most = desired.max(*most);
    }

    /// A delete is sent, under a lock that runs out.
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

    /// A delete has arrived.
    pub(crate) fn lands(&mut self, number: u64) {
        self.flights.remove(&number);
    }

    /// Whether a delete of the pod is under way already, and the same user still waits for its
    /// answer.
    pub(crate) fn is_under_way(&self, user: &str, pod: &Pod, now: Timestamp) -> bool {
        let is_it = |flight: &Flight| flight.user == user && flight.pod == pod.uid;
        self.flights.values().any(|flight| is_it(flight) && now < flight.awaited)
    }

    /// The program takes the pod from a node.
    pub(crate) fn robbed(&mut self, live: &DaemonSet, node: &NodeName, now: Timestamp) {
        let key = (live.key.clone(), node.clone());
        self.robbed.insert(key.clone());
        self.without.entry(key).or_insert(now);
    }

    /// Which nodes are without an available pod, and how many may be: those that are so for long
    /// enough to be seen, and those that we took it from. Under the strategy that was declared, and
    /// the policy's `spec`.
    pub(crate) fn budget(
        &self,
        live: &DaemonSet,
        (declared, policy): (&Value, &Value),
        store: &Store,
        now: Timestamp,
    ) -> (Vec<NodeName>, u64) {
        let seen = self.seen_by(now);
        let (mut without, mut unready) = (Vec::new(), Vec::new());
        for node in desired_nodes(live, store) {
            let key = (live.key.clone(), node.name.clone());
            let since = self.without.get(&key);
            match self.ready.get(&node.name) {
                Some((false, since)) if *since <= seen => unready.push(node.name.clone()),
                Some((true, ready)) if *ready <= seen => {
                    let is_seen = since.is_some_and(|at| *at <= seen);
                    if is_seen || self.robbed.contains(&key) {
                        without.push(key.1);
                    }
                }
                Some(_) | None => {}
            }
        }
        let desired = self.desired.get(&live.key).copied().unwrap_or_default();
        let skipped = match policy["skipUnreadyNodes"].get("max") {
            Some(most) => share(most, desired),
            None => (5 * desired).div_ceil(100),
        };
        let skipped = usize::try_from(skipped.max(1)).unwrap_or(usize::MAX);
        without.extend(unready.into_iter().skip(skipped));
        (without, allowed(declared, policy, desired))
    }

    /// Whether the program must know that a node is Ready.
    pub(crate) fn is_ready(&self, node: &NodeName, now: Timestamp) -> bool {
        self.ready.get(node).is_some_and(|(ready, since)| *ready && *since <= self.seen_by(now))
    }

    /// How many pods may go at once.
    pub(crate) fn allowed(&self, live: &DaemonSet, declared: &Value, policy: &Value) -> u64 {
        allowed(declared, policy, self.desired.get(&live.key).copied().unwrap_or_default())
    }
}

/// How many nodes may be without an available pod: the declared strategy's, or the policy's if that
/// is stricter, and one at least.
fn allowed(declared: &Value, policy: &Value, desired: u64) -> u64 {
    let own = declared["rollingUpdate"].get("maxUnavailable").map_or(1, |it| share(it, desired));
    let stricter = policy.get("maxUnavailable").map_or(u64::MAX, |it| share(it, desired).max(1));
    own.max(1).min(stricter)
}

/// A number, or so many percent of them, rounded up.
fn share(value: &Value, of: u64) -> u64 {
    match (value.as_u64(), value.as_str().and_then(|text| text.strip_suffix('%'))) {
        (Some(number), _) => number,
        (None, Some(percent)) => (percent.parse::<u64>().unwrap() * of).div_ceil(100),
        (None, None) => panic!("{value} is no number and no share"),
    }
}

/// Whether a pod is the DaemonSet's, or would be adopted: it is nobody's and fits.
pub(crate) fn owns(live: &DaemonSet, pod: &Pod) -> bool {
    match &pod.controller {
        Some(owner) => owner.uid == live.uid,
        None => live.spec.selector.matches(&pod.labels),
    }
}

/// Whether a pod has been Ready for long enough, and is not on its way out.
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
