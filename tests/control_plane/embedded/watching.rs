//! Watches: initial events, later events, and their end.

use embedded::Server;
use http::Request;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::creating::pod;
use super::player::simulated;
use super::quiet;
use crate::harness::block_on;

const PODS: &str = "/api/v1/namespaces/default/pods";

#[test]
fn watches_send_the_events_of_a_real_server() {
    let plane = quiet();
    let real = plane.client();
    let (want, got) = block_on(async move {
        let server: Server = simulated();
        (lines(&real).await, lines(&server.client()).await)
    });
    assert_eq!(got, want);
}

/// Changes pods while three watches are open; returns the events of each.
async fn lines(client: &Client) -> Vec<Vec<String>> {
    let send = async |method: &str, path: &str, body: Value| -> Value {
        let media =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header("content-type", media);
        let request = request.body(body.to_string().into_bytes().into()).unwrap();
        let answer = client.send(request).await.unwrap().into_body();
        serde_json::from_slice(&answer.collect_bytes().await.unwrap()).unwrap()
    };
    let with_tier = |name: &str, tier: &str| {
        let mut pod = pod(name);
        pod["metadata"]["labels"]["tier"] = tier.into();
        pod["spec"]["nodeName"] = "n".into();
        pod
    };
    send("POST", PODS, with_tier("first", "x")).await;
    let list = send("GET", PODS, json!(null)).await;
    let version = list["metadata"]["resourceVersion"].as_str().unwrap();
    let from = format!("&resourceVersion={version}");
    let watches = [
        "",
        &from,
        &format!("{from}&labelSelector=tier%3Dx"),
        "&fieldSelector=metadata.name%3Dsecond",
        "&resourceVersion=0",
        "&resourceVersion=x",
    ];
    let watches = futures::future::join_all(watches.map(|query| watch(client, query.to_owned())));
    let changes = async {
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        send("POST", PODS, with_tier("second", "x")).await;
        for tier in ["y", "x"] {
            let label = json!({"metadata": {"labels": {"tier": tier}}});
            send("PATCH", &format!("{PODS}/second"), label).await;
        }
        send("DELETE", &format!("{PODS}/first"), json!({})).await;
        send("DELETE", &format!("{PODS}/first"), json!({"gracePeriodSeconds": 0})).await;
    };
    futures::join!(watches, changes).0
}

/// All events of a watch of three seconds: code, then kind of event, name, tier and whether the pod
/// is terminating.
async fn watch(client: &Client, query: String) -> Vec<String> {
    let uri = format!("{PODS}?watch=true&timeoutSeconds=3{query}");
    let answer = client.send(Request::get(uri).body(Body::empty()).unwrap()).await.unwrap();
    let code = answer.status().as_u16();
    let body = answer.into_body().collect_bytes().await.unwrap();
    let text = String::from_utf8(body.into()).unwrap();
    let reported = text.lines().map(|line| {
        let event: Value = serde_json::from_str(line).unwrap();
        let metadata = &event["object"]["metadata"];
        let going = !metadata["deletionTimestamp"].is_null();
        let kind = event["type"].as_str().or(event["message"].as_str()).unwrap();
        format!("{kind} {} {} {going}", metadata["name"], metadata["labels"]["tier"])
    });
    [code.to_string()].into_iter().chain(reported).collect()
}
