//! The lock of a DaemonSet: held by a run in progress, or left over by a run that ended without
//! releasing it.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reason::Age;
use daemonset::model::LockHolder;

/// The state of a lock, read from its lease at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LockStatus {
    /// Holder: the user, the machine, the process, and the URL of a CI run.
    pub holder: String,
    /// When the lock was acquired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// Seconds since its last renewal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewed_seconds_ago: Option<i64>,
    /// Seconds after which the lease expires without a renewal; a run in progress renews it three
    /// times in that period.
    pub lease_seconds: i64,
    /// Whether the lease has not expired: the run is in progress.
    pub live: bool,
}

impl LockStatus {
    /// Returns the state of the lock at `now`, by the server's clock.
    pub fn of(holder: &LockHolder, now: Timestamp) -> Self {
        let LockHolder { name, since, renewed: _, lease_seconds } = holder;
        Self {
            holder: name.to_string(),
            since: *since,
            renewed_seconds_ago: holder.renewed_ago(now),
            lease_seconds: *lease_seconds,
            live: holder.is_live(now),
        }
    }
}

impl fmt::Display for LockStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { holder, since, renewed_seconds_ago, lease_seconds, live } = self;
        write!(f, "locked by {holder}")?;
        if let Some(since) = since {
            write!(f, " since {}", since.strftime("%Y-%m-%dT%H:%M:%SZ"))?;
        }
        match renewed_seconds_ago {
            Some(ago) => write!(f, ", renewed {} ago: ", Age(*ago))?,
            None => f.write_str(", last renewal unknown: ")?,
        }
        if *live {
            f.write_str("the run is in progress")
        } else {
            write!(f, "the {lease_seconds}s lease has expired; the next run acquires it")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_in_progress_is_distinguished_from_an_expired_lease() {
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        let (taken, now) = (at("2026-01-01T11:58:00.25Z"), at("2026-01-01T12:00:00Z"));
        for (since, renewed, want) in [
            (
                Some(taken),
                Some(at("2026-01-01T11:59:57Z")),
                "locked by alice on h (process 1) since 2026-01-01T11:58:00Z, renewed 3s ago: \
                 the run is in progress",
            ),
            (
                Some(taken),
                Some(at("2026-01-01T11:58:30Z")),
                "locked by alice on h (process 1) since 2026-01-01T11:58:00Z, renewed 90s ago: \
                 the 15s lease has expired; the next run acquires it",
            ),
            (
                None,
                None,
                "locked by alice on h (process 1), last renewal unknown: \
                 the run is in progress",
            ),
        ] {
            let name = "alice on h (process 1)".into();
            let holder = LockHolder { name, since, renewed, lease_seconds: 15 };
            assert_eq!(LockStatus::of(&holder, now).to_string(), want);
        }
    }
}
