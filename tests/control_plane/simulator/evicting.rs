//! Evictions, and the budgets that forbid them. No controller counts here: the stories write the
//! budgets' status themselves. Failed preconditions are not tested: a real server retries for so
//! long that the request times out.

use serde_json::{Value, json};

use super::creating::pod;
use super::player::{JSON, MERGE, Story};

const PODS: &str = "/api/v1/namespaces/{ns}/pods";
const BUDGETS: &str = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets";

fn eviction(name: &str, options: &Value) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name},
        "deleteOptions": options,
    })
}

pub(super) fn tell(story: &mut Story) {
    let evict = |story: &mut Story, what: &str, name: &str, options: Value| {
        story.send(what, &format!("POST {PODS}/{name}/eviction"), JSON, eviction(name, &options));
    };
    for name in ["a", "b", "c", "d", "free"] {
        let mut pod = pod(name);
        pod["spec"]["nodeName"] = "n".into();
        if name != "free" {
            pod["metadata"]["labels"] = json!({"app": "budgeted"});
        }
        story.send(&format!("pod {name}"), &format!("POST {PODS}"), JSON, pod);
        let status = json!({"status": {"phase": "Running", "conditions": [{
            "type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z", "lastProbeTime": null,
        }]}});
        story.send(&format!("{name} runs"), &format!("PATCH {PODS}/{name}/status"), MERGE, status);
    }
    let budget = |name: &str| {
        json!({
            "metadata": {"name": name},
            "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "budgeted"}}},
        })
    };
    story.send("a budget", &format!("POST {BUDGETS}"), JSON, budget("first"));
    evict(story, "nothing there", "nope", json!({}));
    evict(story, "a pod that no budget covers", "free", json!({}));
    evict(story, "before anything was counted", "a", json!({}));
    let count = |story: &mut Story, what: &str, allowed: i64| {
        let status = json!({"status": {
            "currentHealthy": 4, "desiredHealthy": 2, "disruptionsAllowed": allowed,
            "expectedPods": 4, "observedGeneration": 1,
        }});
        story.send(what, &format!("PATCH {BUDGETS}/first/status"), MERGE, status);
    };
    count(story, "one is allowed", 1);
    story.ask("what is left", &format!("GET {BUDGETS}/first"));
    count(story, "one is allowed again", 1);
    evict(story, "allowed", "a", json!({"gracePeriodSeconds": 7}));
    story.ask("evicted", &format!("GET {PODS}/a"));
    story.ask("nothing is left", &format!("GET {BUDGETS}/first"));
    evict(story, "not allowed", "b", json!({}));
    evict(story, "a pod on its way out", "a", json!({}));
    story.send("b is not ready", &format!("PATCH {PODS}/b/status"), MERGE, json!({"status": {"conditions": [{
        "type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z", "lastProbeTime": null,
    }]}}));
    evict(story, "an unready pod", "b", json!({}));
    story.send("a second budget", &format!("POST {BUDGETS}"), JSON, budget("second"));
    evict(story, "two budgets", "c", json!({}));
}
