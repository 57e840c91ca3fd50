//! Revisions: new, reused, adopted, copied, changed and pruned.

use serde_json::{Value, json};

use super::{and, image, on_delete, plain, spec};
use crate::fidelity::step::Scenario;
use crate::fidelity::step::Step::{
    Apply, CopyRevision, DeletePods, DeleteRevision, Patch, PatchRevision, SwapRevision, Undo,
};

pub(super) fn scenarios() -> Vec<Scenario> {
    let keep = |number: i64| spec(&json!({ "revisionHistoryLimit": number }));
    let labels = |labels: Value| json!({"metadata": {"labels": labels}});
    let copy = || {
        json!({
            "metadata": {
                "name": "agent-55555", "labels": {"controller-revision-hash": "55555"},
            },
            "revision": 7,
        })
    };
    let touched = || Patch(keep(9));
    vec![
        two_versions("undo").does([Undo(1)]),
        two_versions("undo-to-the-same").does([Undo(2)]),
        two_versions("undo-and-undo").settles(image("v3")).does([Undo(1)]).does([Undo(2)]),
        two_versions("undo-on-delete").does([Patch(on_delete())]).does([Undo(1)]),
        Scenario::new("limit", 2)
            .settles(keep(1))
            .settles(and([keep(1), image("v2")]))
            .settles(and([keep(1), image("v3")]))
            .settles(and([keep(1), image("v4")])),
        Scenario::new("limit-none", 2)
            .settles(keep(0))
            .settles(and([keep(0), image("v2")]))
            .settles(and([keep(0), image("v3")])),
        two_versions("limit-lowered").settles(image("v3")).does([Patch(keep(0))]),
        Scenario::new("limit-and-live", 3)
            .settles(and([keep(0), on_delete()]))
            .settles(and([and([keep(0), on_delete()]), image("v2")]))
            .does([DeletePods("n1")])
            .settles(and([and([keep(0), on_delete()]), image("v3")]))
            .does([DeletePods("n2")])
            .does([DeletePods("n3")]),
        // A revision has the same name as that of the first version, but other data.
        two_versions("collision-with-nobodys")
            .does([SwapRevision(1, and([nobodys(), other_data()])), Apply(plain())]),
        two_versions("collision-with-its-own")
            .does([SwapRevision(1, other_data()), Apply(plain())]),
        two_versions("collision-twice")
            .does([SwapRevision(1, and([nobodys(), other_data()])), Apply(plain())])
            .settles(image("v2"))
            .does([Undo(3)])
            .settles(image("v3")),
        two_versions("taken-by-the-same").does([SwapRevision(1, nobodys()), Apply(plain())]),
        two_versions("two-of-one-template").does([CopyRevision(2, copy()), touched()]),
        two_versions("two-of-an-old-template").does([CopyRevision(1, copy()), touched()]),
        two_versions("adopted")
            .does([CopyRevision(1, and([copy(), json!({"metadata": {"ownerReferences": null}})]))]),
        two_versions("without-its-hash")
            .does([PatchRevision(2, labels(json!({"controller-revision-hash": null})))]),
        two_versions("released")
            .does([PatchRevision(1, labels(json!({"app": "other"})))])
            .does([PatchRevision(1, labels(json!({"app": "agent"})))]),
        two_versions("released-current").does([PatchRevision(2, labels(json!({"app": "other"})))]),
        two_versions("current-deleted").does([DeleteRevision(2)]),
        two_versions("old-deleted").does([DeleteRevision(1), Apply(plain())]),
        two_versions("renumbered").does([PatchRevision(1, json!({"revision": 9}))]),
        Scenario::new("change-cause", 2)
            .settles(json!({"metadata": {"annotations": {"kubernetes.io/change-cause": "one"}}}))
            .settles(json!({"metadata": {"annotations": {"kubernetes.io/change-cause": "two"}}}))
            .settles(and([
                json!({"metadata": {"annotations": {"kubernetes.io/change-cause": "three"}}}),
                image("v2"),
            ])),
    ]
}

/// A scenario that begins with two versions.
fn two_versions(name: &'static str) -> Scenario {
    Scenario::new(name, 2).settles(plain()).settles(image("v2"))
}

/// A patch that removes the owner and the labels of a revision.
fn nobodys() -> Value {
    json!({"metadata": {"labels": null, "ownerReferences": null}})
}

fn other_data() -> Value {
    let container = json!({"name": "main", "image": "other:1"});
    json!({"data": {"spec": {"template": {"spec": {"containers": [container]}}}}})
}
