//! New objects: fields that the server adds, and objects that it rejects.

use serde_json::{Value, json};

use super::player::{JSON, Story};

/// A DaemonSet of one container.
pub(super) fn daemon_set(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": {"name": name},
        "spec": {
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "agent", "image": "agent:1"}]},
            },
        },
    })
}

/// A pod of one container.
pub(super) fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"containers": [{"name": "agent", "image": "agent:1"}]},
    })
}

const SETS: &str = "POST /apis/apps/v1/namespaces/{ns}/daemonsets";
const PODS: &str = "POST /api/v1/namespaces/{ns}/pods";
const LEASES: &str = "POST /apis/coordination.k8s.io/v1/namespaces/{ns}/leases";

pub(super) fn tell(story: &mut Story) {
    daemon_sets(story);
    pods(story);
    others(story);
}

fn daemon_sets(story: &mut Story) {
    story.send("a DaemonSet", SETS, JSON, daemon_set("a"));
    story.send("again", SETS, JSON, daemon_set("a"));
    story.send("tried out", &format!("{SETS}?dryRun=All&fieldManager=me"), JSON, daemon_set("b"));
    story.ask("nothing came of it", "GET /apis/apps/v1/namespaces/{ns}/daemonsets/b");
    let mut bad = daemon_set("b");
    bad["spec"]["template"]["metadata"]["labels"]["app"] = "other".into();
    bad["spec"]["template"]["spec"]["containers"][0]["name"] = "".into();
    story.send("two rules broken", SETS, JSON, bad);
    let mut bad = daemon_set("b");
    bad["metadata"]["name"] = "B".into();
    story.send("a bad name", SETS, JSON, bad);
    let mut nameless = daemon_set("b");
    nameless["metadata"] = json!({});
    story.send("no name", SETS, JSON, nameless);
    let mut elsewhere = daemon_set("b");
    elsewhere["metadata"]["namespace"] = "default".into();
    story.send("another namespace", SETS, JSON, elsewhere);
    story.send(
        "no such namespace",
        "POST /apis/apps/v1/namespaces/nope/daemonsets",
        JSON,
        daemon_set("b"),
    );
    story.send("another kind", SETS, JSON, pod("b"));
    let mut generated = daemon_set("b");
    generated["metadata"] = json!({"generateName": "generated-"});
    story.send("a generated name", SETS, JSON, generated);
    let mut versioned = daemon_set("versioned");
    versioned["metadata"]["resourceVersion"] = "1".into();
    story.send("a version", SETS, JSON, versioned);
    let mut adorned = daemon_set("adorned");
    adorned["metadata"]["uid"] = "my-uid".into();
    adorned["metadata"]["generation"] = 7.into();
    adorned["metadata"]["creationTimestamp"] = "2020-01-01T00:00:00Z".into();
    adorned["metadata"]["annotations"] = json!({"a": "b"});
    adorned["status"] = json!({"numberReady": 5});
    story.send("what only the server sets", SETS, JSON, adorned);

    let mut unknown = daemon_set("unknown");
    unknown["spec"]["nothing"] = 1.into();
    let strict = format!("{SETS}?fieldValidation=Strict");
    story.send("an unknown field, strictly", &strict, JSON, unknown.clone());
    story.send("an unknown field", SETS, JSON, unknown);
}

fn pods(story: &mut Story) {
    story.send("a pod", PODS, JSON, pod("a"));
    let mut rich = pod("rich");
    rich["spec"] = json!({
        "nodeName": "n", "hostNetwork": true, "priorityClassName": "system-node-critical",
        "tolerations": [{"operator": "Exists"}],
        "containers": [{
            "name": "agent", "image": "agent:1", "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": "0.1", "memory": "1Gi"}},
        }],
    });
    story.send("a rich pod", PODS, JSON, rich);
    let mut bad = pod("bad");
    bad["spec"]["containers"][0]["image"] = "".into();
    bad["spec"]["restartPolicy"] = "Sometimes".into();
    story.send("a bad pod", PODS, JSON, bad);
    let mut classy = pod("classy");
    classy["spec"]["priorityClassName"] = "nope".into();
    story.send("an unknown priority class", PODS, JSON, classy);
    let mut once = pod("once");
    once["spec"]["restartPolicy"] = "Never".into();
    once["metadata"]["generateName"] = "generated-".into();
    once["metadata"].as_object_mut().unwrap().remove("name");
    story.send("a pod tried out", &format!("{PODS}?dryRun=All"), JSON, once);
}

fn others(story: &mut Story) {
    let node = json!({"metadata": {"name": "creating-node", "labels": {"zone": "a"}}});
    story.send("a node", "POST /api/v1/nodes", JSON, node.clone());
    story.send("the node again", "POST /api/v1/nodes", JSON, node);
    let map = json!({"metadata": {"name": "map"}, "data": {"a": "b"}});
    story.send("a config map", "POST /api/v1/namespaces/{ns}/configmaps", JSON, map);
    let revision = json!({
        "metadata": {"name": "revision", "labels": {"app": "a"}},
        "data": {"spec": {"template": {"spec": {}}}}, "revision": 1,
    });
    story.send(
        "a revision",
        "POST /apis/apps/v1/namespaces/{ns}/controllerrevisions",
        JSON,
        revision,
    );
    let lease = json!({
        "metadata": {"name": "lease"},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15,
            "renewTime": "2026-01-01T00:00:00.000000Z"},
    });
    story.send("a lease", LEASES, JSON, lease);
    let lease = json!({"metadata": {"name": "bad"}, "spec": {"leaseDurationSeconds": 0}});
    story.send("a bad lease", LEASES, JSON, lease);
    let event = json!({
        "metadata": {"name": "event"}, "reason": "Why", "message": "so", "type": "Warning",
        "involvedObject": {"kind": "DaemonSet", "name": "a", "namespace": "creating"},
    });
    story.send("an event", "POST /api/v1/namespaces/{ns}/events", JSON, event);
}
