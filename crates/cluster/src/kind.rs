//! The kinds of a snapshot's objects, with their names and paths in the API.

use std::fmt;

use daemonset::model::NamespaceName;

/// A kind of object in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `v1` Namespace.
    Namespace,
    /// `v1` Node.
    Node,
    /// `apps/v1` DaemonSet.
    DaemonSet,
    /// `apps/v1` ControllerRevision.
    ControllerRevision,
    /// `v1` Pod.
    Pod,
    /// `v1` Service.
    Service,
    /// `coordination.k8s.io/v1` Lease: the lock of a DaemonSet.
    Lease,
    /// `v1` ConfigMap: only the record of a DaemonSet managed by `ds-apply`; others are ignored.
    DaemonSetRecord,
    /// `v1` Event: the last warning about each pod that is not Ready.
    Event,
}

impl Kind {
    /// All kinds, in the order of a recording.
    pub const ALL: [Self; 9] = [
        Self::Namespace,
        Self::Node,
        Self::DaemonSet,
        Self::ControllerRevision,
        Self::Pod,
        Self::Service,
        Self::Lease,
        Self::DaemonSetRecord,
        Self::Event,
    ];

    /// The value of the field `kind`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespace => "Namespace",
            Self::Node => "Node",
            Self::DaemonSet => "DaemonSet",
            Self::ControllerRevision => "ControllerRevision",
            Self::Pod => "Pod",
            Self::Service => "Service",
            Self::Lease => "Lease",
            Self::DaemonSetRecord => "ConfigMap",
            Self::Event => "Event",
        }
    }

    /// The kind for a value of the field `kind`.
    pub(super) fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// The resource's name in paths and in RBAC rules.
    pub fn resource(self) -> &'static str {
        match self {
            Self::Namespace => "namespaces",
            Self::Node => "nodes",
            Self::DaemonSet => "daemonsets",
            Self::ControllerRevision => "controllerrevisions",
            Self::Pod => "pods",
            Self::Service => "services",
            Self::Lease => "leases",
            Self::DaemonSetRecord => "configmaps",
            Self::Event => "events",
        }
    }

    /// The API group in RBAC rules; empty for the core group.
    pub fn group(self) -> &'static str {
        match self {
            Self::Namespace
            | Self::Node
            | Self::Pod
            | Self::Service
            | Self::DaemonSetRecord
            | Self::Event => "",
            Self::DaemonSet | Self::ControllerRevision => "apps",
            Self::Lease => "coordination.k8s.io",
        }
    }

    /// The value of `apiVersion`.
    pub(super) fn api_version(self) -> &'static str {
        match self {
            Self::Namespace
            | Self::Node
            | Self::Pod
            | Self::Service
            | Self::DaemonSetRecord
            | Self::Event => "v1",
            Self::DaemonSet | Self::ControllerRevision => "apps/v1",
            Self::Lease => "coordination.k8s.io/v1",
        }
    }

    /// Whether its objects are namespaced.
    pub(super) fn is_namespaced(self) -> bool {
        match self {
            Self::Namespace | Self::Node => false,
            Self::DaemonSet
            | Self::ControllerRevision
            | Self::Pod
            | Self::Service
            | Self::Lease
            | Self::DaemonSetRecord
            | Self::Event => true,
        }
    }

    /// Whether the kind is optional in a snapshot; checks that need it are skipped without it.
    pub(super) fn is_optional(self) -> bool {
        match self {
            Self::Service | Self::Lease | Self::Event => true,
            Self::DaemonSetRecord
            | Self::Namespace
            | Self::Node
            | Self::DaemonSet
            | Self::ControllerRevision
            | Self::Pod => false,
        }
    }

    /// The path of its collection, in one namespace or in the whole cluster.
    pub(super) fn path(self, namespace: Option<&NamespaceName>) -> String {
        let root = match self {
            Self::Namespace
            | Self::Node
            | Self::Pod
            | Self::Service
            | Self::DaemonSetRecord
            | Self::Event => "/api/v1",
            Self::DaemonSet | Self::ControllerRevision => "/apis/apps/v1",
            Self::Lease => "/apis/coordination.k8s.io/v1",
        };
        match namespace {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{}", self.resource()),
            None => format!("{root}/{}", self.resource()),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
