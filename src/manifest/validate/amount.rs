//! Quantities as numbers: compared, added up and divided (upstream: `resource.Quantity`).

use std::cmp::Ordering;
use std::fmt;

use super::at::At;

const NANOS: i128 = 1_000_000_000;

/// Suffixes, the power of ten of a nano that each stands for, and whether they count by 1024.
const DECIMAL: [(&str, u32); 9] =
    [("n", 0), ("u", 3), ("m", 6), ("", 9), ("k", 12), ("M", 15), ("G", 18), ("T", 21), ("P", 24)];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// A quantity, exact to the billionth, which is as exact as upstream is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Amount {
    nanos: i128,
    /// Whether upstream prints it by 1024; of no weight when it is compared.
    is_binary: bool,
}

/// The quantity at a place; 0 when absent, as in Go.
pub(super) fn read(at: &At<'_>) -> Amount {
    let text = at.json().as_number().map(ToString::to_string);
    Amount::parse(text.as_deref().unwrap_or(at.text())).unwrap_or_default()
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
    /// Reads a quantity; decoding has refused bad ones before.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        let digits_end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.');
        let (digits, suffix) = unsigned.split_at(digits_end.unwrap_or(unsigned.len()));
        let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let mantissa: i128 = format!("0{whole}{fraction}").parse().ok()?;
        let (factor, is_binary) = match BINARY.iter().position(|binary| *binary == suffix) {
            Some(power) if power > 0 => (NANOS << (10 * power), true),
            Some(_) | None => (10_i128.checked_pow(decimal_power(suffix)?)?, false),
        };
        let divisor = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
        let scaled = mantissa.checked_mul(factor)?;
        // What is smaller than a nano counts as one.
        let nanos = scaled / divisor + i128::from(scaled % divisor != 0);
        let nanos = if text.starts_with('-') { -nanos } else { nanos };
        Some(Self { nanos, is_binary })
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

    /// Whether nothing is left but whole ones, after rounding up to thousandths.
    pub(super) fn is_whole(self) -> bool {
        let millis = self.nanos.div_euclid(1_000_000) + i128::from(self.nanos % 1_000_000 != 0);
        millis % 1000 == 0
    }

    /// Whether so many whole ones are a multiple of `size`, rounded up both.
    pub(super) fn is_multiple_of(self, size: Self) -> bool {
        let whole =
            |amount: Self| amount.nanos.div_euclid(NANOS) + i128::from(amount.nanos % NANOS != 0);
        size.is_whole() && size.is_positive() && whole(self) % whole(size) == 0
    }

    /// The sum, printed in the style of the first that is not zero.
    pub(super) fn plus(self, other: Self) -> Self {
        let is_binary = if self.is_zero() { other.is_binary } else { self.is_binary };
        Self { nanos: self.nanos.saturating_add(other.nanos), is_binary }
    }
}

/// The power of ten of a nano that a decimal suffix or an exponent stands for.
fn decimal_power(suffix: &str) -> Option<u32> {
    if let Some(exponent) = suffix.strip_prefix(['e', 'E']).filter(|exponent| !exponent.is_empty())
    {
        return u32::try_from(exponent.parse::<i32>().ok()?.checked_add(9)?).ok();
    }
    let known = DECIMAL.iter().chain(&[("E", 27)]).find(|(known, _)| *known == suffix);
    known.map(|(_, power)| *power)
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut units, mut power) = (self.nanos, 0);
        if self.is_binary && units % NANOS == 0 && (units / NANOS).abs() >= 1024 {
            units /= NANOS;
            while units % 1024 == 0 && power + 1 < BINARY.len() {
                (units, power) = (units / 1024, power + 1);
            }
            return write!(f, "{units}{}", BINARY[power]);
        }
        if units == 0 {
            return f.write_str("0");
        }
        while units % 1000 == 0 && power + 1 < DECIMAL.len() {
            (units, power) = (units / 1000, power + 1);
        }
        write!(f, "{units}{}", DECIMAL[power].0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            (".5", "500m"),
            ("5.", "5"),
        ] {
            let parse = |text| Amount::parse(text).unwrap().nanos;
            assert_eq!(parse(a), parse(b), "{a} is {b}");
        }
        let parse = |text| Amount::parse(text).unwrap();
        assert!(
            parse("1Gi") > parse("1G") && parse("-1") < parse("0") && parse("999m") < parse("1")
        );
        assert!(parse("-1m").is_negative() && parse("0.0").is_zero() && parse("1n").is_positive());
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
        ] {
            let sum = Amount::parse(a).unwrap().plus(Amount::parse(b).unwrap());
            assert_eq!(sum.to_string(), want, "{a} + {b}");
        }
    }

    #[test]
    fn whole_numbers_and_multiples() {
        for (text, want) in [("1", true), ("1500m", false), ("0.9999", true), ("1Gi", true)] {
            assert_eq!(Amount::parse(text).unwrap().is_whole(), want, "{text}");
        }
        for (text, size, want) in [("4Mi", "2Mi", true), ("3Mi", "2Mi", false), ("0", "2Mi", true)]
        {
            let [text, size] = [text, size].map(|text| Amount::parse(text).unwrap());
            assert_eq!(text.is_multiple_of(size), want, "{text} by {size}");
        }
    }
}
