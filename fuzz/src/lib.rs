//! Readers of bytes that others wrote, one function each: what it reads or rejects, it does without
//! a panic, and what it has read keeps its laws.
//!
//! Not here, because they are private: nodes and pods as protobuf (`decode/protobuf/tests.rs` in
//! `crates/cluster`), kustomizations (`kustomize/tests.rs` in `crates/source`) and the answers to
//! checks (`tests/attacks`). Random cases of their own damage these.

use cluster::read_recorded_from;
use daemonset::model::{LabelSelector, ManifestFile};
use manifest::quantity::{Rounding, canonical};
use manifest::{FieldValidation, NotObjects, Options};
use planner::plan::Plan;
use ssa::ManagedFields;

/// A reader, by the name of its target and of the folder with its inputs.
pub type Reader = (&'static str, fn(&[u8]));

/// All of them.
pub const READERS: [Reader; 7] = [
    ("managed_fields", managed_fields),
    ("manifest", manifest),
    ("policy", policy),
    ("quantity", quantity),
    ("recording", recording),
    ("saved_plan", saved_plan),
    ("selector", selector),
];

fn file(bytes: &[u8]) -> ManifestFile {
    ManifestFile { path: "f.yaml".into(), bytes: bytes.to_vec() }
}

/// Manifests of DaemonSets: an error has a place and a message.
pub fn manifest(bytes: &[u8]) {
    let options = Options {
        default_namespace: "default".into(),
        validate: FieldValidation::Strict,
        policies: None,
        every_file: false,
        not_objects: NotObjects::Reject,
    };
    let Err(errors) = manifest::read(&[file(bytes)], &options) else { return };
    for error in &errors {
        let text = error.to_string();
        let placed = error
            .place()
            .is_none_or(|place| place.line > 0 && place.column > 0 && text.starts_with("f.yaml:"));
        assert!(placed && text.len() >= 10, "{error:?}");
    }
}

/// Policies alone, as `--policy` reads them.
pub fn policy(bytes: &[u8]) {
    if let Err(errors) = manifest::read_policies(&[file(bytes)]) {
        assert!(errors.into_iter().all(|error| !error.to_string().is_empty()));
    }
}

/// A recording of a cluster: an error names its file.
pub fn recording(bytes: &[u8]) {
    if let Err(error) = read_recorded_from(bytes, "s.json") {
        assert!(error.to_string().contains("s.json"), "{error:?}");
    }
}

/// A selector of `-l`.
pub fn selector(bytes: &[u8]) {
    if let Ok(text) = str::from_utf8(bytes) {
        let _ = text.parse::<LabelSelector>();
    }
}

/// A quantity: its canonical form is its own.
pub fn quantity(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(once) = canonical(text, Rounding::Exact) else { return };
    let twice = canonical(&once, Rounding::Exact).ok();
    assert_eq!(twice.as_ref(), Some(&once), "{text:?}");
}

/// The owners of an object's fields: written and read again, they are the same.
pub fn managed_fields(bytes: &[u8]) {
    let Ok(list) = serde_json::from_slice(bytes) else { return };
    let object = |list: serde_json::Value| serde_json::json!({"metadata": {"managedFields": list}});
    let Ok(read) = ManagedFields::of(&object(list)) else { return };
    let written = read.to_value();
    let again = ManagedFields::of(&object(written.clone())).map(|it| it.to_value());
    assert_eq!(again.ok(), Some(written));
}

/// A saved plan: written and read again, it is the same.
pub fn saved_plan(bytes: &[u8]) {
    let Ok(plan) = serde_json::from_slice::<Plan>(bytes) else { return };
    let Ok(written) = serde_json::to_vec(&plan) else { return };
    let again = serde_json::from_slice::<Plan>(&written);
    assert_eq!(again.ok().and_then(|it| serde_json::to_vec(&it).ok()), Some(written));
}
