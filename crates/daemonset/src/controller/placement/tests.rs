//! Eligibility as in upstream's `TestNodeShouldRunDaemonPod`, details of affinity and tolerations,
//! and a property test: judging by classes of nodes does not change results.

use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use serde_json::{Value, json};

use super::*;
use crate::controller::test_cluster::node;
use crate::model::PodTemplate;

/// The placement of a pod template with this `spec`.
fn template(spec: &Value) -> PodPlacement {
    PodTemplate::from_json(json!({"spec": spec})).unwrap().placement
}

/// A template with these required terms.
fn affinity(terms: &Value) -> PodPlacement {
    let required = json!({"nodeSelectorTerms": terms});
    let key = "requiredDuringSchedulingIgnoredDuringExecution";
    template(&json!({"affinity": {"nodeAffinity": {key: required}}}))
}

/// One term with one label requirement.
fn on_label(key: &str, operator: &str, values: &[&str]) -> Value {
    json!([{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}])
}

/// One term with one field requirement.
fn on_field(key: &str, operator: &str, values: &[&str]) -> Value {
    json!([{"matchFields": [{"key": key, "operator": operator, "values": values}]}])
}

fn answers(template: &PodPlacement, node: &Node) -> (bool, bool) {
    let placement = judge(template, node);
    assert_eq!(placement.obstacle.is_none(), placement.may_start);
    assert!(placement.may_stay || !placement.may_start);
    (placement.may_start, placement.may_stay)
}

#[test]
fn node_should_run_daemon_pod() {
    let test_node = node("test-node", &[("name", "simple-daemon"), ("type", "production")], &[]);
    for (name, spec, want) in [
        ("ShouldRunDaemonPod", json!({}), (true, true)),
        (
            "InsufficientResourceError",
            json!({"containers": [{"resources": {"requests": {"memory": "200M"}}}]}),
            (true, true),
        ),
        ("ErrPodNotMatchHostName", json!({"nodeName": "other-node"}), (false, false)),
        ("the node's own name", json!({"nodeName": "test-node"}), (true, true)),
        (
            "ErrPodNotFitsHostPorts",
            json!({"containers": [{"ports": [{"hostPort": 666}]}]}),
            (true, true),
        ),
        (
            "ErrNodeSelectorNotMatch",
            json!({"nodeSelector": {"name": "simple-daemon", "type": "test"}}),
            (false, false),
        ),
        ("a label that is not there", json!({"nodeSelector": {"disk": "ssd"}}), (false, false)),
        (
            "ShouldRunDaemonPod, selector",
            json!({"nodeSelector": {"name": "simple-daemon"}}),
            (true, true),
        ),
        (
            "preferred affinity is ignored",
            json!({"affinity": {"nodeAffinity": {
                "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": {
                    "matchExpressions": [{"key": "type", "operator": "DoesNotExist"}]}}]}}}),
            (true, true),
        ),
    ] {
        assert_eq!(answers(&template(&spec), &test_node), want, "{name}");
    }
    for (name, terms, want) in [
        ("ErrPodAffinityNotMatch", on_label("type", "In", &["test"]), (false, false)),
        ("ShouldRunDaemonPod, affinity", on_label("type", "In", &["production"]), (true, true)),
    ] {
        assert_eq!(answers(&affinity(&terms), &test_node), want, "{name}");
    }
    let cordoned = Node {
        unschedulable: true,
        ..node("test-node", &[], &["node.kubernetes.io/unschedulable:NoSchedule"])
    };
    let plain = template(&json!({}));
    assert_eq!(answers(&plain, &cordoned), (true, true), "ShouldRunDaemonPodOnUnschedulableNode");
}

#[test]
fn selector_and_affinity_must_both_match() {
    let key = "requiredDuringSchedulingIgnoredDuringExecution";
    for (disk, zone, want) in [("ssd", "a", true), ("ssd", "b", false), ("hdd", "a", false)] {
        let both = template(&json!({
            "nodeSelector": {"disk": disk},
            "affinity": {"nodeAffinity": {key: {
                "nodeSelectorTerms": on_label("zone", "In", &[zone]),
            }}},
        }));
        let node = node("n", &[("disk", "ssd"), ("zone", "a")], &[]);
        assert_eq!(judge(&both, &node).may_start, want, "{disk} {zone}");
    }
}

#[test]
fn operators_on_labels() {
    let node = node("n", &[("disk", "ssd"), ("cores", "8"), ("odd", "eight")], &[]);
    for (key, operator, values, want) in [
        ("disk", "In", &["hdd", "ssd"][..], true),
        ("disk", "In", &["hdd"], false),
        ("none", "In", &["ssd"], false),
        ("disk", "In", &[], false), // needs values
        ("disk", "NotIn", &["hdd"], true),
        ("disk", "NotIn", &["ssd"], false),
        ("none", "NotIn", &["ssd"], true), // accepts a missing label
        ("disk", "NotIn", &[], false),
        ("disk", "Exists", &[], true),
        ("none", "Exists", &[], false),
        ("disk", "Exists", &["ssd"], false), // takes no values
        ("none", "DoesNotExist", &[], true),
        ("disk", "DoesNotExist", &[], false),
        ("none", "DoesNotExist", &["x"], false),
        ("cores", "Gt", &["7"], true),
        ("cores", "Gt", &["8"], false),
        ("cores", "Lt", &["9"], true),
        ("cores", "Lt", &["8"], false),
        ("cores", "Gt", &["007"], true),
        ("cores", "Gt", &["-1"], false), // no label value
        ("cores", "Gt", &["7", "6"], false),
        ("cores", "Gt", &[], false),
        ("cores", "Gt", &["7.5"], false),
        ("cores", "Lt", &["9223372036854775807"], true),
        ("cores", "Lt", &["9223372036854775808"], false),
        ("odd", "Gt", &["7"], false),
        ("none", "Lt", &["9"], false),
        ("disk", "in", &["ssd"], false), // operators are exact
        ("not a key", "DoesNotExist", &[], false),
        ("disk", "NotIn", &["not a value"], false),
        ("none", "In", &[""], false),
    ] {
        let got = judge(&affinity(&on_label(key, operator, values)), &node).may_start;
        assert_eq!(got, want, "{key} {operator} {values:?}");
    }
}

#[test]
fn operators_on_fields() {
    let node = node("node-a", &[], &[]);
    for (key, operator, values, want) in [
        ("metadata.name", "In", &["node-a"][..], true),
        ("metadata.name", "In", &["node-b"], false),
        ("metadata.name", "In", &["node-a", "node-b"], false), // exactly one value
        ("metadata.name", "In", &[], false),
        ("metadata.name", "NotIn", &["node-b"], true),
        ("metadata.name", "NotIn", &["node-a"], false),
        ("metadata.name", "Exists", &[], false),
        ("metadata.uid", "In", &["x"], false), // reads as the empty text
        ("metadata.uid", "In", &[""], true),
        ("metadata.uid", "NotIn", &["x"], true),
    ] {
        let got = judge(&affinity(&on_field(key, operator, values)), &node).may_start;
        assert_eq!(got, want, "{key} {operator} {values:?}");
    }
}

#[test]
fn terms_are_alternatives_and_their_requirements_are_not() {
    let ssd = json!({"key": "disk", "operator": "In", "values": ["ssd"]});
    let gpu = json!({"key": "gpu", "operator": "Exists"});
    let named = json!({"key": "metadata.name", "operator": "In", "values": ["n"]});
    let other = json!({"key": "metadata.name", "operator": "In", "values": ["other"]});
    let bad = json!({"key": "disk", "operator": "Like", "values": ["ssd"]});
    let node = node("n", &[("disk", "ssd")], &[]);
    for (name, terms, want) in [
        ("no term", json!([]), false),
        ("an empty term", json!([{}]), false),
        ("an empty term does no harm", json!([{}, {"matchExpressions": [ssd]}]), true),
        ("both requirements", json!([{"matchExpressions": [ssd, gpu]}]), false),
        ("either term", json!([{"matchExpressions": [gpu]}, {"matchExpressions": [ssd]}]), true),
        ("labels and fields", json!([{"matchExpressions": [ssd], "matchFields": [named]}]), true),
        ("labels, not fields", json!([{"matchExpressions": [ssd], "matchFields": [other]}]), false),
        ("an unreadable requirement", json!([{"matchExpressions": [ssd, bad]}]), false),
        (
            "an unreadable term is skipped",
            json!([{"matchExpressions": [bad]}, {"matchExpressions": [ssd]}]),
            true,
        ),
    ] {
        assert_eq!(judge(&affinity(&terms), &node).may_start, want, "{name}");
    }
}

#[test]
fn taints() {
    let plain = template(&json!({}));
    let host = template(&json!({"hostNetwork": true}));
    for (name, template, taints, want) in [
        ("NoSchedule keeps running pods", &plain, &["gpu:NoSchedule"][..], (false, true)),
        ("NoExecute removes them", &plain, &["gpu:NoExecute"], (false, false)),
        ("PreferNoSchedule is ignored", &plain, &["gpu:PreferNoSchedule"], (true, true)),
        ("both", &plain, &["a:NoSchedule", "b:NoExecute"], (false, false)),
        ("not ready", &plain, &["node.kubernetes.io/not-ready:NoExecute"], (true, true)),
        ("the gap", &plain, &["node.kubernetes.io/not-ready:NoSchedule"], (false, true)),
        ("network", &plain, &["node.kubernetes.io/network-unavailable:NoSchedule"], (false, true)),
        (
            "host network",
            &host,
            &["node.kubernetes.io/network-unavailable:NoSchedule"],
            (true, true),
        ),
    ] {
        assert_eq!(answers(template, &node("n", &[], taints)), want, "{name}");
    }
}

#[test]
fn the_obstacle_is_the_first_rule_that_fails() {
    let strict = json!({
        "nodeName": "a",
        "nodeSelector": {"disk": "ssd"},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": on_label("zone", "In", &["z1", "z2"]),
        }}},
    });
    let strict = template(&strict);
    for (node, want) in [
        (node("b", &[], &["gpu:NoExecute"]), "nodeName is another node, a"),
        (
            node("a", &[("disk", "hdd")], &["gpu:NoExecute"]),
            "nodeSelector disk=ssd does not match (node has disk=hdd)",
        ),
        (node("a", &[], &[]), "nodeSelector disk=ssd does not match (node has no disk)"),
        (
            node("a", &[("disk", "ssd"), ("zone", "z3")], &["gpu:NoExecute"]),
            "required node affinity does not match: zone In [z1, z2] does not match \
             (node has zone=z3)",
        ),
        (
            node("a", &[("disk", "ssd"), ("zone", "z1")], &["x=1:NoSchedule", "gpu:NoExecute"]),
            "taint gpu:NoExecute is not tolerated",
        ),
        (
            node("a", &[("disk", "ssd"), ("zone", "z1")], &["x=1:NoSchedule", "y:NoSchedule"]),
            "taint x=1:NoSchedule is not tolerated",
        ),
    ] {
        assert_eq!(judge(&strict, &node).obstacle.unwrap().to_string(), want);
    }
}

#[test]
fn obstacles_and_outcomes_carry_a_code_and_data() {
    let strict = template(&json!({"nodeSelector": {"disk": "ssd"}}));
    let node = node("n", &[("disk", "hdd")], &["gpu:NoSchedule"]);
    let obstacle = judge(&strict, &node).obstacle.unwrap();
    let want = json!({"code": "nodeSelector", "key": "disk", "want": "ssd", "have": "hdd"});
    assert_eq!(serde_json::to_value(&*obstacle).unwrap(), want);
    let outcomes = serde_json::to_value(explain(&strict, &node)).unwrap();
    let want = json!([
        {"code": "nodeName", "want": null, "passes": true},
        {"code": "nodeSelector", "key": "disk", "want": "ssd", "have": "hdd", "passes": false},
        {"code": "noNodeAffinity"},
        {"code": "taint", "taint": {"key": "gpu", "value": "", "effect": "NoSchedule"},
         "verdict": "keepsFromStarting"},
    ]);
    assert_eq!(outcomes, want);
}

#[test]
fn explain_reports_every_rule() {
    let terms = json!([
        {},
        {"matchExpressions": [{"key": "disk", "operator": "Like"}]},
        {"matchExpressions": [
            {"key": "zone", "operator": "Exists"},
            {"key": "cores", "operator": "Gt", "values": ["4"]},
        ]},
        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["other"]}]},
    ]);
    let key = "requiredDuringSchedulingIgnoredDuringExecution";
    let template = template(&json!({
        "nodeSelector": {"disk": "ssd"},
        "affinity": {"nodeAffinity": {key: {"nodeSelectorTerms": terms}}},
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
    }));
    let node = node(
        "n",
        &[("disk", "ssd"), ("zone", "a"), ("cores", "2")],
        &[
            "gpu:NoExecute",
            "node.kubernetes.io/not-ready:NoExecute",
            "x:PreferNoSchedule",
            "y:NoSchedule",
            "z:NoExecute",
        ],
    );
    let sentences: Vec<_> = explain(&template, &node).iter().map(ToString::to_string).collect();
    assert_eq!(
        sentences,
        [
            "nodeName is not set",
            "nodeSelector disk=ssd matches (node has disk=ssd)",
            "required node affinity does not match: an empty term matches no node; nor: a term is \
             skipped because its operator is unknown (disk); nor: cores Gt [4] does not match \
             (node has cores=2); nor: metadata.name In [other] does not match",
            "taint gpu:NoExecute is tolerated",
            "taint node.kubernetes.io/not-ready:NoExecute is tolerated by every daemon pod",
            "taint x:PreferNoSchedule is ignored",
            "taint y:NoSchedule is not tolerated: no pod starts, a running pod is kept",
            "taint z:NoExecute is not tolerated: no pod starts, a running pod is removed",
        ]
    );
}

fn any_requirement() -> impl Strategy<Value = Value> {
    let keys = vec!["a", "b", "metadata.name", "not a key"];
    let operators = vec!["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Like"];
    let values = subsequence(vec!["1", "2", "n0", "n1"], 0..3);
    (select(keys), select(operators), values).prop_map(
        |(key, operator, values)| json!({"key": key, "operator": operator, "values": values}),
    )
}

fn any_template() -> impl Strategy<Value = PodPlacement> {
    let requirements = || prop::collection::vec(any_requirement(), 0..3);
    let term = (requirements(), requirements())
        .prop_map(|(labels, fields)| json!({"matchExpressions": labels, "matchFields": fields}));
    let terms = prop::option::of(prop::collection::vec(term, 0..3));
    let selector =
        prop::collection::btree_map(select(vec!["a", "b"]), select(vec!["1", "2"]), 0..2);
    let toleration = (select(vec!["", "t", "u"]), select(vec!["", "Exists", "Equal", "Gt"]))
        .prop_map(|(key, operator)| json!({"key": key, "operator": operator}));
    let tolerations = prop::collection::vec(toleration, 0..2);
    let name = prop::option::weighted(0.2, select(vec!["n0", "n1"]));
    (terms, selector, tolerations, name, any::<bool>()).prop_map(
        |(terms, selector, tolerations, name, host_network)| {
            let key = "requiredDuringSchedulingIgnoredDuringExecution";
            let required = terms.map(|terms| json!({"nodeSelectorTerms": terms}));
            template(&json!({
                "nodeName": name, "nodeSelector": selector, "tolerations": tolerations,
                "hostNetwork": host_network, "affinity": {"nodeAffinity": {key: required}},
            }))
        },
    )
}

fn any_nodes() -> impl Strategy<Value = Vec<Node>> {
    let labels =
        prop::collection::btree_map(select(vec!["a", "b", "c"]), select(vec!["1", "2"]), 0..3);
    let taints = subsequence(
        vec![
            "t=1:NoSchedule",
            "t:NoExecute",
            "u:PreferNoSchedule",
            "node.kubernetes.io/network-unavailable:NoSchedule",
        ],
        0..3,
    );
    prop::collection::vec((labels, taints), 1..12).prop_map(|shapes| {
        let shapes = shapes.into_iter().enumerate();
        let nodes = shapes.map(|(at, (labels, taints))| {
            let labels: Vec<_> = labels.into_iter().collect();
            node(&format!("n{at}"), &labels, &taints)
        });
        nodes.collect()
    })
}

proptest! {
    #[test]
    fn judging_by_class_changes_no_answer(template in any_template(), nodes in any_nodes()) {
        let by_class = Judge::judge_all(&template, &nodes);
        let one_by_one: Vec<_> = nodes.iter().map(|node| judge(&template, node)).collect();
        prop_assert_eq!(by_class, one_by_one);
    }

    #[test]
    fn one_judge_serves_many_templates(
        templates in prop::collection::vec(any_template(), 3),
        nodes in any_nodes(),
    ) {
        // The judge was not made for the last template.
        let judge = Judge::new(&nodes, &templates[..2]);
        for template in &templates {
            prop_assert_eq!(judge.judge(template), Judge::judge_all(template, &nodes));
        }
    }

    #[test]
    fn the_judge_agrees_with_the_explanation(template in any_template(), nodes in any_nodes()) {
        for node in &nodes {
            let placement = judge(&template, node);
            let outcomes = explain(&template, node);
            prop_assert_eq!(placement.may_start, outcomes.iter().all(RuleOutcome::may_start));
            prop_assert_eq!(placement.may_stay, outcomes.iter().all(RuleOutcome::may_stay));
        }
    }
}

#[test]
fn equal_nodes_are_one_class() {
    let template = template(&json!({"nodeSelector": {"disk": "ssd"}}));
    let nodes: Vec<_> = (0..100)
        .map(|at| {
            let name = format!("n{at}");
            let disk = if at % 2 == 0 { "ssd" } else { "hdd" };
            node(&name, &[("disk", disk), ("kubernetes.io/hostname", &name)], &[])
        })
        .collect();
    assert_eq!(Judge::new(&nodes, [&template]).class_count(), 2);
}
