//! Templates that select other nodes than before, and nodes that change to match.

use serde_json::{Value, json};

use super::{plain, pod_spec};
use crate::fidelity::step::Scenario;
use crate::fidelity::step::Step::PatchNode;

pub(super) fn scenarios() -> Vec<Scenario> {
    let taint = |effect: &str| json!({"spec": {"taints": [{"key": "trial", "effect": effect}]}});
    let label = |value: Value| json!({"metadata": {"labels": {"pool": value}}});
    let pool = |value: &str| pod_spec(&json!({"nodeSelector": {"pool": value}}));
    let affinity = |operator: &str, values: Value| {
        let expression = json!({"key": "pool", "operator": operator, "values": values});
        let terms = json!([{"matchExpressions": [expression]}]);
        let required =
            json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}});
        pod_spec(&json!({"affinity": {"nodeAffinity": required}}))
    };
    let tolerating = |effect: &str| {
        let toleration = json!({"key": "trial", "operator": "Exists", "effect": effect});
        pod_spec(&json!({"tolerations": [toleration]}))
    };
    vec![
        Scenario::new("tolerated", 1)
            .with("tainted", taint("NoSchedule"))
            .settles(plain())
            .settles(tolerating("NoSchedule"))
            .settles(plain()),
        Scenario::new("tolerated-no-execute", 1)
            .with("tainted", taint("NoExecute"))
            .settles(tolerating("NoExecute"))
            .settles(tolerating("NoSchedule")),
        Scenario::new("relabelled", 1)
            .with("blue", label(json!("blue")))
            .settles(pool("blue"))
            .does([PatchNode("n1", label(json!("blue")))])
            .does([PatchNode("blue", label(Value::Null))]),
        Scenario::new("selector-changed", 1)
            .with("blue", label(json!("blue")))
            .with("green", label(json!("green")))
            .settles(pool("blue"))
            .settles(pool("green"))
            .settles(plain()),
        Scenario::new("affinity-changed", 1)
            .with("blue", label(json!("blue")))
            .with("green", label(json!("green")))
            .settles(affinity("In", json!(["blue"])))
            .settles(affinity("NotIn", json!(["blue"])))
            .settles(affinity("Exists", Value::Null)),
        Scenario::new("one-node-by-name", 2)
            .settles(pod_spec(&json!({"nodeName": "one-node-by-name-n2"})))
            .settles(plain()),
    ]
}
