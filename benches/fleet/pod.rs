//! Pods of DaemonSets, and ordinary ones of a `ReplicaSet`.

use serde_json::{Value, json};

use super::daemon_set::{hash, image, labels, name, namespace, owner, pod_spec};
use super::node;
use super::{BORN, SEEN, managed, number, sha256, team, uid};

/// The template version of the pods in the cluster.
const VERSION: u64 = 2;

pub(crate) fn of_daemon_set(set: usize, at: usize) -> Value {
    let mut labels = labels(set);
    labels["controller-revision-hash"] = hash(set, VERSION).into();
    labels["pod-template-generation"] = VERSION.to_string().into();
    let generate = format!("{}-", name(set));
    let mut pod =
        object(namespace(set), &generate, at, &labels, &owner(set), pod_spec(set, VERSION));
    pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        [0]["matchFields"] =
        json!([{ "key": "metadata.name", "operator": "In", "values": [node::name(at)] }]);
    pod
}

pub(crate) fn ordinary(at: usize) -> Value {
    let app = format!("service-{:03}", at % 400);
    let hash = format!("{:09x}", number("replicaset", &app) >> 28);
    let labels = json!({
        "app.kubernetes.io/instance": app, "app.kubernetes.io/name": app,
        "app.kubernetes.io/part-of": team(at), "pod-template-hash": hash,
    });
    let replica_set = format!("{app}-{hash}");
    let owner = json!({
        "apiVersion": "apps/v1", "blockOwnerDeletion": true, "controller": true,
        "kind": "ReplicaSet", "name": replica_set, "uid": uid("replicaset", &replica_set),
    });
    object(&team(at), &format!("{replica_set}-"), at, &labels, &owner, pod_spec(at % 20, VERSION))
}

fn object(
    namespace: &str,
    generate: &str,
    at: usize,
    labels: &Value,
    owner: &Value,
    mut spec: Value,
) -> Value {
    let name = format!("{generate}{:05x}", at * 31 + 7);
    complete(&mut spec, at);
    let status = status(at, &name);
    let by_kubelet = json!({ "status": {
        "conditions": status["conditions"], "containerStatuses": "", "hostIP": "", "hostIPs": "",
        "observedGeneration": "", "phase": "", "podIP": "", "podIPs": status["podIPs"], "startTime": "",
    } });
    let by_controller = json!({
        "metadata": { "generateName": "", "labels": labels, "ownerReferences": [owner] },
        "spec": spec,
    });
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "annotations": { "prometheus.io/port": "9100", "prometheus.io/scrape": "true" },
            "creationTimestamp": BORN,
            "generateName": generate,
            "labels": labels,
            "managedFields": [
                managed("kube-controller-manager", None, &by_controller),
                managed("kubelet", Some("status"), &by_kubelet),
            ],
            "namespace": namespace,
            "ownerReferences": [owner],
            "resourceVersion": (number("version", &name) % 1_000_000_000).to_string(),
            "uid": uid(namespace, &name),
            "name": name,
        },
        "spec": spec,
        "status": status,
    })
}

/// Adds the fields that admission, the controller and the scheduler set.
fn complete(spec: &mut Value, at: usize) {
    let toleration = |key: &str, effect: &str| json!({ "effect": effect, "key": format!("node.kubernetes.io/{key}"), "operator": "Exists" });
    spec["enableServiceLinks"] = true.into();
    spec["nodeName"] = node::name(at).into();
    spec["preemptionPolicy"] = "PreemptLowerPriority".into();
    spec["priority"] = 2_000_001_000.into();
    spec["tolerations"] = json!([
        toleration("not-ready", "NoExecute"),
        toleration("unreachable", "NoExecute"),
        toleration("disk-pressure", "NoSchedule"),
        toleration("memory-pressure", "NoSchedule"),
        toleration("pid-pressure", "NoSchedule"),
        toleration("unschedulable", "NoSchedule"),
    ]);
    let token = format!("kube-api-access-{:05x}", at % 0xf_ffff);
    let mount = json!({ "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": token, "readOnly": true });
    for container in spec["containers"].as_array_mut().into_iter().flatten() {
        container["volumeMounts"]
            .as_array_mut()
            .into_iter()
            .for_each(|all| all.push(mount.clone()));
    }
    let sources = json!([
        { "serviceAccountToken": { "expirationSeconds": 3607, "path": "token" } },
        { "configMap": { "items": [{ "key": "ca.crt", "path": "ca.crt" }], "name": "kube-root-ca.crt" } },
        { "downwardAPI": { "items": [{ "fieldRef": { "apiVersion": "v1", "fieldPath": "metadata.namespace" }, "path": "namespace" }] } },
    ]);
    let volume = json!({ "name": token, "projected": { "defaultMode": 420, "sources": sources } });
    spec["volumes"].as_array_mut().into_iter().for_each(|all| all.push(volume.clone()));
}

fn status(at: usize, name: &str) -> Value {
    let ready = if node::is_ready(at) { "True" } else { "False" };
    let condition = |kind: &str, status: &str| json!({ "lastProbeTime": null, "lastTransitionTime": BORN, "observedGeneration": 1, "status": status, "type": kind });
    let ip = format!("100.{}.{}.{}", 64 + (at >> 8), at & 255, number("ip", name) % 250 + 2);
    json!({
        "conditions": [
            condition("PodReadyToStartContainers", "True"), condition("Initialized", "True"),
            condition("Ready", ready), condition("ContainersReady", ready), condition("PodScheduled", "True"),
        ],
        "containerStatuses": [container_status(name, "agent"), container_status(name, "reloader")],
        "hostIP": node::address(at),
        "hostIPs": [{ "ip": node::address(at) }],
        "observedGeneration": 1,
        "phase": "Running",
        "podIP": ip,
        "podIPs": [{ "ip": ip }],
        "qosClass": "Burstable",
        "startTime": BORN,
    })
}

fn container_status(pod: &str, name: &str) -> Value {
    let id = sha256(&format!("{pod}/{name}")).replace("sha256:", "containerd://");
    json!({
        "containerID": id,
        "image": image(name, VERSION),
        "imageID": format!("registry.example.com/platform/{name}@{}", sha256(name)),
        "lastState": {},
        "name": name,
        "ready": true,
        "restartCount": number("restarts", pod) % 3,
        "started": true,
        "state": { "running": { "startedAt": SEEN } },
    })
}
