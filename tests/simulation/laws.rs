//! What has to hold after every request of the program, whatever goes wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use ds_plan::controller::limits::Limits;
use ds_plan::controller::placement::judge;
use ds_plan::controller::revision_data::data_for;
use ds_plan::model::{
    DaemonSet, DaemonSetKey, Node, NodeName, Pod, PolicySpec, Revision, UpdateStrategy,
};
use ds_plan::plan::Hold;
use ds_plan::simulator::{Event, Kind, ObjectKey, Objects, Route, Seen, Store};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::cluster::NAMESPACE;
use crate::scenario::Scenario;

/// What is newer than this, the program need not have seen: watches are cut, answers are late.
const SIGHT: SignedDuration = SignedDuration::from_secs(30);

/// The kinds whose changes are looked at.
const KINDS: [Kind; 4] = [Kind::DaemonSet, Kind::ControllerRevision, Kind::Pod, Kind::Node];

/// What was seen of a run so far, and which laws it broke.
pub(crate) struct Ledger {
    declared: BTreeMap<DaemonSetKey, Value>,
    policy: PolicySpec,
    /// Up to which version changes were looked at.
    seen: u64,
    /// Since when a node is Ready, and not.
    ready: BTreeMap<NodeName, (bool, Timestamp)>,
    /// Since when a desired node is without an available pod.
    without: BTreeMap<(DaemonSetKey, NodeName), Timestamp>,
    /// Those that we took it from.
    robbed: BTreeSet<(DaemonSetKey, NodeName)>,
    /// The most nodes that were ever desired: what percentages are of, at most.
    desired: BTreeMap<DaemonSetKey, u32>,
    /// Broken laws, in words.
    pub(crate) broken: Vec<String>,
    /// Every request and every change, in order.
    pub(crate) history: String,
}

impl Ledger {
    pub(crate) fn new(scenario: &Scenario, store: &Store) -> Self {
        let declared = scenario
            .agents
            .iter()
            .map(|agent| (DaemonSetKey::new(NAMESPACE, agent.name), agent.strategy.clone()));
        let policy = scenario.policy.clone().map(|mut spec| {
            spec["selects"] = json!({});
            serde_json::from_value(spec).expect("a policy without mistakes")
        });
        Self {
            declared: declared.collect(),
            policy: policy.unwrap_or_default(),
            seen: store.version(),
            ready: BTreeMap::new(),
            without: BTreeMap::new(),
            robbed: BTreeSet::new(),
            desired: BTreeMap::new(),
            broken: Vec::new(),
            history: String::new(),
        }
    }

    /// Takes in a request that was carried out, and all that has changed since the one before.
    pub(crate) fn after(&mut self, request: &Seen, code: u16, store: &Store, now: Timestamp) {
        let Seen { number, verb, route, dry_run, user } = request;
        let _ = writeln!(self.history, "{now} {user} {number} {verb} {route:?} {dry_run} {code}");
        let events = self.news(store);
        let objects = match route {
            Route::Objects(it) => Some(it),
            Route::AccessReview | Route::Version | Route::Discovery(_) | Route::Health => None,
        };
        self.look(store, now);
        let changes = !matches!(*verb, "get" | "list" | "watch") && !dry_run && code < 300;
        if let Some(objects) = objects.filter(|it| changes && it.kind == Kind::Pod) {
            self.deleted(objects, &events, store, now);
        }
        for event in &events {
            self.changed(event, store, now);
        }
    }

    /// What has changed since the last time, in order.
    fn news(&mut self, store: &Store) -> Vec<Event> {
        let of = |kind| {
            let events = store.events_after(kind, self.seen).expect("nothing is forgotten so soon");
            events.cloned()
        };
        let mut events: Vec<Event> = KINDS.into_iter().flat_map(of).collect();
        events.sort_by_key(Event::version);
        self.seen = store.version();
        for event in &events {
            let (kind, key) = (event.object.kind(), event.object.key());
            let _ = writeln!(self.history, "  {:?} {kind} {key}", event.change);
        }
        events
    }

    fn breaks(&mut self, now: Timestamp, law: impl std::fmt::Display) {
        self.broken.push(format!("{now}: {law}"));
    }

    /// The program has deleted a pod.
    fn deleted(&mut self, objects: &Objects, events: &[Event], store: &Store, now: Timestamp) {
        let key = ObjectKey::new(&objects.namespace, &objects.name);
        let ours = |event: &&Event| event.object.kind() == Kind::Pod && *event.object.key() == key;
        // One that was on its way out already is not changed.
        let Some(event) = events.iter().rev().find(ours) else { return };
        let Some(pod) = event.previous.as_ref().and_then(|it| it.pod()) else { return };
        let claimed = |live: &DaemonSet| match &pod.controller {
            Some(owner) => owner.uid == live.uid,
            // What is nobody's and fits is as good as adopted.
            None => live.spec.selector.matches(&pod.labels),
        };
        let Some(live) = self.live(store).into_iter().find(claimed) else {
            return self.breaks(now, format_args!("{key} was deleted, which is somebody else's"));
        };
        let hold = Hold::of(&live).ok().flatten();
        let Some(hold) = hold else {
            return self.breaks(now, format_args!("{key} was deleted without a hold"));
        };
        if is_updated(pod, &live, store) {
            return self.breaks(now, format_args!("{key} was deleted, which is updated"));
        }
        let Some(name) = pod.node() else { return };
        let seen = now.saturating_sub(SIGHT).unwrap_or(now);
        if !pod.is_available(live.spec.min_ready_seconds, seen) {
            return;
        }
        let node = (live.key.clone(), name.clone());
        self.robbed.insert(node.clone());
        self.without.insert(node, now);
        self.budget(&live, &hold, store, now);
    }

    /// No more desired nodes are without an available pod than may be: those that are so for long
    /// enough to be seen, and those that we took it from.
    fn budget(&mut self, live: &DaemonSet, hold: &Hold, store: &Store, now: Timestamp) {
        let desired = self.desired.get(&live.key).copied().unwrap_or_default();
        let strategy: UpdateStrategy =
            serde_json::from_value(hold.declared.clone()).expect("a strategy");
        let declared = Limits::of(&strategy, desired).map_or(1, |it| it.max_unavailable.max(1));
        let allowed = self.policy.stricter(declared, desired);
        let seen = now.saturating_sub(SIGHT).unwrap_or(now);
        let (mut without, mut unready) = (Vec::new(), 0);
        for node in desired_nodes(live, store) {
            let is_ready = match self.ready.get(&node.name) {
                Some((false, since)) if *since <= seen => {
                    unready += 1;
                    false
                }
                Some((true, since)) => *since <= seen,
                Some((false, _)) | None => false,
            };
            let key = (live.key.clone(), node.name.clone());
            let since = self.without.get(&key);
            if is_ready && since.is_some_and(|at| *at <= seen || self.robbed.contains(&key)) {
                without.push(node.name.to_string());
            }
        }
        let counted = u32::try_from(without.len()).unwrap();
        let counted =
            counted + u32::saturating_sub(unready, self.policy.skip_unready_nodes.of(desired));
        if counted > allowed {
            let key = &live.key;
            let text =
                format!("{key}: {counted} nodes are without a pod, {allowed} may: {without:?}");
            self.breaks(now, text);
        }
    }

    /// Something has changed, by whomever.
    fn changed(&mut self, event: &Event, store: &Store, now: Timestamp) {
        if let Some(node) = event.object.node() {
            let before = event.previous.as_ref().and_then(|it| it.node());
            if before.is_none_or(|it| it.readiness.is_ready() != node.readiness.is_ready()) {
                self.ready.insert(node.name.clone(), (node.readiness.is_ready(), now));
            }
        }
        let Some(live) = event.object.daemon_set() else { return };
        let Some(declared) = self.declared.get(&live.key).cloned() else { return };
        let hold = Hold::of(live).ok().flatten();
        let strategy = &live.raw["spec"]["updateStrategy"];
        let fits = match &hold {
            Some(hold) => is_declared(&hold.declared, &declared),
            None => is_declared(strategy, &declared),
        };
        if !fits {
            self.breaks(now, format_args!("{} has the strategy {strategy}", live.key));
        }
        let before = event.previous.as_ref().and_then(|it| it.daemon_set());
        let was_held = before.is_some_and(|it| Hold::of(it).ok().flatten().is_some());
        if was_held && hold.is_none() {
            self.given_back(live, store, now);
        }
    }

    /// The controller has free hand again: nothing that it would replace may be left, but on nodes
    /// that are skipped.
    fn given_back(&mut self, live: &DaemonSet, store: &Store, now: Timestamp) {
        let seen = now.saturating_sub(SIGHT).unwrap_or(now);
        let desired: BTreeSet<_> = desired_nodes(live, store).map(|it| it.name.clone()).collect();
        let old: Vec<String> = pods(store)
            .filter(|pod| pod.controller.as_ref().is_some_and(|it| it.uid == live.uid))
            .filter(|pod| !pod.terminating && pod.is_available(live.spec.min_ready_seconds, seen))
            .filter(|pod| !is_updated(pod, live, store))
            .filter(|pod| {
                let name = pod.node().filter(|name| desired.contains(*name));
                let ready = name.and_then(|name| self.ready.get(name));
                ready.is_some_and(|(ready, since)| *ready && *since <= seen)
            })
            .map(|pod| pod.name.to_string())
            .collect();
        if !old.is_empty() {
            let key = &live.key;
            self.breaks(now, format_args!("{key} was given back while these are left: {old:?}"));
        }
    }

    /// Looks at everything as it is.
    fn look(&mut self, store: &Store, now: Timestamp) {
        for node in store.objects(Kind::Node, None).filter_map(|it| it.node()) {
            let long_ago = now.saturating_sub(SIGHT).unwrap_or(now);
            let since = (node.readiness.is_ready(), long_ago);
            self.ready.entry(node.name.clone()).or_insert(since);
        }
        for live in self.live(store) {
            self.pods_of(&live, store, now);
            let data = data_for(live.spec.template.raw());
            let matching = revisions(&live, store).filter(|it| *it.data == data).count();
            if matching > 1 {
                self.breaks(now, format_args!("{} has {matching} matching revisions", live.key));
            }
        }
    }

    fn pods_of(&mut self, live: &DaemonSet, store: &Store, now: Timestamp) {
        let min_ready = live.spec.min_ready_seconds;
        let available: BTreeSet<&NodeName> = pods(store)
            .filter(|pod| pod.controller.as_ref().is_some_and(|it| it.uid == live.uid))
            .filter(|pod| !pod.terminating && pod.is_available(min_ready, now))
            .filter_map(Pod::node)
            .collect();
        let mut desired = BTreeSet::new();
        for node in desired_nodes(live, store).filter(|node| !available.contains(&node.name)) {
            let key = (live.key.clone(), node.name.clone());
            self.without.entry(key.clone()).or_insert(now);
            desired.insert(key);
        }
        self.without.retain(|key, _| key.0 != live.key || desired.contains(key));
        let without = &self.without;
        self.robbed.retain(|key| without.contains_key(key));
        let count = u32::try_from(desired_nodes(live, store).count()).unwrap();
        let most = self.desired.entry(live.key.clone()).or_default();
        *most = count.max(*most);
    }

    fn live(&self, store: &Store) -> Vec<DaemonSet> {
        let all = store.objects(Kind::DaemonSet, Some(NAMESPACE)).filter_map(|it| it.daemon_set());
        all.filter(|live| self.declared.contains_key(&live.key)).cloned().collect()
    }
}

/// Whether a strategy is the declared one, as the server serves it.
fn is_declared(strategy: &Value, declared: &Value) -> bool {
    let read = |value: &Value| serde_json::from_value::<UpdateStrategy>(value.clone()).ok();
    read(strategy).is_some() && read(strategy) == read(declared)
}

pub(crate) fn pods(store: &Store) -> impl Iterator<Item = &Pod> {
    store.objects(Kind::Pod, Some(NAMESPACE)).filter_map(|it| it.pod())
}

fn revisions<'s>(live: &'s DaemonSet, store: &'s Store) -> impl Iterator<Item = &'s Revision> {
    let all = store.objects(Kind::ControllerRevision, Some(NAMESPACE));
    all.filter_map(|it| it.revision())
        .filter(|it| it.controller.as_ref().is_some_and(|owner| owner.uid == live.uid))
}

/// Whether a pod is of the template that is live.
pub(crate) fn is_updated(pod: &Pod, live: &DaemonSet, store: &Store) -> bool {
    let data = data_for(live.spec.template.raw());
    let hashes = revisions(live, store).filter(|it| *it.data == data).filter_map(Revision::hash);
    hashes.into_iter().any(|hash| pod.has_hash(&hash))
}

/// The nodes that should have a pod.
pub(crate) fn desired_nodes<'s>(
    live: &'s DaemonSet,
    store: &'s Store,
) -> impl Iterator<Item = &'s Node> {
    let nodes = store.objects(Kind::Node, None).filter_map(|it| it.node());
    nodes.filter(|node| judge(&live.spec.template.placement, node).may_start)
}
