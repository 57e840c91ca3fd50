//! Nodes that are added, removed and changed, and templates that select other nodes.

use serde_json::{Value, json};

use super::{and, at_most, image, plain};
use crate::fidelity::step::Step::{
    AddNode, Apply, DeletePods, NodeReady, PatchNode, RemoveNode, Rest, Until,
};
use crate::fidelity::step::{Scenario, node};
use crate::fidelity::view::View;

pub(super) fn scenarios() -> Vec<Scenario> {
    let taint = |effect: &str| json!({"spec": {"taints": [{"key": "trial", "effect": effect}]}});
    let no_taint = || json!({"spec": {"taints": null}});
    let cordon =
        |on: bool| json!({"spec": {"unschedulable": if on { json!(true) } else { Value::Null }}});
    vec![
        Scenario::new("node-added", 2).settles(plain()).does([AddNode(node("late", json!({})))]),
        Scenario::new("node-removed", 2).settles(plain()).does([
            RemoveNode("n1"),
            Rest,
            Until("its pod is gone", |view| view.pods.len() == 1),
        ]),
        Scenario::new("node-replaced", 2)
            .settles(plain())
            .does([RemoveNode("n1"), AddNode(node("n1", json!({})))]),
        Scenario::new("cordoned", 2)
            .settles(plain())
            .does([PatchNode("n1", cordon(true)), Until("it is tainted", is_cordoned)])
            .does([DeletePods("n1")])
            .settles(image("v2"))
            .does([
                PatchNode("n1", cordon(false)),
                Until("it is not tainted", |view| !is_cordoned(view)),
            ]),
        Scenario::new("cordoned-from-the-start", 1).with("away", cordon(true)).settles(plain()),
        Scenario::new("tainted", 2)
            .settles(plain())
            .does([PatchNode("n1", taint("NoSchedule"))])
            .does([DeletePods("n1")])
            .does([PatchNode("n1", no_taint())]),
        Scenario::new("tainted-while-rolling", 3)
            .settles(plain())
            .does([PatchNode("n1", taint("NoSchedule")), Apply(image("v2"))])
            .does([PatchNode("n1", no_taint())]),
        Scenario::new("tainted-no-execute", 2)
            .settles(plain())
            .does([PatchNode("n1", taint("NoExecute"))])
            .does([PatchNode("n1", no_taint())]),
        Scenario::new("tainted-by-preference", 2)
            .settles(plain())
            .does([PatchNode("n1", taint("PreferNoSchedule")), DeletePods("n1")]),
        Scenario::new("not-ready", 2)
            .settles(plain())
            .does([NodeReady("n1", false), Until("it is tainted", is_not_ready)])
            .does([NodeReady("n1", true), Until("it is well", |view| !is_not_ready(view))]),
        Scenario::new("not-ready-while-rolling", 3)
            .settles(at_most(2))
            .does([
                NodeReady("n1", false),
                Until("it is tainted", is_not_ready),
                Apply(and([at_most(2), image("v2")])),
            ])
            .does([NodeReady("n1", true), Until("it is well", |view| !is_not_ready(view))]),
    ]
}

fn has_taint(view: &View, key: &str, effects: usize) -> bool {
    let taints = view.nodes.iter().filter_map(|it| it["spec"]["taints"].as_array());
    taints.flatten().filter(|taint| taint["key"] == key).count() >= effects
}

fn is_cordoned(view: &View) -> bool {
    has_taint(view, "node.kubernetes.io/unschedulable", 1)
}

fn is_not_ready(view: &View) -> bool {
    has_taint(view, "node.kubernetes.io/not-ready", 2)
}
