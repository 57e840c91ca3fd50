//! What time it is in the cluster, by the `Date` of the API servers' answers. Pure: the process's
//! own clock comes in as an argument.
//!
//! A cluster has several API servers, and their clocks need not agree; a gateway answers with its
//! own. Whoever believed one answer alone would take a pod that is Ready for a second for one that
//! is Ready for a year. So:
//!
//! - Between answers, time goes by as the process's clock does, which no answer can change.
//! - Several answers have to say the same: the earliest time that a quarter of the last ones agree
//!   on is gone by. Where servers disagree, that makes things younger, and what is young is waited
//!   for.
//! - A later time is believed only little by little ([`SLEW`]) once the first answers are in; an
//!   earlier one at once. Too early costs time, too late costs nodes.
//!
//! Not here: times of pods, which the kubelets' clocks tell; the local wall clock, which nothing is
//! decided by.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::planted::planted;

/// So many answers are remembered.
const REMEMBERED: usize = 16;

/// After so many answers, a later time is no longer believed at once.
const SETTLED: usize = 8;

/// One in so many of the last answers has to say the time that is believed, or an earlier one.
const SUPPORT: usize = 4;

/// Answers that differ by no more than this are of one clock: a `Date` leaves out the fraction of a
/// second, and an answer takes a while.
const SAME: SignedDuration = SignedDuration::from_secs(2);

/// A later time is approached by one second in so many.
const SLEW: i32 = 20;

/// When what is believed turns out to be so much too late, whoever goes by it has to stop: what it
/// has noted until then lies in the future.
const TOO_LATE: SignedDuration = SignedDuration::from_secs(60);

/// Clocks that differ by no more than this are not worth a word.
const NOTABLE: SignedDuration = SignedDuration::from_secs(5);

/// The time in the cluster, as well as it can be told.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerClock {
    /// The last answers, oldest first.
    answers: VecDeque<Answer>,
    /// How many there were, all in all.
    count: usize,
    belief: Option<Belief>,
    went_back: bool,
}

/// What one answer says: what the server's clock showed when the process's clock was at zero, since
/// the Unix epoch.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// At least: the answer was not older when it came.
    earliest: SignedDuration,
    /// At most: it was not made before it was asked for, and may leave out a fraction of a second.
    latest: SignedDuration,
}

/// What is believed of the server's clock at zero of the process's clock.
#[derive(Clone, Copy, Debug)]
struct Belief {
    /// As of `at`.
    zero: SignedDuration,
    /// When the last answer came.
    at: Duration,
    /// What the last answers agree on: where `zero` moves to.
    goal: SignedDuration,
}

impl Belief {
    /// What is believed at a later moment.
    fn zero_at(self, now: Duration) -> SignedDuration {
        let gone = SignedDuration::try_from(now.saturating_sub(self.at));
        let most = self.zero.saturating_add(gone.unwrap_or(SignedDuration::MAX) / SLEW);
        self.goal.min(most)
    }
}

impl ServerClock {
    /// An answer says `date`, that was asked for at `sent` and came at `came` by the process's
    /// clock.
    pub(super) fn hear(&mut self, date: Timestamp, sent: Duration, came: Duration) {
        let since = |moment: Duration, date: SignedDuration| {
            date.saturating_sub(SignedDuration::try_from(moment).unwrap_or(SignedDuration::MAX))
        };
        let date = date.as_duration();
        let second = SignedDuration::from_secs(1);
        self.answers.push_back(Answer {
            earliest: since(came, date),
            latest: since(sent, date.saturating_add(second)),
        });
        let surplus = self.answers.len().saturating_sub(REMEMBERED);
        self.answers.drain(..surplus);
        self.count += 1;
        let goal = self.agreed();
        let zero = match self.belief.map(|before| before.zero_at(came)) {
            Some(before) if self.count > SETTLED => {
                self.went_back |= before.saturating_sub(goal) > TOO_LATE;
                before.min(goal)
            }
            Some(_) | None => goal,
        };
        self.belief = Some(Belief { zero, at: came, goal });
    }

    /// The time in the cluster, at that moment of the process's clock; `None` before any answer.
    pub(super) fn now(&self, now: Duration) -> Option<Timestamp> {
        let zero = self.belief?.zero_at(now);
        let now = SignedDuration::try_from(now).unwrap_or(SignedDuration::MAX);
        Timestamp::from_duration(zero.saturating_add(now)).ok()
    }

    /// Whether what was believed for a while was more than a minute too late, as others say.
    pub(super) fn went_back(&self) -> bool {
        self.went_back
    }

    /// The time in the cluster when it last answered, in whole seconds.
    pub(super) fn last(&self) -> Option<Timestamp> {
        let now = self.now(self.belief?.at)?;
        Timestamp::from_second(now.as_second()).ok()
    }

    /// How far apart the clocks are that the last answers came from, at least; if that is worth a
    /// word.
    pub(super) fn disagreement(&self) -> Option<SignedDuration> {
        let ahead = self.answers.iter().map(|answer| answer.earliest).max()?;
        let behind = self.answers.iter().map(|answer| answer.latest).min()?;
        Some(ahead.saturating_sub(behind)).filter(|apart| *apart > NOTABLE)
    }

    /// The earliest time that enough of the last answers agree on; of those that are of the same
    /// clock the latest, because no `Date` is ahead of its server.
    fn agreed(&self) -> SignedDuration {
        let mut all: Vec<_> = self.answers.iter().map(|answer| answer.earliest).collect();
        all.sort_unstable();
        let supported = planted!(all.len() / SUPPORT, "one answer sets the clock" => all.len() - 1);
        let earliest = all.get(supported).copied().unwrap_or_default();
        let same = earliest.saturating_add(SAME);
        all.into_iter().take_while(|it| *it <= same).last().unwrap_or(earliest)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const YEAR: i64 = 365 * 24 * 3600;

    /// When the process's clock was at zero.
    fn zero() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// An answer of a clock that is so many seconds off, which takes no time.
    fn hear(clock: &mut ServerClock, seconds: f64, off: i64) {
        clock.hear(shown(seconds, off), at(seconds), at(seconds));
    }

    /// The `Date` that a clock shows which is so many seconds off.
    fn shown(seconds: f64, off: i64) -> Timestamp {
        let now = zero() + SignedDuration::try_from(at(seconds)).unwrap();
        Timestamp::from_second(now.as_second() + off).unwrap()
    }

    /// How far the clock is off, in seconds.
    fn off(clock: &ServerClock, seconds: f64) -> f64 {
        let now = clock.now(at(seconds)).unwrap();
        now.duration_since(zero()).as_secs_f64() - seconds
    }

    #[test]
    fn what_several_answers_come_to() {
        for (case, offs, want) in [
            ("one", &[0][..], 0.0),
            ("all the same", &[0; 20], 0.0),
            ("one a year ahead", &[0, 0, 0, YEAR, 0, 0], 0.0),
            ("the first one a year ahead", &[YEAR, 0], 0.0),
            ("the first ones a year ahead", &[YEAR, YEAR, YEAR, YEAR, 0, 0], 0.0),
            ("the last one a year ahead", &[0, 0, 0, 0, 0, 0, 0, 0, YEAR], 0.0),
            ("one a year behind", &[0, 0, 0, 0, -YEAR, 0, 0, 0, 0], 0.0),
            ("the last one a year behind", &[0, 0, 0, 0, -YEAR], 0.0),
            ("one of two servers ahead", &[60, 0, 60, 0, 60, 0, 60, 0, 60, 0], 0.0),
            ("two of three servers ahead", &[60, 60, 0, 60, 60, 0, 60, 60, 0], 0.0),
            ("one of two servers behind", &[0, -60, 0, -60, 0, -60, 0, -60], -60.0),
            ("another server from now on, which is behind", &[0, 0, 0, 0, -9, -9, -9], -9.0),
        ] {
            let mut clock = ServerClock::default();
            for (number, it) in (0..).zip(offs) {
                hear(&mut clock, f64::from(number), *it);
            }
            let seconds = f64::from(u32::try_from(offs.len()).unwrap());
            assert!(!clock.went_back(), "{case}");
            assert!((off(&clock, seconds) - want).abs() < 0.5, "{case}: {}", off(&clock, seconds));
        }
    }

    #[test]
    fn a_later_time_is_approached_and_an_earlier_one_taken() {
        let mut clock = ServerClock::default();
        (0..16).for_each(|second| hear(&mut clock, f64::from(second), 0));
        // Another server answers from now on, and is a minute ahead.
        (16..116).for_each(|second| hear(&mut clock, f64::from(second), 60));
        let ahead = off(&clock, 116.0);
        assert!((3.0..5.1).contains(&ahead), "{ahead}");
        // And yet another, which is a minute behind.
        (116..132).for_each(|second| hear(&mut clock, f64::from(second), -60));
        let behind = off(&clock, 132.0);
        assert!((-60.5..=-60.0).contains(&behind), "{behind}");
        assert!(clock.went_back());
    }

    #[test]
    fn fractions_of_a_second_are_found_out() {
        let mut clock = ServerClock::default();
        // Each is up to a second old, and one is hardly so.
        for seconds in [0.9, 1.5, 2.01, 3.7, 4.4] {
            hear(&mut clock, seconds, 0);
        }
        assert!((-0.02..=0.0).contains(&off(&clock, 5.0)), "{}", off(&clock, 5.0));
        assert_eq!(clock.last(), Some(zero() + SignedDuration::from_secs(4)));
    }

    #[test]
    fn clocks_that_disagree_are_told_and_slow_answers_are_not() {
        for (case, offs, took, want) in [
            ("nothing to tell", &[0, 0, 1, -1][..], 0.0, None),
            ("a minute ahead", &[0, 0, 0, 60, 0], 0.0, Some(60)),
            ("a minute behind", &[0, 0, 0, -60, 0], 0.0, Some(60)),
            ("slow answers", &[0, -8, 0, 0, -9, 0], 9.0, None),
        ] {
            let mut clock = ServerClock::default();
            for (number, it) in (20..).zip(offs) {
                let came = f64::from(number);
                clock.hear(shown(came, *it), at(came - took), at(came));
            }
            let told = clock.disagreement().map(|it| it.as_secs());
            assert_eq!(
                told.map(|it| (it - want.unwrap_or(0)).abs() <= 1),
                want.map(|_| true),
                "{case}: {told:?}"
            );
        }
    }

    #[test]
    fn no_date_is_too_odd() {
        let mut clock = ServerClock::default();
        for date in [Timestamp::MAX, Timestamp::MIN, Timestamp::UNIX_EPOCH, Timestamp::MAX] {
            clock.hear(date, Duration::ZERO, Duration::MAX);
            let _ = (clock.now(Duration::ZERO), clock.now(Duration::MAX), clock.disagreement());
        }
        assert_eq!(ServerClock::default().now(Duration::ZERO), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// Whatever is answered: once the first answers are in, no more time goes by than the
        /// process's clock says, and the twentieth part of it.
        #[test]
        fn time_goes_by_as_the_processs_own_does(
            answers in prop::collection::vec((0.0..30.0_f64, -2 * YEAR..2 * YEAR, 0.0..10.0_f64), 1..80),
            looks in prop::collection::vec(0.0..40.0_f64, 80),
        ) {
            let mut clock = ServerClock::default();
            let mut seconds = 100.0;
            let mut before: Option<(f64, f64)> = None;
            for (number, (pause, off, took)) in answers.into_iter().enumerate() {
                // Looked at on the way to the next answer, and right before and after it.
                for moment in [seconds + looks[number].min(pause), seconds + pause] {
                    if let Some(now) = clock.now(at(moment)) {
                        let now = now.duration_since(zero()).as_secs_f64();
                        if let Some((then, showed)) = before {
                            let most = (moment - then) * (1.0 + 1.0 / f64::from(SLEW));
                            prop_assert!(now - showed <= most + 1e-3);
                        }
                        before = (number >= SETTLED).then_some((moment, now));
                    }
                }
                seconds += pause;
                clock.hear(shown(seconds, off), at(seconds - took), at(seconds));
            }
        }

        /// One answer of five that is off by anything up to two years changes next to nothing.
        #[test]
        fn outliers_change_nothing(
            wrong in -2 * YEAR..2 * YEAR,
            pauses in prop::collection::vec(0.0..5.0_f64, 60),
            first in 1..5_usize,
        ) {
            let (mut honest, mut clock) = (ServerClock::default(), ServerClock::default());
            let mut seconds = 0.0;
            for (number, pause) in pauses.into_iter().enumerate() {
                seconds += pause;
                let is_wrong = number % 5 == first;
                hear(&mut clock, seconds, if is_wrong { wrong } else { 0 });
                if !is_wrong {
                    hear(&mut honest, seconds, 0);
                }
                let differs = (off(&clock, seconds) - off(&honest, seconds)).abs();
                prop_assert!(number < SETTLED || differs <= 3.0, "{differs} at {number}");
            }
        }
    }
}
