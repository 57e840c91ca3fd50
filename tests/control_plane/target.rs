//! What we say that server-side apply makes of a live object and a manifest, compared with what
//! the API server answers to the same apply as a dry run.

mod manifests;
mod schema;
mod server;
mod story;

use std::collections::BTreeMap;

use ds_plan::manifest;
use ds_plan::merge::{self, Manager, Manifest, Merged};
use ds_plan::model::{FieldPath, Literal, PathStep, TEMPLATE_GENERATION_ANNOTATION};
use jiff::Timestamp;
use kube::Client;
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::harness::{Component, ControlPlane};
use server::{Answer, Run};

/// Only the store and the API server.
fn api_server() -> ControlPlane {
    ControlPlane::builder()
        .without(Component::ControllerManager)
        .without(Component::Scheduler)
        .without(Component::Kwok)
        .start()
}

/// How the comparisons came out, by kind.
type Count = BTreeMap<&'static str, usize>;

#[tokio::test]
async fn what_an_apply_makes_is_what_the_server_makes() {
    let plane = api_server();
    let client = plane.client();
    let (mut count, mut wrong) = (Count::new(), Vec::new());
    for seed in 0..160 {
        let mut dice = Dice::new(seed);
        let name = format!("ds-{seed}");
        let told = story::live(&plane, &client, &mut dice, &name).await;
        let live = server::get(&client, &name).await;
        let applied = match dice.below(4) {
            0 => manifests::part(&mut dice, &name),
            _ => manifests::whole(&mut dice, &name),
        };
        for force in [false, true] {
            if let Err(difference) = compare(&client, live.as_ref(), &applied, force, &mut count).await
            {
                wrong.push(report(seed, &told, live.as_ref(), &applied, force, &difference));
            }
        }
    }
    println!("{count:?}");
    assert!(wrong.is_empty(), "{} wrong, {count:?}\n{}", wrong.len(), wrong.join("\n"));
}

fn report(
    seed: u64,
    told: &[String],
    live: Option<&Value>,
    applied: &Value,
    force: bool,
    difference: &str,
) -> String {
    let live = live.map(Value::to_string).unwrap_or_default();
    format!(
        "seed {seed}, force {force}\n  {}\n  live {live}\n  applied {applied}\n{difference}",
        told.join("\n  ")
    )
}

/// Applies by rule and, as a dry run, for real; what differs.
async fn compare(
    client: &Client,
    live: Option<&Value>,
    applied: &Value,
    force: bool,
    count: &mut Count,
) -> Result<(), String> {
    let defaulted = manifest::default_daemon_set(applied.clone()).unwrap();
    let manifest = Manifest { applied, defaulted: &defaulted };
    let ours = merge::apply(live, manifest, "ds-apply", Timestamp::now());
    let theirs = server::apply(client, applied, "ds-apply", force, Run::Dry).await;
    match (ours, theirs) {
        (Ok(ours), Answer::Conflicts(theirs)) => {
            *count.entry("conflicts").or_default() += 1;
            equal("conflicts", &json!(conflicts(&ours)), &json!(theirs))
        }
        (Ok(ours), _) if !ours.conflicts.is_empty() && !force => {
            Err(format!("only we see conflicts: {:?}", conflicts(&ours)))
        }
        (Ok(ours), Answer::Object(theirs)) => {
            *count.entry("objects").or_default() += 1;
            let object = manifest::default_daemon_set(ours.object).unwrap();
            equal("object", &decided(&object), &decided(&theirs))?;
            equal("ownership", &timeless(&ours.managed_fields.to_value()), &ownership_in(&theirs))
        }
        (Ok(ours), Answer::Invalid(theirs)) => {
            *count.entry("invalid").or_default() += 1;
            let object = manifest::default_daemon_set(ours.object).unwrap();
            let errors = manifest::validate(&object);
            if errors.is_empty() { Err(format!("only the server finds {theirs}")) } else { Ok(()) }
        }
        (Err(_), Answer::Failed(_)) => {
            *count.entry("failures").or_default() += 1;
            Ok(())
        }
        (ours, theirs) => Err(format!("ours {ours:?}\ntheirs {theirs:?}")),
    }
}

fn equal(what: &str, ours: &Value, theirs: &Value) -> Result<(), String> {
    if ours == theirs {
        return Ok(());
    }
    let text = |value| serde_json::to_string_pretty(value).unwrap();
    let (ours, theirs) = (text(ours), text(theirs));
    let diff = similar::TextDiff::from_lines(&theirs, &ours);
    Err(format!("{what}: - theirs, + ours\n{}", diff.unified_diff().context_radius(8)))
}

/// Of an object, what an apply decides.
fn decided(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let mut annotations = metadata["annotations"].clone();
    if let Value::Object(annotations) = &mut annotations {
        annotations.remove(TEMPLATE_GENERATION_ANNOTATION);
    }
    if annotations == json!({}) {
        annotations = Value::Null;
    }
    json!({
        "labels": metadata["labels"], "annotations": annotations, "spec": object["spec"],
        "finalizers": metadata["finalizers"], "ownerReferences": metadata["ownerReferences"],
    })
}

/// The entries without their times, and in an order that does not depend on them.
fn timeless(entries: &Value) -> Value {
    let mut entries = entries.as_array().cloned().unwrap_or_default();
    for entry in &mut entries {
        entry.as_object_mut().unwrap().remove("time");
    }
    entries.sort_by_key(|entry| {
        ["operation", "manager", "apiVersion", "subresource"].map(|key| entry[key].to_string())
    });
    entries.into()
}

fn ownership_in(object: &Value) -> Value {
    timeless(&object["metadata"]["managedFields"])
}

/// In the server's words, sorted.
fn conflicts(merged: &Merged) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for conflict in &merged.conflicts {
        let field = upstream_path(&conflict.path);
        let message = |manager: &Manager| format!("conflict with {manager}");
        all.extend(conflict.managers.iter().map(|manager| (field.clone(), message(manager))));
    }
    all.sort();
    all
}

/// A path as the server prints it.
fn upstream_path(path: &FieldPath) -> String {
    let literal = |literal: &Literal| match literal {
        Literal::Text(text) => format!("{text:?}"),
        other => other.to_string(),
    };
    let step = |step: &PathStep| match step {
        PathStep::Field(name) => format!(".{name}"),
        PathStep::Key(keys) => {
            let keys = keys.iter().map(|(name, value)| format!("{name}={}", literal(value)));
            format!("[{}]", keys.collect::<Vec<_>>().join(","))
        }
        PathStep::Value(value) => format!("[={}]", literal(value)),
        PathStep::Index(at) => format!("[{at}]"),
    };
    path.0.iter().map(step).collect()
}
