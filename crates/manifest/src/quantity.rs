//! Quantities such as `100m` and `1.5Gi` in the form in which the API server serves them
//! (upstream: `resource.ParseQuantity`, `RoundUp`, `CanonicalizeBytes`).
//!
//! Upstream keeps a text that looks canonical, and recomputes it otherwise; both are reproduced,
//! bugs included, because the bytes of ControllerRevisions depend on them. Not here: the allowed
//! range of quantities (`validate`).

/// The text is not a quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAQuantity;

/// The precision to which a quantity is rounded up, away from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Thousandths: resource lists (upstream: `SetDefaults_ResourceList`).
    Milli,
    /// Billionths, the maximum precision of a quantity.
    Exact,
}

/// The canonical form of `text`, as the API server serves it.
///
/// # Errors
/// The text is not a quantity; the API server answers 400.
pub fn canonical(text: &str, rounding: Rounding) -> Result<String, NotAQuantity> {
    let text = trimmed(text);
    let parts = Parts::split(text)?;
    let (style, exponent) = Style::of_suffix(parts.suffix).ok_or(NotAQuantity)?;
    let (scale, is_small) = parts.scale(style, exponent);
    if is_small {
        let rounds = rounding == Rounding::Milli && scale < MILLI;
        if parts.looks_canonical(style, scale) && !rounds {
            return Ok(text.to_owned());
        }
    } else if !parts.has_digits {
        return Err(NotAQuantity);
    }
    let (amount, style) = Amount::of(&parts, style, exponent, is_small);
    let amount = if rounding == Rounding::Milli { amount.round_up(MILLI) } else { amount };
    Ok(amount.write(style))
}

/// The value of `text` in billionths, so that quantities can be compared and added; saturates at
/// the limit of the number type.
///
/// # Errors
/// The text is not a quantity.
pub fn billionths(text: &str) -> Result<i128, NotAQuantity> {
    let parts = Parts::split(trimmed(text))?;
    let (style, exponent) = Style::of_suffix(parts.suffix).ok_or(NotAQuantity)?;
    let (amount, _) = Amount::of(&parts, style, exponent, false);
    Ok(amount.round_up(NANO).billionths())
}

/// `text` without the white space that upstream removes: it trims the JSON, in which line ends, tabs
/// and the two separators are escapes.
fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| match c {
        '\0'..='\x1f' | '\u{2028}' | '\u{2029}' => false,
        other => other.is_whitespace(),
    })
}

const NANO: i64 = -9;
const MILLI: i64 = -3;

/// The style of a suffix; kept when the number is formatted again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    /// `n u m k M G T P E`: powers of ten.
    Decimal,
    /// `e3`: an exponent.
    Exponent,
    /// `Ki Mi Gi Ti Pi Ei`: powers of 1024.
    Binary,
}

const DECIMAL: [(&str, i64); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
/// Suffixes of the powers of 1024, from the zeroth.
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl Style {
    /// The style of a suffix, and its power of ten or of 1024.
    fn of_suffix(suffix: &str) -> Option<(Self, i64)> {
        if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
            return Some((Self::Decimal, *exponent));
        }
        if let Some(power) = (1..).zip(&BINARY[1..]).find_map(|(p, n)| (*n == suffix).then_some(p))
        {
            return Some((Self::Binary, power));
        }
        let exponent = suffix.strip_prefix(['e', 'E'])?.parse::<i32>().ok()?;
        Some((Self::Exponent, exponent.into()))
    }
}

/// The parsed parts of a quantity (upstream: `parseQuantityString`).
struct Parts<'t> {
    negative: bool,
    /// `true` if there is any digit; upstream's 64-bit path takes no digits for zero.
    has_digits: bool,
    /// Digits before the point without leading zeros; `0` if none are left.
    whole: &'t str,
    /// Digits after the point.
    fraction: &'t str,
    suffix: &'t str,
}

impl<'t> Parts<'t> {
    fn split(text: &'t str) -> Result<Self, NotAQuantity> {
        let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
        if text.is_empty() {
            return Err(NotAQuantity);
        }
        let (whole, rest) = digits(unsigned.trim_start_matches('0'));
        let (fraction, suffix) = match rest.strip_prefix('.') {
            Some(after) => digits(after),
            None => ("", rest),
        };
        let letters = suffix.trim_start_matches(|c| "eEinumkKMGTP".contains(c));
        let exponent = letters.strip_prefix(['+', '-']).unwrap_or(letters);
        if !exponent.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(NotAQuantity);
        }
        let has_digits = unsigned.starts_with('0') || !whole.is_empty() || !fraction.is_empty();
        let whole = if whole.is_empty() { "0" } else { whole };
        Ok(Self { negative: text.starts_with('-'), has_digits, whole, fraction, suffix })
    }

    fn digit_count(&self) -> usize {
        self.whole.len() + self.fraction.len()
    }

    fn shifted(&self) -> String {
        format!("{}{}", self.whole, self.fraction)
    }

    /// The power of ten of the digits, and `true` if upstream handles the number in 64 bits; only
    /// such numbers are ever kept as they are.
    fn scale(&self, style: Style, exponent: i64) -> (i64, bool) {
        let count = i64::try_from(self.digit_count()).unwrap_or(i64::MAX);
        match style {
            Style::Binary => {
                let precision = 14 - count - exponent * 3;
                (0, self.fraction.is_empty() && precision >= 0)
            }
            Style::Decimal | Style::Exponent => {
                let places = i64::try_from(self.fraction.len()).unwrap_or(i64::MAX);
                let scale = exponent.saturating_sub(places);
                (scale, count <= 18 && scale >= NANO)
            }
        }
    }

    fn looks_canonical(&self, style: Style, scale: i64) -> bool {
        let digits = self.shifted();
        match style {
            Style::Binary => digits.parse::<u64>().is_ok_and(|value| value % 8 != 0),
            Style::Decimal | Style::Exponent => {
                scale % 3 == 0 && !digits.ends_with("000") && !digits.starts_with('0')
            }
        }
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// A number of any size: digits times a power of ten.
#[derive(Debug)]
struct Amount {
    negative: bool,
    /// Digits, most significant first, without leading zeros; empty for zero.
    digits: Vec<u8>,
    scale: i64,
}

impl Amount {
    fn of(parts: &Parts<'_>, style: Style, exponent: i64, is_small: bool) -> (Self, Style) {
        let places = i64::try_from(parts.fraction.len()).unwrap_or(i64::MAX);
        let mut amount = Self {
            negative: parts.negative,
            digits: parts.shifted().bytes().map(|byte| byte - b'0').collect(),
            scale: places.saturating_neg(),
        };
        match style {
            Style::Binary => (0..exponent).for_each(|_| amount.multiply(1024)),
            Style::Decimal | Style::Exponent => {
                amount.scale = amount.scale.saturating_add(exponent);
            }
        }
        amount.trim();
        if is_small {
            return (amount, style);
        }
        let mut amount = amount.round_up(NANO);
        if style != Style::Binary {
            return (amount, style);
        }
        amount.cap();
        // Upstream writes fractions of one in decimal style.
        let style = if amount.is_below_one() { Style::Decimal } else { style };
        (amount, style)
    }

    fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    fn billionths(&self) -> i128 {
        let limit = if self.negative { i128::MIN } else { i128::MAX };
        let power = u32::try_from(self.scale.saturating_sub(NANO)).ok();
        let factor = power.and_then(|power| 10_i128.checked_pow(power));
        let digits = self.text().parse().ok().filter(|_| !self.is_zero());
        let signed = |digits: i128| if self.negative { -digits } else { digits };
        match digits {
            Some(digits) => {
                factor.and_then(|factor| signed(digits).checked_mul(factor)).unwrap_or(limit)
            }
            None if self.is_zero() => 0,
            None => limit,
        }
    }

    /// Number of digits before the point; zero or negative for numbers below one.
    fn magnitude(&self) -> i64 {
        i64::try_from(self.digits.len()).unwrap_or(i64::MAX).saturating_add(self.scale)
    }

    fn is_below_one(&self) -> bool {
        !self.is_zero() && self.magnitude() <= 0
    }

    /// Drops leading zeros.
    fn trim(&mut self) {
        let zeros = self.digits.iter().take_while(|&&digit| digit == 0).count();
        self.digits.drain(..zeros);
    }

    fn multiply(&mut self, factor: u32) {
        let mut carry = 0;
        for digit in self.digits.iter_mut().rev() {
            let product = u32::from(*digit) * factor + carry;
            *digit = last_digit(product);
            carry = product / 10;
        }
        while carry > 0 {
            self.digits.insert(0, last_digit(carry));
            carry /= 10;
        }
    }

    /// Rounds away from zero to a multiple of ten to the power of `scale`.
    fn round_up(mut self, scale: i64) -> Self {
        if self.scale >= scale || self.is_zero() {
            return self;
        }
        let dropped = usize::try_from(scale - self.scale).unwrap_or(usize::MAX);
        let kept = self.digits.len().saturating_sub(dropped);
        let inexact = self.digits[kept..].iter().any(|&digit| digit != 0);
        self.digits.truncate(kept);
        self.scale = scale;
        if inexact {
            self.increment();
        }
        self
    }

    fn increment(&mut self) {
        for digit in self.digits.iter_mut().rev() {
            *digit = (*digit + 1) % 10;
            if *digit != 0 {
                return;
            }
        }
        self.digits.insert(0, 1);
    }

    /// Binary quantities end at the largest 64-bit integer.
    fn cap(&mut self) {
        let too_large = match self.magnitude() {
            ..=18 => false,
            19 => {
                let whole = self.digits[..19].iter().fold(0_u64, |sum, &d| sum * 10 + u64::from(d));
                let limit = u64::MAX >> 1;
                whole > limit || whole == limit && self.digits[19..].iter().any(|&d| d != 0)
            }
            20.. => true,
        };
        if too_large {
            self.digits = i64::MAX.to_string().bytes().map(|byte| byte - b'0').collect();
            self.scale = 0;
        }
    }

    /// The value as an integer of at most 64 bits. For binary quantities only, whose scale is never
    /// above zero.
    fn whole(&self) -> Option<u64> {
        let mut text = self.text();
        let places = usize::try_from(self.scale.unsigned_abs()).ok()?;
        let fraction = text.split_off(text.len().saturating_sub(places));
        if fraction.bytes().all(|digit| digit == b'0') { text.parse().ok() } else { None }
    }

    fn text(&self) -> String {
        self.digits.iter().map(|&digit| char::from(b'0' + digit)).collect()
    }

    fn write(mut self, style: Style) -> String {
        if self.is_zero() {
            return "0".to_owned();
        }
        let sign = if self.negative { "-" } else { "" };
        let binary = if style == Style::Binary { self.whole() } else { None };
        if let Some(mut number) = binary.filter(|number| *number >= 1024) {
            let mut power = 0;
            while number >= 1024 && number.is_multiple_of(1024) {
                (number, power) = (number / 1024, power + 1);
            }
            return format!("{sign}{number}{}", BINARY[power]);
        }
        while self.digits.last() == Some(&0) {
            self.digits.pop();
            self.scale += 1;
        }
        let excess = self.scale.rem_euclid(3);
        self.digits.extend(std::iter::repeat_n(0, usize::try_from(excess).unwrap_or(0)));
        let exponent = self.scale - excess;
        let suffix = match style {
            Style::Exponent if exponent == 0 => String::new(),
            Style::Exponent => format!("e{exponent}"),
            // Upstream omits a suffix that it does not have: `1000E` becomes `1`.
            Style::Decimal | Style::Binary => DECIMAL
                .iter()
                .find(|(_, power)| *power == exponent)
                .map_or(String::new(), |(name, _)| (*name).to_owned()),
        };
        format!("{sign}{}{suffix}", self.text())
    }
}

fn last_digit(number: u32) -> u8 {
    u8::try_from(number % 10).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn white_space_is_trimmed_only_where_json_does_not_escape_it() {
        for (text, want) in [(" 1 ", Ok("1")), ("\u{a0}1", Ok("1")), ("1\n", Err(NotAQuantity))] {
            let canonical = canonical(text, Rounding::Exact);
            assert_eq!(canonical.as_deref().map_err(|error| *error), want, "{text:?}");
        }
    }

    /// `quantities.json` contains the answers of upstream's own code; a control-plane test compares
    /// thousands more.
    #[test]
    fn quantities_are_canonicalized_as_upstream_does() {
        let rows: Vec<Value> = serde_json::from_str(include_str!("quantities.json")).unwrap();
        assert!(rows.len() > 200);
        for row in &rows {
            let text = row.get("text").unwrap_or(&row[0]).as_str().unwrap();
            for (rounding, key) in [(Rounding::Exact, "exact"), (Rounding::Milli, "milli")] {
                let want = row.get(key).map(|want| want.as_str().unwrap().to_owned());
                assert_eq!(canonical(text, rounding).ok(), want, "{text} {rounding:?}");
            }
        }
    }
}
