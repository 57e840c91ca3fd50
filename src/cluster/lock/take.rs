//! Taking a lock: creating the lease, writing ourselves into it, or waiting for its holder.

use std::sync::Arc;
use std::time::Duration;

use super::decide::{self, Move};
use super::record::{self, Holder, LeaseRecord};
use super::renewal::Renewal;
use super::{Fence, LockError, LockOptions};
use crate::cluster::WriteError;
use crate::cluster::request::Requests;
use crate::model::DaemonSetKey;

/// Who takes a lock.
pub(super) struct Taker<'a> {
    pub(super) requests: Arc<Requests>,
    pub(super) key: &'a DaemonSetKey,
    pub(super) holder: &'a Holder,
    pub(super) options: &'a LockOptions,
}

/// A version of the record, and when it was first seen.
struct Seen {
    version: String,
    since: Duration,
}

impl Taker<'_> {
    pub(super) async fn take(self) -> Result<Renewal, LockError> {
        let LockOptions { lease, wait, request, clock } = self.options;
        let (identity, begun) = (self.holder.identity(), clock.now());
        let mut seen: Option<Seen> = None;
        loop {
            let record = self.requests.lease(self.key).await?;
            let now = clock.now();
            let unchanged = record.as_ref().map_or(Duration::ZERO, |record| {
                let since = match &seen {
                    Some(seen) if seen.version == record.version => seen.since,
                    _ => now,
                };
                seen = Some(Seen { version: record.version.clone(), since });
                now.saturating_sub(since)
            });
            let rest = match decide::claim(record.as_ref(), &identity, unchanged, *request) {
                Move::Create => match self.write(None, now).await? {
                    Some(renewal) => return Ok(renewal),
                    None => continue,
                },
                Move::Take => match self.write(record.as_ref(), now).await? {
                    Some(renewal) => return Ok(renewal),
                    None => continue,
                },
                Move::Wait(rest) => rest,
            };
            let waited = now.saturating_sub(begun);
            if waited >= *wait {
                let holder = record.and_then(|record| record.holder()).unwrap_or_default();
                return Err(LockError::Held { daemon_set: self.key.clone(), holder, waited });
            }
            let pause = rest.min(wait.saturating_sub(waited)).min(*lease / 8);
            tokio::time::sleep(pause.max(Duration::from_millis(20))).await;
        }
    }

    /// Writes ourselves into the lease; `None` when somebody was faster, or it is not known how it
    /// came out: then it is to be looked at again.
    async fn write(
        &self,
        before: Option<&LeaseRecord>,
        sent: Duration,
    ) -> Result<Option<Renewal>, LockError> {
        let LockOptions { lease, clock, .. } = self.options;
        let now = self.requests.lease_time(sent);
        let written = match before {
            None => {
                let body = record::new_lease(self.key, self.holder, *lease, &now);
                self.requests.create_lease(self.key, &body, *lease / 3).await
            }
            Some(before) => {
                let body = record::taken(before, self.holder, *lease, &now);
                self.requests.patch_lease(self.key, &body, *lease / 3).await
            }
        };
        match written {
            Ok(record) => Ok(Some(Renewal::new(
                Arc::clone(&self.requests),
                self.key.clone(),
                self.holder.identity(),
                Fence::new(clock.clone(), *lease, sent),
                record,
            ))),
            Err(
                WriteError::AlreadyExists { .. }
                | WriteError::Stale { .. }
                | WriteError::OutcomeUnknown { .. },
            ) => Ok(None),
            Err(WriteError::NotFound { .. }) if before.is_some() => Ok(None),
            Err(error) => Err(LockError::of_write(self.key, error)),
        }
    }
}
