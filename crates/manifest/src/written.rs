//! The object that is sent to the server for a manifest: exactly the fields that are written in it.
//!
//! Server-side apply makes the sender the owner of every field that it sends. So defaults are
//! omitted. Values are in canonical form, otherwise equal quantities would conflict; values that
//! would not be stored are omitted too, and so are fields that the API does not have, which
//! server-side apply rejects with any `--validate`. An explicit `0`, `false` or `""` is sent: it
//! fixes the value of the field.

use serde_json::{Map, Value};

/// `source` with the values of `canonical`, its decoded form; `is_known` returns `true` for paths
/// of fields of the API.
pub(super) fn written(source: &Value, canonical: &Value, is_known: impl Fn(&str) -> bool) -> Value {
    let writer = Writer { is_known };
    writer.value("", source, Some(canonical)).unwrap_or(Value::Null)
}

struct Writer<F> {
    is_known: F,
}

impl<F: Fn(&str) -> bool> Writer<F> {
    fn value(&self, path: &str, source: &Value, canonical: Option<&Value>) -> Option<Value> {
        match (source, canonical) {
            (_, Some(Value::Null)) | (Value::Null, None) => None,
            // A `null` entry of a map is stored as an empty string.
            (Value::Null, Some(canonical)) => {
                let plain = !canonical.is_object() && !canonical.is_array();
                plain.then(|| canonical.clone())
            }
            (_, None) => (is_zero(source) && self.is_of_spec(path)).then(|| source.clone()),
            (Value::Object(source), Some(Value::Object(canonical))) => {
                let field = |(name, value): (&String, &Value)| {
                    let path =
                        if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    Some((name.clone(), self.value(&path, value, canonical.get(name))?))
                };
                Some(Value::Object(source.iter().filter_map(field).collect::<Map<_, _>>()))
            }
            (Value::Array(source), Some(Value::Array(canonical))) => {
                let items = source.iter().zip(canonical).enumerate();
                let item = |(at, (source, canonical))| {
                    self.value(&format!("{path}[{at}]"), source, Some(canonical))
                        .unwrap_or_else(|| Value::clone(canonical))
                };
                Some(items.map(item).collect())
            }
            (_, Some(canonical)) => Some(canonical.clone()),
        }
    }

    /// `true` for known fields of `spec`. Server-written fields of `metadata` were removed before,
    /// zero or not.
    fn is_of_spec(&self, path: &str) -> bool {
        path.starts_with("spec.") && (self.is_known)(path)
    }
}

/// `true` for zero values, which Go omits even if they are written.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(truth) => !truth,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Null | Value::Array(_) | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::decode;
    use super::*;

    #[test]
    fn only_written_fields_are_sent() {
        let spec = |spec: Value| json!({ "metadata": { "name": "ds" }, "spec": spec });
        let pod = |pod: Value| spec(json!({ "template": { "spec": pod } }));
        let container = |fields: Value| {
            let mut container = json!({ "name": "a" });
            container.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            pod(json!({ "containers": [container] }))
        };
        for (rule, source, want) in [
            ("no defaults", spec(json!({})), spec(json!({}))),
            (
                "an explicit zero",
                spec(json!({"minReadySeconds": 0})),
                spec(json!({"minReadySeconds": 0})),
            ),
            ("null", spec(json!({"minReadySeconds": null})), spec(json!({}))),
            ("an unknown field", spec(json!({"nope": false, "no": 1})), spec(json!({}))),
            (
                "a quantity",
                container(json!({"resources": {"limits": {"cpu": 0.1}}})),
                container(json!({"resources": {"limits": {"cpu": "100m"}}})),
            ),
            ("an empty list", container(json!({"args": [], "env": []})), container(json!({}))),
            (
                "an empty struct",
                pod(json!({"securityContext": {}, "volumes": [{"name": "v", "emptyDir": {}}]})),
                pod(json!({"securityContext": {}, "volumes": [{"name": "v", "emptyDir": {}}]})),
            ),
            (
                "an empty text",
                container(json!({"env": [{"name": "A", "value": ""}, {"name": "B"}]})),
                container(json!({"env": [{"name": "A", "value": ""}, {"name": "B"}]})),
            ),
            (
                "an empty label",
                json!({"metadata": {"labels": {"a": "", "b": null}, "annotations": {}}}),
                json!({"metadata": {"labels": {"a": "", "b": ""}}}),
            ),
        ] {
            let (canonical, problems) = decode::daemon_set(source.clone());
            let unknown = decode::unknown_paths(&problems);
            assert_eq!(
                written(&source, &canonical, |path| !unknown.contains(path)),
                want,
                "{rule}"
            );
        }
    }
}
