//! Lists, pages, selectors, and missing objects.

use serde_json::json;

use super::creating::{daemon_set, pod};
use super::player::{JSON, Story};

pub(super) fn tell(story: &mut Story) {
    const PODS: &str = "GET /api/v1/namespaces/{ns}/pods";
    story.ask("an empty list", PODS);
    for (name, tier) in [("a", "x"), ("b", "y"), ("c", "x"), ("d", "z"), ("e", "x")] {
        let mut pod = pod(name);
        pod["metadata"]["labels"]["tier"] = tier.into();
        if tier == "x" {
            pod["spec"]["nodeName"] = "n1".into();
        }
        story.send(&format!("pod {name}"), "POST /api/v1/namespaces/{ns}/pods", JSON, pod);
    }
    story.ask("one", &format!("{PODS}/a"));
    story.ask("its status", &format!("{PODS}/a/status"));
    story.ask("none", &format!("{PODS}/nope"));
    story.ask("all", PODS);
    story.ask("the first page", &format!("{PODS}?limit=2"));
    story.ask("the second page", &format!("{PODS}?limit=2&continue=<the first page.continue>"));
    story.send("a change meanwhile", "DELETE /api/v1/namespaces/{ns}/pods/e", JSON, json!({}));
    story.send("one more", "POST /api/v1/namespaces/{ns}/pods", JSON, pod("f"));
    story.ask("the third page", &format!("{PODS}?limit=2&continue=<the second page.continue>"));
    story.ask("a big page", &format!("{PODS}?limit=500"));
    story.ask("any version", &format!("{PODS}?resourceVersion=0"));
    for (name, query) in [
        ("a label", "labelSelector=tier%3Dx"),
        ("not a label", "labelSelector=tier%21%3Dx"),
        ("labels in a set", "labelSelector=tier+in+(x,y),app"),
        ("a bad label selector", "labelSelector=tier+in+x"),
        ("a field", "fieldSelector=spec.nodeName%3Dn1"),
        ("a name", "fieldSelector=metadata.name%3Db"),
        ("a phase", "fieldSelector=status.phase%21%3DPending"),
        ("a field that nobody selects by", "fieldSelector=spec.containers%3Dx"),
        ("both, page by page", "labelSelector=tier%3Dx&fieldSelector=spec.nodeName%3Dn1&limit=1"),
        ("a bad token", "continue=x"),
        ("a bad limit", "limit=x"),
    ] {
        story.ask(name, &format!("{PODS}?{query}"));
    }
    story.send(
        "a DaemonSet",
        "POST /apis/apps/v1/namespaces/{ns}/daemonsets",
        JSON,
        daemon_set("a"),
    );
    story.ask("DaemonSets", "GET /apis/apps/v1/namespaces/{ns}/daemonsets");
    story.ask(
        "a field of DaemonSets",
        "GET /apis/apps/v1/namespaces/{ns}/daemonsets?fieldSelector=spec.x%3Dy",
    );
    story.ask("no such namespace", "GET /api/v1/namespaces/nope/pods");
    story.ask("no such resource", "GET /api/v1/namespaces/{ns}/nothings");
    story.whatever_the_words("the server's router");
    story.ask("no such group", "GET /apis/nothing.example/v1/things");
    story.whatever_the_words("the server's router");
    story.ask("a namespace", "GET /api/v1/namespaces/{ns}");
    story.ask("no such subresource", "GET /api/v1/namespaces/{ns}/configmaps/a/status");
    story.whatever_the_words("the server's router");
    let review = |resource: &str| {
        json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {"verb": "delete", "resource": resource, "namespace": "x"}},
        })
    };
    let line = "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    story.send("may I", line, JSON, review("pods"));
    story.whatever_the_words("the server tells why");
}
