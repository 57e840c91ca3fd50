//! Resolves YAML scalars as kubectl does: YAML 1.1 as in go-yaml v2 (upstream: `resolve` of
//! go.yaml.in/yaml/v2, then `convertToJSONableObject` of sigs.k8s.io/yaml).
//!
//! Differs from YAML 1.2 in `yes`, `on`, `0644`, `08`, `1_000`, `0b11` and others; the table below
//! was recorded from kubectl.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use granit_parser::Tag;
use serde_json::Value;

use super::go_number::{float_key, float_to_json};

/// A resolved scalar.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Scalar<'a> {
    /// `null`, `~`, or an empty value.
    Null,
    /// `true`, `yes`, `on` and so on.
    Bool(bool),
    /// A signed integer.
    Int(i64),
    /// An integer beyond `i64`.
    Unsigned(u64),
    /// Any other number.
    Float(f64),
    /// Everything else, dates included.
    Text(Cow<'a, str>),
}

/// The reason why a scalar cannot be converted to JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ScalarError {
    #[error("`{text}` does not fit its tag `{tag}`")]
    Tag { text: String, tag: String },
    #[error("a `!!binary` value is not valid base64")]
    Base64,
    #[error("{0} cannot be written in JSON")]
    NoNumber(&'static str),
    #[error("a mapping's key must be a text, a number or a boolean")]
    Key,
}

impl Scalar<'_> {
    /// The value as JSON.
    pub(super) fn into_value(self) -> Result<Value, ScalarError> {
        Ok(match self {
            Self::Null => Value::Null,
            Self::Bool(value) => value.into(),
            Self::Int(value) => value.into(),
            #[expect(clippy::cast_precision_loss, reason = "kubectl reads them as floats")]
            Self::Unsigned(value) => (value as f64).into(),
            Self::Float(value) => {
                float_to_json(value).ok_or(ScalarError::NoNumber(if value.is_nan() {
                    "not-a-number"
                } else {
                    "infinity"
                }))?
            }
            Self::Text(text) => text.into_owned().into(),
        })
    }

    /// The scalar as a mapping's key.
    pub(super) fn into_key(self) -> Result<String, ScalarError> {
        match self {
            Self::Bool(value) => Ok(value.to_string()),
            Self::Int(value) => Ok(value.to_string()),
            Self::Float(value) => Ok(float_key(value)),
            Self::Text(text) => Ok(text.into_owned()),
            Self::Null | Self::Unsigned(_) => Err(ScalarError::Key),
        }
    }
}

/// Resolves a scalar. `plain` is false for quoted and block scalars, which are strings unless they
/// have another tag.
pub(super) fn resolve<'a>(
    text: Cow<'a, str>,
    plain: bool,
    tag: Option<&Tag>,
) -> Result<Scalar<'a>, ScalarError> {
    let Some(tag) = tag else {
        return Ok(if plain { resolve_plain(text) } else { Scalar::Text(text) });
    };
    let mismatch = |text: &str| ScalarError::Tag { text: text.to_owned(), tag: tag.original() };
    let Some(core) = tag.suffix_in_namespace("tag:yaml.org,2002:") else {
        return Ok(Scalar::Text(text));
    };
    match (&*core, &*text) {
        ("bool" | "int" | "float" | "null", _) => {
            match (&*core, resolve_plain(Cow::Borrowed(&*text))) {
                ("bool", Scalar::Bool(value)) => Ok(Scalar::Bool(value)),
                ("int", Scalar::Int(value)) => Ok(Scalar::Int(value)),
                ("int", Scalar::Unsigned(value)) => Ok(Scalar::Unsigned(value)),
                #[expect(clippy::cast_precision_loss, reason = "as upstream converts it")]
                ("float", Scalar::Int(value)) => Ok(Scalar::Float(value as f64)),
                ("float", Scalar::Float(value)) => Ok(Scalar::Float(value)),
                ("null", Scalar::Null) => Ok(Scalar::Null),
                _ => Err(mismatch(&text)),
            }
        }
        ("binary", _) => {
            let bare: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
            let bytes = STANDARD.decode(bare).map_err(|_| ScalarError::Base64)?;
            Ok(Scalar::Text(String::from_utf8_lossy(&bytes).into_owned().into()))
        }
        _ => Ok(Scalar::Text(text)),
    }
}

fn resolve_plain(text: Cow<'_, str>) -> Scalar<'_> {
    match &*text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Scalar::Bool(true);
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Scalar::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => {
            return Scalar::Float(f64::INFINITY);
        }
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        _ => {}
    }
    let number = match text.as_bytes().first() {
        Some(b'.') => float(&text),
        Some(b'+' | b'-' | b'0'..=b'9') => {
            let bare: Cow<'_, str> = if text.contains('_') {
                text.replace('_', "").into()
            } else {
                Cow::Borrowed(&text)
            };
            integer(&bare).or_else(|| float(&bare))
        }
        _ => None,
    };
    number.unwrap_or(Scalar::Text(text))
}

/// Parses an integer as Go's `strconv.ParseInt` with base 0.
fn integer(text: &str) -> Option<Scalar<'static>> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let (radix, digits) = match unsigned.as_bytes() {
        [b'0', b'x' | b'X', _, ..] => (16, &unsigned[2..]),
        [b'0', b'b' | b'B', _, ..] => (2, &unsigned[2..]),
        [b'0', b'o' | b'O', _, ..] => (8, &unsigned[2..]),
        [b'0', _, ..] => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    if !digits.chars().all(|digit| digit.is_digit(radix)) {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        return 0_i64.checked_sub_unsigned(magnitude).map(Scalar::Int);
    }
    match i64::try_from(magnitude) {
        Ok(value) => Some(Scalar::Int(value)),
        // With a sign, upstream's unsigned parsing fails and float parsing follows.
        Err(_) if text.starts_with('+') => None,
        Err(_) => Some(Scalar::Unsigned(magnitude)),
    }
}

/// Parses a float by YAML's rule: digits, at most one point, a decimal exponent. One that overflows
/// is a string.
fn float(text: &str) -> Option<Scalar<'static>> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let has_digits = !(whole.is_empty() && fraction.is_empty());
    let exponent_fits = exponent.is_none_or(|exponent| {
        let bare = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        !bare.is_empty() && digits(bare)
    });
    if !(has_digits && digits(whole) && digits(fraction) && exponent_fits) {
        return None;
    }
    text.parse().ok().filter(|float: &f64| float.is_finite()).map(Scalar::Float)
}
