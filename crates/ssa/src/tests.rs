//! Properties of merging on random histories, then a table with a row for each kind of field.

mod kinds;
mod laws;
mod migration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{DAEMON_SET, Manifest, Merged};
use manifest::default_daemon_set;

/// A fixed time.
fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

fn defaulted(object: &Value) -> Value {
    default_daemon_set(object.clone()).unwrap()
}

fn apply(live: Option<&Value>, applied: &Value, manager: &str) -> Merged {
    let manifest = Manifest { applied, defaulted: &defaulted(applied) };
    super::apply(&DAEMON_SET, live, manifest, manager, now()).unwrap()
}

/// The object as the server would serve it after a forced apply.
fn served(live: Option<&Value>, applied: &Value, manager: &str) -> Value {
    let merged = apply(live, applied, manager);
    let mut object = defaulted(&merged.object);
    object["metadata"]["managedFields"] = merged.managed_fields.to_value();
    object
}

/// `live` as if `manager` had written its fields without server-side apply.
fn updated_by(live: &mut Value, manager: &str) {
    for entry in live["metadata"]["managedFields"].as_array_mut().unwrap() {
        if entry["manager"] == manager {
            entry["operation"] = json!("Update");
        }
    }
}
