//! Runs as from a `CronJob`: between two runs nodes are added, drained, removed, and pods fail;
//! only the next run fixes it, all at once.

use std::thread;
use std::time::Duration;

use super::*;

const NODES: usize = 6;

#[test]
fn changes_between_two_runs_are_fixed_by_the_next() {
    let plane = without_controller();
    plane.create_nodes(three_zones(NODES));
    let agent = Managed::new(&plane, "cron");
    let version = manifest("cron", "v1", &at_most("1"));
    agent.apply(&version, &[], 0);
    let before = agent.uids();

    plane.create_nodes([FakeNode::new("d-07")]);
    plane.kubectl(&["drain", "a-00", "--force", "--ignore-daemonsets"]);
    plane.kubectl(&["delete", "node", "b-01"]);
    let of = |node: &str| before.iter().find(|(on, _)| on == node).unwrap().1.clone();
    let name_on = |node: &str| {
        let pod = agent.pods().into_iter().find(|pod| pod["spec"]["nodeName"] == node).unwrap();
        pod["metadata"]["name"].as_str().unwrap().to_owned()
    };
    let failed = name_on("c-02");
    let patch = r#"{"status": {"phase": "Failed"}}"#;
    agent.kubectl(&["patch", "pod", &failed, "--subresource=status", "--type=merge", "-p", patch]);
    // A label of the selector is removed: the pod is released, and replaced.
    let lost = name_on("a-03");
    agent.kubectl(&["label", "pod", &lost, "app-"]);
    // Another client removes the owner reference: the orphan is adopted.
    let orphan = name_on("b-04");
    let nobody = r#"{"metadata": {"ownerReferences": null}}"#;
    agent.kubectl(&["patch", "pod", &orphan, "--type=merge", "-p", nobody]);
    wait_until("the lost node's pod to be deleted", SOON, || {
        agent.pods().iter().all(|pod| pod["spec"]["nodeName"] != "b-01")
    });
    let planned = agent.ds_plan(&["-f", "agent.yaml"], &version);
    assert!(stdout(&planned).contains("d-07"), "{}", output_text(&planned));

    agent.apply(&version, &[], 0);
    plane.kubectl(&["uncordon", "a-00"]);
    let after: BTreeSet<_> =
        agent.uids().into_iter().filter(|(_, uid)| *uid != of("a-03")).collect();
    let nodes: Vec<&str> = after.iter().map(|(node, _)| node.as_str()).collect();
    assert_eq!(nodes, ["a-00", "a-03", "b-04", "c-02", "c-05", "d-07"]);
    let stayed: Vec<_> = after.intersection(&before).map(|(node, _)| node.as_str()).collect();
    assert_eq!(stayed, ["b-04", "c-05"], "the others are new");
    let released = agent.json(&["get", "pod", &lost]);
    assert_eq!(released["metadata"]["ownerReferences"], Value::Null);
    agent.kubectl(&["delete", "pod", &lost]);
    agent.is_whole(&version, NODES);

    // No pod is to be created or deleted, but the controller still has to adopt one.
    agent.kubectl(&["patch", "pod", &orphan, "--type=merge", "-p", nobody]);
    plane.kubectl(&["delete", "node", "c-05"]);
    wait_until("the lost node's pod to be deleted", SOON, || {
        agent.pods().iter().all(|pod| pod["spec"]["nodeName"] != "c-05")
    });
    let nothing = agent.apply(&version, &[], 0);
    assert!(output_text(&nothing).contains("nothing to do"), "{}", output_text(&nothing));
    let adopted = agent.json(&["get", "pod", &orphan]);
    assert_eq!(adopted["metadata"]["ownerReferences"][0]["name"], "ds-plan-agent");
    agent.is_whole(&version, NODES - 1);
}

/// A manifest that tolerates every taint, as node agents do, so that the lost node stays a desired
/// one.
fn tolerant(namespace: &str, image: &str) -> String {
    let grace = "      terminationGracePeriodSeconds: 1";
    let tolerant = format!("      tolerations: [{{operator: Exists}}]\n{grace}");
    manifest(namespace, image, &at_most("1")).replace(grace, &tolerant)
}

#[test]
fn a_node_lost_between_two_runs_keeps_its_pod_and_does_not_block() {
    let plane = without_controller();
    plane.create_nodes(three_zones(NODES));
    let agent = Managed::new(&plane, "lost");
    agent.apply(&tolerant("lost", "v1"), &[], 0);
    let on = |node: &str| {
        let pod = agent.pods().into_iter().find(|pod| pod["spec"]["nodeName"] == node).unwrap();
        let [name, uid] =
            ["name", "uid"].map(|field| pod["metadata"][field].as_str().unwrap().to_owned());
        (name, uid)
    };
    let (lost, uid) = on("b-01");
    plane.kubectl(&["label", "node", "b-01", "kubelet=down"]);
    let taints = "--output=jsonpath={.spec.taints[*].key}";
    wait_until("the node to be tainted", SOON, || {
        plane.kubectl(&["get", "node", "b-01", taints]).contains("node.kubernetes.io/not-ready")
    });
    // As the node lifecycle controller does when a kubelet does not report.
    let dead = r#"{"status": {"conditions": [{"type": "Ready", "status": "False"}]}}"#;
    agent.kubectl(&["patch", "pod", &lost, "--subresource=status", "--patch", dead]);

    let planned = agent.ds_plan(&["-f", "agent.yaml"], &tolerant("lost", "v2"));
    let words = stdout(&planned);
    assert!(words.contains("b-01   node NotReady"), "{words}");
    let rolled = agent.apply(&tolerant("lost", "v2"), &[], 0);
    assert!(output_text(&rolled).contains("b-01"), "{}", output_text(&rolled));
    assert_eq!(on("b-01"), (lost, uid.clone()), "the pod stays");
    let record = agent.json(&["get", "configmap", "ds-plan-agent"]);
    let status: Value = serde_json::from_str(record["data"]["status"].as_str().unwrap()).unwrap();
    let counters = ["desiredNumberScheduled", "numberAvailable", "updatedNumberScheduled"];
    let counters = counters.map(|counter| status[counter].as_u64().unwrap());
    assert_eq!(counters, [NODES as u64, NODES as u64 - 1, NODES as u64 - 1], "{status}");

    // The node comes back with its old pod, which the next run replaces, and no other.
    plane.kubectl(&["label", "node", "b-01", "kubelet-"]);
    wait_until("the node to be untainted", SOON, || {
        plane.kubectl(&["get", "node", "b-01", taints]).is_empty()
    });
    // The node lifecycle controller reads the conditions of nodes every 5 s. Until then it marks
    // a new pod of this node NotReady, which a kubelet would correct; the fake one does not.
    thread::sleep(Duration::from_secs(6));
    let before = agent.uids();
    agent.apply(&tolerant("lost", "v2"), &[], 0);
    agent.is_whole(&tolerant("lost", "v2"), NODES);
    let gone: Vec<_> = before.difference(&agent.uids()).cloned().collect();
    assert_eq!(gone, [("b-01".to_owned(), uid)]);
}

#[test]
fn failed_creates_are_reported_and_fail_the_run() {
    let plane = ControlPlane::builder()
        .without_controller("daemonset-controller")
        .with_controller("resourcequota-controller")
        .user(RUNNER, &["system:masters"])
        .start();
    plane.create_nodes(three_zones(3));
    let agent = Managed::new(&plane, "quota");
    agent.kubectl(&["create", "quota", "two", "--hard=pods=2"]);
    wait_until("the quota to take effect", SOON, || {
        agent.json(&["get", "quota", "two"])["status"]["hard"]["pods"] == "2"
    });
    let version = manifest("quota", "v1", &at_most("1"));
    let stopped = agent.apply(&version, &[], 4);
    let words = output_text(&stopped);
    assert!(words.contains("no pod created") && words.contains("exceeded quota"), "{words}");
    assert_eq!(agent.pods().len(), 2);
    agent.kubectl(&["delete", "quota", "two"]);
    agent.apply(&version, &["--retry"], 0);
    agent.is_whole(&version, 3);
}
