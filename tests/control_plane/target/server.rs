//! Requests to the API server, in the forms that common tools use.

use kube::Client;
use kube::core::Status;
use serde_json::Value;

const DAEMON_SETS: &str = "/apis/apps/v1/namespaces/default/daemonsets";

/// The result of an apply on the server.
#[derive(Debug)]
pub(super) enum Answer {
    /// The object after the apply.
    Object(Value),
    /// Field and message of each conflict, sorted.
    Conflicts(Vec<(String, String)>),
    /// The object would be invalid.
    Invalid(String),
    /// Another failure.
    Failed(String),
}

/// Whether a request is applied or a dry run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Run {
    Dry,
    Real,
}

/// A server-side apply.
pub(super) async fn apply(
    client: &Client,
    object: &Value,
    manager: &str,
    force: bool,
    run: Run,
) -> Answer {
    let name = object["metadata"]["name"].as_str().unwrap();
    let dry = if run == Run::Dry { "&dryRun=All" } else { "" };
    let uri = format!("{DAEMON_SETS}/{name}?fieldManager={manager}&force={force}{dry}");
    let request = http::Request::patch(uri).header("Content-Type", "application/apply-patch+yaml");
    let body = serde_json::to_vec(object).unwrap();
    match client.request::<Value>(request.body(body).unwrap()).await {
        Ok(object) => Answer::Object(object),
        Err(kube::Error::Api(status)) => refusal(&status),
        Err(error) => panic!("{error:?}"),
    }
}

fn refusal(status: &Status) -> Answer {
    let causes = status.details.iter().flat_map(|details| &details.causes);
    match status.code {
        409 => {
            let cause = |cause: &kube::core::response::StatusCause| {
                (cause.field.clone(), cause.message.clone())
            };
            let mut causes: Vec<_> = causes.map(cause).collect();
            causes.sort();
            Answer::Conflicts(causes)
        }
        422 => Answer::Invalid(status.message.clone()),
        _ => Answer::Failed(format!("{}: {}", status.code, status.message)),
    }
}

/// A patch of another type by a manager; returns the server's message if it is rejected.
pub(super) async fn patch(
    client: &Client,
    path: &str,
    kind: &str,
    manager: &str,
    body: &Value,
) -> Result<Value, String> {
    let uri = format!("{DAEMON_SETS}/{path}?fieldManager={manager}");
    let content_type = format!("application/{kind}+json");
    let request = http::Request::patch(uri).header("Content-Type", content_type);
    let body = serde_json::to_vec(body).unwrap();
    client.request(request.body(body).unwrap()).await.map_err(|error| error.to_string())
}

/// The live object, including its managed fields.
pub(super) async fn get(client: &Client, name: &str) -> Option<Value> {
    let request = http::Request::get(format!("{DAEMON_SETS}/{name}")).body(Vec::new()).unwrap();
    match client.request(request).await {
        Ok(object) => Some(object),
        Err(kube::Error::Api(status)) if status.code == 404 => None,
        Err(error) => panic!("{error:?}"),
    }
}

/// Deletes an object without finalizers.
pub(super) async fn delete(client: &Client, name: &str) {
    let request = http::Request::delete(format!("{DAEMON_SETS}/{name}")).body(Vec::new()).unwrap();
    client.request::<Value>(request).await.unwrap();
}
