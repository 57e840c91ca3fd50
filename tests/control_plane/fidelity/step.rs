//! The parts of a scenario: nodes, and steps in order.

use serde_json::{Value, json};

use super::view::View;

/// A scenario that is run on both clusters.
#[derive(Clone)]
pub(super) struct Scenario {
    /// Its name, also that of its namespace, and the prefix of its nodes' names.
    pub(super) name: &'static str,
    /// The nodes at the beginning.
    pub(super) nodes: Vec<Node>,
    /// Whether the assignment to nodes does not matter: upstream iterates over a hash map.
    pub(super) alike: bool,
    /// Whether two controllers race in it, so the order on a node does not matter.
    pub(super) races: bool,
    /// The steps, in order.
    pub(super) steps: Vec<Step>,
}

/// A node: its short name, and its differences from the default node.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) name: &'static str,
    pub(super) change: Value,
}

/// A step. Patches are JSON merge patches; nodes have their short names.
#[derive(Clone)]
pub(super) enum Step {
    /// Server-side apply of the scenario's manifest, with this merged into it.
    Apply(Value),
    /// Patches the DaemonSet.
    Patch(Value),
    /// Deletes the DaemonSet with this propagation policy.
    Delete(&'static str),
    /// Restores the template of the revision of this number, as `kubectl rollout undo` does.
    Undo(i64),
    /// Deletes the pods on a node.
    DeletePods(&'static str),
    /// Patches the pods on a node.
    PatchPods(&'static str, Value),
    /// Patches the status of the pods on a node.
    PodStatus(&'static str, Value),
    /// Creates a pod by hand, bound to a node, with this merged into it.
    AddPod(&'static str, Value),
    /// Adds a node.
    AddNode(Node),
    /// Deletes a node.
    RemoveNode(&'static str),
    /// Patches a node.
    PatchNode(&'static str, Value),
    /// The kubelet of a node reports whether it is ready.
    NodeReady(&'static str, bool),
    /// Patches the revision of this number.
    PatchRevision(i64, Value),
    /// Deletes the revision of this number.
    DeleteRevision(i64),
    /// Creates a revision by hand: a copy of the one of this number, with this merged into it.
    CopyRevision(i64, Value),
    /// Deletes the revision of this number and creates it again with this merged into it.
    SwapRevision(i64, Value),
    /// Stops the controller manager.
    Stop,
    /// Starts the controller manager again.
    Start,
    /// Waits until nothing changes any more, and records the state.
    Rest,
    /// Waits for a condition.
    Until(&'static str, fn(&View) -> bool),
}

impl Step {
    /// Whether the step records anything.
    pub(super) fn looks(&self) -> bool {
        matches!(self, Self::Rest)
    }
}

impl Scenario {
    /// A scenario with this many plain nodes: `n1`, `n2` and so on.
    pub(super) fn new(name: &'static str, nodes: usize) -> Self {
        const NAMES: [&str; 6] = ["n1", "n2", "n3", "n4", "n5", "n6"];
        let nodes = NAMES[..nodes].iter().map(|&name| node(name, json!({}))).collect();
        Self { name, nodes, alike: false, races: false, steps: Vec::new() }
    }

    /// Marks the nodes as alike: the assignment to nodes does not matter.
    pub(super) fn alike(mut self) -> Self {
        self.alike = true;
        self
    }

    /// Marks the scenario as one in which two controllers race.
    pub(super) fn racing(mut self) -> Self {
        self.races = true;
        self
    }

    /// Adds a node.
    pub(super) fn with(mut self, name: &'static str, change: Value) -> Self {
        self.nodes.push(node(name, change));
        self
    }

    /// Adds an apply of a manifest, then waits for the cluster to settle.
    pub(super) fn settles(self, change: Value) -> Self {
        self.does([Step::Apply(change)])
    }

    /// Adds these steps, then waits for the cluster to settle.
    pub(super) fn does<const COUNT: usize>(mut self, steps: [Step; COUNT]) -> Self {
        self.steps.extend(steps);
        self.steps.push(Step::Rest);
        self
    }

    /// Whether the controller manager is stopped in it.
    pub(super) fn stops(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Stop))
    }

    /// The full name of a node.
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

    /// A pod like those of `agent`, created by hand.
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

/// A node with these differences from the default node.
pub(super) fn node(name: &'static str, change: Value) -> Node {
    Node { name, change }
}
