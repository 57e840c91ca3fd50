//! Domains, and steps that select nothing.

use super::*;

#[test]
fn domains_and_labels_limit_a_rollout() {
    side_by_side(&[
        zones_follow_one_another,
        a_step_without_nodes,
        labelled_nodes_first,
        a_canary_before_a_surge,
        a_window_without_room,
    ]);
}

const ZONE: &str = "topology.kubernetes.io/zone";

/// Whatever else happens, pods of one zone only are unavailable at any time.
fn zones_follow_one_another(plane: &ControlPlane) {
    let domains = format!("  domains: {{key: {ZONE}, first: [c], maxUnavailable: 2, soak: 2s}}");
    let it = Staged::new(plane, "zones", 12, &domains);
    let zone = |node: &str| node[6..].parse::<usize>().map(|at| ["a", "b", "c"][at % 3]).unwrap();
    let watcher = it.fleet.watch();
    let slow = slowly(&it.version("v2"));
    ends(&it.fleet.apply(&slow, &["--wait=1m"]), 0, &["step rest, a, soaks until", "done"]);
    let seen = watcher.end();
    let mut order: Vec<&str> = seen.deleted.iter().map(|node| zone(node)).collect();
    assert_eq!(order.len(), 12, "each node once: {:?}", seen.deleted);
    order.dedup();
    assert_eq!(order, ["c", "a", "b"]);
    for nodes in &seen.together {
        let zones: BTreeSet<&str> = nodes.iter().map(|node| zone(node)).collect();
        assert!(zones.len() <= 1 && nodes.len() <= 2, "{nodes:?}");
    }
    assert_eq!(seen.most_unavailable, 2, "the whole limit is used");
}

fn a_step_without_nodes(plane: &ControlPlane) {
    let steps = "  steps: [{name: canary, nodes: {matchLabels: {canary: 'true'}}}]";
    let it = Staged::new(plane, "empty-step", 3, steps);
    let before = it.versions();
    ends(&it.run("v2", &[]), 6, &["canary"]);
    assert_eq!(it.versions(), before, "nothing is written");
}

/// A node that gets the label during the wait belongs to the step that is not done.
fn labelled_nodes_first(plane: &ControlPlane) {
    let steps = "  steps: [{name: canary, nodes: {matchLabels: {canary: 'true'}}, soak: 1h}]";
    let it = Staged::new(plane, "labelled", 4, steps);
    plane.kubectl(&["label", "node", "labelled-02", "canary=true"]);
    it.soaks();
    assert_eq!(it.nodes_with("v2"), ["labelled-02".to_owned()].into());
    plane.kubectl(&["label", "node", "labelled-00", "canary=true"]);
    it.soaks();
    assert_eq!(it.nodes_with("v2").len(), 2);
}

/// With `maxSurge`, this run replaces the canary by a delete, so that its node has a gap; the controller
/// surges on all others.
fn a_canary_before_a_surge(plane: &ControlPlane) {
    let canary = "  steps: [{name: canary, nodes: 1, soak: 3s}]";
    let it = Staged::new(plane, "surged-steps", 6, canary);
    let surging = |image: &str| {
        slowly(&it.version(image)).replace("maxUnavailable: 3", "maxUnavailable: 0, maxSurge: 2")
    };
    ends(&it.fleet.apply(&surging("v1"), &[]), 0, &[]);
    let watcher = it.fleet.watch();
    let first = it.fleet.apply(&surging("v2"), &[]);
    ends(&first, 8, &["in step canary, pods are deleted", "step canary soaks until"]);
    let live = it.live();
    it.is_waiting(&live);
    let canaries = it.nodes_with("v2");
    assert_eq!((&*live.image, canaries.len()), ("v1", 1));
    sleep_past(live.until());
    ends(&it.fleet.apply(&surging("v2"), &[]), 0, &["done"]);
    it.fleet.wait_until_available();
    let seen = watcher.end();
    let gaps: BTreeSet<_> = seen.together.iter().filter(|nodes| !nodes.is_empty()).collect();
    assert_eq!(gaps, [&canaries].into(), "only the canary has a gap");
    assert_eq!(it.fleet.images(), ["v2".to_owned()].into());
    let live = it.live();
    assert_eq!((&*live.strategy, live.pause), ("RollingUpdate", Value::Null));
    ends(&it.fleet.plan(&surging("v2")), 0, &[]);
    it.fleet.histories_agree();
    it.fleet.is_rolled_out();
}

/// A node takes ten minutes, as long as no pod was measured.
fn a_window_without_room(plane: &ControlPlane) {
    let windows = "  windows: [{schedule: '0 2 * * *', duration: 5m}]\n  minReadySeconds: 200";
    let it = Staged::new(plane, "no-room", 2, windows);
    let before = it.versions();
    let short = it.version("v2").replace("minReadySeconds: 200", "progressDeadline: 6m");
    // Pods of v1 have started, but none with the image of v2.
    ends(&it.fleet.apply(&short, &[]), 6, &["no node would ever begin", "takes 6m"]);
    let unreadable = it.version("v2").replace("minReadySeconds: 200", "minReadySeconds: 400");
    ends(&it.fleet.apply(&unreadable, &[]), 1, &["none is long enough for one node"]);
    assert_eq!(it.versions(), before, "nothing is written");
}
