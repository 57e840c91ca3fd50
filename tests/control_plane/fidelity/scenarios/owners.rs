//! Orphaned and adopted pods and revisions, and deleted DaemonSets.

use serde_json::json;

use super::{and, image, on_delete, plain};
use crate::fidelity::step::Scenario;
use crate::fidelity::step::Step::{AddPod, Apply, Delete, Rest, Until};

pub(super) fn scenarios() -> Vec<Scenario> {
    let generation =
        json!({"metadata": {"annotations": {"deprecated.daemonset.template.generation": "7"}}});
    vec![
        Scenario::new("orphan-before", 2).does([
            AddPod("n1", json!({})),
            Until("the pod is ready", |view| view.ready() == 1),
            Apply(plain()),
        ]),
        Scenario::new("orphan-before-on-delete", 2).does([
            AddPod("n1", json!({})),
            Until("the pod is ready", |view| view.ready() == 1),
            Apply(on_delete()),
        ]),
        Scenario::new("two-orphans-before", 2).does([
            AddPod("n1", json!({})),
            Until("the pod is ready", |view| view.ready() == 1),
            AddPod("n1", json!({"metadata": {"name": "hand-second"}})),
            Until("both are ready", |view| view.ready() == 2),
            Apply(on_delete()),
        ]),
        Scenario::new("left-and-adopted", 2).settles(plain()).does([
            Delete("Orphan"),
            Until("it is gone", |view| view.daemon_sets.is_empty()),
            Rest,
            Apply(plain()),
        ]),
        Scenario::new("left-and-changed", 2).settles(plain()).does([
            Delete("Orphan"),
            Until("it is gone", |view| view.daemon_sets.is_empty()),
            Apply(image("v2")),
        ]),
        Scenario::new("left-and-changed-later", 2).settles(plain()).settles(image("v2")).does([
            Delete("Orphan"),
            Until("it is gone", |view| view.daemon_sets.is_empty()),
            Apply(image("v3")),
        ]),
        Scenario::new("orphaned-and-distinguished", 2).settles(plain()).does([
            Delete("Orphan"),
            Until("it is gone", |view| view.daemon_sets.is_empty()),
            Apply(and([generation, image("v2")])),
        ]),
        Scenario::new("deleted", 2).settles(plain()).does([Delete("Background")]),
        Scenario::new("deleted-in-the-foreground", 2).settles(plain()).does([Delete("Foreground")]),
        Scenario::new("deleted-and-created-again", 2)
            .settles(plain())
            .does([Delete("Background"), Apply(image("v2"))])
            .racing(),
    ]
}
