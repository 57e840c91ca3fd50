//! Nodes that are not Ready from the start: up to a limit they are skipped, above it the run stops.

use super::*;

const NODES: usize = 60;

/// Up to 6 of 60 nodes may be skipped.
const POLICY: &str = "
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: agents}
spec: {selects: {names: [unready/agent]}, skipUnreadyNodes: {max: 10%}}
";

/// It tolerates every taint, as node agents do. Without that, a node that is not Ready is not
/// eligible at all: DaemonSets do not tolerate its taint.
fn version(image: &str) -> String {
    let tolerant =
        "      tolerations: [{operator: Exists}]\n      terminationGracePeriodSeconds: 1";
    let plain = manifest("unready", image, &at_most("3"));
    plain.replace("      terminationGracePeriodSeconds: 1", tolerant)
}

impl Fleet<'_> {
    /// Makes the kubelets of these nodes report NotReady; returns when the nodes are tainted.
    fn take_down(&self, nodes: &[&str]) {
        self.label(nodes, "kubelet=down");
        self.wait_for_tainted(nodes.len());
    }

    /// Makes the kubelets report again, their nodes and their pods; returns when every pod of the
    /// DaemonSet is available.
    ///
    /// The node lifecycle controller marks a pod NotReady that it sees on a node that is not
    /// Ready, new pods too. A kubelet would correct that; the fake one reports a pod once.
    fn bring_back(&self, nodes: &[&str]) {
        self.label(nodes, "kubelet-");
        self.wait_for_tainted(0);
        wait_until("every pod to be available", SOON, || {
            self.mark_pods(nodes, "True");
            self.available() == self.nodes.to_string()
        });
    }

    fn label(&self, nodes: &[&str], label: &str) {
        self.plane.kubectl(&[&["label", "nodes"], nodes, &[label]].concat());
    }

    fn wait_for_tainted(&self, count: usize) {
        let taints = "--output=jsonpath={range .items[*]}{.spec.taints[*].key}{\"\\n\"}{end}";
        wait_for("tainted nodes", SOON, count, || {
            let taints = self.plane.kubectl(&["get", "nodes", taints]);
            taints.lines().filter(|keys| keys.contains("node.kubernetes.io/not-ready")).count()
        });
    }

    /// Sets the Ready condition of the pods of these nodes, as the node lifecycle controller does
    /// when a kubelet does not report.
    fn mark_pods(&self, nodes: &[&str], ready: &str) {
        let patch =
            format!(r#"{{"status":{{"conditions":[{{"type":"Ready","status":"{ready}"}}]}}}}"#);
        for node in nodes {
            let on_node = format!("--field-selector=spec.nodeName={node}");
            let pod = self.kubectl(&["get", "pods", &on_node, "--output=name"]);
            let pod = pod.trim();
            self.kubectl(&["patch", pod, "--subresource=status", "--patch", &patch]);
        }
    }

    fn apply_with_policy(&self, image: &str, flags: &[&str]) -> Output {
        let arguments = [&["--yes", "-f", "agent.yaml", "--policy", "policy.yaml"], flags].concat();
        let manifest = version(image);
        let files = [("agent.yaml", &*manifest), ("policy.yaml", POLICY)];
        let output = self.plane.ds_apply(&arguments, &files).run();
        self.histories_agree();
        output
    }

    fn image_on(&self, node: &str) -> String {
        let image = "--output=jsonpath={.items[*].spec.containers[0].image}";
        self.kubectl(&["get", "pods", &format!("--field-selector=spec.nodeName={node}"), image])
    }
}

#[test]
fn a_few_unready_nodes_are_skipped_and_too_many_stop_the_rollout() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(NODES));
    let fleet = Fleet::new(&plane, "unready", NODES, &version("v1"));
    five_are_skipped(&fleet);
    seven_are_too_many(&fleet);
}

fn five_are_skipped(fleet: &Fleet<'_>) {
    let five = ["a-00", "b-01", "c-29", "a-30", "c-59"];
    fleet.take_down(&five);
    let watcher = fleet.watch();
    // The kubelets report it themselves and their pods keep running: the controller would replace
    // those at once.
    let held = fleet.apply_with_policy("v2", &["--progress-deadline=5s"]);
    let seen = watcher.end();
    assert_eq!(held.status.code(), Some(4), "{}", output_text(&held));
    assert!(
        output_text(&held).contains("outdated pods are Ready on 5 nodes"),
        "{}",
        output_text(&held)
    );
    assert_eq!(seen.deleted.len(), NODES - 5, "the others are replaced");
    assert!(seen.most_unavailable <= 3, "{}", seen.most_unavailable);
    assert_eq!(fleet.strategy(), "OnDelete");

    // Once their pods are NotReady too, restoring the strategy loses no available pod.
    fleet.mark_pods(&five, "False");
    let done = fleet.apply_with_policy("v2", &[]);
    assert_eq!(done.status.code(), Some(0), "{}", output_text(&done));
    for node in five {
        assert!(
            output_text(&done).contains(&format!("{node}: ")),
            "{node} is named: {}",
            output_text(&done)
        );
    }
    assert_eq!(fleet.strategy(), "RollingUpdate");
    for node in five {
        wait_for("the image", SOON, "cr.example/agent:v2", || fleet.image_on(node));
    }
    fleet.bring_back(&five);
    let next = fleet.plan(&version("v2"));
    assert_eq!(next.status.code(), Some(0), "{}", output_text(&next));
}

/// The seventh node counts as unavailable, which reaches a budget of one.
fn seven_are_too_many(fleet: &Fleet<'_>) {
    let down = ["a-00", "b-01", "c-29", "a-30", "c-59", "b-04", "c-05"];
    fleet.take_down(&down);
    fleet.mark_pods(&down, "False");
    let refused = fleet.apply_with_policy("v3", &["--max-unavailable=1"]);
    assert_eq!(refused.status.code(), Some(6), "{}", output_text(&refused));
    assert!(output_text(&refused).contains("--allow-deadlock"), "{}", output_text(&refused));
    assert_eq!(fleet.images(), ["v2".to_owned()].into(), "nothing was changed");

    let watcher = fleet.watch();
    let flags = ["--max-unavailable=1", "--allow-deadlock", "--progress-deadline=5s"];
    let held = fleet.apply_with_policy("v3", &flags);
    let seen = watcher.end();
    assert_eq!(held.status.code(), Some(4), "{}", output_text(&held));
    assert!(output_text(&held).contains("`maxUnavailable` reached"), "{}", output_text(&held));
    assert!(
        output_text(&held).contains("counted as unavailable: 7 NotReady nodes, at most 6 skipped"),
        "{}",
        output_text(&held)
    );
    assert_eq!(fleet.strategy(), "OnDelete");
    assert_eq!(seen.deleted.len(), 0, "no pod is deleted: {:?}", seen.deleted);

    // The nodes come back: running it again completes the rollout.
    fleet.bring_back(&down);
    let done = fleet.apply_with_policy("v3", &[]);
    assert_eq!(done.status.code(), Some(0), "{}", output_text(&done));
    assert_eq!(fleet.images(), ["v3".to_owned()].into());
    assert_eq!(fleet.strategy(), "RollingUpdate");
}
