//! The ledger: the ConfigMap that stands for a DaemonSet where no DaemonSet controller acts.
//!
//! It holds the whole object as JSON, and beside it the status. Pods and revisions name it as their
//! owner, so that deleting it deletes them. Not here: reading and writing it (`cluster`).

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DaemonSetName, lease_name};

/// Label of every ledger; its value is `true`.
pub const LEDGER_LABEL: &str = "ds-plan.dev/ledger";

/// Who replaces pods.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
)]
pub enum ManagedBy {
    /// Kubernetes' own controller creates pods and revisions.
    #[default]
    #[serde(rename = "daemonset-controller")]
    DaemonSetController,
    /// `ds-apply` is the controller for the length of its run; a ConfigMap stands for the DaemonSet.
    #[serde(rename = "ds-apply")]
    DsApply,
}

impl ManagedBy {
    /// The word in policies, plans and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DaemonSetController => "daemonset-controller",
            Self::DsApply => "ds-apply",
        }
    }

    /// `apiVersion` of whatever owns pods and revisions.
    pub fn owner_api_version(self) -> &'static str {
        match self {
            Self::DaemonSetController => "apps/v1",
            Self::DsApply => "v1",
        }
    }

    /// `kind` of whatever owns pods and revisions.
    pub const fn owner_kind(self) -> &'static str {
        match self {
            Self::DaemonSetController => "DaemonSet",
            Self::DsApply => "ConfigMap",
        }
    }

    /// `name` of whatever owns the pods and revisions of this DaemonSet.
    pub fn owner_name(self, daemon_set: &DaemonSetName) -> Cow<'_, str> {
        match self {
            Self::DaemonSetController => daemon_set.as_str().into(),
            Self::DsApply => ledger_name(daemon_set).into(),
        }
    }
}

impl fmt::Display for ManagedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// `metadata.name` of a DaemonSet's ledger: that of its lease, which is of another kind.
pub fn ledger_name(daemon_set: &DaemonSetName) -> String {
    lease_name(daemon_set.as_str())
}
