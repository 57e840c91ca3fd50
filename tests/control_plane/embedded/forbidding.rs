//! Requests that users may not send, with RBAC's messages.

use embedded::Denial;
use http::Request;
use kube::Client;
use kube::client::Body;
use serde_json::Value;

use super::player::simulated;
use super::quiet;
use crate::harness::block_on;

#[test]
fn denials_have_rbacs_messages() {
    let plane = quiet();
    let real = plane.client_of("dev");
    block_on(async move {
        let server = simulated();
        server.deny(vec![Denial::default()]);
        let simulated = server.as_user("dev").client();
        for (method, path) in [
            ("GET", "/api/v1/nodes"),
            ("GET", "/api/v1/nodes/a"),
            ("GET", "/api/v1/pods"),
            ("GET", "/api/v1/namespaces/default/pods?watch=true"),
            ("GET", "/api/v1/namespaces/default/pods/a"),
            ("POST", "/apis/apps/v1/namespaces/default/daemonsets"),
            ("PATCH", "/apis/apps/v1/namespaces/default/daemonsets/a"),
            ("PATCH", "/apis/apps/v1/namespaces/default/daemonsets/a/status"),
            ("DELETE", "/apis/apps/v1/namespaces/default/daemonsets/a"),
            ("PUT", "/apis/coordination.k8s.io/v1/namespaces/default/leases/a"),
            ("POST", "/api/v1/namespaces/default/pods/a/binding"),
            ("GET", "/api/v1/namespaces/default"),
        ] {
            let want = answer(&real, method, path).await;
            assert_eq!(answer(&simulated, method, path).await, want, "{method} {path}");
        }
    });
}

async fn answer(client: &Client, method: &str, path: &str) -> Value {
    let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    let body = client.send(request).await.unwrap().into_body().collect_bytes().await.unwrap();
    serde_json::from_slice(&body).unwrap()
}
