//! The table of how fields merge, generated again from the API server.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::harness::kubernetes;
use serde_json::{Map, Value, json};

const DAEMON_SET: &str = "io.k8s.api.apps.v1.DaemonSet";

#[test]
fn the_table_matches_the_server() {
    if !kubernetes::since(36, "the table has the fields of the newest version") {
        return;
    }
    let plane = super::api_server();
    let document = plane.kubectl(&["get", "--raw", "/openapi/v3/apis/apps/v1"]);
    let document: Value = serde_json::from_str(&document).unwrap();
    let mut reader = Reader { schemas: &document["components"]["schemas"], table: BTreeMap::new() };
    reader.structure(DAEMON_SET);
    let text = serde_json::to_string_pretty(&reader.table).unwrap() + "\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/ssa/src/schema.json");
    if fs::read_to_string(&path).unwrap_or_default() != text {
        let new = path.with_extension("json.new");
        fs::write(&new, text).unwrap();
        panic!("schema.json does not match the server; see {}", new.display());
    }
}

/// Walks from the DaemonSet into every schema that is merged field by field.
struct Reader<'d> {
    schemas: &'d Value,
    table: BTreeMap<String, Map<String, Value>>,
}

impl Reader<'_> {
    /// Records a schema with named fields; returns its short name.
    fn structure(&mut self, name: &str) -> String {
        let short = name.rsplit('.').next().unwrap().to_owned();
        if !self.table.contains_key(&short) {
            self.table.insert(short.clone(), Map::new());
            let properties = self.schemas[name]["properties"].as_object().unwrap();
            let fields = properties
                .iter()
                .filter_map(|(field, schema)| Some((field.clone(), self.kind(schema)?)));
            let fields = fields.collect();
            self.table.insert(short.clone(), fields);
        }
        short
    }

    /// How a field merges; `None` for an atomic value.
    fn kind(&mut self, schema: &Value) -> Option<Value> {
        if let Some(name) = reference(schema) {
            let target = &self.schemas[name];
            return if is_atomic(schema) || is_atomic(target) {
                Some("atomic".into())
            } else if target["properties"].is_object() {
                Some(self.structure(name).into())
            } else {
                assert_ne!(target["type"], "object", "{name} accepts any field");
                None
            };
        }
        match schema["type"].as_str() {
            Some("array") => Some(self.list(schema)),
            Some("object") if is_atomic(schema) => Some("atomic".into()),
            Some("object") => {
                let entry = &schema["additionalProperties"];
                assert_eq!(self.kind(entry), None, "only maps of atomic values are supported");
                Some("map".into())
            }
            _ => None,
        }
    }

    fn list(&mut self, schema: &Value) -> Value {
        match schema["x-kubernetes-list-type"].as_str() {
            None | Some("atomic") => "atomic".into(),
            Some("set") => "set".into(),
            Some("map") => {
                let element = reference(&schema["items"]).unwrap();
                let properties = &self.schemas[element]["properties"];
                let keys = schema["x-kubernetes-list-map-keys"].as_array().unwrap();
                let keys: Map<_, _> = keys
                    .iter()
                    .map(|key| key.as_str().unwrap())
                    .map(|key| (key.to_owned(), properties[key]["default"].clone()))
                    .collect();
                let atomic = is_atomic(&schema["items"]) || is_atomic(&self.schemas[element]);
                let of = if atomic { "atomic".to_owned() } else { self.structure(element) };
                json!({ "keys": keys, "of": of })
            }
            Some(other) => panic!("a new type of list: {other}"),
        }
    }
}

fn is_atomic(schema: &Value) -> bool {
    schema["x-kubernetes-map-type"] == "atomic"
}

fn reference(schema: &Value) -> Option<&str> {
    let direct = schema["$ref"].as_str();
    let target = direct.or_else(|| match schema["allOf"].as_array()?.as_slice() {
        [only] => only["$ref"].as_str(),
        _ => None,
    });
    target.map(|target| target.rsplit('/').next().unwrap())
}
