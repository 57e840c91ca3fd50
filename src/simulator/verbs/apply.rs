//! Server-side apply (upstream: `applyPatcher`, the field managers). How objects merge is the rule
//! of the room `merge`, which knows DaemonSets only; nothing here applies anything else.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::update::check_place;
use super::{Ownership, Target, Verbs, metadata, strategy};
use crate::manifest;
use crate::merge::{self, Conflict, Manifest};
use crate::simulator::{Cause, Kind, Object, Reason, Status};

impl Verbs<'_> {
    /// Applies what `applied` states, and creates the object when there is none; says which.
    ///
    /// # Errors
    /// 409 when others own fields that would change and `force` is not given, or when the `uid` or
    /// `resourceVersion` in it are not the object's; 501 for other kinds than DaemonSets.
    pub fn apply(
        &mut self,
        target: Target<'_>,
        applied: &Value,
        force: bool,
    ) -> Result<(Arc<Object>, bool), Status> {
        let Target { kind, namespace, name, .. } = target;
        if kind != Kind::DaemonSet {
            return Err(Status::not_implemented(format!("server-side apply of {kind}s")));
        }
        let manager = self.options.manager;
        check_applied(target, applied)?;
        let live = self.store.get(kind, namespace, name).cloned();
        let old = live.as_ref().map(|live| live.value());
        let defaulted = manifest::default_daemon_set(applied.clone())
            .map_err(|problems| badly_typed(target, &problems))?;
        let manifest = Manifest { applied, defaulted: &defaulted };
        let merged = merge::apply(old.as_ref(), manifest, manager, self.now)
            .map_err(|error| not_mergeable(target, &error))?;
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

/// An applier must name itself; nobody is told by its program.
pub(in crate::simulator) fn no_manager() -> Status {
    let cause = Cause {
        reason: "FieldValueRequired",
        message: "Required value: is required for apply patch".to_owned(),
        field: "fieldManager".to_owned(),
    };
    Status::invalid_options("PatchOptions", &[cause])
}

/// In the server's words (upstream: `NewConflictError`).
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
                let fields: String = fields.iter().map(|field| format!("\n- {field}")).collect();
                format!("conflicts with {manager}:{fields}")
            });
            let lists: Vec<String> = lists.collect();
            format!("Apply failed with {} conflicts: {}", several.len(), lists.join("\n"))
        }
    };
    Status::new(Reason::Conflict, message).because(&causes)
}

fn badly_typed(target: Target<'_>, problems: &[(String, manifest::TypeProblem)]) -> Status {
    let texts: Vec<String> =
        problems.iter().map(|(path, problem)| format!(".{path}: {problem}")).collect();
    typed_patch(target, &texts.join("\n  "))
}

/// Upstream calls what it cannot merge its own fault.
fn not_mergeable(target: Target<'_>, error: &merge::Error) -> Status {
    typed_patch(target, &error.to_string())
}

fn typed_patch(target: Target<'_>, why: &str) -> Status {
    let Target { kind, namespace, name, .. } = target;
    let version = kind.api_version();
    let message = format!(
        "failed to create typed patch object ({namespace}/{name}; {version}, Kind={kind}): errors:\
         \n  {why}"
    );
    Status::new(Reason::InternalError, message)
}
