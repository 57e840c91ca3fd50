//! A small simulated cluster with an API server; its kubelets, and what its checks measure, are in
//! files of their own.

mod kubelet;
mod measures;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use kubelet::set_ready;
pub(super) use kubelet::{Fate, pod_failure};
pub(super) use measures::Measured;

use crate::digest::template_digest;
use crate::plan::PausedRollout;
use crate::rollout::{
    Delete, Failure, NewPuller, ObservedCluster, Precondition, Provenance, Write, Written, write,
};
use crate::shared::Siblings;
use daemonset::controller::revision_data::template_of;
use daemonset::controller::test_cluster::{Cluster, node};
use daemonset::model::{
    Approval, DaemonSet, LabelSelector, Neighbour, NeighbourQuery, Neighbours, Node, NodeReadiness,
    PRE_PULL_IMAGES_LABEL, Pod, PodName, PullState, Puller, REVISION_HASH_LABEL, Revision,
    StepsNote, Uid,
};

/// An observation of the cluster at one moment.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub daemon_set: Option<DaemonSet>,
    pub nodes: Vec<Node>,
    pub pods: Vec<Pod>,
    pub revisions: Vec<Revision>,
    pub pullers: Vec<Puller>,
    pub neighbours: Vec<Neighbours>,
    siblings: Option<Siblings>,
    is_current: bool,
}

impl Seen {
    pub(super) fn observed(&self) -> ObservedCluster<'_> {
        ObservedCluster {
            daemon_set: self.daemon_set.as_ref(),
            nodes: &self.nodes,
            pods: &self.pods,
            revisions: &self.revisions,
            node_placements: None,
            siblings: self.siblings.as_ref(),
            pullers: &self.pullers,
            neighbours: &self.neighbours,
            is_current: self.is_current,
            failure: (!self.is_current).then_some(FAILURE),
        }
    }
}

/// Why a hidden cluster cannot be observed.
pub(super) const FAILURE: &str = "cannot watch pods";

/// The cluster.
pub(super) struct Sim {
    pub cluster: Cluster,
    /// The behavior of pods by image.
    fates: BTreeMap<String, Fate>,
    /// Nodes where pods become Ready only with this image.
    pub picky: BTreeMap<String, String>,
    /// The other DaemonSets of a shared budget.
    pub siblings: Option<Siblings>,
    /// Time that a pod takes to terminate, in seconds.
    pub stop: i64,
    leaving: BTreeMap<Uid, Timestamp>,
    /// Whether the DaemonSet was deleted.
    pub deleted: bool,
    /// Whether the controller is stopped.
    pub idle: bool,
    /// The last `FailedCreate` message of the controller.
    pub create_failed: Option<String>,
    /// The message that it will report.
    pub refusal: String,
    /// Whether the watches are not current.
    pub hidden: bool,
    version: u64,
    /// The recorded failed templates.
    pub remembered: BTreeSet<String>,
    /// What is noted about steps.
    pub note: Option<StepsNote>,
    /// The approvals of steps.
    pub approvals: BTreeMap<String, Approval>,
    /// Writes that were executed.
    pub writes: Vec<Write>,
    /// The annotation of `kubectl rollout restart`.
    restart: Option<Value>,
    /// The value of each check from a time on, the latest last; 1 before.
    pub values: Vec<(&'static str, Timestamp, Measured)>,
    /// The pods that pull images.
    pub pullers: Vec<Puller>,
    /// The highest number of them at a time, of those that are not terminating.
    pub most_pullers: usize,
    made_pullers: usize,
    /// Time that a pull takes on a node, in seconds; `None` never ends. Default: two.
    pub pulls: BTreeMap<String, Option<i64>>,
    /// Other pods, all of one query.
    pub neighbours: Vec<Neighbour>,
}

pub(super) const REFUSED: &str = "pods \"foo-\" is forbidden: violates PodSecurity";

impl Sim {
    /// `nodes` nodes, all with a Ready pod of image `v1`, under RollingUpdate with this budget.
    pub(super) fn of(nodes: usize, max_unavailable: &Value) -> Self {
        Self::with_strategy(nodes, &rolling(max_unavailable))
    }

    pub(super) fn with_strategy(nodes: usize, strategy: &Value) -> Self {
        let mut cluster = Cluster::of(nodes);
        cluster.set_image("v1");
        let mut sim = Self {
            cluster,
            fates: BTreeMap::new(),
            picky: BTreeMap::new(),
            siblings: None,
            stop: 1,
            leaving: BTreeMap::new(),
            deleted: false,
            idle: false,
            create_failed: None,
            refusal: REFUSED.to_owned(),
            hidden: false,
            version: 7,
            remembered: BTreeSet::new(),
            note: None,
            approvals: BTreeMap::new(),
            writes: Vec::new(),
            restart: None,
            values: Vec::new(),
            pullers: Vec::new(),
            most_pullers: 0,
            made_pullers: 0,
            pulls: BTreeMap::new(),
            neighbours: Vec::new(),
        };
        sim.edit(|spec| spec["updateStrategy"] = strategy.clone());
        sim.pass(60);
        assert!(sim.cluster.pods.iter().all(Pod::is_ready) && sim.cluster.pods.len() == nodes);
        sim
    }

    /// The image of the live template.
    pub(super) fn live_image(&self) -> String {
        let image = &self.cluster.daemon_set.spec.template.raw()["spec"]["containers"][0]["image"];
        image.as_str().unwrap().to_owned()
    }

    /// The nodes whose pod has this image.
    pub(super) fn nodes_with(&self, image: &str) -> Vec<String> {
        let running = self.running().into_iter();
        running.filter(|(_, it)| it == image).map(|(node, _)| node).collect()
    }

    /// The pod on a node.
    pub(super) fn pod_on(&mut self, node: &str) -> &mut Pod {
        let is_on = |pod: &&mut Pod| pod.node().is_some_and(|it| *it == *node);
        self.cluster.pods.iter_mut().find(is_on).unwrap()
    }

    /// Sets the behavior of pods of `image`; the default is Ready after three seconds.
    pub(super) fn fate(&mut self, image: &str, fate: Fate) {
        self.fates.insert(image.to_owned(), fate);
    }

    pub(super) fn now(&self) -> Timestamp {
        self.cluster.now
    }

    pub(super) fn seen(&self) -> Seen {
        Seen {
            daemon_set: (!self.deleted).then(|| self.cluster.daemon_set.clone()),
            nodes: self.cluster.nodes.clone(),
            pods: self.cluster.pods.clone(),
            revisions: self.cluster.revisions.clone(),
            pullers: self.pullers.clone(),
            neighbours: vec![Neighbours::of(
                NeighbourQuery { selector: LabelSelector::default(), resources: None },
                self.neighbours.clone(),
            )],
            siblings: self.siblings.clone(),
            is_current: !self.hidden,
        }
    }

    /// Advances the time, second by second.
    pub(super) fn pass(&mut self, seconds: i64) {
        for _ in 0..seconds {
            self.cluster.now += SignedDuration::from_secs(1);
            self.collect();
            self.pull();
            self.kubelet();
            self.controller();
        }
    }

    /// Removes pods whose termination is complete, and those of removed nodes. A kubelet that does
    /// not answer keeps its pods.
    fn collect(&mut self) {
        let now = self.now();
        let (nodes, stop, leaving) = (&self.cluster.nodes, self.stop, &mut self.leaving);
        let ready = |pod: &Pod| {
            let node = nodes.iter().find(|node| Some(&node.name) == pod.node());
            node.map(|node| node.readiness.is_ready())
        };
        self.cluster.pods.retain(|pod| match ready(pod) {
            None => false,
            Some(false) => true,
            Some(true) if !pod.terminating => true,
            Some(true) => {
                let since = *leaving.entry(pod.uid.clone()).or_insert(now);
                now.duration_since(since).as_secs() < stop
            }
        });
    }

    /// Creates a puller.
    pub(super) fn create_puller(&mut self, new: &NewPuller) -> Result<(PodName, Uid), Failure> {
        let name = new.pod["metadata"]["name"].as_str().unwrap();
        if self.pullers.iter().any(|it| it.name == *name) {
            return Err(Failure::Conflict);
        }
        self.made_pullers += 1;
        let puller = Puller {
            name: name.into(),
            uid: format!("puller-{}", self.made_pullers).into(),
            node: new.pod["spec"]["nodeName"].as_str().unwrap().into(),
            images: new.pod["metadata"]["labels"][PRE_PULL_IMAGES_LABEL].as_str().unwrap().into(),
            created: Some(self.now()),
            terminating: false,
            state: PullState::Pulling(None),
        };
        let made = (puller.name.clone(), puller.uid.clone());
        self.pullers.push(puller);
        let alive = self.pullers.iter().filter(|it| !it.terminating).count();
        self.most_pullers = self.most_pullers.max(alive);
        Ok(made)
    }

    /// Deletes a puller.
    pub(super) fn remove_puller(&mut self, uid: &Uid) -> Result<(), Failure> {
        match self.pullers.iter_mut().find(|it| it.uid == *uid) {
            Some(puller) => {
                puller.terminating = true;
                Ok(())
            }
            None => Err(Failure::Gone),
        }
    }

    fn images(&self) -> BTreeMap<String, String> {
        images(&self.cluster.revisions)
    }

    /// Syncs until nothing is left to do at once.
    pub(super) fn controller(&mut self) {
        self.create_failed = None;
        if self.idle || self.deleted {
            return;
        }
        for _ in 0..4 {
            let before = self.cluster.daemon_set.status;
            let (seen, _) = self.cluster.sync_once();
            self.refuse_pods();
            if before != self.cluster.daemon_set.status {
                self.touch();
            }
            if seen.counts() == (0, 0) {
                break;
            }
        }
    }

    fn refuse_pods(&mut self) {
        let image = self.live_image();
        if self.fates.get(&image) != Some(&Fate::NotCreated) {
            return;
        }
        let hash = self.cluster.hash();
        let before = self.cluster.pods.len();
        self.cluster.pods.retain(|pod| !pod.has_hash(&hash));
        if self.cluster.pods.len() < before {
            self.create_failed = Some(self.refusal.clone());
        }
    }

    pub(super) fn strategy(&self) -> Value {
        self.cluster.daemon_set.raw["spec"]["updateStrategy"].clone()
    }

    /// Whether the failure of this template is recorded, on the lock or by the pause: it is rejected.
    pub(super) fn has_failed(&self, digest: &str) -> bool {
        let pause = PausedRollout::of(&self.cluster.daemon_set).unwrap();
        let of_pause = pause.and_then(|pause| pause.failed);
        self.remembered.contains(digest) || of_pause.is_some_and(|failed| *failed == *digest)
    }

    /// Of the pods that are not terminating and have another image than this one: the image of the
    /// newest revision, of those that are not recorded as failed if there are any.
    pub(super) fn newest_of_others(&self, image: &str) -> Option<String> {
        let running: BTreeSet<String> = self.running_pods().map(|(_, image)| image).collect();
        let images = self.images();
        let image_of = |it: &Revision| images[&it.hash().unwrap().to_string()].clone();
        let has_failed =
            |it: &Revision| self.has_failed(&template_digest(&template_of(&it.data).unwrap()));
        let revisions = self.cluster.revisions.iter();
        let others = revisions.filter(|it| {
            let of_revision = image_of(it);
            of_revision != image && running.contains(&of_revision)
        });
        others.max_by_key(|it| (!has_failed(it), it.number)).map(image_of)
    }

    /// The image of each node's last pod that is not terminating.
    pub(super) fn running(&self) -> BTreeMap<String, String> {
        self.running_pods().collect()
    }

    fn running_pods(&self) -> impl Iterator<Item = (String, String)> {
        let images = self.images();
        let pods = self.cluster.pods.iter().filter(|pod| !pod.terminating);
        pods.map(move |pod| {
            let hash = pod.labels.get(REVISION_HASH_LABEL).unwrap();
            (pod.node().unwrap().to_string(), images[hash].clone())
        })
    }

    /// A new resourceVersion, and `raw` as it is now.
    pub(super) fn touch(&mut self) {
        self.version += 1;
        let version = self.version.to_string();
        let strategy = match self.cluster.daemon_set.raw.pointer("/spec/updateStrategy") {
            Some(known) => known.clone(),
            None => Value::Null,
        };
        self.cluster.daemon_set.raw = Arc::new(json!({
            "metadata": {"resourceVersion": version}, "spec": {"updateStrategy": strategy},
        }));
    }

    /// Changes the spec, as any client may.
    pub(super) fn edit(&mut self, change: impl FnOnce(&mut Value)) {
        let mut strategy = Value::Null;
        self.cluster.edit(|spec| {
            change(spec);
            strategy = spec["updateStrategy"].clone();
        });
        self.touch();
        Arc::make_mut(&mut self.cluster.daemon_set.raw)["spec"]["updateStrategy"] = strategy;
    }

    /// Until the next write.
    pub(super) fn set_managed_fields(&mut self, entries: Vec<Value>) {
        Arc::make_mut(&mut self.cluster.daemon_set.raw)["metadata"]["managedFields"] =
            entries.into();
    }

    /// `kubectl rollout restart`.
    pub(super) fn restart(&mut self) {
        let restart = json!({"kubectl.kubernetes.io/restartedAt": self.now().to_string()});
        self.edit(|spec| spec["template"]["metadata"]["annotations"] = restart.clone());
        self.restart = Some(restart);
    }

    /// Executes a server-side apply with its preconditions.
    pub(super) fn write(&mut self, write: &Write) -> Result<Written, Failure> {
        let object = write.object();
        match &write.precondition {
            Precondition::Absent if !self.deleted => return Err(Failure::Conflict),
            Precondition::Absent => {
                self.deleted = false;
                self.cluster.daemon_set.uid = "uid-anew".into();
            }
            Precondition::Unchanged { .. } if self.deleted => return Err(Failure::Gone),
            Precondition::Unchanged { uid, resource_version } => {
                if *uid != self.cluster.daemon_set.uid
                    || *resource_version != self.version.to_string()
                {
                    return Err(Failure::Conflict);
                }
            }
        }
        let mut template = object["spec"]["template"].clone();
        if let Some(restart) = &self.restart {
            // It belongs to kubectl.
            template["metadata"]["annotations"] = restart.clone();
        }
        let (template, strategy) = (&template, &object["spec"]["updateStrategy"]);
        let same =
            self.cluster.daemon_set.spec.template.raw() == template && self.strategy() == *strategy;
        if same {
            self.touch();
        } else {
            self.edit(|spec| {
                spec["template"] = template.clone();
                spec["updateStrategy"] = strategy.clone();
            });
        }
        let annotations = object["metadata"]["annotations"].as_object().unwrap().iter();
        let annotations = annotations.map(|(key, value)| (key.as_str(), value.as_str().unwrap()));
        self.cluster.daemon_set.annotations = annotations.collect();
        self.writes.push(write.clone());
        Ok(Written {
            uid: self.cluster.daemon_set.uid.clone(),
            resource_version: self.version.to_string(),
        })
    }

    /// Executes a delete.
    pub(super) fn delete(&mut self, delete: &Delete) -> Result<(), Failure> {
        let pod = self.cluster.pods.iter_mut().find(|pod| pod.name == delete.pod);
        match pod {
            None => Err(Failure::Gone),
            Some(pod) if pod.uid != delete.uid => Err(Failure::Conflict),
            Some(pod) => {
                pod.terminating = true;
                Ok(())
            }
        }
    }

    pub(super) fn annotate(&mut self, name: &str, change: &Provenance) -> Result<(), Failure> {
        let revision = self.cluster.revisions.iter_mut().find(|it| it.name == *name);
        let Some(revision) = revision else { return Err(Failure::Gone) };
        let added = write::provenance(&revision.annotations, change);
        let all = revision.annotations.iter().map(|(key, value)| (key, value.to_owned()));
        revision.annotations = all.chain(added).collect();
        Ok(())
    }

    pub(super) fn set_ready(&mut self, at: usize, ready: bool) {
        let now = self.now();
        let node = &mut self.cluster.nodes[at];
        node.readiness = if ready {
            NodeReadiness::Ready
        } else {
            NodeReadiness::NotReady { since: Some(now.into()) }
        };
        if !ready {
            let name = node.name.clone();
            for pod in self.cluster.pods.iter_mut().filter(|pod| pod.node() == Some(&name)) {
                set_ready(pod, false, now);
            }
        }
    }

    pub(super) fn join(&mut self, name: &str) {
        self.cluster.nodes.push(node(name, &[], &[]));
        self.cluster.nodes.sort_by(|a, b| a.name.cmp(&b.name));
    }

    /// Desired nodes that are Ready and have no available pod.
    pub(super) fn unavailable(&self) -> BTreeSet<String> {
        let min_ready = self.cluster.daemon_set.spec.min_ready_seconds;
        let serves = |node: &Node| {
            let mut pods = self.cluster.pods.iter().filter(|pod| pod.node() == Some(&node.name));
            pods.any(|pod| pod.serves(min_ready, self.now()))
        };
        let ready = self.cluster.nodes.iter().filter(|node| node.readiness.is_ready());
        ready.filter(|node| !serves(node)).map(|node| node.name.to_string()).collect()
    }
}

/// The image of each revision, by hash.
pub(super) fn images(revisions: &[Revision]) -> BTreeMap<String, String> {
    let image = |revision: &Revision| {
        let image = &revision.data["spec"]["template"]["spec"]["containers"][0]["image"];
        image.as_str().unwrap().to_owned()
    };
    revisions.iter().map(|it| (it.hash().unwrap().to_string(), image(it))).collect()
}

pub(super) fn rolling(max_unavailable: &Value) -> Value {
    let limits = json!({"maxUnavailable": max_unavailable, "maxSurge": 0});
    json!({"type": "RollingUpdate", "rollingUpdate": limits})
}

pub(super) fn surging(max_surge: &Value) -> Value {
    let limits = json!({"maxUnavailable": 0, "maxSurge": max_surge});
    json!({"type": "RollingUpdate", "rollingUpdate": limits})
}

pub(super) fn on_delete() -> Value {
    json!({"type": "OnDelete"})
}
