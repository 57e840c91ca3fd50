//! Objects that random histories rarely produce, one for each rule.

use serde_json::{Value, json};

use super::server::{self, Run};
use super::{APPLIER, Case, Count, api_server};
use crate::harness::kubernetes;

const AGENT: &str = "/spec/template/spec/containers/0";

/// A DaemonSet with these fields in its container and its pod.
pub(super) fn daemon_set(name: &str, container: &Value, pod: &Value) -> Value {
    let mut agent = json!({ "name": "agent", "image": "cr.example/a:1" });
    agent.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
    let mut spec = json!({ "containers": [agent] });
    spec.as_object_mut().unwrap().extend(pod.as_object().unwrap().clone());
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "selector": { "matchLabels": { "app": name } },
            "template": { "metadata": { "labels": { "app": name } }, "spec": spec },
        },
    })
}

/// The first manifest, a patch that follows, and the manifest that is applied now.
struct Row {
    rule: &'static str,
    first: [Value; 2],
    patch: Value,
    now: [Value; 2],
}

pub(super) fn env(pairs: &[(&str, &str)]) -> Value {
    let variable = |(name, value): &(&str, &str)| match *value {
        "" => json!({ "name": name }),
        value => json!({ "name": name, "value": value }),
    };
    json!({ "env": pairs.iter().map(variable).collect::<Vec<_>>() })
}

fn rows() -> Vec<Row> {
    let add = |path: String, value: Value| json!([{ "op": "add", "path": path, "value": value }]);
    let twice = |first: &str, second: &str| {
        let list = env(&[("A", first), ("X", "1"), ("A", second)])["env"].clone();
        add(format!("{AGENT}/env"), list)
    };
    let none = || json!({});
    let row = |rule, first, patch, now| Row { rule, first, patch, now };
    vec![
        row(
            "one for two of a name",
            [none(), none()],
            twice("1", "2"),
            [env(&[("A", "")]), none()],
        ),
        row(
            "the same for two of a name",
            [none(), none()],
            twice("1", "1"),
            [env(&[("A", "1")]), none()],
        ),
        row(
            "two of a name where one was applied",
            [env(&[("A", "1"), ("B", "1")]), none()],
            twice("1", "2"),
            [env(&[("B", "1")]), none()],
        ),
        row(
            "two of a name stay next to others",
            [env(&[("B", "1")]), none()],
            twice("1", "2"),
            [env(&[("C", "1")]), none()],
        ),
        row(
            "an old name outlives the new one",
            [none(), json!({ "serviceAccountName": "one" })],
            json!([]),
            [none(), none()],
        ),
        row(
            "nothing, written in three ways",
            [env(&[("A", "1")]), json!({ "nodeSelector": { "a": "b" } })],
            add(format!("{AGENT}/args"), json!(["-v"])),
            [json!({ "env": [], "args": null }), json!({ "nodeSelector": {} })],
        ),
        row(
            "an element goes although another wrote in it",
            [env(&[("A", "1"), ("B", "1")]), none()],
            add(format!("{AGENT}/env/0/value"), json!("2")),
            [env(&[("B", "1")]), none()],
        ),
        row(
            "a key that is left out",
            [json!({ "ports": [{ "containerPort": 53, "protocol": "TCP" }] }), none()],
            add(format!("{AGENT}/ports/-"), json!({ "containerPort": 53, "protocol": "UDP" })),
            [json!({ "ports": [{ "containerPort": 53, "name": "dns" }] }), none()],
        ),
        row(
            "HTML in a key",
            [json!({ "volumeMounts": [{ "name": "v", "mountPath": "/<a>&\u{2028}" }] }), volume()],
            add("/spec/minReadySeconds".into(), json!(3)),
            [json!({ "volumeMounts": [{ "name": "v", "mountPath": "/<b>" }] }), volume()],
        ),
    ]
}

fn volume() -> Value {
    json!({ "volumes": [{ "name": "v", "emptyDir": {} }] })
}

#[tokio::test]
async fn odd_objects_are_merged_alike() {
    if !kubernetes::keeps_templates_as_sent() {
        return;
    }
    let plane = api_server();
    let client = plane.client();
    let (mut count, mut wrong) = (Count::new(), Vec::new());
    for (at, row) in rows().into_iter().enumerate() {
        let name = format!("odd-{at}");
        let [first, now] = [row.first, row.now].map(|[own, pod]| daemon_set(&name, &own, &pod));
        server::apply(&client, &first, APPLIER, true, Run::Real).await;
        let patched = server::patch(&client, &name, "json-patch", "robot", &row.patch).await;
        assert!(patched.is_ok(), "{}: {patched:?}", row.rule);
        let mut case = Case { client: &client, name, applied: now, count: &mut count };
        if let Err(difference) = case.judge().await {
            wrong.push(format!("{}: {difference}", row.rule));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count["objects"] >= rows().len(), "{count:?}");
}
