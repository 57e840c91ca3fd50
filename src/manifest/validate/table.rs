//! Tables of broken DaemonSets: a valid one, what is changed in it, and the errors to expect. The
//! tests beside the rules and those on a real API server read the same tables.

use serde::Deserialize;
use serde_json::{Value, json};

#[cfg(test)]
use crate::manifest::RefusedBy;

/// A row: `set` maps paths of the object to their new values; `null` removes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Row {
    pub(crate) name: String,
    pub(crate) set: serde_json::Map<String, Value>,
    /// The errors as texts, in order; none if the object is to be accepted.
    pub(crate) errors: Vec<String>,
    /// Whether it is our rule, and the API server accepts it.
    #[serde(default)]
    pub(crate) ours: bool,
}

/// The rows of a table.
pub(crate) fn rows(table: &str) -> Vec<Row> {
    serde_yaml::from_str(table).expect("the table is a list of rows")
}

impl Row {
    /// The valid DaemonSet, changed.
    pub(crate) fn object(&self) -> Value {
        let mut object = valid();
        for (path, value) in &self.set {
            *place(&mut object, path) = value.clone();
        }
        plain(object)
    }
}

/// A DaemonSet without errors, as it is after defaulting.
pub(crate) fn valid() -> Value {
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

/// The place that a path such as `spec.containers[0].name` leads to, made if it is not there.
/// `pod.` stands for the pod of the template, `main.` for its first container.
fn place<'a>(object: &'a mut Value, path: &str) -> &'a mut Value {
    let path = path
        .replacen("main.", "pod.containers[0].", usize::from(path.starts_with("main.")))
        .replacen(
            "pod.",
            "spec.template.spec.",
            usize::from(path.starts_with("main.") || path.starts_with("pod.")),
        );
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

/// Without `null`, which is the same as nothing for the API server too, and with
/// `repeat:COUNT:TEXT` written out.
fn plain(value: Value) -> Value {
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

/// Every row of a table must give its errors, and nothing else.
#[cfg(test)]
pub(crate) fn check(table: &str) {
    let mut wrong = vec![];
    for row in rows(table) {
        let found = super::validate(&row.object());
        let errors: Vec<String> = found.iter().map(ToString::to_string).collect();
        let is_only_ours =
            !errors.is_empty() && found.iter().all(|e| e.refused_by == RefusedBy::DsPlan);
        if errors != row.errors || row.ours != is_only_ours {
            wrong.push(format!("{}\n  got  {errors:#?}\n  want {:#?}", row.name, row.errors));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
