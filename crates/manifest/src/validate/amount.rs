//! Arithmetic on quantities (upstream: `resource.Quantity`).

use std::cmp::Ordering;
use std::fmt;

use super::at::At;
use crate::quantity::{self, Rounding};

const NANOS: i128 = 1_000_000_000;
const NANOS_OF_MILLI: i128 = 1_000_000;

/// A quantity with upstream's precision of one billionth.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Amount {
    nanos: i128,
    /// `true` if upstream prints it with a binary suffix; ignored by comparisons.
    is_binary: bool,
}

/// The quantity at a path; 0 when absent, as in Go. Invalid ones were rejected by decoding.
pub(super) fn read(at: &At<'_>) -> Amount {
    Amount::parse(at.text()).unwrap_or_default()
}

impl PartialEq for Amount {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        self.nanos.partial_cmp(&other.nanos)
    }
}

impl Amount {
    /// Parses a quantity; `None` if it is invalid.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let nanos = quantity::billionths(text).ok()?;
        Some(Self { nanos, is_binary: text.ends_with('i') })
    }

    pub(super) fn is_zero(self) -> bool {
        self.nanos == 0
    }

    pub(super) fn is_negative(self) -> bool {
        self.nanos < 0
    }

    pub(super) fn is_positive(self) -> bool {
        self.nanos > 0
    }

    /// `true` for an integer, after rounding up to thousandths.
    pub(super) fn is_whole(self) -> bool {
        rounded_up(self.nanos, NANOS_OF_MILLI) % 1000 == 0
    }

    /// `true` for a multiple of `size`, both rounded up to integers.
    pub(super) fn is_multiple_of(self, size: Self) -> bool {
        size.is_whole()
            && size.is_positive()
            && rounded_up(self.nanos, NANOS) % rounded_up(size.nanos, NANOS) == 0
    }

    /// The sum, in the style of the first operand that is not zero.
    pub(super) fn plus(self, other: Self) -> Self {
        let is_binary = if self.is_zero() { other.is_binary } else { self.is_binary };
        Self { nanos: self.nanos.saturating_add(other.nanos), is_binary }
    }
}

/// `nanos` in units of `unit`, rounded up.
fn rounded_up(nanos: i128, unit: i128) -> i128 {
    nanos.div_euclid(unit) + i128::from(nanos.rem_euclid(unit) != 0)
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kibi = NANOS * 1024;
        let text = if self.is_binary && self.nanos % kibi == 0 {
            format!("{}Ki", self.nanos / kibi)
        } else {
            format!("{}n", self.nanos)
        };
        f.write_str(&quantity::canonical(&text, Rounding::Exact).unwrap_or(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Amount {
        Amount::parse(text).unwrap()
    }

    #[test]
    fn quantities_are_compared_as_numbers() {
        for (a, b) in [
            ("1", "1000m"),
            ("1Ki", "1024"),
            ("1.5Gi", "1536Mi"),
            ("1e3", "1k"),
            ("1E3", "1k"),
            ("1E", "1000P"),
            ("12E-1", "1200m"),
            ("0.1n", "1n"),
            ("+5", "5"),
            ("-1", "-1000m"),
            ("-0.0", "0"),
            (".5", "500m"),
            ("1e40", "1e50"),
        ] {
            assert_eq!(parse(a).nanos, parse(b).nanos, "{a} is {b}");
        }
        for (small, large) in
            [("1G", "1Gi"), ("-1", "0"), ("999m", "1"), ("-1e50", "-1e20"), ("1e20", "1e50")]
        {
            assert!(parse(small) < parse(large), "{small} < {large}");
        }
        assert!(parse("-1m").is_negative() && parse("0.0").is_zero() && parse("1n").is_positive());
        assert!(Amount::parse("x").is_none());
    }

    #[test]
    fn sums_are_printed_canonically() {
        for (a, b, want) in [
            ("500m", "500m", "1"),
            ("1Gi", "512Mi", "1536Mi"),
            ("0", "1Gi", "1Gi"),
            ("1Gi", "1", "1073741825"),
            ("900k", "100k", "1M"),
            ("512", "256", "768"),
            ("5Ki", "3Ki", "8Ki"),
            ("1", "500u", "1000500u"),
        ] {
            assert_eq!(parse(a).plus(parse(b)).to_string(), want, "{a} + {b}");
        }
    }

    #[test]
    fn whole_numbers_and_multiples() {
        for (text, want) in [("1", true), ("1500m", false), ("0.9999", true), ("-1m", false)] {
            assert_eq!(parse(text).is_whole(), want, "{text}");
        }
        for (text, size, want) in [
            ("4Mi", "2Mi", true),
            ("3Mi", "2Mi", false),
            ("0", "2Mi", true),
            ("1", "0", false),
            ("1", "500m", false),
        ] {
            assert_eq!(parse(text).is_multiple_of(parse(size)), want, "{text} by {size}");
        }
    }
}
