//! A node, as a cloud's kubelet reports it.

use serde_json::{Map, Value, json};

use super::{BORN, POOLS, SEEN, managed, number, sha256, uid};

pub(crate) fn name(at: usize) -> String {
    format!("ip-10-{}-{}-{}.eu-central-1.compute.internal", at >> 16, (at >> 8) & 255, at & 255)
}

pub(crate) fn address(at: usize) -> String {
    format!("10.{}.{}.{}", at >> 16, (at >> 8) & 255, at & 255)
}

/// One in a hundred is NotReady, and one in two hundred is cordoned.
pub(crate) fn is_ready(at: usize) -> bool {
    at % 100 != 42
}

pub(crate) fn object(at: usize) -> Value {
    let name = name(at);
    let labels = labels(at, &name);
    let annotations = annotations(at);
    let status = status(at, &name);
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "managedFields": [
                managed("kubelet", None, &json!({ "metadata": { "labels": labels, "annotations": annotations } })),
                managed("kube-controller-manager", None, &json!({ "metadata": { "annotations": { "node.alpha.kubernetes.io/ttl": "" } }, "spec": { "podCIDR": "", "taints": "" } })),
                managed("kubelet", Some("status"), &json!({ "status": { "allocatable": status["allocatable"], "capacity": status["capacity"], "conditions": status["conditions"], "images": "" } })),
            ],
            "annotations": annotations,
            "creationTimestamp": BORN,
            "finalizers": ["wrangler.cattle.io/node"],
            "labels": labels,
            "name": name,
            "resourceVersion": (number("version", &name) % 1_000_000_000).to_string(),
            "uid": uid("node", &name),
        },
        "spec": spec(at),
        "status": status,
    })
}

fn labels(at: usize, name: &str) -> Value {
    json!({
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/instance-type": "m6i.4xlarge",
        "beta.kubernetes.io/os": "linux",
        "eks.amazonaws.com/capacityType": "ON_DEMAND",
        "eks.amazonaws.com/nodegroup": format!("pool-{}", at % POOLS),
        "eks.amazonaws.com/nodegroup-image": "ami-0d6c8f1be6b1d7a53",
        "example.com/pool": format!("pool-{}", at % POOLS),
        "failure-domain.beta.kubernetes.io/region": "eu-central-1",
        "failure-domain.beta.kubernetes.io/zone": zone(at),
        "k8s.io/cloud-provider-aws": "4f2c9e18a7d35b60c1e94f7a2d8b3c56",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node-role.kubernetes.io/worker": "",
        "node.kubernetes.io/instance-type": "m6i.4xlarge",
        "topology.ebs.csi.aws.com/zone": zone(at),
        "topology.k8s.aws/zone-id": format!("euc1-az{}", at % 3 + 1),
        "topology.kubernetes.io/region": "eu-central-1",
        "topology.kubernetes.io/zone": zone(at),
    })
}

fn zone(at: usize) -> String {
    format!("eu-central-1{}", ["a", "b", "c"][at % 3])
}

fn annotations(at: usize) -> Value {
    json!({
        "alpha.kubernetes.io/provided-node-ip": address(at),
        "csi.volume.kubernetes.io/nodeid": json!({ "ebs.csi.aws.com": instance(at), "efs.csi.aws.com": instance(at) }).to_string(),
        "node.alpha.kubernetes.io/ttl": "0",
        "projectcalico.org/IPv4Address": format!("{}/20", address(at)),
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    })
}

fn instance(at: usize) -> String {
    format!("i-{:017x}", number("instance", &at.to_string()) >> 4)
}

fn spec(at: usize) -> Value {
    let mut spec = json!({
        "podCIDR": format!("100.{}.{}.0/24", 64 + (at >> 8), at & 255),
        "podCIDRs": [format!("100.{}.{}.0/24", 64 + (at >> 8), at & 255)],
        "providerID": format!("aws:///{}/{}", zone(at), instance(at)),
    });
    let mut taints = Vec::new();
    if at % POOLS == 5 {
        taints.push(json!({ "effect": "NoSchedule", "key": "nvidia.com/gpu", "value": "present" }));
    }
    if !is_ready(at) {
        for effect in ["NoSchedule", "NoExecute"] {
            taints.push(json!({ "effect": effect, "key": "node.kubernetes.io/unreachable", "timeAdded": SEEN }));
        }
    }
    if at % 200 == 7 {
        spec["unschedulable"] = true.into();
        taints.push(json!({ "effect": "NoSchedule", "key": "node.kubernetes.io/unschedulable", "timeAdded": SEEN }));
    }
    if !taints.is_empty() {
        spec["taints"] = taints.into();
    }
    spec
}

fn status(at: usize, name: &str) -> Value {
    let resources = |cpu: &str, memory: &str| {
        json!({
            "cpu": cpu, "ephemeral-storage": "104779756Ki", "hugepages-1Gi": "0",
            "hugepages-2Mi": "0", "memory": memory, "pods": "110",
        })
    };
    json!({
        "addresses": [
            { "address": address(at), "type": "InternalIP" },
            { "address": name, "type": "InternalDNS" },
            { "address": name, "type": "Hostname" },
        ],
        "allocatable": resources("15890m", "61298268Ki"),
        "capacity": resources("16", "63975004Ki"),
        "conditions": conditions(at),
        "daemonEndpoints": { "kubeletEndpoint": { "Port": 10250 } },
        "images": images(at),
        "nodeInfo": {
            "architecture": "amd64",
            "bootID": uid("boot", name),
            "containerRuntimeVersion": "containerd://2.2.1",
            "kernelVersion": "6.12.58-82.121.amzn2023.x86_64",
            "kubeProxyVersion": "",
            "kubeletVersion": "v1.36.3",
            "machineID": uid("machine", name).replace('-', ""),
            "operatingSystem": "linux",
            "osImage": "Amazon Linux 2023.9.20260105",
            "systemUUID": uid("system", name),
        },
        "volumesAttached": [],
    })
}

fn conditions(at: usize) -> Value {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| {
        json!({
            "lastHeartbeatTime": SEEN, "lastTransitionTime": BORN, "message": message,
            "reason": reason, "status": status, "type": kind,
        })
    };
    let ready = if is_ready(at) { "True" } else { "Unknown" };
    json!([
        condition(
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available"
        ),
        condition(
            "DiskPressure",
            "False",
            "KubeletHasNoDiskPressure",
            "kubelet has no disk pressure"
        ),
        condition(
            "PIDPressure",
            "False",
            "KubeletHasSufficientPID",
            "kubelet has sufficient PID available"
        ),
        condition("NetworkUnavailable", "False", "CalicoIsUp", "Calico is running on this node"),
        condition("Ready", ready, "KubeletReady", "kubelet is posting ready status"),
    ])
}

/// 27 to 37 images; the kubelet reports at most 50.
fn images(at: usize) -> Value {
    let count = 27 + at % 11;
    let image = |place: usize| {
        let number = (at * 7 + place * 13) % 400;
        let repository = format!("registry.example.com/platform/service-{number:03}");
        Value::Object(Map::from_iter([
            (
                "names".to_owned(),
                json!([
                    format!("{repository}@{}", sha256(&number.to_string())),
                    format!("{repository}:1.{}.{}", number % 40, number % 7),
                ]),
            ),
            ("sizeBytes".to_owned(), json!(20_000_000 + number * 1_234_567)),
        ]))
    };
    (0..count).map(image).collect()
}
