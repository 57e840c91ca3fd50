//! The objects of one scenario, as they are served.

use http::Request;
use kube::Client;
use serde_json::Value;

/// All objects of a scenario.
pub(super) struct View {
    pub(super) daemon_sets: Vec<Value>,
    pub(super) revisions: Vec<Value>,
    pub(super) pods: Vec<Value>,
    pub(super) nodes: Vec<Value>,
    pub(super) events: Vec<Value>,
}

impl View {
    /// Reads the current objects.
    pub(super) async fn of(client: &Client, scenario: &str) -> Self {
        let read = async |path: &str| items(client, path).await;
        let [daemon_sets, revisions, pods, events, nodes] = paths(scenario);
        Self {
            daemon_sets: read(&daemon_sets).await,
            revisions: read(&revisions).await,
            pods: read(&pods).await,
            nodes: read(&nodes).await,
            events: read(&events).await,
        }
    }

    /// The number of Ready pods.
    pub(super) fn ready(&self) -> usize {
        self.pods.iter().filter(|pod| is_ready(pod)).count()
    }
}

/// The paths to list the DaemonSets, revisions, pods, events and nodes of a scenario.
pub(super) fn paths(scenario: &str) -> [String; 5] {
    let apps = format!("/apis/apps/v1/namespaces/{scenario}");
    let core = format!("/api/v1/namespaces/{scenario}");
    [
        format!("{apps}/daemonsets?"),
        format!("{apps}/controllerrevisions?"),
        format!("{core}/pods?"),
        format!("{core}/events?"),
        format!("/api/v1/nodes?labelSelector=scenario%3D{scenario}"),
    ]
}

/// Reads an object or a list.
pub(super) async fn get(client: &Client, path: &str) -> Value {
    let request = Request::get(path).body(Vec::new()).unwrap();
    client.request(request).await.unwrap_or_else(|error| panic!("{path}: {error}"))
}

async fn items(client: &Client, path: &str) -> Vec<Value> {
    get(client, path).await["items"].as_array().unwrap().clone()
}

/// Whether a pod or a node is Ready.
pub(super) fn is_ready(object: &Value) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|it| it["type"] == "Ready" && it["status"] == "True")
}

/// The node that a pod is bound to or targets.
pub(super) fn node_of(pod: &Value) -> &str {
    const AIM: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution\
                       /nodeSelectorTerms/0/matchFields/0/values/0";
    let node = pod["spec"]["nodeName"].as_str();
    node.or_else(|| pod.pointer(AIM)?.as_str()).unwrap_or("nowhere")
}

/// The kind and name of an object's controller.
pub(super) fn owner(object: &Value) -> String {
    let owners = object["metadata"]["ownerReferences"].as_array();
    let owner = owners.into_iter().flatten().find(|owner| owner["controller"] == true);
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    owner.map_or_else(
        || "nobody's".to_owned(),
        |owner| format!("{} {}'s", text(&owner["kind"]), text(&owner["name"])),
    )
}

/// The hash label.
pub(super) fn hash_of(object: &Value) -> &str {
    object["metadata"]["labels"]["controller-revision-hash"].as_str().unwrap_or("none")
}
