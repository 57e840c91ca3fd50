//! Server-side apply (upstream: `applyPatcher`, the field managers). The crate `ssa` merges
//! objects; here it is used for DaemonSets. ConfigMaps are merged without owners of fields.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::update::check_place;
use super::{Ownership, Target, Verbs, metadata, strategy};
use crate::{Cause, Kind, Object, Reason, Status};
use ssa::{self, Conflict, DAEMON_SET, Manifest};

impl Verbs<'_> {
    /// Applies `applied`, and creates the object if it does not exist; returns `true` if it was
    /// created.
    ///
    /// # Errors
    /// 409 if other managers own fields that would change and `force` is not set, or if the `uid`
    /// or `resourceVersion` differ; 501 for kinds other than DaemonSet and ConfigMap.
    pub(crate) fn apply(
        &mut self,
        target: Target<'_>,
        applied: &Value,
        force: bool,
    ) -> Result<(Arc<Object>, bool), Status> {
        let Target { kind, namespace, name, .. } = target;
        match kind {
            Kind::DaemonSet => {}
            Kind::ConfigMap => return self.apply_config_map(target, applied),
            _others => {
                return Err(Status::not_implemented(format!("server-side apply of {kind}s")));
            }
        }
        let manager = self.options.manager;
        check_applied(target, applied)?;
        let live = self.store.get(kind, namespace, name).cloned();
        let old = live.as_ref().map(|live| live.value());
        let unknown = manifest::unknown_fields(applied.clone());
        if !unknown.is_empty() {
            let texts = unknown.iter().map(|path| format!(".{path}: field not declared in schema"));
            return Err(typed_patch(kind, applied, &texts.collect::<Vec<_>>()));
        }
        let defaulted = manifest::default_daemon_set(applied.clone())
            .map_err(|problems| badly_typed(kind, applied, &problems))?;
        let manifest = Manifest { applied, defaulted: &defaulted };
        let merged = ssa::apply(&DAEMON_SET, old.as_ref(), manifest, manager, self.now)
            .map_err(|error| not_mergeable(kind, applied, &error))?;
        if !merged.conflicts.is_empty() && !force {
            return Err(conflicts(&merged.conflicts));
        }
        let mut object = merged.object;
        let record = merged.managed_fields.to_value();
        metadata::set(&mut object, "managedFields", Some(record));
        match live {
            Some(live) => {
                strategy::default(kind, &mut object)?;
                check_place(target, &mut object)?;
                let changed = self.replace(target, &live, object, Ownership::Applied)?;
                Ok((changed, false))
            }
            None => self.create_applied(target, object).map(|created| (created, true)),
        }
    }

    /// Applies a ConfigMap: sets its labels and the keys of its data. No owners of fields are
    /// recorded, so nothing conflicts, and a key that is no longer applied stays.
    fn apply_config_map(
        &mut self,
        target: Target<'_>,
        applied: &Value,
    ) -> Result<(Arc<Object>, bool), Status> {
        check_applied(target, applied)?;
        let Target { kind, namespace, name, .. } = target;
        let Some(live) = self.store.get(kind, namespace, name).cloned() else {
            return self.create_applied(target, applied.clone()).map(|created| (created, true));
        };
        let mut object = live.value();
        for field in ["/metadata/labels", "/data"] {
            let Some(Value::Object(pairs)) = applied.pointer(field).cloned() else { continue };
            match object.pointer_mut(field) {
                Some(Value::Object(present)) => present.extend(pairs),
                Some(_) | None if field == "/data" => object["data"] = pairs.into(),
                Some(_) | None => object["metadata"]["labels"] = pairs.into(),
            }
        }
        check_place(target, &mut object)?;
        Ok((self.replace(target, &live, object, Ownership::Applied)?, false))
    }

    fn create_applied(
        &mut self,
        target: Target<'_>,
        mut object: Value,
    ) -> Result<Arc<Object>, Status> {
        let Target { kind, namespace, name, .. } = target;
        let uid = metadata::text(&object, "uid");
        if !uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was \
                 found"
            );
            return Err(Status::conflict(kind, name, &why));
        }
        metadata::set(&mut object, "resourceVersion", None);
        metadata::set(&mut object, "name", Some(name.into()));
        self.create_applied_object(kind, namespace, object)
    }
}

fn check_applied(target: Target<'_>, applied: &Value) -> Result<(), Status> {
    let Target { kind, .. } = target;
    let has_type = applied["apiVersion"] == kind.api_version() && applied["kind"] == kind.as_str();
    if !applied.is_object() || !has_type {
        let why = "Object 'Kind' is missing or is not the one that is applied to";
        return Err(Status::bad_request(why));
    }
    if applied["metadata"].get("managedFields").is_some_and(|it| !it.is_null()) {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    Ok(())
}

/// The error for an apply without `fieldManager`; the user agent is not used instead.
pub(crate) fn no_manager() -> Status {
    let cause = Cause {
        reason: "FieldValueRequired",
        message: "Required value: is required for apply patch".to_owned(),
        field: "fieldManager".to_owned(),
    };
    Status::invalid_options("PatchOptions", &[cause])
}

/// The conflict error, in the server's words (upstream: `NewConflictError`).
fn conflicts(conflicts: &[Conflict]) -> Status {
    let mut causes = Vec::new();
    let mut by_manager: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Conflict { path, managers } in conflicts {
        for manager in managers {
            let (manager, field) = (manager.to_string(), path.upstream());
            by_manager.entry(manager).or_default().push(field);
        }
    }
    for (manager, fields) in &by_manager {
        causes.extend(fields.iter().map(|field| Cause {
            reason: "FieldManagerConflict",
            message: format!("conflict with {manager}"),
            field: field.clone(),
        }));
    }
    let message = match causes.as_slice() {
        [one] => format!("Apply failed with 1 conflict: {}: {}", one.message, one.field),
        several => {
            let lists = by_manager.iter().map(|(manager, fields)| {
                format!("conflicts with {manager}:\n- {}", fields.join("\n- "))
            });
            let lists: Vec<String> = lists.collect();
            format!("Apply failed with {} conflicts: {}", several.len(), lists.join("\n"))
        }
    };
    Status::new(Reason::Conflict, message).because(&causes)
}

fn badly_typed(
    kind: Kind,
    applied: &Value,
    problems: &[(String, manifest::TypeProblem)],
) -> Status {
    let texts: Vec<String> =
        problems.iter().map(|(path, problem)| format!(".{path}: {problem}")).collect();
    typed_patch(kind, applied, &texts)
}

/// The error for an object that cannot be merged, which upstream reports as a server error.
fn not_mergeable(kind: Kind, applied: &Value, error: &ssa::Error) -> Status {
    typed_patch(kind, applied, &[error.to_string()])
}

/// The decoding error, in the server's words: one error in the same line, several in separate
/// lines.
fn typed_patch(kind: Kind, applied: &Value, errors: &[String]) -> Status {
    let [namespace, name] = ["namespace", "name"].map(|field| metadata::text(applied, field));
    let version = kind.api_version();
    let errors = match errors {
        [one] => one.clone(),
        several => format!("errors:\n  {}", several.join("\n  ")),
    };
    let message = format!(
        "failed to create typed patch object ({namespace}/{name}; {version}, Kind={kind}): {errors}"
    );
    Status::new(Reason::Unknown, message)
}
