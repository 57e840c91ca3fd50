//! Events of nodes, and their effect on pods.

use super::*;
use daemonset::model::NodeReadiness;

fn with(faults: &str) -> Little {
    Little::new(3, agent(&rolling(&json!(1), &json!(0)), 0), &format!("nodes:\n{faults}"))
}

fn node_of<'l>(little: &'l Little, name: &str) -> &'l daemonset::model::Node {
    little.store.get(Kind::Node, "", name).unwrap().node().unwrap()
}

#[test]
fn a_dead_node_is_detected_and_comes_back() {
    let mut little = with(
        "- {event: dies, at: 100s, nodes: {names: [node-01]}}\n\
         - {event: comesBack, at: 600s, nodes: {names: [node-01]}}\n",
    );
    little.until(139);
    assert!(node_of(&little, "node-01").readiness.is_ready(), "the controller has not noticed");
    little.until(160);
    assert!(matches!(node_of(&little, "node-01").readiness, NodeReadiness::Unknown { .. }));
    assert_eq!(node_of(&little, "node-01").taints.len(), 2);
    assert!(!little.pod_on("node-01").unwrap().is_ready());
    // The `NoSchedule` taint is not tolerated by default, so the node is not desired.
    let status = little.status();
    assert_eq!((status.desired_number_scheduled, status.number_misscheduled), (2, 1));
    let name = little.pod_on("node-01").unwrap().name.to_string();
    little.delete_pod(&name);
    little.until(599);
    assert!(little.pod_on("node-01").unwrap().terminating, "no kubelet terminates it");
    little.until(700);
    assert!(node_of(&little, "node-01").taints.is_empty());
    assert!(node_of(&little, "node-01").readiness.is_ready());
    assert_ne!(little.pod_on("node-01").unwrap().name.as_str(), name);
    assert_eq!(little.status().number_available, 3);
}

#[test]
fn pods_of_a_missing_node_are_collected_after_a_quarantine() {
    let mut little = with("- {event: removed, at: 100s, nodes: {names: [node-01]}}\n");
    little.until(139);
    assert_eq!(little.pods().len(), 3);
    little.until(165);
    assert_eq!(little.pods().len(), 2);
    assert_eq!(little.status().desired_number_scheduled, 2);
}

#[test]
fn a_new_node_gets_its_pod() {
    let mut little = with("- {event: added, at: 100s, name: node-99}\n");
    little.until(110);
    assert!(little.pod_on("node-99").unwrap().is_ready());
}

#[test]
fn cordons_labels_and_taints_take_effect() {
    for (event, after, pods, misscheduled) in [
        ("cordoned", "", 3, 0),
        ("tainted", ", taint: {key: gpu, effect: NoSchedule}", 3, 1),
        ("tainted", ", taint: {key: gpu, effect: NoExecute}", 2, 0),
        ("relabelled", ", labels: {here: 'no'}", 2, 0),
    ] {
        let mut agent = agent(&rolling(&json!(1), &json!(0)), 0);
        let term = json!([{"matchExpressions": [
            {"key": "here", "operator": "NotIn", "values": ["no"]},
        ]}]);
        let terms = json!({"nodeSelectorTerms": term});
        let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": terms});
        agent["spec"]["template"]["spec"]["affinity"] = json!({"nodeAffinity": required});
        let faults =
            format!("nodes:\n- {{event: {event}, at: 50s, nodes: {{names: [node-01]}}{after}}}\n");
        let mut little = Little::new(3, agent, &faults);
        little.until(60);
        // Counters stay stale after a taint that evicts no pod, until another event.
        let name = little.pod_on("node-02").unwrap().name.to_string();
        little.delete_pod(&name);
        little.until(200);
        assert_eq!(little.pods().len(), pods, "{event}{after}");
        assert_eq!(little.status().number_misscheduled, misscheduled, "{event}{after}");
    }
}

#[test]
fn a_pod_for_a_tainted_node_stays_pending_with_a_reason() {
    let mut little = with("- {event: added, at: 30s, name: node-77}\n");
    little.until(10);
    let aimed = json!({
        "metadata": {"name": "stray", "namespace": "ns"},
        "spec": {
            "containers": [{"name": "c", "image": "i"}],
            "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [{"matchFields": [
                    {"key": "metadata.name", "operator": "In", "values": ["node-77"]},
                ]}],
            }}},
        },
    });
    little.store.verbs(little.now, "test").create(Kind::Pod, "ns", aimed).unwrap();
    little.until(29);
    let stray = little.store.get(Kind::Pod, "ns", "stray").unwrap().pod().unwrap();
    assert_eq!(&*stray.container_failure.as_deref().unwrap().reason, "Unschedulable");
    little.until(60);
    let stray = little.store.get(Kind::Pod, "ns", "stray").unwrap().pod().unwrap();
    assert!(stray.is_ready(), "{stray:?}");
}

#[test]
fn a_node_is_tainted_by_its_conditions() {
    let mut little = Little::new(3, agent(&rolling(&json!(1), &json!(0)), 0), "");
    little.until(10);
    let target = Target::new(Kind::Node, "", "node-01");
    let taints = |little: &Little| -> Vec<String> {
        let taints = node_of(little, "node-01").taints.iter();
        let mut all: Vec<String> =
            taints.map(|it| format!("{}:{}", it.key, it.effect.as_str())).collect();
        all.sort();
        all
    };
    let edit = |little: &mut Little, target: Target<'_>, change: fn(&mut Value)| {
        little.store.verbs(little.now, "test").edit(target, change).unwrap();
    };
    edit(&mut little, target, |node| node["spec"]["unschedulable"] = true.into());
    edit(&mut little, target.status(), |node| {
        node["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
    });
    little.until(11);
    let at_once =
        ["node.kubernetes.io/not-ready:NoSchedule", "node.kubernetes.io/unschedulable:NoSchedule"];
    assert_eq!(taints(&little), at_once);
    little.until(20);
    assert_eq!(taints(&little)[0], "node.kubernetes.io/not-ready:NoExecute");
    assert!(little.pod_on("node-01").unwrap().is_ready(), "its kubelet has not reported it");
    edit(&mut little, target, |node| node["spec"]["unschedulable"] = Value::Null);
    edit(&mut little, target.status(), |node| {
        node["status"]["conditions"] = json!([{"type": "Ready", "status": "True"}]);
    });
    little.until(30);
    assert_eq!(taints(&little), [""; 0]);
}
