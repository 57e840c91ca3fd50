//! ControllerRevisions: the templates of a DaemonSet.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    CHANGE_CAUSE_ANNOTATION, ControllerRef, Labels, NamespaceName, REVISION_HASH_LABEL,
    RevisionHash, RevisionName, Uid,
};

/// `revision` of a `ControllerRevision`: grows by one with each change, including a rollback.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct RevisionNumber(pub i64);

impl fmt::Display for RevisionNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// An existing ControllerRevision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionRef {
    /// Name of the ControllerRevision.
    pub name: RevisionName,
    /// Revision number.
    pub number: RevisionNumber,
}

impl From<&Revision> for RevisionRef {
    fn from(revision: &Revision) -> Self {
        Self { name: revision.name.clone(), number: revision.number }
    }
}

/// One `ControllerRevision`.
#[derive(Clone, Debug, PartialEq)]
pub struct Revision {
    /// `metadata.namespace`.
    pub namespace: NamespaceName,
    /// `metadata.name`.
    pub name: RevisionName,
    /// `metadata.uid`.
    pub uid: Uid,
    /// All labels: the template's labels and the hash.
    pub labels: Labels,
    /// All annotations: the DaemonSet's annotations when the revision was created.
    pub annotations: Labels,
    /// The owner reference with `controller: true`.
    pub controller: Option<Arc<ControllerRef>>,
    /// Its number.
    pub number: RevisionNumber,
    /// `data`: `{"spec":{"template":{…,"$patch":"replace"}}}`.
    pub data: Arc<Value>,
    /// `metadata.creationTimestamp`.
    pub created: Option<Timestamp>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub terminating: bool,
}

impl Revision {
    /// The label `controller-revision-hash`; a revision without it gets its own name as hash
    /// from the controller.
    pub fn hash(&self) -> Option<RevisionHash> {
        self.labels.get(REVISION_HASH_LABEL).map(RevisionHash::from)
    }

    /// The annotation `kubernetes.io/change-cause`.
    pub fn change_cause(&self) -> Option<&str> {
        self.annotations.get(CHANGE_CAUSE_ANNOTATION)
    }
}
