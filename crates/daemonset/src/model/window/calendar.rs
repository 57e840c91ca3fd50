//! When a policy is open: any of its windows, minus its exclusions. Overlapping and touching windows
//! are one opening.
//!
//! Not here: what fits. A node begins only if its forecast time fits, and then it is finished, also
//! when the window closes meanwhile.

use std::fmt;
use std::iter::Peekable;

use jiff::{SignedDuration, Timestamp};

use super::one_window::{OneWindow, Period};
use super::{Exclusion, TimeZoneName, Window};

/// What is farther away than this counts as never.
const HORIZON: SignedDuration = SignedDuration::from_hours(400 * 24);

/// Within this time, a weekday has only one meaning.
const NEAR: SignedDuration = SignedDuration::from_hours(6 * 24);

/// The windows of a policy minus its exclusions.
#[derive(Clone, Debug)]
pub struct Calendar {
    windows: Vec<OneWindow>,
    /// By their beginning.
    exclusions: Vec<Exclusion>,
    time_zone: TimeZoneName,
}

/// Whether nodes may begin at an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowState {
    /// They may.
    Open {
        /// When it closes; `None`: not within 400 days.
        closes: Option<Timestamp>,
    },
    /// They may not.
    Closed {
        /// When it opens; `None`: not within 400 days.
        opens: Option<Timestamp>,
        /// The reason of the exclusion at that instant; of several, the one that ends last.
        reason: Option<String>,
    },
}

/// A time in which nodes may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Its beginning.
    pub opens: Timestamp,
    /// Its end, which is not part of it; `None`: not within 400 days of the beginning.
    pub closes: Option<Timestamp>,
}

impl Calendar {
    /// Prepares these windows and exclusions. Without windows, it is always open but for exclusions.
    pub fn of(windows: &[Window], exclusions: &[Exclusion]) -> Self {
        let mut exclusions = exclusions.to_vec();
        exclusions.sort_by_key(|exclusion| exclusion.from);
        let zones = windows.iter().map(|window| &window.time_zone);
        let same = |first: &&TimeZoneName| zones.clone().all(|zone| zone == *first);
        Self {
            time_zone: zones.clone().next().filter(same).cloned().unwrap_or_default(),
            windows: windows.iter().map(OneWindow::of).collect(),
            exclusions,
        }
    }

    /// The time zone of all windows, or UTC if they differ. For showing times.
    pub fn time_zone(&self) -> &TimeZoneName {
        &self.time_zone
    }

    /// Whether nodes may begin now, and how long that will be so.
    pub fn at(&self, now: Timestamp) -> WindowState {
        let next = self.openings(now).next();
        match next {
            Some(Opening { opens, closes }) if opens == now => WindowState::Open { closes },
            Some(_) | None => {
                let opens = next.map(|opening| opening.opens);
                WindowState::Closed { opens, reason: self.reason_at(now) }
            }
        }
    }

    fn reason_at(&self, now: Timestamp) -> Option<String> {
        let at = self.exclusions.iter().filter(|it| it.from <= now && now < it.to);
        at.max_by_key(|exclusion| exclusion.to).map(|exclusion| exclusion.reason.clone())
    }

    /// Whether something that takes so many seconds may begin now.
    pub fn fits(&self, now: Timestamp, seconds: u64) -> bool {
        self.openings(now).next().is_some_and(|it| it.opens == now && it.lasts(seconds))
    }

    /// The first moment, from `now` on, at which something that takes so many seconds may begin.
    /// `None` if there is none within 400 days.
    pub fn next_start(&self, now: Timestamp, seconds: u64) -> Option<Timestamp> {
        self.openings(now).find(|it| it.lasts(seconds)).map(|it| it.opens)
    }

    /// The openings that begin within 400 days after `from`, in their order. One that is open then
    /// begins with `from`. After one that does not close, there is no other.
    pub fn openings(&self, from: Timestamp) -> Openings<'_> {
        let last_begin = later(from, HORIZON);
        let periods: Vec<Periods<'_>> = if self.windows.is_empty() {
            vec![Box::new(std::iter::once((from, Timestamp::MAX)))]
        } else {
            let periods = |window| OneWindow::periods(window, from, later(last_begin, HORIZON));
            self.windows.iter().map(|window| Box::new(periods(window)) as Periods<'_>).collect()
        };
        let periods = periods.into_iter().map(Iterator::peekable).collect();
        Openings { from, last_begin, periods, exclusions: &self.exclusions, rest: None }
    }
}

/// The periods of a window, by their beginning.
type Periods<'a> = Box<dyn Iterator<Item = Period> + 'a>;

/// The openings of a calendar, one after another: see [`Calendar::openings`].
pub struct Openings<'a> {
    from: Timestamp,
    last_begin: Timestamp,
    periods: Vec<Peekable<Periods<'a>>>,
    /// Those that may still matter.
    exclusions: &'a [Exclusion],
    /// The part of an opening after an exclusion.
    rest: Option<Period>,
}

impl Iterator for Openings<'_> {
    type Item = Opening;

    fn next(&mut self) -> Option<Opening> {
        loop {
            let begun = self.rest.take().or_else(|| self.next_period(Timestamp::MAX))?;
            let (opens, closes) = self.merged(begun);
            if opens > self.last_begin {
                return None;
            }
            self.drop_exclusions(opens);
            let end = match self.exclusions.first() {
                Some(exclusion) if exclusion.from < closes => {
                    if closes > exclusion.to {
                        self.rest = Some((exclusion.to, closes));
                    }
                    exclusion.from
                }
                Some(_) | None => closes,
            };
            if opens < end {
                let closes = (end <= later(opens, HORIZON)).then_some(end);
                return Some(Opening { opens, closes: closes.filter(|it| *it < Timestamp::MAX) });
            }
        }
    }
}

impl Openings<'_> {
    /// The period, not before `from`, with all those that overlap or touch it.
    fn merged(&mut self, (opens, mut closes): Period) -> Period {
        let opens = opens.max(self.from);
        // What stays open beyond the horizon never closes: no need to look any farther.
        while closes <= later(opens, HORIZON)
            && let Some((_, end)) = self.next_period(closes)
        {
            closes = closes.max(end);
        }
        (opens, closes)
    }

    /// The next period, by its beginning, if that is not after `latest`.
    fn next_period(&mut self, latest: Timestamp) -> Option<Period> {
        let begins = |(at, periods): (usize, &mut Peekable<Periods<'_>>)| {
            periods.peek().map(|(begin, _)| (*begin, at))
        };
        let (begin, at) = self.periods.iter_mut().enumerate().filter_map(begins).min()?;
        if begin <= latest { self.periods.get_mut(at)?.next() } else { None }
    }

    /// Drops the exclusions that end before this instant.
    fn drop_exclusions(&mut self, at: Timestamp) {
        while let Some((first, rest)) = self.exclusions.split_first()
            && first.to <= at
        {
            self.exclusions = rest;
        }
    }
}

/// An instant so much later, or the last one.
fn later(at: Timestamp, by: SignedDuration) -> Timestamp {
    at.checked_add(by).unwrap_or(Timestamp::MAX)
}

impl Opening {
    /// Whether something that takes so many seconds may begin with it.
    pub fn lasts(self, seconds: u64) -> bool {
        let Some(closes) = self.closes else { return true };
        let lasts = closes.duration_since(self.opens);
        i64::try_from(seconds).is_ok_and(|it| SignedDuration::from_secs(it) <= lasts)
    }

    /// Its length; none if it does not close.
    pub fn length(self) -> Option<SignedDuration> {
        Some(self.closes?.duration_since(self.opens))
    }

    /// `Tue 02:00 to 05:00 Europe/Berlin`; with the date if it is not within six days from now.
    pub fn text(self, zone: &TimeZoneName, now: Timestamp) -> impl fmt::Display {
        let moment = |at: Timestamp| {
            let clock = zone.zone().to_datetime(at);
            let near = (now..later(now, NEAR)).contains(&at);
            let format = if near { "%a %H:%M" } else { "%a %Y-%m-%d %H:%M" };
            (clock.date(), clock.strftime(format).to_string(), clock.strftime("%H:%M").to_string())
        };
        let (begins_on, begin, _) = moment(self.opens);
        let end = self.closes.map(|closes| {
            let (ends_on, end, time) = moment(closes);
            if begins_on == ends_on { time } else { end }
        });
        let zone = zone.to_string();
        fmt::from_fn(move |f| match &end {
            Some(end) => write!(f, "{begin} to {end} {zone}"),
            None => write!(f, "from {begin} {zone}"),
        })
    }
}
