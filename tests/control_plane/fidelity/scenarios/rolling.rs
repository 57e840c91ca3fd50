//! Rollouts without surge, and `OnDelete`.

use serde_json::json;

use super::{and, at_most, image, on_delete, plain, pod_spec, spec, template};
use crate::fidelity::step::Scenario;
use crate::fidelity::step::Step::{DeletePods, Patch, Rest};

pub(super) fn scenarios() -> Vec<Scenario> {
    let slow = || spec(&json!({"minReadySeconds": 2}));
    vec![
        Scenario::new("first", 3).settles(plain()),
        Scenario::new("no-node", 0).settles(plain()).settles(image("v2")),
        Scenario::new("rolling", 3).settles(plain()).settles(image("v2")),
        Scenario::new("rolling-two", 5).settles(at_most(2)).settles(and([at_most(2), image("v2")])),
        Scenario::new("rolling-percent", 4)
            .settles(at_most("30%"))
            .settles(and([at_most("30%"), image("v2")])),
        Scenario::new("rolling-all", 4)
            .settles(at_most("100%"))
            .settles(and([at_most("100%"), image("v2")])),
        Scenario::new("min-ready", 3).settles(slow()).settles(and([slow(), image("v2")])),
        Scenario::new("bad-then-forward", 3)
            .settles(plain())
            .settles(image("v2-bad"))
            .settles(image("v3"))
            .alike(),
        Scenario::new("bad-then-back", 4)
            .settles(at_most(2))
            .settles(and([at_most(2), image("v2-bad")]))
            .settles(at_most(2))
            .alike(),
        Scenario::new("crash-loop", 3).settles(plain()).settles(image("v2-crash")).alike(),
        Scenario::new("bad-from-the-start", 3).settles(image("v2-bad")).settles(image("v3")),
        Scenario::new("on-delete", 2)
            .settles(on_delete())
            .settles(and([on_delete(), image("v2")]))
            .does([DeletePods("n1")]),
        Scenario::new("on-delete-then-rolling", 3)
            .settles(on_delete())
            .settles(and([on_delete(), image("v2")]))
            .does([DeletePods("n2")])
            .does([Patch(at_most(1))]),
        Scenario::new("rolling-then-on-delete", 3)
            .settles(plain())
            .settles(image("v2-bad"))
            .does([Patch(on_delete()), Rest, Patch(image("v3"))])
            .alike(),
        Scenario::new("label-of-the-template", 2)
            .settles(plain())
            .settles(template(&json!({"metadata": {"labels": {"tier": "gold"}}})))
            .settles(template(&json!({"metadata": {"annotations": {"restarted": "now"}}}))),
        Scenario::new("label-of-the-daemon-set", 2)
            .settles(plain())
            .settles(json!({"metadata": {"labels": {"tier": "gold"}}})),
        Scenario::new("fields-that-say-nothing", 2)
            .settles(plain())
            .settles(pod_spec(&json!({"dnsPolicy": "ClusterFirst", "restartPolicy": "Always"}))),
    ]
}
