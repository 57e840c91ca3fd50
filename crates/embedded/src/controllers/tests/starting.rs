//! Pods that were recorded before they were Ready.

use super::*;

/// A pod on `node-00`, created at this second, whose container runs after some restarts.
fn unready(name: &str, created: i64, restarts: u32) -> Value {
    let created = at(created).to_string();
    json!({
        "metadata": {
            "name": name, "namespace": "ns", "uid": name, "creationTimestamp": created,
        },
        "spec": {
            "nodeName": "node-00",
            "containers": [{"name": "c", "image": "agent:1", "readinessProbe": {}}],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "False"}],
            "containerStatuses": [{
                "name": "c", "restartCount": restarts, "state": {"running": {"startedAt": created}},
            }],
        },
    })
}

/// Pods take eight seconds. One that has taken longer is stuck, and a restart is no start.
#[test]
fn a_pod_that_has_just_started_becomes_ready() {
    let mut store = Store::new(1);
    store.load(Kind::Namespace, json!({"metadata": {"name": "ns"}})).unwrap();
    store.load(Kind::Node, node("node-00")).unwrap();
    for (name, created, restarts) in [("new", 95, 0), ("old", 92, 0), ("restarted", 95, 1)] {
        store.load(Kind::Pod, unready(name, created, restarts)).unwrap();
    }
    let timings = Timings { start: Duration::from_secs(8), ..brisk() };
    let controllers = Controllers::begin(&mut store, timings, Faults::default(), 1, at(100));
    let mut little = Little { store, controllers, now: at(100), reported: 0 };
    let ready = |little: &Little| {
        let pods = little.pods().into_iter().filter(|pod| pod.is_ready());
        pods.map(|pod| pod.name.to_string()).collect::<Vec<_>>()
    };
    little.until(102);
    assert_eq!(ready(&little), [""; 0]);
    little.until(103);
    assert_eq!(ready(&little), ["new"]);
    little.until(1000);
    assert_eq!(ready(&little), ["new"]);
}
