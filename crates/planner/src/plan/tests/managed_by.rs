//! The controller that manages a DaemonSet, and plans that are blocked because it is the other one.

use super::*;
use daemonset::model::{ControllerRef, DaemonSetKey};

/// The message of the only guard of a plan for `wanted`.
fn refused(snapshot: &Snapshot, cluster: &Cluster, wanted: ManagedBy) -> Option<String> {
    let desired = DesiredDaemonSet { managed_by: wanted, ..desired(cluster) };
    let plan = planned(snapshot, &[desired]);
    match &plan.guards[..] {
        [] => None,
        [guard] => {
            assert_eq!((guard.code, &guard.allow_flag), (GuardCode::ManagedBy, &None));
            Some(guard.message.clone())
        }
        several => panic!("{several:#?}"),
    }
}

#[test]
fn the_two_controllers_are_never_mixed() {
    use ManagedBy::{DaemonSetController, DsApply};
    let cluster = settled(2);
    let live = |managed_by: Option<ManagedBy>| {
        let mut snapshot = snapshot(&cluster);
        match managed_by {
            Some(managed_by) => snapshot.daemon_sets[0].managed_by = managed_by,
            None => snapshot.daemon_sets.clear(),
        }
        snapshot
    };
    let orphaned = |what: &str| format!("`kubectl -n default delete {what} --cascade=orphan`");
    for (managed_by, wanted, hint) in [
        (Some(DaemonSetController), DaemonSetController, None),
        (Some(DsApply), DsApply, None),
        (None, DsApply, None),
        (None, DaemonSetController, None),
        (Some(DaemonSetController), DsApply, Some(orphaned("daemonset foo"))),
        (Some(DsApply), DaemonSetController, Some(orphaned("configmap ds-plan-foo"))),
    ] {
        let message = refused(&live(managed_by), &cluster, wanted);
        match (&message, hint) {
            (None, None) => {}
            (Some(message), Some(hint)) => assert!(message.contains(&hint), "{message}"),
            (message, hint) => panic!("{managed_by:?}, {wanted:?}: {message:?}, {hint:?}"),
        }
    }
    let mut both = live(Some(DaemonSetController));
    both.records_beside.insert(DaemonSetKey::new("default", "foo"));
    for wanted in [DaemonSetController, DsApply] {
        let message = refused(&both, &cluster, wanted).unwrap();
        assert!(message.contains("both as a DaemonSet and as a record"), "{message}");
    }
}

#[test]
fn an_unread_record_does_not_count_as_missing() {
    let cluster = settled(2);
    let mut unread = snapshot(&cluster);
    unread.daemon_sets.clear();
    unread.coverage.records = false;
    let message = refused(&unread, &cluster, ManagedBy::DsApply).unwrap();
    assert!(message.contains("it is unknown whether"), "{message}");
    assert_eq!(refused(&unread, &cluster, ManagedBy::DaemonSetController), None);
    let owner =
        ControllerRef { kind: "ConfigMap".into(), name: "ds-plan-foo".into(), uid: "u".into() };
    unread.revisions[0].controller = Some(owner.into());
    let message = refused(&unread, &cluster, ManagedBy::DaemonSetController).unwrap();
    assert!(message.contains("was not read"), "{message}");
}
