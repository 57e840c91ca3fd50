//! Takes a lock: creates the lease, becomes its holder, or waits for the current holder.

use std::sync::Arc;
use std::time::Duration;

use super::decide::{self, Move};
use super::fence::Fence;
use super::lease::{self, Holder, LiveLease};
use super::options::{LockError, LockOptions, LockWait};
use super::renewal::Renewal;
use crate::WriteError;
use crate::request::Requests;
use daemonset::model::DaemonSetKey;

/// Attempts to take a lock from a failing server.
const FAILURES: u32 = 8;

/// The parameters of taking a lock.
pub(super) struct Taker<'a> {
    pub(super) requests: Arc<Requests>,
    pub(super) key: &'a DaemonSetKey,
    pub(super) holder: &'a Holder,
    pub(super) options: &'a LockOptions,
    /// Called with the holder that this run waits for: at once, and again when the holder changes.
    pub(super) waits: &'a (dyn Fn(&LockWait) + Sync),
}

/// A version of the lease, and when it was first seen.
struct Seen {
    version: String,
    since: Duration,
}

impl Taker<'_> {
    pub(super) async fn take(self) -> Result<Renewal, LockError> {
        let LockOptions { lease, wait, request, clock } = self.options;
        let (identity, begun) = (self.holder.identity(), clock.now());
        let limits = ((*lease).max(lease::DEFAULT_LEASE), *request);
        let mut seen: Option<Seen> = None;
        let (mut failures, mut reported) = (0, None);
        loop {
            let live = self.requests.lease(self.key).await?;
            let now = clock.now();
            let unchanged = live.as_ref().map_or(Duration::ZERO, |live| {
                let since = match &seen {
                    Some(seen) if seen.version == live.version => seen.since,
                    _ => now,
                };
                seen = Some(Seen { version: live.version.clone(), since });
                now.saturating_sub(since)
            });
            let rest = match decide::claim(live.as_ref(), &identity, unchanged, limits) {
                Move::Create | Move::Take => {
                    match self.write(live.as_ref(), now).await {
                        Ok(renewal) => return Ok(renewal),
                        Err(error) if is_overtaken(&error, live.is_some()) => {}
                        Err(error) if is_failure(&error) && failures < FAILURES => {
                            failures += 1;
                            tokio::time::sleep(*lease / 8).await;
                        }
                        Err(error) => return Err(LockError::of_write(self.key, error)),
                    }
                    continue;
                }
                Move::Wait(rest) => rest,
            };
            let waited = now.saturating_sub(begun);
            if waited >= *wait {
                let holder = live.and_then(|live| live.holder()).unwrap_or_default();
                return Err(LockError::Held { daemon_set: self.key.clone(), holder, waited });
            }
            let holder = live.as_ref().map(|it| it.holder.clone());
            if reported != holder {
                reported = holder;
                self.report_wait(live.as_ref(), rest, wait.saturating_sub(waited));
            }
            let delay = rest.min(wait.saturating_sub(waited)).min(*lease / 8);
            tokio::time::sleep(delay.max(Duration::from_millis(20))).await;
        }
    }

    /// Reports the holder that this run waits for.
    fn report_wait(&self, live: Option<&LiveLease>, rest: Duration, timeout: Duration) {
        if let Some(holder) = live.and_then(LiveLease::lock_holder) {
            let now = self.requests.server_time();
            (self.waits)(&LockWait { holder, now, unless_renewed: rest, timeout });
        }
    }

    /// Becomes the holder of the lease.
    async fn write(
        &self,
        before: Option<&LiveLease>,
        sent: Duration,
    ) -> Result<Renewal, WriteError> {
        let LockOptions { lease, clock, .. } = self.options;
        let now = self.requests.lease_time(sent);
        let live = match before {
            None => {
                let body = lease::new_lease(self.key, self.holder, *lease, &now);
                self.requests.create_lease(self.key, &body, *lease / 3).await
            }
            Some(before) => {
                let body = lease::taken(before, self.holder, *lease, &now);
                self.requests.patch_lease(self.key, &body, *lease / 3).await
            }
        }?;
        Ok(Renewal::new(
            Arc::clone(&self.requests),
            self.key.clone(),
            self.holder.identity(),
            Fence::new(clock.clone(), *lease, sent),
            live,
        ))
    }
}

/// Whether another client was faster: the lease has to be read again.
fn is_overtaken(error: &WriteError, existed: bool) -> bool {
    match error {
        WriteError::AlreadyExists { .. } | WriteError::Stale { .. } => true,
        // If the lease did not exist before, its namespace does not exist.
        WriteError::NotFound { .. } => existed,
        WriteError::Unlocked { .. }
        | WriteError::Conflict { .. }
        | WriteError::Forbidden { .. }
        | WriteError::Invalid { .. }
        | WriteError::Denied { .. }
        | WriteError::TooManyRequests { .. }
        | WriteError::OutcomeUnknown { .. }
        | WriteError::Refused { .. }
        | WriteError::Cluster(_) => false,
    }
}

/// Whether the server failed and the lease may have been written: read it to see whether it is
/// ours.
fn is_failure(error: &WriteError) -> bool {
    matches!(error, WriteError::OutcomeUnknown { .. } | WriteError::Refused { status: 500.., .. })
}
