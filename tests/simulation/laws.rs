//! The laws: conditions that must hold after every request of the program, whatever fails.

mod pods;
mod writes;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use daemonset::controller::revision_data::data_for;
use daemonset::model::{
    CheckQuestion, DaemonSet, DaemonSetKey, DesiredDaemonSet, Uid, record_name,
};
use ds_plan::Exit;
use embedded::{Change, Event, Fault, Kind, ObjectKey, Objects, Route, Seen, Store};
use jiff::Timestamp;
use serde_json::Value;

use crate::budget::Nodes;
use crate::changes::Changes;
use crate::cluster::{self, NAMESPACE};
use crate::external_actors::EXTERNAL_USER;
use crate::flights::Flights;
use crate::locks::Locks;
use crate::objects::{daemon_sets, key, remembered, revisions};
use crate::observations::ObservationTracker;
use crate::pulls::{self, Pulls, is_puller, pulls_for};
use crate::rules::Rules;
use crate::scenario::Scenario;
use crate::shared::SharedLaws;
use crate::step_laws::{Approvals, StepLaws};
use crate::story::{IMAGES, Story};

/// The kinds whose changes are checked.
const KINDS: [Kind; 5] =
    [Kind::DaemonSet, Kind::ConfigMap, Kind::ControllerRevision, Kind::Pod, Kind::Node];

/// Checks the laws of a run, and collects the broken ones.
pub(crate) struct LawChecker {
    declared: BTreeMap<DaemonSetKey, Value>,
    policy: Value,
    /// Every manifest that may be live, for plans.
    manifests: Vec<DesiredDaemonSet>,
    /// The last resource version whose changes were processed.
    seen: u64,
    nodes: Nodes,
    flights: Flights,
    locks: Locks,
    observations: ObservationTracker,
    changes: Changes,
    /// The number of failed templates that the lease of each DaemonSet records.
    failed: BTreeMap<DaemonSetKey, usize>,
    /// The laws of a policy with steps for each DaemonSet, if there is a story.
    steps: BTreeMap<DaemonSetKey, StepLaws>,
    shared: SharedLaws,
    pulls: Pulls,
    /// The interrupted users, each with the pods that its run had tried to delete until then.
    interrupted: BTreeMap<String, BTreeSet<String>>,
    tried: BTreeMap<String, BTreeSet<String>>,
    /// The uids of outdated pods that a run has tried to delete: a repetition is no decision.
    attempted: BTreeSet<String>,
    /// How often the delete of a pod succeeded, by user and uid.
    answered: BTreeMap<(String, String), usize>,
    /// The DaemonSets when the create of a pod was sent, by the number of the request.
    creating: BTreeMap<u64, Vec<DaemonSet>>,
    /// The broken laws, as text.
    pub(crate) broken: Vec<String>,
    /// Every request and every change, in order.
    pub(crate) history: String,
}

impl LawChecker {
    pub(crate) fn new(scenario: &Scenario, store: &Store) -> Self {
        let declared = scenario
            .agents
            .iter()
            .map(|agent| (DaemonSetKey::new(NAMESPACE, agent.name), agent.strategy.clone()));
        let read = |text: String| {
            let file = daemonset::model::ManifestFile { path: "it".into(), bytes: text.into() };
            let options = manifest::Options {
                default_namespace: NAMESPACE.into(),
                validate: manifest::FieldValidation::Strict,
                policies: None,
                every_file: false,
                not_objects: manifest::NotObjects::Reject,
            };
            manifest::read(&[file], &options).expect("valid manifests").daemon_sets
        };
        let mut manifests = read(cluster::manifests(scenario));
        manifests.extend(read(cluster::manifests_before(scenario)));
        if let Some(story) = &scenario.story {
            let of = |image| read(cluster::manifests_of(image, &story.rules, scenario));
            manifests.extend(IMAGES.into_iter().flat_map(of));
        }
        for desired in &mut manifests {
            desired.managed_by = scenario.managed_by();
        }
        let declared: BTreeMap<DaemonSetKey, Value> = declared.collect();
        let laws = |story: &Story| {
            let is_calm = scenario.faults.is_empty() && scenario.external_actors.is_empty();
            let of = || StepLaws::new(story.rules.clone(), cluster::start(scenario), is_calm);
            declared.keys().map(|key| (key.clone(), of())).collect()
        };
        let steps = scenario.story.as_ref().map(laws).unwrap_or_default();
        Self {
            declared,
            policy: scenario.policy.clone().unwrap_or_default(),
            manifests,
            seen: store.version(),
            nodes: Nodes::new(scenario.is_cut_off()),
            flights: Flights::default(),
            locks: Locks::default(),
            observations: ObservationTracker::new(scenario.managed_by()),
            changes: Changes::default(),
            failed: BTreeMap::new(),
            steps,
            shared: SharedLaws::new(scenario.agents.iter().map(|agent| agent.name).collect()),
            pulls: Pulls::default(),
            interrupted: BTreeMap::new(),
            tried: BTreeMap::new(),
            attempted: BTreeSet::new(),
            answered: BTreeMap::new(),
            creating: BTreeMap::new(),
            broken: Vec::new(),
            history: String::new(),
        }
    }

    /// Records that the run of a user is interrupted: it must not start anything new.
    pub(crate) fn interrupt(&mut self, user: &str) {
        let tried = self.tried.get(user).cloned().unwrap_or_default();
        self.interrupted.insert(user.to_owned(), tried);
    }

    /// A request is sent. The laws judge it by what the program can know at that moment, also if
    /// the request is then refused.
    pub(crate) fn before(
        &mut self,
        request: &Seen,
        faults: &[Fault],
        store: &Store,
        now: Timestamp,
    ) {
        let Route::Objects(Objects { kind, name, .. }) = &request.route else { return };
        self.observations.look(request, *kind, faults, now);
        // The program need not know what has changed since the previous request.
        for event in store.events_after(Kind::Node, self.seen).expect("recent events are kept") {
            self.nodes.node(event, now);
        }
        self.look_at_steps(store, now);
        let refused = faults.iter().any(|fault| matches!(fault, Fault::Answer(_)));
        if request.dry_run || matches!(request.verb, "get" | "list" | "watch") {
            return;
        }
        if *kind != Kind::Lease
            && let Some(key) = self.about(request, *kind, name, store)
            && let Some(law) = self.locks.broken(request, &key, store, now)
        {
            self.breaks(now, law);
        }
        if matches!(kind, Kind::DaemonSet | Kind::ConfigMap) {
            // Pods that are available up to this moment may be of no use under the next template.
            self.look_at_pods(&self.live(store), store, now);
        }
        if *kind == Kind::Pod && request.verb == "create" {
            self.creating.insert(request.number, self.live(store));
        }
        if *kind != Kind::Pod || request.verb != "delete" {
            return;
        }
        self.pulls.look(store, now);
        if store.at(Kind::Pod, &key(name)).is_some_and(|it| is_puller(it)) {
            return;
        }
        if let Some(law) = self.observations.broken(&request.user, now) {
            self.breaks(now, format_args!("{name} was deleted, and {law}"));
        }
        self.tried.entry(request.user.clone()).or_default().insert(name.clone());
        if self.interrupted.get(&request.user).is_some_and(|tried| !tried.contains(name)) {
            self.breaks(now, format_args!("{name} was deleted after an interrupt"));
        }
        self.deletes(request, name, refused, store, now);
    }

    /// Another client sends a request. A pod that is available from this moment on, and deleted in it,
    /// may have been seen so.
    pub(crate) fn before_others(&mut self, store: &Store, now: Timestamp) {
        self.look_at_pods(&self.live(store), store, now);
    }

    /// Records that a request has been answered.
    pub(crate) fn answered(&mut self, request: &Seen, code: u16) {
        if request.verb == "delete" && code < 300 {
            *self.answered.entry((request.user.clone(), uid_sent(request))).or_default() += 1;
        }
    }

    /// The DaemonSet that an object is, belongs to, or will belong to.
    fn about(&self, request: &Seen, kind: Kind, name: &str, store: &Store) -> Option<DaemonSetKey> {
        match kind {
            Kind::DaemonSet => return Some(DaemonSetKey::new(NAMESPACE, name)),
            Kind::ConfigMap => {
                return self.declared.keys().find(|it| *name == record_name(&it.name)).cloned();
            }
            _ => {}
        }
        let object = store.at(kind, &key(name));
        if let Some(name) = object.and_then(|it| pulls_for(it)) {
            return Some(DaemonSetKey::new(NAMESPACE, name));
        }
        let owners: Vec<Uid> = match object {
            Some(object) => object.meta().owners.iter().map(|it| it.uid.clone()).collect(),
            None => owner_sent(request).into_iter().collect(),
        };
        self.live(store).into_iter().find(|live| owners.contains(&live.uid)).map(|live| live.key)
    }

    /// Number of nodes that may be disturbed at the same time, if the DaemonSets share a budget.
    pub(crate) fn shared_limit(&self, rules: &Rules) -> Option<u64> {
        self.shared.limit(rules)
    }

    fn look_at_pods(&mut self, live: &[DaemonSet], store: &Store, now: Timestamp) {
        self.nodes.look(live, store, now);
        self.shared.look(live, &self.policy, (store, &self.nodes), now);
        for live in live {
            self.flights.look(live, &self.policy, store, now);
        }
    }

    /// Processes a request that was applied, and all changes since the previous one.
    pub(crate) fn after(&mut self, request: &Seen, code: u16, store: &Store, now: Timestamp) {
        let Seen { number, verb, route, dry_run, user, body: _ } = request;
        let _ = writeln!(self.history, "{now} {user} {number} {verb} {route:?} {dry_run} {code}");
        let events = self.news(store, now);
        let objects = match route {
            Route::Objects(it) => Some(it),
            Route::AccessReview | Route::Version => None,
        };
        self.nodes.lands(*number);
        let live = self.live(store);
        for (live, event) in live.iter().flat_map(|live| events.iter().map(move |it| (live, it))) {
            let was = event.previous.as_ref().and_then(|it| it.pod());
            if let Some(change) = was.zip(event.object.pod()) {
                self.flights.look_back(live, &self.policy, change, store);
                if let Some(steps) = self.steps.get_mut(&live.key) {
                    steps.look_back(live, change, store);
                }
            }
        }
        self.look_at_pods(&live, store, now);
        for live in &live {
            self.one_revision(live, store, now);
        }
        let changes = !matches!(*verb, "get" | "list" | "watch") && !dry_run && code < 300;
        // The request's own change is the last one: no other client uses the store at the same
        // time.
        let own = objects.filter(|_| changes).and_then(|objects| {
            let last = events.last()?;
            let key = ObjectKey::new(&objects.namespace, &objects.name);
            let is_new = *verb == "create" && last.change == Change::Added;
            let is_it = last.object.kind() == objects.kind && (is_new || *last.object.key() == key);
            (is_it && objects.subresource.is_empty()).then_some(last)
        });
        let is_ours = user != EXTERNAL_USER;
        if changes && !is_ours {
            self.others_wrote(request, objects, store, now);
        }
        if changes
            && is_ours
            && let Some(law) = objects.and_then(|it| self.locks.written(request, it, store, now))
        {
            self.breaks(now, law);
        }
        self.failures(&live, store, now);
        if let Some(event) = own.filter(|_| is_ours) {
            match event.object.kind() {
                Kind::Pod if event.change == Change::Added => {
                    self.created(request, event, store, now);
                }
                Kind::Pod => self.deleted(request, event, store, now),
                Kind::DaemonSet | Kind::ConfigMap => self.written(request, event, store, now),
                _ => {}
            }
        }
        for event in &events {
            let ours = is_ours && own.is_some_and(|own| own.version() == event.version());
            self.nodes.node(event, now);
            self.changes.hear(event, ours, self.nodes.sight(), now);
        }
    }

    /// Another client has changed an object.
    fn others_wrote(
        &mut self,
        request: &Seen,
        objects: Option<&Objects>,
        store: &Store,
        now: Timestamp,
    ) {
        let Some(objects) = objects else { return };
        match objects.kind {
            Kind::Lease => self.locks.taken_away(objects, now),
            Kind::ConfigMap => {
                if let Some(key) = self.about(request, Kind::ConfigMap, &objects.name, store) {
                    self.shared.record_changed(key);
                }
            }
            _ => {}
        }
    }

    /// Failed templates that were recorded since the last call end their rollout.
    fn failures(&mut self, live: &[DaemonSet], store: &Store, now: Timestamp) {
        for live in live {
            let Some(steps) = self.steps.get_mut(&live.key) else { continue };
            let failed = remembered(&live.key, store).len();
            let before = self.failed.insert(live.key.clone(), failed).unwrap_or_default();
            if failed > before {
                steps.failed(now);
            }
        }
    }

    /// The changes since the last call, in order.
    fn news(&mut self, store: &Store, now: Timestamp) -> Vec<Event> {
        let of = |kind| {
            let events = store.events_after(kind, self.seen).expect("recent events are kept");
            events.cloned()
        };
        let mut events: Vec<Event> = KINDS.into_iter().flat_map(of).collect();
        events.sort_by_key(Event::version);
        self.seen = store.version();
        for event in &events {
            self.pulls.hear(&event.object, now);
            let (kind, key) = (event.object.kind(), event.object.key());
            let _ = writeln!(self.history, "  {:?} {kind} {key}", event.change);
        }
        events
    }

    fn breaks(&mut self, now: Timestamp, law: impl std::fmt::Display) {
        self.broken.push(format!("{now}: {law}"));
    }

    /// Only the holder of the lock writes.
    fn under_lock(&mut self, request: &Seen, key: &DaemonSetKey, store: &Store, now: Timestamp) {
        if let Some(law) = self.locks.broken_on_arrival(request, key, store, now) {
            self.breaks(now, law);
        }
    }

    /// A run of a commit begins.
    pub(crate) fn run_begins(&mut self, image: u32, rules: &Rules, now: Timestamp) {
        self.policy = rules.json(0);
        self.pulls.run_begins();
        self.steps.values_mut().for_each(|steps| steps.run_begins(image, rules.clone(), now));
    }

    /// The image of the last commit of a story.
    pub(crate) fn target(&self) -> Option<u32> {
        self.steps.values().next().map(StepLaws::target)
    }

    /// The note about the steps of a DaemonSet is lost.
    pub(crate) fn forget_steps(&mut self, name: &str, now: Timestamp) {
        self.steps_of(name).into_iter().for_each(|steps| steps.forget(now));
    }

    /// Changes the approvals of a DaemonSet of which the laws know.
    pub(crate) fn approvals(&mut self, name: &str, change: impl Fn(&mut Approvals)) {
        self.steps_of(name).into_iter().for_each(|steps| change(&mut steps.approvals));
    }

    fn steps_of(&mut self, name: &str) -> Option<&mut StepLaws> {
        self.steps.get_mut(&DaemonSetKey::new(NAMESPACE, name))
    }

    /// Updates the laws of steps by what the program can see when it sends a request.
    fn look_at_steps(&mut self, store: &Store, now: Timestamp) {
        for live in daemon_sets(store) {
            if let Some(steps) = self.steps.get_mut(&live.key) {
                let news =
                    store.events_after(Kind::Pod, self.seen).expect("recent events are kept");
                for event in news {
                    let was = event.previous.as_ref().and_then(|it| it.pod());
                    if let Some(change) = was.zip(event.object.pod()) {
                        steps.look_back(live, change, store);
                    }
                }
                steps.look(live, store, (&self.nodes, &self.pulls), now);
            }
        }
    }

    /// The run asks a check.
    pub(crate) fn asked(&mut self, question: &CheckQuestion, store: &Store, now: Timestamp) {
        let CheckQuestion { name, daemon_set, from, until, .. } = question;
        let _ = writeln!(self.history, "{now} asks {name} for {daemon_set}, {from} to {until}");
        self.look_at_steps(store, now);
        let live = self.live(store).into_iter().find(|live| live.key == *daemon_set);
        let (Some(live), Some(steps)) = (live, self.steps.get(daemon_set)) else { return };
        if let Some(law) = steps.asked(question, &live, (store, &self.nodes), now) {
            self.breaks(now, law);
        }
    }

    /// The run has got the answer to a question that it asked at this time.
    pub(crate) fn check_answered(
        &mut self,
        question: &CheckQuestion,
        asked: Timestamp,
        now: Timestamp,
    ) {
        let _ = writeln!(self.history, "{now} {} is answered", question.name);
        if let Some(steps) = self.steps.get_mut(&question.daemon_set) {
            steps.answered(question, asked);
        }
    }

    /// A run of a story has ended with this exit code.
    pub(crate) fn run_ended(&mut self, exit: Exit, store: &Store, now: Timestamp) {
        let has_acted = matches!(exit, Exit::Done | Exit::Waiting | Exit::Paused);
        let left = pulls::left(store);
        if has_acted && self.nodes.sees_clearly() && left > 0 {
            self.breaks(now, format_args!("the run ended, and {left} pullers are left"));
        }
        for live in self.live(store) {
            let (steps, seen) = (self.steps.get_mut(&live.key), (store, &self.nodes));
            if let Some(law) = steps.and_then(|it| it.run_ended(exit, &live, seen, now)) {
                self.breaks(now, law);
            }
        }
    }

    /// The run of a user has ended.
    pub(crate) fn ended(&mut self, user: &str, now: Timestamp) {
        if let Some(law) = self.locks.ended(user, now) {
            self.breaks(now, law);
        }
    }

    /// Whether another client than the program ever wrote the DaemonSet.
    pub(crate) fn was_interfered_with(&self, key: &DaemonSetKey) -> bool {
        self.changes.was_interfered_with(key)
    }

    fn one_revision(&mut self, live: &DaemonSet, store: &Store, now: Timestamp) {
        let data = data_for(live.spec.template.raw());
        let matching = revisions(live, store).filter(|it| *it.data == data).count();
        if matching > 1 {
            self.breaks(now, format_args!("{} has {matching} matching revisions", live.key));
        }
    }

    fn live(&self, store: &Store) -> Vec<DaemonSet> {
        daemon_sets(store).filter(|live| self.declared.contains_key(&live.key)).cloned().collect()
    }
}

/// The uid precondition of a delete.
fn uid_sent(request: &Seen) -> String {
    let sent: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    sent["preconditions"]["uid"].as_str().unwrap_or_default().to_owned()
}

/// The owner of the object to create.
fn owner_sent(request: &Seen) -> Option<Uid> {
    let sent: Value = serde_json::from_slice(&request.body).ok()?;
    sent["metadata"]["ownerReferences"][0]["uid"].as_str().map(Into::into)
}

/// Whether the controller would replace pods by deleting them first.
pub(crate) fn is_rolled(strategy: &Value) -> bool {
    let surge = &strategy["rollingUpdate"]["maxSurge"];
    strategy["type"] == "RollingUpdate" && (surge.is_null() || surge == 0 || surge == "0%")
}
