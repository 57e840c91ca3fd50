//! Deletions: preconditions, grace periods, finalizers, propagation.

use serde_json::{Value, json};

use super::creating::{daemon_set, pod};
use super::player::{JSON, MERGE, Story};

const SETS: &str = "/apis/apps/v1/namespaces/{ns}/daemonsets";
const PODS: &str = "/api/v1/namespaces/{ns}/pods";

fn delete(story: &mut Story, name: &str, path: &str, options: Value) {
    story.send(name, &format!("DELETE {path}"), JSON, options);
}

pub(super) fn tell(story: &mut Story) {
    preconditions(story);
    grace(story);
    finalizers(story);
}

fn preconditions(story: &mut Story) {
    story.send("a set", &format!("POST {SETS}"), JSON, daemon_set("a"));
    let a = format!("{SETS}/a");
    delete(story, "nothing there", &format!("{SETS}/nope"), json!({}));
    delete(story, "another uid", &a, json!({"preconditions": {"uid": "other"}}));
    delete(story, "another version", &a, json!({"preconditions": {"resourceVersion": "1"}}));
    delete(story, "tried out", &a, json!({"dryRun": ["All"]}));
    story.ask("still there", &format!("GET {a}"));
    delete(
        story,
        "the right one",
        &a,
        json!({
            "preconditions": {"uid": "<a set.uid>"}, "propagationPolicy": "Background",
        }),
    );
    story.ask("gone", &format!("GET {a}"));
    story.send(
        "a config map",
        "POST /api/v1/namespaces/{ns}/configmaps",
        JSON,
        json!({"metadata": {"name": "a"}}),
    );
    delete(story, "a config map's end", "/api/v1/namespaces/{ns}/configmaps/a", json!({}));
}

fn grace(story: &mut Story) {
    for name in ["a", "b", "c", "d"] {
        let mut pod = pod(name);
        if name != "d" {
            pod["spec"]["nodeName"] = "n".into();
        }
        story.send(&format!("pod {name}"), &format!("POST {PODS}"), JSON, pod);
    }
    let (a, b, c, d) =
        (format!("{PODS}/a"), format!("{PODS}/b"), format!("{PODS}/c"), format!("{PODS}/d"));
    delete(story, "with its grace period", &a, json!({"preconditions": {"uid": "<pod a.uid>"}}));
    delete(story, "again", &a, json!({}));
    delete(story, "longer", &a, json!({"gracePeriodSeconds": 60}));
    delete(story, "shorter", &a, json!({"gracePeriodSeconds": 10}));
    story.send(
        "a label on its way out",
        &format!("PATCH {a}"),
        MERGE,
        json!({"metadata": {"labels": {"x": "y"}}}),
    );
    story.send(
        "a finalizer on its way out",
        &format!("PATCH {a}"),
        MERGE,
        json!({"metadata": {"finalizers": ["example.com/x"]}}),
    );
    delete(story, "another pod's uid", &a, json!({"preconditions": {"uid": "<pod b.uid>"}}));
    delete(story, "now", &a, json!({"gracePeriodSeconds": 0}));
    story.ask("gone at once", &format!("GET {a}"));
    delete(story, "at once", &b, json!({"gracePeriodSeconds": 0}));
    delete(story, "its own period", &c, json!({"gracePeriodSeconds": 5}));
    delete(story, "tried out again", &c, json!({"dryRun": ["All"], "gracePeriodSeconds": 0}));
    delete(story, "a pod without a node", &d, json!({}));
    story.ask("is gone at once", &format!("GET {d}"));
    let mut ended = pod("ended");
    ended["spec"]["nodeName"] = "n".into();
    story.send("ended", &format!("POST {PODS}"), JSON, ended);
    story.send(
        "has ended",
        &format!("PATCH {PODS}/ended/status"),
        MERGE,
        json!({"status": {"phase": "Failed"}}),
    );
    delete(story, "a pod that has ended", &format!("{PODS}/ended"), json!({}));
    let mut held = pod("held");
    held["spec"]["nodeName"] = "n".into();
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    story.send("held", &format!("POST {PODS}"), JSON, held);
    delete(story, "a held pod", &format!("{PODS}/held"), json!({}));
    delete(story, "a held pod at once", &format!("{PODS}/held"), json!({"gracePeriodSeconds": 0}));
    story.send(
        "let go",
        &format!("PATCH {PODS}/held"),
        MERGE,
        json!({"metadata": {"finalizers": null}}),
    );
    story.ask("is let go", &format!("GET {PODS}/held"));
}

fn finalizers(story: &mut Story) {
    for (name, policy) in
        [("orphan", "Orphan"), ("foreground", "Foreground"), ("background", "Background")]
    {
        story.send(name, &format!("POST {SETS}"), JSON, daemon_set(name));
        let path = format!("{SETS}/{name}");
        delete(story, &format!("{name} it"), &path, json!({"propagationPolicy": policy}));
        story.ask(&format!("{name}: afterwards"), &format!("GET {path}"));
    }
    delete(
        story,
        "once more",
        &format!("{SETS}/orphan"),
        json!({"propagationPolicy": "Background"}),
    );
    story.send(
        "a last spec",
        &format!("PATCH {SETS}/foreground"),
        MERGE,
        json!({"spec": {"minReadySeconds": 3}}),
    );
    story.send(
        "collected",
        &format!("PATCH {SETS}/foreground"),
        MERGE,
        json!({"metadata": {"finalizers": []}}),
    );
    story.ask("is collected", &format!("GET {SETS}/foreground"));
    delete(
        story,
        "a bad policy",
        &format!("{SETS}/foreground"),
        json!({"propagationPolicy": "Perhaps"}),
    );
    story.whatever_the_words("the object is not there, or the policy is none");
}
