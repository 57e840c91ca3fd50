//! The lease with which `ds-apply` locks a DaemonSet, as far as plans and status need it: the
//! recorded failed templates, the progress of steps, and the holder.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{NamespaceName, StepsNote};

/// Annotation of a DaemonSet's lease: digests of failed templates, separated by commas, the latest
/// last.
pub const FAILED_TEMPLATES_ANNOTATION: &str = "ds-plan.dev/failed-templates";

/// A lease that records failed templates, or that a run of `ds-apply` holds or has left behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// `metadata.namespace`.
    pub namespace: NamespaceName,
    /// `metadata.name`: [`lease_name`](super::lease_name) of the DaemonSet.
    pub name: Box<str>,
    /// Digests of failed templates.
    pub failed: BTreeSet<Box<str>>,
    /// What its rollout has noted about steps.
    pub steps: Option<StepsNote>,
    /// Its holder; `None` if it was released.
    pub holder: Option<LockHolder>,
}

/// The holder of a DaemonSet's lock, as recorded in its lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder {
    /// Name for display: `alice on build-7 (process 4711)`.
    pub name: Box<str>,
    /// `spec.acquireTime`.
    pub since: Option<Timestamp>,
    /// `spec.renewTime`.
    pub renewed: Option<Timestamp>,
    /// `spec.leaseDurationSeconds`: the time after which it expires without renewal.
    pub lease_seconds: i64,
}

impl LockHolder {
    /// Seconds since it was renewed; `None` if the lease has no renew time.
    pub fn renewed_ago(&self, now: Timestamp) -> Option<i64> {
        Some(now.duration_since(self.renewed?).as_secs().max(0))
    }

    /// Whether the run that holds it is probably alive: a run renews its lease three times per
    /// lease duration. A lease without a renew time counts as alive.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.renewed_ago(now).is_none_or(|ago| ago < self.lease_seconds)
    }
}

/// The digests in the value of [`FAILED_TEMPLATES_ANNOTATION`].
pub fn failed_templates(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').filter(|digest| !digest.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_that_is_not_renewed_belongs_to_a_dead_run() {
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        let now = at("2026-01-01T00:01:00Z");
        for (renewed, ago, live) in [
            (Some("2026-01-01T00:00:58.5Z"), Some(1), true),
            (Some("2026-01-01T00:00:45.5Z"), Some(14), true),
            (Some("2026-01-01T00:00:45Z"), Some(15), false),
            (Some("2025-01-01T00:00:00Z"), Some(31_536_060), false),
            // Renewed by a clock ahead of the server's.
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
