//! What the source asks for: manifest files as found, and the DaemonSets read from them.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::{DaemonSetKey, DaemonSetSpec, Labels, ManagedBy, RolloutPolicy};

/// One file of manifests: where it is from, and its bytes as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestFile {
    /// Path as the user would name it: inside the repository, as given with `-f`, or `<stdin>`.
    pub path: Arc<str>,
    /// Its content, whatever the encoding.
    pub bytes: Vec<u8>,
}

/// Where in a manifest file something stands, for messages.
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

/// A DaemonSet as the source asks for it: defaulted and validated as the API server does it.
#[derive(Clone, Debug, PartialEq)]
pub struct DesiredDaemonSet {
    /// Namespace and name.
    pub key: DaemonSetKey,
    /// `metadata.labels`.
    pub labels: Labels,
    /// `metadata.annotations`.
    pub annotations: Labels,
    /// What it asks for.
    pub spec: DaemonSetSpec,
    /// The whole object, defaulted: what a diff compares.
    pub raw: Arc<Value>,
    /// What is sent to the server: as written, without defaults.
    pub written: Arc<Value>,
    /// Where its document begins.
    pub place: Place,
    /// Who is to act on it.
    pub managed_by: ManagedBy,
    /// How its rollout is to be paced, beyond what it says itself.
    pub policy: Option<Arc<RolloutPolicy>>,
    /// Set when the source itself would loosen that: what the policy becomes with the merge.
    pub loosened: Option<LoosenedPolicy>,
}

/// A policy as a request leaves it, which is looser than the one that judges the request.
#[derive(Clone, Debug, PartialEq)]
pub struct LoosenedPolicy {
    /// What is left; `None` when there is no policy any more.
    pub after: Option<Arc<RolloutPolicy>>,
    /// What it allows that was not, in words; empty when none is left.
    pub loosened: Vec<String>,
}

impl LoosenedPolicy {
    /// What becomes of `before`, if that is looser.
    pub fn of(before: Option<&RolloutPolicy>, after: Option<Arc<RolloutPolicy>>) -> Option<Self> {
        let before = before?;
        let loosened = match &after {
            None => Vec::new(),
            Some(after) => before.spec.loosened_by(&after.spec),
        };
        (after.is_none() || !loosened.is_empty()).then_some(Self { after, loosened })
    }
}
