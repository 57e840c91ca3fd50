//! Estimates the cluster's time from the `Date` headers of the API servers. Pure: the process's
//! own clock comes in as an argument.
//!
//! A cluster has several API servers whose clocks may differ, and a gateway may answer with its own
//! clock. A single wrong answer could make a pod that is Ready for a second look Ready for a year.
//! So:
//!
//! - Between answers, time advances like the process's clock, which no answer can change.
//! - Several answers have to agree: the estimate is the earliest time that a quarter of the last
//!   answers support. Where servers disagree, objects look younger, and the caller waits longer.
//!   What is believed holds as long as one of them still shows it: by chance, most answers may come
//!   from the wrong server for a while.
//! - After the first answers, the estimate moves to a later time only slowly ([`SLEW`]), to an
//!   earlier one at once. Too early costs time, too late costs nodes.
//!
//! Not here: times of pods, which come from the kubelets' clocks; the local wall clock, which no
//! decision depends on.

use std::collections::VecDeque;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

/// The number of answers that are kept.
const REMEMBERED: usize = 16;

/// After this many answers, the estimate moves to a later time only slowly.
const SETTLED: usize = 8;

/// One in this many of the last answers has to show the estimated time or an earlier one.
const SUPPORT: usize = 4;

/// Answers that differ by no more than this count as the same clock: a `Date` has no fractions of a
/// second, and an answer takes time.
const SAME: SignedDuration = SignedDuration::from_secs(2);

/// The estimate moves to a later time by one second in this many.
const SLEW: i32 = 20;

/// If the estimate was this much too late, its users have to stop: the times that they recorded
/// are in the future.
const TOO_LATE: SignedDuration = SignedDuration::from_secs(60);

/// Clocks that differ by no more than this are not reported.
const NOTABLE: SignedDuration = SignedDuration::from_secs(5);

/// The estimated time in the cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerClock {
    /// The last answers, oldest first.
    answers: VecDeque<Answer>,
    /// The number of all answers so far.
    count: usize,
    belief: Option<Belief>,
    went_back: bool,
}

/// One answer: the time of the server's clock, since the Unix epoch, when the process's clock was
/// at zero.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// The lower bound: the `Date` was not older when the answer came.
    earliest: SignedDuration,
    /// The upper bound: the answer was not made before the request, and the `Date` may omit a
    /// fraction of a second.
    latest: SignedDuration,
}

/// The estimate of the server's clock when the process's clock was at zero.
#[derive(Clone, Copy, Debug)]
struct Belief {
    /// The estimate as of `at`.
    zero: SignedDuration,
    /// The arrival of the last answer.
    at: Duration,
    /// The time that the last answers support, which `zero` moves to.
    goal: SignedDuration,
}

impl Belief {
    /// The estimate at a later moment.
    fn zero_at(self, now: Duration) -> SignedDuration {
        let gone = SignedDuration::try_from(now.saturating_sub(self.at));
        let most = self.zero.saturating_add(gone.unwrap_or(SignedDuration::MAX) / SLEW);
        self.goal.min(most)
    }
}

impl ServerClock {
    /// Adds an answer with this `Date`. Its request was sent at `sent` and it arrived at `came`,
    /// both by the process's clock.
    pub(super) fn observe(&mut self, date: Timestamp, sent: Duration, came: Duration) {
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

    /// The time in the cluster at this moment of the process's clock; `None` before the first
    /// answer.
    pub(super) fn now(&self, now: Duration) -> Option<Timestamp> {
        let zero = self.belief?.zero_at(now);
        let now = SignedDuration::try_from(now).unwrap_or(SignedDuration::MAX);
        Timestamp::from_duration(zero.saturating_add(now)).ok()
    }

    /// Whether the estimate was more than a minute too late, judged by later answers.
    pub(super) fn went_back(&self) -> bool {
        self.went_back
    }

    /// The time in the cluster at the last answer, in whole seconds.
    pub(super) fn last(&self) -> Option<Timestamp> {
        let now = self.now(self.belief?.at)?;
        Timestamp::from_second(now.as_second()).ok()
    }

    /// The smallest possible difference between the clocks of the last answers, if it is worth
    /// reporting.
    pub(super) fn disagreement(&self) -> Option<SignedDuration> {
        let ahead = self.answers.iter().map(|answer| answer.earliest).max()?;
        let behind = self.answers.iter().map(|answer| answer.latest).min()?;
        Some(ahead.saturating_sub(behind)).filter(|apart| *apart > NOTABLE)
    }

    /// The earliest time that enough of the last answers support; among answers of the same clock
    /// the latest, because no `Date` is ahead of its server.
    fn agreed(&self) -> SignedDuration {
        let mut all: Vec<_> = self.answers.iter().map(|answer| answer.earliest).collect();
        all.sort_unstable();
        let supported = all.get(all.len() / SUPPORT).copied().unwrap_or_default();
        let earliest = self.held(&all).map_or(supported, |held| held.min(supported));
        let same = earliest.saturating_add(SAME);
        all.into_iter().take_while(|it| *it <= same).last().unwrap_or(earliest)
    }

    /// The earliest answer that still shows the settled estimate.
    fn held(&self, all: &[SignedDuration]) -> Option<SignedDuration> {
        let settled = self.belief.filter(|_| self.count > SETTLED)?;
        all.iter().copied().find(|it| it.saturating_sub(settled.zero).abs() <= SAME)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const YEAR: i64 = 365 * 24 * 3600;

    /// The time when the process's clock was at zero.
    fn zero() -> Timestamp {
        "2026-01-01T00:00:00Z".parse().unwrap()
    }

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// Adds an immediate answer of a clock that is `off` seconds off.
    fn observe(clock: &mut ServerClock, seconds: f64, off: i64) {
        clock.observe(shown(seconds, off), at(seconds), at(seconds));
    }

    /// The `Date` of a clock that is `off` seconds off.
    fn shown(seconds: f64, off: i64) -> Timestamp {
        let now = zero() + SignedDuration::try_from(at(seconds)).unwrap();
        Timestamp::from_second(now.as_second() + off).unwrap()
    }

    /// The error of the estimate, in seconds.
    fn off(clock: &ServerClock, seconds: f64) -> f64 {
        let now = clock.now(at(seconds)).unwrap();
        now.duration_since(zero()).as_secs_f64() - seconds
    }

    #[test]
    fn outliers_and_disagreeing_servers_give_the_supported_time() {
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
                observe(&mut clock, f64::from(number), *it);
            }
            let seconds = f64::from(u32::try_from(offs.len()).unwrap());
            assert!(!clock.went_back(), "{case}");
            assert!((off(&clock, seconds) - want).abs() < 0.5, "{case}: {}", off(&clock, seconds));
        }
    }

    #[test]
    fn a_later_time_is_approached_slowly_and_an_earlier_one_used_at_once() {
        let mut clock = ServerClock::default();
        (0..16).for_each(|second| observe(&mut clock, f64::from(second), 0));
        // Now another server answers, which is a minute ahead.
        (16..116).for_each(|second| observe(&mut clock, f64::from(second), 60));
        let ahead = off(&clock, 116.0);
        assert!((3.0..5.1).contains(&ahead), "{ahead}");
        // Then another one, which is a minute behind.
        (116..132).for_each(|second| observe(&mut clock, f64::from(second), -60));
        let behind = off(&clock, 132.0);
        assert!((-60.5..=-60.0).contains(&behind), "{behind}");
        assert!(clock.went_back());
    }

    /// Found by the simulation: by chance, the wrong one of two servers gave almost all answers for a
    /// while.
    #[test]
    fn a_rare_answer_of_the_earlier_clock_holds_the_estimate() {
        let mut clock = ServerClock::default();
        (0..16).for_each(|second| observe(&mut clock, f64::from(second), 0));
        for second in 16..116 {
            observe(&mut clock, f64::from(second), if second % 10 == 0 { 0 } else { YEAR });
        }
        assert!(off(&clock, 116.0) <= 0.0, "{}", off(&clock, 116.0));
    }

    #[test]
    fn fractions_of_a_second_are_estimated() {
        let mut clock = ServerClock::default();
        // Each is up to a second old, and one is almost exact.
        for seconds in [0.9, 1.5, 2.01, 3.7, 4.4] {
            observe(&mut clock, seconds, 0);
        }
        assert!((-0.02..=0.0).contains(&off(&clock, 5.0)), "{}", off(&clock, 5.0));
        assert_eq!(clock.last(), Some(zero() + SignedDuration::from_secs(4)));
    }

    #[test]
    fn disagreeing_clocks_are_reported_and_slow_answers_are_not() {
        for (case, offs, took, want) in [
            ("no disagreement", &[0, 0, 1, -1][..], 0.0, None),
            ("a minute ahead", &[0, 0, 0, 60, 0], 0.0, Some(60)),
            ("a minute behind", &[0, 0, 0, -60, 0], 0.0, Some(60)),
            ("slow answers", &[0, -8, 0, 0, -9, 0], 9.0, None),
        ] {
            let mut clock = ServerClock::default();
            for (number, it) in (20..).zip(offs) {
                let came = f64::from(number);
                clock.observe(shown(came, *it), at(came - took), at(came));
            }
            let shown = clock.disagreement().map(|it| it.as_secs());
            assert_eq!(
                shown.map(|it| (it - want.unwrap_or(0)).abs() <= 1),
                want.map(|_| true),
                "{case}: {shown:?}"
            );
        }
    }

    #[test]
    fn extreme_dates_do_not_panic() {
        let mut clock = ServerClock::default();
        for date in [Timestamp::MAX, Timestamp::MIN, Timestamp::UNIX_EPOCH, Timestamp::MAX] {
            clock.observe(date, Duration::ZERO, Duration::MAX);
            let _ = (clock.now(Duration::ZERO), clock.now(Duration::MAX), clock.disagreement());
        }
        assert_eq!(ServerClock::default().now(Duration::ZERO), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// After the first answers, the estimate never advances faster than the process's clock
        /// plus one twentieth, for any answers.
        #[test]
        fn time_advances_like_the_processs_clock(
            answers in prop::collection::vec((0.0..30.0_f64, -2 * YEAR..2 * YEAR, 0.0..10.0_f64), 1..80),
            looks in prop::collection::vec(0.0..40.0_f64, 80),
        ) {
            let mut clock = ServerClock::default();
            let mut seconds = 100.0;
            let mut before: Option<(f64, f64)> = None;
            for (number, (pause, off, took)) in answers.into_iter().enumerate() {
                // Read between answers, and right before and after each.
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
                clock.observe(shown(seconds, off), at(seconds - took), at(seconds));
            }
        }

        /// One answer in five that is off by up to two years has almost no effect.
        #[test]
        fn outliers_have_no_effect(
            wrong in -2 * YEAR..2 * YEAR,
            pauses in prop::collection::vec(0.0..5.0_f64, 60),
            first in 1..5_usize,
        ) {
            let (mut honest, mut clock) = (ServerClock::default(), ServerClock::default());
            let mut seconds = 0.0;
            for (number, pause) in pauses.into_iter().enumerate() {
                seconds += pause;
                let is_wrong = number % 5 == first;
                observe(&mut clock, seconds, if is_wrong { wrong } else { 0 });
                if !is_wrong {
                    observe(&mut honest, seconds, 0);
                }
                let differs = (off(&clock, seconds) - off(&honest, seconds)).abs();
                prop_assert!(number < SETTLED || differs <= 3.0, "{differs} at {number}");
            }
        }
    }
}
