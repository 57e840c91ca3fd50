//! Random DaemonSets: any field of the API's types, with the values that the tables have for fields
//! of its name, and with others.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use testkit::invalid::{self, Row};
use testkit::random::Random;

/// Fields by Go type and name, from the table of fields.
type Types = BTreeMap<String, BTreeMap<String, Field>>;

#[derive(serde::Deserialize)]
struct Field {
    #[serde(rename = "type")]
    kind: String,
}

/// Texts that a user might write in any field.
const TEXTS: [&str; 12] =
    ["", "a", "main", "scratch", "A", "a.b", "a b", "/a", "../a", "example.com/a", "<&>", "ä"];
const NUMBERS: [i64; 9] = [0, 1, 2, -1, 80, 255, 65535, 70000, i32::MAX as i64];
const QUANTITIES: [&str; 9] = ["0", "1", "2", "-1", "500m", "1500m", "1Gi", "2Mi", "3Mi"];
const RESOURCES: [&str; 7] =
    ["cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "hugepages-2Mi", "disk", "pods"];
/// Fields that a server with default feature gates drops before it validates, or that have no
/// validation here, such as those of rare volume plug-ins.
const LEFT_OUT: [&str; 24] = [
    "clusterTrustBundle",
    "podCertificate",
    "stopSignal",
    "schedulingGroup",
    "managedFields",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "iscsi",
    "glusterfs",
    "flocker",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "scaleIO",
];

/// Creates the same objects for the same seed.
pub(super) struct Maker {
    types: Types,
    /// The values of the tables' rows, by name of the field.
    known: BTreeMap<String, Vec<Value>>,
    random: Random,
}

impl Maker {
    pub(super) fn new(fields: &str, rows: &[Row], seed: u64) -> Self {
        let mut known = BTreeMap::new();
        for row in rows {
            for (path, value) in &row.set {
                let name = path.rsplit('.').next().unwrap_or_default();
                collect(name.split('[').next().unwrap_or_default(), value, &mut known);
            }
        }
        let types = serde_json::from_str(fields).unwrap();
        Self { types, known, random: Random::seeded(seed) }
    }

    /// The valid object with some fields of its pod and its strategy replaced.
    pub(super) fn daemon_set(&mut self) -> Value {
        let mut object = invalid::valid();
        let spec = &mut object["spec"];
        if self.random.one_in(8) {
            spec["updateStrategy"] = self.value("updateStrategy", "DaemonSetUpdateStrategy");
        }
        let pod = &mut spec["template"]["spec"];
        let names: Vec<String> = self.types["PodSpec"].keys().cloned().collect();
        for _ in 0..=self.random.below(3) {
            let name = &names[self.random.below(names.len())];
            let kind = self.types["PodSpec"][name].kind.clone();
            self.put(pod, name, &kind);
        }
        for list in ["containers", "initContainers"] {
            let Some(containers) = pod[list].as_array_mut() else { continue };
            let names: Vec<String> = self.types["Container"].keys().cloned().collect();
            for container in containers {
                for _ in 0..self.random.below(3) {
                    let name = &names[self.random.below(names.len())];
                    let kind = self.types["Container"][name].kind.clone();
                    self.put(container, name, &kind);
                }
            }
        }
        invalid::plain(object)
    }

    fn put(&mut self, holder: &mut Value, name: &str, kind: &str) {
        if !LEFT_OUT.contains(&name) {
            holder[name] = self.value(name, kind);
        }
    }

    fn value(&mut self, name: &str, kind: &str) -> Value {
        let kind = kind.trim_start_matches('*');
        if let Some(item) = kind.strip_prefix("[]") {
            let count = 1 + self.random.below(2);
            return (0..count).map(|_| self.value(name, item)).collect();
        }
        if self.types.contains_key(kind) {
            return self.object(kind);
        }
        let known = self.known.get(name).map_or(0, Vec::len);
        let pick = self.random.below(known.max(1));
        let of_tables = self.known.get(name).and_then(|values| values.get(pick)).cloned();
        let of_tables = of_tables.filter(|value| fits(value, kind) && !self.random.one_in(4));
        of_tables.unwrap_or_else(|| self.scalar(kind))
    }

    fn object(&mut self, kind: &str) -> Value {
        let fields: Vec<(String, String)> = self.types[kind]
            .iter()
            .map(|(name, field)| (name.clone(), field.kind.clone()))
            .collect();
        // Few fields of types with many, most fields of types with few.
        let odds = 1 + fields.len() / 4;
        let mut object = json!({});
        for (name, kind) in fields {
            if self.random.one_in(odds) {
                self.put(&mut object, &name, &kind);
            }
        }
        object
    }

    fn scalar(&mut self, kind: &str) -> Value {
        match kind {
            "string" => TEXTS[self.random.below(TEXTS.len())].into(),
            "bool" => self.random.one_in(2).into(),
            "IntOrString" if self.random.one_in(3) => TEXTS[self.random.below(TEXTS.len())].into(),
            "int32" | "int64" | "IntOrString" => NUMBERS[self.random.below(NUMBERS.len())].into(),
            "Quantity" => QUANTITIES[self.random.below(QUANTITIES.len())].into(),
            "map[string]string" => {
                let key = TEXTS[1 + self.random.below(TEXTS.len() - 1)];
                json!({ key: TEXTS[self.random.below(TEXTS.len())] })
            }
            "map[ResourceName]Quantity" => {
                let amounts = (0..2).map(|_| {
                    let name = RESOURCES[self.random.below(RESOURCES.len())];
                    (name.to_owned(), QUANTITIES[self.random.below(QUANTITIES.len())].into())
                });
                Value::Object(amounts.collect::<Map<_, _>>())
            }
            "Time" | "Raw" => Value::Null,
            other => panic!("unknown kind of field: {other}"),
        }
    }
}

/// Records every scalar below `value` under the name of its field.
fn collect(name: &str, value: &Value, known: &mut BTreeMap<String, Vec<Value>>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(name, value)| collect(name, value, known)),
        Value::Array(items) => items.iter().for_each(|item| collect(name, item, known)),
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            known.entry(name.to_owned()).or_default().push(value.clone());
        }
    }
}

fn fits(value: &Value, kind: &str) -> bool {
    match kind {
        "string" | "Quantity" => value.is_string(),
        "int32" => value.as_i64().is_some_and(|number| i32::try_from(number).is_ok()),
        "int64" => value.is_i64(),
        "bool" => value.is_boolean(),
        "IntOrString" => {
            value.is_string() || value.as_i64().is_some_and(|number| i32::try_from(number).is_ok())
        }
        _ => false,
    }
}
