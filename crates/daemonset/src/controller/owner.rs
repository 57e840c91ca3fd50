//! The DaemonSet for which the controller decides.

use serde_json::{Value, json};

use crate::model::{
    ControllerRef, DaemonSet, DaemonSetKey, DaemonSetSpec, DaemonSetStatus, Labels, ManagedBy, Uid,
};

/// The DaemonSet that owns the pods and revisions: the live one, or the one after an apply.
#[derive(Clone, Copy, Debug)]
pub struct Owner<'a> {
    /// Namespace and name.
    pub key: &'a DaemonSetKey,
    /// Its controller, which determines the owner reference of pods and revisions.
    pub managed_by: ManagedBy,
    /// Its uid; `None` for a DaemonSet that does not exist yet and owns nothing.
    pub uid: Option<&'a Uid>,
    /// `metadata.annotations`, which a new revision copies.
    pub annotations: &'a Labels,
    /// Its `spec`, defaulted.
    pub spec: &'a DaemonSetSpec,
    /// `metadata.generation`.
    pub generation: i64,
    /// `templateGeneration`, served as an annotation; `None` when absent or not a number.
    pub template_generation: Option<i64>,
    /// The status that the controller wrote last; all zero before its first sync.
    pub status: DaemonSetStatus,
    /// Whether it is being deleted; if so, the controller does nothing.
    pub terminating: bool,
}

impl Owner<'_> {
    /// The owner reference of its pods and revisions; `None` without a uid.
    pub fn reference(&self) -> Option<Value> {
        let (managed_by, uid) = (self.managed_by, self.uid?);
        Some(json!({
            "apiVersion": managed_by.owner_api_version(),
            "kind": managed_by.owner_kind(),
            "name": managed_by.owner_name(&self.key.name),
            "uid": uid,
            "controller": true,
            "blockOwnerDeletion": true,
        }))
    }

    /// Whether a reference refers to it: by kind, name **and** uid.
    pub fn is_named_by(&self, reference: &ControllerRef) -> bool {
        let managed_by = self.managed_by;
        Some(&reference.uid) == self.uid
            && *reference.kind == *managed_by.owner_kind()
            && *reference.name == *managed_by.owner_name(&self.key.name)
    }

    /// Whether both claim the same objects: all properties that `claims` uses are equal.
    pub fn claims_as(&self, other: &Owner<'_>) -> bool {
        self.key == other.key
            && self.managed_by == other.managed_by
            && self.uid == other.uid
            && self.spec.selector == other.spec.selector
            && self.terminating == other.terminating
    }
}

impl<'a> From<&'a DaemonSet> for Owner<'a> {
    fn from(daemon_set: &'a DaemonSet) -> Self {
        Self {
            key: &daemon_set.key,
            managed_by: daemon_set.managed_by,
            uid: Some(&daemon_set.uid),
            annotations: &daemon_set.annotations,
            spec: &daemon_set.spec,
            generation: daemon_set.generation,
            template_generation: daemon_set.template_generation(),
            status: daemon_set.status,
            terminating: daemon_set.terminating,
        }
    }
}
