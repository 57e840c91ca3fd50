//! Whose lock it is, by the leases as they are in the cluster.

use std::collections::BTreeMap;

use ds_plan::model::{DaemonSetKey, lease_name};
use ds_plan::simulator::{Kind, Objects, Seen, Store};
use jiff::{SignedDuration, Timestamp};

use crate::cluster::NAMESPACE;
use crate::people::SOMEBODY;

/// How long a lease lasts that is not renewed.
const LEASE: SignedDuration = SignedDuration::from_secs(15);

/// How long a lease that was renewed allows to send something.
const FRESH: SignedDuration = SignedDuration::from_secs(10);

/// How long a request may be under way.
const UNDER_WAY: SignedDuration = SignedDuration::from_secs(10);

/// How long a run may go on whose lock was taken away, where nothing but deletes is slow: until it
/// tries to renew it, and then until the last request is given up.
const LOST: SignedDuration = SignedDuration::from_secs(5 + 10 + 1);

/// Whose locks there are, by the name of the lease.
#[derive(Default)]
pub(crate) struct Locks {
    /// By whom each lease was written last, and when.
    written: BTreeMap<String, (String, Timestamp)>,
    /// Which leases were taken away by force: from whom, when that one had renewed it, and when.
    robbed: BTreeMap<String, Robbed>,
}

/// Whose lock was taken away.
struct Robbed {
    from: String,
    renewed: Timestamp,
    at: Timestamp,
}

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
        let name = if request.verb == "create" { name_sent(request) } else { objects.name.clone() };
        let holder = store.get(Kind::Lease, NAMESPACE, &name).map(|it| holder(&it.value()));
        let after = (holder.unwrap_or_default(), now);
        let before = self.written.insert(name, after.clone());
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
        if let Some(robbed) = self.robbed_of(user, &name) {
            let age = now.duration_since(robbed.renewed);
            return (age > FRESH).then(|| {
                format!("{user} writes on at {key}, lost its lock, and renewed it {age:#} ago")
            });
        }
        if !holder.starts_with(user.as_str()) {
            return Some(format!("{user} writes on at {key}, whose lock is {holder:?}"));
        }
        let (_, renewed) = self.written.get(&name)?;
        let age = now.duration_since(*renewed);
        (age > FRESH)
            .then(|| format!("{user} writes on at {key}, and renewed its lock {age:#} ago"))
    }

    /// When the lease of a DaemonSet runs out, unless it is renewed: its holder then gives up what
    /// it has sent.
    pub(crate) fn runs_out(&self, key: &DaemonSetKey) -> Option<Timestamp> {
        let (_, renewed) = self.written.get(&lease_name(key.name.as_str()))?;
        Some(*renewed + LEASE)
    }

    /// A change has arrived: only whoever has the lock makes any, but for what was under way when
    /// it was taken away.
    pub(crate) fn broken_on_arrival(
        &self,
        request: &Seen,
        key: &DaemonSetKey,
        store: &Store,
        now: Timestamp,
    ) -> Option<String> {
        let (user, name) = (&request.user, lease_name(key.name.as_str()));
        let holder = store.get(Kind::Lease, NAMESPACE, &name).map(|it| holder(&it.value()));
        let holder = holder.unwrap_or_default();
        let robbed = self.robbed_of(user, &name);
        let was_under_way = robbed.is_some_and(|it| now <= it.renewed + FRESH + UNDER_WAY);
        (!holder.starts_with(user.as_str()) && !was_under_way)
            .then(|| format!("{user} has written {key}, whose lock is {holder:?}"))
    }

    /// Somebody takes a lock away from whoever has it.
    pub(crate) fn taken_away(&mut self, objects: &Objects, now: Timestamp) {
        let nobody = (String::new(), now);
        let before = self.written.insert(objects.name.clone(), nobody);
        if let Some((from, renewed)) = before.filter(|(from, _)| !from.is_empty()) {
            self.robbed.insert(objects.name.clone(), Robbed { from, renewed, at: now });
        }
    }

    /// A run has ended: one whose lock was taken away does so soon.
    pub(crate) fn ended(&self, user: &str, now: Timestamp) -> Option<String> {
        let of_user = self.robbed.values().filter(|it| it.from.starts_with(user));
        let longest = of_user.map(|it| now.duration_since(it.at)).max()?;
        (longest > LOST).then(|| format!("{user} goes on {longest:#} after it lost its lock"))
    }

    fn robbed_of(&self, user: &str, lease: &str) -> Option<&Robbed> {
        self.robbed.get(lease).filter(|it| it.from.starts_with(user))
    }
}

/// The name of what is to be created: its path does not have it.
fn name_sent(request: &Seen) -> String {
    let sent: serde_json::Value = serde_json::from_slice(&request.body).unwrap_or_default();
    sent["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn holder(lease: &serde_json::Value) -> String {
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}
