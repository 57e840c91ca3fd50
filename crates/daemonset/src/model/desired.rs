//! The desired state: manifest files, and the DaemonSets read from them.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::{
    DaemonSetKey, DaemonSetSpec, Labels, ManagedBy, PolicySpec, PolicyStep, RolloutPolicy,
};

/// One file of manifests: its path and its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestFile {
    /// Path as the user would name it: inside the repository, as given with `-f`, or `<stdin>`.
    pub path: Arc<str>,
    /// Its content, whatever the encoding.
    pub bytes: Vec<u8>,
}

/// A position in a manifest file, for messages.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file's path, as in [`ManifestFile::path`].
    pub path: Arc<str>,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path, self.line, self.column)
    }
}

/// A DaemonSet of the source: defaulted and validated as the API server does it.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredDaemonSet {
    /// Namespace and name.
    pub key: DaemonSetKey,
    /// `metadata.labels`.
    pub labels: Labels,
    /// `metadata.annotations`.
    pub annotations: Labels,
    /// Its `spec`.
    pub spec: DaemonSetSpec,
    /// The whole object, defaulted, for diffs.
    pub raw: Arc<Value>,
    /// The object as written, without defaults, to send to the server.
    pub written: Arc<Value>,
    /// Position of the start of its document.
    pub place: Place,
    /// The controller that is to manage it.
    pub managed_by: ManagedBy,
    /// The policy of its rollout, if there is one.
    pub policy: Option<Arc<RolloutPolicy>>,
    /// Set if the source itself loosens the policy: the policy after the merge.
    pub loosened: Option<LoosenedPolicy>,
}

impl DesiredDaemonSet {
    /// The settings of its policy; the defaults without one.
    pub fn policy_spec(&self) -> Cow<'_, PolicySpec> {
        match &self.policy {
            Some(policy) => Cow::Borrowed(&policy.spec),
            None => Cow::Owned(PolicySpec::default()),
        }
    }

    /// The steps of its policy that begin only after an approval.
    pub fn steps_to_approve(&self) -> impl Iterator<Item = &PolicyStep> {
        let steps = self.policy.iter().flat_map(|policy| &policy.spec.steps);
        steps.filter(|step| step.approve)
    }

    /// Whether any step of its policy begins only after an approval.
    pub fn asks_for_approvals(&self) -> bool {
        self.policy.as_ref().is_some_and(|policy| policy.spec.asks_for_approvals())
    }
}

/// A policy after a pull request that is looser than the policy that applies to the pull request.
#[derive(Clone, Debug, PartialEq)]
pub struct LoosenedPolicy {
    /// The policy after the merge; `None` if it is removed.
    pub after: Option<Arc<RolloutPolicy>>,
    /// The loosened fields as text; empty if the policy is removed.
    pub loosened: Vec<String>,
}

impl LoosenedPolicy {
    /// The change from `before` to `after`, if `after` is looser.
    pub fn of(before: Option<&RolloutPolicy>, after: Option<Arc<RolloutPolicy>>) -> Option<Self> {
        let before = before?;
        let loosened = match &after {
            None => Vec::new(),
            Some(after) => before.spec.loosened_by(&after.spec),
        };
        (after.is_none() || !loosened.is_empty()).then_some(Self { after, loosened })
    }
}
