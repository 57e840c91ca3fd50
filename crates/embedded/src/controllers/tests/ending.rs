//! Pods that fail, or do not terminate.

use super::*;

fn patch_pod(little: &mut Little, name: &str, change: impl FnOnce(&mut Value)) {
    let target = Target::new(Kind::Pod, "ns", name);
    little.store.verbs(little.now, "test").edit(target, change).unwrap();
}

#[test]
fn a_pod_with_a_finalizer_is_not_written_again() {
    let mut little = Little::new(2, agent(&rolling(&json!(1), &json!(0)), 0), "");
    little.until(10);
    let name = little.pod_on("node-01").unwrap().name.to_string();
    patch_pod(&mut little, &name, |pod| pod["metadata"]["finalizers"] = json!(["example.com/x"]));
    little.delete_pod(&name);
    little.until(60);
    let version = little.store.version();
    little.until(600);
    assert_eq!(little.store.version(), version, "no actor has work");
    assert!(little.pod_on("node-01").unwrap().terminating);
    patch_pod(&mut little, &name, |pod| pod["metadata"]["finalizers"] = Value::Null);
    little.until(700);
    assert_ne!(little.pod_on("node-01").unwrap().name.as_str(), name);
    assert_eq!(little.status().number_ready, 2);
}

#[test]
fn a_failed_pod_is_reported_and_replaced() {
    let mut little = Little::new(2, agent(&rolling(&json!(1), &json!(0)), 0), "");
    little.until(10);
    let name = little.pod_on("node-01").unwrap().name.to_string();
    let target = Target::new(Kind::Pod, "ns", &name).status();
    let failed = |pod: &mut Value| pod["status"]["phase"] = "Failed".into();
    little.store.verbs(little.now, "test").edit(target, failed).unwrap();
    little.until(20);
    assert_ne!(little.pod_on("node-01").unwrap().name.as_str(), name);
    let event = little.store.objects(Kind::Event, Some("ns")).next().unwrap().value();
    assert_eq!(event["reason"], "FailedDaemonPod");
    let message = format!("Found failed daemon pod ns/{name} on node node-01, will try to kill it");
    assert_eq!(event["message"], message);
}

#[test]
fn missed_deletions_are_collected_after_a_restart() {
    let faults = "controllerManagerDown: [{from: 50s, until: 100s}]\n";
    let mut little = Little::new(2, agent(&rolling(&json!(1), &json!(0)), 0), faults);
    little.until(60);
    little.store.verbs(little.now, "test").delete(target(), &DeleteOptions::default()).unwrap();
    little.until(99);
    assert_eq!((little.pods().len(), little.revisions().len()), (2, 1));
    little.until(200);
    assert_eq!((little.pods().len(), little.revisions().len()), (0, 0));
}
