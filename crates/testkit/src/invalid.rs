//! Tables of invalid DaemonSets, one for each file of rules: a valid object, the changes to it, and
//! the expected errors. Shared with the tests on a real API server, which must return the same
//! errors.

use serde::Deserialize;
use serde_json::{Value, json};

/// A row: `set` maps paths of the object to their new values; `null` removes.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    pub name: String,
    pub set: serde_json::Map<String, Value>,
    /// The expected messages, in order; empty if the object is accepted.
    pub errors: Vec<String>,
    /// The expected warnings of the API server; in the table of warnings only.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The expected warnings of `ds-plan`, which the API server does not have; in the table of
    /// warnings only.
    #[serde(default)]
    pub own_warnings: Vec<String>,
    /// `true` for a rule of `ds-plan`: the API server accepts the object.
    #[serde(default)]
    pub ours: bool,
}

/// Parses the rows of a table.
pub fn rows(table: &str) -> Vec<Row> {
    serde_yaml::from_str(table).expect("the table is a list of rows")
}

impl Row {
    /// The valid DaemonSet with the changes of the row.
    pub fn object(&self) -> Value {
        let mut object = valid();
        for (path, value) in &self.set {
            *place(&mut object, path) = value.clone();
        }
        plain(object)
    }
}

/// A DaemonSet without errors, as it is after defaulting.
pub fn valid() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "namespace": "default"},
        "spec": {
            "revisionHistoryLimit": 10,
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {
                "metadata": {"labels": {"app": "agent"}},
                "spec": {
                    "containers": [container("main"), container("side")],
                    "initContainers": [container("init")],
                    "volumes": [
                        {"name": "scratch", "emptyDir": {}},
                        {"name": "data", "persistentVolumeClaim": {"claimName": "data"}},
                    ],
                    "dnsPolicy": "ClusterFirst",
                    "restartPolicy": "Always",
                    "schedulerName": "default-scheduler",
                    "securityContext": {},
                    "terminationGracePeriodSeconds": 30,
                },
            },
            "updateStrategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
            },
        },
    })
}

fn container(name: &str) -> Value {
    json!({
        "name": name,
        "image": "cr.example/agent:1",
        "imagePullPolicy": "IfNotPresent",
        "resources": {},
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    })
}

/// Expands a row's path: `pod.` is the pod of the template, `main.` its first container.
pub fn full_path(path: &str) -> String {
    let pod = "spec.template.spec.";
    match (path.strip_prefix("main."), path.strip_prefix("pod.")) {
        (Some(rest), _) => format!("{pod}containers[0].{rest}"),
        (None, Some(rest)) => format!("{pod}{rest}"),
        (None, None) => path.to_owned(),
    }
}

/// The value at a path such as `spec.containers[0].name`; created if it is absent.
fn place<'a>(object: &'a mut Value, path: &str) -> &'a mut Value {
    let path = full_path(path);
    let steps = path.split(['.', '[']).filter(|step| !step.is_empty());
    steps.fold(object, |at, step| match step.strip_suffix(']') {
        Some(index) => {
            let index: usize = index.parse().expect("a number between brackets");
            if at.is_null() {
                *at = json!([]);
            }
            let items = at.as_array_mut().expect("a list before the bracket");
            while items.len() <= index {
                items.push(Value::Null);
            }
            &mut items[index]
        }
        None => &mut at[step],
    })
}

/// Removes `null`, which means absent to the API server too, and expands `repeat:COUNT:TEXT`.
pub fn plain(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let kept = map.into_iter().filter(|(_, value)| !value.is_null());
            kept.map(|(key, value)| (key, plain(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(plain).collect(),
        Value::String(text) => Value::String(written_out(&text)),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_)) => other,
    }
}

fn written_out(text: &str) -> String {
    let parts = text.strip_prefix("repeat:").and_then(|rest| rest.split_once(':'));
    parts.map_or_else(
        || text.to_owned(),
        |(count, text)| text.repeat(count.parse().expect("a number")),
    )
}
