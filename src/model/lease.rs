//! The lease that `ds-apply` locks a DaemonSet with, as far as a plan or a status looks at it: what it
//! remembers of templates that failed, and who holds it.

use std::collections::BTreeSet;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::NamespaceName;

/// Annotation of a DaemonSet's lease: digests of templates that failed, with commas between them,
/// the latest last.
pub const FAILED_TEMPLATES_ANNOTATION: &str = "ds-plan.dev/failed-templates";

/// The longest name of an object.
const LONGEST_NAME: usize = 253;

/// One lease that remembers something, or that a run of `ds-apply` holds or has left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// `metadata.namespace`.
    pub namespace: NamespaceName,
    /// `metadata.name`: [`lease_name`] of the DaemonSet.
    pub name: Box<str>,
    /// Digests of templates that failed.
    pub failed: BTreeSet<Box<str>>,
    /// Who holds it; `None` when it was given back.
    pub holder: Option<LockHolder>,
}

/// Who holds a DaemonSet's lock, as its lease tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder {
    /// For people: `alice on build-7 (process 4711)`.
    pub name: Box<str>,
    /// `spec.acquireTime`.
    pub since: Option<Timestamp>,
    /// `spec.renewTime`.
    pub renewed: Option<Timestamp>,
    /// `spec.leaseDurationSeconds`: how long it lasts without being renewed.
    pub lease_seconds: i64,
}

impl LockHolder {
    /// How long ago it was renewed, in seconds; `None` when the lease does not tell.
    pub fn renewed_ago(&self, now: Timestamp) -> Option<i64> {
        Some(now.duration_since(self.renewed?).as_secs().max(0))
    }

    /// Whether the run that holds it is alive, as far as can be told: its lease is renewed three
    /// times as often as it would run out. One that does not tell may be.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.renewed_ago(now).is_none_or(|ago| ago < self.lease_seconds)
    }
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
    fn a_lease_that_is_not_renewed_is_a_dead_runs() {
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        let now = at("2026-01-01T00:01:00Z");
        for (renewed, ago, live) in [
            (Some("2026-01-01T00:00:58.5Z"), Some(1), true),
            (Some("2026-01-01T00:00:45.5Z"), Some(14), true),
            (Some("2026-01-01T00:00:45Z"), Some(15), false),
            (Some("2025-01-01T00:00:00Z"), Some(31_536_060), false),
            // By a clock that is ahead of the server's.
            (Some("2026-01-01T00:01:03Z"), Some(0), true),
            (None, None, true),
        ] {
            let renewed = renewed.map(at);
            let holder = LockHolder { name: "a".into(), since: None, renewed, lease_seconds: 15 };
            assert_eq!((holder.renewed_ago(now), holder.is_live(now)), (ago, live), "{renewed:?}");
        }
    }

    #[test]
    fn digests_are_read_one_by_one() {
        for (value, want) in [("", vec![]), ("a", vec!["a"]), ("a,,b,", vec!["a", "b"])] {
            assert_eq!(failed_templates(value).collect::<Vec<_>>(), want, "{value:?}");
        }
    }
}
