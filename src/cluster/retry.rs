//! Which failures may pass by themselves, and whether a request may then be sent again. A table by
//! what the request does; no clock and no connection here.

use std::time::Duration;

use backon::{BackoffBuilder as _, ExponentialBuilder};

use super::failure::Failure;

/// The longest wait that a server may ask for with `Retry-After`.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// How often a request may go unanswered. What hung once may hang again, and took long.
const TIMEOUTS: u32 = 2;

/// What sending a request twice would do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Repeat {
    /// No more than sending it once: reads, dry runs, deletes of one identity.
    Harmless,
    /// The same, but what the server cannot merge (500) it never will: server-side apply of two
    /// elements with one key.
    HarmlessUnlessBroken,
    /// Perhaps something else, because others may have written in between. It is sent again only
    /// when it is certain that it was not carried out.
    Unwanted,
    /// By then it may be wrong, even if nothing was carried out: whoever asked has to decide anew.
    /// A pod that was to go may be a good one meanwhile.
    Undecided,
}

/// Waits 0.5 s, 1 s, 2 s and 4 s: five attempts.
pub(super) fn waits() -> impl Iterator<Item = Duration> {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(500))
        .with_max_delay(Duration::from_secs(8))
        .with_max_times(4)
        .build()
}

/// How long the server asks to be left alone.
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

/// What became of the attempts at one request.
#[derive(Debug)]
pub(super) struct History {
    repeat: Repeat,
    timeouts: u32,
    /// A failed attempt that may have been carried out all the same.
    ambiguous: Option<Failure>,
}

impl History {
    pub(super) fn new(repeat: Repeat) -> Self {
        Self { repeat, timeouts: 0, ambiguous: None }
    }

    /// Whether to try again after this failure. A server that never `answered` is not waited for:
    /// its address is more likely wrong.
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

    /// What to report, now that `last` was the last failure: that nobody was there in the end says
    /// less than that an earlier attempt may have been carried out.
    pub(super) fn outcome(self, last: Failure) -> Failure {
        if may_have_happened(&last) || matches!(last, Failure::Status(_)) && !is_status(&last, 429)
        {
            return last;
        }
        self.ambiguous.unwrap_or(last)
    }
}

/// Whether a server-side apply is at fault, though the server calls it its own fault (upstream:
/// `structuredMergeManager.Apply` wraps what the merge library says of the object that was sent).
fn cannot_be_merged(failure: &Failure) -> bool {
    matches!(failure, Failure::Status(refusal)
        if refusal.code == 500 && refusal.message.contains("failed to create typed patch object"))
}

fn is_status(failure: &Failure, code: u16) -> bool {
    matches!(failure, Failure::Status(refusal) if refusal.code == code)
}

/// Whether the server may have carried the request out, although it did not say so.
///
/// A server that sheds load (429, or 503 with `Retry-After`) does so before anything else. Other
/// 5xx come from gateways that lost the answer, or from a store that did.
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
    use crate::cluster::failure::Refusal;

    fn status(code: u16) -> Failure {
        Failure::Status(Refusal { code, ..Refusal::default() })
    }

    fn told_to_wait(code: u16) -> Failure {
        let retry_after = Some(Duration::from_secs(1));
        Failure::Status(Refusal { code, retry_after, ..Refusal::default() })
    }

    /// An element is in a list twice.
    fn twice() -> Failure {
        let message = "failed to create typed patch object (a/b; apps/v1, Kind=DaemonSet): errors";
        Failure::Status(Refusal { code: 500, message: message.to_owned(), ..Refusal::default() })
    }

    #[test]
    fn what_is_sent_again() {
        let timeout = || Failure::Timeout(Duration::from_secs(10));
        let (broken, refused) =
            (Failure::BrokenOff(String::new()), Failure::Unreachable(String::new()));
        for (failure, harmless, unless_broken, unwanted) in [
            (status(429), true, true, true),
            (told_to_wait(429), true, true, true),
            (told_to_wait(503), true, true, true),
            (status(503), true, true, false),
            (status(502), true, true, false),
            (status(504), true, true, false),
            (status(500), true, true, false),
            (twice(), true, false, false),
            (broken, true, true, false),
            (timeout(), true, true, false),
            // Nothing was sent.
            (refused, true, true, true),
            // These are answers.
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
    fn an_attempt_that_may_have_been_carried_out_is_not_forgotten() {
        let (broken, nobody) =
            (Failure::BrokenOff("cut".to_owned()), Failure::Unreachable("gone".to_owned()));
        for (first, last, want) in [
            (&broken, nobody.clone(), &broken),
            (&broken, status(429), &broken),
            (&broken, Failure::Unlocked, &broken),
            // These say how it is.
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
