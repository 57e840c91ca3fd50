//! The field managers of a field, from `metadata.managedFields`.
//!
//! Not here: what ownership means for an apply (`ssa`).

use std::collections::BTreeSet;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use ssa::{Entry, ManagedFields, ManagedFieldsError, Operation};

/// A field manager that wrote a field, and its last write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Writer {
    /// Name of the field manager, such as `kubectl-edit`.
    pub manager: String,
    /// Operation: `Apply` or `Update`.
    pub operation: WriteOperation,
    /// Time at which it last changed any field of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// Subresource that it wrote to, such as `status`; none for the object itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subresource: Option<String>,
}

/// Operation of a field manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum WriteOperation {
    /// Server-side apply.
    Apply,
    /// Any other write: create, update, patch, client-side apply.
    Update,
}

/// The field managers of one object.
#[derive(Debug)]
pub(super) struct Writers(Vec<Fields>);

/// The fields of one manager, as paths in the format of field changes.
#[derive(Debug)]
struct Fields {
    writer: Writer,
    /// Every field, and every list element or map as such.
    owned: BTreeSet<String>,
}

impl Writers {
    /// Returns the field managers of an object; none without `managedFields`.
    ///
    /// # Errors
    /// `managedFields` cannot be read.
    pub(super) fn of(object: &Value) -> Result<Self, ManagedFieldsError> {
        let managed = ManagedFields::of(object)?;
        Ok(Self(managed.entries().iter().map(Fields::of).collect()))
    }

    /// Returns an object without known managers.
    pub(super) fn unknown() -> Self {
        Self(Vec::new())
    }

    /// Returns the managers of the field at `path`, of a field in it, or of the list or map that
    /// contains it; the latest first.
    pub(super) fn of_field(&self, path: &str) -> Vec<Writer> {
        let mut writers: Vec<Writer> =
            self.0.iter().filter(|fields| fields.has(path)).map(|it| it.writer.clone()).collect();
        writers.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.manager.cmp(&b.manager)));
        writers
    }
}

impl Fields {
    fn of(entry: &Entry) -> Self {
        let Entry { manager, time, fields } = entry;
        let operation = match manager.operation {
            Operation::Apply => WriteOperation::Apply,
            Operation::Update => WriteOperation::Update,
        };
        let subresource = Some(manager.subresource.clone()).filter(|name| !name.is_empty());
        let writer = Writer { manager: manager.name.clone(), operation, time: *time, subresource };
        Self { writer, owned: fields.paths().iter().map(ToString::to_string).collect() }
    }

    fn has(&self, path: &str) -> bool {
        let below = |ancestor: &str, path: &str| {
            let rest = path.strip_prefix(ancestor);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let inside = self.owned.iter().any(|owned| below(path, owned));
        inside || self.owned.iter().any(|owned| below(owned, path) && self.is_whole(owned))
    }

    /// Whether `path` is owned as a whole: no field below it is owned separately.
    fn is_whole(&self, path: &str) -> bool {
        let of_it = |owned: &&String| {
            owned.strip_prefix(path).is_some_and(|rest| rest.starts_with(['.', '[']))
        };
        !self.owned.iter().any(|owned| of_it(&owned))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn writers_of_fields_elements_and_atomic_lists() {
        let entry = |manager: &str, operation: &str, time: &str, fields: Value| {
            json!({
                "manager": manager, "operation": operation, "apiVersion": "apps/v1", "time": time,
                "fieldsType": "FieldsV1", "fieldsV1": fields,
            })
        };
        let spec = |fields: Value| json!({"f:spec": {"f:template": {"f:spec": fields}}});
        let agent = |fields: Value| json!({"f:containers": {"k:{\"name\":\"agent\"}": fields}});
        let object = json!({"metadata": {"managedFields": [
            entry("ds-apply", "Apply", "2026-01-01T00:00:00Z", spec(json!({
                "f:containers": {"k:{\"name\":\"agent\"}": {".": {}, "f:name": {}, "f:image": {},
                    "f:ports": {"k:{\"containerPort\":53,\"protocol\":\"UDP\"}": {".": {}}}}},
                "f:tolerations": {},
            }))),
            entry("kubectl-set", "Update", "2026-01-02T00:00:00Z",
                spec(agent(json!({"f:image": {}})))),
            entry("kubectl-rollout", "Update", "2026-01-03T00:00:00Z", json!({"f:spec": {
                "f:template": {"f:metadata": {"f:annotations": {".": {},
                    "f:kubectl.kubernetes.io/restartedAt": {}}}}}})),
        ]}});
        let writers = Writers::of(&object).unwrap();
        let container = "spec.template.spec.containers[agent]";
        for (rule, path, want) in [
            ("two of one field", format!("{container}.image"), "kubectl-set ds-apply"),
            ("all of an element", container.to_owned(), "kubectl-set ds-apply"),
            ("an element by two keys", format!("{container}.ports[53/UDP]"), "ds-apply"),
            (
                "part of what is written whole",
                "spec.template.spec.tolerations[0].key".into(),
                "ds-apply",
            ),
            (
                "a dotted key",
                "spec.template.metadata.annotations[kubectl.kubernetes.io/restartedAt]".into(),
                "kubectl-rollout",
            ),
            (
                "a map of which one key is owned",
                "spec.template.metadata.annotations".into(),
                "kubectl-rollout",
            ),
            ("a longer name", "spec.template.spec.tolerationsX".into(), ""),
            ("another element", "spec.template.spec.containers[agent2].image".into(), ""),
            ("the element is owned, this field is not", format!("{container}.args"), ""),
        ] {
            let found: Vec<_> =
                writers.of_field(&path).into_iter().map(|writer| writer.manager).collect();
            assert_eq!(found.join(" "), want, "{rule}");
        }
        assert!(Writers::of(&json!({})).unwrap().of_field("spec").is_empty());
    }
}
