//! Other people, who do what they like with the DaemonSets and pods of a run.

use ds_plan::simulator::{Server, World};
use http::Request;
use kube::client::Body;
use serde_json::{Value, json};
use tower_service::Service as _;

use crate::cluster::NAMESPACE;
use crate::objects::pods;
use crate::scenario::What;

/// The name under which they do it.
pub(crate) const SOMEBODY: &str = "somebody";

/// Does one thing to a DaemonSet. What has become impossible is not done.
pub(crate) async fn meddle(world: &World, name: &str, what: What) {
    let server = world.server().as_user(SOMEBODY);
    let daemon_set = format!("/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/{name}");
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
        What::Label => json!({"metadata": {"labels": {"seen": "yes"}}}),
        What::Delete => return send(server, "DELETE", &daemon_set, &json!({})).await,
        What::Pod => {
            let first = pods(&world.server().store())
                .find(|pod| pod.name.as_str().starts_with(name))
                .map(|pod| pod.name.to_string());
            let Some(pod) = first else { return };
            let path = format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}");
            return send(server, "DELETE", &path, &json!({})).await;
        }
    };
    send(server, "PATCH", &daemon_set, &patch).await;
}

async fn send(mut server: Server, method: &str, path: &str, body: &Value) {
    let request = Request::builder()
        .method(method)
        .uri(format!("{path}?fieldManager={SOMEBODY}"))
        .header("content-type", "application/merge-patch+json")
        .body(Body::from(body.to_string().into_bytes()))
        .expect("a request");
    // What it answers is theirs to know.
    drop(server.call(request).await);
}
