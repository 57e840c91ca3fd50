//! Server-side apply: ownership, conflicts, preconditions.

use serde_json::{Value, json};

use super::creating::daemon_set;
use super::player::{APPLY, JSON, MERGE, Story};

const SET: &str = "/apis/apps/v1/namespaces/{ns}/daemonsets/a";

fn with_image(image: &str) -> Value {
    let mut set = daemon_set("a");
    set["spec"]["template"]["spec"]["containers"][0]["image"] = image.into();
    set
}

pub(super) fn tell(story: &mut Story) {
    let apply = |story: &mut Story, name: &str, query: &str, body: Value| {
        story.send(name, &format!("PATCH {SET}?fieldManager=ds-apply&{query}"), APPLY, body);
    };
    apply(story, "tried out", "dryRun=All", with_image("agent:1"));
    let mut named = with_image("agent:1");
    named["metadata"]["uid"] = "my-uid".into();
    apply(story, "an object that is not there", "force=true", named);
    apply(story, "made", "", with_image("agent:1"));
    apply(story, "again", "", with_image("agent:1"));
    apply(story, "changed", "", with_image("agent:2"));
    let mut less = with_image("agent:2");
    less["spec"]["minReadySeconds"] = 5.into();
    apply(story, "one more field", "", less);
    apply(story, "one field less", "", with_image("agent:2"));
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "agent", "image": "agent:other"}]}}, "minReadySeconds": 7}});
    story.send("by another", &format!("PATCH {SET}?fieldManager=other"), MERGE, image);
    apply(story, "one conflict", "", with_image("agent:3"));
    let mut both = with_image("agent:3");
    both["spec"]["minReadySeconds"] = 8.into();
    apply(story, "two conflicts", "", both.clone());
    apply(story, "two conflicts, tried out", "dryRun=All", both.clone());
    apply(story, "forced", "force=true", both.clone());
    let line = format!("PATCH {SET}?fieldManager=second");
    story.send("another applier agrees", &line, APPLY, both.clone());
    let mut third = both.clone();
    third["spec"]["minReadySeconds"] = 9.into();
    story.send("another applier differs", &line, APPLY, third);
    apply(story, "shared fields stay", "", with_image("agent:3"));
    let mut wrong = with_image("agent:3");
    wrong["metadata"]["uid"] = "other".into();
    apply(story, "another uid", "force=true", wrong);
    let mut old = with_image("agent:5");
    old["metadata"]["resourceVersion"] = "<made.version>".into();
    apply(story, "an old version", "force=true", old.clone());
    apply(story, "an old version, tried out", "force=true&dryRun=All", old);
    let mut right = with_image("agent:5");
    right["metadata"]["resourceVersion"] = "<shared fields stay.version>".into();
    right["metadata"]["uid"] = "<made.uid>".into();
    apply(story, "the right version", "force=true", right);
    let mut invalid = with_image("agent:3");
    invalid["spec"]["template"]["metadata"]["labels"]["app"] = "z".into();
    apply(story, "invalid", "force=true", invalid);
    let mut twice = with_image("agent:3");
    twice["spec"]["template"]["spec"]["containers"] =
        json!([{"name": "x", "image": "i"}, {"name": "x", "image": "j"}]);
    apply(story, "one name twice", "force=true", twice);
    story.whatever_the_words("the merge library's");
    let mut other = with_image("agent:3");
    other["metadata"]["name"] = "b".into();
    apply(story, "another name", "force=true", other);
    let mut unknown = with_image("agent:3");
    unknown["spec"]["nothing"] = 1.into();
    apply(story, "an unknown field", "force=true", unknown);
    story.send("no manager", &format!("PATCH {SET}"), APPLY, with_image("agent:3"));
    story.send(
        "a second set",
        "POST /apis/apps/v1/namespaces/{ns}/daemonsets?fieldManager=creator",
        JSON,
        daemon_set("b"),
    );
    let line = "PATCH /apis/apps/v1/namespaces/{ns}/daemonsets/b?fieldManager=ds-apply";
    story.send("applied over a create", line, APPLY, daemon_set("b"));
    let status = json!({"status": {"currentNumberScheduled": 1, "desiredNumberScheduled": 1, "numberMisscheduled": 0, "numberReady": 0}});
    story.send("a status", &format!("PATCH {SET}/status?fieldManager=controller"), MERGE, status);
    apply(story, "after a status", "", with_image("agent:6"));
}
