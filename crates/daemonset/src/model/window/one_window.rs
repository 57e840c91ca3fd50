//! The openings of one window: from wall-clock times to instants.
//!
//! A window opens at the first instant at which a clock in its time zone shows the time or a later
//! one. So a time that a change to summer time skips opens when the clocks have changed, and a time
//! that occurs twice opens once, the first time.

use jiff::civil::{Date, DateTime, time};
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp};

use super::Window;

/// A window, prepared for asking when it opens.
#[derive(Clone, Debug)]
pub(super) struct OneWindow {
    window: Window,
    runs: Vec<Run>,
}

/// Times of one day at which a window opens, each while it is still open from the one before: the
/// first and the last, in minutes since midnight.
type Run = (u16, u16);

/// A time in which a window is open: its beginning, and its end.
pub(super) type Period = (Timestamp, Timestamp);

/// Days before an instant on which a window may have opened that is still open: its duration, the
/// rest of the day on which it opened, and the largest change of a clock.
const STILL_OPEN_DAYS: i64 = 9;

impl OneWindow {
    pub(super) fn of(window: &Window) -> Self {
        let minutes = window.duration.seconds() / 60;
        let mut runs: Vec<Run> = Vec::new();
        for time in window.schedule.times() {
            match runs.last_mut() {
                Some((_, last)) if u32::from(time - *last) <= minutes => *last = time,
                Some(_) | None => runs.push((time, time)),
            }
        }
        Self { window: window.clone(), runs }
    }

    /// Periods in which it is open, by their beginning: all that end after `from` and begin before
    /// `until`, and a few more. They may overlap.
    pub(super) fn periods(
        &self,
        from: Timestamp,
        until: Timestamp,
    ) -> impl Iterator<Item = Period> {
        let date = |at| self.zone().to_datetime(at).date();
        let still_open = SignedDuration::from_hours(24 * STILL_OPEN_DAYS);
        let (first, last) = (date(from).saturating_sub(still_open), date(until));
        let dates = std::iter::successors(Some(first), |date| date.tomorrow().ok());
        let dates = dates.take_while(move |date| *date <= last);
        let dates = dates.filter(|date| self.window.schedule.opens_on(*date));
        dates
            .flat_map(move |date| self.runs.iter().flat_map(move |run| self.periods_of(date, *run)))
    }

    /// The periods of a run on a day: one, unless the clocks change meanwhile. A clock that is set
    /// back comes later to the next time, when the window may have closed.
    fn periods_of(&self, date: Date, run: Run) -> Vec<Period> {
        let (first, last) = run;
        let Some(whole) = self.period(date, run) else { return Vec::new() };
        let last_opens = self.first_instant(date, last);
        let next_change = || self.zone().following(whole.0).next();
        if first == last || next_change().is_none_or(|it| Some(it.timestamp()) > last_opens) {
            return vec![whole];
        }
        let schedule = &self.window.schedule;
        let times = schedule.times().filter(|time| (first..=last).contains(time));
        times.filter_map(|time| self.period(date, (time, time))).collect()
    }

    /// From the first time of a run to the end of the opening at its last one. `None` where time
    /// ends: in the year 9999.
    fn period(&self, date: Date, (first, last): Run) -> Option<Period> {
        let duration = SignedDuration::from_secs(self.window.duration.seconds().into());
        let closes = self.first_instant(date, last)?.checked_add(duration);
        Some((self.first_instant(date, first)?, closes.unwrap_or(Timestamp::MAX)))
    }

    /// The first instant at which a clock shows this time, in minutes since midnight, or a later
    /// one.
    fn first_instant(&self, date: Date, minutes: u16) -> Option<Timestamp> {
        let (hour, minute) = (i8::try_from(minutes / 60).ok()?, i8::try_from(minutes % 60).ok()?);
        let wall_clock = DateTime::from_parts(date, time(hour, minute, 0, 0));
        match self.zone().to_ambiguous_timestamp(wall_clock).offset() {
            AmbiguousOffset::Unambiguous { offset } => offset.to_timestamp(wall_clock).ok(),
            AmbiguousOffset::Fold { before, after: _ } => before.to_timestamp(wall_clock).ok(),
            AmbiguousOffset::Gap { before, after: _ } => {
                let beyond = before.to_timestamp(wall_clock).ok()?;
                let beyond = beyond.checked_add(SignedDuration::from_secs(1)).ok()?;
                self.zone().preceding(beyond).next().map(|change| change.timestamp())
            }
        }
    }

    fn zone(&self) -> &TimeZone {
        self.window.time_zone.zone()
    }
}
