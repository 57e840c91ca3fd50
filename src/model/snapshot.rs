//! A cluster at one moment: the only thing a plan knows of it.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::mask::Salt;
use super::{
    DaemonSet, DaemonSetKey, Labels, Lease, LockHolder, ManagedBy, NamespaceName, Node, NodeName,
    Pod, Revision, Service, Uid, failed_templates, lease_name, ledger_name,
};

/// Everything that was read of a cluster.
///
/// Each list is sorted by name (namespace first), so that equal clusters are equal snapshots,
/// whether they were read live or from a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// Which cluster it is.
    pub cluster: ClusterInfo,
    /// When it was read: the server's clock when live, the newest timestamp inside when recorded.
    pub observed_at: Timestamp,
    /// All nodes.
    pub nodes: Vec<Node>,
    /// Pods of the namespaces in question.
    pub pods: Vec<Pod>,
    /// DaemonSets of the namespaces in question.
    ///
    /// Where no controller acts, what a ledger stands for is among them.
    pub daemon_sets: Vec<DaemonSet>,
    /// DaemonSets that exist although a ledger stands for them: both would be acted on.
    pub ledgers_beside: BTreeSet<DaemonSetKey>,
    /// ControllerRevisions of the namespaces in question.
    pub revisions: Vec<Revision>,
    /// All namespaces.
    pub namespaces: Vec<Namespace>,
    /// Services of the namespaces in question.
    pub services: Vec<Service>,
    /// Leases of the namespaces in question, those that remember something or are held.
    pub leases: Vec<Lease>,
    /// What could not be read.
    pub coverage: Coverage,
    /// Objects that were there and could not be made sense of, in the order of kind and name.
    pub unreadable: Vec<Unreadable>,
}

/// An object of which something could not be read. The rest of it is in the snapshot, if there is
/// any: of a pod or node that it is not Ready, of a revision that it has no template; of a record, in
/// which a DaemonSet is kept, nothing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unreadable {
    /// `Pod`, `Node`, `ControllerRevision`, `ConfigMap`.
    pub kind: &'static str,
    /// Its namespace; `None` for nodes.
    pub namespace: Option<NamespaceName>,
    /// `metadata.name`.
    pub name: String,
    /// The field, and what is wrong with it.
    pub reason: String,
}

/// Which cluster a snapshot is of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterInfo {
    /// Name of the cluster in the kubeconfig, or the one that was recorded.
    pub name: Option<String>,
    /// Uid of the namespace `kube-system`, which serves as the cluster's identity.
    pub uid: Option<Uid>,
    /// The API server's `gitVersion`, such as `v1.36.3`.
    pub version: Option<String>,
    /// The file it was read from, when it is a recorded one.
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

/// What a snapshot has, and so what may be concluded from what it has not.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a list that was read or was not")]
pub struct Coverage {
    /// The namespaces whose pods, DaemonSets and revisions were read; `None` is all of them. In
    /// any other namespace, nothing can be concluded from what is not there.
    pub scope: Option<BTreeSet<NamespaceName>>,
    /// Whether the objects carry `managedFields`; kubectl strips them unless told otherwise.
    pub managed_fields: bool,
    /// Whether [`Snapshot::namespaces`] holds every namespace. A user who may not list them sees
    /// those in question at most: one that is not there may still exist.
    pub namespaces: bool,
    /// Whether the Services of all namespaces in question were read; a plan can do without.
    pub services: bool,
    /// Whether the leases of all namespaces in question were read; a plan can do without.
    pub leases: bool,
    /// Whether the ledgers of the namespaces in question were read.
    pub ledgers: bool,
    /// The salt of the digests that stand in place of secret values in templates and revisions;
    /// `None` when the values are the real ones. What is compared with them must be masked first
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
    /// The DaemonSet of that namespace and name.
    pub fn daemon_set(&self, key: &DaemonSetKey) -> Option<&DaemonSet> {
        let at = self.daemon_sets.binary_search_by(|ds| ds.key.cmp(key)).ok()?;
        Some(&self.daemon_sets[at])
    }

    /// The record that stands for a DaemonSet, if it is there and cannot be read.
    pub fn unreadable_record(&self, key: &DaemonSetKey) -> Option<&Unreadable> {
        let name = ledger_name(&key.name);
        let is_it = |it: &&Unreadable| {
            it.kind == ManagedBy::DsApply.owner_kind()
                && it.namespace.as_ref() == Some(&key.namespace)
                && it.name == name
        };
        self.unreadable.iter().find(is_it)
    }

    /// The node of that name.
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

    /// Whether `ds-apply` remembers that a rollout of the template with this digest failed.
    pub fn has_failed(&self, daemon_set: &DaemonSetKey, template_digest: &str) -> bool {
        self.lease_of(daemon_set).is_some_and(|lease| lease.failed.contains(template_digest))
    }

    /// Who has the lock on a DaemonSet, or has left it behind.
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

    /// Puts in what `ds-apply` remembers of a DaemonSet's failed templates: the value of
    /// [`FAILED_TEMPLATES_ANNOTATION`](super::FAILED_TEMPLATES_ANNOTATION) on its lease.
    pub fn remember_failed(&mut self, daemon_set: &DaemonSetKey, note: &str) {
        let name = lease_name(daemon_set.name.as_str()).into_boxed_str();
        let namespace = daemon_set.namespace.clone();
        let failed = failed_templates(note).map(Box::from).collect();
        let holder = self.lock_holder(daemon_set).cloned();
        self.leases.retain(|lease| (&lease.namespace, &lease.name) != (&namespace, &name));
        self.leases.push(Lease { namespace, name, failed, holder });
        self.sort_leases();
    }

    /// Puts every list into the order that the methods above rely on.
    pub fn sort(&mut self) {
        self.nodes.sort_by(|a, b| a.name.cmp(&b.name));
        self.pods.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
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
