//! Creates objects (upstream: `Store.Create`, `BeforeCreate`).

use std::sync::Arc;

use serde_json::Value;

use super::{Ownership, Part, Verbs, metadata, strategy};
use crate::clock::whole_second;
use crate::{Cause, GroupResource, Kind, Object, Reason, Status};

/// Maximum length of the prefix of a generated name (upstream: `names.maxGeneratedNameLength`).
const LONGEST_PREFIX: usize = 58;

/// Attempts to generate a free name (upstream: `maxNameGenerationCreateAttempts`).
const ATTEMPTS: u32 = 8;

impl Verbs<'_> {
    /// Creates an object; the namespace is empty for cluster-scoped kinds.
    ///
    /// # Errors
    /// 409 if the name exists, 404 without the namespace, 403 while the namespace terminates, 422
    /// for violations of the API's rules, 400 for another namespace in the object.
    pub(crate) fn create(
        &mut self,
        kind: Kind,
        namespace: &str,
        mut object: Value,
    ) -> Result<Arc<Object>, Status> {
        place(kind, namespace, &mut object)?;
        if let Some(metadata) = metadata::fields(&mut object) {
            metadata.remove("managedFields");
        }
        self.begin(kind, namespace, object, Ownership::Recorded)
    }

    /// Creates the object of an apply, which contains `managedFields` already.
    pub(super) fn create_applied_object(
        &mut self,
        kind: Kind,
        namespace: &str,
        mut object: Value,
    ) -> Result<Arc<Object>, Status> {
        place(kind, namespace, &mut object)?;
        self.begin(kind, namespace, object, Ownership::Applied)
    }

    fn begin(
        &mut self,
        kind: Kind,
        namespace: &str,
        mut object: Value,
        ownership: Ownership,
    ) -> Result<Arc<Object>, Status> {
        if !metadata::text(&object, "resourceVersion").is_empty() {
            // An error of upstream's storage, which the API does not translate.
            let why = "resourceVersion should not be set on objects to be created";
            return Err(Status::new(Reason::Unknown, why));
        }
        self.name(kind, namespace, &mut object)?;
        self.check_namespace(kind, namespace, &object)?;
        strategy::default_new(kind, &mut object, &mut self.store.last_spec)?;
        self.introduce(kind, &mut object);
        if ownership == Ownership::Recorded {
            strategy::convert(kind, &mut object);
            self.record(kind, Part::Main, None, &mut object)?;
        }
        strategy::prepare_create(kind, &mut object);
        metadata::tidy(&mut object);
        if kind == Kind::Pod && !self.store.any_priority_class {
            strategy::check_priority_class(&object)?;
        }
        strategy::check_create(kind, &object, &mut self.store.last_spec)?;
        let name = metadata::text(&object, "name");
        if self.store.get(kind, namespace, name).is_some() {
            return Err(Status::already_exists(kind, name));
        }
        object["kind"] = kind.as_str().into();
        object["apiVersion"] = kind.api_version().into();
        self.keep(kind, object)
    }

    fn name(&mut self, kind: Kind, namespace: &str, object: &mut Value) -> Result<(), Status> {
        let prefix = metadata::text(object, "generateName").to_owned();
        if !metadata::text(object, "name").is_empty() || prefix.is_empty() {
            return Ok(());
        }
        let prefix: String = prefix.chars().take(LONGEST_PREFIX).collect();
        let mut name = String::new();
        for _ in 0..ATTEMPTS {
            name = format!("{prefix}{}", self.store.new_suffix());
            if self.store.get(kind, namespace, &name).is_none() && !self.store.was_loaded(&name) {
                metadata::set(object, "name", Some(name.into()));
                return Ok(());
            }
        }
        let why = format!(
            "{} {name:?} already exists, the server was not able to generate a unique name for \
             the object",
            GroupResource(kind)
        );
        Err(Status::new(Reason::AlreadyExists, why).retry_after(1))
    }

    /// Rejects objects in a namespace that does not exist or terminates (upstream: admission
    /// `NamespaceLifecycle`).
    fn check_namespace(&self, kind: Kind, namespace: &str, object: &Value) -> Result<(), Status> {
        if !kind.is_namespaced() {
            return Ok(());
        }
        let Some(found) = self.store.get(Kind::Namespace, "", namespace) else {
            return Err(Status::not_found(Kind::Namespace, namespace));
        };
        if found.meta().deleted.is_none() {
            return Ok(());
        }
        let why = format!(
            "unable to create new content in namespace {namespace} because it is being terminated"
        );
        let cause = Cause {
            reason: "NamespaceTerminating",
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        };
        Err(Status::forbidden(kind, metadata::text(object, "name"), &why).because(&[cause]))
    }

    /// Sets the metadata that the server writes into every new object.
    fn introduce(&mut self, kind: Kind, object: &mut Value) {
        let uid = self.store.new_uid();
        let now = whole_second(self.now);
        if let Some(metadata) = metadata::fields(object) {
            for field in ["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds"] {
                metadata.remove(field);
            }
            metadata.insert("uid".to_owned(), uid.into());
            metadata.insert("creationTimestamp".to_owned(), now.into());
            metadata.remove("generation");
            if kind.has_generation() {
                metadata.insert("generation".to_owned(), 1.into());
            }
        }
    }
}

/// Sets the namespace of the request in the object (upstream:
/// `EnsureObjectNamespaceMatchesRequestNamespace`).
pub(super) fn place(kind: Kind, namespace: &str, object: &mut Value) -> Result<(), Status> {
    let own = metadata::text(object, "namespace");
    if own.is_empty() && kind.is_namespaced() {
        metadata::set(object, "namespace", Some(namespace.into()));
        return Ok(());
    }
    if own == namespace {
        return Ok(());
    }
    let why =
        "the namespace of the provided object does not match the namespace sent on the request";
    Err(Status::bad_request(why))
}
