//! The store: history, order, and determinism by seed.

use serde_json::{Value, json};

use super::{now, pod, store};
use crate::verbs::{ListOptions, WriteOptions};
use crate::{Change, DeleteOptions, Kind, Part, Selector, Store, Target};

fn names(store: &mut Store, options: &ListOptions) -> (Vec<String>, String) {
    let page = store.verbs(now(), "test").list(Kind::Pod, None, options).unwrap();
    let names = page.items.iter().map(|pod| pod.key().to_string()).collect();
    (names, page.token)
}

#[test]
fn the_same_seed_gives_the_same_history() {
    let history = || {
        let mut store = store();
        for _ in 0..3 {
            let mut pod = pod("");
            pod["metadata"] = json!({"generateName": "agent-"});
            store.verbs(now(), "test").create(Kind::Pod, "team", pod).unwrap();
        }
        let events = store.events_after(Kind::Pod, 0).unwrap();
        events.map(|event| event.object.json()).collect::<Vec<_>>()
    };
    assert_eq!(history(), history());
    assert_eq!(history().len(), 3);
}

/// A client that has deleted a pod takes another one with its uid for the same.
#[test]
fn no_loaded_uid_or_name_is_generated_again() {
    let create = |store: &mut Store, metadata: Value| {
        let mut pod = pod("");
        pod["metadata"] = metadata;
        store.verbs(now(), "test").create(Kind::Pod, "team", pod).unwrap()
    };
    for (old, new) in [
        (json!({"name": "old"}), json!({"name": "new"})),
        (json!({"generateName": "agent-"}), json!({"generateName": "agent-"})),
    ] {
        let recorded = create(&mut store(), old);
        let mut store = store();
        store.load(Kind::Pod, recorded.value()).unwrap();
        let target = Target::new(Kind::Pod, "team", recorded.key().name());
        store.verbs(now(), "test").delete(target, &DeleteOptions::now()).unwrap();
        let new = create(&mut store, new);
        assert_ne!(new.key(), recorded.key());
        assert_ne!(new.meta().uid, recorded.meta().uid);
    }
}

#[test]
fn objects_are_sorted_by_namespace_and_name_as_one_text() {
    let mut store = store();
    for (namespace, name) in [("a", "z"), ("a-b", "a"), ("a", "b"), ("a0", "a")] {
        let mut pod = pod(name);
        pod["metadata"]["namespace"] = namespace.into();
        store.load(Kind::Pod, pod).unwrap();
    }
    let keys = |namespace| {
        let objects = store.objects(Kind::Pod, namespace);
        objects.map(|pod| pod.key().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(keys(None), ["a-b/a", "a/b", "a/z", "a0/a"]);
    assert_eq!(keys(Some("a")), ["a/b", "a/z"]);
}

#[test]
fn a_paged_list_is_consistent_until_its_version_expires() {
    let mut store = store();
    for name in ["a", "b", "c"] {
        store.verbs(now(), "test").create(Kind::Pod, "team", pod(name)).unwrap();
    }
    let first = ListOptions { limit: 1, ..ListOptions::default() };
    let (page, token) = names(&mut store, &first);
    assert_eq!(page, ["team/a"]);
    let mut verbs = store.verbs(now(), "test");
    verbs.delete(Target::new(Kind::Pod, "team", "b"), &DeleteOptions::now()).unwrap();
    verbs.create(Kind::Pod, "team", pod("aa")).unwrap();
    let rest = ListOptions { token, ..ListOptions::default() };
    assert_eq!(names(&mut store, &rest).0, ["team/b", "team/c"]);
    assert_eq!(names(&mut store, &ListOptions::default()).0, ["team/a", "team/aa", "team/c"]);
    store.forget_events();
    let gone = store.verbs(now(), "test").list(Kind::Pod, None, &rest).unwrap_err();
    assert_eq!((gone.code, gone.reason.as_str()), (410, "Expired"));
}

#[test]
fn the_number_of_kept_events_is_limited() {
    let mut store = store().remembering(2);
    let before = store.version();
    for name in ["a", "b", "c"] {
        store.verbs(now(), "test").create(Kind::Pod, "team", pod(name)).unwrap();
    }
    let expired = store.events_after(Kind::Pod, before).err().unwrap();
    assert_eq!((expired.wanted, expired.oldest), (before, before + 1));
    let events = store.events_after(Kind::Pod, expired.oldest).unwrap();
    assert!(events.map(|event| event.change).eq([Change::Added, Change::Added]));
}

#[test]
fn loaded_objects_keep_their_identity_without_an_event() {
    let mut store = Store::new(1);
    let mut object = pod("a");
    object["metadata"]["namespace"] = "team".into();
    object["metadata"]["uid"] = "u".into();
    object["metadata"]["resourceVersion"] = "77".into();
    object["status"] = json!({"phase": "Running"});
    let loaded = store.load(Kind::Pod, object).unwrap();
    assert_eq!((&*loaded.meta().uid.to_string(), loaded.version(), store.version()), ("u", 77, 77));
    assert_eq!(store.events_after(Kind::Pod, 77).unwrap().count(), 0);
    assert_eq!(store.events_after(Kind::Node, 76).err().unwrap().oldest, 77);
}

#[test]
fn a_dry_run_leaves_nothing_behind() {
    let mut store = store();
    let before = store.version();
    let options = WriteOptions { manager: "test", dry_run: true };
    let tried = store.verbs_with(now(), options).create(Kind::Pod, "team", pod("a")).unwrap();
    assert!(!tried.meta().uid.is_empty());
    assert_eq!((store.version(), store.count(Kind::Pod)), (before, 0));
}

#[test]
fn a_change_of_one_part_leaves_the_other() {
    let mut store = store();
    store.verbs(now(), "test").create(Kind::Pod, "team", pod("a")).unwrap();
    for (part, phase, label) in [(Part::Main, "Pending", true), (Part::Status, "Running", true)] {
        let mut verbs = store.verbs(now(), "test");
        let target = Target { part, ..Target::new(Kind::Pod, "team", "a") };
        let changed = verbs.edit(target, |pod| {
            pod["metadata"]["labels"]["new"] = "x".into();
            pod["spec"]["hostNetwork"] = (part == Part::Status).into();
            pod["status"]["phase"] = "Running".into();
        });
        let changed = changed.unwrap().value();
        assert_eq!(changed["status"]["phase"], phase, "{part:?}");
        assert_eq!(changed["metadata"]["labels"]["new"] == "x", label, "{part:?}");
        assert!(changed["spec"].get("hostNetwork").is_none_or(|it| it == false), "{part:?}");
    }
}

#[test]
fn a_selector_of_everything_is_empty() {
    assert!(Selector::default().is_everything());
    assert!(!Selector::parse(Kind::Pod, "a", "").unwrap().is_everything());
}
