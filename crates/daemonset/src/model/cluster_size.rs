//! Budgets that are a number or a percentage of the fleet (upstream: `IntOrString`).

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Unexpected, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// `maxUnavailable` or `maxSurge` as written: a number of nodes, or a percentage of the desired
/// ones. [`IntOrPercent::scaled`] converts it to a number of nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntOrPercent {
    /// A number of nodes.
    Int(u32),
    /// A percentage of the desired nodes.
    Percent(u32),
}

impl IntOrPercent {
    /// The number of nodes for `desired` nodes; percentages are rounded **up**, for
    /// `maxUnavailable` as for `maxSurge` (upstream: `GetScaledValueFromIntOrPercent` with
    /// `roundUp`).
    pub fn scaled(self, desired: u32) -> u32 {
        match self {
            Self::Int(count) => count,
            Self::Percent(percent) => {
                let scaled = (u64::from(percent) * u64::from(desired)).div_ceil(100);
                u32::try_from(scaled).unwrap_or(u32::MAX)
            }
        }
    }

    /// Whether it is `0` or `0%`.
    pub fn is_zero(self) -> bool {
        matches!(self, Self::Int(0) | Self::Percent(0))
    }
}

impl fmt::Display for IntOrPercent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(count) => write!(f, "{count}"),
            Self::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// The text is neither a number nor a percentage.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is neither a number of nodes nor a percentage such as 10%")]
pub struct ParseIntOrPercentError(String);

impl FromStr for IntOrPercent {
    type Err = ParseIntOrPercentError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseIntOrPercentError(text.to_owned());
        let digits = text.strip_suffix('%').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(error());
        }
        let number = digits.parse().map_err(|_| error())?;
        Ok(if text.ends_with('%') { Self::Percent(number) } else { Self::Int(number) })
    }
}

impl Serialize for IntOrPercent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Int(count) => serializer.serialize_u32(*count),
            Self::Percent(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for IntOrPercent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Wire)
    }
}

/// Reads a number, or a text such as `10%`.
struct Wire;

impl Visitor<'_> for Wire {
    type Value = IntOrPercent;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of nodes or a percentage such as 10%")
    }

    fn visit_u64<E: de::Error>(self, count: u64) -> Result<IntOrPercent, E> {
        let is_too_large = |_| E::invalid_value(Unexpected::Unsigned(count), &self);
        u32::try_from(count).map(IntOrPercent::Int).map_err(is_too_large)
    }

    fn visit_i64<E: de::Error>(self, count: i64) -> Result<IntOrPercent, E> {
        match u64::try_from(count) {
            Ok(count) => self.visit_u64(count),
            Err(_) => Err(E::invalid_value(Unexpected::Signed(count), &self)),
        }
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<IntOrPercent, E> {
        text.parse().map_err(E::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_round_up() {
        for (text, desired, want) in [
            ("3", 10, 3),
            ("3", 0, 3),
            ("50%", 2, 1),
            ("50%", 3, 2),
            ("1%", 5, 1),
            ("0%", 5, 0),
            ("100%", 4_000_000_000, 4_000_000_000),
        ] {
            let parsed: IntOrPercent = text.parse().unwrap();
            assert_eq!(parsed.scaled(desired), want, "{text} of {desired}");
            assert_eq!(parsed.to_string(), text);
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in ["", "%", "-1", "+1", "1.5%", "10 %", "ten", "99999999999"] {
            assert!(text.parse::<IntOrPercent>().is_err(), "{text:?}");
        }
    }
}
