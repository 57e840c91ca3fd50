//! The DaemonSet controller: its queue, and the steps of one sync (upstream:
//! `DaemonSetsController`).
//!
//! The decision of a sync is in `controller::sync`, on the cache; here are the queue, the
//! expectations, the read-own-writes check, retries, and the rate of requests. One worker for each
//! DaemonSet, so two DaemonSets do not wait for each other.

mod perform;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use self::perform::{perform, report_failed_create};
use super::complaints;
use super::expectations::Expectations;
use super::limiter::Limiter;
use super::moment::{Moment, Work};
use crate::{Change, Event, Kind, Reason, Status};
use daemonset::controller::backoff::{Backoff, FailedPods};
use daemonset::controller::claims::OwnerIndex;
use daemonset::controller::node_placements::PlacementCache;
use daemonset::controller::revision_data::Matching;
use daemonset::controller::sync::{Input, Outcome, Untouched, sync};
use daemonset::controller::sync_requests::{PodWrite, Request, SyncRequests};
use daemonset::controller::{Owner, placement};
use daemonset::model::{
    ControllerRef, DaemonSet, DaemonSetKey, Labels, ManagedBy, NamespaceName, Node, Pod,
};

/// The first delay after a sync that failed (upstream: `DefaultControllerRateLimiter`).
const FIRST_RETRY: Duration = Duration::from_millis(5);

/// The maximum delay.
const LONGEST_RETRY: Duration = Duration::from_secs(1000);

/// Owner kind of its pods and revisions.
const KIND: &str = ManagedBy::DaemonSetController.owner_kind();

/// The DaemonSet controller of the cluster.
#[derive(Debug)]
pub(super) struct DaemonSets {
    expectations: Expectations,
    backoff: Backoff,
    limiter: Limiter,
    running: BTreeMap<DaemonSetKey, SyncRequests>,
    /// DaemonSets that were queued again while they are being synced.
    dirty: BTreeSet<DaemonSetKey>,
    failures: BTreeMap<DaemonSetKey, u32>,
    /// The last written version, which must be received before the next sync.
    written: BTreeMap<DaemonSetKey, u64>,
    /// The nodes on which pods of each DaemonSet may run.
    surveys: BTreeMap<DaemonSetKey, PlacementCache>,
}

impl DaemonSets {
    pub(super) fn new(limiter: Limiter) -> Self {
        Self {
            expectations: Expectations::default(),
            backoff: Backoff::default(),
            limiter,
            running: BTreeMap::new(),
            dirty: BTreeSet::new(),
            failures: BTreeMap::new(),
            written: BTreeMap::new(),
            surveys: BTreeMap::new(),
        }
    }

    /// Queues every DaemonSet, as a controller manager does when it starts.
    pub(super) fn wake_all(moment: &mut Moment<'_>) {
        let keys: Vec<DaemonSetKey> = moment.cache.daemon_sets.keys().cloned().collect();
        for key in keys {
            wake(moment, key);
        }
    }

    /// Handles an event that is in the cache already.
    pub(super) fn hear(&mut self, event: &Event, moment: &mut Moment<'_>) {
        let (object, before) = (&event.object, event.previous.as_deref());
        match object.kind() {
            Kind::Pod => {
                if let Some(pod) = object.pod() {
                    self.hear_pod(event.change, pod, before.and_then(|it| it.pod()), moment);
                }
            }
            Kind::Node => {
                if let Some(node) = object.node() {
                    hear_node(event.change, node, before.and_then(|it| it.node()), moment);
                }
            }
            Kind::DaemonSet => {
                if let Some(daemon_set) = object.daemon_set() {
                    self.hear_daemon_set(
                        event.change,
                        daemon_set,
                        before.and_then(|it| it.daemon_set()),
                        moment,
                    );
                }
            }
            Kind::ControllerRevision => hear_revision(event, moment),
            Kind::Namespace | Kind::Service | Kind::ConfigMap | Kind::Event | Kind::Lease => {}
        }
    }

    /// Handles an event of a DaemonSet (upstream: `addDaemonset`, `updateDaemonset`,
    /// `deleteDaemonset`).
    fn hear_daemon_set(
        &mut self,
        change: Change,
        daemon_set: &DaemonSet,
        before: Option<&DaemonSet>,
        moment: &mut Moment<'_>,
    ) {
        let is_other = before.is_some_and(|before| before.uid != daemon_set.uid);
        if change == Change::Deleted || is_other {
            self.forget(&daemon_set.key);
        }
        wake(moment, daemon_set.key.clone());
    }

    /// Handles an event of a pod (upstream: `addPod`, `updatePod`, `deletePod`). A pod that begins
    /// to be deleted counts as deleted, and once more with each further change.
    fn hear_pod(
        &mut self,
        change: Change,
        pod: &Pod,
        before: Option<&Pod>,
        moment: &mut Moment<'_>,
    ) {
        let is_gone = change == Change::Deleted || pod.terminating;
        let owner = owner(moment, &pod.namespace, pod.controller.as_deref());
        if let Some(before) = before.filter(|before| before.controller != pod.controller)
            && let Some(key) = self::owner(moment, &before.namespace, before.controller.as_deref())
        {
            wake(moment, key);
        }
        match (owner, is_gone) {
            (Some(key), true) => {
                self.expectations.deleted(&key);
                wake(moment, key);
            }
            (Some(key), false) => {
                if change == Change::Added {
                    self.expectations.created(&key, 1);
                }
                wake_when_available(moment, &key, pod, before);
                wake(moment, key);
            }
            (None, false) if pod.controller.is_none() => {
                let same = before.is_some_and(|before| {
                    before.labels == pod.labels && before.controller == pod.controller
                });
                if !same {
                    wake_selecting(moment, &pod.namespace, &pod.labels);
                }
            }
            (None, true | false) => {}
        }
    }

    fn forget(&mut self, key: &DaemonSetKey) {
        self.expectations.forget(key);
        self.written.remove(key);
        self.surveys.remove(key);
    }

    /// Runs one sync, up to its first wait (upstream: `syncDaemonSet`).
    pub(super) fn sync(&mut self, key: &DaemonSetKey, moment: &mut Moment<'_>) {
        if self.running.contains_key(key) {
            self.dirty.insert(key.clone());
            return;
        }
        let Some(daemon_set) = moment.cache.daemon_sets.get(key) else {
            self.forget(key);
            self.failures.remove(key);
            return;
        };
        if self.written.get(key).is_some_and(|version| moment.cache.version < *version) {
            return self.retry(key, moment);
        }
        self.written.remove(key);
        match self.decide(daemon_set, moment) {
            Decision::Nothing => {
                self.failures.remove(key);
            }
            Decision::SelectsAll => {
                let message =
                    "This daemon set is selecting all pods. A non-empty selector is required.";
                let uid = &daemon_set.uid;
                complaints::warn(moment.store, key, uid, "SelectingAll", message, moment.now);
            }
            Decision::Run(program) => {
                self.running.insert(key.clone(), *program);
                self.go(key, moment);
            }
        }
    }

    fn decide(&mut self, daemon_set: &DaemonSet, moment: &mut Moment<'_>) -> Decision {
        let (cache, now) = (moment.cache, moment.now);
        let namespace = &daemon_set.key.namespace;
        let owner = Owner::from(daemon_set);
        let placement_cache = self.surveys.entry(daemon_set.key.clone()).or_default();
        let node_placements =
            placement_cache.node_placements(daemon_set, &cache.nodes, cache.nodes_version);
        let pods = OwnerIndex::new(cache.pods_in(namespace));
        let outcome = sync(&Input {
            owner,
            fleet: &node_placements.fleet(&cache.nodes),
            placements: node_placements.placements(),
            pods: &pods,
            revisions: cache.revisions_in(namespace),
            matching: Matching::Exact,
            expectations: self.expectations.of(&daemon_set.key, now),
            failed_pods: FailedPods::Known(&self.backoff),
            now,
        });
        match outcome {
            Outcome::Untouched(Untouched::SelectsAll) => Decision::SelectsAll,
            Outcome::Untouched(Untouched::Terminating) => Decision::Nothing,
            Outcome::NameTaken(error) => {
                Decision::Run(Box::new(SyncRequests::of_collision(&owner, &daemon_set.uid, &error)))
            }
            Outcome::Synced(effects) => {
                let program = SyncRequests::of(&owner, &daemon_set.uid, &effects);
                // The back-off of a failed pod begins with the decision, and so does the event.
                let requests = program.batches.iter().flat_map(|batch| &batch.requests);
                for request in requests {
                    if let Request::DeletePod { node, failed: true, name, uid: _ } = request {
                        self.backoff.record(&owner, node, now);
                        let message = format!(
                            "Found failed daemon pod {namespace}/{name} on node {node}, will try to \
                             kill it"
                        );
                        let (key, uid) = (&daemon_set.key, &daemon_set.uid);
                        complaints::warn(moment.store, key, uid, "FailedDaemonPod", &message, now);
                    }
                }
                Decision::Run(Box::new(program))
            }
        }
    }

    /// Sends the requests that may be sent now, and queues the rest.
    pub(super) fn go(&mut self, key: &DaemonSetKey, moment: &mut Moment<'_>) {
        let Some(mut program) = self.running.remove(key) else { return };
        while let Some(mut batch) = program.batches.pop_front() {
            let stage = batch.stage;
            let mut sent = false;
            while let Some(request) = batch.requests.pop_front() {
                if !matches!(request, Request::Expect { .. }) {
                    if let Err(later) = self.limiter.take(moment.now) {
                        batch.requests.push_front(request);
                        program.batches.push_front(batch);
                        return self.come_back(program, later, moment);
                    }
                    sent = true;
                }
                let failed = self.send(&program, &request, moment);
                if failed {
                    // The rest of this batch is in flight already.
                    let skipped = program.fail(stage);
                    self.expectations.created(key, skipped);
                }
            }
            if sent && !program.batches.is_empty() {
                let later = moment.now + moment.timings.request;
                return self.come_back(program, later, moment);
            }
        }
        if program.ending {
            return self.finish(&program, moment);
        }
        // A sync takes time, and all events during it queue the DaemonSet once.
        program.ending = true;
        let decided = moment.timings.sync(moment.cache.nodes.len());
        let later = moment.now + moment.timings.request + decided;
        self.come_back(program, later, moment);
    }

    fn come_back(&mut self, program: SyncRequests, later: Timestamp, moment: &mut Moment<'_>) {
        let key = program.key.clone();
        self.running.insert(key.clone(), program);
        moment.agenda.put(later, Work::GoOn(key));
    }

    /// Sends one request; returns `true` if it failed.
    fn send(&mut self, program: &SyncRequests, request: &Request, moment: &mut Moment<'_>) -> bool {
        let SyncRequests { key, .. } = program;
        if let Request::Expect { creates, deletes } = request {
            self.expectations.set(key, *creates, *deletes, moment.now);
            return false;
        }
        let error = match perform(moment.store, program, request, moment.now) {
            Ok(done) => {
                let written = done.version.max(self.written.get(key).copied());
                self.written.extend(written.map(|version| (key.clone(), version)));
                return false;
            }
            Err(error) => error,
        };
        match request.pod_write() {
            // Nothing can be created in a terminating namespace, and no event is written.
            Some(PodWrite::Create) if is_of_ending_namespace(&error) => return false,
            Some(PodWrite::Create) => self.expectations.created(key, 1),
            Some(PodWrite::Delete) => self.expectations.deleted(key),
            None => {}
        }
        let is_gone = error.reason == Reason::NotFound;
        if matches!(request, Request::DeletePod { .. } | Request::DeleteRevision { .. }) && is_gone
        {
            return false;
        }
        tracing::debug!(%key, ?request, %error, "a request of the controller failed");
        report_failed_create(moment.store, program, request, &error, moment.now);
        true
    }

    fn finish(&mut self, program: &SyncRequests, moment: &mut Moment<'_>) {
        let key = &program.key;
        for wait in &program.again {
            moment.agenda.add(moment.now + *wait, Work::SyncLater(key.clone()));
        }
        if program.failed {
            self.retry(key, moment);
        } else {
            self.failures.remove(key);
        }
        if self.dirty.remove(key) {
            wake(moment, key.clone());
        }
    }

    /// Queues the DaemonSet again after a delay (upstream: `AddRateLimited`).
    fn retry(&mut self, key: &DaemonSetKey, moment: &mut Moment<'_>) {
        let failures = self.failures.entry(key.clone()).or_default();
        let wait = FIRST_RETRY.saturating_mul(2_u32.saturating_pow(*failures)).min(LONGEST_RETRY);
        *failures += 1;
        moment.agenda.add(moment.now + wait, Work::SyncLater(key.clone()));
    }
}

/// The decision of a sync.
enum Decision {
    Nothing,
    SelectsAll,
    Run(Box<SyncRequests>),
}

fn wake(moment: &mut Moment<'_>, key: DaemonSetKey) {
    moment.agenda.add(moment.now, Work::Sync(key));
}

/// The DaemonSet of a controller reference: found by name, with a matching uid (upstream:
/// `resolveControllerRef`).
fn owner(
    moment: &Moment<'_>,
    namespace: &NamespaceName,
    reference: Option<&ControllerRef>,
) -> Option<DaemonSetKey> {
    let reference = reference.filter(|reference| *reference.kind == *KIND)?;
    let key = DaemonSetKey::new(namespace.clone(), &*reference.name);
    let found = moment.cache.daemon_sets.get(&key)?;
    (found.uid == reference.uid).then_some(key)
}

/// Queues every DaemonSet that may adopt an orphan.
fn wake_selecting(moment: &mut Moment<'_>, namespace: &NamespaceName, labels: &Labels) {
    let all = moment.cache.daemon_sets.values();
    let selecting = all.filter(|it| {
        let selector = &it.spec.selector;
        it.key.namespace == *namespace && !selector.is_empty() && selector.matches(labels)
    });
    let keys: Vec<DaemonSetKey> = selecting.map(|it| it.key.clone()).collect();
    for key in keys {
        wake(moment, key);
    }
}

/// Queues a sync for the time at which a pod that has just become Ready is available, because there
/// will be no event.
fn wake_when_available(
    moment: &mut Moment<'_>,
    key: &DaemonSetKey,
    pod: &Pod,
    before: Option<&Pod>,
) {
    let Some(before) = before.filter(|before| !before.is_ready() && pod.is_ready()) else { return };
    debug_assert_eq!(before.uid, pod.uid);
    let min_ready = moment.cache.daemon_sets.get(key).map(|it| it.spec.min_ready_seconds);
    if let Some(seconds) = min_ready.filter(|seconds| *seconds > 0) {
        let later = moment.now + Duration::from_secs(u64::from(seconds) + 1);
        moment.agenda.add(later, Work::SyncLater(key.clone()));
    }
}

/// Handles an event of a node: new nodes and changes of labels and taints matter, deletion does not
/// (upstream: `addNode`, `updateNode`, `syncNodeUpdate`).
fn hear_node(change: Change, node: &Node, before: Option<&Node>, moment: &mut Moment<'_>) {
    let same = |before: &Node| before.labels == node.labels && before.taints == node.taints;
    if change == Change::Deleted || before.is_some_and(same) {
        return;
    }
    let cache = moment.cache;
    let concerned = cache.daemon_sets.values().filter(|daemon_set| {
        let placement = placement::judge(&daemon_set.spec.template.placement, node);
        let mut pods = cache.pods_in(&daemon_set.key.namespace);
        let has_pod = pods.any(|pod| {
            // By name only, as in upstream's index.
            let is_own = pod.controller.as_ref().is_some_and(|reference| {
                *reference.kind == *KIND && *reference.name == *daemon_set.key.name.as_str()
            });
            is_own && pod.is_bound() && pod.node() == Some(&node.name)
        });
        if has_pod {
            !placement.may_stay || daemon_set.status.number_misscheduled > 0
        } else {
            placement.may_start
        }
    });
    let keys: Vec<DaemonSetKey> = concerned.map(|it| it.key.clone()).collect();
    for key in keys {
        wake(moment, key);
    }
}

/// Handles an event of a revision. A new revision with an owner is ignored; its change or deletion
/// is not, and neither is an orphan (upstream: `addHistory`, `updateHistory`, `deleteHistory`).
fn hear_revision(event: &Event, moment: &mut Moment<'_>) {
    let Some(revision) = event.object.revision() else { return };
    match &revision.controller {
        Some(_) if event.change == Change::Added => {}
        Some(reference) => {
            if let Some(key) = owner(moment, &revision.namespace, Some(reference)) {
                wake(moment, key);
            }
        }
        None if event.change == Change::Deleted => {}
        None => wake_selecting(moment, &revision.namespace, &revision.labels),
    }
}

/// `true` if a pod could not be created because its namespace is terminating.
fn is_of_ending_namespace(error: &Status) -> bool {
    error.reason == Reason::Forbidden && error.message.contains("because it is being terminated")
}
