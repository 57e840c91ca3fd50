//! What to do when a watch has ended. Pure, but for the jitter.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBackoff, ExponentialBuilder};

use super::End;
use crate::cluster::failure::Failure;
use crate::cluster::retry;

/// How a watch goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::cluster) struct Next {
    /// Whether everything has to be listed again, because nobody knows what was missed.
    pub(in crate::cluster) list: bool,
    /// Whether to pause first, and how long the server asked for at least.
    pub(in crate::cluster) pause: Option<Duration>,
    /// What is wrong, for people; `None` when it is the usual.
    pub(in crate::cluster) trouble: Option<String>,
}

/// What to do when a watch has ended so. `lived` is whether it had stood for a while before.
pub(in crate::cluster) fn next(end: End, lived: bool) -> Next {
    match end {
        End::Closed | End::Silent if lived => Next { list: false, pause: None, trouble: None },
        // A gateway that closes at once is not to be asked in a loop.
        End::Closed | End::Silent => Next {
            list: false,
            pause: Some(Duration::ZERO),
            trouble: Some("the watch ends as soon as it begins".to_owned()),
        },
        // Until it is listed, what is known is known to be old.
        End::Expired if lived => {
            Next { list: true, pause: None, trouble: Some("changes were missed".to_owned()) }
        }
        End::Expired => Next {
            list: true,
            pause: Some(Duration::ZERO),
            trouble: Some("the watch expires as soon as it begins".to_owned()),
        },
        End::Failed(failure) => Next {
            list: knows_no_such_version(&failure),
            pause: Some(retry::asked_for(&failure)),
            trouble: Some(described(&failure)),
        },
        End::Garbled(reason) => {
            Next { list: true, pause: Some(Duration::ZERO), trouble: Some(reason) }
        }
    }
}

/// Whether the server has trouble with the version (upstream: `IsInvalid`, `IsTooLargeResourceVersion`)
/// rather than with us, or with itself. A store that was restored from a backup has gone back.
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
        Failure::BrokenOff(reason) => format!("the connection broke off: {reason}"),
        Failure::Timeout(limit) => format!("no answer within {} s", limit.as_secs()),
        Failure::TooLarge(limit) => format!("an answer of more than {} MiB", limit >> 20),
        Failure::Credentials { command, outcome } => {
            format!("the credential plugin `{command}` {outcome}")
        }
        Failure::Status(refusal) => format!("{}: {}", refusal.code, refusal.message),
        Failure::Unlocked | Failure::LockRanOut => "the lock was lost".to_owned(),
    }
}

/// Longer and longer pauses, from 0.1 s to 10 s and for ever, each with up to as much again by
/// chance: several watches of one server that comes back do not all come at once.
pub(in crate::cluster) struct Pauses(ExponentialBackoff);

impl Pauses {
    /// Pauses of another length each time, or of the same that the seed gives.
    pub(in crate::cluster) fn new(seed: Option<u64>) -> Self {
        let pauses = ExponentialBuilder::default()
            .with_min_delay(Duration::from_millis(100))
            .with_max_delay(Duration::from_secs(10))
            .with_jitter()
            .without_max_times();
        Self(seed.map_or(pauses, |seed| pauses.with_jitter_seed(seed)).build())
    }

    /// The next pause, and no shorter than the server asked for.
    pub(in crate::cluster) fn pause(&mut self, asked_for: Duration) -> Duration {
        self.0.next().unwrap_or(Duration::from_secs(10)).max(asked_for)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::failure::Refusal;

    #[test]
    fn what_follows_the_end_of_a_watch() {
        let refused = |code, retry_after: Option<u64>| {
            let retry_after = retry_after.map(Duration::from_secs);
            End::Failed(Failure::Status(Refusal { code, retry_after, ..Refusal::default() }))
        };
        let pause = |seconds| Some(Duration::from_secs(seconds));
        for (end, lived, list, want, troubled) in [
            (End::Closed, true, false, None, false),
            (End::Silent, true, false, None, false),
            (End::Closed, false, false, pause(0), true),
            (End::Expired, true, true, None, true),
            (End::Expired, false, true, pause(0), true),
            (refused(429, Some(7)), true, false, pause(7), true),
            (refused(403, None), true, false, pause(0), true),
            (refused(400, None), true, true, pause(0), true),
            (refused(504, None), true, true, pause(0), true),
            (refused(503, None), true, false, pause(0), true),
            (End::Failed(Failure::Unreachable(String::new())), true, false, pause(0), true),
            (End::Garbled("x".to_owned()), true, true, pause(0), true),
        ] {
            let next = next(end.clone(), lived);
            let got = (next.list, next.pause, next.trouble.is_some());
            assert_eq!(got, (list, want, troubled), "{end:?}, lived: {lived}");
        }
    }

    #[test]
    fn pauses_grow_and_have_an_end() {
        let mut pauses = Pauses::new(None);
        let first = pauses.pause(Duration::ZERO);
        assert!(first >= Duration::from_millis(100) && first <= Duration::from_millis(200));
        let later: Vec<_> = (0..100).map(|_| pauses.pause(Duration::ZERO)).collect();
        assert!(later[50..].iter().all(|pause| (10..=20).contains(&pause.as_secs())), "{later:?}");
        assert_eq!(pauses.pause(Duration::from_secs(30)).as_secs(), 30);
    }
}
