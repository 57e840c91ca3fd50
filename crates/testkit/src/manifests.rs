//! Random manifests: valid DaemonSets and parts of them, small enough to overlap in every kind of
//! field, in the spellings that users write.

use serde_json::{Map, Value, json};

use crate::random::Random;

/// A complete DaemonSet, as a user keeps it in a repository.
pub fn whole(random: &mut Random, name: &str) -> Value {
    let mut spec = json!({
        "selector": { "matchLabels": { "app": name } },
        "template": { "metadata": template_metadata(random, name), "spec": pod(random) },
    });
    settings(random, &mut spec);
    json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet",
        "metadata": metadata(random, name), "spec": spec,
    })
}

/// The object that another manager applies: some fields, and in containers only its own.
pub fn part(random: &mut Random, name: &str) -> Value {
    let mut object = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata(random, name),
    });
    if random.one_in(2) {
        let mut spec = json!({});
        settings(random, &mut spec);
        object["spec"] = spec;
    }
    match random.below(4) {
        0 | 1 => {
            let mut container = json!({ "name": "agent" });
            container_details(random, &mut container);
            object["spec"]["template"]["spec"]["containers"] = json!([container]);
        }
        2 => object["spec"]["template"]["spec"] = pod(random),
        _ => {}
    }
    object
}

fn metadata(random: &mut Random, name: &str) -> Value {
    let mut metadata = json!({ "name": name, "namespace": "default" });
    let metadata_fields = metadata.as_object_mut().unwrap();
    maybe(random, metadata_fields, "labels", 2, |random| texts(random, &["team", "a.b/c", "tier"]));
    maybe(random, metadata_fields, "annotations", 2, |random| texts(random, &["note", "x.y/z"]));
    maybe(random, metadata_fields, "finalizers", 6, |random| {
        json!(some(random, &["x.y/a", "x.y/b"]))
    });
    maybe(random, metadata_fields, "ownerReferences", 8, owners);
    metadata
}

fn owners(random: &mut Random) -> Value {
    let owner = |uid: &&str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": format!("owner-{uid}"), "uid": uid,
        })
    };
    some(random, &["u1", "u2"]).iter().map(owner).collect()
}

fn template_metadata(random: &mut Random, name: &str) -> Value {
    let mut labels = texts(random, &["team", "v"]);
    labels["app"] = json!(name);
    let mut metadata = json!({ "labels": labels });
    let fields = metadata.as_object_mut().unwrap();
    maybe(random, fields, "annotations", 2, |random| {
        texts(random, &["note", "prometheus.io/port"])
    });
    metadata
}

/// Fields of the spec other than selector and template.
fn settings(random: &mut Random, spec: &mut Value) {
    let spec = spec.as_object_mut().unwrap();
    maybe(random, spec, "minReadySeconds", 3, |random| json!(random.below(3)));
    maybe(random, spec, "revisionHistoryLimit", 3, |random| json!(9 + random.below(3)));
    maybe(random, spec, "updateStrategy", 2, |random| {
        one(
            random,
            &[
                json!({ "type": "OnDelete" }),
                json!({ "type": "RollingUpdate" }),
                json!({ "rollingUpdate": { "maxUnavailable": 1 } }),
                json!({ "rollingUpdate": { "maxUnavailable": "10%", "maxSurge": 0 } }),
                json!({ "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 2, "maxUnavailable": 0 } }),
                json!({ "type": "RollingUpdate", "rollingUpdate": {} }),
            ],
        )
    });
}

fn pod(random: &mut Random) -> Value {
    let names = ["agent", "proxy", "logger", "helper"];
    let mut chosen = some(random, &names);
    if chosen.is_empty() {
        chosen.push("agent");
    }
    let mut containers: Vec<Value> = chosen.iter().map(|name| container(random, name)).collect();
    let volumes = volumes(random, &mut containers);
    let mut pod = json!({ "containers": containers });
    let fields = pod.as_object_mut().unwrap();
    if let Some(volumes) = volumes {
        fields.insert("volumes".to_owned(), volumes);
    }
    maybe(random, fields, "initContainers", 4, |random| {
        let mut container = container(random, "init");
        for of_main_containers in ["livenessProbe", "lifecycle"] {
            container.as_object_mut().unwrap().remove(of_main_containers);
        }
        json!([container])
    });
    maybe(random, fields, "nodeSelector", 3, |random| texts(random, &["disk", "zone"]));
    maybe(random, fields, "serviceAccountName", 4, |random| json!(random.pick(&["one", "two"])));
    maybe(random, fields, "hostNetwork", 6, |random| json!(random.one_in(2)));
    maybe(random, fields, "securityContext", 4, |random| {
        one(
            random,
            &[json!({}), json!({ "runAsUser": 1 }), json!({ "fsGroup": 2, "runAsUser": 2 })],
        )
    });
    maybe(random, fields, "terminationGracePeriodSeconds", 4, |random| json!(30 + random.below(2)));
    maybe(random, fields, "tolerations", 3, |random| {
        some(random, &[json!({ "operator": "Exists" }), json!({ "key": "gpu" })]).into()
    });
    maybe(random, fields, "imagePullSecrets", 4, |random| named(&some(random, &["s1", "s2"])));
    maybe(random, fields, "hostAliases", 4, |random| {
        let alias = |ip: &&str| json!({ "ip": ip, "hostnames": ["a", "b"] });
        some(random, &["1.1.1.1", "2.2.2.2"]).iter().map(alias).collect()
    });
    maybe(random, fields, "topologySpreadConstraints", 5, |random| {
        let spread = |when: &&str| {
            json!({
                "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": when,
                "labelSelector": { "matchLabels": { "a": "b" } },
            })
        };
        some(random, &["DoNotSchedule", "ScheduleAnyway"]).iter().map(spread).collect()
    });
    maybe(random, fields, "affinity", 4, |random| {
        let required = json!({ "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
                { "matchExpressions": [{ "key": "disk", "operator": "Exists" }] },
            ] },
        } });
        one(random, &[required.clone(), required, json!({ "nodeAffinity": {} }), json!({})])
    });
    maybe(
        random,
        fields,
        "dnsConfig",
        6,
        |random| json!({ "searches": some(random, &["a", "b"]) }),
    );
    pod
}

/// Volumes, and mounts of them.
fn volumes(random: &mut Random, containers: &mut [Value]) -> Option<Value> {
    if random.one_in(2) {
        return None;
    }
    let mut volumes = Vec::new();
    for kind in some(random, &["emptyDir", "configMap", "hostPath", "secret"]) {
        let source = match kind {
            "emptyDir" => one(random, &[json!({}), json!({ "sizeLimit": "1Gi" })]),
            "configMap" => json!({ "name": "c", "items": [{ "key": "k", "path": "p" }] }),
            "hostPath" => json!({ "path": random.pick(&["/p", "/q"]) }),
            _ => json!({ "secretName": "s", "optional": random.one_in(2) }),
        };
        let name = kind.to_lowercase();
        for container in &mut *containers {
            if random.one_in(2) {
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

fn container(random: &mut Random, name: &str) -> Value {
    let image = random.pick(&["cr.example/a:1", "cr.example/a:2"]);
    let mut container = json!({ "name": name, "image": image });
    container_details(random, &mut container);
    container
}

fn container_details(random: &mut Random, container: &mut Value) {
    let fields = container.as_object_mut().unwrap();
    maybe(random, fields, "args", 3, |random| json!(some(random, &["-v", "--all", "-q"])));
    maybe(random, fields, "env", 2, |random| {
        let from = json!({ "valueFrom": { "fieldRef": { "fieldPath": "spec.nodeName" } } });
        let mut variables = Vec::new();
        for name in some(random, &["A", "B", "C", "D"]) {
            let values = [json!({ "value": "1" }), json!({ "value": "2" }), json!({})];
            let mut variable = one(random, &values);
            if random.one_in(12) {
                variable = from.clone();
            }
            variable["name"] = json!(name);
            variables.push(variable);
        }
        variables.into()
    });
    maybe(random, fields, "ports", 3, |random| {
        some(
            random,
            &[
                json!({ "containerPort": 53 }),
                json!({ "containerPort": 53, "protocol": "UDP", "name": "dns" }),
                json!({ "containerPort": 80, "protocol": "TCP" }),
            ],
        )
        .into()
    });
    maybe(random, fields, "resources", 2, |random| {
        let mut resources = json!({});
        for (kind, quantities) in
            some(random, &[("limits", ["1", "1000m", "2"]), ("requests", ["100m", "0.1", "0.5"])])
        {
            let name = random.pick(&["cpu", "memory"]);
            resources[kind] = json!({ name: random.pick(&quantities) });
        }
        resources
    });
    maybe(
        random,
        fields,
        "livenessProbe",
        4,
        |random| json!({ "httpGet": { "port": random.pick(&[80, 81]) }, "periodSeconds": 10 }),
    );
    maybe(random, fields, "imagePullPolicy", 5, |_| json!("IfNotPresent"));
    maybe(random, fields, "securityContext", 5, |random| {
        let hardened = json!({
            "capabilities": { "drop": ["ALL"] }, "runAsUser": random.below(2),
        });
        one(random, &[hardened.clone(), hardened, json!({ "capabilities": {} }), json!({})])
    });
    maybe(random, fields, "lifecycle", 6, |random| {
        let stop = json!({ "preStop": { "exec": { "command": ["stop"] } } });
        one(random, &[stop, json!({})])
    });
}

/// Sets a field at random; sometimes to an empty value, in the spellings that users write.
fn maybe(
    random: &mut Random,
    fields: &mut Map<String, Value>,
    name: &str,
    odds: usize,
    value: impl FnOnce(&mut Random) -> Value,
) {
    if random.one_in(odds) {
        let value = if random.one_in(25) { Value::Null } else { value(random) };
        fields.insert(name.to_owned(), value);
    }
}

fn texts(random: &mut Random, keys: &[&str]) -> Value {
    let pairs = some(random, keys).into_iter().map(|key| {
        let value = random.pick(&["x", "y"]);
        (key.to_owned(), json!(value))
    });
    Value::Object(pairs.collect())
}

fn named(names: &[&str]) -> Value {
    names.iter().map(|name| json!({ "name": name })).collect()
}

/// A random one of `choices`.
fn one(random: &mut Random, choices: &[Value]) -> Value {
    choices[random.below(choices.len())].clone()
}

/// Each with even odds, in random order.
fn some<T: Clone>(random: &mut Random, choices: &[T]) -> Vec<T> {
    let mut left = choices.to_vec();
    let mut taken = Vec::new();
    while !left.is_empty() {
        let choice = left.remove(random.below(left.len()));
        if random.one_in(2) {
            taken.push(choice);
        }
    }
    taken
}
