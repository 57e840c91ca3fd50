//! The scenarios, by topic.

mod history;
mod nodes;
mod outages;
mod owners;
mod pods;
mod rolling;
mod surge;
mod wants;

use serde_json::{Value, json};

use super::step::Scenario;

pub(super) fn scenarios() -> Vec<Scenario> {
    let all = [
        rolling::scenarios(),
        surge::scenarios(),
        history::scenarios(),
        pods::scenarios(),
        owners::scenarios(),
        nodes::scenarios(),
        wants::scenarios(),
        outages::scenarios(),
    ];
    all.into_iter().flatten().collect()
}

/// The plain manifest without changes.
fn plain() -> Value {
    json!({})
}

/// The image of the template's container; its last word selects how it behaves (`stages/pod.yaml`).
fn image(tag: &str) -> Value {
    pod_spec(&json!({"containers": [{"name": "main", "image": format!("agent:{tag}")}]}))
}

/// The same image for pods that take two seconds to become ready.
fn slow_image(tag: &str) -> Value {
    and([image(tag), template(&json!({"metadata": {"annotations": {"ready-after": "2s"}}}))])
}

fn pod_spec(change: &Value) -> Value {
    template(&json!({ "spec": change }))
}

fn template(change: &Value) -> Value {
    spec(&json!({ "template": change }))
}

fn spec(change: &Value) -> Value {
    json!({ "spec": change })
}

fn on_delete() -> Value {
    spec(&json!({"updateStrategy": {"type": "OnDelete"}}))
}

/// A strategy with this `maxUnavailable`.
fn at_most(number: impl Into<Value>) -> Value {
    let limits = json!({"maxUnavailable": number.into()});
    spec(&json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": limits}}))
}

/// A strategy with this `maxSurge`, and `maxUnavailable: 0`.
fn surge(number: impl Into<Value>) -> Value {
    let limits = json!({"maxUnavailable": 0, "maxSurge": number.into()});
    spec(&json!({"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": limits}}))
}

/// All changes merged; a `null` is kept.
fn and<const COUNT: usize>(changes: [Value; COUNT]) -> Value {
    let mut all = plain();
    for change in changes {
        add(&mut all, change);
    }
    all
}

fn add(all: &mut Value, change: Value) {
    match (all, change) {
        (Value::Object(all), Value::Object(change)) => {
            for (key, value) in change {
                add(all.entry(key).or_insert(Value::Null), value);
            }
        }
        (all, change) => *all = change,
    }
}
