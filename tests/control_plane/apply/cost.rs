//! The number of requests of a rollout, as counted by the API server.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;

const NODES: usize = 120;

/// The requests of one user, each once: a watch is logged when it begins and when it ends.
fn requests(plane: &ControlPlane, user: &str) -> BTreeMap<(String, String), usize> {
    let log = plane.audit_log();
    let of_user = log.iter().filter(|line| line["user"]["username"] == user);
    let by_id: BTreeMap<&str, &Value> =
        of_user.map(|line| (line["auditID"].as_str().unwrap(), line)).collect();
    let mut counts = BTreeMap::new();
    for line in by_id.into_values() {
        let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let key = (word(&line["verb"]), word(&line["objectRef"]["resource"]));
        *counts.entry(key).or_insert(0) += 1;
    }
    counts
}

#[test]
fn a_rollout_costs_one_request_per_node_and_a_few_more() {
    let plane = ControlPlane::builder().audit().user("runner", &["system:masters"]).start();
    plane.create_nodes(three_zones(NODES));
    let version = |image: &str| manifest("cost", image, &at_most("10%"));
    let fleet = Fleet::new(&plane, "cost", NODES, &version("v1"));
    let watcher = fleet.watch();
    let (arguments, manifest) = (["--yes", "-f", "agent.yaml"], version("v2"));
    let files = [("agent.yaml", manifest.as_str())];
    let run = ControlPlane::ds_apply_by(&plane.kubeconfig_of("runner"), &arguments, &files);
    let output = run.run();
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    fleet.is_replaced_within(NODES / 10, &watcher.end(), 2);

    let counts = requests(&plane, "runner");
    let of = |verb: &str, resource: &str| {
        counts.get(&(verb.to_owned(), resource.to_owned())).copied().unwrap_or_default()
    };
    let renewals = of("patch", "leases");
    let all = counts.values().sum::<usize>() - renewals;
    println!("{all} requests for {NODES} nodes, and {renewals} of the lease: {counts:#?}");
    assert!(all * 100 <= NODES * 105 + 5_000, "{all} requests: {counts:#?}");
    assert_eq!(of("delete", "pods"), NODES);
    for resource in ["nodes", "pods", "daemonsets", "controllerrevisions", "events"] {
        assert_eq!(of("watch", resource), 1, "{resource}");
    }
    let failed = plane.audit_log().into_iter().filter(|line| {
        line["user"]["username"] == "runner" && line["responseStatus"]["code"] == json!(403)
    });
    assert_eq!(failed.count(), 0, "nothing is denied");
}
