//! What was written and is not seen yet (upstream: `ControllerExpectations`, and the gate that
//! waits for a controller's own writes). Until it is, a sync would do it again.

use jiff::{SignedDuration, Timestamp};

use crate::model::{
    DaemonSetStatus, Pod, PodName, Revision, RevisionName, RevisionNumber, Snapshot, TextMap,
    TextSet, Uid,
};

/// What was not seen for so long is not waited for: somebody undid it in between. Upstream waits
/// five minutes; here every watch is known to stand.
const TIMEOUT: SignedDuration = SignedDuration::from_secs(30);

/// One thing that a write makes visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// A pod is there.
    Pod(PodName),
    /// A pod is on its way out, or gone.
    PodGoing(Uid),
    /// A pod has this controller, or none.
    PodOf(Uid, Option<Uid>),
    /// A revision is there.
    Revision(RevisionName),
    /// A revision is gone.
    RevisionGone(Uid),
    /// A revision has this number.
    Number(Uid, RevisionNumber),
    /// A revision has this controller, or none.
    RevisionOf(Uid, Option<Uid>),
    /// The ledger has this status.
    Status(DaemonSetStatus),
}

/// What is waited for, since when.
#[derive(Default)]
pub(super) struct Unseen {
    written: Vec<Written>,
    since: Option<Timestamp>,
}

impl Unseen {
    /// Waits for these.
    pub(super) fn expect(&mut self, written: Vec<Written>, now: Timestamp) {
        self.written = written;
        self.since = Some(now);
    }

    /// Whether all of it is seen, or was waited for long enough.
    pub(super) fn is_seen(&mut self, snapshot: &Snapshot, now: Timestamp) -> bool {
        if self.written.is_empty() {
            return true;
        }
        // There may be thousands of pods, and hundreds that are waited for.
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
    use crate::controller::test_cluster::{Cluster, OURS, at};
    use crate::plan::test_snapshot;

    #[test]
    fn a_sync_waits_until_its_writes_are_seen_or_it_has_been_too_long() {
        let mut cluster = Cluster::of(1);
        cluster.add_pods("node-0", OURS, 1);
        let mut snapshot = test_snapshot(&cluster);
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
            let mut unseen = Unseen::default();
            unseen.expect(vec![written.clone()], at(0));
            assert_eq!(unseen.is_seen(&snapshot, at(30)), seen, "{written:?}");
            assert!(unseen.is_seen(&snapshot, at(31)), "{written:?}");
        }
        let mut unseen = Unseen::default();
        unseen.expect(vec![Written::PodGoing(uid)], at(0));
        assert!(!unseen.is_seen(&snapshot, at(1)));
        snapshot.pods[0].terminating = true;
        assert!(unseen.is_seen(&snapshot, at(2)));
    }
}
