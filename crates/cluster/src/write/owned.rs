//! Writes the objects that a DaemonSet owns, as its controller does: creates, changes, adopts and
//! releases pods and revisions (upstream: `RealPodControl`, `PodControllerRefManager`).
//!
//! Only for DaemonSets that `ds-apply` manages. Not here: the decision to write, and the content.

use std::fmt::Display;

use serde_json::{Value, json};

use super::{Writer, body, patch_call};
use crate::request::Call;
use crate::retry::Repeat;
use crate::write_error::Attempted;
use crate::{Error, Kind, Resource, Verb, WriteError, uri};
use daemonset::model::{FIELD_MANAGER, NamespaceName, Uid};

/// An existing pod or revision.
#[derive(Clone, Copy, Debug)]
pub struct Owned<'a> {
    /// [`Kind::Pod`] or [`Kind::ControllerRevision`].
    pub kind: Kind,
    /// Its namespace.
    pub namespace: &'a NamespaceName,
    /// Its name.
    pub name: &'a str,
    /// Its uid, a precondition of every change.
    pub uid: &'a Uid,
}

impl Writer {
    /// Creates a pod or revision from its JSON, and returns its name. Raw bytes, so that the server
    /// stores the data of a revision exactly. Retried only when it was certainly not created.
    ///
    /// # Errors
    /// [`WriteError::AlreadyExists`], or [`WriteError::Denied`] by admission.
    pub async fn create_owned(
        &self,
        kind: Kind,
        namespace: &NamespaceName,
        object: Vec<u8>,
    ) -> Result<String, WriteError> {
        let created = self.create(kind, namespace, object).await?;
        Ok(created["metadata"]["name"].as_str().unwrap_or_default().to_owned())
    }

    /// Creates an object from its JSON, and returns it.
    pub(super) async fn create(
        &self,
        kind: Kind,
        namespace: &NamespaceName,
        object: Vec<u8>,
    ) -> Result<Value, WriteError> {
        let resource = Resource::Of(kind);
        let path = uri::collection(resource, Some(namespace));
        let manager: Option<&dyn Display> = Some(&FIELD_MANAGER);
        let call = Call {
            verb: Verb::Create,
            body: Some(("application/json", object)),
            repeat: Repeat::Unwanted,
            ..Call::get(resource, uri::with_query(path, [("fieldManager", manager)]))
        };
        let attempted = Attempted::by(&call, Some(namespace), "", false);
        self.requests.write(Some(&self.fence), &call, attempted).await
    }

    /// Changes an object by a merge patch of only the changed fields: sending a revision back as a
    /// whole could change the bytes of its data.
    ///
    /// # Errors
    /// [`WriteError::Stale`] when the object was replaced by another one; [`WriteError::NotFound`].
    pub async fn change_owned(&self, it: Owned<'_>, mut patch: Value) -> Result<(), WriteError> {
        patch["metadata"]["uid"] = it.uid.to_string().into();
        let body = ("application/merge-patch+json", patch.to_string().into());
        let call = patch_call(it.kind, (it.namespace, it.name), body);
        let attempted = Attempted::by(&call, Some(it.namespace), it.name, false);
        self.requests.write_text(Some(&self.fence), &call, attempted).await.map(drop)
    }

    /// Adds an owner reference to an object without a controller; other owners stay.
    /// Compare-and-swap, because owner references are a list.
    ///
    /// # Errors
    /// [`WriteError::Stale`] when the object has changed; [`WriteError::NotFound`].
    pub async fn adopt(&self, it: Owned<'_>, reference: &Value) -> Result<(), WriteError> {
        self.change_owners(it, |owners| owners.push(reference.clone())).await
    }

    /// Removes the owner reference to `owner` from an object (upstream: release).
    ///
    /// # Errors
    /// As [`adopt`](Self::adopt).
    pub async fn let_go(&self, it: Owned<'_>, owner: &Uid) -> Result<(), WriteError> {
        let owner = owner.to_string();
        self.change_owners(it, |owners| owners.retain(|one| one["uid"] != owner)).await
    }

    async fn change_owners(
        &self,
        it: Owned<'_>,
        change: impl FnOnce(&mut Vec<Value>),
    ) -> Result<(), WriteError> {
        let resource = Resource::Of(it.kind);
        let call = Call::get(resource, uri::object(resource, it.namespace, it.name));
        let attempted = Attempted::by(&call, Some(it.namespace), it.name, false);
        let text = self.requests.write_text(Some(&self.fence), &call, attempted).await?;
        let live: Value = serde_json::from_slice(&text).map_err(|error| Error::NotAnAnswer {
            request: call.to_string(),
            reason: error.to_string(),
        })?;
        let metadata = &live["metadata"];
        let mut owners = metadata["ownerReferences"].as_array().cloned().unwrap_or_default();
        change(&mut owners);
        let version = &metadata["resourceVersion"];
        let patch = json!({"metadata": {"resourceVersion": version, "ownerReferences": owners}});
        self.change_owned(it, patch).await
    }

    /// Deletes one revision.
    ///
    /// # Errors
    /// [`WriteError::NotFound`] or [`WriteError::Stale`] when a revision with that name and uid
    /// does not exist.
    pub async fn delete_revision(
        &self,
        namespace: &NamespaceName,
        name: &str,
        uid: &Uid,
    ) -> Result<(), WriteError> {
        let body = body::delete(uid, None, None);
        self.delete(Kind::ControllerRevision, namespace, name, body, Repeat::Harmless).await
    }
}
