//! Changes an existing object (upstream: `Store.Update`, `BeforeUpdate`), and binds a pod.

use std::sync::Arc;

use serde_json::{Value, json};

use super::create::place;
use super::{Ownership, Part, Target, Verbs, metadata, strategy};
use crate::clock::whole_second;
use crate::object::Draft;
use crate::{Cause, Kind, Object, Status};

impl Verbs<'_> {
    /// Replaces an object. Its `resourceVersion` and `uid`, if set, must be those of the live
    /// object.
    ///
    /// # Errors
    /// 404 if it does not exist, 409 if it is another one or has changed meanwhile, 422 for
    /// violations of the API's rules.
    pub(crate) fn update(
        &mut self,
        target: Target<'_>,
        mut object: Value,
    ) -> Result<Arc<Object>, Status> {
        let live = self.get(target)?;
        check_place(target, &mut object)?;
        check_uid(target, &live, &object)?;
        if target.part == Part::Main {
            strategy::default(target.kind, &mut object)?;
        }
        self.replace(target, &live, object, Ownership::Recorded)
    }

    /// Changes the live object at any version: for controllers, whose reads are never old within
    /// one moment. For a change of a status, `change` gets no spec, except that of a DaemonSet.
    ///
    /// # Errors
    /// 404 if it does not exist, and 422 for violations of the API's rules.
    pub(crate) fn edit(
        &mut self,
        target: Target<'_>,
        change: impl FnOnce(&mut Value),
    ) -> Result<Arc<Object>, Status> {
        let live = self.get(target)?;
        let mut draft = match (target.part, target.kind) {
            // `managedFields` are updated, those of the spec included.
            (_, Kind::DaemonSet) | (Part::Main, _) => live.value().into(),
            (Part::Status, _) => live.draft(),
        };
        let old = draft.value.clone();
        change(&mut draft.value);
        if target.part == Part::Main {
            strategy::default(target.kind, &mut draft.value)?;
        }
        self.replace_draft(target, &live, &old, draft, Ownership::Recorded)
    }

    /// Binds a pod to a node, as the scheduler does (upstream: `BindingREST`).
    ///
    /// # Errors
    /// 404 if it does not exist; 409 if it is bound or terminates already.
    pub(crate) fn bind(
        &mut self,
        namespace: &str,
        name: &str,
        node: &str,
    ) -> Result<Arc<Object>, Status> {
        let live = self.get(Target::new(Kind::Pod, namespace, name))?;
        let mut pod = live.value();
        let why = match pod["spec"]["nodeName"].as_str().filter(|bound| !bound.is_empty()) {
            _ if live.meta().deleted.is_some() => {
                format!("pod {name} is being deleted, cannot be assigned to a host")
            }
            Some(bound) => format!("pod {name} is already assigned to node {bound:?}"),
            None => {
                pod["spec"]["nodeName"] = node.into();
                let scheduled = json!({
                    "type": "PodScheduled", "status": "True", "lastProbeTime": null,
                    "lastTransitionTime": whole_second(self.now),
                });
                set_condition(&mut pod, scheduled);
                return self.keep(Kind::Pod, pod);
            }
        };
        Err(Status::conflict_of(name, "pods/binding", &why))
    }

    /// The last step of all changes of an object, which has its kind's defaults.
    pub(super) fn replace(
        &mut self,
        target: Target<'_>,
        live: &Arc<Object>,
        object: Value,
        ownership: Ownership,
    ) -> Result<Arc<Object>, Status> {
        self.replace_draft(target, live, &live.value(), object.into(), ownership)
    }

    /// The same for a caller that has the drafted values of the live object.
    fn replace_draft(
        &mut self,
        target: Target<'_>,
        live: &Arc<Object>,
        old: &Value,
        mut draft: Draft,
        ownership: Ownership,
    ) -> Result<Arc<Object>, Status> {
        let Target { kind, part, .. } = target;
        let object = &mut draft.value;
        check_version(target, live, object)?;
        reset(part, old, object);
        if ownership == Ownership::Recorded {
            strategy::convert(kind, object);
            self.record(kind, part, Some(old), object)?;
        }
        keep_identity(old, object);
        let grows = strategy::prepare_update(kind, part, old, object);
        metadata::tidy(object);
        strategy::check_update(kind, part, old, object)?;
        if grows {
            let next = live.meta().generation + 1;
            metadata::set(object, "generation", Some(next.into()));
        }
        object["kind"] = kind.as_str().into();
        object["apiVersion"] = kind.api_version().into();
        metadata::set(object, "resourceVersion", Some(live.version().to_string().into()));
        if is_done(live, object) {
            return self.take_away(kind, draft);
        }
        if is_same(old, object) {
            return Ok(Arc::clone(live));
        }
        self.keep(kind, draft)
    }
}

/// Sets a condition, replacing the one of its type.
fn set_condition(object: &mut Value, condition: Value) {
    let conditions = &mut object["status"]["conditions"];
    match conditions.as_array_mut() {
        Some(all) => {
            all.retain(|it| it["type"] != condition["type"]);
            all.push(condition);
        }
        None => *conditions = json!([condition]),
    }
}

/// Validates that the object is the one of the path.
pub(super) fn check_place(target: Target<'_>, object: &mut Value) -> Result<(), Status> {
    let Target { kind, namespace, name: wanted, .. } = target;
    place(kind, namespace, object)?;
    let name = metadata::text(object, "name");
    if name == wanted {
        return Ok(());
    }
    let why =
        format!("the name of the object ({name}) does not match the name on the URL ({wanted})");
    Err(Status::bad_request(why))
}

/// Validates the uid (upstream: `storage.Preconditions.Check`).
fn check_uid(target: Target<'_>, live: &Object, object: &Value) -> Result<(), Status> {
    let (sent, uid) = (metadata::text(object, "uid"), &live.meta().uid);
    if sent.is_empty() || uid == sent {
        return Ok(());
    }
    let key = target.kind.storage_path();
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: /registry/{key}/{}, ResourceVersion: 0, \
         AdditionalErrorMsg: Precondition failed: UID in precondition: {sent}, UID in object meta: \
         {uid}",
        live.key()
    );
    Err(Status::conflict(target.kind, target.name, &why))
}

fn check_version(target: Target<'_>, live: &Object, object: &Value) -> Result<(), Status> {
    let Target { kind, name, .. } = target;
    let version = metadata::text(object, "resourceVersion");
    if version.is_empty() && !allows_unconditional_update(kind) {
        let cause = Cause {
            reason: "FieldValueInvalid",
            message: "Invalid value: 0: must be specified for an update".to_owned(),
            field: "metadata.resourceVersion".to_owned(),
        };
        return Err(Status::invalid_resource(kind, name, &[cause]));
    }
    if !version.is_empty() && version != live.version().to_string() {
        return Err(Status::modified(kind, name));
    }
    Ok(())
}

/// `true` if nothing changes except the times in `managedFields` (upstream:
/// `IgnoreManagedFieldsTimestampsTransformer`).
fn is_same(old: &Value, object: &Value) -> bool {
    let timeless = |object: &Value| {
        let mut object = object.clone();
        let entries = object["metadata"].get_mut("managedFields").and_then(Value::as_array_mut);
        for entry in entries.into_iter().flatten().filter_map(Value::as_object_mut) {
            entry.remove("time");
        }
        object
    };
    let has_managers = |object: &Value| object["metadata"].get("managedFields").is_some();
    old == object || has_managers(old) && has_managers(object) && timeless(old) == timeless(object)
}

/// `true` if an update may omit the version (upstream: `AllowUnconditionalUpdate`).
fn allows_unconditional_update(kind: Kind) -> bool {
    match kind {
        Kind::Namespace
        | Kind::Node
        | Kind::Pod
        | Kind::Service
        | Kind::ConfigMap
        | Kind::Event
        | Kind::DaemonSet
        | Kind::ControllerRevision => true,
        Kind::Lease => false,
    }
}

/// Restores the other part in a write to one part (upstream: `PrepareForUpdate` of each strategy).
fn reset(part: Part, old: &Value, object: &mut Value) {
    let Some(fields) = object.as_object_mut() else { return };
    match part {
        Part::Main => put_back(fields, old, "status"),
        Part::Status => {
            let names: Vec<String> = fields.keys().cloned().collect();
            for name in names.iter().filter(|name| !matches!(name.as_str(), "status" | "metadata"))
            {
                put_back(fields, old, name);
            }
            put_back_if_there(fields, old, "spec");
        }
    }
}

fn put_back(fields: &mut serde_json::Map<String, Value>, old: &Value, name: &str) {
    if old.get(name).is_none() {
        fields.remove(name);
    }
    put_back_if_there(fields, old, name);
}

fn put_back_if_there(fields: &mut serde_json::Map<String, Value>, old: &Value, name: &str) {
    // Usually it is unchanged, and a comparison is cheaper than a copy.
    if let Some(value) = old.get(name).filter(|value| fields.get(name) != Some(value)) {
        fields.insert(name.to_owned(), value.clone());
    }
}

/// Restores immutable fields instead of rejecting the update.
fn keep_identity(old: &Value, object: &mut Value) {
    let before = |field: &str| old["metadata"].get(field).cloned();
    for field in ["creationTimestamp", "generation", "selfLink"] {
        metadata::set(object, field, before(field));
    }
    if before("deletionTimestamp").is_some() {
        metadata::set(object, "deletionTimestamp", before("deletionTimestamp"));
    }
    for field in ["uid", "deletionGracePeriodSeconds"] {
        let sent = &object["metadata"][field];
        if sent.is_null() || sent == "" {
            metadata::set(object, field, before(field));
        }
    }
}

/// `true` if a terminating object waits for nothing any more (upstream:
/// `ShouldDeleteDuringUpdate`).
fn is_done(live: &Object, object: &Value) -> bool {
    let waits = object["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
    let meta = live.meta();
    !waits && meta.deleted.is_some() && meta.grace_seconds.unwrap_or_default() == 0
}
