//! What a scenario is made of: nodes, and what somebody does, one thing after the other.

use serde_json::{Value, json};

use super::view::View;

/// A story that is played on both clusters.
#[derive(Clone)]
pub(super) struct Scenario {
    /// Its name, its namespace's, and the beginning of its nodes' names.
    pub(super) name: &'static str,
    /// The nodes that are there at the beginning.
    pub(super) nodes: Vec<Node>,
    /// Whether it does not matter which node gets what: upstream goes through a hash map.
    pub(super) alike: bool,
    /// Whether two controllers race in it, so that the order on a node does not matter.
    pub(super) races: bool,
    /// What is done.
    pub(super) steps: Vec<Step>,
}

/// A node to be: its short name, and what it has beyond any other.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) name: &'static str,
    pub(super) change: Value,
}

/// Something that somebody does. Patches are JSON merge patches; nodes go by their short names.
#[derive(Clone)]
pub(super) enum Step {
    /// The manifest of the scenario, with this merged into it, is applied on the server's side.
    Apply(Value),
    /// The DaemonSet is patched.
    Patch(Value),
    /// The DaemonSet is deleted with this propagation policy.
    Delete(&'static str),
    /// The template is put back to that of the revision of this number, as `kubectl` does.
    Undo(i64),
    /// The pods on a node are deleted.
    DeletePods(&'static str),
    /// The pods on a node are patched.
    PatchPods(&'static str, Value),
    /// The status of the pods on a node is patched.
    PodStatus(&'static str, Value),
    /// A pod is made by hand, bound to a node, with this merged into it.
    AddPod(&'static str, Value),
    /// A node joins.
    AddNode(Node),
    /// A node is deleted.
    RemoveNode(&'static str),
    /// A node is patched.
    PatchNode(&'static str, Value),
    /// The kubelet of a node says whether that is ready.
    NodeReady(&'static str, bool),
    /// The revision of this number is patched.
    PatchRevision(i64, Value),
    /// The revision of this number is deleted.
    DeleteRevision(i64),
    /// A revision is made by hand: a copy of the one of this number, with this merged into it.
    CopyRevision(i64, Value),
    /// The revision of this number is deleted, and made anew with this merged into it.
    SwapRevision(i64, Value),
    /// The controller manager is stopped.
    Stop,
    /// The controller manager is started again.
    Start,
    /// Everybody waits until nothing moves any more, and what has become is written down.
    Rest,
    /// Everybody waits for something.
    Until(&'static str, fn(&View) -> bool),
}

impl Step {
    /// Whether anything is written down.
    pub(super) fn looks(&self) -> bool {
        matches!(self, Self::Rest)
    }
}

impl Scenario {
    /// A scenario with so many plain nodes: `n1`, `n2` and so on.
    pub(super) fn new(name: &'static str, nodes: usize) -> Self {
        const NAMES: [&str; 6] = ["n1", "n2", "n3", "n4", "n5", "n6"];
        let nodes = NAMES[..nodes].iter().map(|&name| node(name, json!({}))).collect();
        Self { name, nodes, alike: false, races: false, steps: Vec::new() }
    }

    /// It does not matter which node gets what.
    pub(super) fn alike(mut self) -> Self {
        self.alike = true;
        self
    }

    /// Two controllers race in it.
    pub(super) fn racing(mut self) -> Self {
        self.races = true;
        self
    }

    /// It has one more node.
    pub(super) fn with(mut self, name: &'static str, change: Value) -> Self {
        self.nodes.push(node(name, change));
        self
    }

    /// A manifest is applied, and all comes to rest.
    pub(super) fn settles(self, change: Value) -> Self {
        self.does([Step::Apply(change)])
    }

    /// This is done, and then all comes to rest.
    pub(super) fn does<const COUNT: usize>(mut self, steps: [Step; COUNT]) -> Self {
        self.steps.extend(steps);
        self.steps.push(Step::Rest);
        self
    }

    /// Whether the controller manager is stopped in it.
    pub(super) fn stops(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Stop))
    }

    /// The whole name of a node.
    pub(super) fn node(&self, short: &str) -> String {
        format!("{}-{short}", self.name)
    }

    /// The manifest of its DaemonSet, `agent`, with `change` merged into it.
    pub(super) fn manifest(&self, change: &Value) -> Value {
        let mut manifest = json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": "agent", "namespace": self.name},
            "spec": {
                "selector": {"matchLabels": {"app": "agent"}},
                "template": {
                    "metadata": {"labels": {"app": "agent"}},
                    "spec": {
                        "nodeSelector": {"scenario": self.name},
                        "containers": [{"name": "main", "image": "agent:v1"}],
                    },
                },
            },
        });
        json_patch::merge(&mut manifest, change);
        manifest
    }

    /// A pod as `agent` has them, made by hand.
    pub(super) fn pod(&self, node: &str, change: &Value) -> Value {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": format!("hand-{node}"), "labels": {"app": "agent"}},
            "spec": {
                "nodeName": self.node(node),
                "containers": [{"name": "main", "image": "agent:v1"}],
            },
        });
        json_patch::merge(&mut pod, change);
        pod
    }

    /// A node as its kubelet registers it.
    pub(super) fn node_object(&self, node: &Node) -> Value {
        let name = self.node(node.name);
        let mut object = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": {
                "name": name,
                "labels": {
                    "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                    "scenario": self.name, "node": node.name,
                },
            },
            "status": {
                "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"},
                "capacity": {"cpu": "8", "memory": "32Gi", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        });
        json_patch::merge(&mut object, &node.change);
        object
    }
}

/// A node that has this beyond any other.
pub(super) fn node(name: &'static str, change: Value) -> Node {
    Node { name, change }
}
