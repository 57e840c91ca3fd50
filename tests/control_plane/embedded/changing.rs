//! Updates and patches: versions, generations, immutable fields.

use serde_json::{Value, json};

use super::creating::{daemon_set, pod};
use super::player::{JSON, JSON_PATCH, MERGE, Story};

const SET: &str = "/apis/apps/v1/namespaces/{ns}/daemonsets/a";
const POD: &str = "/api/v1/namespaces/{ns}/pods/a";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/{ns}/leases/a";
const REVISION: &str = "/apis/apps/v1/namespaces/{ns}/controllerrevisions/a";

pub(super) fn tell(story: &mut Story) {
    daemon_sets(story);
    pods(story);
    others(story);
}

fn daemon_sets(story: &mut Story) {
    story.send("made", "POST /apis/apps/v1/namespaces/{ns}/daemonsets", JSON, daemon_set("a"));
    let patch = |story: &mut Story, name: &str, body: Value| {
        story.send(name, &format!("PATCH {SET}?fieldManager=patcher"), MERGE, body);
    };
    let image = |image: &str| json!({"spec": {"template": {"spec": {"containers": [{"name": "agent", "image": image}]}}}});
    patch(story, "a new image", image("agent:2"));
    patch(story, "the same image", image("agent:2"));
    patch(story, "min ready", json!({"spec": {"minReadySeconds": 5}}));
    patch(story, "a label", json!({"metadata": {"labels": {"a": "b"}}}));
    patch(story, "no label", json!({"metadata": {"labels": {"a": null}}}));
    patch(story, "a status is left out", json!({"status": {"numberReady": 3}}));
    patch(story, "another selector", json!({"spec": {"selector": {"matchLabels": {"app": "b"}}}}));
    patch(
        story,
        "a bad budget",
        json!({"spec": {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0}}}}),
    );
    patch(story, "another uid", json!({"metadata": {"uid": "other", "labels": {"x": "y"}}}));
    patch(
        story,
        "an old version",
        json!({"metadata": {"resourceVersion": "<made.version>", "labels": {"x": "y"}}}),
    );
    patch(
        story,
        "the right version",
        json!({"metadata": {"uid": "<made.uid>", "resourceVersion": "<no label.version>", "labels": {"x": "y"}}}),
    );
    patch(story, "another name", json!({"metadata": {"name": "b"}}));
    patch(story, "another generation", json!({"metadata": {"generation": 77}}));
    patch(
        story,
        "template generation",
        json!({"metadata": {"annotations": {"deprecated.daemonset.template.generation": "50"}}}),
    );
    patch(story, "a wrong type", json!({"spec": {"minReadySeconds": "x"}}));
    story.whatever_the_words("Go's decoder");
    let status = json!({"status": {
        "currentNumberScheduled": 1, "desiredNumberScheduled": 2, "numberMisscheduled": 0,
        "numberReady": 1, "observedGeneration": 2, "numberUnavailable": 1,
    }, "spec": {"minReadySeconds": 99}});
    story.send("its status", &format!("PATCH {SET}/status?fieldManager=controller"), MERGE, status);
    story.send("tried out", &format!("PATCH {SET}?dryRun=All"), MERGE, image("agent:3"));
    story.ask("nothing came of it", &format!("GET {SET}"));
    json_patches(story);
    let mut whole = daemon_set("a");
    whole["spec"]["template"]["spec"]["containers"][0]["image"] = "agent:4".into();
    story.send("put", &format!("PUT {SET}"), JSON, whole.clone());
    whole["metadata"]["resourceVersion"] = "<made.version>".into();
    story.send("put over an old version", &format!("PUT {SET}"), JSON, whole.clone());
    whole["metadata"] = json!({"name": "a", "uid": "<namespace.uid>"});
    story.send("put over another uid", &format!("PUT {SET}"), JSON, whole.clone());
    whole["metadata"] = json!({"name": "b"});
    story.send("put another name", &format!("PUT {SET}"), JSON, whole);
    story.send(
        "put nothing there",
        "PUT /apis/apps/v1/namespaces/{ns}/daemonsets/nope",
        JSON,
        daemon_set("nope"),
    );
    story.send(
        "patch nothing there",
        "PATCH /apis/apps/v1/namespaces/{ns}/daemonsets/nope",
        MERGE,
        json!({}),
    );
}

fn json_patches(story: &mut Story) {
    let patch = |story: &mut Story, name: &str, body: Value| {
        story.send(name, &format!("PATCH {SET}?fieldManager=jsonpatcher"), JSON_PATCH, body);
    };
    patch(
        story,
        "a test that fails",
        json!([
            {"op": "test", "path": "/metadata/uid", "value": "other"},
            {"op": "replace", "path": "/spec/minReadySeconds", "value": 9},
        ]),
    );
    patch(
        story,
        "a path that is not there",
        json!([{"op": "replace", "path": "/spec/nope/x", "value": 9}]),
    );
    patch(
        story,
        "a version that is old",
        json!([
            {"op": "replace", "path": "/metadata/resourceVersion", "value": "<made.version>"},
            {"op": "replace", "path": "/metadata/managedFields", "value": [{}]},
        ]),
    );
    patch(
        story,
        "a test that holds",
        json!([
            {"op": "test", "path": "/metadata/uid", "value": "<made.uid>"},
            {"op": "replace", "path": "/spec/minReadySeconds", "value": 9},
        ]),
    );
    let fields = json!({"f:spec": {"f:minReadySeconds": {}}});
    patch(
        story,
        "another ownership",
        json!([
            {"op": "replace", "path": "/metadata/resourceVersion", "value": "<a test that holds.version>"},
            {"op": "replace", "path": "/metadata/managedFields", "value": [{
                "manager": "me", "operation": "Apply", "apiVersion": "apps/v1",
                "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1", "fieldsV1": fields,
            }]},
        ]),
    );
}

fn pods(story: &mut Story) {
    story.send("a pod", "POST /api/v1/namespaces/{ns}/pods", JSON, pod("a"));
    let patch = |story: &mut Story, name: &str, body: Value| {
        story.send(name, &format!("PATCH {POD}"), MERGE, body);
    };
    patch(story, "a pod's label", json!({"metadata": {"labels": {"x": "y"}}}));
    patch(
        story,
        "a pod's owner",
        json!({"metadata": {"ownerReferences": [{
            "apiVersion": "apps/v1", "kind": "DaemonSet", "name": "a", "uid": "<made.uid>",
            "controller": true, "blockOwnerDeletion": true,
        }]}}),
    );
    patch(story, "a pod's host network", json!({"spec": {"hostNetwork": true}}));
    story.whatever_the_words("the server shows a diff of the specs");
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "a"},
        "target": {"kind": "Node", "name": "n1"},
    });
    story.send("bound", &format!("POST {POD}/binding"), JSON, binding.clone());
    story.ask("the bound pod", &format!("GET {POD}"));
    story.send("bound twice", &format!("POST {POD}/binding"), JSON, binding);
    let status = json!({"status": {"phase": "Running", "conditions": [{
        "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z",
        "lastProbeTime": null,
    }]}});
    story.send("running", &format!("PATCH {POD}/status"), MERGE, status);
}

fn others(story: &mut Story) {
    let lease = json!({
        "metadata": {"name": "a", "annotations": {"a": "b"}},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15, "leaseTransitions": 0},
    });
    story.send("a lease", "POST /apis/coordination.k8s.io/v1/namespaces/{ns}/leases", JSON, lease);
    let patch = |story: &mut Story, name: &str, body: Value| {
        story.send(name, &format!("PATCH {LEASE}"), MERGE, body);
    };
    patch(
        story,
        "renewed",
        json!({"metadata": {"resourceVersion": "<a lease.version>"}, "spec": {"renewTime": "2026-01-01T00:00:05.000001Z"}}),
    );
    patch(
        story,
        "renewed too late",
        json!({"metadata": {"resourceVersion": "<a lease.version>"}, "spec": {"renewTime": "2026-01-01T00:00:05.000001Z"}}),
    );
    patch(
        story,
        "released",
        json!({"metadata": {"annotations": {"a": null}}, "spec": {"holderIdentity": null}}),
    );
    patch(story, "a bad duration", json!({"spec": {"leaseDurationSeconds": -1}}));
    let whole = json!({"metadata": {"name": "a"}, "spec": {}});
    story.send("a lease without a version", &format!("PUT {LEASE}"), JSON, whole);
    let revision = json!({"metadata": {"name": "a"}, "data": {"spec": {}}, "revision": 1});
    story.send(
        "a revision",
        "POST /apis/apps/v1/namespaces/{ns}/controllerrevisions",
        JSON,
        revision,
    );
    story.send(
        "annotated",
        &format!("PATCH {REVISION}"),
        MERGE,
        json!({"metadata": {"uid": "<a revision.uid>", "annotations": {"a": "b", "c": null}}}),
    );
    story.send(
        "other data",
        &format!("PATCH {REVISION}"),
        MERGE,
        json!({"data": {"spec": {"x": 1}}}),
    );
    story.whatever_the_words("Go prints a struct's bytes");
    story.send("another number", &format!("PATCH {REVISION}"), MERGE, json!({"revision": 2}));
    story.send(
        "another revision",
        &format!("PATCH {REVISION}"),
        MERGE,
        json!({"metadata": {"uid": "other"}}),
    );
    story.send(
        "a node",
        "POST /api/v1/nodes",
        JSON,
        json!({"metadata": {"name": "changing-node"}}),
    );
    story.send(
        "cordoned",
        "PATCH /api/v1/nodes/changing-node",
        MERGE,
        json!({"spec": {"unschedulable": true}}),
    );
    story.send("a node's status", "PATCH /api/v1/nodes/changing-node/status", MERGE, json!({"status": {"conditions": [{
        "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "lastHeartbeatTime": null,
    }]}}));
}
