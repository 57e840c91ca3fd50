//! Changes while the controller manager is down.

use serde_json::json;

use super::{image, plain};
use crate::fidelity::step::Step::{
    AddNode, AddPod, Apply, Delete, DeletePods, PatchNode, PodStatus, Start, Stop, Until,
};
use crate::fidelity::step::{Scenario, node};

pub(super) fn scenarios() -> Vec<Scenario> {
    let unready = json!({"spec": {"containers": [{"name": "main", "image": "agent:v2-bad"}]}});
    let taint = json!({"spec": {"taints": [{"key": "trial", "effect": "NoExecute"}]}});
    vec![
        Scenario::new("changed-twice-while-stopped", 3).settles(plain()).does([
            Stop,
            Apply(image("v2")),
            Apply(image("v3")),
            Start,
        ]),
        Scenario::new("changed-while-stopped", 3).settles(plain()).does([
            Stop,
            Apply(image("v2")),
            DeletePods("n1"),
            Until("it is gone", |view| view.pods.len() == 2),
            Start,
        ]),
        Scenario::new("failed-while-stopped", 2).settles(plain()).does([
            Stop,
            PodStatus("n1", json!({"phase": "Failed"})),
            AddPod("n2", unready.clone()),
            Start,
        ]),
        Scenario::new("deleted-while-stopped", 2)
            .settles(plain())
            .does([Stop, Delete("Background"), Apply(image("v2")), Start])
            .racing(),
        Scenario::new("node-added-while-stopped", 2).settles(plain()).does([
            Stop,
            AddNode(node("late", json!({}))),
            PatchNode("n1", taint),
            Start,
        ]),
    ]
}
