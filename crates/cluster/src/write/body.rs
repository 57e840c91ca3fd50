//! The bodies of applies, patches and deletes.

use std::collections::BTreeMap;
use std::io;

use serde::Serialize;
use serde_json::ser::Formatter;
use serde_json::{Value, json};

use crate::WriteError;
use daemonset::model::{Cascade, DaemonSet, Uid};

/// A server-side apply of a DaemonSet.
#[derive(Clone, Copy, Debug)]
pub struct Apply<'a> {
    /// The object to apply, without the server's defaults. Its fields will be owned.
    pub object: &'a Value,
    /// Whether to force conflicts: take fields from other field managers.
    pub force: bool,
    /// The uid as a precondition. Without it, an object that was deleted meanwhile is created
    /// again.
    pub uid: Option<&'a Uid>,
    /// The resource version as a precondition ([`DaemonSet::resource_version`]).
    pub resource_version: Option<&'a str>,
}

/// The body of a server-side apply: the object with its preconditions, in JSON that is also valid
/// YAML, because the server parses it as YAML.
pub(super) fn apply(apply: &Apply<'_>) -> Vec<u8> {
    let mut object = apply.object.clone();
    let uid = apply.uid.map(Uid::to_string);
    let preconditions = [("uid", uid.as_deref()), ("resourceVersion", apply.resource_version)];
    // Without `metadata` it is not an object, and the server rejects it.
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        let given = preconditions.into_iter().filter_map(|(field, value)| Some((field, value?)));
        metadata.extend(given.map(|(field, value)| (field.to_owned(), value.into())));
    }
    yaml_safe(&object)
}

/// A JSON patch of the managed fields of exactly this version of the object. Writing the resource
/// version makes it a precondition, which fails with 409 instead of a failed test's 422; the test
/// checks the uid. `add` also replaces a field that exists, and an object can be without managed
/// fields: another client removed them, or the recording of a rehearsal does not contain them.
pub(super) fn managed_fields(live: &DaemonSet, managed_fields: &Value) -> Vec<u8> {
    let patch = json!([
        {"op": "test", "path": "/metadata/uid", "value": live.uid},
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live.resource_version()},
        {"op": "add", "path": "/metadata/managedFields", "value": managed_fields},
    ]);
    patch.to_string().into()
}

/// A JSON patch that replaces the labels, annotations and spec of exactly this object by those of
/// another one.
pub(super) fn outcome(live: &DaemonSet, object: &Value) -> Vec<u8> {
    let map = |name: &str| match &object["metadata"][name] {
        Value::Object(pairs) => pairs.clone(),
        _absent => serde_json::Map::new(),
    };
    let patch = json!([
        {"op": "test", "path": "/metadata/uid", "value": live.uid},
        {"op": "add", "path": "/metadata/labels", "value": map("labels")},
        {"op": "add", "path": "/metadata/annotations", "value": map("annotations")},
        {"op": "add", "path": "/spec", "value": object["spec"]},
    ]);
    patch.to_string().into()
}

/// A merge patch of annotations, for exactly this uid, and this version if one is given.
pub(super) fn annotations(
    uid: &Uid,
    resource_version: Option<&str>,
    annotations: &BTreeMap<&str, Option<&str>>,
) -> Vec<u8> {
    let mut metadata = json!({"uid": uid, "annotations": annotations});
    if let Some(version) = resource_version {
        metadata["resourceVersion"] = version.into();
    }
    json!({"metadata": metadata}).to_string().into()
}

/// Maps the error of a failed JSON patch test to [`WriteError::Stale`]: the object was replaced
/// (upstream: 422 without causes).
pub(super) fn failed_test_is_stale(error: WriteError) -> WriteError {
    match error {
        WriteError::Invalid { attempted, fields, message } if fields.is_empty() => {
            WriteError::Stale { attempted, message }
        }
        other => other,
    }
}

/// The options of a delete of exactly this uid, and this version if one is given.
pub(super) fn delete(
    uid: &Uid,
    resource_version: Option<&str>,
    cascade: Option<Cascade>,
) -> Vec<u8> {
    let mut options = json!({
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": uid},
    });
    if let Some(version) = resource_version {
        options["preconditions"]["resourceVersion"] = version.into();
    }
    if let Some(cascade) = cascade {
        options["propagationPolicy"] = match cascade {
            Cascade::Background => "Background".into(),
            Cascade::Orphan => "Orphan".into(),
        };
    }
    options.to_string().into()
}

/// JSON that YAML parses to the same value: escapes the characters that YAML treats as line breaks
/// or does not allow (go-yaml: `is_printable`, `is_break`).
pub(super) fn yaml_safe(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, YamlSafe);
    // Serializing a JSON value to memory cannot fail.
    let _ = value.serialize(&mut serializer);
    bytes
}

struct YamlSafe;

impl Formatter for YamlSafe {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        for character in fragment.chars() {
            match character {
                '\u{7f}'..='\u{9f}'
                | '\u{2028}'
                | '\u{2029}'
                | '\u{feff}'
                | '\u{fffe}'
                | '\u{ffff}' => {
                    write!(writer, "\\u{:04x}", u32::from(character))?;
                }
                other => write!(writer, "{other}")?,
            }
        }
        Ok(())
    }
}
