//! Structs that a manifest empties: the server drops them on the first apply and stores `{}` on the
//! second. `ds-apply` sends a manifest that results in the second object at once, with the same
//! field ownership as plain applies.

use serde_json::{Value, json};

use planner::plan::{sent, settled};

use super::odd::{daemon_set, env};
use super::server::{self, Answer, Run};
use super::{APPLIER, api_server, decided, desired, equal, ownership_in};
use crate::harness::kubernetes;
use crate::planning;

/// The first manifest, and the one that empties a struct; each for the container and for the pod.
struct Row {
    rule: &'static str,
    first: [Value; 2],
    now: [Value; 2],
    /// Whether the server creates two templates from it, one after the other.
    twice: bool,
}

fn rows() -> Vec<Row> {
    let none = || json!({});
    let row = |rule, first, now| Row { rule, first, now, twice: true };
    let hardened = json!({ "runAsUser": 1, "capabilities": { "drop": ["ALL"] } });
    let required = json!({ "nodeSelectorTerms": [
        { "matchExpressions": [{ "key": "disk", "operator": "Exists" }] },
    ] });
    let nodes = json!({ "requiredDuringSchedulingIgnoredDuringExecution": required });
    vec![
        row(
            "a container's security context",
            [json!({ "securityContext": hardened }), none()],
            [json!({ "securityContext": {} }), none()],
        ),
        row(
            "a struct in it",
            [json!({ "securityContext": hardened }), none()],
            [json!({ "securityContext": { "capabilities": {} } }), none()],
        ),
        row(
            "hooks",
            [json!({ "lifecycle": { "preStop": { "exec": { "command": ["x"] } } } }), none()],
            [json!({ "lifecycle": {} }), none()],
        ),
        row(
            "affinity",
            [none(), json!({ "affinity": { "nodeAffinity": nodes } })],
            [none(), json!({ "affinity": {} })],
        ),
        row(
            "affinity to nodes",
            [none(), json!({ "affinity": { "nodeAffinity": nodes } })],
            [none(), json!({ "affinity": { "nodeAffinity": {} } })],
        ),
        row(
            "name servers",
            [none(), json!({ "dnsConfig": { "searches": ["a"] } })],
            [none(), json!({ "dnsConfig": {} })],
        ),
        Row {
            twice: false,
            ..row(
                "what the server always stores",
                [
                    json!({ "resources": { "limits": { "cpu": "1" } } }),
                    json!({ "securityContext": { "fsGroup": 2 } }),
                ],
                [json!({ "resources": {} }), json!({ "securityContext": {} })],
            )
        },
        Row {
            twice: false,
            ..row(
                "maps and lists",
                [env(&[("A", "1")]), json!({ "nodeSelector": { "a": "b" } })],
                [json!({ "env": [] }), json!({ "nodeSelector": {} })],
            )
        },
    ]
}

async fn applied(client: &kube::Client, object: &Value) -> Value {
    match server::apply(client, object, APPLIER, false, Run::Real).await {
        Answer::Object(object) => object,
        refused => panic!("{refused:?}: {object}"),
    }
}

#[tokio::test]
async fn one_apply_has_the_same_result_as_several() {
    if !kubernetes::keeps_templates_as_sent() {
        return;
    }
    let plane = api_server();
    let client = plane.client();
    let mut wrong = Vec::new();
    for (at, row) in rows().into_iter().enumerate() {
        let of = |name: &str, [own, pod]: &[Value; 2]| daemon_set(name, own, pod);
        // The plain manifest, twice.
        let name = format!("emptied-{at}");
        let desired = desired(&of(&name, &row.now)).unwrap();
        applied(&client, &of(&name, &row.first)).await;
        let once = applied(&client, &sent(&desired)).await;
        let twice = applied(&client, &sent(&desired)).await;
        let differ = once["spec"]["template"] != twice["spec"]["template"];
        assert_eq!(differ, row.twice, "{}", row.rule);

        // As `ds-apply` sends it; with the same name, so only the method differs.
        server::delete(&client, &name).await;
        applied(&client, &of(&name, &row.first)).await;
        let before = planning::live(&plane).await;
        let plan = planning::planned(&before, std::slice::from_ref(&desired));
        let warned = plan.warnings.iter().any(|it| it.code == "emptiedFields");
        assert_eq!(warned, row.twice, "{}: {:?}", row.rule, plan.warnings);
        let target = super::planned::target(&before, &desired).unwrap();
        let live = server::get(&client, &name).await;
        let ours = applied(&client, &settled(live.as_ref(), sent(&desired))).await;
        let again = applied(&client, &sent(&desired)).await;
        let outcome = equal("plan", &decided(&target), &decided(&ours))
            .and_then(|()| equal("template", &decided(&ours), &decided(&twice)))
            .and_then(|()| equal("once more", &decided(&again), &decided(&ours)))
            .and_then(|()| {
                let generation = |object: &Value| object["metadata"]["generation"].clone();
                equal("generation", &generation(&again), &generation(&ours))
            })
            .and_then(|()| equal("ownership", &ownership_in(&again), &ownership_in(&twice)));
        wrong.extend(outcome.err().map(|difference| format!("{}: {difference}", row.rule)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
