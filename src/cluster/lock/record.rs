//! A lease as the server keeps it, and as we read it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::cluster::decode::lenient;
use crate::model::{DaemonSetKey, Labels, LockHolder, lease_name, null_as_default};

/// What a lease lasts when its record does not say so.
pub(super) const DEFAULT_LEASE: Duration = Duration::from_secs(15);

/// Annotation that says who holds the lock, for people and error messages.
pub(in crate::cluster) const HOLDER_ANNOTATION: &str = "ds-plan.dev/holder";

/// Who holds a lock, or wants it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The machine's name.
    pub host: String,
    /// The process.
    pub pid: u32,
    /// The user's name on that machine; empty when it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// Where the CI run can be looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Random text that no other process has, not even one of the same number in another
    /// container of the same name.
    pub id: String,
}

impl Holder {
    /// What stands in `holderIdentity`, and decides whose the lease is.
    pub(super) fn identity(&self) -> String {
        format!("{}_{}_{}", self.host, self.pid, self.id)
    }
}

/// `alice on build-7 (process 4711, https://ci.example/run/5)`.
impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, pid, user, run, id: _ } = self;
        if !user.is_empty() {
            write!(f, "{user} on ")?;
        }
        write!(f, "{host} (process {pid}")?;
        if let Some(run) = run {
            write!(f, ", {run}")?;
        }
        f.write_str(")")
    }
}

/// A DaemonSet's lease, as it was when it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseRecord {
    /// `holderIdentity`; empty when nobody holds it.
    pub(super) holder: String,
    /// `leaseDurationSeconds`.
    pub(super) lease: Duration,
    /// `leaseTransitions`.
    pub(super) transitions: i64,
    /// `acquireTime`, for people.
    pub(super) since: Option<Timestamp>,
    /// `renewTime`, for people.
    pub(super) renewed: Option<Timestamp>,
    /// `metadata.resourceVersion`: changes with every write.
    pub(super) version: String,
    /// All annotations.
    pub(super) annotations: Labels,
}

/// How the API server serves it.
#[derive(Deserialize)]
struct Wire {
    metadata: Metadata,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: LeaseSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: String,
    #[serde(default)]
    annotations: Labels,
}

/// Who holds a lease, and for how long (upstream: `LeaseSpec`).
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(in crate::cluster) struct LeaseSpec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<i64>,
    lease_transitions: Option<i64>,
    // As text: nobody's lock hangs on whether it is a time.
    acquire_time: Option<String>,
    renew_time: Option<String>,
}

impl LeaseSpec {
    fn lease(&self) -> Duration {
        let seconds = self.lease_duration_seconds.and_then(|it| u64::try_from(it).ok());
        seconds.filter(|it| *it > 0).map_or(DEFAULT_LEASE, Duration::from_secs)
    }
}

fn time(text: Option<&String>) -> Option<Timestamp> {
    lenient::clamped(text?).ok()
}

/// Who holds a lease: what our annotation on it says, if it speaks of the same holder; else what
/// the lease itself says. `None` when nobody does.
pub(in crate::cluster) fn lock_holder(
    spec: &LeaseSpec,
    annotation: Option<&str>,
) -> Option<LockHolder> {
    let identity = spec.holder_identity.as_deref().filter(|it| !it.is_empty())?;
    Some(LockHolder {
        name: named(identity, annotation).into(),
        since: time(spec.acquire_time.as_ref()),
        renewed: time(spec.renew_time.as_ref()),
        lease_seconds: told_seconds(spec.lease()),
    })
}

/// How long a lease counts: for no longer than ours.
fn told_seconds(lease: Duration) -> i64 {
    i64::try_from(lease.min(DEFAULT_LEASE).as_secs()).unwrap_or(i64::MAX)
}

fn named(identity: &str, annotation: Option<&str>) -> String {
    let told = annotation.and_then(|text| serde_json::from_str::<Holder>(text).ok());
    match told.filter(|told| told.identity() == identity) {
        Some(holder) => holder.to_string(),
        None => identity.to_owned(),
    }
}

impl LeaseRecord {
    pub(in crate::cluster) fn read(json: &[u8]) -> Result<Self, serde_json::Error> {
        let Wire { metadata, spec } = serde_json::from_slice(json)?;
        Ok(Self {
            lease: spec.lease(),
            since: time(spec.acquire_time.as_ref()),
            renewed: time(spec.renew_time.as_ref()),
            holder: spec.holder_identity.unwrap_or_default(),
            transitions: spec.lease_transitions.unwrap_or_default(),
            version: metadata.resource_version,
            annotations: metadata.annotations,
        })
    }

    /// Whether somebody holds it, or held it until it ran out.
    pub fn is_held(&self) -> bool {
        !self.holder.is_empty()
    }

    /// Who holds it: what the annotation says, if it speaks of the same holder; else what the
    /// lease itself says.
    pub fn holder(&self) -> Option<String> {
        if !self.is_held() {
            return None;
        }
        Some(named(&self.holder, self.annotations.get(HOLDER_ANNOTATION)))
    }

    /// Who holds it, since when, and when it was renewed.
    pub fn lock_holder(&self) -> Option<LockHolder> {
        Some(LockHolder {
            name: self.holder()?.into(),
            since: self.since,
            renewed: self.renewed,
            lease_seconds: told_seconds(self.lease),
        })
    }

    /// The value of an annotation, such as what failed before.
    pub fn note(&self, key: &str) -> Option<&str> {
        self.annotations.get(key)
    }
}

/// A lease that `holder` begins to hold.
pub(super) fn new_lease(key: &DaemonSetKey, holder: &Holder, lease: Duration, now: &str) -> Value {
    json!({
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "namespace": key.namespace,
            "name": lease_name(key.name.as_str()),
            "annotations": annotations(holder),
        },
        "spec": {
            "holderIdentity": holder.identity(),
            "leaseDurationSeconds": seconds(lease),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": 0,
        },
    })
}

/// What makes `holder` the holder of a lease that was `before`.
pub(super) fn taken(before: &LeaseRecord, holder: &Holder, lease: Duration, now: &str) -> Value {
    json!({
        "metadata": {"resourceVersion": before.version, "annotations": annotations(holder)},
        "spec": {
            "holderIdentity": holder.identity(),
            "leaseDurationSeconds": seconds(lease),
            "acquireTime": now,
            "renewTime": now,
            "leaseTransitions": next(before.transitions),
        },
    })
}

/// What says that the holder is still there.
pub(super) fn renewed(before: &LeaseRecord, now: &str) -> Value {
    json!({
        "metadata": {"resourceVersion": before.version},
        "spec": {"renewTime": now},
    })
}

/// What gives a lease back. What is noted in it stays.
pub(super) fn released(before: &LeaseRecord) -> Value {
    json!({
        "metadata": {
            "resourceVersion": before.version,
            "annotations": {HOLDER_ANNOTATION: null},
        },
        "spec": {"holderIdentity": null},
    })
}

/// What notes something in a lease; `None` takes the note away.
pub(super) fn noted(before: &LeaseRecord, notes: &BTreeMap<&str, Option<&str>>) -> Value {
    json!({"metadata": {"resourceVersion": before.version, "annotations": notes}})
}

/// The server keeps it in 32 bits, and whoever writes leases may have written the greatest number.
fn next(transitions: i64) -> i64 {
    transitions.saturating_add(1).clamp(0, i32::MAX.into())
}

fn annotations(holder: &Holder) -> Value {
    json!({HOLDER_ANNOTATION: json!(holder).to_string()})
}

/// Whole seconds are all that a lease can say; it may last longer than it was asked to.
fn seconds(lease: Duration) -> u64 {
    lease.as_secs() + u64::from(lease.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder() -> Holder {
        Holder {
            host: "build-7".to_owned(),
            pid: 5,
            user: String::new(),
            run: None,
            id: "abc".to_owned(),
        }
    }

    #[test]
    fn who_holds_a_lease_is_told_as_well_as_can_be() {
        let told = json!(holder()).to_string();
        for (identity, annotation, want) in [
            ("build-7_5_abc", told.as_str(), Some("build-7 (process 5)")),
            // The annotation speaks of somebody else, or is no JSON.
            ("other_1_x", told.as_str(), Some("other_1_x")),
            ("other_1_x", "{", Some("other_1_x")),
            ("", told.as_str(), None),
        ] {
            let lease = json!({
                "metadata": {"resourceVersion": "7", "annotations": {HOLDER_ANNOTATION: annotation}},
                "spec": {"holderIdentity": identity},
            });
            let record = LeaseRecord::read(lease.to_string().as_bytes()).unwrap();
            assert_eq!(record.holder().as_deref(), want, "{identity}");
        }
        let full =
            Holder { user: "alice".to_owned(), run: Some("https://r/1".to_owned()), ..holder() };
        assert_eq!(full.to_string(), "alice on build-7 (process 5, https://r/1)");
    }

    #[test]
    fn what_a_lease_leaves_out_is_assumed() {
        for (spec, lease, transitions) in [
            (json!(null), 15, 0),
            (json!({"leaseDurationSeconds": null}), 15, 0),
            (json!({"leaseDurationSeconds": 0}), 15, 0),
            (json!({"leaseDurationSeconds": 3, "leaseTransitions": 4}), 3, 4),
        ] {
            let json = json!({"metadata": {"resourceVersion": "7"}, "spec": spec}).to_string();
            let record = LeaseRecord::read(json.as_bytes()).unwrap();
            assert!(!record.is_held());
            let got = (record.lease.as_secs(), record.transitions, record.version.as_str());
            assert_eq!(got, (lease, transitions, "7"), "{json}");
        }
        assert!(LeaseRecord::read(b"{}").is_err(), "without a version it cannot be written");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let key = DaemonSetKey::new("team", "agent");
        let lease = Duration::from_millis(2_500);
        let mut written = new_lease(&key, &holder(), lease, "2026-01-01T00:00:00.000000Z");
        written["metadata"]["resourceVersion"] = "1".into();
        let first = LeaseRecord::read(written.to_string().as_bytes()).unwrap();
        assert_eq!((first.holder.as_str(), first.lease), ("build-7_5_abc", Duration::from_secs(3)));
        for patch in [
            taken(&first, &holder(), lease, "x"),
            renewed(&first, "x"),
            released(&first),
            noted(&first, &BTreeMap::from([("a", None)])),
        ] {
            assert_eq!(patch["metadata"]["resourceVersion"], "1", "{patch}");
        }
        assert_eq!(taken(&first, &holder(), lease, "x")["spec"]["leaseTransitions"], 1);
        assert_eq!(released(&first)["spec"], json!({"holderIdentity": null}));
    }
}
