//! The holders of the locks, according to the leases in the cluster.

use std::collections::BTreeMap;

use daemonset::model::{DaemonSetKey, lease_name};
use embedded::{Kind, Objects, Seen, Store};
use jiff::{SignedDuration, Timestamp};

use crate::cluster::NAMESPACE;
use crate::external_actors::EXTERNAL_USER;

/// How long a lease is valid without a renewal.
const LEASE: SignedDuration = SignedDuration::from_secs(15);

/// How long after a renewal its holder may send requests.
const FRESH: SignedDuration = SignedDuration::from_secs(10);

/// How long a request may be in flight.
const UNDER_WAY: SignedDuration = SignedDuration::from_secs(10);

/// How long a run may continue after it lost its lock, if only deletes are slow: until it tries to
/// renew the lease, plus the timeout of the last request.
const LOST: SignedDuration = SignedDuration::from_secs(5 + 10 + 1);

/// The locks, by the name of the lease.
#[derive(Default)]
pub(crate) struct Locks {
    /// The last writer of each lease, and the time.
    written: BTreeMap<String, (String, Timestamp)>,
    /// The leases that were taken by force.
    lock_lost: BTreeMap<String, LockLoss>,
}

/// A lock that was taken by force: the previous holder, its last renewal, and the time of the loss.
struct LockLoss {
    from: String,
    renewed: Timestamp,
    at: Timestamp,
}

impl Locks {
    /// A lease was written: checks that no valid lease of another holder was taken.
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
        is_taken.then(|| format!("{} took the lock of {old}, renewed {age:#} ago", request.user))
    }

    /// A change is sent: checks that its sender has the lock, and that it has not expired.
    pub(crate) fn broken(
        &self,
        request: &Seen,
        key: &DaemonSetKey,
        store: &Store,
        now: Timestamp,
    ) -> Option<String> {
        let user = &request.user;
        if user == EXTERNAL_USER {
            return None;
        }
        let name = lease_name(key.name.as_str());
        let lease = store.get(Kind::Lease, NAMESPACE, &name);
        let holder = lease.map(|it| holder(&it.value())).unwrap_or_default();
        if let Some(lock_lost) = self.lock_loss_of(user, &name) {
            let age = now.duration_since(lock_lost.renewed);
            return (age > FRESH)
                .then(|| format!("{user} wrote {key} without its lock, renewed {age:#} ago"));
        }
        if !holder.starts_with(user.as_str()) {
            return Some(format!("{user} wrote {key}, locked by {holder:?}"));
        }
        let (_, renewed) = self.written.get(&name)?;
        let age = now.duration_since(*renewed);
        (age > FRESH).then(|| format!("{user} wrote {key}, and renewed its lock {age:#} ago"))
    }

    /// When the lease of a DaemonSet expires without a renewal: its holder then gives up its
    /// requests in flight.
    pub(crate) fn runs_out(&self, key: &DaemonSetKey) -> Option<Timestamp> {
        let (_, renewed) = self.written.get(&lease_name(key.name.as_str()))?;
        Some(*renewed + LEASE)
    }

    /// A change has arrived: checks that its sender has the lock, or had it when the request was
    /// sent.
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
        let lock_lost = self.lock_loss_of(user, &name);
        let was_under_way = lock_lost.is_some_and(|it| now <= it.renewed + FRESH + UNDER_WAY);
        (!holder.starts_with(user.as_str()) && !was_under_way)
            .then(|| format!("a write of {user} to {key} arrived, locked by {holder:?}"))
    }

    /// Records that another client takes a lock by force.
    pub(crate) fn taken_away(&mut self, objects: &Objects, now: Timestamp) {
        let nobody = (String::new(), now);
        let before = self.written.insert(objects.name.clone(), nobody);
        if let Some((from, renewed)) = before.filter(|(from, _)| !from.is_empty()) {
            self.lock_lost.insert(objects.name.clone(), LockLoss { from, renewed, at: now });
        }
    }

    /// A run has ended: checks that it did not continue for too long after it lost its lock.
    pub(crate) fn ended(&self, user: &str, now: Timestamp) -> Option<String> {
        let of_user = self.lock_lost.values().filter(|it| it.from.starts_with(user));
        let longest = of_user.map(|it| now.duration_since(it.at)).max()?;
        (longest > LOST).then(|| format!("{user} continued for {longest:#} after it lost its lock"))
    }

    fn lock_loss_of(&self, user: &str, lease: &str) -> Option<&LockLoss> {
        self.lock_lost.get(lease).filter(|it| it.from.starts_with(user))
    }
}

/// The name of the object to create: it is in the body, not in the path.
fn name_sent(request: &Seen) -> String {
    let sent: serde_json::Value = serde_json::from_slice(&request.body).unwrap_or_default();
    sent["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn holder(lease: &serde_json::Value) -> String {
    lease["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
}
