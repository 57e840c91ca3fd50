//! Pods: the defaults and rules of their templates, and the additions of admission (upstream:
//! `SetDefaults_Pod`, admission `Priority` and `DefaultTolerationSeconds`).
//!
//! Not here: service accounts, which the embedded cluster does not have, so no token is mounted.

use serde_json::{Map, Value, json};

use crate::store::LastSpec;
use crate::verbs::metadata;
use crate::{Cause, Kind, Status};

/// Defaults a pod: the defaults of its template and its own. The template is wrapped in a
/// DaemonSet, because the rules are written for those.
pub(super) fn default(pod: &mut Value) -> Result<(), Status> {
    let mut spec = pod["spec"].take();
    let names: &[&str] = &["nodeName", "priority", "preemptionPolicy", "enableServiceLinks"];
    let own = taken(&mut spec, names);
    // Moved, because `json!` would copy it.
    let mut wrapped = json!({"spec": {"template": {}}});
    wrapped["spec"]["template"]["spec"] = spec;
    let mut defaulted = manifest::default_daemon_set(wrapped).map_err(|problems| {
        let texts: Vec<String> = problems
            .iter()
            .map(|(path, problem)| {
                format!("{}: {problem}", path.strip_prefix("spec.template.").unwrap_or(path))
            })
            .collect();
        Status::wrong_type(Kind::Pod, &texts.join(", "))
    })?;
    let mut spec = defaulted["spec"]["template"]["spec"].take();
    if let Some(fields) = spec.as_object_mut() {
        fields.extend(own);
        fields.entry("enableServiceLinks").or_insert(Value::Bool(true));
    }
    let on_host = spec["hostNetwork"] == true;
    for list in ["containers", "initContainers"] {
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            requests_from_limits(container);
            if on_host {
                ports_of_host(container);
            }
        }
    }
    pod["spec"] = spec;
    Ok(())
}

/// Removes these fields from `spec`, and returns those that are not empty.
fn taken(spec: &mut Value, names: &[&str]) -> Map<String, Value> {
    let Some(fields) = spec.as_object_mut() else { return Map::new() };
    let own = names.iter().filter_map(|name| fields.remove_entry(*name));
    own.filter(|(_, value)| !value.is_null() && *value != "").collect()
}

/// Sets missing requests to the limits (upstream: `SetDefaults_Pod`).
fn requests_from_limits(container: &mut Value) {
    let limits = container.pointer("/resources/limits").and_then(Value::as_object).cloned();
    let Some(limits) = limits else { return };
    let resources = &mut container["resources"];
    if resources["requests"].is_null() {
        resources["requests"] = json!({});
    }
    let Some(requests) = resources["requests"].as_object_mut() else { return };
    for (name, amount) in limits {
        requests.entry(name).or_insert(amount);
    }
}

/// Sets host ports with `hostNetwork` (upstream: `SetDefaults_Pod`; no longer in templates).
fn ports_of_host(container: &mut Value) {
    let ports = container.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        let own = port.get("containerPort").cloned().unwrap_or_default();
        port.entry("hostPort").or_insert(own);
    }
}

/// Sets the fields of a new pod that admission and the server set.
pub(super) fn prepare_create(pod: &mut Value) {
    let priority = priority_of(pod["spec"]["priorityClassName"].as_str().unwrap_or_default());
    if let Some(spec) = pod["spec"].as_object_mut() {
        spec.insert("priority".to_owned(), priority.unwrap_or_default().into());
        spec.entry("preemptionPolicy").or_insert_with(|| "PreemptLowerPriority".into());
    }
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        tolerate_for_a_while(pod, key);
    }
    pod["status"] = json!({"phase": "Pending", "qosClass": quality(pod)});
}

/// Tolerates the taint for five minutes, unless the pod has a toleration for it.
fn tolerate_for_a_while(pod: &mut Value, key: &str) {
    let spec = &mut pod["spec"];
    let says = |toleration: &Value| {
        let text = |field: &str| toleration[field].as_str().unwrap_or_default();
        (text("key") == key || text("key").is_empty())
            && (text("effect") == "NoExecute" || text("effect").is_empty())
    };
    if spec["tolerations"].as_array().is_some_and(|all| all.iter().any(says)) {
        return;
    }
    let toleration = json!({
        "effect": "NoExecute", "key": key, "operator": "Exists", "tolerationSeconds": 300,
    });
    match spec["tolerations"].as_array_mut() {
        Some(all) => all.push(toleration),
        None => spec["tolerations"] = json!([toleration]),
    }
}

/// The priority of the two classes that every cluster has, and of an empty class.
fn priority_of(class: &str) -> Option<i64> {
    match class {
        "" => Some(0),
        "system-cluster-critical" => Some(2_000_000_000),
        "system-node-critical" => Some(2_000_001_000),
        _ => None,
    }
}

/// Rejects a new pod whose PriorityClass is none of those (upstream: admission `Priority`).
pub(in crate::verbs) fn check_priority_class(pod: &Value) -> Result<(), Status> {
    let class = pod["spec"]["priorityClassName"].as_str().unwrap_or_default();
    if priority_of(class).is_some() {
        return Ok(());
    }
    let why = format!("no PriorityClass with name {class} was found");
    Err(Status::forbidden(Kind::Pod, metadata::text(pod, "name"), &why))
}

/// The quality-of-service class of a pod (upstream: `GetPodQOS`).
fn quality(pod: &Value) -> &'static str {
    let lists = ["containers", "initContainers"].map(|list| pod["spec"][list].as_array());
    let containers: Vec<&Value> = lists.into_iter().flatten().flatten().collect();
    let amount = |container: &Value, list: &str, name: &str| {
        container["resources"][list].get(name).filter(|it| *it != "0").cloned()
    };
    let (mut any, mut guaranteed) = (false, true);
    for container in containers {
        for resource in ["cpu", "memory"] {
            let [request, limit] =
                ["requests", "limits"].map(|list| amount(container, list, resource));
            any |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && request == limit;
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}

/// Like [`default`], for a new pod.
pub(super) fn default_new(pod: &mut Value, last: &mut LastSpec) -> Result<(), Status> {
    let affinity = pod["spec"].as_object_mut().and_then(|spec| spec.remove("affinity"));
    let known = last.defaulted.as_ref().filter(|(written, _)| *written == pod["spec"]);
    if let Some((_, defaulted)) = known {
        let mut judged = json!({"spec": plain()});
        put_affinity(&mut judged["spec"], affinity);
        default(&mut judged)?;
        let affinity = judged["spec"].as_object_mut().and_then(|spec| spec.remove("affinity"));
        pod["spec"] = defaulted.clone();
        put_affinity(&mut pod["spec"], affinity);
        return Ok(());
    }
    let written = pod["spec"].clone();
    put_affinity(&mut pod["spec"], affinity);
    default(pod)?;
    let mut defaulted = pod["spec"].clone();
    if let Some(fields) = defaulted.as_object_mut() {
        fields.remove("affinity");
    }
    last.defaulted = Some((written, defaulted));
    Ok(())
}

fn put_affinity(spec: &mut Value, affinity: Option<Value>) {
    if let Some(affinity) = affinity {
        spec["affinity"] = affinity;
    }
}

/// Validates a new pod: with the rules of its template, except those that only DaemonSets have.
pub(super) fn check(pod: &Value, last: &mut LastSpec) -> Vec<Cause> {
    let labels = json!({"a": "a"});
    let fields = || pod["spec"].as_object().into_iter().flatten();
    let others = || fields().filter(|(name, _)| *name != "affinity");
    let is_known = last.faultless.as_ref().is_some_and(|known| others().eq(known));
    let mut judged = pod["spec"].clone();
    if is_known {
        judged = plain();
        put_affinity(&mut judged, pod["spec"].get("affinity").cloned());
    }
    if let Some(fields) = judged.as_object_mut() {
        fields.insert("restartPolicy".to_owned(), "Always".into());
        fields.remove("activeDeadlineSeconds");
    }
    let mut wrapped = json!({
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}},
            "updateStrategy": {"type": "OnDelete"},
        },
    });
    wrapped["metadata"] = pod["metadata"].clone();
    wrapped["spec"]["template"]["spec"] = judged;
    let errors = manifest::validate(&wrapped);
    if errors.is_empty() && !is_known {
        last.faultless = Some(others().map(|(name, it)| (name.clone(), it.clone())).collect());
    }
    let errors = errors.into_iter().map(|mut error| {
        if let Some(path) = error.path.strip_prefix("spec.template.") {
            error.path = path.to_owned();
        }
        error
    });
    let mut causes = Cause::of_manifest(&errors.collect::<Vec<_>>());
    let policy = pod["spec"]["restartPolicy"].as_str().unwrap_or_default();
    if !["Always", "OnFailure", "Never"].contains(&policy) {
        causes.push(Cause {
            reason: "FieldValueNotSupported",
            message: format!(
                "Unsupported value: {policy:?}: supported values: \"Always\", \"OnFailure\", \
                 \"Never\""
            ),
            field: "spec.restartPolicy".to_owned(),
        });
    }
    causes
}

/// A valid spec in which an affinity can be validated alone: no rule and no default depends on it
/// and on another field.
fn plain() -> Value {
    json!({
        "containers": [{
            "name": "c", "image": "i", "imagePullPolicy": "Always",
            "terminationMessagePolicy": "File",
        }],
        "restartPolicy": "Always",
        "dnsPolicy": "ClusterFirst",
    })
}

/// Validates a changed pod, of which only few fields may change (upstream: `ValidatePodUpdate`);
/// controllers here set its node once, and change nothing else of its spec.
pub(super) fn check_update(old: &Value, pod: &Value) -> Vec<Cause> {
    const CHANGEABLE: [&str; 5] = [
        "activeDeadlineSeconds",
        "containers",
        "initContainers",
        "terminationGracePeriodSeconds",
        "tolerations",
    ];
    let fixed = |pod: &Value| {
        let mut spec = pod["spec"].clone();
        if let Some(fields) = spec.as_object_mut() {
            fields.retain(|name, _| !CHANGEABLE.contains(&name.as_str()));
        }
        spec
    };
    let (before, after) = (fixed(old), fixed(pod));
    if before == after {
        return vec![];
    }
    let changed = after
        .as_object()
        .into_iter()
        .flatten()
        .find(|(name, value)| before.get(name.as_str()) != Some(value));
    match changed {
        Some((name, value)) => vec![Cause::immutable(&format!("spec.{name}"), value)],
        None => vec![Cause::immutable("spec", &after)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(image: &str, affinity: &Value) -> Value {
        let mut spec = plain();
        spec["containers"][0]["image"] = image.into();
        spec["affinity"] = affinity.clone();
        json!({"metadata": {"name": "p", "namespace": "n"}, "spec": spec})
    }

    fn aimed_at(operator: &str) -> Value {
        json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchFields": [
                {"key": "metadata.name", "operator": operator, "values": ["node"]},
            ]}],
        }}})
    }

    /// Errors are found whatever valid spec is cached.
    #[test]
    fn errors_are_found_with_a_cached_spec() {
        let good = pod("i", &aimed_at("In"));
        for (image, operator, faulty) in
            [("i", "In", false), ("i", "Like", true), ("", "In", true), ("", "Like", true)]
        {
            let pod = pod(image, &aimed_at(operator));
            let fresh = check(&pod, &mut LastSpec::default());
            let mut last = LastSpec::default();
            assert_eq!(check(&good, &mut last), []);
            assert!(last.faultless.is_some());
            assert_eq!(check(&pod, &mut last), fresh, "{image:?} {operator}");
            assert_eq!(check(&pod, &mut last), fresh, "{image:?} {operator}, once more");
            assert_eq!(!fresh.is_empty(), faulty, "{image:?} {operator}");
        }
    }

    /// Each pod gets its own defaults and keeps its own affinity, whatever is cached.
    #[test]
    fn defaults_are_the_same_with_a_cached_spec() {
        let bare = |image: &str| json!({"spec": {"containers": [{"name": "c", "image": image}]}});
        let aimed = |image: &str, affinity: Value| {
            let mut pod = bare(image);
            pod["spec"]["affinity"] = affinity;
            pod
        };
        let misshapen = json!({"nodeAffinity": {"preferred": []}, "unknown": 1});
        let mut last = LastSpec::default();
        for (pod, is_known) in [
            (bare("i"), false),
            (bare("i"), true),
            (aimed("i", aimed_at("In")), true),
            (aimed("i", misshapen), true),
            (aimed("i", json!("no object")), true),
            (aimed("other", aimed_at("In")), false),
            (json!({"spec": {"containers": "none"}}), false),
            (json!({"spec": null}), false),
            (aimed("other", aimed_at("NotIn")), false),
        ] {
            let (mut one, mut other) = (pod.clone(), pod.clone());
            let before = last.defaulted.as_ref().map(|(written, _)| written.clone());
            let [made, wanted] = [default_new(&mut one, &mut last), default(&mut other)];
            assert_eq!(made, wanted, "{pod}");
            if wanted.is_ok() {
                assert_eq!(one, other, "{pod}");
            }
            let after = last.defaulted.as_ref().map(|(written, _)| written.clone());
            assert_eq!(before == after, is_known || wanted.is_err(), "{pod}");
        }
    }
}
