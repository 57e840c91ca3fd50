//! Objects with a part that cannot be decoded: keeps the rest.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::ObjectError;
use daemonset::model::{ContainerFailure, Pod, PodPhase, Unreadable};

/// The longest path of a field in messages, in characters.
const PATH_LENGTH: usize = 120;

/// The reason of a pod whose status cannot be decoded.
const UNREADABLE: &str = "StatusUnreadable";

/// Removes one field from an object, however deep it is nested; `None` when `json` is not an
/// object or does not have the field.
pub(super) fn without(json: &str, field: &str) -> Option<String> {
    let mut fields: BTreeMap<String, &RawValue> = serde_json::from_str(json).ok()?;
    fields.remove(field)?;
    serde_json::to_string(&fields).ok()
}

/// Marks a pod whose status cannot be decoded as not Ready. Its phase is kept if it can be read,
/// because a terminated pod is replaced.
pub(super) fn is_not_ready(pod: &mut Pod, error: &ObjectError, json: &str) {
    pod.phase = phase(json).unwrap_or(PodPhase::Unknown);
    pod.container_failure = Some(Box::new(ContainerFailure {
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

/// An unreadable object, for display.
pub(super) fn reported(error: ObjectError) -> Unreadable {
    let reason = reason(&error);
    let whole = error.name.unwrap_or_default();
    let (namespace, name) = match whole.split_once('/') {
        Some((namespace, name)) => (Some(namespace.into()), name.to_owned()),
        None => (None, whole),
    };
    Unreadable { kind: error.kind.as_str(), namespace, name, reason }
}

/// The path of the field, truncated, and the cause.
fn reason(error: &ObjectError) -> String {
    let ObjectError { path, reason, .. } = error;
    match path.char_indices().nth(PATH_LENGTH) {
        Some((end, _)) => format!("{}…: {reason}", &path[..end]),
        None if path.is_empty() => reason.clone(),
        None => format!("{path}: {reason}"),
    }
}
