//! Whose lock it is, by the leases as they are in the cluster.

use std::collections::BTreeMap;

use ds_plan::model::{DaemonSetKey, lease_name};
use ds_plan::simulator::{Kind, Objects, Seen, Store};
use jiff::{SignedDuration, Timestamp};

use crate::cluster::NAMESPACE;
use crate::people::SOMEBODY;

/// How long a lease lasts that is not renewed.
const LEASE: SignedDuration = SignedDuration::from_secs(15);

/// By whom each lease was written last, and when.
#[derive(Default)]
pub(crate) struct Locks(BTreeMap<String, (String, Timestamp)>);

impl Locks {
    /// A lease was written: nobody takes one that is still good.
    pub(crate) fn written(
        &mut self,
        request: &Seen,
        objects: &Objects,
        store: &Store,
        now: Timestamp,
    ) -> Option<String> {
        if objects.kind != Kind::Lease {
            return None;
        }
        let name = &objects.name;
        let holder = store.get(Kind::Lease, NAMESPACE, name).map(|it| holder(&it.value()));
        let after = (holder.unwrap_or_default(), now);
        let before = self.0.insert(name.clone(), after.clone());
        let (old, at) = before.filter(|(old, _)| !old.is_empty() && *old != after.0)?;
        let age = now.duration_since(at);
        let is_taken = !old.starts_with(&request.user) && age < LEASE;
        is_taken.then(|| format!("{} takes the lock of {old} after {age:#}", request.user))
    }

    /// A change is sent: only whoever has the lock does that, and not after it has run out.
    pub(crate) fn broken(
        &self,
        request: &Seen,
        key: &DaemonSetKey,
        store: &Store,
        now: Timestamp,
    ) -> Option<String> {
        let user = &request.user;
        if user == SOMEBODY {
            return None;
        }
        let name = lease_name(key.name.as_str());
        let lease = store.get(Kind::Lease, NAMESPACE, &name);
        let holder = lease.map(|it| holder(&it.value())).unwrap_or_default();
        if !holder.starts_with(user.as_str()) {
            return Some(format!("{user} writes on at {key}, whose lock is {holder:?}"));
        }
        let (_, renewed) = self.0.get(&name)?;
        let age = now.duration_since(*renewed);
        (age >= LEASE)
            .then(|| format!("{user} writes on at {key}, and renewed its lock {age:#} ago"))
    }
}

fn holder(lease: &serde_json::Value) -> String {
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}
