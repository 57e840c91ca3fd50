//! Nodes that are not Ready from the start: some are left for later, too many are not.

use super::*;

const NODES: usize = 60;

/// As many as may be skipped: 6 of 60.
const POLICY: &str = "
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: agents}
spec: {selects: {names: [unready/agent]}, skipUnreadyNodes: {max: 10%}}
";

fn version(image: &str) -> String {
    manifest("unready", image, &at_most("3"))
}

impl Fleet<'_> {
    /// Has the kubelets of these nodes say that they are not ready; returns when the pods know.
    fn take_down(&self, nodes: &[&str]) {
        self.plane.kubectl(&[&["label", "nodes"], nodes, &["kubelet=down"]].concat());
        wait_for("pods that are not Ready", SOON, (NODES - nodes.len()).to_string(), || {
            self.kubectl(&["get", "daemonset", "agent", "--output=jsonpath={.status.numberReady}"])
        });
    }

    fn apply_with_policy(&self, image: &str, flags: &[&str]) -> Output {
        let arguments =
            [&["--yes", "-f", "agent.yaml", "--policy", "policy.yaml"], flags].concat();
        let manifest = version(image);
        let files = [("agent.yaml", &*manifest), ("policy.yaml", POLICY)];
        self.plane.ds_apply(&arguments, &files).run()
    }

    fn image_on(&self, node: &str) -> String {
        let image = "--output=jsonpath={.items[*].spec.containers[0].image}";
        self.kubectl(&["get", "pods", &format!("--field-selector=spec.nodeName={node}"), image])
    }
}

#[test]
fn some_dead_nodes_do_not_stop_the_rest_and_too_many_do() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(NODES));
    let fleet = Fleet::new(&plane, "unready", NODES, &version("v1"));

    // 5 of 60: the others are replaced, and the strategy is given back.
    let five = ["a-00", "b-01", "c-29", "a-30", "c-59"];
    fleet.take_down(&five);
    let watcher = fleet.watch();
    let output = fleet.apply_with_policy("v2", &[]);
    let seen = watcher.end();
    println!("{}", told(&output));
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    assert!(seen.most_unavailable <= 5 + 3, "{}", seen.most_unavailable);
    for node in five {
        assert!(told(&output).contains(&format!("{node}: ")), "{node} is named");
    }
    assert_eq!(fleet.strategy(), "RollingUpdate");
    assert_eq!(fleet.images(), ["v2".to_owned()].into(), "the controller sees to the dead ones");
    plane.kubectl(&[&["label", "nodes"], &five[..], &["kubelet-"]].concat());
    fleet.wait_until_available();
    for node in five {
        assert_eq!(fleet.image_on(node), "cr.example/agent:v2", "{node} is back");
    }

    // 7 of 60, with a budget of 3: the seventh counts, which is told, and the rest goes on.
    // With a budget of one it would use that up.
    let seven = ["a-00", "b-01", "c-29", "a-30", "c-59", "b-04", "c-05"];
    fleet.take_down(&seven);
    let tight = ["--max-unavailable=1"];
    let refused = fleet.apply_with_policy("v3", &tight);
    println!("{}", told(&refused));
    assert_eq!(refused.status.code(), Some(6), "{}", told(&refused));
    assert!(told(&refused).contains("--allow-deadlock"), "{}", told(&refused));
    assert_eq!(fleet.images(), ["v2".to_owned()].into());
    let watcher = fleet.watch();
    let flags = ["--max-unavailable=1", "--allow-deadlock", "--progress-deadline=8s"];
    let held = fleet.apply_with_policy("v3", &flags);
    let seen = watcher.end();
    println!("{}", told(&held));
    assert_eq!(held.status.code(), Some(4), "{}", told(&held));
    assert!(told(&held).contains("budget taken"), "{}", told(&held));
    assert!(told(&held).contains("7 nodes"), "{}", told(&held));
    assert_eq!(fleet.strategy(), "OnDelete");
    assert_eq!(seen.deleted.len(), 0, "nothing goes: {:?}", seen.deleted);

    // They return: running it again goes on to the end.
    plane.kubectl(&[&["label", "nodes"], &seven[..], &["kubelet-"]].concat());
    fleet.wait_until_available();
    let done = fleet.apply_with_policy("v3", &[]);
    assert_eq!(done.status.code(), Some(0), "{}", told(&done));
    assert_eq!(fleet.images(), ["v3".to_owned()].into());
    assert_eq!(fleet.strategy(), "RollingUpdate");
}
