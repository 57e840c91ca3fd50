//! The controllers' cache of the cluster, a little older than the cluster itself (upstream: shared
//! informers).

use std::cmp::Ordering;
use std::collections::BTreeMap;

use crate::{Change, Event, Kind, Object, Store};
use daemonset::model::{
    DaemonSet, DaemonSetKey, NamespaceName, Node, NodeName, Pod, PodName, Revision,
};

/// Slim views, sorted by name, as the decision rules expect them. Pods change often, so they are
/// not in sorted lists, where each insertion would move others.
#[derive(Debug, Default)]
pub(super) struct Cache {
    pub(super) nodes: Vec<Node>,
    pub(super) pods: BTreeMap<NamespaceName, BTreeMap<PodName, Pod>>,
    pub(super) daemon_sets: BTreeMap<DaemonSetKey, DaemonSet>,
    pub(super) revisions: BTreeMap<NamespaceName, Vec<Revision>>,
    /// The version of the last event of a node.
    pub(super) nodes_version: u64,
    /// The version of the last event received.
    pub(super) version: u64,
}

/// The kinds that controllers watch.
pub(super) const KINDS: [Kind; 5] =
    [Kind::Node, Kind::Pod, Kind::DaemonSet, Kind::ControllerRevision, Kind::ConfigMap];

impl Cache {
    /// A cache of all current objects.
    pub(super) fn of(store: &Store) -> Self {
        let mut cache = Self::default();
        for kind in KINDS {
            for object in store.objects(kind, None) {
                cache.put(object);
            }
        }
        cache.version = store.version();
        cache
    }

    /// Applies an event.
    pub(super) fn hear(&mut self, event: &Event) {
        match event.change {
            Change::Added | Change::Modified => self.put(&event.object),
            Change::Deleted => self.remove(&event.object),
        }
        self.version = self.version.max(event.version());
        if event.object.kind() == Kind::Node {
            self.nodes_version = event.version();
        }
    }

    fn put(&mut self, object: &Object) {
        if let Some(node) = object.node() {
            put(&mut self.nodes, node, |a, b| a.name.cmp(&b.name));
        } else if let Some(pod) = object.pod() {
            let pods = self.pods.entry(pod.namespace.clone()).or_default();
            pods.insert(pod.name.clone(), pod.clone());
        } else if let Some(daemon_set) = object.daemon_set() {
            self.daemon_sets.insert(daemon_set.key.clone(), daemon_set.clone());
        } else if let Some(revision) = object.revision() {
            let revisions = self.revisions.entry(revision.namespace.clone()).or_default();
            put(revisions, revision, |a, b| a.name.cmp(&b.name));
        }
    }

    fn remove(&mut self, object: &Object) {
        if let Some(node) = object.node() {
            remove(&mut self.nodes, node, |a, b| a.name.cmp(&b.name));
        } else if let Some(pod) = object.pod() {
            if let Some(pods) = self.pods.get_mut(&pod.namespace) {
                pods.remove(&pod.name);
            }
        } else if let Some(daemon_set) = object.daemon_set() {
            self.daemon_sets.remove(&daemon_set.key);
        } else if let Some(revision) = object.revision()
            && let Some(revisions) = self.revisions.get_mut(&revision.namespace)
        {
            remove(revisions, revision, |a, b| a.name.cmp(&b.name));
        }
    }

    /// The node of that name.
    pub(super) fn node(&self, name: &NodeName) -> Option<&Node> {
        let at = self.nodes.binary_search_by(|node| node.name.cmp(name)).ok()?;
        Some(&self.nodes[at])
    }

    /// Every pod of the cluster.
    pub(super) fn all_pods(&self) -> impl Iterator<Item = &Pod> {
        self.pods.values().flat_map(BTreeMap::values)
    }

    /// The pods of a namespace.
    pub(super) fn pods_in(&self, namespace: &NamespaceName) -> impl Iterator<Item = &Pod> {
        self.pods.get(namespace).into_iter().flat_map(BTreeMap::values)
    }

    /// The revisions of a namespace.
    pub(super) fn revisions_in(&self, namespace: &NamespaceName) -> &[Revision] {
        self.revisions.get(namespace).map(Vec::as_slice).unwrap_or_default()
    }
}

fn put<T: Clone>(list: &mut Vec<T>, item: &T, order: fn(&T, &T) -> Ordering) {
    match list.binary_search_by(|known| order(known, item)) {
        Ok(at) => list[at].clone_from(item),
        Err(at) => list.insert(at, item.clone()),
    }
}

fn remove<T>(list: &mut Vec<T>, item: &T, order: fn(&T, &T) -> Ordering) {
    if let Ok(at) = list.binary_search_by(|known| order(known, item)) {
        list.remove(at);
    }
}
