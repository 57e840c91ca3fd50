//! How manifests are read.

use daemonset::model::NamespaceName;

use super::objects::NotObjects;
use super::policy::Policies;

/// Options for reading manifests.
#[derive(Clone, Debug)]
pub struct Options {
    /// Namespace of DaemonSets whose manifest has no namespace.
    pub default_namespace: NamespaceName,
    /// Treatment of fields that the API does not have.
    pub validate: FieldValidation,
    /// Policies to use instead of those in the manifests; `None` uses those in the manifests.
    pub policies: Option<Policies>,
    /// Parse every file, not only those that mention a kind that is read: for callers that report
    /// what is *not* there.
    pub every_file: bool,
    /// Treatment of documents that are not Kubernetes objects.
    pub not_objects: NotObjects,
}

/// kubectl's `--validate`: the treatment of unknown fields. Duplicate keys are always a warning
/// only, as with kubectl.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FieldValidation {
    /// Unknown fields are errors.
    #[default]
    Strict,
    /// Unknown fields are dropped with a warning, as the server drops them.
    Warn,
    /// Unknown fields are dropped.
    Ignore,
}
