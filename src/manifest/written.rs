//! What of a manifest is sent to the server: what is written in it, no more and no less.
//!
//! Server-side apply makes the sender the owner of every field that it sends. So defaults are
//! left out. Values are in canonical form, or equal quantities would count as conflicts; what
//! would not be stored is left out too, and so is what the API does not know, which server-side
//! apply refuses whatever the validation. An explicit `0`, `false` or `""` stays: it says that
//! the field shall not be anything else.

use serde_json::{Map, Value};

/// `source` with the values of `canonical`, which is what decoding made of it; `is_known` tells
/// fields of the API from others, by path.
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
            // An entry of a map that is `null` is stored as an empty text.
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

    /// What the server itself writes into `metadata` has been taken out there, zero or not.
    fn is_of_spec(&self, path: &str) -> bool {
        path.starts_with("spec.") && (self.is_known)(path)
    }
}

/// What Go leaves out although somebody may have written it.
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
    fn what_is_sent_is_what_is_written() {
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
