//! Renews the lease of a lock, three times per lease duration.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::sync::Mutex;

use super::lease::{self, LiveLease};
use super::{Fence, decide};
use crate::request::{Call, Requests};
use crate::retry::Repeat;
use crate::write_error::Attempted;
use crate::{Kind, Resource, Verb, WriteError, uri};
use daemonset::model::{DaemonSetKey, lease_name};

/// The lease of one lock, and the client that renews it.
pub(super) struct Renewal {
    pub(super) requests: Arc<Requests>,
    pub(super) fence: Arc<Fence>,
    key: DaemonSetKey,
    identity: String,
    /// The last version seen. Locked during a write, because the next write depends on its version.
    known: Mutex<LiveLease>,
    /// The error of the last renewal, if it failed.
    failure: std::sync::Mutex<Option<String>>,
}

impl Renewal {
    pub(super) fn new(
        requests: Arc<Requests>,
        key: DaemonSetKey,
        identity: String,
        fence: Arc<Fence>,
        known: LiveLease,
    ) -> Self {
        let (known, failure) = (Mutex::new(known), std::sync::Mutex::default());
        Self { requests, fence, key, identity, known, failure }
    }

    /// Renews the lease until the lock is lost or released.
    pub(super) async fn run(self: Arc<Self>) {
        let interval = self.fence.lease() / 3;
        while !self.fence.is_gone() {
            tokio::time::sleep(interval).await;
            // A failed renewal is retried soon: the lease may not have expired yet.
            while let Err(error) = self.renew().await {
                tracing::warn!(%error, daemon_set = %self.key, "cannot renew the lock");
                self.set_failure(Some(error.to_string()));
                if self.fence.is_gone() {
                    return;
                }
                tokio::time::sleep(interval / 5).await;
            }
            self.set_failure(None);
        }
    }

    /// The error of the last renewal, if it failed.
    pub(super) fn failure(&self) -> Option<String> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_failure(&self, failure: Option<String>) {
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = failure;
    }

    async fn renew(&self) -> Result<(), WriteError> {
        self.write(lease::renewed).await
    }

    pub(super) async fn note(&self, key: &str) -> Option<String> {
        self.known.lock().await.note(key).map(str::to_owned)
    }

    pub(super) async fn uid(&self) -> String {
        self.known.lock().await.uid.clone()
    }

    pub(super) async fn set_note(&self, key: &str, value: Option<&str>) -> Result<(), WriteError> {
        if self.fence.is_gone() {
            return Err(self.unlocked());
        }
        let notes = BTreeMap::from([(key, value)]);
        self.write(|before, _| lease::noted(before, &notes)).await
    }

    pub(super) async fn release(&self) -> Result<(), WriteError> {
        self.fence.close();
        self.fence.drained().await;
        self.write(|before, _| lease::released(before)).await
    }

    /// Writes to the lease, which renews the lock. When its version has changed and it is still
    /// ours, writes again on top of the new version; when it is not ours, the lock is lost.
    async fn write(
        &self,
        body: impl Fn(&LiveLease, &str) -> Value + Send + Sync,
    ) -> Result<(), WriteError> {
        let mut known = self.known.lock().await;
        for last in [false, true] {
            let sent = self.fence.now();
            let body = body(&known, &self.requests.lease_time(sent));
            match self.requests.patch_lease(&self.key, &body, self.fence.lease() / 3).await {
                Ok(written) => {
                    *known = written;
                    self.fence.confirm(sent);
                    return Ok(());
                }
                Err(error @ (WriteError::Stale { .. } | WriteError::NotFound { .. })) => {
                    let live = self.requests.lease(&self.key).await?;
                    match live.filter(|live| decide::is_ours(Some(live), &self.identity)) {
                        Some(live) if !last => *known = live,
                        Some(_) => return Err(error),
                        None => {
                            self.fence.lose();
                            return Err(self.unlocked());
                        }
                    }
                }
                Err(error) => return Err(error),
            }
        }
        Err(self.unlocked())
    }

    fn unlocked(&self) -> WriteError {
        WriteError::Unlocked { attempted: attempted(Verb::Patch, &self.key) }
    }
}

impl Requests {
    /// The time that is written into a lease. For display only; no decision depends on it.
    pub(super) fn lease_time(&self, since_boot: Duration) -> String {
        let fallback = SignedDuration::try_from(since_boot).unwrap_or_default();
        let now = self.server_time().unwrap_or(Timestamp::UNIX_EPOCH + fallback);
        format!("{now:.6}")
    }

    pub(super) async fn create_lease(
        &self,
        key: &DaemonSetKey,
        lease: &Value,
        limit: Duration,
    ) -> Result<LiveLease, WriteError> {
        let path = uri::collection(Resource::Of(Kind::Lease), Some(&key.namespace));
        self.write_lease(Verb::Create, path, "application/json", key, lease, limit).await
    }

    /// Patches the lease; the body names the resource version that may be changed.
    pub(super) async fn patch_lease(
        &self,
        key: &DaemonSetKey,
        patch: &Value,
        limit: Duration,
    ) -> Result<LiveLease, WriteError> {
        let name = lease_name(key.name.as_str());
        let uri = uri::object(Resource::Of(Kind::Lease), &key.namespace, &name);
        self.write_lease(Verb::Patch, uri, "application/merge-patch+json", key, patch, limit).await
    }

    async fn write_lease(
        &self,
        verb: Verb,
        path: String,
        media_type: &'static str,
        key: &DaemonSetKey,
        body: &Value,
        limit: Duration,
    ) -> Result<LiveLease, WriteError> {
        let call = Call {
            verb,
            body: Some((media_type, body.to_string().into())),
            repeat: Repeat::Unwanted,
            limit,
            ..Call::get(Resource::Of(Kind::Lease), path)
        };
        let answer = self.write_text(None, &call, attempted(verb, key)).await?;
        Ok(Self::lease_of(&answer)?)
    }
}

fn attempted(verb: Verb, key: &DaemonSetKey) -> Attempted {
    Attempted {
        verb,
        resource: Resource::Of(Kind::Lease),
        namespace: Some(key.namespace.clone()),
        name: lease_name(key.name.as_str()),
        dry_run: false,
    }
}
