//! Fake nodes, many at a time.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::core::v1::Node;
use kube::Api;
use kube::api::PostParams;
use serde_json::{Value, json};

use super::client;
use super::control_plane::ControlPlane;
use super::waiting::wait_for;

/// The number of concurrent creates.
const AT_ONCE: usize = 32;

const ROLLED_OUT_WITHIN: Duration = Duration::from_mins(1);

/// The specification of a node; kwok acts as its kubelet.
#[derive(Clone, Debug)]
pub(crate) struct FakeNode {
    name: String,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    taints: Vec<Value>,
    unschedulable: bool,
    allocatable: BTreeMap<String, String>,
}

impl FakeNode {
    /// A node with 8 CPUs, 32 GiB and 110 pods, with the labels that a kubelet sets.
    pub(crate) fn new(name: &str) -> Self {
        let labels = [
            ("kubernetes.io/hostname", name),
            ("kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", "amd64"),
        ];
        let allocatable = [("cpu", "8"), ("memory", "32Gi"), ("pods", "110")];
        Self {
            name: name.to_owned(),
            labels: owned(&labels),
            annotations: BTreeMap::new(),
            taints: Vec::new(),
            unschedulable: false,
            allocatable: owned(&allocatable),
        }
    }

    /// `count` nodes, named `prefix-000` and so on, so that they sort by name.
    pub(crate) fn many(prefix: &str, count: usize) -> Vec<Self> {
        (0..count).map(|number| Self::new(&format!("{prefix}-{number:03}"))).collect()
    }

    pub(crate) fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.insert(key.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn annotation(mut self, key: &str, value: &str) -> Self {
        self.annotations.insert(key.to_owned(), value.to_owned());
        self
    }

    /// Adds a taint, with an effect such as `NoSchedule`.
    pub(crate) fn taint(mut self, key: &str, value: &str, effect: &str) -> Self {
        self.taints.push(json!({"key": key, "value": value, "effect": effect}));
        self
    }

    pub(crate) fn cordoned(mut self) -> Self {
        self.unschedulable = true;
        self
    }

    /// Sets the capacity of a resource, all of it allocatable.
    pub(crate) fn allocatable(mut self, resource: &str, quantity: &str) -> Self {
        self.allocatable.insert(resource.to_owned(), quantity.to_owned());
        self
    }

    /// The node as its kubelet would register it: including its status, in one request.
    fn object(self) -> Node {
        let Self { name, labels, annotations, taints, unschedulable, allocatable } = self;
        let node = json!({
            "metadata": {"name": name, "labels": labels, "annotations": annotations},
            "spec": {"taints": taints, "unschedulable": unschedulable},
            "status": {"capacity": allocatable, "allocatable": allocatable},
        });
        serde_json::from_value(node).expect("the fields are those of a node")
    }
}

impl ControlPlane {
    /// Creates nodes; they become ready a little later, if kwok runs.
    pub(crate) fn create_nodes(&self, nodes: impl IntoIterator<Item = FakeNode>) {
        let api: Api<Node> = Api::all(self.client());
        let nodes: Vec<Node> = nodes.into_iter().map(FakeNode::object).collect();
        let created = async move {
            stream::iter(nodes)
                .map(|node| {
                    let api = api.clone();
                    async move { api.create(&PostParams::default(), &node).await.map(drop) }
                })
                .buffer_unordered(AT_ONCE)
                .try_collect::<()>()
                .await
        };
        client::block_on(created).expect("the API server accepts the nodes");
    }

    /// Waits until the controller has rolled out the newest version of a DaemonSet to this many
    /// nodes. `kubectl rollout status` compares the counters of the status only: for it, a rollout
    /// is also complete while the controller has not seen all nodes yet.
    #[track_caller]
    pub(crate) fn wait_until_rolled_out(&self, name: &str, nodes: usize) {
        let path = "-o=jsonpath={.metadata.generation}={.status.observedGeneration} \
                    {.status.desiredNumberScheduled} {.status.updatedNumberScheduled} \
                    {.status.numberAvailable}";
        let counted = || {
            let text = self.kubectl(&["get", "daemonset", name, path]);
            let (generations, counters) = text.split_once(' ')?;
            let (newest, observed) = generations.split_once('=')?;
            (newest == observed).then(|| counters.to_owned())
        };
        let expected = Some(format!("{nodes} {nodes} {nodes}"));
        wait_for("desired, updated and available pods", ROLLED_OUT_WITHIN, expected, counted);
    }
}

fn owned(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect()
}
