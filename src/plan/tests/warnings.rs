//! What plans warn about.

use super::*;

#[test]
fn daemon_sets_that_want_the_same_host_port_are_warned_about() {
    let mut cluster = settled(3);
    cluster.nodes[0].labels = labels([("disk", "ssd")]);
    let port = json!([{"containerPort": 9100, "hostPort": 9100, "protocol": "TCP"}]);
    cluster.edit(|spec| {
        spec["template"]["spec"]["containers"][0]["ports"] = port.clone();
    });
    let ours = desired(&cluster);
    cluster.edit(|spec| spec["template"]["spec"]["nodeSelector"] = json!({"disk": "ssd"}));
    let mut live = snapshot(&cluster);
    live.daemon_sets[0].key = DaemonSetKey::new("default", "other");
    let plan = planned(&live, &[ours]);
    let warned: Vec<_> =
        plan.warnings.iter().filter(|warning| warning.code == "hostPortClash").collect();
    let [warning] = &warned[..] else { panic!("{:#?}", plan.warnings) };
    assert_eq!(
        warning.message,
        "default/foo and default/other both want host port 9100/TCP on 1 node: whichever pod comes \
         second stays Pending"
    );
    assert_eq!(warning.nodes.iter().map(NodeName::as_str).collect::<Vec<_>>(), ["node-0"]);
}

#[test]
fn a_namespace_that_keeps_pods_off_is_warned_about() {
    let mut cluster = settled(3);
    cluster.nodes[0].labels = labels([("disk", "ssd")]);
    let mut live = snapshot(&cluster);
    let plugin = "scheduler.alpha.kubernetes.io/node-selector";
    live.namespaces[0].annotations = labels([(plugin, "disk=ssd")]);
    let plan = planned(&live, &[desired(&cluster)]);
    let [warning] = &plan.warnings[..] else { panic!("{:#?}", plan.warnings) };
    assert_eq!(warning.code, "namespaceNodeSelector");
    assert_eq!(
        warning.nodes.iter().map(NodeName::as_str).collect::<Vec<_>>(),
        ["node-1", "node-2"]
    );
}

#[test]
fn creates_beyond_the_budget_are_warned_about_where_pods_run_already() {
    for (limit, new_nodes, warned) in [(2, 2, false), (2, 3, true)] {
        let mut cluster = settled(3);
        for at in 0..new_nodes {
            cluster.nodes.push(node(&format!("node-{}", 3 + at), &[], &[]));
        }
        cluster.set_limits(&json!(limit), &json!(0));
        let plan = planned(&snapshot(&cluster), &[desired(&cluster)]);
        let codes: Vec<_> = plan.warnings.iter().map(|warning| warning.code.as_str()).collect();
        let want = if warned { vec!["createsAtOnce"] } else { vec![] };
        assert_eq!(codes, want, "{new_nodes} nodes join, {limit} may be unavailable");
    }
    let mut cluster = settled(3);
    let desired = desired(&cluster);
    cluster.pods.clear();
    let mut none = snapshot(&cluster);
    none.daemon_sets.clear();
    assert_eq!(planned(&none, &[desired]).warnings, []);
}
