//! A cluster at one moment: the only input of a plan from the cluster.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::mask::Salt;
use super::{
    Approval, DaemonSet, DaemonSetKey, Labels, Lease, LockHolder, ManagedBy, NamespaceName, Node,
    NodeName, Pod, Revision, Service, StepsNote, Uid, failed_templates, lease_name, record_name,
};

/// Everything that was read from a cluster.
///
/// Each list is sorted by namespace and name, so that equal clusters are equal snapshots, whether
/// they are live or recorded.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Identity of the cluster.
    pub cluster: ClusterInfo,
    /// Time of the read: the server's clock if live, the newest timestamp inside if recorded.
    pub observed_at: Timestamp,
    /// All nodes.
    pub nodes: Vec<Node>,
    /// Pods of the namespaces in scope.
    pub pods: Vec<Pod>,
    /// DaemonSets of the namespaces in scope.
    ///
    /// DaemonSets that `ds-apply` manages are included, read from their records.
    pub daemon_sets: Vec<DaemonSet>,
    /// DaemonSets that exist in addition to a record of the same name.
    pub records_beside: BTreeSet<DaemonSetKey>,
    /// ControllerRevisions of the namespaces in scope.
    pub revisions: Vec<Revision>,
    /// All namespaces.
    pub namespaces: Vec<Namespace>,
    /// Services of the namespaces in scope.
    pub services: Vec<Service>,
    /// Leases of the namespaces in scope that record failed templates or are held.
    pub leases: Vec<Lease>,
    /// Whether each PriorityClass exists that the templates to plan name. A class that is not in
    /// the map was not looked up: the user may not read it, or the snapshot is a recording.
    pub priority_classes: BTreeMap<String, bool>,
    /// The approvals of steps, by step, of the DaemonSets whose policy asks for some. A DaemonSet
    /// that is not in the map was not looked up: the user may not read its ConfigMap, or the
    /// snapshot is a recording.
    pub approvals: BTreeMap<DaemonSetKey, BTreeMap<String, Approval>>,
    /// The lists that were read, and those that could not be.
    pub coverage: Coverage,
    /// Objects that could not be decoded, by kind and name.
    pub unreadable: Vec<Unreadable>,
}

/// An object with a field that could not be decoded. The snapshot contains the rest: a pod or node
/// as not Ready, a revision without template, the other approvals, but no DaemonSet for a record.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unreadable {
    /// `Pod`, `Node`, `ControllerRevision`, `ConfigMap` of a record, or [`APPROVAL`](Self::APPROVAL).
    pub kind: &'static str,
    /// Its namespace; `None` for nodes.
    pub namespace: Option<NamespaceName>,
    /// `metadata.name`.
    pub name: String,
    /// The field and the error.
    pub reason: String,
}

impl Unreadable {
    /// The kind of a ConfigMap with approvals of which some cannot be read.
    pub const APPROVAL: &'static str = "Approval";
}

/// The identity of a snapshot's cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterInfo {
    /// Name of the cluster in the kubeconfig, or the recorded name.
    pub name: Option<String>,
    /// Uid of the namespace `kube-system`, which identifies the cluster.
    pub uid: Option<Uid>,
    /// The API server's `gitVersion`, such as `v1.36.3`.
    pub version: Option<String>,
    /// The file of a recorded snapshot.
    pub file: Option<String>,
}

/// One namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Namespace {
    /// `metadata.name`.
    pub name: NamespaceName,
    /// All annotations; some of them are node selectors.
    pub annotations: Labels,
    /// Phase `Terminating`: nothing can be created in it.
    pub terminating: bool,
}

/// The lists that a snapshot contains; absence is meaningful only in these.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a list that was read or was not")]
pub struct Coverage {
    /// The namespaces whose pods, DaemonSets and revisions were read; `None` for all of them. In
    /// any other namespace, absence means nothing.
    pub scope: Option<BTreeSet<NamespaceName>>,
    /// Whether the objects carry `managedFields`; kubectl removes them by default.
    pub managed_fields: bool,
    /// Whether [`Snapshot::namespaces`] contains every namespace. A user who may not list
    /// namespaces reads at most those in scope: others may exist.
    pub namespaces: bool,
    /// Whether the Services of all namespaces in scope were read; optional for a plan.
    pub services: bool,
    /// Whether the leases of all namespaces in scope were read; optional for a plan.
    pub leases: bool,
    /// Whether the records of the namespaces in scope were read.
    pub records: bool,
    /// The salt of the digests that replace secret values in templates and revisions; `None` if the
    /// values are not masked. Mask templates before comparing with them
    /// ([`mask_template`](super::mask::mask_template)).
    pub masked: Option<Salt>,
}

impl Coverage {
    /// Whether the pods, DaemonSets and revisions of `namespace` were read.
    pub fn covers(&self, namespace: &NamespaceName) -> bool {
        self.scope.as_ref().is_none_or(|scope| scope.contains(namespace))
    }
}

impl Snapshot {
    /// The DaemonSet with this namespace and name.
    pub fn daemon_set(&self, key: &DaemonSetKey) -> Option<&DaemonSet> {
        let at = self.daemon_sets.binary_search_by(|ds| ds.key.cmp(key)).ok()?;
        Some(&self.daemon_sets[at])
    }

    /// The record of a DaemonSet, if it exists and cannot be decoded.
    pub fn unreadable_record(&self, key: &DaemonSetKey) -> Option<&Unreadable> {
        let name = record_name(&key.name);
        let is_it = |it: &&Unreadable| {
            it.kind == ManagedBy::DsApply.owner_kind()
                && it.namespace.as_ref() == Some(&key.namespace)
                && it.name == name
        };
        self.unreadable.iter().find(is_it)
    }

    /// The node with this name.
    pub fn node(&self, name: &NodeName) -> Option<&Node> {
        let at = self.nodes.binary_search_by(|node| node.name.cmp(name)).ok()?;
        Some(&self.nodes[at])
    }

    /// The pods of one namespace.
    pub fn pods_in(&self, namespace: &NamespaceName) -> &[Pod] {
        let start = self.pods.partition_point(|pod| pod.namespace < *namespace);
        let end = self.pods.partition_point(|pod| pod.namespace <= *namespace);
        &self.pods[start..end]
    }

    /// The revisions of one namespace.
    pub fn revisions_in(&self, namespace: &NamespaceName) -> &[Revision] {
        let start = self.revisions.partition_point(|revision| revision.namespace < *namespace);
        let end = self.revisions.partition_point(|revision| revision.namespace <= *namespace);
        &self.revisions[start..end]
    }

    /// The Services of one namespace.
    pub fn services_in(&self, namespace: &NamespaceName) -> &[Service] {
        let start = self.services.partition_point(|service| service.namespace < *namespace);
        let end = self.services.partition_point(|service| service.namespace <= *namespace);
        &self.services[start..end]
    }

    /// Whether `ds-apply` recorded that a rollout of the template with this digest failed.
    pub fn has_failed(&self, daemon_set: &DaemonSetKey, template_digest: &str) -> bool {
        self.lease_of(daemon_set).is_some_and(|lease| lease.failed.contains(template_digest))
    }

    /// The digests of the templates of a DaemonSet that are recorded as failed.
    pub fn failed_templates(&self, daemon_set: &DaemonSetKey) -> BTreeSet<Box<str>> {
        self.lease_of(daemon_set).map(|lease| lease.failed.clone()).unwrap_or_default()
    }

    /// The holder of the lock on a DaemonSet, alive or not.
    pub fn lock_holder(&self, daemon_set: &DaemonSetKey) -> Option<&LockHolder> {
        self.lease_of(daemon_set)?.holder.as_ref()
    }

    fn lease_of(&self, daemon_set: &DaemonSetKey) -> Option<&Lease> {
        let name = lease_name(daemon_set.name.as_str());
        let key = (&daemon_set.namespace, name.as_str());
        let found =
            self.leases.binary_search_by(|lease| (&lease.namespace, &*lease.name).cmp(&key));
        self.leases.get(found.ok()?)
    }

    /// What the rollout of a DaemonSet has noted about its steps.
    pub fn steps_note(&self, daemon_set: &DaemonSetKey) -> Option<&StepsNote> {
        self.lease_of(daemon_set)?.steps.as_ref()
    }

    /// Sets what the lease of a DaemonSet notes: the value of
    /// [`FAILED_TEMPLATES_ANNOTATION`](super::FAILED_TEMPLATES_ANNOTATION), and the note about
    /// steps.
    pub fn set_notes(&mut self, daemon_set: &DaemonSetKey, failed: &str, steps: Option<StepsNote>) {
        let name = lease_name(daemon_set.name.as_str()).into_boxed_str();
        let namespace = daemon_set.namespace.clone();
        let failed = failed_templates(failed).map(Box::from).collect();
        let holder = self.lock_holder(daemon_set).cloned();
        self.leases.retain(|lease| (&lease.namespace, &lease.name) != (&namespace, &name));
        self.leases.push(Lease { namespace, name, failed, steps, holder });
        self.sort_leases();
    }

    /// Sorts every list into the order that the methods above require.
    pub fn sort(&mut self) {
        sort_in_place(&mut self.nodes, |a, b| a.name.cmp(&b.name));
        sort_in_place(&mut self.pods, |a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        self.daemon_sets.sort_by(|a, b| a.key.cmp(&b.key));
        self.revisions.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        self.namespaces.sort_by(|a, b| a.name.cmp(&b.name));
        self.services.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        self.sort_leases();
        self.unreadable.sort();
    }

    fn sort_leases(&mut self) {
        self.leases.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    }
}

/// As `sort_by`, whose buffer is half as large as what it sorts: only the order is sorted, then the
/// objects are swapped to their places.
fn sort_in_place<T>(objects: &mut [T], compare: impl Fn(&T, &T) -> Ordering) {
    if objects.is_sorted_by(|a, b| compare(a, b).is_le()) {
        return;
    }
    let mut order: Vec<usize> = (0..objects.len()).collect();
    order.sort_by(|a, b| compare(&objects[*a], &objects[*b]));
    for first in 0..order.len() {
        // The places of a cycle: each gets the object of the next one.
        let mut place = first;
        while order[place] != first {
            let from = std::mem::replace(&mut order[place], place);
            objects.swap(place, from);
            place = from;
        }
        order[place] = place;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sorting_in_place_is_stable_sorting() {
        let mut random = 1_u32;
        for length in 0..200 {
            let mut objects: Vec<(u32, usize)> = Vec::new();
            for at in 0..length {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                objects.push((random >> 27, at));
            }
            let mut want = objects.clone();
            want.sort_by_key(|(key, _)| *key);
            sort_in_place(&mut objects, |a, b| a.0.cmp(&b.0));
            assert_eq!(objects, want);
        }
    }
}
