//! The kinds that the embedded cluster serves, with their API names.
//!
//! Requests for other kinds are answered with 404.

use std::fmt;

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `v1` Namespace.
    Namespace,
    /// `v1` Node.
    Node,
    /// `v1` Pod.
    Pod,
    /// `v1` Service.
    Service,
    /// `v1` `ConfigMap`.
    ConfigMap,
    /// `v1` Event.
    Event,
    /// `apps/v1` DaemonSet.
    DaemonSet,
    /// `apps/v1` ControllerRevision.
    ControllerRevision,
    /// `coordination.k8s.io/v1` Lease.
    Lease,
}

/// An API group in the one version that is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// The core group, `v1`.
    Core,
    /// `apps/v1`.
    Apps,
    /// `authorization.k8s.io/v1`, of which only `selfsubjectaccessreviews` are served.
    Authorization,
    /// `coordination.k8s.io/v1`.
    Coordination,
}

impl Group {
    /// All groups.
    pub const ALL: [Self; 4] = [Self::Core, Self::Apps, Self::Authorization, Self::Coordination];

    /// Name of the group in RBAC rules and messages; empty for the core group.
    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "",
            Self::Apps => "apps",
            Self::Authorization => "authorization.k8s.io",
            Self::Coordination => "coordination.k8s.io",
        }
    }

    /// The value of `apiVersion`.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::Core => "v1",
            Self::Apps => "apps/v1",
            Self::Authorization => "authorization.k8s.io/v1",
            Self::Coordination => "coordination.k8s.io/v1",
        }
    }
}

impl Kind {
    /// Number of kinds.
    pub const COUNT: usize = Self::ALL.len();

    /// All kinds.
    pub const ALL: [Self; 9] = [
        Self::Namespace,
        Self::Node,
        Self::Pod,
        Self::Service,
        Self::ConfigMap,
        Self::Event,
        Self::DaemonSet,
        Self::ControllerRevision,
        Self::Lease,
    ];

    /// Value of the field `kind`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Namespace => "Namespace",
            Self::Node => "Node",
            Self::Pod => "Pod",
            Self::Service => "Service",
            Self::ConfigMap => "ConfigMap",
            Self::Event => "Event",
            Self::DaemonSet => "DaemonSet",
            Self::ControllerRevision => "ControllerRevision",
            Self::Lease => "Lease",
        }
    }

    /// The resource's name in paths, messages and RBAC rules.
    pub fn resource(self) -> &'static str {
        match self {
            Self::Namespace => "namespaces",
            Self::Node => "nodes",
            Self::Pod => "pods",
            Self::Service => "services",
            Self::ConfigMap => "configmaps",
            Self::Event => "events",
            Self::DaemonSet => "daemonsets",
            Self::ControllerRevision => "controllerrevisions",
            Self::Lease => "leases",
        }
    }

    /// Path of the kind in the server's storage.
    pub(super) fn storage_path(self) -> &'static str {
        match self {
            Self::Node => "minions",
            Self::Service => "services/specs",
            Self::Namespace
            | Self::Pod
            | Self::ConfigMap
            | Self::Event
            | Self::DaemonSet
            | Self::ControllerRevision
            | Self::Lease => self.resource(),
        }
    }

    /// The API group.
    pub fn group(self) -> Group {
        match self {
            Self::Namespace
            | Self::Node
            | Self::Pod
            | Self::Service
            | Self::ConfigMap
            | Self::Event => Group::Core,
            Self::DaemonSet | Self::ControllerRevision => Group::Apps,
            Self::Lease => Group::Coordination,
        }
    }

    /// The value of `apiVersion`.
    pub fn api_version(self) -> &'static str {
        self.group().api_version()
    }

    /// The kind with these values of `apiVersion` and `kind`.
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        let is = |it: &Self| it.as_str() == kind && it.api_version() == api_version;
        Self::ALL.into_iter().find(is)
    }

    /// The kind of a resource in a group.
    pub fn of_resource(group: Group, resource: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.resource() == resource && it.group() == group)
    }

    /// `true` for namespaced kinds.
    pub fn is_namespaced(self) -> bool {
        !matches!(self, Self::Namespace | Self::Node)
    }

    /// `true` for kinds with a subresource `status`.
    pub fn has_status(self) -> bool {
        match self {
            Self::Namespace | Self::Node | Self::Pod | Self::Service | Self::DaemonSet => true,
            Self::ConfigMap | Self::Event | Self::ControllerRevision | Self::Lease => false,
        }
    }

    /// `true` for kinds whose `metadata.generation` counts the changes of the spec.
    pub fn has_generation(self) -> bool {
        matches!(self, Self::Pod | Self::DaemonSet)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Formats a kind as in messages and RBAC, such as `daemonsets.apps` (upstream:
/// `GroupResource.String`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct GroupResource(pub(crate) Kind);

impl fmt::Display for GroupResource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.resource())?;
        match self.0.group().name() {
            "" => Ok(()),
            group => write!(f, ".{group}"),
        }
    }
}
