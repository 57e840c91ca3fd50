//! Formats numbers as Go does, so that a number in a manifest becomes the text that the API server
//! receives. Not here: the detection of numbers (`scalar`).

use serde_json::{Number, Value};

/// A float as JSON after kubectl has encoded and decoded it: whole numbers become integers
/// (upstream: `encoding/json` and `ConvertInterfaceNumbers`). `None` for infinities and NaN.
pub(super) fn float_to_json(float: f64) -> Option<Value> {
    if !float.is_finite() {
        return None;
    }
    match float_text(float).parse::<i64>() {
        Ok(integer) => Some(integer.into()),
        Err(_not_an_integer) => Number::from_f64(float).map(Value::Number),
    }
}

/// The text of a JSON number as Go's `encoding/json` formats it.
pub(super) fn number_text(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => float_text(float),
        _ => number.to_string(),
    }
}

/// Shortest form; exponents only from 1e21 and below 1e-6.
fn float_text(float: f64) -> String {
    let magnitude = float.abs();
    if magnitude == 0.0 || (1e-6..1e21).contains(&magnitude) {
        return float.to_string();
    }
    let text = format!("{float:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !exponent.starts_with('-') => format!("{digits}e+{exponent}"),
        _ => text,
    }
}

/// A float as a mapping's key (upstream: `strconv.FormatFloat(f, 'g', -1, 32)`): rounded to 32
/// bits, exponents from 1e6 and below 1e-4, at least two digits in the exponent.
pub(super) fn float_key(float: f64) -> String {
    if float.is_nan() {
        return ".nan".to_owned();
    }
    #[expect(clippy::cast_possible_truncation, reason = "upstream formats keys in 32 bits")]
    let single = float as f32;
    if single.is_infinite() {
        return if single > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{single:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    match exponent.parse::<i32>() {
        Ok(exponent) if !(-4..6).contains(&exponent) => {
            let sign = if exponent < 0 { '-' } else { '+' };
            format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
        }
        _ => single.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_become_the_json_that_go_writes() {
        for (float, want) in [
            (1e3, "1000"),
            (-0.0, "0"),
            (1.5, "1.5"),
            (9.3e18, "9300000000000000000"),
            (1e21, "1e+21"),
            (1.5e-7, "1.5e-7"),
            (1e-6, "0.000001"),
        ] {
            let json = float_to_json(float).unwrap();
            let text = json.as_number().map(number_text).unwrap();
            assert_eq!(text, want, "{float}");
        }
        assert_eq!(float_to_json(1e3), Some(Value::from(1000_i64)));
        assert_eq!((float_to_json(f64::NAN), float_to_json(f64::INFINITY)), (None, None));
    }

    #[test]
    fn float_keys_have_32_bits() {
        for (float, want) in [
            (1.1, "1.1"),
            (1e3, "1000"),
            (1e10, "1e+10"),
            (1_234_567.5, "1.2345675e+06"),
            (0.000_01, "1e-05"),
            (16_777_217.0, "1.6777216e+07"),
            (f64::NEG_INFINITY, "-.inf"),
        ] {
            assert_eq!(float_key(float), want, "{float}");
        }
    }
}
