//! Writes the approval of a step: the only write without a lock, because a run that waits for it
//! may hold the lock.
//!
//! Each step has its own field manager. Server-side apply removes what its manager no longer sends,
//! so with a common one, approving a step would remove the approvals of the others.

use std::fmt::Display;

use serde_json::json;

use super::{WritableCluster, body};
use crate::request::Call;
use crate::retry::Repeat;
use crate::write_error::Attempted;
use crate::{Resource, Verb, WriteError, uri};
use daemonset::model::{Approval, DaemonSetKey, FIELD_MANAGER, approvals_name};

/// The beginning of the field manager; the step's name follows.
const APPROVE_MANAGER: &str = "ds-plan-approve";

impl WritableCluster {
    /// Writes the approval of a step into the ConfigMap of the DaemonSet's approvals, which is
    /// created if needed. Approvals of other steps stay.
    ///
    /// # Errors
    /// [`WriteError::Forbidden`]: creating needs `create` and `patch` of the ConfigMap.
    pub async fn approve_step(
        &self,
        key: &DaemonSetKey,
        step: &str,
        approval: &Approval,
    ) -> Result<(), WriteError> {
        self.apply_approval((key, step), approval, false).await
    }

    /// As [`approve_step`](Self::approve_step), by a dry run (`dryRun=All`): permissions are
    /// checked and admission runs, nothing changes.
    ///
    /// # Errors
    /// As [`approve_step`](Self::approve_step).
    pub async fn try_approve_step(
        &self,
        key: &DaemonSetKey,
        step: &str,
        approval: &Approval,
    ) -> Result<(), WriteError> {
        self.apply_approval((key, step), approval, true).await
    }

    async fn apply_approval(
        &self,
        (key, step): (&DaemonSetKey, &str),
        approval: &Approval,
        dry_run: bool,
    ) -> Result<(), WriteError> {
        let (resource, name) = (Resource::Approvals, approvals_name(&key.name));
        let object = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "namespace": key.namespace,
                "labels": {"app.kubernetes.io/managed-by": FIELD_MANAGER},
            },
            "data": {step: approval.text()},
        });
        let manager = format!("{APPROVE_MANAGER}-{step}");
        // Another client may own the key: who approves last has approved.
        let pairs: [(&str, Option<&dyn Display>); 4] = [
            ("fieldManager", Some(&manager)),
            ("fieldValidation", Some(&"Strict")),
            ("force", Some(&true)),
            ("dryRun", dry_run.then_some(&"All")),
        ];
        let path = uri::object(resource, &key.namespace, &name);
        let call = Call {
            verb: Verb::Patch,
            body: Some(("application/apply-patch+yaml", body::yaml_safe(&object))),
            repeat: Repeat::Harmless,
            ..Call::get(resource, uri::with_query(path, pairs))
        };
        let attempted = Attempted::by(&call, Some(&key.namespace), &name, dry_run);
        self.requests().write_text(None, &call, attempted).await.map(drop)
    }
}
