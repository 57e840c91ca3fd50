//! Decides which failures are transient, and whether a request may be retried after one. A table
//! by the kind of request; no clock and no connection here.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};

use super::failure::Failure;

/// The longest `Retry-After` that is honoured.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The limit of attempts that time out.
const TIMEOUTS: u32 = 2;

/// The effect of sending a request twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// The same as sending it once: reads, dry runs, deletes by uid.
    Harmless,
    /// The same as sending it once. But a 500 because the server cannot merge the object is
    /// permanent: server-side apply of two list elements with one key.
    HarmlessUnlessBroken,
    /// Possibly different, because another client may have written in between. It is retried only
    /// when it was certainly not applied.
    Unwanted,
    /// Possibly wrong by then, even if nothing was applied: the caller has to decide again. A pod
    /// that was to be deleted may have become Ready.
    Undecided,
}

/// The waits between attempts: 0.5 s, 1 s, 2 s and 4 s, so five attempts.
pub(super) fn waits() -> impl Iterator<Item = Duration> {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(500))
        .with_max_delay(Duration::from_secs(8))
        .with_max_times(4)
        .build()
}

/// The server's `Retry-After`, up to a limit; zero without one.
pub(super) fn asked_for(failure: &Failure) -> Duration {
    match failure {
        Failure::Status(refusal) => refusal.retry_after.unwrap_or_default().min(LONGEST_WAIT),
        Failure::Unreachable(_)
        | Failure::Tls(_)
        | Failure::BrokenOff(_)
        | Failure::Timeout(_)
        | Failure::TooLarge(_)
        | Failure::Credentials { .. }
        | Failure::Unlocked
        | Failure::LockRanOut => Duration::ZERO,
    }
}

/// The failed attempts of one request.
#[derive(Debug)]
pub(super) struct History {
    repeat: Repeat,
    timeouts: u32,
    /// The first failed attempt that may have been applied.
    ambiguous: Option<Failure>,
}

impl History {
    pub(super) fn new(repeat: Repeat) -> Self {
        Self { repeat, timeouts: 0, ambiguous: None }
    }

    /// Whether to retry after this failure. A server that never `answered` is not waited for:
    /// its address is probably wrong.
    pub(super) fn may_repeat(&mut self, failure: &Failure, answered: bool) -> bool {
        if matches!(failure, Failure::Timeout(_)) {
            self.timeouts += 1;
        }
        if may_have_happened(failure) {
            self.ambiguous.get_or_insert_with(|| failure.clone());
        }
        let passing = match failure {
            Failure::Status(refusal) => matches!(refusal.code, 429 | 500 | 502 | 503 | 504),
            Failure::BrokenOff(_) => true,
            Failure::Unreachable(_) => answered,
            Failure::Timeout(_) => self.timeouts < TIMEOUTS,
            Failure::Tls(_)
            | Failure::TooLarge(_)
            | Failure::Credentials { .. }
            | Failure::Unlocked
            | Failure::LockRanOut => false,
        };
        passing
            && match self.repeat {
                Repeat::Harmless => true,
                Repeat::HarmlessUnlessBroken => !cannot_be_merged(failure),
                Repeat::Unwanted => !may_have_happened(failure),
                Repeat::Undecided => false,
            }
    }

    /// The failure to report, after `last`: an earlier attempt that may have been applied matters
    /// more than a server that is unreachable in the end.
    pub(super) fn outcome(self, last: Failure) -> Failure {
        if may_have_happened(&last) || matches!(last, Failure::Status(_)) && !is_status(&last, 429)
        {
            return last;
        }
        self.ambiguous.unwrap_or(last)
    }
}

/// Whether the applied object is invalid although the server answers 500 (upstream:
/// `structuredMergeManager.Apply` wraps the merge library's error about the object).
fn cannot_be_merged(failure: &Failure) -> bool {
    matches!(failure, Failure::Status(refusal)
        if refusal.code == 500 && refusal.message.contains("failed to create typed patch object"))
}

fn is_status(failure: &Failure, code: u16) -> bool {
    matches!(failure, Failure::Status(refusal) if refusal.code == code)
}

/// Whether the server may have applied the request although it did not confirm it.
///
/// A server that sheds load (429, or 503 with `Retry-After`) does so before it processes a request.
/// Other 5xx come from a gateway that lost the answer, or from the server's store.
pub(super) fn may_have_happened(failure: &Failure) -> bool {
    match failure {
        Failure::BrokenOff(_)
        | Failure::Timeout(_)
        | Failure::TooLarge(_)
        | Failure::LockRanOut => true,
        Failure::Status(refusal) => match refusal.code {
            503 => refusal.retry_after.is_none(),
            code => code >= 500,
        },
        Failure::Unreachable(_)
        | Failure::Tls(_)
        | Failure::Credentials { .. }
        | Failure::Unlocked => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Refusal;

    fn status(code: u16) -> Failure {
        Failure::Status(Refusal { code, ..Refusal::default() })
    }

    fn retry_after(code: u16) -> Failure {
        let retry_after = Some(Duration::from_secs(1));
        Failure::Status(Refusal { code, retry_after, ..Refusal::default() })
    }

    /// The error of a list that has an element twice.
    fn twice() -> Failure {
        let message = "failed to create typed patch object (a/b; apps/v1, Kind=DaemonSet): errors";
        Failure::Status(Refusal { code: 500, message: message.to_owned(), ..Refusal::default() })
    }

    #[test]
    fn retries_depend_on_the_failure_and_the_request() {
        let timeout = || Failure::Timeout(Duration::from_secs(10));
        let (broken, refused) =
            (Failure::BrokenOff(String::new()), Failure::Unreachable(String::new()));
        for (failure, harmless, unless_broken, unwanted) in [
            (status(429), true, true, true),
            (retry_after(429), true, true, true),
            (retry_after(503), true, true, true),
            (status(503), true, true, false),
            (status(502), true, true, false),
            (status(504), true, true, false),
            (status(500), true, true, false),
            (twice(), true, false, false),
            (broken, true, true, false),
            (timeout(), true, true, false),
            // Nothing was sent.
            (refused, true, true, true),
            // The server answered.
            (status(409), false, false, false),
            (status(404), false, false, false),
            (status(422), false, false, false),
            (status(403), false, false, false),
            (status(401), false, false, false),
            (Failure::Tls(String::new()), false, false, false),
            (Failure::Unlocked, false, false, false),
            (Failure::LockRanOut, false, false, false),
        ] {
            let may = |repeat| History::new(repeat).may_repeat(&failure, true);
            let all = [Repeat::Harmless, Repeat::HarmlessUnlessBroken, Repeat::Unwanted].map(may);
            assert_eq!(all, [harmless, unless_broken, unwanted], "{failure:?}");
            assert!(!may(Repeat::Undecided), "{failure:?}");
        }
        let mut history = History::new(Repeat::Harmless);
        assert!(history.may_repeat(&timeout(), true) && !history.may_repeat(&timeout(), true));
        let nobody = Failure::Unreachable(String::new());
        assert!(!History::new(Repeat::Harmless).may_repeat(&nobody, false), "it never answered");
    }

    #[test]
    fn an_attempt_that_may_have_been_applied_is_reported() {
        let (broken, nobody) =
            (Failure::BrokenOff("cut".to_owned()), Failure::Unreachable("gone".to_owned()));
        for (first, last, want) in [
            (&broken, nobody.clone(), &broken),
            (&broken, status(429), &broken),
            (&broken, Failure::Unlocked, &broken),
            // These show the object's state.
            (&broken, status(404), &status(404)),
            (&broken, status(409), &status(409)),
            (&nobody, nobody.clone(), &nobody),
        ] {
            let mut history = History::new(Repeat::Harmless);
            history.may_repeat(first, true);
            history.may_repeat(&last, true);
            assert_eq!(&history.outcome(last.clone()), want, "{first:?}, then {last:?}");
        }
    }
}
