//! Domains, and steps that select nothing.

use super::*;

#[test]
fn domains_and_labels_limit_a_rollout() {
    side_by_side(&[zones_follow_one_another, a_step_without_nodes, labelled_nodes_first]);
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
