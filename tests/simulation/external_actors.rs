//! Other clients, who change the DaemonSets and pods of a run.

use daemonset::model::{lease_name, record_name};
use embedded::{Kind, Server, World};
use http::Request;
use jiff::Timestamp;
use kube::client::Body;
use serde_json::{Value, json};
use tower_service::Service as _;

use crate::checks::BROKEN;
use crate::cluster::NAMESPACE;
use crate::objects::pods;
use crate::scenario::{Scenario, What};

/// The user name of these clients.
pub(crate) const EXTERNAL_USER: &str = "somebody";

/// Makes one change to a DaemonSet: the first one, but any of them may lose its lock. Does nothing if the change has become impossible.
pub(crate) async fn interfere(world: &World, scenario: &Scenario, what: What) {
    let name = scenario.agents[0].name;
    let server = world.server().as_user(EXTERNAL_USER);
    let object = if scenario.managed {
        format!("/api/v1/namespaces/{NAMESPACE}/configmaps/{}", record_name(&name.into()))
    } else {
        format!("/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/{name}")
    };
    let template = |template: Value| json!({"spec": {"template": template}});
    let image = |image: &str| {
        let containers = json!([{"name": "main", "image": image, "env": []}]);
        template(json!({"spec": {"containers": containers}}))
    };
    let patch = match what {
        What::Restart => {
            let annotations = json!({"kubectl.kubernetes.io/restartedAt": "today"});
            template(json!({"metadata": {"annotations": annotations}}))
        }
        What::Image => image("registry.example/agent:3"),
        What::Strategy => {
            let limits = json!({"maxUnavailable": 1, "maxSurge": 0});
            let strategy = json!({"type": "RollingUpdate", "rollingUpdate": limits});
            json!({"spec": {"updateStrategy": strategy}})
        }
        What::Unlock => {
            let now = world.clock().elapsed().as_secs();
            let agent = usize::try_from(now).unwrap_or_default() % scenario.agents.len();
            let lease = lease_name(scenario.agents[agent].name);
            let path =
                format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{lease}");
            let free = json!({"spec": {"holderIdentity": null}});
            return send(server, "PATCH", &path, &free).await;
        }
        What::Label => json!({"metadata": {"labels": {"seen": "yes"}}}),
        What::Delete => return send(server, "DELETE", &object, &json!({})).await,
        What::Pod => {
            let first = pods(&world.server().store())
                .find(|pod| pod.name.as_str().starts_with(name))
                .map(|pod| pod.name.to_string());
            let Some(pod) = first else { return };
            let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}");
            return send(server, "DELETE", &path, &json!({})).await;
        }
    };
    let patch = if scenario.managed { in_record(world, name, &patch) } else { Some(patch) };
    if let Some(patch) = patch {
        send(server, "PATCH", &object, &patch).await;
    }
}

/// Wraps the patch for the DaemonSet inside a record, if there is a record.
fn in_record(world: &World, name: &str, patch: &Value) -> Option<Value> {
    let record = record_name(&name.into());
    let config_map = world.server().store().get(Kind::ConfigMap, NAMESPACE, &record)?.value();
    let mut object: Value = serde_json::from_str(config_map["data"]["daemonSet"].as_str()?).ok()?;
    json_patch::merge(&mut object, patch);
    Some(json!({"data": {"daemonSet": object.to_string()}}))
}

/// A node says that it is broken, or not, or no more whether.
pub(crate) async fn say_broken(world: &World, node: &str, is_broken: Option<bool>) {
    let found = world.server().store().get(Kind::Node, "", node).map(|it| it.value());
    let Some(mut found) = found else { return };
    let now = world.clock().now();
    let Some(conditions) = found["status"]["conditions"].as_array_mut() else { return };
    conditions.retain(|condition| condition["type"] != BROKEN);
    if let Some(is_broken) = is_broken {
        let status = if is_broken { "True" } else { "False" };
        let since = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
        conditions.push(json!({"type": BROKEN, "status": status, "lastTransitionTime": since}));
    }
    let patch = json!({"status": {"conditions": conditions}});
    let server = world.server().as_user(EXTERNAL_USER);
    send(server, "PATCH", &format!("/api/v1/nodes/{node}/status"), &patch).await;
}

pub(crate) async fn send(mut server: Server, method: &str, path: &str, body: &Value) {
    let request = Request::builder()
        .method(method)
        .uri(format!("{path}?fieldManager={EXTERNAL_USER}"))
        .header("content-type", "application/merge-patch+json")
        .body(Body::from(body.to_string().into_bytes()))
        .expect("a request");
    // The answer does not matter here.
    drop(server.call(request).await);
}
