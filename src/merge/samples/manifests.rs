//! Random manifests: valid DaemonSets and parts of them, small enough to meet each other in every
//! kind of field, written the ways people write them.

use serde_json::{Map, Value, json};

use super::dice::Dice;

/// A whole DaemonSet, as somebody keeps it in a repository.
pub(crate) fn whole(dice: &mut Dice, name: &str) -> Value {
    let mut spec = json!({
        "selector": { "matchLabels": { "app": name } },
        "template": { "metadata": template_metadata(dice, name), "spec": pod(dice) },
    });
    settings(dice, &mut spec);
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": metadata(dice, name), "spec": spec,
    })
}

/// What another manager applies: some fields, of containers only those that it cares for.
pub(crate) fn part(dice: &mut Dice, name: &str) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata(dice, name),
    });
    if dice.one_in(2) {
        let mut spec = json!({});
        settings(dice, &mut spec);
        object["spec"] = spec;
    }
    match dice.below(4) {
        0 | 1 => {
            let mut container = json!({ "name": "agent" });
            container_details(dice, &mut container);
            object["spec"]["template"]["spec"]["containers"] = json!([container]);
        }
        2 => object["spec"]["template"]["spec"] = pod(dice),
        _ => {}
    }
    object
}

fn metadata(dice: &mut Dice, name: &str) -> Value {
    let mut metadata = json!({ "name": name, "namespace": "default" });
    let metadata_fields = metadata.as_object_mut().unwrap();
    maybe(dice, metadata_fields, "labels", 2, |dice| texts(dice, &["team", "a.b/c", "tier"]));
    maybe(dice, metadata_fields, "annotations", 2, |dice| texts(dice, &["note", "x.y/z"]));
    maybe(dice, metadata_fields, "finalizers", 6, |dice| json!(dice.some(&["x.y/a", "x.y/b"])));
    maybe(dice, metadata_fields, "ownerReferences", 8, owners);
    metadata
}

fn owners(dice: &mut Dice) -> Value {
    let owner = |uid: &&str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": format!("owner-{uid}"), "uid": uid,
        })
    };
    dice.some(&["u1", "u2"]).iter().map(owner).collect()
}

fn template_metadata(dice: &mut Dice, name: &str) -> Value {
    let mut labels = texts(dice, &["team", "v"]);
    labels["app"] = json!(name);
    let mut metadata = json!({ "labels": labels });
    let fields = metadata.as_object_mut().unwrap();
    maybe(dice, fields, "annotations", 2, |dice| texts(dice, &["note", "prometheus.io/port"]));
    metadata
}

/// Fields of the spec beside selector and template.
fn settings(dice: &mut Dice, spec: &mut Value) {
    let spec = spec.as_object_mut().unwrap();
    maybe(dice, spec, "minReadySeconds", 3, |dice| json!(dice.below(3)));
    maybe(dice, spec, "revisionHistoryLimit", 3, |dice| json!(9 + dice.below(3)));
    maybe(dice, spec, "updateStrategy", 2, |dice| {
        dice.pick(&[
            json!({ "type": "OnDelete" }),
            json!({ "type": "RollingUpdate" }),
            json!({ "rollingUpdate": { "maxUnavailable": 1 } }),
            json!({ "rollingUpdate": { "maxUnavailable": "10%", "maxSurge": 0 } }),
            json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 2, "maxUnavailable": 0 } }),
            json!({ "type": "RollingUpdate", "rollingUpdate": {} }),
        ])
        .clone()
    });
}

fn pod(dice: &mut Dice) -> Value {
    let names = ["agent", "proxy", "logger", "helper"];
    let mut chosen = dice.some(&names);
    if chosen.is_empty() {
        chosen.push("agent");
    }
    let mut containers: Vec<Value> = chosen.iter().map(|name| container(dice, name)).collect();
    let volumes = volumes(dice, &mut containers);
    let mut pod = json!({ "containers": containers });
    let fields = pod.as_object_mut().unwrap();
    if let Some(volumes) = volumes {
        fields.insert("volumes".to_owned(), volumes);
    }
    maybe(dice, fields, "initContainers", 4, |dice| {
        let mut container = container(dice, "init");
        container.as_object_mut().unwrap().remove("livenessProbe");
        json!([container])
    });
    maybe(dice, fields, "nodeSelector", 3, |dice| texts(dice, &["disk", "zone"]));
    maybe(dice, fields, "serviceAccountName", 4, |dice| json!(dice.pick(&["one", "two"])));
    maybe(dice, fields, "hostNetwork", 6, |dice| json!(dice.one_in(2)));
    maybe(dice, fields, "securityContext", 4, |dice| {
        dice.pick(&[json!({}), json!({ "runAsUser": 1 }), json!({ "fsGroup": 2, "runAsUser": 2 })])
            .clone()
    });
    maybe(dice, fields, "terminationGracePeriodSeconds", 4, |dice| json!(30 + dice.below(2)));
    maybe(dice, fields, "tolerations", 3, |dice| {
        dice.some(&[json!({ "operator": "Exists" }), json!({ "key": "gpu" })]).into()
    });
    maybe(dice, fields, "imagePullSecrets", 4, |dice| named(&dice.some(&["s1", "s2"])));
    maybe(dice, fields, "hostAliases", 4, |dice| {
        let alias = |ip: &&str| json!({ "ip": ip, "hostnames": ["a", "b"] });
        dice.some(&["1.1.1.1", "2.2.2.2"]).iter().map(alias).collect()
    });
    maybe(dice, fields, "topologySpreadConstraints", 5, |dice| {
        let spread = |when: &&str| {
            json!({
                "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": when,
                "labelSelector": { "matchLabels": { "a": "b" } },
            })
        };
        dice.some(&["DoNotSchedule", "ScheduleAnyway"]).iter().map(spread).collect()
    });
    maybe(dice, fields, "affinity", 5, |_| {
        json!({ "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
            { "matchExpressions": [{ "key": "disk", "operator": "Exists" }] },
        ] },
    } })
    });
    maybe(dice, fields, "dnsConfig", 6, |dice| json!({ "searches": dice.some(&["a", "b"]) }));
    pod
}

/// Volumes, and mounts of them.
fn volumes(dice: &mut Dice, containers: &mut [Value]) -> Option<Value> {
    if dice.one_in(2) {
        return None;
    }
    let mut volumes = Vec::new();
    for kind in dice.some(&["emptyDir", "configMap", "hostPath", "secret"]) {
        let source = match kind {
            "emptyDir" => dice.pick(&[json!({}), json!({ "sizeLimit": "1Gi" })]).clone(),
            "configMap" => json!({ "name": "c", "items": [{ "key": "k", "path": "p" }] }),
            "hostPath" => json!({ "path": *dice.pick(&["/p", "/q"]) }),
            _ => json!({ "secretName": "s", "optional": dice.one_in(2) }),
        };
        let name = kind.to_lowercase();
        for container in &mut *containers {
            if dice.one_in(2) {
                let mounts = &mut container["volumeMounts"];
                if mounts.is_null() {
                    *mounts = json!([]);
                }
                let mount = json!({ "name": name, "mountPath": format!("/<{name}>") });
                mounts.as_array_mut().unwrap().push(mount);
            }
        }
        volumes.push(json!({ "name": name, kind: source }));
    }
    Some(volumes.into())
}

fn container(dice: &mut Dice, name: &str) -> Value {
    let image = *dice.pick(&["cr.example/a:1", "cr.example/a:2"]);
    let mut container = json!({ "name": name, "image": image });
    container_details(dice, &mut container);
    container
}

fn container_details(dice: &mut Dice, container: &mut Value) {
    let fields = container.as_object_mut().unwrap();
    maybe(dice, fields, "args", 3, |dice| json!(dice.some(&["-v", "--all", "-q"])));
    maybe(dice, fields, "env", 2, |dice| {
        let from = json!({ "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } });
        let mut variables = Vec::new();
        for name in dice.some(&["A", "B", "C", "D"]) {
            let values = [json!({ "value": "1" }), json!({ "value": "2" }), json!({})];
            let mut variable = dice.pick(&values).clone();
            if dice.one_in(12) {
                variable = from.clone();
            }
            variable["name"] = json!(name);
            variables.push(variable);
        }
        variables.into()
    });
    maybe(dice, fields, "ports", 3, |dice| {
        dice.some(&[
            json!({ "containerPort": 53 }),
            json!({ "containerPort": 53, "protocol": "UDP", "name": "dns" }),
            json!({ "containerPort": 80, "protocol": "TCP" }),
        ])
        .into()
    });
    maybe(dice, fields, "resources", 2, |dice| {
        let mut resources = json!({});
        for (kind, quantities) in
            dice.some(&[("limits", ["1", "1000m", "2"]), ("requests", ["100m", "0.1", "0.5"])])
        {
            let name = *dice.pick(&["cpu", "memory"]);
            resources[kind] = json!({ name: dice.pick(&quantities) });
        }
        resources
    });
    maybe(
        dice,
        fields,
        "livenessProbe",
        4,
        |dice| json!({ "httpGet": { "port": *dice.pick(&[80, 81]) }, "periodSeconds": 10 }),
    );
    maybe(dice, fields, "imagePullPolicy", 5, |_| json!("IfNotPresent"));
    maybe(
        dice,
        fields,
        "securityContext",
        5,
        |dice| json!({ "capabilities": { "drop": ["ALL"] }, "runAsUser": dice.below(2) }),
    );
}

/// Sets a field now and then; sometimes to nothing, in the ways that people write it.
fn maybe(
    dice: &mut Dice,
    fields: &mut Map<String, Value>,
    name: &str,
    odds: usize,
    value: impl FnOnce(&mut Dice) -> Value,
) {
    if dice.one_in(odds) {
        let value = if dice.one_in(25) { Value::Null } else { value(dice) };
        fields.insert(name.to_owned(), value);
    }
}

fn texts(dice: &mut Dice, keys: &[&str]) -> Value {
    let pairs = dice.some(keys).into_iter().map(|key| {
        let value = *dice.pick(&["x", "y"]);
        (key.to_owned(), json!(value))
    });
    Value::Object(pairs.collect())
}

fn named(names: &[&str]) -> Value {
    names.iter().map(|name| json!({ "name": name })).collect()
}
