//! What the rules of a container need to know about its pod.

use std::collections::{BTreeMap, BTreeSet};

use super::at::At;

/// Values of `imagePullPolicy`, and of `pullPolicy` of an image volume.
pub(super) const PULL_POLICIES: &[&str] = &["Always", "IfNotPresent", "Never"];

/// The volumes that containers may mount, by name.
pub(super) type Volumes<'a> = BTreeMap<&'a str, At<'a>>;

/// The parts of the pod that the rules of a container depend on.
pub(super) struct ContainerContext<'a> {
    /// The volumes without errors.
    pub(super) volumes: Volumes<'a>,
    /// The names of the pod's resource claims.
    pub(super) claims: BTreeSet<&'a str>,
    /// The pod's `terminationGracePeriodSeconds`.
    pub(super) grace_period: Option<i64>,
    /// `true` if root in the container is root on the node (`hostUsers`).
    pub(super) host_users: bool,
    /// The pod's `restartPolicy`.
    pub(super) restart_policy: &'a str,
}

/// Every container of the pod in upstream's order (upstream: `VisitContainers`).
pub(super) fn visit_containers<'a>(pod: &At<'a>) -> Vec<At<'a>> {
    let kinds = ["initContainers", "containers", "ephemeralContainers"];
    kinds.iter().flat_map(|kind| pod.get(kind).items()).collect()
}
