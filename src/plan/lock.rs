//! Who has a DaemonSet's lock: a run that is under way, or the leftover of one that is gone.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::reason::Age;
use crate::model::LockHolder;

/// A lock that somebody has, as its lease tells it at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LockStanding {
    /// Who has it: the user, the machine, the process, and where a CI run can be looked at.
    pub holder: String,
    /// When it was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// How long ago it was renewed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewed_seconds_ago: Option<i64>,
    /// How long it lasts without being renewed; a run that is under way renews it three times as
    /// often.
    pub lease_seconds: i64,
    /// Whether it was renewed within that time: a run is under way. Else that run is gone.
    pub live: bool,
}

impl LockStanding {
    /// How a lock stands at `now`, by the server's clock.
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

impl fmt::Display for LockStanding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { holder, since, renewed_seconds_ago, lease_seconds, live } = self;
        write!(f, "locked by {holder}")?;
        if let Some(since) = since {
            write!(f, " since {}", since.strftime("%Y-%m-%dT%H:%M:%SZ"))?;
        }
        match renewed_seconds_ago {
            Some(ago) => write!(f, ", renewed {} ago: ", Age(*ago))?,
            None => f.write_str(", nobody knows when it was renewed: ")?,
        }
        if *live {
            f.write_str("that run is under way")
        } else {
            write!(f, "it lasts {lease_seconds}s, so that run is gone, and the next one takes it")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_under_way_is_told_from_what_a_dead_one_left() {
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        let (taken, now) = (at("2026-01-01T11:58:00.25Z"), at("2026-01-01T12:00:00Z"));
        for (since, renewed, want) in [
            (
                Some(taken),
                Some(at("2026-01-01T11:59:57Z")),
                "locked by alice on h (process 1) since 2026-01-01T11:58:00Z, renewed 3s ago: \
                 that run is under way",
            ),
            (
                Some(taken),
                Some(at("2026-01-01T11:58:30Z")),
                "locked by alice on h (process 1) since 2026-01-01T11:58:00Z, renewed 90s ago: \
                 it lasts 15s, so that run is gone, and the next one takes it",
            ),
            (
                None,
                None,
                "locked by alice on h (process 1), nobody knows when it was renewed: \
                 that run is under way",
            ),
        ] {
            let name = "alice on h (process 1)".into();
            let holder = LockHolder { name, since, renewed, lease_seconds: 15 };
            assert_eq!(LockStanding::of(&holder, now).to_string(), want);
        }
    }
}
