//! Pods that are deleted, fail, are orphaned, changed and adopted.

use serde_json::{Value, json};

use super::{and, image, on_delete, plain};
use crate::fidelity::step::Scenario;
use crate::fidelity::step::Step::{AddPod, Apply, DeletePods, PatchPods, PodStatus};

pub(super) fn scenarios() -> Vec<Scenario> {
    let phase = |phase: &str| json!({ "phase": phase });
    let finalizers = |list: Value| json!({"metadata": {"finalizers": list}});
    let labels = |labels: Value| json!({"metadata": {"labels": labels}});
    let no_owner = || json!({"metadata": {"ownerReferences": null}});
    let unready = json!({"spec": {"containers": [{"name": "main", "image": "agent:v2-bad"}]}});
    vec![
        Scenario::new("pod-deleted", 2).settles(plain()).does([DeletePods("n1")]),
        Scenario::new("pod-failed", 2)
            .settles(plain())
            .does([PodStatus("n1", phase("Failed"))])
            .does([PodStatus("n1", phase("Failed"))]),
        Scenario::new("pod-succeeded", 2)
            .settles(plain())
            .does([PodStatus("n1", phase("Succeeded"))]),
        Scenario::new("pod-of-unknown-phase", 2)
            .settles(plain())
            .does([PodStatus("n1", phase("Unknown"))]),
        Scenario::new("pod-failed-on-delete", 2)
            .settles(on_delete())
            .settles(and([on_delete(), image("v2")]))
            .does([PodStatus("n1", phase("Failed"))]),
        Scenario::new("pod-ending", 2)
            .settles(plain())
            .does([PatchPods("n1", finalizers(json!(["example.com/wait"]))), DeletePods("n1")])
            .does([PatchPods("n1", finalizers(Value::Null))]),
        Scenario::new("pod-failed-and-ending", 2).settles(plain()).does([
            PatchPods("n1", finalizers(json!(["example.com/wait"]))),
            PodStatus("n1", phase("Failed")),
        ]),
        Scenario::new("pod-ending-while-rolling", 3)
            .settles(plain())
            .does([
                PatchPods("n1", finalizers(json!(["example.com/wait"]))),
                DeletePods("n1"),
                Apply(image("v2")),
            ])
            .does([PatchPods("n1", finalizers(Value::Null))]),
        Scenario::new("pod-released", 2)
            .settles(plain())
            .does([PatchPods("n1", labels(json!({"app": "other"})))]),
        Scenario::new("pod-disowned", 2).settles(plain()).does([PatchPods("n1", no_owner())]),
        Scenario::new("pod-without-hash", 2)
            .settles(plain())
            .does([PatchPods("n1", labels(json!({"controller-revision-hash": null})))]),
        Scenario::new("pod-without-hash-and-generation", 2).settles(plain()).does([PatchPods(
            "n1",
            labels(json!({"controller-revision-hash": null, "pod-template-generation": null})),
        )]),
        Scenario::new("pod-of-another-hash", 2)
            .settles(plain())
            .does([PatchPods("n1", labels(json!({"controller-revision-hash": "other"})))]),
        Scenario::new("pod-unready", 2)
            .settles(plain())
            .does([PodStatus("n1", json!({"conditions": [{"type": "Ready", "status": "False"}]}))])
            .settles(image("v2-bad")),
        Scenario::new("second-pod", 2).settles(plain()).does([AddPod("n1", unready)]),
        Scenario::new("strangers-pod", 2)
            .settles(plain())
            .does([AddPod("n1", labels(json!({"app": "other"})))]),
    ]
}
