//! Readers of bytes that others wrote, one function each: what it reads or rejects, it does without
//! a panic, and what it has read keeps its laws.
//!
//! Not here are private readers. Nodes and pods as protobuf (`decode/protobuf/tests.rs` in
//! `crates/cluster`) and the answers of Prometheus (`prometheus/tests.rs` in `crates/checks`) have
//! random cases next to their code. Tables of cases are all that kustomizations (but for their
//! paths), addresses of repositories, approvals, the holder of a lock and the lines of a watch have.

use std::sync::Arc;
use std::time::Duration;

use cluster::read_recorded_from;
use daemonset::model::{
    CheckEndpoint, CheckQuestion, CheckResponse, DaemonSet, DaemonSetKey, DaemonSetStatus, Faults,
    LabelSelector, Labels, ManagedBy, ManifestFile, RehearsedCheck, Soak, Span, StepsNote,
};
use manifest::quantity::{Rounding, canonical};
use manifest::{FieldValidation, NotObjects, Options};
use planner::annotations::ROLLOUT_ANNOTATION;
use planner::check_answers::CheckAnswers;
use planner::plan::{PausedRollout, Plan};
use serde_json::{Value, json};
use ssa::ManagedFields;

/// A reader, by the name of its target and of the folder with its inputs.
pub type Reader = (&'static str, fn(&[u8]));

/// All of them.
pub const READERS: [Reader; 11] = [
    ("check_answers", check_answers),
    ("faults", faults),
    ("managed_fields", managed_fields),
    ("manifest", manifest),
    ("pause", pause),
    ("policy", policy),
    ("quantity", quantity),
    ("recording", recording),
    ("saved_plan", saved_plan),
    ("selector", selector),
    ("steps_note", steps_note),
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
    let object = |list: Value| json!({"metadata": {"managedFields": list}});
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

/// The annotation of a lease with the progress of steps: written and read again, it is the same.
pub fn steps_note(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Some(note) = StepsNote::read(text) else { return };
    assert_eq!(StepsNote::read(&note.text()), Some(note));
}

/// The annotation of a DaemonSet that is paused: it can be shown; written and read again, it is the
/// same.
pub fn pause(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let Ok(Some(pause)) = PausedRollout::of(&paused(text)) else { return };
    assert!(!pause.to_string().is_empty());
    let Ok(written) = serde_json::to_string(&pause) else { return };
    let again = PausedRollout::of(&paused(&written)).ok().flatten();
    assert_eq!(again.and_then(|it| serde_json::to_string(&it).ok()), Some(written));
}

/// A DaemonSet that is paused if this is the value of its annotation.
fn paused(annotation: &str) -> DaemonSet {
    let spec = json!({
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": []}},
        "updateStrategy": {"type": "OnDelete"},
    });
    DaemonSet {
        key: DaemonSetKey::new("logging", "agent"),
        managed_by: ManagedBy::DaemonSetController,
        uid: "uid-agent".into(),
        generation: 1,
        labels: Labels::default(),
        annotations: [(ROLLOUT_ANNOTATION, annotation)].into_iter().collect(),
        created: None,
        terminating: false,
        spec: serde_json::from_value(spec).unwrap(),
        status: DaemonSetStatus::default(),
        raw: Arc::new(Value::Null),
    }
}

/// The faults of a rehearsal: of the answers of a check for the same time, the last one counts.
pub fn faults(bytes: &[u8]) {
    let Ok(text) = str::from_utf8(bytes) else { return };
    let faults = match serde_saphyr::from_str::<Faults>(text) {
        Ok(faults) => faults,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let Some(last) = faults.checks.last() else { return };
    let from = last.from.map_or(Duration::ZERO, |Span(from)| from);
    if last.to.is_none_or(|Span(to)| from < to) {
        let answer = RehearsedCheck::answer_at(&faults.checks, &last.check, from);
        assert_eq!(answer, last.answer, "{faults:?}");
    }
}

/// The recorded answers of a rehearsal's checks: written and read again, they are the same, and the
/// recorded time has an answer.
pub fn check_answers(bytes: &[u8]) {
    let Ok(answers) = serde_json::from_slice::<CheckAnswers>(bytes) else { return };
    let Ok(written) = serde_json::to_string(&answers) else { return };
    let again = serde_json::from_str::<CheckAnswers>(&written);
    assert_eq!(again.ok().and_then(|it| serde_json::to_string(&it).ok()), Some(written));
    let Some(first) = answers.answers.first() else { return };
    let question = CheckQuestion {
        name: first.check.clone(),
        endpoint: CheckEndpoint::Cluster,
        daemon_set: first.daemon_set.clone(),
        nodes: Vec::new(),
        others: Vec::new(),
        from: answers.from,
        until: answers.until,
        interval: Soak(60),
    };
    let answer = answers.answer(&question, answers.from);
    assert!(matches!(answer, Some(CheckResponse::Series(_))), "{answer:?}");
}
