//! Decides how to continue after the end of a watch. Pure, except for the jitter.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};

use super::End;
use crate::failure::Failure;
use crate::retry;

/// The next step of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Next {
    /// Whether to list all objects again, because changes may have been missed.
    pub(crate) list: bool,
    /// The delay before it, at least as long as this; `None` is no delay.
    pub(crate) delay: Option<Duration>,
    /// The problem, for display; `None` for an ordinary end.
    pub(crate) failure: Option<String>,
}

/// The next step after this end. `lived` is whether the watch had worked for a while.
pub(crate) fn next(end: End, lived: bool) -> Next {
    match end {
        End::Closed | End::Silent if lived => Next { list: false, delay: None, failure: None },
        // Wait, so that a gateway that closes at once is not called in a loop.
        End::Closed | End::Silent => Next {
            list: false,
            delay: Some(Duration::ZERO),
            failure: Some("the watch closes as soon as it opens".to_owned()),
        },
        // Until the next list, the view is known to be stale.
        End::Expired if lived => {
            Next { list: true, delay: None, failure: Some("changes were missed".to_owned()) }
        }
        End::Expired => Next {
            list: true,
            delay: Some(Duration::ZERO),
            failure: Some("the watch expires as soon as it opens".to_owned()),
        },
        End::Failed(failure) => Next {
            list: knows_no_such_version(&failure),
            delay: Some(retry::asked_for(&failure)),
            failure: Some(described(&failure)),
        },
        End::Garbled(reason) => {
            Next { list: true, delay: Some(Duration::ZERO), failure: Some(reason) }
        }
    }
}

/// Whether the server rejects the resource version (upstream: `IsInvalid`,
/// `IsTooLargeResourceVersion`). A store that was restored from a backup has older versions.
fn knows_no_such_version(failure: &Failure) -> bool {
    match failure {
        Failure::Status(refusal) => {
            matches!(refusal.code, 400..500 | 504) && !matches!(refusal.code, 401 | 403 | 429)
        }
        Failure::Unreachable(_)
        | Failure::Tls(_)
        | Failure::BrokenOff(_)
        | Failure::Timeout(_)
        | Failure::TooLarge(_)
        | Failure::Credentials { .. }
        | Failure::Unlocked
        | Failure::LockRanOut => false,
    }
}

fn described(failure: &Failure) -> String {
    match failure {
        Failure::Unreachable(reason) => format!("cannot reach the server: {reason}"),
        Failure::Tls(reason) => format!("no trusted connection: {reason}"),
        Failure::BrokenOff(reason) => format!("the connection was lost: {reason}"),
        Failure::Timeout(limit) => format!("no answer within {} s", limit.as_secs()),
        Failure::TooLarge(limit) => format!("the answer is larger than {} MiB", limit >> 20),
        Failure::Credentials { command, outcome } => {
            format!("the credential plugin `{command}` {outcome}")
        }
        Failure::Status(refusal) => format!("{}: {}", refusal.code, refusal.message),
        Failure::Unlocked | Failure::LockRanOut => "the lock was lost".to_owned(),
    }
}

/// Exponential backoff from 0.1 s to 10 s without an end, with jitter of up to 100 %, so that the
/// watches of a server that recovers do not all reconnect at once.
pub(crate) struct Delays(ExponentialBackoff);

impl Delays {
    /// Delays with random jitter, or with the jitter of the seed.
    pub(crate) fn new(seed: Option<u64>) -> Self {
        let delays = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(100))
            .with_max_delay(Duration::from_secs(10))
            .with_jitter()
            .without_max_times();
        Self(seed.map_or(delays, |seed| delays.with_jitter_seed(seed)).build())
    }

    /// The next delay, at least as long as the server asked for.
    pub(crate) fn delay(&mut self, asked_for: Duration) -> Duration {
        self.0.next().unwrap_or(Duration::from_secs(10)).max(asked_for)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Refusal;

    #[test]
    fn the_next_step_depends_on_the_end_of_a_watch() {
        let refused = |code, retry_after: Option<u64>| {
            let retry_after = retry_after.map(Duration::from_secs);
            End::Failed(Failure::Status(Refusal { code, retry_after, ..Refusal::default() }))
        };
        let delay = |seconds| Some(Duration::from_secs(seconds));
        for (end, lived, list, want, record_failure) in [
            (End::Closed, true, false, None, false),
            (End::Silent, true, false, None, false),
            (End::Closed, false, false, delay(0), true),
            (End::Expired, true, true, None, true),
            (End::Expired, false, true, delay(0), true),
            (refused(429, Some(7)), true, false, delay(7), true),
            (refused(403, None), true, false, delay(0), true),
            (refused(400, None), true, true, delay(0), true),
            (refused(504, None), true, true, delay(0), true),
            (refused(503, None), true, false, delay(0), true),
            (End::Failed(Failure::Unreachable(String::new())), true, false, delay(0), true),
            (End::Garbled("x".to_owned()), true, true, delay(0), true),
        ] {
            let next = next(end.clone(), lived);
            let got = (next.list, next.delay, next.failure.is_some());
            assert_eq!(got, (list, want, record_failure), "{end:?}, lived: {lived}");
        }
    }

    #[test]
    fn delays_grow_up_to_a_limit() {
        let mut delays = Delays::new(None);
        let first = delays.delay(Duration::ZERO);
        assert!(first >= Duration::from_millis(100) && first <= Duration::from_millis(200));
        let later: Vec<_> = (0..100).map(|_| delays.delay(Duration::ZERO)).collect();
        assert!(later[50..].iter().all(|delay| (10..=20).contains(&delay.as_secs())), "{later:?}");
        assert_eq!(delays.delay(Duration::from_secs(30)).as_secs(), 30);
    }
}
