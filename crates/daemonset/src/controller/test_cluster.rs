//! A small cluster for tests of whole syncs: effects happen at once, new pods are bound, pending
//! and not ready until a test changes them.

mod snapshot;

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::Owner;
use super::backoff::{Backoff, FailedPods};
use super::claims::{Claims, OwnerIndex};
use super::history::{self, Current};
use super::manage::View;
use super::node_pods::{EndedPods, Fleet, NodePods};
use super::placement::Judge;
use super::reasons::{Creation, DeleteReason, Deletion};
use super::revision_data::Matching;
use super::rolling_update::{RollingUpdate, rolling_update};
use super::sync::{Effects, Expectations, Input, Outcome, Rolling, Untouched, sync};
use super::updated::CurrentTemplate;
use crate::model::{
    ControllerRef, DaemonSet, DaemonSetKey, DaemonSetSpec, DaemonSetStatus, Labels, ManagedBy,
    Node, NodeName, NodeReadiness, Pod, PodName, PodPhase, PodReadiness, PodTarget,
    REVISION_HASH_LABEL, Revision, RevisionHash, RevisionName, RevisionNumber, Taint, TaintEffect,
};

pub use snapshot::object;

/// The label that the DaemonSet selects.
pub const OURS: [(&str, &str); 1] = [("name", "simple-daemon")];

/// A label that it does not select.
pub const OTHERS: [(&str, &str); 1] = [("name", "another-daemon")];

pub fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

pub fn labels<const N: usize>(pairs: [(&str, &str); N]) -> Labels {
    pairs.into_iter().collect()
}

/// A ready node with these labels and taints, each taint written `KEY[=VALUE]:EFFECT`.
pub fn node(name: &str, pairs: &[(&str, &str)], taints: &[&str]) -> Node {
    Node {
        name: name.into(),
        uid: format!("uid-{name}").into(),
        labels: pairs.iter().copied().collect(),
        taints: taints.iter().map(|text| taint(text)).collect(),
        unschedulable: false,
        readiness: NodeReadiness::Ready,
        conditions: Box::default(),
        allocatable: labels([("cpu", "64"), ("memory", "256Gi"), ("pods", "110")]),
        created: None,
    }
}

pub fn taint(text: &str) -> Taint {
    let (key, effect) = text.rsplit_once(':').unwrap();
    let (key, value) = key.split_once('=').unwrap_or((key, ""));
    let effect = match effect {
        "NoSchedule" => TaintEffect::NoSchedule,
        "PreferNoSchedule" => TaintEffect::PreferNoSchedule,
        "NoExecute" => TaintEffect::NoExecute,
        other => panic!("no effect: {other}"),
    };
    Taint { key: key.into(), value: value.into(), effect }
}

/// Nodes `node-0`, `node-1` and so on, in a snapshot's order.
fn nodes(count: usize) -> Vec<Node> {
    let mut nodes: Vec<_> = (0..count).map(|at| node(&format!("node-{at}"), &[], &[])).collect();
    nodes.sort_by(|a, b| a.name.cmp(&b.name));
    nodes
}

/// A running, not yet ready orphan, bound to `node`.
pub fn pod(name: &str, node: &str) -> Pod {
    Pod {
        namespace: "default".into(),
        name: name.into(),
        uid: format!("uid-{name}").into(),
        labels: labels(OURS),
        controller: None,
        target: PodTarget::Bound(node.into()),
        phase: PodPhase::Running,
        readiness: PodReadiness::NotReady { since: None },
        created: None,
        terminating: false,
        restarts: 0,
        containers_changed: None,
        container_failure: None,
        unready: None,
    }
}

/// The observed effects of one sync.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Seen {
    pub created: Vec<String>,
    pub deleted: Vec<String>,
    /// Number of events that upstream records while it decides.
    pub events: usize,
}

impl Seen {
    pub fn counts(&self) -> (usize, usize) {
        (self.created.len(), self.deleted.len())
    }
}

/// The whole cluster: one DaemonSet `default/foo`.
pub struct Cluster {
    pub daemon_set: DaemonSet,
    pub nodes: Vec<Node>,
    pub pods: Vec<Pod>,
    pub revisions: Vec<Revision>,
    pub backoff: Backoff,
    pub now: Timestamp,
    spec: Value,
    serial: u32,
}

impl Cluster {
    /// `count` nodes, `node-0` and so on, without pods. The DaemonSet is defaulted, as if served.
    pub fn of(count: usize) -> Self {
        let spec = json!({
            "selector": {"matchLabels": {"name": "simple-daemon"}},
            "template": {
                "metadata": {"labels": {"name": "simple-daemon"}},
                "spec": {
                    "containers": [{
                        "name": "c",
                        "image": "foo/bar",
                        "imagePullPolicy": "Always",
                        "resources": {},
                        "terminationMessagePath": "/dev/termination-log",
                        "terminationMessagePolicy": "File",
                    }],
                    "dnsPolicy": "ClusterFirst",
                    "restartPolicy": "Always",
                    "schedulerName": "default-scheduler",
                    "securityContext": {},
                    "terminationGracePeriodSeconds": 30,
                },
            },
            "updateStrategy": {
                "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0},
            },
            "revisionHistoryLimit": 10,
        });
        Self {
            daemon_set: DaemonSet {
                key: DaemonSetKey::new("default", "foo"),
                managed_by: ManagedBy::DaemonSetController,
                uid: "uid-foo".into(),
                generation: 1,
                labels: Labels::default(),
                annotations: Labels::default(),
                created: None,
                terminating: false,
                spec: read_spec(&spec),
                status: DaemonSetStatus::default(),
                raw: Arc::new(Value::Null),
            },
            nodes: nodes(count),
            pods: Vec::new(),
            revisions: Vec::new(),
            backoff: Backoff::default(),
            now: at(1000),
            spec,
            serial: 0,
        }
    }

    /// Changes the DaemonSet's spec.
    pub fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        change(&mut self.spec);
        self.daemon_set.spec = read_spec(&self.spec);
        self.daemon_set.generation += 1;
    }

    pub fn set_image(&mut self, image: &str) {
        self.edit(|spec| spec["template"]["spec"]["containers"][0]["image"] = json!(image));
    }

    pub fn set_limits(&mut self, max_unavailable: &Value, max_surge: &Value) {
        let limits = json!({"maxUnavailable": max_unavailable, "maxSurge": max_surge});
        let strategy = json!({"type": "RollingUpdate", "rollingUpdate": limits});
        self.edit(|spec| spec["updateStrategy"] = strategy);
    }

    pub fn set_on_delete(&mut self) {
        self.edit(|spec| spec["updateStrategy"] = json!({"type": "OnDelete"}));
    }

    /// The hash label of pods of the current template.
    pub fn hash(&self) -> RevisionHash {
        super::hash::hash(self.daemon_set.spec.template.raw(), None)
    }

    /// The reference that makes a pod the DaemonSet's.
    pub fn reference(&self) -> Arc<ControllerRef> {
        let DaemonSet { key, managed_by, uid, .. } = &self.daemon_set;
        Arc::new(ControllerRef {
            kind: managed_by.owner_kind().into(),
            name: (*managed_by.owner_name(&key.name)).into(),
            uid: uid.clone(),
        })
    }

    /// Replaces the DaemonSet by a record, so that no DaemonSet controller manages it.
    pub fn manage(&mut self) {
        self.daemon_set.managed_by = ManagedBy::DsApply;
        let reference = self.reference();
        let owners = self.pods.iter_mut().map(|it| &mut it.controller);
        let owners = owners.chain(self.revisions.iter_mut().map(|it| &mut it.controller));
        for owner in owners.flatten() {
            *owner = reference.clone();
        }
    }

    /// Adds `count` owned pods on one node, labelled with the current hash and `pairs`; returns the
    /// index of the first of them.
    pub fn add_pods(&mut self, node: &str, pairs: [(&str, &str); 1], count: usize) -> usize {
        let first = self.pods.len();
        for _ in 0..count {
            let name = self.next_name(node);
            let hash = self.hash();
            self.pods.push(Pod {
                labels: pairs.into_iter().chain([(REVISION_HASH_LABEL, hash.as_str())]).collect(),
                controller: Some(self.reference()),
                ..pod(&name, node)
            });
        }
        first
    }

    fn next_name(&mut self, node: &str) -> String {
        self.serial += 1;
        format!("foo-{node}-{:03}", self.serial)
    }

    /// Makes the first `count` pods ready that are not ready, not terminating and satisfy `which`.
    pub fn make_ready(&mut self, count: usize, which: impl Fn(&Pod) -> bool) {
        let since = Some(self.now.into());
        let waiting = self.pods.iter_mut().filter(|pod| !pod.terminating && !pod.is_ready());
        for pod in waiting.filter(|pod| which(pod)).take(count) {
            pod.readiness = PodReadiness::Ready { since };
        }
    }

    pub fn make_all_ready(&mut self) {
        self.make_ready(usize::MAX, |_| true);
    }

    /// One sync as in upstream's tests: the effects of `manage` are observed at once, so the same
    /// sync continues with the rolling update.
    pub fn sync(&mut self) -> Seen {
        let (mut seen, rolled) = self.sync_once();
        if !rolled {
            let changes = self.with_view(|view| {
                rolling_update(view).unwrap().as_ref().map(PodChanges::from_rolling)
            });
            if let Some(changes) = changes {
                self.perform(changes, &mut seen);
            }
        }
        seen
    }

    /// One sync as on a real cluster: the rolling update has to wait if `manage` makes changes.
    /// Also returns whether the rolling update was reached.
    pub fn sync_once(&mut self) -> (Seen, bool) {
        let decided = self.with_outcome(|outcome| match outcome {
            Outcome::Untouched(Untouched::SelectsAll) => Decided::Event,
            Outcome::Untouched(Untouched::Terminating) => Decided::Nothing,
            Outcome::NameTaken(history::Error::NameTaken { collision_count, .. }) => {
                Decided::Collision(collision_count)
            }
            Outcome::Synced(effects) => Decided::Effects(Box::new(Changes::of(&effects))),
        });
        let mut seen = Seen::default();
        match decided {
            Decided::Nothing => (seen, true),
            Decided::Event => {
                seen.events = 1;
                (seen, true)
            }
            Decided::Collision(count) => {
                self.daemon_set.status.collision_count = Some(count);
                (seen, true)
            }
            Decided::Effects(changes) => {
                let rolled = changes.rolled;
                self.apply(*changes, &mut seen);
                (seen, rolled)
            }
        }
    }

    /// The outcome of a sync now.
    pub fn with_outcome<R>(&self, read: impl FnOnce(Outcome<'_>) -> R) -> R {
        let fleet = Fleet::new(&self.nodes);
        let placements = Judge::judge_all(&self.daemon_set.spec.template.placement, &self.nodes);
        let pods = OwnerIndex::new(&self.pods);
        read(sync(&Input {
            owner: Owner::from(&self.daemon_set),
            fleet: &fleet,
            placements: &placements,
            pods: &pods,
            revisions: &self.revisions,
            matching: Matching::Exact,
            expectations: Expectations::Satisfied,
            failed_pods: FailedPods::Known(&self.backoff),
            now: self.now,
        }))
    }

    /// The effects of a sync; panics if there are none.
    pub fn with_effects<R>(&self, read: impl FnOnce(Effects<'_>) -> R) -> R {
        self.with_outcome(|outcome| match outcome {
            Outcome::Synced(effects) => read(*effects),
            other => panic!("no effects: {other:?}"),
        })
    }

    /// The view of decisions about pods, with the current template.
    pub fn with_view<R>(&self, read: impl FnOnce(&View<'_, '_>) -> R) -> R {
        let owner = Owner::from(&self.daemon_set);
        let fleet = Fleet::new(&self.nodes);
        let placements = Judge::judge_all(&self.daemon_set.spec.template.placement, &self.nodes);
        let claimed = Claims::of(&owner, &self.pods).claimed;
        let pods = NodePods::group(&fleet, &claimed, EndedPods::Dropped);
        let current = CurrentTemplate::new(self.hash(), owner.template_generation);
        read(&View {
            owner,
            fleet: &fleet,
            placements: &placements,
            pods: &pods,
            current: &current,
            now: self.now,
        })
    }

    fn apply(&mut self, changes: Changes, seen: &mut Seen) {
        let Changes {
            new, renumber, label, duplicates, relabel, adopt, release, changed_pods, ..
        } = changes;
        let owner = self.reference();
        for revision in &mut self.revisions {
            if let Some((_, to)) = renumber.iter().find(|(name, _)| *name == revision.name) {
                revision.number = *to;
            }
            if label.contains(&revision.name) {
                let own = revision.name.to_string();
                revision.labels = with_label(&revision.labels, REVISION_HASH_LABEL, &own);
            }
        }
        self.revisions.retain(|revision| !duplicates.contains(&revision.name));
        self.revisions.retain(|revision| !changes.prune.contains(&revision.name));
        if let Some(new) = new {
            self.revisions.push(Revision { controller: Some(owner.clone()), ..new });
            self.revisions.sort_by(|a, b| a.name.cmp(&b.name));
        }
        for pod in &mut self.pods {
            if adopt.contains(&pod.name) {
                pod.controller = Some(owner.clone());
            }
            if release.contains(&pod.name) {
                pod.controller = None;
            }
            if let Some((_, hash)) = relabel.iter().find(|(name, _)| *name == pod.name) {
                pod.labels = with_label(&pod.labels, REVISION_HASH_LABEL, hash.as_str());
            }
        }
        if let Some(status) = changes.status {
            self.daemon_set.status = status;
        }
        self.perform(changed_pods, seen);
    }

    fn perform(&mut self, changes: PodChanges, seen: &mut Seen) {
        for (name, node, reason) in changes.delete {
            if let DeleteReason::Failed = reason {
                self.backoff.record(&Owner::from(&self.daemon_set), &node, self.now);
            }
            seen.events +=
                usize::from(matches!(reason, DeleteReason::Failed | DeleteReason::Succeeded));
            self.pods.retain(|pod| pod.name != name);
            seen.deleted.push(name.to_string());
        }
        for node in changes.create {
            let at = self.add_pods(node.as_str(), OURS, 1);
            self.pods[at].created = Some(self.now.into());
            self.pods[at].phase = PodPhase::Pending;
            seen.created.push(node.to_string());
        }
    }
}

fn with_label(labels: &Labels, key: &str, value: &str) -> Labels {
    labels.iter().chain([(key, value)]).collect()
}

enum Decided {
    Nothing,
    Event,
    Collision(u32),
    Effects(Box<Changes>),
}

/// Effects, without references to the cluster.
struct Changes {
    new: Option<Revision>,
    renumber: Vec<(RevisionName, RevisionNumber)>,
    label: Vec<RevisionName>,
    duplicates: Vec<RevisionName>,
    prune: Vec<RevisionName>,
    relabel: Vec<(PodName, RevisionHash)>,
    adopt: Vec<PodName>,
    release: Vec<PodName>,
    changed_pods: PodChanges,
    rolled: bool,
    status: Option<DaemonSetStatus>,
}

#[derive(Default)]
struct PodChanges {
    create: Vec<NodeName>,
    delete: Vec<(PodName, NodeName, DeleteReason)>,
}

impl PodChanges {
    fn from_rolling(update: &RollingUpdate<'_>) -> Self {
        let mut this = Self::default();
        this.add(&update.create, &update.delete);
        this
    }

    fn add(&mut self, create: &[Creation<'_>], delete: &[Deletion<'_>]) {
        self.create.extend(create.iter().map(|creation| creation.node.clone()));
        self.delete.extend(delete.iter().map(|deletion| {
            (deletion.pod.name.clone(), deletion.node.clone(), deletion.reason.clone())
        }));
    }
}

impl Changes {
    fn of(effects: &Effects<'_>) -> Self {
        let history = &effects.history;
        let changes = effects.changes.as_ref().unwrap();
        let names = |revisions: &[&Revision]| revisions.iter().map(|r| r.name.clone()).collect();
        let mut changed_pods = PodChanges::default();
        changed_pods.add(&changes.manage.create, &changes.manage.delete);
        if let Rolling::Update(rolling) = &changes.rolling {
            changed_pods.add(&rolling.create, &rolling.delete);
        }
        let pods = |pods: &[&Pod]| pods.iter().map(|pod| pod.name.clone()).collect();
        let hash = history.current.hash();
        Self {
            new: match &history.current {
                Current::New(new) => Some(Revision {
                    namespace: "default".into(),
                    name: new.name.clone(),
                    uid: format!("uid-{}", new.name).into(),
                    labels: new.labels.clone(),
                    annotations: new.annotations.clone(),
                    controller: None,
                    number: new.number,
                    data: Arc::new(new.data.clone()),
                    created: None,
                    terminating: false,
                }),
                Current::Reused { .. } | Current::Found { .. } | Current::Unchanged { .. } => None,
            },
            renumber: match &history.current {
                Current::Reused { revision, to } => vec![(revision.name.clone(), *to)],
                Current::New(_) | Current::Found { .. } | Current::Unchanged { .. } => Vec::new(),
            },
            label: names(&history.label),
            duplicates: names(&history.duplicates),
            prune: names(&changes.prune),
            relabel: history.relabel.iter().map(|p| (p.name.clone(), hash.clone())).collect(),
            adopt: pods(&effects.pods.adopted),
            release: pods(&effects.pods.released),
            changed_pods,
            rolled: !matches!(changes.rolling, Rolling::AfterManage),
            status: effects.status,
        }
    }
}

fn read_spec(spec: &Value) -> DaemonSetSpec {
    serde_json::from_value(spec.clone()).unwrap()
}
