//! DaemonSets, their revisions, and the manifests that change them.

use serde_json::{Value, json};

use super::{BORN, EVERYWHERE, POOLS, managed, number, uid};

const NAMESPACES: [&str; 6] =
    ["kube-system", "logging", "monitoring", "network", "security", "storage"];

pub(crate) fn name(set: usize) -> String {
    format!("agent-{set:02}")
}

pub(crate) fn namespace(set: usize) -> &'static str {
    NAMESPACES[set % NAMESPACES.len()]
}

/// The hash of the template that its pods were created from.
pub(crate) fn hash(set: usize, version: u64) -> String {
    format!("{:010x}", number("hash", &format!("{set}-{version}")) >> 24)
}

pub(crate) fn set_uid(set: usize) -> String {
    uid("daemonset", &name(set))
}

/// The manifest of a user; version 3 is not in the cluster yet.
pub(crate) fn manifest(set: usize) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": { "labels": labels(set), "name": name(set), "namespace": namespace(set) },
        "spec": spec(set, 3),
    })
}

pub(crate) fn live(set: usize, desired: usize) -> Value {
    let spec = spec(set, 2);
    let mut written =
        managed("helm", None, &json!({ "metadata": { "labels": labels(set) }, "spec": spec }));
    written["apiVersion"] = "apps/v1".into();
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "annotations": { "deprecated.daemonset.template.generation": "2" },
            "creationTimestamp": BORN,
            "generation": 2,
            "labels": labels(set),
            "managedFields": [written],
            "name": name(set),
            "namespace": namespace(set),
            "resourceVersion": "123456789",
            "uid": set_uid(set),
        },
        "spec": spec,
        "status": {
            "currentNumberScheduled": desired,
            "desiredNumberScheduled": desired,
            "numberAvailable": desired,
            "numberMisscheduled": 0,
            "numberReady": desired,
            "observedGeneration": 2,
            "updatedNumberScheduled": desired,
        },
    })
}

pub(crate) fn revisions(set: usize) -> [Value; 2] {
    [1, 2].map(|version| {
        let mut template = template(set, version);
        template["$patch"] = "replace".into();
        let hash = hash(set, version);
        let mut labels = labels(set);
        labels["controller-revision-hash"] = hash.clone().into();
        let name = format!("{}-{hash}", name(set));
        json!({
            "apiVersion": "apps/v1",
            "data": { "spec": { "template": template } },
            "kind": "ControllerRevision",
            "metadata": {
                "annotations": { "deprecated.daemonset.template.generation": version.to_string() },
                "creationTimestamp": BORN,
                "labels": labels,
                "namespace": namespace(set),
                "ownerReferences": [owner(set)],
                "resourceVersion": "1234567",
                "uid": uid("revision", &name),
                "name": name,
            },
            "revision": version,
        })
    })
}

pub(crate) fn owner(set: usize) -> Value {
    json!({
        "apiVersion": "apps/v1", "blockOwnerDeletion": true, "controller": true,
        "kind": "DaemonSet", "name": name(set), "uid": set_uid(set),
    })
}

pub(crate) fn labels(set: usize) -> Value {
    json!({
        "app.kubernetes.io/component": "agent",
        "app.kubernetes.io/instance": "platform",
        "app.kubernetes.io/managed-by": "Helm",
        "app.kubernetes.io/name": name(set),
        "helm.sh/chart": format!("{}-4.2.0", name(set)),
    })
}

fn spec(set: usize, version: u64) -> Value {
    json!({
        "minReadySeconds": 10,
        "revisionHistoryLimit": 10,
        "selector": { "matchLabels": { "app.kubernetes.io/instance": "platform", "app.kubernetes.io/name": name(set) } },
        "template": template(set, version),
        "updateStrategy": { "rollingUpdate": { "maxSurge": 0, "maxUnavailable": "10%" }, "type": "RollingUpdate" },
    })
}

fn template(set: usize, version: u64) -> Value {
    let mut spec = pod_spec(set, version);
    if set >= EVERYWHERE {
        spec["nodeSelector"] = json!({ "example.com/pool": format!("pool-{}", set % POOLS) });
    }
    spec["tolerations"] = json!([{ "operator": "Exists" }]);
    json!({
        "metadata": {
            "annotations": { "prometheus.io/port": "9100", "prometheus.io/scrape": "true" },
            "labels": labels(set),
        },
        "spec": spec,
    })
}

/// The part of the spec that the template and its pods have in common.
pub(crate) fn pod_spec(set: usize, version: u64) -> Value {
    json!({
        "affinity": { "nodeAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{ "matchExpressions": [
                { "key": "kubernetes.io/os", "operator": "In", "values": ["linux"] },
                { "key": "kubernetes.io/arch", "operator": "In", "values": ["amd64", "arm64"] },
            ] }],
        } } },
        "containers": [container(set, version, "agent"), sidecar(version, "reloader")],
        "dnsPolicy": "ClusterFirst",
        "priorityClassName": "system-node-critical",
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "serviceAccount": name(set),
        "serviceAccountName": name(set),
        "terminationGracePeriodSeconds": 30,
        "volumes": [
            { "configMap": { "defaultMode": 420, "name": name(set) }, "name": "config" },
            { "hostPath": { "path": "/var/log", "type": "" }, "name": "logs" },
        ],
    })
}

pub(crate) fn image(container: &str, version: u64) -> String {
    format!("registry.example.com/platform/{container}:4.{version}.0")
}

fn container(set: usize, version: u64, name: &str) -> Value {
    let field = |path: &str| json!({ "fieldRef": { "apiVersion": "v1", "fieldPath": path } });
    json!({
        "args": ["--config=/etc/agent/config.yaml", "--log-format=json", format!("--listen=:{}", 9100 + set)],
        "env": [
            { "name": "NODE_NAME", "valueFrom": field("spec.nodeName") },
            { "name": "POD_IP", "valueFrom": field("status.podIP") },
            { "name": "GOMEMLIMIT", "value": "180MiB" },
        ],
        "image": image(name, version),
        "imagePullPolicy": "IfNotPresent",
        "livenessProbe": {
            "failureThreshold": 3, "httpGet": { "path": "/healthz", "port": "metrics", "scheme": "HTTP" },
            "periodSeconds": 10, "successThreshold": 1, "timeoutSeconds": 1,
        },
        "name": name,
        "ports": [{ "containerPort": 9100 + set, "name": "metrics", "protocol": "TCP" }],
        "resources": { "limits": { "memory": "256Mi" }, "requests": { "cpu": "100m", "memory": "256Mi" } },
        "securityContext": { "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [
            { "mountPath": "/etc/agent", "name": "config", "readOnly": true },
            { "mountPath": "/var/log", "name": "logs", "readOnly": true },
        ],
    })
}

fn sidecar(version: u64, name: &str) -> Value {
    json!({
        "args": ["--watch=/etc/agent"],
        "image": image(name, version),
        "imagePullPolicy": "IfNotPresent",
        "name": name,
        "resources": { "limits": { "memory": "32Mi" }, "requests": { "cpu": "10m", "memory": "32Mi" } },
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [{ "mountPath": "/etc/agent", "name": "config", "readOnly": true }],
    })
}
