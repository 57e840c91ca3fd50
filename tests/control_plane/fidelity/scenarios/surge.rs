//! Rollouts with surge.

use serde_json::json;

use super::{and, image, on_delete, pod_spec, slow_image, spec, surge};
use crate::fidelity::step::Scenario;
use crate::fidelity::step::Step::{Apply, DeletePods, Patch, PatchPods, PodStatus, Rest, Until};

pub(super) fn scenarios() -> Vec<Scenario> {
    let young = |change| and([change, spec(&json!({"minReadySeconds": 8}))]);
    let tolerant = || pod_spec(&json!({"tolerations": [{"key": "trial", "operator": "Exists"}]}));
    let tainted = json!({"spec": {"taints": [{"key": "trial", "effect": "NoSchedule"}]}});
    vec![
        Scenario::new("surge", 3).settles(surge(1)).settles(and([surge(1), image("v2")])),
        Scenario::new("surge-percent", 4)
            .settles(surge("50%"))
            .settles(and([surge("50%"), image("v2")])),
        Scenario::new("surge-bad-then-forward", 3)
            .settles(surge(1))
            .settles(and([surge(1), image("v2-bad")]))
            .settles(and([surge(1), image("v3")]))
            .alike(),
        Scenario::new("surge-bad-then-back", 3)
            .settles(surge(2))
            .settles(and([surge(2), image("v2-bad")]))
            .settles(surge(2))
            .alike(),
        Scenario::new("surge-over-unready", 3)
            .settles(and([surge(1), image("v2-bad")]))
            .settles(and([surge(1), slow_image("v3-slow")])),
        Scenario::new("surge-then-on-delete", 3)
            .settles(surge(1))
            .settles(and([surge(1), image("v2-bad")]))
            .does([Patch(and([
                spec(&json!({"updateStrategy": {"rollingUpdate": null}})),
                on_delete(),
            ]))])
            .alike(),
        Scenario::new("surge-pod-deleted", 2).settles(surge(1)).does([DeletePods("n1")]),
        Scenario::new("surge-next-to-terminating", 2).settles(surge(1)).does([
            PatchPods("n1", json!({"metadata": {"finalizers": ["example.com/wait"]}})),
            DeletePods("n1"),
        ]),
        Scenario::new("surge-pod-failed", 2)
            .settles(and([surge(1), slow_image("v3-slow")]))
            .does([PodStatus("n1", json!({"phase": "Failed"}))]),
        Scenario::new("surge-sunset", 2)
            .with("tainted", tainted)
            .settles(and([surge(1), tolerant()]))
            .settles(and([surge(1), image("v2")])),
        // The queue keeps the earlier of two waits, that for the old pod, and after it the old pod is all
        // that counts: when the new one becomes available, nothing happens before the next event.
        Scenario::new("surge-over-young", 1).does([
            Apply(young(and([surge(1), slow_image("v3-slow")]))),
            Until("the old pod is ready", |view| view.ready() == 1),
            Apply(young(and([surge(1), slow_image("v4-slow")]))),
            Until("the old pod is available", |view| {
                view.daemon_sets[0]["status"]["numberAvailable"] == 1
            }),
            Rest,
            Patch(json!({"metadata": {"annotations": {"example.com/event": "any"}}})),
        ]),
    ]
}
