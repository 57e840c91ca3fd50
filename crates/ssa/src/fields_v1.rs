//! Reads and writes sets of fields in the format of `managedFields`: `FieldsV1` (upstream:
//! `fieldpath/serialize.go`).
//!
//! `f:` is a field, `k:` a list element by key, `v:` one by value, `i:` one by position; a `.`
//! means that the field itself is in the set, in addition to those below it.

use serde_json::{Map, Value};

use super::field_path::{Literal, PathStep};
use super::field_set::FieldSet;

/// A path element that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an element of a field path")]
pub struct StepError(String);

/// Reads a set. Path elements of unknown kinds are dropped, as upstream does.
pub(super) fn read(fields: &Value) -> Result<FieldSet, StepError> {
    let mut set = FieldSet::default();
    for (key, below) in fields.as_object().into_iter().flatten() {
        if key == "." {
            continue;
        }
        let Some(step) = read_step(key)? else { continue };
        let child = read(below)?;
        if child.is_empty() || below.get(".").is_some() {
            set.add_member(step.clone());
        }
        set.add_child(step, child);
    }
    Ok(set)
}

fn read_step(text: &str) -> Result<Option<PathStep>, StepError> {
    let bad = || StepError(text.to_owned());
    let (kind, content) =
        text.split_once(':').filter(|(kind, _)| kind.len() == 1).ok_or_else(bad)?;
    Ok(Some(match kind {
        "f" => PathStep::field(content),
        "k" => {
            let keys: Map<String, Value> = serde_json::from_str(content).map_err(|_| bad())?;
            let mut keys: Vec<_> =
                keys.iter().map(|(name, value)| (name.clone(), value.into())).collect();
            keys.sort();
            PathStep::Key(keys)
        }
        "v" => {
            let value: Value = serde_json::from_str(content).map_err(|_| bad())?;
            PathStep::Value(Literal::from(&value))
        }
        "i" => PathStep::Index(content.parse().map_err(|_| bad())?),
        _later_kind => return Ok(None),
    }))
}

/// Writes a set.
pub(super) fn write(set: &FieldSet) -> Value {
    let mut fields = Map::new();
    for member in set.members() {
        fields.insert(write_step(member), Value::Object(Map::new()));
    }
    for (step, below) in set.children() {
        let mut below = write(below);
        if let Value::Object(below) = &mut below
            && set.has_member(step)
        {
            below.insert(".".to_owned(), Value::Object(Map::new()));
        }
        fields.insert(write_step(step), below);
    }
    Value::Object(fields)
}

fn write_step(step: &PathStep) -> String {
    match step {
        PathStep::Field(name) => format!("f:{name}"),
        PathStep::Key(keys) => {
            let pairs: Vec<_> = keys
                .iter()
                .map(|(name, value)| format!("{}:{}", quoted(name), write_literal(value)))
                .collect();
            format!("k:{{{}}}", pairs.join(","))
        }
        PathStep::Value(value) => format!("v:{}", write_literal(value)),
        PathStep::Index(at) => format!("i:{at}"),
    }
}

fn write_literal(literal: &Literal) -> String {
    match literal {
        Literal::Text(text) => quoted(text),
        Literal::Integer(_) | Literal::Number(_) | Literal::Bool(_) | Literal::Other(_) => {
            literal.to_string()
        }
    }
}

/// A JSON string as Go marshals it, which escapes HTML.
fn quoted(text: &str) -> String {
    let mut json = Value::from(text).to_string();
    for (plain, escaped) in [
        ("<", "\\u003c"),
        (">", "\\u003e"),
        ("&", "\\u0026"),
        ("\u{2028}", "\\u2028"),
        ("\u{2029}", "\\u2029"),
    ] {
        json = json.replace(plain, escaped);
    }
    json
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sets_round_trip() {
        for (rule, fields, paths) in [
            ("a leaf", json!({"f:a": {}}), vec!["a"]),
            ("a child only", json!({"f:a": {"f:b": {}}}), vec!["a.b"]),
            ("a parent and its child", json!({"f:a": {".": {}, "f:b": {}}}), vec!["a", "a.b"]),
            (
                "an element by key",
                json!({"f:c": {"k:{\"name\":\"x\"}": {".": {}, "f:name": {}}}}),
                vec!["c[x]", "c[x].name"],
            ),
            (
                "two keys",
                json!({"f:p": {"k:{\"containerPort\":53,\"protocol\":\"UDP\"}": {}}}),
                vec!["p[53/UDP]"],
            ),
            ("an element by value", json!({"f:s": {"v:\"x/y\"": {}}}), vec!["s[x/y]"]),
            ("an element by position", json!({"f:l": {"i:3": {}}}), vec!["l[3]"]),
            (
                "Go's escapes",
                json!({"f:m": {"k:{\"mountPath\":\"/\\u003cx\\u003e\"}": {}}}),
                vec!["m[/<x>]"],
            ),
            ("nothing", json!({}), vec![]),
        ] {
            let set = read(&fields).unwrap();
            let got: Vec<_> = set.paths().iter().map(ToString::to_string).collect();
            assert_eq!(got, paths, "{rule}");
            assert_eq!(write(&set), fields, "{rule}");
        }
    }

    #[test]
    fn odd_sets_are_read_as_upstream_reads_them() {
        for (rule, fields, want) in [
            ("a dot alone", json!({"f:a": {".": {}}}), json!({"f:a": {}})),
            ("an unknown kind", json!({"z:1": {}, "f:a": {"z:1": {}}}), json!({"f:a": {}})),
            (
                "keys in another order",
                json!({"k:{\"b\":1,\"a\":2}": {}}),
                json!({"k:{\"a\":2,\"b\":1}": {}}),
            ),
            ("not an object", json!(null), json!({})),
        ] {
            assert_eq!(write(&read(&fields).unwrap()), want, "{rule}");
        }
        for key in ["", "f", "field", "k:{", "k:1", "v:", "i:x", "ff:a"] {
            assert_eq!(read(&json!({ key: {} })), Err(StepError(key.to_owned())));
        }
    }
}
