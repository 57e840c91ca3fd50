//! What is left of an object of which a part cannot be read.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::ObjectError;
use crate::model::{ContainerTrouble, Pod, PodPhase, Unreadable};

/// So much of a field's path is told, in characters.
const PATH_LENGTH: usize = 120;

/// What a pod is waiting for whose status cannot be read.
const UNREADABLE: &str = "StatusUnreadable";

/// The same object without one of its fields, however deep that is nested; `None` when it is no
/// object at all.
pub(super) fn without(json: &str, field: &str) -> Option<String> {
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(json).ok()?;
    fields.remove(field)?;
    serde_json::to_string(&fields).ok()
}

/// A pod whose status could not be read, is not Ready, whatever it says. Its phase is kept if that
/// can be read: a pod that has ended is replaced.
pub(super) fn is_not_ready(pod: &mut Pod, error: &ObjectError, json: &str) {
    pod.phase = phase(json).unwrap_or(PodPhase::Unknown);
    pod.trouble = Some(Box::new(ContainerTrouble {
        container: "".into(),
        reason: UNREADABLE.into(),
        message: reason(error).into(),
    }));
}

fn phase(json: &str) -> Option<PodPhase> {
    #[derive(Deserialize)]
    struct Whole {
        status: Status,
    }
    #[derive(Deserialize)]
    struct Status {
        phase: String,
    }
    Some(match serde_json::from_str::<Whole>(json).ok()?.status.phase.as_str() {
        "Failed" => PodPhase::Failed,
        "Succeeded" => PodPhase::Succeeded,
        "Running" => PodPhase::Running,
        "Pending" => PodPhase::Pending,
        _others => PodPhase::Unknown,
    })
}

/// An object that could not be read, for people.
pub(super) fn told(error: ObjectError) -> Unreadable {
    let reason = reason(&error);
    let whole = error.name.unwrap_or_default();
    let (namespace, name) = match whole.split_once('/') {
        Some((namespace, name)) => (Some(namespace.into()), name.to_owned()),
        None => (None, whole),
    };
    Unreadable { kind: error.kind.as_str(), namespace, name, reason }
}

/// The field, as far as it can be said in few words, and what is wrong there.
fn reason(error: &ObjectError) -> String {
    let ObjectError { path, reason, .. } = error;
    match path.char_indices().nth(PATH_LENGTH) {
        Some((end, _)) => format!("{}…: {reason}", &path[..end]),
        None if path.is_empty() => reason.clone(),
        None => format!("{path}: {reason}"),
    }
}
