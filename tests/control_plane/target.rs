//! Our result of a server-side apply of a manifest to a live object, compared with the API server's
//! answer to the same apply as a dry run.

mod emptied;
mod migration;
mod odd;
mod planned;
mod schema;
mod server;
mod story;

use std::collections::BTreeMap;

use daemonset::model::{DesiredDaemonSet, ManifestFile, TEMPLATE_GENERATION_ANNOTATION};
use jiff::Timestamp;
use kube::Client;
use manifest::{self, FieldValidation, Options};
use planner::plan::settled;
use serde_json::{Value, json};
use ssa::{self, DAEMON_SET, Error, FieldPath, Literal, Manager, Manifest, Merged, PathStep};

use crate::harness::{Component, ControlPlane, kubernetes};
use server::{Answer, Run};
use testkit::random::Random;

/// A control plane of etcd and the API server only.
fn api_server() -> ControlPlane {
    ControlPlane::builder()
        .without(Component::ControllerManager)
        .without(Component::Scheduler)
        .without(Component::Kwok)
        .start()
}

/// The field manager of the applies.
const APPLIER: &str = "ds-apply";

/// The number of objects and manifests to compare.
const PAIRS: u64 = 200;

/// The number of comparisons by result.
type Count = BTreeMap<&'static str, usize>;

/// One object and one manifest, and the comparisons so far.
struct Case<'c> {
    client: &'c Client,
    name: String,
    applied: Value,
    count: &'c mut Count,
}

#[tokio::test]
async fn the_result_of_an_apply_matches_the_server() {
    if !kubernetes::keeps_templates_as_sent() {
        return;
    }
    let plane = api_server();
    let client = plane.client();
    let (mut count, mut wrong) = (Count::new(), Vec::new());
    for seed in 0..PAIRS {
        let mut random = Random::seeded(seed);
        let name = format!("ds-{seed}");
        let reported = story::live(&plane, &client, &mut random, &name).await;
        let mut applied = story::to_apply(&mut random, &name);
        // Half of them as `ds-apply` would send them.
        if random.one_in(2) {
            applied = written(&applied).unwrap_or(applied);
        }
        let mut case = Case { client: &client, name, applied, count: &mut count };
        if let Err(difference) = case.judge().await {
            let Case { applied, .. } = case;
            let reported = reported.join("\n  ");
            wrong.push(format!("seed {seed}\n  {reported}\n  applied {applied}\n{difference}"));
        }
    }
    println!("{count:?}");
    assert!(wrong.is_empty(), "{} wrong, {count:?}\n{}", wrong.len(), wrong.join("\n"));
    let seen = |kind: &str| count.get(kind).copied().unwrap_or_default();
    for (kind, least) in [
        ("objects", 250),
        ("conflicts", 80),
        ("failures", 4),
        ("migrated", 60),
        ("settled", 100),
        ("emptied", 5),
    ] {
        assert!(seen(kind) >= least, "only {} of {kind}: {count:?}", seen(kind));
    }
}

impl Case<'_> {
    /// Compares three times: with the live object, after the fields of client-side apply were
    /// handed over, and after the apply itself.
    async fn judge(&mut self) -> Result<(), String> {
        let live = server::get(self.client, &self.name).await;
        self.compare(live.as_ref(), false).await?;
        self.compare(live.as_ref(), true).await?;
        let Some(live) = live else { return Ok(()) };
        if let Some(live) = migration::migrate(self.client, &live).await? {
            *self.count.entry("migrated").or_default() += 1;
            let after = |difference| format!("after the migration: {difference}");
            self.compare(Some(&live), false).await.map_err(after)?;
            self.compare(Some(&live), true).await.map_err(after)?;
        }
        let live = server::get(self.client, &self.name).await;
        let sent = settled(live.as_ref(), self.applied.clone());
        let applied = server::apply(self.client, &sent, APPLIER, true, Run::Real).await;
        let Answer::Object(live) = applied else { return Ok(()) };
        if sent == self.applied {
            return self.settled(&live);
        }
        // Emptied fields are owned by us only after the manifest was applied unchanged.
        *self.count.entry("emptied").or_default() += 1;
        self.compare(Some(&live), false).await?;
        let again = server::apply(self.client, &self.applied, APPLIER, false, Run::Real).await;
        let Answer::Object(again) = again else { return Err(format!("once more: {again:?}")) };
        equal("object, sent plainly", &decided(&again), &decided(&live))?;
        self.settled(&again)
    }

    /// Checks that a repeated apply changes nothing.
    fn settled(&mut self, live: &Value) -> Result<(), String> {
        *self.count.entry("settled").or_default() += 1;
        let again = ours(Some(live), &self.applied).map_err(|error| error.to_string())?;
        equal("object, once more", &decided(&defaulted(again.object)), &decided(live))?;
        let owners = timeless(&again.managed_fields.to_value());
        equal("ownership, once more", &owners, &ownership_in(live))?;
        equal("conflicts, once more", &json!(again.conflicts.len()), &json!(0))
    }

    /// Applies by our rules and, as a dry run, on the server; returns the difference.
    async fn compare(&mut self, live: Option<&Value>, force: bool) -> Result<(), String> {
        let ours = ours(live, &self.applied);
        let theirs = server::apply(self.client, &self.applied, APPLIER, force, Run::Dry).await;
        let mut count = |kind| *self.count.entry(kind).or_default() += 1;
        match (ours, theirs) {
            (Ok(ours), Answer::Conflicts(theirs)) => {
                count("conflicts");
                equal("conflicts", &json!(conflicts(&ours)), &json!(theirs))
            }
            (Ok(ours), _) if !ours.conflicts.is_empty() && !force => {
                Err(format!("only we see conflicts: {:?}", conflicts(&ours)))
            }
            (Ok(ours), Answer::Object(theirs)) => {
                count("objects");
                equal("object", &decided(&defaulted(ours.object)), &decided(&theirs))?;
                let owners = timeless(&ours.managed_fields.to_value());
                equal("ownership", &owners, &ownership_in(&theirs))
            }
            (Ok(ours), Answer::Invalid(theirs)) => {
                count("invalid");
                let errors = manifest::validate(&defaulted(ours.object));
                // The immutable selector cannot be validated with one object alone.
                let selector = theirs.contains("field is immutable");
                if errors.is_empty() && !selector { Err(theirs) } else { Ok(()) }
            }
            (Err(Error::Duplicate { path }), Answer::Failed(theirs)) => {
                count("failures");
                let last = upstream_path(&FieldPath(path.0[path.0.len() - 1..].to_vec()));
                let reported = theirs.contains(&format!("duplicate entries for key {last}"));
                if reported { Ok(()) } else { Err(format!("{path} twice, but: {theirs}")) }
            }
            (ours, theirs) => Err(format!("ours {ours:?}\ntheirs {theirs:?}")),
        }
    }
}

/// The manifest as `ds-apply` sends it, if it is valid.
fn written(manifest: &Value) -> Option<Value> {
    desired(manifest).map(|desired| Value::clone(&desired.written))
}

/// The desired DaemonSet of a manifest, if it is valid.
fn desired(manifest: &Value) -> Option<DesiredDaemonSet> {
    let bytes = manifest.to_string().into_bytes();
    let file = ManifestFile { path: "manifest.json".into(), bytes };
    let options = Options {
        default_namespace: "default".into(),
        validate: FieldValidation::Strict,
        policies: None,
        every_file: false,
        not_objects: manifest::NotObjects::Reject,
    };
    manifest::read(&[file], &options).ok()?.daemon_sets.pop()
}

fn ours(live: Option<&Value>, applied: &Value) -> Result<Merged, Error> {
    let defaulted = defaulted(applied.clone());
    let manifest = Manifest { applied, defaulted: &defaulted };
    ssa::apply(&DAEMON_SET, live, manifest, APPLIER, Timestamp::now())
}

fn defaulted(object: Value) -> Value {
    manifest::default_daemon_set(object).unwrap()
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

/// The fields of an object that an apply decides.
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

/// The entries of `managedFields` without timestamps, in an order that does not depend on them.
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

/// The conflicts in the server's format, sorted.
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
