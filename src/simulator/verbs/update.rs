//! A changed object in the place of the one that is there (upstream: `Store.Update`,
//! `BeforeUpdate`).

use std::sync::Arc;

use serde_json::Value;

use super::{Part, Target, Verbs, metadata};
use crate::simulator::{Cause, Kind, Object, Status};

impl Verbs<'_> {
    /// Puts a whole object into its place. Its `resourceVersion`, if it names one, must be that of
    /// the object that is there; its `uid` likewise.
    ///
    /// # Errors
    /// 404, 409 when it has changed meanwhile, 422 for what breaks the API's rules.
    pub fn update(&mut self, target: Target<'_>, mut object: Value) -> Result<Arc<Object>, Status> {
        let live = self.get(target)?;
        self.place(target.kind, target.namespace, &mut object)?;
        let name = metadata::text(&object, "name");
        if name != target.name {
            let why = format!(
                "the name of the object ({name}) does not match the name on the URL ({})",
                target.name
            );
            return Err(Status::bad_request(why));
        }
        self.replace(target, &live, object)
    }

    /// Changes what is there, whatever it is by now: for controllers, whose reads are never old
    /// within one moment.
    ///
    /// # Errors
    /// 404, and 422 for what breaks the API's rules.
    pub fn edit(
        &mut self,
        target: Target<'_>,
        change: impl FnOnce(&mut Value),
    ) -> Result<Arc<Object>, Status> {
        let live = self.get(target)?;
        let mut object = live.value();
        change(&mut object);
        self.replace(target, &live, object)
    }

    /// What every way of changing an object ends in.
    pub(super) fn replace(
        &mut self,
        target: Target<'_>,
        live: &Arc<Object>,
        mut object: Value,
    ) -> Result<Arc<Object>, Status> {
        let Target { kind, name, part, .. } = target;
        self.check_preconditions(target, live, &object)?;
        let old = live.value();
        reset(part, &old, &mut object);
        keep_identity(&old, &mut object);
        metadata::tidy(&mut object);
        if kind.has_generation() && part == Part::Main && object["spec"] != old["spec"] {
            let next = live.meta().generation + 1;
            metadata::set(&mut object, "generation", Some(next.into()));
        }
        object["kind"] = kind.as_str().into();
        object["apiVersion"] = kind.api_version().into();
        metadata::set(&mut object, "resourceVersion", Some(live.version().to_string().into()));
        let _ = name;
        if object == old {
            return Ok(Arc::clone(live));
        }
        if is_done(live, &object) {
            return self.take_away(kind, object);
        }
        self.keep(kind, object)
    }

    fn check_preconditions(
        &self,
        target: Target<'_>,
        live: &Object,
        object: &Value,
    ) -> Result<(), Status> {
        let Target { kind, name, .. } = target;
        let uid = metadata::text(object, "uid");
        let is_meant = uid.is_empty() || uid == live.meta().uid.as_str();
        if !is_meant {
            let why = format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {}",
                live.meta().uid
            );
            return Err(Status::conflict(kind, name, &why));
        }
        let version = metadata::text(object, "resourceVersion");
        if version.is_empty() && !allows_unconditional_update(kind) {
            let cause = Cause {
                reason: "FieldValueInvalid",
                message: "Invalid value: 0: must be specified for an update".to_owned(),
                field: "metadata.resourceVersion".to_owned(),
            };
            return Err(Status::invalid(kind, name, &[cause]));
        }
        if !version.is_empty() && version != live.version().to_string() {
            return Err(Status::modified(kind, name));
        }
        Ok(())
    }
}

/// Whether an update may leave out the version (upstream: `AllowUnconditionalUpdate`).
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
        Kind::Lease | Kind::PodDisruptionBudget => false,
    }
}

/// A write to one part leaves the other as it was (upstream: `PrepareForUpdate` of each strategy).
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
            if let Some(spec) = old.get("spec") {
                fields.insert("spec".to_owned(), spec.clone());
            }
        }
    }
}

fn put_back(fields: &mut serde_json::Map<String, Value>, old: &Value, name: &str) {
    match old.get(name) {
        Some(value) => fields.insert(name.to_owned(), value.clone()),
        None => fields.remove(name),
    };
}

/// What an update can never change is put back, not refused.
fn keep_identity(old: &Value, object: &mut Value) {
    for field in ["uid", "creationTimestamp", "deletionTimestamp", "generation", "selfLink"] {
        metadata::set(object, field, old["metadata"].get(field).cloned());
    }
    if object["metadata"].get("deletionGracePeriodSeconds").is_none() {
        let grace = old["metadata"].get("deletionGracePeriodSeconds").cloned();
        metadata::set(object, "deletionGracePeriodSeconds", grace);
    }
}

/// Whether nothing stands any more between the object and its end (upstream:
/// `ShouldDeleteDuringUpdate`).
fn is_done(live: &Object, object: &Value) -> bool {
    let waits = object["metadata"]["finalizers"].as_array().is_some_and(|all| !all.is_empty());
    let meta = live.meta();
    !waits && meta.deleted.is_some() && meta.grace_seconds.unwrap_or_default() == 0
}
