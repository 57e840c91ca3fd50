//! One field of a cron expression: a list of values, ranges and steps.

use std::fmt;

use thiserror::Error;

/// What a field may contain.
#[derive(Debug)]
pub(super) struct Field {
    name: FieldName,
    min: u8,
    max: u8,
    /// Names of values, from `min` on.
    names: &'static [&'static str],
}

/// One of the five fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldName {
    /// Minute of the hour.
    Minute,
    /// Hour of the day.
    Hour,
    /// Day of the month.
    DayOfMonth,
    /// Month of the year.
    Month,
    /// Day of the week.
    DayOfWeek,
}

pub(super) const MINUTE: Field = Field { name: FieldName::Minute, min: 0, max: 59, names: &[] };
pub(super) const HOUR: Field = Field { name: FieldName::Hour, min: 0, max: 23, names: &[] };
pub(super) const DAY: Field = Field { name: FieldName::DayOfMonth, min: 1, max: 31, names: &[] };
pub(super) const MONTH: Field = Field {
    name: FieldName::Month,
    min: 1,
    max: 12,
    names: &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"],
};
pub(super) const WEEKDAY: Field = Field {
    name: FieldName::DayOfWeek,
    min: 0,
    max: 7,
    names: &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"],
};

/// A part of a field that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{field} `{part}` {problem}")]
pub struct FieldError {
    /// The field.
    pub field: FieldName,
    /// The part between two commas.
    pub part: String,
    /// What is wrong with it.
    pub problem: FieldProblem,
}

/// What is wrong with a part of a field.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FieldProblem {
    /// Not a number in its range, and not a name.
    #[error("is not {0}")]
    NoValue(&'static str),
    /// An extension with the meaning of `*`.
    #[error("is not supported: write `*`")]
    QuestionMark,
    /// An extension that other programs have.
    #[error("is not supported: write the days as numbers")]
    Extension,
    /// A range that ends before it begins.
    #[error("ends before it begins: write two ranges, such as `{first}-{max},{min}-{last}`")]
    Reversed {
        /// Where it begins.
        first: u8,
        /// Where it ends.
        last: u8,
        /// The lowest value.
        min: u8,
        /// The highest value.
        max: u8,
    },
    /// Dialects differ in what a step after a single value means.
    #[error("has a step but no range: write `{first}-{max}/{step}`")]
    StepOfValue {
        /// The value.
        first: u8,
        /// The highest value.
        max: u8,
        /// The step.
        step: u8,
    },
    /// Not a number, zero, or larger than the field.
    #[error("has a step that is not a number from 1 to {max}")]
    Step {
        /// The highest value.
        max: u8,
    },
}

impl Field {
    /// The values of the field: bit 5 stands for the value 5.
    pub(super) fn values(&self, text: &str) -> Result<u64, FieldError> {
        text.split(',').try_fold(0, |values, part| {
            let error = |problem| FieldError { field: self.name, part: part.to_owned(), problem };
            self.part(part).map(|part| values | part).map_err(error)
        })
    }

    /// The values of a part, such as `5`, `1-5`, `*` or `*/2`.
    fn part(&self, part: &str) -> Result<u64, FieldProblem> {
        let (range, step) = match part.split_once('/') {
            Some((range, step)) => (range, Some(self.step(step)?)),
            None => (part, None),
        };
        let (first, last) = match (range.split_once('-'), step) {
            _ if range == "*" => (self.min, self.max),
            (Some((first, last)), _) => self.range(self.value(first)?, self.value(last)?)?,
            (None, None) => (self.value(range)?, self.value(range)?),
            (None, Some(step)) => {
                let (first, max) = (self.value(range)?, self.max);
                return Err(FieldProblem::StepOfValue { first, max, step });
            }
        };
        let steps = (first..=last).step_by(step.unwrap_or(1).into());
        Ok(steps.fold(0, |values, value| values | 1 << value))
    }

    /// The first and last value of a range. `FRI-SUN` has only one meaning, though Sunday is 0.
    fn range(&self, first: u8, last: u8) -> Result<(u8, u8), FieldProblem> {
        let Self { name, min, max, names: _ } = *self;
        let last = if name == FieldName::DayOfWeek && last == 0 && first > 0 { max } else { last };
        let error = FieldProblem::Reversed { first, last, min, max };
        if first <= last { Ok((first, last)) } else { Err(error) }
    }

    fn step(&self, text: &str) -> Result<u8, FieldProblem> {
        let step = number(text).filter(|step| (1..=self.max).contains(step));
        step.ok_or(FieldProblem::Step { max: self.max })
    }

    fn value(&self, text: &str) -> Result<u8, FieldProblem> {
        let name = |name: &&str| name.eq_ignore_ascii_case(text);
        let named = || self.names.iter().position(name).and_then(|at| u8::try_from(at).ok());
        let value = number(text).or_else(|| named().map(|at| at + self.min));
        value
            .filter(|value| (self.min..=self.max).contains(value))
            .ok_or_else(|| self.no_value(text))
    }

    fn no_value(&self, text: &str) -> FieldProblem {
        if text == "?" {
            return FieldProblem::QuestionMark;
        }
        match self.name {
            FieldName::DayOfMonth | FieldName::DayOfWeek if is_extension(text) => {
                FieldProblem::Extension
            }
            FieldName::Minute => FieldProblem::NoValue("a number from 0 to 59"),
            FieldName::Hour => FieldProblem::NoValue("a number from 0 to 23"),
            FieldName::DayOfMonth => FieldProblem::NoValue("a number from 1 to 31"),
            FieldName::Month => FieldProblem::NoValue("a number from 1 to 12 or JAN to DEC"),
            FieldName::DayOfWeek => FieldProblem::NoValue("a number from 0 to 7 or SUN to SAT"),
        }
    }
}

/// Whether it is a last day (`L`, `5L`), a nearest weekday (`15W`, `LW`) or an nth one (`MON#2`).
fn is_extension(text: &str) -> bool {
    let letters = text.trim_matches(|it: char| it.is_ascii_digit());
    text.contains('#') || ["L", "W", "LW"].iter().any(|it| it.eq_ignore_ascii_case(letters))
}

/// One or two digits, and no sign.
fn number(text: &str) -> Option<u8> {
    let is_number = matches!(text.len(), 1 | 2) && text.bytes().all(|it| it.is_ascii_digit());
    if is_number { text.parse().ok() } else { None }
}

impl fmt::Display for FieldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Minute => "minute",
            Self::Hour => "hour",
            Self::DayOfMonth => "day of month",
            Self::Month => "month",
            Self::DayOfWeek => "day of week",
        })
    }
}
