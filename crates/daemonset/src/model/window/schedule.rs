//! Five-field cron expressions: the times of day and the days on which a window opens, as a clock on
//! the wall shows them. No time zone and no present.
//!
//! This is the common part of cron's dialects, and nothing that one of them reads differently: no
//! seconds, nicknames, time zones, `L`, `W`, `#` or `?`; and not both days of month and days of
//! week, where cron opens on either. The crates that parse cron expressions accept these, and do not
//! tell which days match, which [`Schedule::first_gap`] needs.

mod field;

use std::fmt;

use jiff::civil::{self, Date};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use field::{FieldError, FieldName, FieldProblem};

/// Maximum length of an expression, in bytes.
const MAX_LENGTH: usize = 256;

/// Every window opens at least this often, in days.
const MAX_GAP: i64 = 35;

/// Minutes of a day.
const DAY: u16 = 24 * 60;

/// The times at which a window opens, as a cron expression with five fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Schedule {
    text: String,
    /// The accepted values of each field: bit 5 stands for the value 5.
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    /// Sunday is 0.
    weekdays: u64,
}

/// An expression that is refused.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ParseScheduleError {
    /// It is longer than any sensible one.
    #[error("a schedule of {0} bytes: at most {MAX_LENGTH} are allowed")]
    TooLong(usize),
    /// A nickname such as `@daily`.
    #[error("`{nickname}` is not supported: write {}", five_fields(*fields))]
    Nickname {
        /// The nickname.
        nickname: String,
        /// The expression with the same meaning.
        fields: Option<&'static str>,
    },
    /// A time zone in front.
    #[error("`{prefix}{name}` is not supported here: set `timeZone: {name}` next to `schedule`")]
    TimeZone {
        /// What marks it as a time zone.
        prefix: &'static str,
        /// Its name.
        name: String,
    },
    /// Not five fields.
    #[error("`{text}` has {} fields: write {}", .text.split_whitespace().count(), five_fields(None))]
    Fields {
        /// The expression.
        text: String,
    },
    /// A field that cannot be read.
    #[error("`{text}`: {error}")]
    Field {
        /// The expression.
        text: String,
        /// The field, and its error.
        error: FieldError,
    },
    /// Cron opens on either, which few expect.
    #[error(
        "`{text}` restricts day of month and day of week, and cron would open on either: write two windows"
    )]
    BothDays {
        /// The expression.
        text: String,
    },
    /// Its day is in none of its months.
    #[error("`{text}` never opens: none of its months has such a day")]
    Never {
        /// The expression.
        text: String,
    },
    /// It opens too rarely to be a maintenance window.
    #[error(
        "`{text}` does not open between {from} and {to}; it must open at least every {MAX_GAP} days"
    )]
    Rare {
        /// The expression.
        text: String,
        /// A day on which it opens.
        from: Date,
        /// The next one.
        to: Date,
    },
}

fn five_fields(example: Option<&str>) -> String {
    match example {
        Some(example) => format!("`{example}`"),
        None => "five of them: minute, hour, day of month, month, day of week".to_owned(),
    }
}

/// Days without an opening between two days with one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Gap {
    /// There is no day with an opening.
    Never,
    /// Between these days.
    Between(Date, Date),
}

impl TryFrom<String> for Schedule {
    type Error = ParseScheduleError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        if text.len() > MAX_LENGTH {
            return Err(ParseScheduleError::TooLong(text.len()));
        }
        let written: Vec<&str> = text.split_whitespace().collect();
        refuse_first_word(written.first().copied().unwrap_or_default())?;
        let text = written.join(" ");
        let [minute, hour, day, month, weekday] = written[..] else {
            return Err(ParseScheduleError::Fields { text });
        };
        let read = |field: &field::Field, written: &str| {
            let error = |error| ParseScheduleError::Field { text: text.clone(), error };
            field.values(written).map_err(error)
        };
        let weekdays = read(&field::WEEKDAY, weekday)?;
        let schedule = Self {
            minutes: read(&field::MINUTE, minute)?,
            hours: read(&field::HOUR, hour)?,
            days: read(&field::DAY, day)?,
            months: read(&field::MONTH, month)?,
            // 7 is Sunday too.
            weekdays: (weekdays | weekdays >> 7) & 0x7f,
            text,
        };
        let text = || schedule.text.clone();
        if day != "*" && weekday != "*" {
            return Err(ParseScheduleError::BothDays { text: text() });
        }
        match schedule.first_gap() {
            None => Ok(schedule),
            Some(Gap::Never) => Err(ParseScheduleError::Never { text: text() }),
            Some(Gap::Between(from, to)) => {
                Err(ParseScheduleError::Rare { text: text(), from, to })
            }
        }
    }
}

/// Refuses what is no field at all: nicknames, and time zones before the fields.
fn refuse_first_word(word: &str) -> Result<(), ParseScheduleError> {
    if word.starts_with('@') {
        let fields = match word.to_ascii_lowercase().as_str() {
            "@hourly" => Some("0 * * * *"),
            "@daily" | "@midnight" => Some("0 0 * * *"),
            "@weekly" => Some("0 0 * * 0"),
            "@monthly" => Some("0 0 1 * *"),
            _other => None,
        };
        return Err(ParseScheduleError::Nickname { nickname: word.to_owned(), fields });
    }
    for prefix in ["TZ=", "CRON_TZ="] {
        if let Some(name) = word.strip_prefix(prefix) {
            return Err(ParseScheduleError::TimeZone { prefix, name: name.to_owned() });
        }
    }
    Ok(())
}

impl Schedule {
    /// Whether it opens on this day.
    pub(super) fn opens_on(&self, date: Date) -> bool {
        let weekday = date.weekday().to_sunday_zero_offset();
        has(self.months, date.month()) && has(self.days, date.day()) && has(self.weekdays, weekday)
    }

    /// The times at which it opens on such a day, in minutes since midnight, ascending.
    pub(super) fn times(&self) -> impl Iterator<Item = u16> {
        let opens_at =
            |time: &u16| self.hours >> (time / 60) & 1 == 1 && self.minutes >> (time % 60) & 1 == 1;
        (0..DAY).filter(opens_at)
    }

    /// The first time for which it does not open in [`MAX_GAP`] days, from 2025 on, through all 400
    /// years after which the calendar repeats. So it is the same whenever it is asked.
    fn first_gap(&self) -> Option<Gap> {
        // Gaps within a month are shorter than the limit: its first and last day are enough.
        let mut last: Option<Date> = None;
        for (year, month) in (2025..=2425).flat_map(|year| (1..=12).map(move |month| (year, month)))
        {
            let first_of_month = civil::date(year, month, 1);
            let days = self.days_in(first_of_month);
            if days == 0 {
                continue;
            }
            let day = |day: u32| first_of_month.with().day(day.try_into().ok()?).build().ok();
            let (first, end) = (day(days.trailing_zeros())?, day(days.ilog2())?);
            if let Some(last) = last
                && (first.duration_since(last).as_hours() > MAX_GAP * 24)
            {
                return Some(Gap::Between(last, first));
            }
            last = Some(end);
        }
        if last.is_none() { Some(Gap::Never) } else { None }
    }

    /// The days of a month on which it opens: bit 5 stands for the fifth.
    fn days_in(&self, first_of_month: Date) -> u64 {
        if !has(self.months, first_of_month.month()) {
            return 0;
        }
        let in_month = (2 << first_of_month.days_in_month()) - 2;
        // Five weeks, the first of which begins on the first day of the month.
        let begins = first_of_month.weekday().to_sunday_zero_offset();
        let week = (self.weekdays >> begins | self.weekdays << (7 - begins)) & 0x7f;
        let weeks = (0..5).fold(0, |weeks, number| weeks | week << (7 * number));
        self.days & in_month & (weeks << 1)
    }
}

/// Whether the set has this small number.
fn has(values: u64, value: i8) -> bool {
    values >> value & 1 == 1
}

impl From<Schedule> for String {
    fn from(schedule: Schedule) -> Self {
        schedule.text
    }
}

/// The expression as written, with single spaces.
impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
