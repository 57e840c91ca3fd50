//! Creates pullers: pods that make a node pull images. They are deleted as other pods are.

use serde_json::{Value, json};

use super::Writer;
use crate::{Error, Kind, Lock, WriteError};
use daemonset::model::{DaemonSetKey, NamespaceName, PodName, Uid, lease_name};

impl Writer {
    /// Creates a puller, and returns its name and uid. Retried only when it was certainly not
    /// created.
    ///
    /// # Errors
    /// [`WriteError::AlreadyExists`], or [`WriteError::Denied`] by admission.
    pub async fn create_puller(
        &self,
        namespace: &NamespaceName,
        pod: &Value,
    ) -> Result<(PodName, Uid), WriteError> {
        let created = self.create(Kind::Pod, namespace, pod.to_string().into()).await?;
        let text = |field: &str| created["metadata"][field].as_str().unwrap_or_default().to_owned();
        let (name, uid) = (text("name"), text("uid"));
        if uid.is_empty() {
            let reason = "it has no uid".to_owned();
            return Err(Error::NotAnAnswer { request: "POST pods".to_owned(), reason }.into());
        }
        Ok((name.into(), uid.into()))
    }
}

impl Lock {
    /// The owner reference to the Lease, as the controller: no other controller adopts such an
    /// object, whatever its labels are, and it is deleted with the Lease. `None` if the server has
    /// not returned its uid.
    pub async fn owner_reference(&self, key: &DaemonSetKey) -> Option<Value> {
        let uid = self.uid().await;
        (!uid.is_empty()).then(|| {
            json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "name": lease_name(key.name.as_str()),
                "uid": uid,
                "controller": true,
            })
        })
    }
}
