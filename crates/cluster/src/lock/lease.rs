//! The Lease object of a lock: reads it, and builds the patches that change it.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::decode::lenient;
use daemonset::model::{DaemonSetKey, Labels, LockHolder, lease_name, null_as_default};

/// The lease duration if the object has none.
pub(super) const DEFAULT_LEASE: Duration = Duration::from_secs(15);

/// Annotation that describes the holder of the lock, for users and error messages.
pub(crate) const HOLDER_ANNOTATION: &str = "ds-plan.dev/holder";

/// The process that holds a lock or waits for it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The host name.
    pub host: String,
    /// The process id.
    pub pid: u32,
    /// The user's name on that host; empty when unknown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub user: String,
    /// The URL of the CI run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// Random text that is unique to the process, even among processes of the same id in containers
    /// of the same name.
    pub id: String,
}

impl Holder {
    /// The value of `holderIdentity`, which identifies the holder.
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

/// A DaemonSet's lease at the time it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LiveLease {
    /// `holderIdentity`; empty when the lease is not held.
    pub(super) holder: String,
    /// `leaseDurationSeconds`.
    pub(super) lease: Duration,
    /// `leaseTransitions`.
    pub(super) transitions: i64,
    /// `acquireTime`, for display.
    pub(super) since: Option<Timestamp>,
    /// `renewTime`, for display.
    pub(super) renewed: Option<Timestamp>,
    /// `metadata.uid`; empty if it is not known.
    pub(super) uid: String,
    /// `metadata.resourceVersion`: changes with every write.
    pub(super) version: String,
    /// All annotations.
    pub(super) annotations: Labels,
}

/// The JSON of the API server.
#[derive(Deserialize)]
struct Wire {
    metadata: Metadata,
    #[serde(default, deserialize_with = "null_as_default")]
    spec: LeaseSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    #[serde(default)]
    uid: String,
    resource_version: String,
    #[serde(default)]
    annotations: Labels,
}

/// The spec of a lease (upstream: `LeaseSpec`).
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct LeaseSpec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<i64>,
    lease_transitions: Option<i64>,
    // Text, because the lock does not depend on a valid time.
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

/// The holder of a lease: from our annotation, if it describes the same identity; else the
/// identity itself. `None` when the lease is not held.
pub(crate) fn lock_holder(spec: &LeaseSpec, annotation: Option<&str>) -> Option<LockHolder> {
    let identity = spec.holder_identity.as_deref().filter(|it| !it.is_empty())?;
    Some(LockHolder {
        name: named(identity, annotation).into(),
        since: time(spec.acquire_time.as_ref()),
        renewed: time(spec.renew_time.as_ref()),
        lease_seconds: reported_seconds(spec.lease()),
    })
}

/// The lease duration that counts: at most our own.
fn reported_seconds(lease: Duration) -> i64 {
    i64::try_from(lease.min(DEFAULT_LEASE).as_secs()).unwrap_or(i64::MAX)
}

fn named(identity: &str, annotation: Option<&str>) -> String {
    let reported = annotation.and_then(|text| serde_json::from_str::<Holder>(text).ok());
    match reported.filter(|reported| reported.identity() == identity) {
        Some(holder) => holder.to_string(),
        None => identity.to_owned(),
    }
}

impl LiveLease {
    pub(crate) fn read(json: &[u8]) -> Result<Self, serde_json::Error> {
        let Wire { metadata, spec } = serde_json::from_slice(json)?;
        Ok(Self {
            lease: spec.lease(),
            since: time(spec.acquire_time.as_ref()),
            renewed: time(spec.renew_time.as_ref()),
            holder: spec.holder_identity.unwrap_or_default(),
            transitions: spec.lease_transitions.unwrap_or_default(),
            uid: metadata.uid,
            version: metadata.resource_version,
            annotations: metadata.annotations,
        })
    }

    /// Whether the lease is held, or was held until it expired.
    pub fn is_held(&self) -> bool {
        !self.holder.is_empty()
    }

    /// The holder: from the annotation, if it describes the same identity; else the identity
    /// itself.
    pub fn holder(&self) -> Option<String> {
        if !self.is_held() {
            return None;
        }
        Some(named(&self.holder, self.annotations.get(HOLDER_ANNOTATION)))
    }

    /// The holder, with the times of acquiring and renewing.
    pub fn lock_holder(&self) -> Option<LockHolder> {
        Some(LockHolder {
            name: self.holder()?.into(),
            since: self.since,
            renewed: self.renewed,
            lease_seconds: reported_seconds(self.lease),
        })
    }

    /// The value of an annotation, such as the templates that failed before.
    pub fn note(&self, key: &str) -> Option<&str> {
        self.annotations.get(key)
    }
}

/// A new lease held by `holder`.
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

/// The patch that makes `holder` the holder of the lease `before`.
pub(super) fn taken(before: &LiveLease, holder: &Holder, lease: Duration, now: &str) -> Value {
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

/// The patch that renews a lease.
pub(super) fn renewed(before: &LiveLease, now: &str) -> Value {
    json!({
        "metadata": {"resourceVersion": before.version},
        "spec": {"renewTime": now},
    })
}

/// The patch that releases a lease. Its other annotations stay.
pub(super) fn released(before: &LiveLease) -> Value {
    json!({
        "metadata": {
            "resourceVersion": before.version,
            "annotations": {HOLDER_ANNOTATION: null},
        },
        "spec": {"holderIdentity": null},
    })
}

/// The patch that sets annotations of a lease; `None` removes one.
pub(super) fn noted(before: &LiveLease, notes: &BTreeMap<&str, Option<&str>>) -> Value {
    json!({"metadata": {"resourceVersion": before.version, "annotations": notes}})
}

/// The next count of transitions. The server stores 32 bits, and another client may have written
/// the greatest number.
fn next(transitions: i64) -> i64 {
    transitions.saturating_add(1).clamp(0, i32::MAX.into())
}

fn annotations(holder: &Holder) -> Value {
    json!({HOLDER_ANNOTATION: json!(holder).to_string()})
}

/// The duration in whole seconds, rounded up: a lease has no fractions.
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
    fn the_holder_is_read_from_the_annotation_if_it_matches() {
        let reported = json!(holder()).to_string();
        for (identity, annotation, want) in [
            ("build-7_5_abc", reported.as_str(), Some("build-7 (process 5)")),
            // The annotation describes another holder, or is not JSON.
            ("other_1_x", reported.as_str(), Some("other_1_x")),
            ("other_1_x", "{", Some("other_1_x")),
            ("", reported.as_str(), None),
        ] {
            let lease = json!({
                "metadata": {"resourceVersion": "7", "annotations": {HOLDER_ANNOTATION: annotation}},
                "spec": {"holderIdentity": identity},
            });
            let live = LiveLease::read(lease.to_string().as_bytes()).unwrap();
            assert_eq!(live.holder().as_deref(), want, "{identity}");
        }
        let full =
            Holder { user: "alice".to_owned(), run: Some("https://r/1".to_owned()), ..holder() };
        assert_eq!(full.to_string(), "alice on build-7 (process 5, https://r/1)");
    }

    #[test]
    fn missing_fields_of_a_lease_have_defaults() {
        for (spec, lease, transitions) in [
            (json!(null), 15, 0),
            (json!({"leaseDurationSeconds": null}), 15, 0),
            (json!({"leaseDurationSeconds": 0}), 15, 0),
            (json!({"leaseDurationSeconds": 3, "leaseTransitions": 4}), 3, 4),
        ] {
            let json = json!({"metadata": {"resourceVersion": "7"}, "spec": spec}).to_string();
            let live = LiveLease::read(json.as_bytes()).unwrap();
            assert!(!live.is_held());
            let got = (live.lease.as_secs(), live.transitions, live.version.as_str());
            assert_eq!(got, (lease, transitions, "7"), "{json}");
        }
        assert!(LiveLease::read(b"{}").is_err(), "it needs a resource version");
    }

    #[test]
    fn a_written_lease_can_be_read() {
        let key = DaemonSetKey::new("team", "agent");
        let lease = Duration::from_millis(2_500);
        let mut written = new_lease(&key, &holder(), lease, "2026-01-01T00:00:00.000000Z");
        written["metadata"]["resourceVersion"] = "1".into();
        let first = LiveLease::read(written.to_string().as_bytes()).unwrap();
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
