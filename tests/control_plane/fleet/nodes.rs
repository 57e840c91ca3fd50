//! The nodes of the example fleet: forty in three zones, of five kinds.

use std::ops::RangeInclusive;

use crate::harness::FakeNode;

/// A kind of node.
struct Pool {
    name: &'static str,
    instance_type: &'static str,
    arch: &'static str,
    cpu: &'static str,
    memory: &'static str,
}

const CONTROL: Pool = Pool {
    name: "control",
    instance_type: "m7i.xlarge",
    arch: "amd64",
    cpu: "3920m",
    memory: "15154Mi",
};
const WORKER: Pool = Pool {
    name: "worker",
    instance_type: "m7i.4xlarge",
    arch: "amd64",
    cpu: "15890m",
    memory: "62870Mi",
};
const ARM: Pool = Pool {
    name: "arm",
    instance_type: "m7g.2xlarge",
    arch: "arm64",
    cpu: "7910m",
    memory: "30520Mi",
};
const GPU: Pool = Pool {
    name: "gpu",
    instance_type: "g6.4xlarge",
    arch: "amd64",
    cpu: "15890m",
    memory: "62110Mi",
};

const ZONES: [&str; 3] = ["a", "b", "c"];

impl Pool {
    /// Node `number` of this kind in a zone, as it joins.
    fn node(&self, zone: &str, number: u32) -> FakeNode {
        FakeNode::new(&format!("{}-{zone}-{number:02}", self.name))
            .label("kubernetes.io/arch", self.arch)
            .label("node.kubernetes.io/instance-type", self.instance_type)
            .label("topology.kubernetes.io/region", "eu-central-1")
            .label("topology.kubernetes.io/zone", &format!("eu-central-1{zone}"))
            .label("logging.example.com/agent", "fluent-bit")
            .allocatable("cpu", self.cpu)
            .allocatable("memory", self.memory)
            .allocatable("ephemeral-storage", "95551679124")
    }

    /// Nodes of these numbers in every zone.
    fn in_every_zone(&self, numbers: RangeInclusive<u32>) -> Vec<FakeNode> {
        ZONES
            .into_iter()
            .flat_map(|zone| numbers.clone().map(move |number| self.node(zone, number)))
            .collect()
    }
}

/// Three nodes that run the control plane; a taint repels other pods.
pub(crate) fn control_plane() -> Vec<FakeNode> {
    let key = "node-role.kubernetes.io/control-plane";
    CONTROL
        .in_every_zone(1..=1)
        .into_iter()
        .map(|node| node.label(key, "").taint(key, "", "NoSchedule"))
        .collect()
}

/// Ordinary nodes, `numbers` in every zone.
pub(crate) fn workers(numbers: RangeInclusive<u32>) -> Vec<FakeNode> {
    WORKER.in_every_zone(numbers)
}

/// Six nodes with ARM processors.
pub(crate) fn arm() -> Vec<FakeNode> {
    ARM.in_every_zone(1..=2)
}

/// Four nodes with GPUs; a taint repels pods that need none.
pub(crate) fn gpu() -> Vec<FakeNode> {
    [("a", 1), ("a", 2), ("b", 1), ("c", 1)]
        .into_iter()
        .map(|(zone, number)| {
            GPU.node(zone, number)
                .label("nvidia.com/gpu.present", "true")
                .label("nvidia.com/gpu.count", "1")
                .label("nvidia.com/gpu.product", "NVIDIA-L4")
                .taint("nvidia.com/gpu", "present", "NoSchedule")
                .allocatable("nvidia.com/gpu", "1")
        })
        .collect()
}
