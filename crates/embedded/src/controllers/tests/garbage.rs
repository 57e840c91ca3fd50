//! Pods and revisions of a deleted DaemonSet.

use super::*;
use crate::verbs::Propagation;

#[test]
fn dependents_are_deleted_or_orphaned() {
    for (propagation, pods, revisions) in [
        (Propagation::Background, 0, 0),
        (Propagation::Foreground, 0, 0),
        (Propagation::Orphan, 3, 1),
    ] {
        let mut little = Little::new(3, agent(&rolling(&json!(1), &json!(0)), 0), "");
        little.until(10);
        let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
        little.store.verbs(little.now, "test").delete(target(), &options).unwrap();
        little.until(100);
        assert!(little.store.get(Kind::DaemonSet, "ns", "agent").is_none(), "{propagation:?}");
        let left = (little.pods().len(), little.revisions().len());
        assert_eq!(left, (pods, revisions), "{propagation:?}");
        assert!(little.pods().iter().all(|pod| pod.controller.is_none()), "{propagation:?}");
    }
}

#[test]
fn a_recreated_daemon_set_adopts_its_orphans() {
    let mut little = Little::new(3, agent(&rolling(&json!(1), &json!(0)), 0), "");
    little.until(10);
    let names = |little: &Little| -> Vec<String> {
        little.pods().iter().map(|pod| pod.name.to_string()).collect()
    };
    let (before, revisions) = (names(&little), little.revisions());
    let orphan =
        DeleteOptions { propagation: Some(Propagation::Orphan), ..DeleteOptions::default() };
    little.store.verbs(little.now, "test").delete(target(), &orphan).unwrap();
    little.until(20);
    let anew = agent(&rolling(&json!(1), &json!(0)), 0);
    little.store.verbs(little.now, "test").create(Kind::DaemonSet, "ns", anew).unwrap();
    little.until(40);
    assert_eq!((names(&little), little.revisions()), (before, revisions));
    assert!(little.pods().iter().all(|pod| pod.controller.is_some()));
    assert_eq!(little.status().number_available, 3);
}
