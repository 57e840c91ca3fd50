//! Plans of DaemonSets with `maxSurge` under a policy with steps.

use super::guards::{paced, with_failed_pod};
use super::*;
use daemonset::model::RolloutPolicy;

/// Six nodes with a pod each, under `maxSurge: 2`.
fn surging() -> Cluster {
    let mut cluster = settled(6);
    cluster.set_limits(&json!(0), &json!(2));
    settle(&mut cluster);
    cluster
}

/// The waves as `NAME: NODES, UNAVAILABLE/SURGE`.
fn waves(plan: &Plan) -> Vec<String> {
    let waves = plan.daemon_sets[0].waves.iter();
    let text = |wave: &Wave| {
        let Wave { name, nodes, max_unavailable, max_surge, .. } = wave;
        format!("{name}: {}, {max_unavailable}/{max_surge}", nodes.len())
    };
    waves.map(text).collect()
}

fn codes(plan: &Plan) -> Vec<&str> {
    plan.warnings.iter().map(|warning| warning.code.as_str()).collect()
}

#[test]
fn only_the_last_step_surges() {
    let steps = json!([{"name": "canary", "nodes": 1}, {"name": "half", "nodes": "50%"}]);
    for (limit, of_step, want) in [
        (None, None, 1),
        (Some(json!(2)), None, 2),
        (Some(json!("50%")), None, 3),
        (Some(json!("50%")), Some(json!(2)), 2),
        (None, Some(json!(2)), 1),
    ] {
        let mut policy = json!({"steps": steps});
        policy["steps"][1]["maxUnavailable"] = of_step.unwrap_or_default();
        policy["maxUnavailable"] = limit.unwrap_or_default();
        let plan = paced(&mut surging(), &policy);
        let half = format!("half: 2, {want}/0");
        assert_eq!(waves(&plan)[1..], [half, "rest: 3, 0/2".to_owned()], "{policy}");
        assert_eq!(plan.guards, []);
        let actions = plan.totals.actions;
        assert_eq!((actions.replace, actions.surge), (3, 3), "{:#?}", lines(&plan));
    }
}

#[test]
fn the_gaps_before_the_surge_are_a_warning() {
    let plan = paced(&mut surging(), &json!({"steps": [{"name": "canary", "nodes": 2}]}));
    assert_eq!(codes(&plan), ["stepsBeforeSurge"]);
    assert_eq!(
        plan.warnings[0].message,
        "in step canary, pods are deleted before the new ones start: 2 nodes are without a pod \
         meanwhile, at most 1 at a time. Only the last step uses `maxSurge`, because the DaemonSet \
         controller chooses the nodes of a surge"
    );
    assert_eq!(plan.warnings[0].nodes.len(), 2);
    // A step of all nodes is the last one.
    for steps in [json!([]), json!([{"name": "all", "nodes": "100%"}])] {
        let plan = paced(&mut surging(), &json!({"steps": steps}));
        assert_eq!((codes(&plan), plan.totals.actions.surge), (vec![], 6));
    }
}

#[test]
fn a_node_that_is_not_ready_is_left_to_the_surge() {
    let mut cluster = surging();
    cluster.nodes[2].readiness = NodeReadiness::NotReady { since: None };
    let steps = json!([{"name": "some", "nodes": {"names": ["node-1", "node-2"]}}]);
    let plan = paced(&mut cluster, &json!({"steps": steps}));
    assert_eq!(waves(&plan), ["some: 1, 1/0", "rest: 5, 0/2"]);
    let node = plan.daemon_sets[0].nodes.iter().find(|node| node.name.as_str() == "node-2");
    assert_eq!(node.unwrap().action, Action::Surge);
}

#[test]
fn a_failed_pod_blocks_the_steps_but_not_the_surge() {
    let mut cluster = with_failed_pod("ImagePullBackOff");
    cluster.set_limits(&json!(0), &json!(2));
    let stuck = |steps: Value| {
        let live = snapshot(&cluster);
        let mut policy = RolloutPolicy::named("p");
        policy.spec.steps = serde_json::from_value(steps).unwrap();
        let desired = DesiredDaemonSet { policy: Some(policy.into()), ..desired(&cluster) };
        planned(&live, &[desired]).daemon_sets[0].waves.len()
    };
    assert_eq!(stuck(json!([])), 1, "the surge needs no budget");
    assert_eq!(stuck(json!([{"name": "canary", "nodes": 2}])), 0, "the steps wait");
}

#[test]
fn domains_stay_a_guard() {
    let plan = paced(&mut surging(), &json!({"domains": {"key": "zone"}}));
    let [guard] = &plan.guards[..] else { panic!("{:#?}", plan.guards) };
    assert_eq!((guard.code, &guard.allow_flag), (GuardCode::SurgeUnderPolicy, &None));
}
