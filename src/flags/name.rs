//! DaemonSets as users name them on the command line: as in kubectl, or `NAMESPACE/NAME`.

use std::str::FromStr;

use crate::error::Error;
use daemonset::model::{DaemonSetKey, NamespaceName};

/// How the help shows a name.
pub(crate) const NAME: &str = "NAME";

/// A DaemonSet as it was named: `NAME`, `ds/NAME` or `NAMESPACE/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GivenName {
    /// The namespace before the slash; `None` for `NAME` and `ds/NAME`.
    namespace: Option<NamespaceName>,
    name: String,
    /// Whether only the name was given, with neither a resource nor a namespace before it.
    is_bare: bool,
}

/// The resource of DaemonSets as kubectl accepts it before a slash, without the group.
const RESOURCES: [&str; 3] = ["ds", "daemonset", "daemonsets"];

/// What can follow the resource: nothing, the group, or version and group.
const GROUPS: [&str; 3] = ["", ".apps", ".v1.apps"];

/// Extensions of files; a name that ends in one is taken for a file.
const FILES: [&str; 3] = [".yaml", ".yml", ".json"];

/// Error: the text names no DaemonSet.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NameError {
    #[error("`{0}` is not of the form NAME, ds/NAME or NAMESPACE/NAME")]
    Form(String),
    #[error("`{0}` is a file, not a DaemonSet; to read manifests from it, use `-f {0}`")]
    File(String),
}

impl FromStr for GivenName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = || NameError::Form(text.to_owned());
        let parts: Vec<&str> = text.split('/').collect();
        if is_file(text) && (parts.len() == 1 || text.starts_with(['.', '/'])) {
            return Err(NameError::File(text.to_owned()));
        }
        if parts.iter().any(|part| part.is_empty()) {
            return Err(form());
        }
        let (namespace, name) = match parts[..] {
            [name] => (None, name),
            [resource, name] if is_resource(resource) => (None, name),
            [namespace, name] => (Some(namespace.into()), name),
            _ => return Err(form()),
        };
        Ok(Self { namespace, name: name.to_owned(), is_bare: parts.len() == 1 })
    }
}

/// Whether a name ends as the name of a file does.
fn is_file(text: &str) -> bool {
    FILES.iter().any(|end| text.ends_with(end))
}

/// Whether this is `ds`, `daemonset` or `daemonsets`, maybe with version and group. As in kubectl,
/// case does not matter; a namespace of that name needs `-n`.
fn is_resource(word: &str) -> bool {
    let word = word.to_lowercase();
    let forms = |resource: &str| GROUPS.iter().any(|group| word == format!("{resource}{group}"));
    RESOURCES.into_iter().any(forms)
}

impl GivenName {
    /// The name, if it was given alone: it could also be a mistyped command.
    pub(crate) fn bare(&self) -> Option<&str> {
        self.is_bare.then_some(&self.name)
    }

    /// The DaemonSet, with the namespace of the name, of `-n`, or the default one.
    ///
    /// # Errors
    /// The name has another namespace than `-n`.
    pub(crate) fn key(
        &self,
        flag: Option<&NamespaceName>,
        default: &NamespaceName,
    ) -> Result<DaemonSetKey, Error> {
        let Self { namespace, name, is_bare: _ } = self;
        let key = |namespace: &NamespaceName| DaemonSetKey::new(namespace.as_str(), name.as_str());
        match (namespace, flag) {
            (Some(own), Some(flag)) if own != flag => {
                Err(Error::OtherNamespace { name: key(own), namespace: flag.clone() })
            }
            (Some(own), _) => Ok(key(own)),
            (None, flag) => Ok(key(flag.unwrap_or(default))),
        }
    }
}

/// The DaemonSets that were named: each in the namespace of its name, of `-n` (`flag`), or in the
/// default one.
///
/// # Errors
/// A name has another namespace than `-n`.
pub(crate) fn keys(
    names: &[GivenName],
    flag: Option<&NamespaceName>,
    default: &NamespaceName,
) -> Result<Vec<DaemonSetKey>, Error> {
    names.iter().map(|name| name.key(flag, default)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str, flag: Option<&str>) -> Result<String, String> {
        let given: GivenName = text.parse().map_err(|error: NameError| error.to_string())?;
        let flag = flag.map(NamespaceName::from);
        let key = given.key(flag.as_ref(), &"context".into());
        key.map(|key| key.to_string()).map_err(|error| error.to_string())
    }

    #[test]
    fn names_are_those_of_kubectl_or_have_their_namespace() {
        for (text, flag, want) in [
            ("agent", None, "context/agent"),
            ("agent", Some("logging"), "logging/agent"),
            ("ds/agent", None, "context/agent"),
            ("DS/agent", None, "context/agent"),
            ("daemonset/agent", Some("logging"), "logging/agent"),
            ("daemonsets/agent", Some("logging"), "logging/agent"),
            ("daemonset.apps/agent", Some("logging"), "logging/agent"),
            ("daemonsets.apps/agent", Some("logging"), "logging/agent"),
            ("daemonsets.v1.apps/agent", Some("logging"), "logging/agent"),
            ("ds/good.yaml", None, "context/good.yaml"),
            ("logging/agent", None, "logging/agent"),
            ("logging/agent", Some("logging"), "logging/agent"),
        ] {
            assert_eq!(key(text, flag).as_deref(), Ok(want), "{text}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for (text, flag, want) in [
            ("", None, "`` is not of the form NAME, ds/NAME or NAMESPACE/NAME"),
            ("/agent", None, "`/agent` is not of the form"),
            ("logging/", None, "`logging/` is not of the form"),
            ("logging/ds/agent", None, "`logging/ds/agent` is not of the form"),
            ("agent.yaml", None, "`agent.yaml` is a file, not a DaemonSet"),
            ("/tmp/agent.yaml", None, "`/tmp/agent.yaml` is a file, not a DaemonSet"),
            ("./agent.yaml", None, "`./agent.yaml` is a file, not a DaemonSet"),
            ("../deploy/agent.yml", None, "`../deploy/agent.yml` is a file, not a DaemonSet"),
            ("logging/agent", Some("default"), "logging/agent is not in the namespace of -n"),
        ] {
            let error = key(text, flag).unwrap_err();
            assert!(error.starts_with(want), "{text}: {error}");
        }
    }
}
