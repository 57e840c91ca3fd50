//! Rules of each kind for writes: defaults, server-set fields, and validation (upstream: the
//! strategy of each registry, and those default admission plugins that change or reject these
//! kinds).
//!
//! Rules of DaemonSets and of pods are those of the module `manifest`. Other kinds are hardly
//! validated: they are written by controllers, or were validated by a real server before.

mod pod;

pub(super) use pod::check_priority_class;

use serde_json::{Map, Value, json};

use super::{Part, metadata};
use crate::store::LastSpec;
use crate::{Cause, Kind, Status};
use daemonset::model::TEMPLATE_GENERATION_ANNOTATION;

/// Decodes and defaults a written object as the server does.
pub(crate) fn default(kind: Kind, object: &mut Value) -> Result<(), Status> {
    match kind {
        Kind::DaemonSet => default_daemon_set(object),
        Kind::Pod => pod::default(object),
        Kind::Event => {
            default_event(object);
            Ok(())
        }
        Kind::Namespace
        | Kind::Node
        | Kind::Service
        | Kind::ConfigMap
        | Kind::ControllerRevision
        | Kind::Lease => Ok(()),
    }
}

/// Decodes and defaults a new object.
pub(super) fn default_new(
    kind: Kind,
    object: &mut Value,
    last: &mut LastSpec,
) -> Result<(), Status> {
    if kind == Kind::Pod { pod::default_new(object, last) } else { default(kind, object) }
}

fn default_daemon_set(object: &mut Value) -> Result<(), Status> {
    let fields = object.as_object_mut();
    let status = fields.and_then(|fields| fields.remove("status"));
    let defaulted = manifest::default_daemon_set(object.take());
    *object = defaulted.map_err(|problems| {
        let texts: Vec<String> =
            problems.iter().map(|(path, problem)| format!("{path}: {problem}")).collect();
        Status::wrong_type(Kind::DaemonSet, &texts.join(", "))
    })?;
    object["status"] = counted(status.unwrap_or_default());
    Ok(())
}

/// Adds the fields of events that are present even if they are empty.
fn default_event(event: &mut Value) {
    let Some(fields) = event.as_object_mut() else { return };
    for field in ["eventTime", "firstTimestamp", "lastTimestamp"] {
        fields.entry(field).or_insert(Value::Null);
    }
    for field in ["reportingComponent", "reportingInstance"] {
        fields.entry(field).or_insert_with(|| "".into());
    }
    fields.entry("source").or_insert_with(|| json!({}));
}

/// Adds the four counters that are present even if they are zero; others are omitted.
fn counted(status: Value) -> Value {
    let mut status = match status {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    status.retain(|_, value| !matches!(value, Value::Null) && *value != json!(0));
    for counter in
        ["currentNumberScheduled", "desiredNumberScheduled", "numberMisscheduled", "numberReady"]
    {
        status.entry(counter).or_insert_with(|| 0.into());
    }
    status.into()
}

/// Converts as the server's internal types do: `templateGeneration` of a DaemonSet defaults to 0
/// and is served as an annotation.
pub(super) fn convert(kind: Kind, object: &mut Value) {
    let annotation = &object["metadata"]["annotations"][TEMPLATE_GENERATION_ANNOTATION];
    if kind == Kind::DaemonSet && !annotation.is_string() {
        set_template_generation(object, 0);
    }
}

/// Sets the fields of a new object that only the server sets (upstream: `PrepareForCreate`).
pub(super) fn prepare_create(kind: Kind, object: &mut Value) {
    match kind {
        Kind::DaemonSet => {
            object["status"] = counted(Value::Null);
            // A given value is kept: it distinguishes adopted pods from created ones.
            let generation = template_generation(object).max(1);
            set_template_generation(object, generation);
        }
        Kind::Pod => pod::prepare_create(object),
        Kind::Namespace => {
            object["status"] = json!({"phase": "Active"});
            object["spec"]["finalizers"] = json!(["kubernetes"]);
            let name = metadata::text(object, "name").to_owned();
            object["metadata"]["labels"]["kubernetes.io/metadata.name"] = name.into();
        }
        Kind::Node => new_node(object),
        Kind::Service | Kind::ConfigMap | Kind::Event | Kind::ControllerRevision | Kind::Lease => {}
    }
}

/// Taints a new node as not ready (upstream: admission `TaintNodesByCondition`).
fn new_node(node: &mut Value) {
    const NOT_READY: &str = "node.kubernetes.io/not-ready";
    let taint = json!({"key": NOT_READY, "effect": "NoSchedule"});
    match node["spec"]["taints"].as_array_mut() {
        Some(taints) if taints.contains(&taint) => {}
        Some(taints) => taints.push(taint),
        None => node["spec"]["taints"] = json!([taint]),
    }
    let status = &mut node["status"];
    if status["allocatable"].is_null() && status["capacity"].is_object() {
        status["allocatable"] = status["capacity"].clone();
    }
    if status["daemonEndpoints"].is_null() {
        status["daemonEndpoints"] = json!({"kubeletEndpoint": {"Port": 0}});
    }
    if status["nodeInfo"].is_null() {
        let texts = [
            "architecture",
            "bootID",
            "containerRuntimeVersion",
            "kernelVersion",
            "kubeProxyVersion",
            "kubeletVersion",
            "machineID",
            "operatingSystem",
            "osImage",
            "systemUUID",
        ];
        status["nodeInfo"] = texts
            .map(|name| (name.to_owned(), Value::from("")))
            .into_iter()
            .collect::<Map<_, _>>()
            .into();
    }
}

/// Sets the fields of a changed object that only the server sets (upstream: `PrepareForUpdate`);
/// returns `true` if the generation increases.
pub(super) fn prepare_update(kind: Kind, part: Part, old: &Value, object: &mut Value) -> bool {
    if kind == Kind::DaemonSet && part == Part::Main {
        let template = |object: &Value| object["spec"]["template"].clone();
        let grows = template(old) != template(object);
        let generation = template_generation(old) + i64::from(grows);
        set_template_generation(object, generation);
    }
    match part {
        Part::Main => kind.has_generation() && object["spec"] != old["spec"],
        Part::Status => false,
    }
}

/// The former `spec.templateGeneration`, which is served as an annotation.
fn template_generation(daemon_set: &Value) -> i64 {
    let annotation = &daemon_set["metadata"]["annotations"][TEMPLATE_GENERATION_ANNOTATION];
    annotation.as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}

fn set_template_generation(daemon_set: &mut Value, generation: i64) {
    let Some(metadata) = metadata::fields(daemon_set) else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if annotations.is_null() {
        *annotations = json!({});
    }
    annotations[TEMPLATE_GENERATION_ANNOTATION] = generation.to_string().into();
}

/// Validates a new object.
pub(super) fn check_create(kind: Kind, object: &Value, last: &mut LastSpec) -> Result<(), Status> {
    let causes = match kind {
        Kind::DaemonSet => Cause::of_manifest(&manifest::validate(object)),
        Kind::Pod => pod::check(object, last),
        Kind::ControllerRevision => check_revision(object),
        Kind::Lease => check_lease(object),
        Kind::Service => {
            return Err(Status::not_implemented("the creation of Services"));
        }
        Kind::Namespace | Kind::Node | Kind::ConfigMap | Kind::Event => check_name(object),
    };
    refused(kind, object, &causes)
}

/// Validates a changed object.
pub(super) fn check_update(
    kind: Kind,
    part: Part,
    old: &Value,
    object: &Value,
) -> Result<(), Status> {
    // Upstream validates `metadata` twice: for all kinds, and again in the rules of each kind.
    let common = metadata::check_update(old, object);
    let mut all = [common.clone(), common].concat();
    match (kind, part) {
        (Kind::DaemonSet, Part::Main) => {
            all.extend(Cause::of_manifest(&manifest::validate_update(old, object)));
        }
        (Kind::ControllerRevision, Part::Main) => {
            if old["data"] != object["data"] {
                all.push(Cause::immutable("data", &object["data"]));
            }
            all.extend(check_revision(object));
        }
        (Kind::Lease, Part::Main) => all.extend(check_lease(object)),
        (Kind::Pod, Part::Main) => all.extend(pod::check_update(old, object)),
        (
            Kind::Namespace | Kind::Node | Kind::Service | Kind::ConfigMap | Kind::Event,
            Part::Main,
        )
        | (_, Part::Status) => {}
    }
    refused(kind, object, &all)
}

fn refused(kind: Kind, object: &Value, causes: &[Cause]) -> Result<(), Status> {
    if causes.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(kind, metadata::text(object, "name"), causes))
}

fn check_name(object: &Value) -> Vec<Cause> {
    if !metadata::text(object, "name").is_empty() {
        return vec![];
    }
    vec![Cause {
        reason: "FieldValueRequired",
        message: "Required value: name or generateName is required".to_owned(),
        field: "metadata.name".to_owned(),
    }]
}

fn check_revision(object: &Value) -> Vec<Cause> {
    let mut causes = check_name(object);
    if object["revision"].as_i64().unwrap_or_default() < 0 {
        let revision = &object["revision"];
        causes.push(Cause {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {revision}: must be greater than or equal to 0"),
            field: "revision".to_owned(),
        });
    }
    causes
}

/// Validates a Lease (upstream: `ValidateLeaseSpec`).
fn check_lease(object: &Value) -> Vec<Cause> {
    let mut causes = check_name(object);
    let spec = &object["spec"];
    for (field, least, why) in [
        ("leaseDurationSeconds", 1, "must be greater than 0"),
        ("leaseTransitions", 0, "must be greater than or equal to 0"),
    ] {
        if let Some(number) = spec[field].as_i64().filter(|number| *number < least) {
            causes.push(Cause {
                reason: "FieldValueInvalid",
                message: format!("Invalid value: {number}: {why}"),
                field: format!("spec.{field}"),
            });
        }
    }
    causes
}
