//! Writes that are not observed yet (upstream: `ControllerExpectations`, and the gate that waits
//! for a controller's own writes). Until they are, a sync would repeat them.

use jiff::{SignedDuration, Timestamp};

use daemonset::model::{
    DaemonSetStatus, Pod, PodName, Revision, RevisionName, RevisionNumber, Snapshot, TextMap,
    TextSet, Uid,
};

/// Time after which a write is no longer waited for: another client has undone it. Upstream waits
/// five minutes; here every watch is known to be current.
const TIMEOUT: SignedDuration = SignedDuration::from_secs(30);

/// One visible effect of a write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// A pod exists.
    Pod(PodName),
    /// A pod is terminating or gone.
    PodGoing(Uid),
    /// A pod has this controller, or none.
    PodOf(Uid, Option<Uid>),
    /// A revision exists.
    Revision(RevisionName),
    /// A revision is gone.
    RevisionGone(Uid),
    /// A revision has this number.
    Number(Uid, RevisionNumber),
    /// A revision has this controller, or none.
    RevisionOf(Uid, Option<Uid>),
    /// The record has this status.
    Status(DaemonSetStatus),
}

/// The writes that are waited for, and since when.
#[derive(Default)]
pub(super) struct PendingWrites {
    written: Vec<Written>,
    since: Option<Timestamp>,
}

impl PendingWrites {
    /// Waits for these writes.
    pub(super) fn expect(&mut self, written: Vec<Written>, now: Timestamp) {
        self.written = written;
        self.since = Some(now);
    }

    /// Whether all writes are observed, or the timeout is over.
    pub(super) fn is_seen(&mut self, snapshot: &Snapshot, now: Timestamp) -> bool {
        if self.written.is_empty() {
            return true;
        }
        // There may be thousands of pods, and hundreds of writes to wait for.
        let pods: TextMap<&Uid, &Pod> = snapshot.pods.iter().map(|pod| (&pod.uid, pod)).collect();
        let names: TextSet<&PodName> = snapshot.pods.iter().map(|pod| &pod.name).collect();
        self.written.retain(|written| !written.is_in(snapshot, &pods, &names));
        let waited = self.since.map(|since| now.duration_since(since));
        if waited.is_some_and(|waited| waited > TIMEOUT) {
            self.written.clear();
        }
        self.written.is_empty()
    }
}

impl Written {
    fn is_in(
        &self,
        snapshot: &Snapshot,
        pods: &TextMap<&Uid, &Pod>,
        names: &TextSet<&PodName>,
    ) -> bool {
        let pod = |uid: &Uid| pods.get(uid);
        let revision = |uid: &Uid| snapshot.revisions.iter().find(|it| it.uid == *uid);
        match self {
            Self::Pod(name) => names.contains(name),
            Self::PodGoing(uid) => pod(uid).is_none_or(|pod| pod.terminating),
            Self::PodOf(uid, owner) => pod(uid)
                .is_none_or(|pod| pod.controller.as_ref().map(|it| &it.uid) == owner.as_ref()),
            Self::Revision(name) => snapshot.revisions.iter().any(|it| it.name == *name),
            Self::Status(status) => snapshot.daemon_sets.iter().all(|it| it.status == *status),
            Self::RevisionGone(uid) => revision(uid).is_none(),
            Self::Number(uid, number) => revision(uid).is_none_or(|it| it.number == *number),
            Self::RevisionOf(uid, owner) => revision(uid).is_none_or(|it: &Revision| {
                it.controller.as_ref().map(|it| &it.uid) == owner.as_ref()
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemonset::controller::test_cluster::{Cluster, OURS, at};

    #[test]
    fn a_sync_waits_until_its_writes_are_seen_or_it_has_been_too_long() {
        let mut cluster = Cluster::of(1);
        cluster.add_pods("node-0", OURS, 1);
        let mut snapshot = cluster.snapshot();
        let (uid, name) = (snapshot.pods[0].uid.clone(), snapshot.pods[0].name.clone());
        for (written, seen) in [
            (Written::Pod(name), true),
            (Written::Pod("another".into()), false),
            (Written::PodGoing(uid.clone()), false),
            (Written::PodGoing("gone".into()), true),
            (Written::PodOf(uid.clone(), Some("uid-foo".into())), true),
            (Written::PodOf(uid.clone(), None), false),
            (Written::Revision("none".into()), false),
            (Written::RevisionGone("none".into()), true),
            (Written::Status(DaemonSetStatus::default()), true),
        ] {
            let mut pending_writes = PendingWrites::default();
            pending_writes.expect(vec![written.clone()], at(0));
            assert_eq!(pending_writes.is_seen(&snapshot, at(30)), seen, "{written:?}");
            assert!(pending_writes.is_seen(&snapshot, at(31)), "{written:?}");
        }
        let mut pending_writes = PendingWrites::default();
        pending_writes.expect(vec![Written::PodGoing(uid)], at(0));
        assert!(!pending_writes.is_seen(&snapshot, at(1)));
        snapshot.pods[0].terminating = true;
        assert!(pending_writes.is_seen(&snapshot, at(2)));
    }
}
