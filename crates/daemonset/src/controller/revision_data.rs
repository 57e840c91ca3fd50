//! The data of a revision: its bytes as written by the controller, and its comparison with a
//! template (upstream: `getPatch`, `Match`).
//!
//! The template must be as the API server serves it: defaulted, without empty fields.

use serde_json::{Map, Number, Value};

use crate::model::{drop_null_timestamps, is_null_timestamp};

/// The comparison of a revision's data with a template.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Matching {
    /// As JSON values, ignoring a null `creationTimestamp`, which servers before 1.34 wrote, so
    /// that an upgrade does not cause a new revision.
    #[default]
    Tolerant,
    /// As upstream: a null `creationTimestamp` is a difference.
    Exact,
}

/// `{"spec":{"template":T}}`, where T is the template with `"$patch":"replace"` and without a null
/// `creationTimestamp`, as servers write it since 1.34.
pub fn data_for(template: &Value) -> Value {
    let mut template = template.clone();
    drop_null_timestamps(&mut template);
    if let Value::Object(fields) = &mut template {
        fields.insert(PATCH.to_owned(), Value::String(REPLACE.to_owned()));
    }
    let nest = |key: &str, value| Value::Object(Map::from_iter([(key.to_owned(), value)]));
    nest("spec", nest("template", template))
}

const PATCH: &str = "$patch";
const REPLACE: &str = "replace";

/// Whether a revision's `data` matches `template` (upstream: `Match`).
pub fn matches(template: &Value, data: &Value, matching: Matching) -> bool {
    let stored = only_field(data, "spec").and_then(|spec| only_field(spec, "template"));
    let (Some(Value::Object(stored)), Value::Object(template)) = (stored, template) else {
        return false;
    };
    if stored.get(PATCH).and_then(Value::as_str) != Some(REPLACE) {
        return false;
    }
    same_fields(stored, template, matching, |key| key != PATCH)
}

/// The template in a revision's `data`, without the patch directive and null timestamps; `None` if
/// there is none.
pub fn template_of(data: &Value) -> Option<Value> {
    let mut template = data.pointer("/spec/template")?.clone();
    drop_null_timestamps(&mut template);
    if let Value::Object(fields) = &mut template {
        fields.remove(PATCH);
    }
    Some(template)
}

/// The value under `key` of an object without other keys.
fn only_field<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    let fields = value.as_object().filter(|fields| fields.len() == 1)?;
    fields.get(key)
}

/// Whether two objects have the same fields; of `stored`, only the requested fields are compared.
fn same_fields(
    stored: &Map<String, Value>,
    template: &Map<String, Value>,
    matching: Matching,
    asked_for: impl Fn(&str) -> bool,
) -> bool {
    let ignored =
        |key: &str, value| matching == Matching::Tolerant && is_null_timestamp(key, value);
    let mut stored = stored.iter().filter(|(key, value)| asked_for(key) && !ignored(key, value));
    let wanted = template.iter().filter(|(key, value)| !ignored(key, value)).count();
    let mut alike = 0;
    stored.all(|(key, value)| {
        alike += 1;
        template.get(key).is_some_and(|other| same(value, other, matching))
    }) && alike == wanted
}

fn same(a: &Value, b: &Value, matching: Matching) -> bool {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => same_fields(a, b, matching, |_| true),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b, matching))
        }
        (a, b) => a == b,
    }
}

/// The bytes of `value` as Go's `encoding/json` writes a map: keys sorted, no white space, Go's
/// escapes and numbers. The API server does not change such bytes when it stores them.
pub fn canonical_json(value: &Value) -> Vec<u8> {
    let mut out = String::new();
    write_value(&mut out, value);
    out.into_bytes()
}

fn write_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_string(out, text),
        Value::Array(items) => {
            let mut separator = '[';
            for item in items {
                out.push(separator);
                write_value(out, item);
                separator = ',';
            }
            out.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            let mut separator = '{';
            for (key, value) in sorted {
                out.push(separator);
                write_string(out, key);
                out.push(':');
                write_value(out, value);
                separator = ',';
            }
            out.push_str(if fields.is_empty() { "{}" } else { "}" });
        }
    }
}

/// Integers of 64 bits are kept; other numbers are converted to floats, as in the API server.
fn write_number(out: &mut String, number: &Number) {
    match (number.as_i64(), number.as_f64()) {
        (Some(integer), _) => out.push_str(&integer.to_string()),
        (None, Some(float)) => out.push_str(&go_float(float)),
        (None, None) => out.push_str(&number.to_string()),
    }
}

/// Go writes an exponent, with its sign, only below 1e-6 and from 1e21 on.
fn go_float(float: f64) -> String {
    let size = float.abs();
    if size == 0.0 || (1e-6..1e21).contains(&size) {
        return float.to_string();
    }
    let text = format!("{float:e}");
    if text.contains("e-") { text } else { text.replace('e', "e+") }
}

fn write_string(out: &mut String, text: &str) {
    out.push('"');
    // Most text needs no escapes and is written in one piece.
    let mut written = 0;
    for (at, char) in text.char_indices() {
        let escape = match char {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\u{8}' => "\\b",
            '\u{c}' => "\\f",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '<' | '>' | '&' | '\u{0}'..='\u{1f}' | '\u{2028}' | '\u{2029}' => "\\u",
            _plain => continue,
        };
        out.push_str(&text[written..at]);
        written = at + char.len_utf8();
        out.push_str(escape);
        if escape == "\\u" {
            let code = u32::from(char);
            let digits = [12, 8, 4, 0].map(|shift| char::from_digit(code >> shift & 0xf, 16));
            out.extend(digits.into_iter().flatten());
        }
    }
    out.push_str(&text[written..]);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// A template as a 1.36.3 API server serves it, and the data that the controller wrote.
    const SERVED: &str = r#"{"metadata":{"labels":{"app":"mini"}},"spec":{"containers":[{
        "name":"c","image":"agent:v1","resources":{},
        "terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",
        "imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always",
        "terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst",
        "nodeSelector":{"no":"where"},"securityContext":{},"schedulerName":"default-scheduler"}}"#;
    const WRITTEN: &str = r#"{"spec":{"template":{"$patch":"replace","metadata":{"labels":{"app":"mini"}},"spec":{"containers":[{"image":"agent:v1","imagePullPolicy":"IfNotPresent","name":"c","resources":{},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"}],"dnsPolicy":"ClusterFirst","nodeSelector":{"no":"where"},"restartPolicy":"Always","schedulerName":"default-scheduler","securityContext":{},"terminationGracePeriodSeconds":30}}}}"#;

    #[test]
    fn the_bytes_are_those_of_the_controller() {
        let served: Value = serde_json::from_str(SERVED).unwrap();
        let bytes = canonical_json(&data_for(&served));
        assert_eq!(String::from_utf8(bytes).unwrap(), WRITTEN);
        let stored = serde_json::from_str(WRITTEN).unwrap();
        assert!(matches(&served, &stored, Matching::Exact));
    }

    #[test]
    fn escapes_are_gos() {
        for (text, want) in [
            ("<a href=\"x\">&</a>", r#""\u003ca href=\"x\"\u003e\u0026\u003c/a\u003e""#),
            ("\u{8}\u{c}\n\r\t\\", r#""\b\f\n\r\t\\""#),
            ("\0\u{1}\u{1f}\u{1b}", r#""\u0000\u0001\u001f\u001b""#),
            ("\u{2028}\u{2029}", r#""\u2028\u2029""#),
            ("/ \u{7f} ü 日 😀 \u{80}", "\"/ \u{7f} ü 日 😀 \u{80}\""),
        ] {
            let got = String::from_utf8(canonical_json(&json!(text))).unwrap();
            assert_eq!(got, want, "{text:?}");
            assert_eq!(serde_json::from_str::<String>(&got).unwrap(), text);
        }
    }

    #[test]
    fn numbers_are_gos() {
        for (text, want) in [
            ("0", "0"),
            ("-1", "-1"),
            ("9223372036854775807", "9223372036854775807"),
            ("9223372036854775808", "9223372036854776000"),
            ("18446744073709551615", "18446744073709552000"),
            ("1.0", "1"),
            ("1.5", "1.5"),
            ("1e3", "1000"),
            ("0.000001", "0.000001"),
            ("0.0000001", "1e-7"),
            ("123456789012345680000", "123456789012345680000"),
            ("1e21", "1e+21"),
            ("-2.5e30", "-2.5e+30"),
        ] {
            let value: Value = serde_json::from_str(text).unwrap();
            assert_eq!(String::from_utf8(canonical_json(&value)).unwrap(), want, "{text}");
        }
    }

    #[test]
    fn keys_are_sorted_and_nothing_is_added() {
        let value = json!({"b": [], "a": {}, "B": [1, {"z": null, "y": true}], "ä": false, "": ""});
        let got = String::from_utf8(canonical_json(&value)).unwrap();
        assert_eq!(got, r#"{"":"","B":[1,{"y":true,"z":null}],"a":{},"b":[],"ä":false}"#);
    }

    #[test]
    fn data_that_matches_a_template() {
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"x": [1, {"y": 2}]}});
        let timed = json!({
            "metadata": {"labels": {"a": "b"}, "creationTimestamp": null},
            "spec": {"x": [1, {"y": 2}]},
        });
        let with_patch = |template: &Value| {
            let mut template = template.clone();
            template["$patch"] = json!("replace");
            json!({"spec": {"template": template}})
        };
        let same = with_patch(&template);
        let old_era = with_patch(&timed);
        let mut other = same.clone();
        other["spec"]["template"]["spec"]["x"][1]["y"] = json!(3);
        let mut more = same.clone();
        more["spec"]["minReadySeconds"] = json!(1);
        let merge = json!({"spec": {"template": template}});
        for (name, template, data, tolerant, exact) in [
            ("equal", &template, &same, true, true),
            ("a null creationTimestamp in the data", &template, &old_era, true, false),
            ("a null creationTimestamp in the template", &timed, &same, true, false),
            ("another value", &template, &other, false, false),
            ("more than a template", &template, &more, false, false),
            ("no directive", &template, &merge, false, false),
            ("no data", &template, &Value::Null, false, false),
        ] {
            assert_eq!(matches(template, data, Matching::Tolerant), tolerant, "{name}");
            assert_eq!(matches(template, data, Matching::Exact), exact, "{name}, exactly");
        }
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|fields| fields.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn canonical_json_is_idempotent(value in any_json()) {
            let once = canonical_json(&value);
            let parsed: Value = serde_json::from_slice(&once).unwrap();
            prop_assert_eq!(canonical_json(&parsed), once);
        }

        #[test]
        fn data_matches_the_template_that_it_is_for(fields in prop::collection::btree_map("[a-z]{1,3}", any_json(), 0..4)) {
            let template: Value = fields.into_iter().collect();
            prop_assert!(matches(&template, &data_for(&template), Matching::Tolerant));
        }
    }
}
