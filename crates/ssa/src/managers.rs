//! Field ownership: reads and writes `metadata.managedFields` (upstream:
//! `managedfields/internal/managedfields.go`).

use std::{fmt, mem};

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::field_set::FieldSet;
use super::fields_v1::{self, StepError};
use super::schema::Schema;

/// A field manager. Entries with the same name are distinguished by the other fields.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Manager {
    /// The name of the manager.
    pub name: String,
    /// The kind of its writes.
    pub operation: Operation,
    /// The API version that it used.
    pub api_version: String,
    /// The subresource that it wrote: `status`, or empty for the object itself.
    pub subresource: String,
}

/// The kind of a manager's writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// Server-side apply.
    Apply,
    /// Anything else: create, update, patch, client-side apply.
    Update,
}

/// A manager and the fields that it owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The owner.
    pub manager: Manager,
    /// The time when it last changed any of them.
    pub time: Option<Timestamp>,
    /// The fields that it owns.
    pub fields: FieldSet,
}

/// All managers of an object, in the server's order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ManagedFields(pub(super) Vec<Entry>);

/// The reason why `managedFields` cannot be read. No server stores such.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManagedFieldsError {
    /// Neither a list nor absent.
    #[error("`metadata.managedFields` is not a list")]
    NoList,
    /// A field of an entry is missing or has an unknown value.
    #[error("`metadata.managedFields[{entry}].{field}` is missing or unknown")]
    Field {
        /// Position of the entry.
        entry: usize,
        /// Name of its field.
        field: &'static str,
    },
    /// An entry's fields cannot be read.
    #[error("`metadata.managedFields[{entry}].fieldsV1` cannot be read")]
    Fields {
        /// Position of the entry.
        entry: usize,
        /// The path element that cannot be read.
        source: StepError,
    },
}

impl Manager {
    /// A manager that writes the object itself, in the served API version.
    pub(super) fn of_object(schema: &Schema, name: &str, operation: Operation) -> Self {
        let api_version = schema.api_version.clone();
        Self { name: name.to_owned(), operation, api_version, subresource: String::new() }
    }

    /// Whether both are the same manager to the server, which ignores the API version of managers
    /// that apply.
    pub(super) fn is(&self, other: &Self) -> bool {
        self.name == other.name
            && self.operation == other.operation
            && self.subresource == other.subresource
            && (self.operation == Operation::Apply || self.api_version == other.api_version)
    }
}

/// As the server prints it (upstream: `printManager`).
impl fmt::Display for Manager {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name)?;
        if !self.subresource.is_empty() {
            write!(f, " with subresource {:?}", self.subresource)?;
        }
        match self.operation {
            Operation::Apply => Ok(()),
            Operation::Update => write!(f, " using {}", self.api_version),
        }
    }
}

impl ManagedFields {
    /// Reads the managers of a live object; none when it has no `metadata.managedFields`.
    pub fn of(object: &Value) -> Result<Self, ManagedFieldsError> {
        let list = match object.pointer("/metadata/managedFields") {
            None | Some(Value::Null) => return Ok(Self::default()),
            Some(Value::Array(list)) => list,
            Some(_other) => return Err(ManagedFieldsError::NoList),
        };
        let mut all = Self::default();
        for (at, entry) in list.iter().enumerate() {
            all.replace(read_entry(at, entry)?);
        }
        Ok(all)
    }

    /// Whether there are no managers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The managers and their fields, in the server's order.
    pub fn entries(&self) -> &[Entry] {
        &self.0
    }

    /// The JSON of `metadata.managedFields`.
    pub fn to_value(&self) -> Value {
        self.0.iter().map(write_entry).collect()
    }

    /// The entry of a manager.
    pub(super) fn get(&self, manager: &Manager) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.manager.is(manager))
    }

    /// Adds an entry, or replaces that of the same manager, which is returned.
    pub(super) fn replace(&mut self, entry: Entry) -> Option<Entry> {
        let same = |old: &&mut Entry| old.manager.is(&entry.manager);
        if let Some(old) = self.0.iter_mut().find(same) {
            return Some(mem::replace(old, entry));
        }
        self.0.push(entry);
        None
    }

    /// Removes managers without fields and sorts the rest in the server's order (upstream:
    /// `sortEncodedManagedFields`).
    pub(super) fn tidied(mut self) -> Self {
        self.0.retain(|entry| !entry.fields.is_empty());
        self.0.sort_by(|a, b| {
            let key = |entry: &'_ Entry| {
                let seconds = entry.time.map_or(0, Timestamp::as_second);
                (entry.manager.operation, seconds)
            };
            let name = |entry: &Entry| {
                let Manager { name, api_version, subresource, .. } = &entry.manager;
                (name.clone(), api_version.clone(), subresource.clone())
            };
            key(a).cmp(&key(b)).then_with(|| name(a).cmp(&name(b)))
        });
        self
    }
}

fn read_entry(at: usize, entry: &Value) -> Result<Entry, ManagedFieldsError> {
    let text = |field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default();
    let bad = |field| ManagedFieldsError::Field { entry: at, field };
    let operation = match text("operation") {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _unknown => return Err(bad("operation")),
    };
    if text("apiVersion").is_empty() {
        return Err(bad("apiVersion"));
    }
    if text("fieldsType") != "FieldsV1" {
        return Err(bad("fieldsType"));
    }
    let time = match text("time") {
        "" => None,
        text => Some(text.parse().map_err(|_| bad("time"))?),
    };
    let fields = fields_v1::read(entry.get("fieldsV1").unwrap_or(&Value::Null))
        .map_err(|source| ManagedFieldsError::Fields { entry: at, source })?;
    let manager = Manager {
        name: text("manager").to_owned(),
        operation,
        api_version: text("apiVersion").to_owned(),
        subresource: text("subresource").to_owned(),
    };
    Ok(Entry { manager, time, fields })
}

fn write_entry(entry: &Entry) -> Value {
    let Entry { manager: Manager { name, operation, api_version, subresource }, time, fields } =
        entry;
    let operation = match operation {
        Operation::Apply => "Apply",
        Operation::Update => "Update",
    };
    let mut out = Map::new();
    if !name.is_empty() {
        out.insert("manager".to_owned(), json!(name));
    }
    out.insert("operation".to_owned(), json!(operation));
    out.insert("apiVersion".to_owned(), json!(api_version));
    if let Some(time) = time {
        out.insert("time".to_owned(), json!(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()));
    }
    out.insert("fieldsType".to_owned(), json!("FieldsV1"));
    out.insert("fieldsV1".to_owned(), fields_v1::write(fields));
    if !subresource.is_empty() {
        out.insert("subresource".to_owned(), json!(subresource));
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(change: impl FnOnce(&mut Value)) -> Value {
        let mut entry = json!({
            "manager": "m", "operation": "Update", "apiVersion": "apps/v1",
            "time": "2026-01-02T03:04:05Z", "fieldsType": "FieldsV1",
            "fieldsV1": {"f:spec": {"f:minReadySeconds": {}}},
        });
        change(&mut entry);
        entry
    }

    fn read(list: &Value) -> Result<ManagedFields, ManagedFieldsError> {
        ManagedFields::of(&json!({"metadata": {"managedFields": list}}))
    }

    #[test]
    fn entries_round_trip() {
        let list = json!([
            entry(|_| {}),
            entry(|entry| entry["subresource"] = json!("status")),
            entry(|entry| entry["apiVersion"] = json!("extensions/v1beta1")),
        ]);
        assert_eq!(read(&list).unwrap().to_value(), list);
    }

    #[test]
    fn an_applier_is_one_manager_in_all_versions() {
        let list = json!([
            entry(|entry| entry["operation"] = json!("Apply")),
            entry(|entry| {
                entry["operation"] = json!("Apply");
                entry["apiVersion"] = json!("apps/v1beta2");
            }),
        ]);
        assert_eq!(read(&list).unwrap().to_value(), json!([list[1]]));
    }

    #[test]
    fn unknown_values_are_errors_with_their_position() {
        for (field, value) in [
            ("operation", json!("Create")),
            ("apiVersion", json!("")),
            ("fieldsType", json!("FieldsV2")),
            ("time", json!("yesterday")),
        ] {
            let list = json!([entry(|_| {}), entry(|entry| entry[field] = value)]);
            assert_eq!(read(&list), Err(ManagedFieldsError::Field { entry: 1, field }));
        }
        assert_eq!(read(&json!({})), Err(ManagedFieldsError::NoList));
        let list = json!([entry(|entry| entry["fieldsV1"] = json!({"k:{": {}}))]);
        let error = read(&list).unwrap_err();
        assert!(matches!(error, ManagedFieldsError::Fields { entry: 0, .. }), "{error}");
    }
}
