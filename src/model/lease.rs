//! The lease that `ds-apply` locks a DaemonSet with, as far as a plan looks at it: what it remembers
//! of templates that failed.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use super::NamespaceName;

/// Annotation of a DaemonSet's lease: digests of templates that failed, with commas between them,
/// the latest last.
pub const FAILED_TEMPLATES_ANNOTATION: &str = "ds-plan.dev/failed-templates";

/// The longest name of an object.
const LONGEST_NAME: usize = 253;

/// One lease that remembers something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// `metadata.namespace`.
    pub namespace: NamespaceName,
    /// `metadata.name`: [`lease_name`] of the DaemonSet.
    pub name: Box<str>,
    /// Digests of templates that failed.
    pub failed: BTreeSet<Box<str>>,
}

/// The digests in the value of [`FAILED_TEMPLATES_ANNOTATION`].
pub fn failed_templates(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').filter(|digest| !digest.is_empty())
}

/// The name of a DaemonSet's lease. Two DaemonSets never share one: what does not fit is digested,
/// and begins differently from what does.
pub fn lease_name(daemon_set: &str) -> String {
    let plain = format!("ds-plan-{daemon_set}");
    if plain.len() <= LONGEST_NAME {
        return plain;
    }
    let digest = Sha256::digest(daemon_set);
    digest.iter().fold("ds-plan.".to_owned(), |name, byte| format!("{name}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_and_never_meet() {
        let longest_plain = "a".repeat(LONGEST_NAME - "ds-plan-".len());
        let too_long = format!("{longest_plain}a");
        assert_eq!(lease_name("agent"), "ds-plan-agent");
        assert_eq!(lease_name(&longest_plain), format!("ds-plan-{longest_plain}"));
        let digested = lease_name(&too_long);
        assert!(digested.len() <= LONGEST_NAME && digested.starts_with("ds-plan."), "{digested}");
        assert_ne!(digested, lease_name(&format!("{longest_plain}b")));
        // Not even a DaemonSet that is called like another one's lease.
        assert_ne!(digested, lease_name(&digested));
    }

    #[test]
    fn digests_are_read_one_by_one() {
        for (value, want) in [("", vec![]), ("a", vec!["a"]), ("a,,b,", vec!["a", "b"])] {
            assert_eq!(failed_templates(value).collect::<Vec<_>>(), want, "{value:?}");
        }
    }
}
