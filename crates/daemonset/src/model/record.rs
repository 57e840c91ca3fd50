//! The record: the ConfigMap in place of a DaemonSet object that `ds-apply` manages.
//!
//! It contains the whole object and its status as JSON. Pods and revisions have an owner reference
//! to it, so that deleting it deletes them. `cluster` reads and writes it.

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{DaemonSetName, lease_name};

/// Label of every record; its value is `true`.
pub const RECORD_LABEL: &str = "ds-plan.dev/record";

/// The controller that creates and replaces pods.
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
    /// The DaemonSet controller of Kubernetes.
    #[default]
    #[serde(rename = "daemonset-controller")]
    DaemonSetController,
    /// `ds-apply`, while it runs; a ConfigMap records the DaemonSet.
    #[serde(rename = "ds-apply")]
    DsApply,
}

impl ManagedBy {
    /// The value in policies, plans and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::DaemonSetController => "daemonset-controller",
            Self::DsApply => "ds-apply",
        }
    }

    /// `apiVersion` of the owner of pods and revisions.
    pub fn owner_api_version(self) -> &'static str {
        match self {
            Self::DaemonSetController => "apps/v1",
            Self::DsApply => "v1",
        }
    }

    /// `kind` of the owner of pods and revisions.
    pub const fn owner_kind(self) -> &'static str {
        match self {
            Self::DaemonSetController => "DaemonSet",
            Self::DsApply => "ConfigMap",
        }
    }

    /// `name` of the owner of the pods and revisions of this DaemonSet.
    pub fn owner_name(self, daemon_set: &DaemonSetName) -> Cow<'_, str> {
        match self {
            Self::DaemonSetController => daemon_set.as_str().into(),
            Self::DsApply => record_name(daemon_set).into(),
        }
    }
}

impl fmt::Display for ManagedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// `metadata.name` of a DaemonSet's record, equal to the name of its lease.
pub fn record_name(daemon_set: &DaemonSetName) -> String {
    lease_name(daemon_set.as_str())
}
