//! Garbage collection of dependents.

use serde_json::json;

use super::{daemon_set, now, pod, store};
use crate::verbs::Propagation;
use crate::{DeleteOptions, Deleted, Kind, Store, Target};

const OWNER: Target<'_> =
    Target { kind: Kind::DaemonSet, namespace: "team", name: "agent", part: crate::Part::Main };

/// A DaemonSet, a pod of it on a node, one without a node, and a pod of another owner.
fn family() -> Store {
    let mut store = store();
    let mut verbs = store.verbs(now(), "test");
    let owner = verbs.create(Kind::DaemonSet, "team", daemon_set("agent:1")).unwrap();
    let reference = |uid: &str| {
        json!([{
            "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": uid,
            "controller": true, "blockOwnerDeletion": true,
        }])
    };
    for (name, node) in [("bound", "n"), ("unbound", "")] {
        let mut pod = pod(name);
        pod["spec"]["nodeName"] = node.into();
        pod["metadata"]["ownerReferences"] = reference(&owner.meta().uid.to_string());
        verbs.create(Kind::Pod, "team", pod).unwrap();
    }
    let mut stranger = pod("stranger");
    stranger["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "r"}]);
    verbs.create(Kind::Pod, "team", stranger).unwrap();
    store
}

/// The names of the pods, with a mark for terminating ones.
fn pods(store: &Store) -> Vec<String> {
    let pods = store.objects(Kind::Pod, None).map(|pod| {
        let going = if pod.meta().deleted.is_some() { " going" } else { "" };
        format!("{}{going}", pod.key().name())
    });
    pods.collect()
}

fn delete(store: &mut Store, propagation: Propagation) -> Deleted {
    let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
    store.verbs(now(), "test").delete(OWNER, &options).unwrap()
}

fn collect(store: &mut Store) -> usize {
    store.verbs(now(), "test").collect_garbage().unwrap()
}

#[test]
fn in_the_background_dependents_are_deleted_after_their_owner() {
    let mut store = family();
    assert_eq!(collect(&mut store), 0, "no owner is missing yet");
    assert!(matches!(delete(&mut store, Propagation::Background), Deleted::Gone(_)));
    collect(&mut store);
    // The bound pod has a grace period; a pod without a node has none.
    assert_eq!(pods(&store), ["bound going", "stranger"]);
    assert_eq!(collect(&mut store), 0, "once is enough");
}

#[test]
fn orphans_stay_without_an_owner() {
    let mut store = family();
    assert!(matches!(delete(&mut store, Propagation::Orphan), Deleted::Going(_)));
    collect(&mut store);
    assert_eq!(pods(&store), ["bound", "stranger", "unbound"]);
    assert_eq!(store.count(Kind::DaemonSet), 0);
    assert!(store.get(Kind::Pod, "team", "bound").unwrap().meta().owners.is_empty());
}

#[test]
fn in_the_foreground_the_owner_is_deleted_last() {
    let mut store = family();
    assert!(matches!(delete(&mut store, Propagation::Foreground), Deleted::Going(_)));
    collect(&mut store);
    assert_eq!(pods(&store), ["bound going", "stranger"]);
    assert_eq!(store.count(Kind::DaemonSet), 1, "it waits for the pod");
    let bound = Target::new(Kind::Pod, "team", "bound");
    store.verbs(now(), "test").delete(bound, &DeleteOptions::now()).unwrap();
    collect(&mut store);
    assert_eq!((pods(&store), store.count(Kind::DaemonSet)), (vec!["stranger".to_owned()], 0));
}
