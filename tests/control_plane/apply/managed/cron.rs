//! As a cron runs it: between two runs nodes join, are drained, go, and pods fail; nothing is
//! healed until the next one, and that one heals all of it.

use super::*;

const NODES: usize = 6;

#[test]
fn what_happens_between_two_runs_is_healed_by_the_next() {
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
    // A label that the selector asks for is taken away: the pod is let go, and another takes its place.
    let lost = name_on("a-03");
    agent.kubectl(&["label", "pod", &lost, "app-"]);
    // Somebody takes the controller's reference away: an orphan, which is adopted.
    let orphan = name_on("b-04");
    let nobody = r#"{"metadata": {"ownerReferences": null}}"#;
    agent.kubectl(&["patch", "pod", &orphan, "--type=merge", "-p", nobody]);
    wait_until("the lost node's pod to go", SOON, || {
        agent.pods().iter().all(|pod| pod["spec"]["nodeName"] != "b-01")
    });
    let planned = agent.ds_plan(&["-f", "agent.yaml"], &version);
    assert!(stdout(&planned).contains("d-07"), "{}", told(&planned));

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

    // No pod is to be created or deleted, and still there is something for a controller to do.
    agent.kubectl(&["patch", "pod", &orphan, "--type=merge", "-p", nobody]);
    plane.kubectl(&["delete", "node", "c-05"]);
    wait_until("the lost node's pod to go", SOON, || {
        agent.pods().iter().all(|pod| pod["spec"]["nodeName"] != "c-05")
    });
    let nothing = agent.apply(&version, &[], 0);
    assert!(told(&nothing).contains("nothing to do"), "{}", told(&nothing));
    let adopted = agent.json(&["get", "pod", &orphan]);
    assert_eq!(adopted["metadata"]["ownerReferences"][0]["name"], "ds-plan-agent");
    agent.is_whole(&version, NODES - 1);
}

#[test]
fn pods_that_cannot_be_created_are_told_and_are_no_success() {
    let plane = ControlPlane::builder()
        .without_controller("daemonset-controller")
        .with_controller("resourcequota-controller")
        .user(RUNNER, &["system:masters"])
        .start();
    plane.create_nodes(three_zones(3));
    let agent = Managed::new(&plane, "quota");
    agent.kubectl(&["create", "quota", "two", "--hard=pods=2"]);
    wait_until("the quota to count", SOON, || {
        agent.json(&["get", "quota", "two"])["status"]["hard"]["pods"] == "2"
    });
    let version = manifest("quota", "v1", &at_most("1"));
    let stopped = agent.apply(&version, &[], 4);
    let words = told(&stopped);
    assert!(words.contains("no pod is created") && words.contains("exceeded quota"), "{words}");
    assert_eq!(agent.pods().len(), 2);
    agent.kubectl(&["delete", "quota", "two"]);
    agent.apply(&version, &["--retry"], 0);
    agent.is_whole(&version, 3);
}
