//! The object to send so that a second apply of the same manifest changes nothing.
//!
//! A struct that the manifest empties (`securityContext: {}`) is removed by the first apply and
//! added by the next one (`ssa::Settling`). A rollout applies its manifest twice, at the
//! beginning and to restore the strategy: the second apply must not create another template.

use jiff::Timestamp;
use serde_json::Value;

use super::document::Warning;
use daemonset::model::{DaemonSetKey, FIELD_MANAGER};
use manifest::default_daemon_set;
use ssa::{self, Attempt, DAEMON_SET, FieldPath, Manifest};

/// Returns the object to send instead of `applied`: the same object if it empties no struct.
pub fn settled(live: Option<&Value>, applied: Value) -> Value {
    let settling = attempt(live, &applied).and_then(|attempt| {
        let settling = attempt.under(attempt.owners()).settling()?;
        Some(settling.applied)
    });
    settling.unwrap_or(applied)
}

/// Whether an apply leaves the live pod template unchanged by the rules of server-side apply.
/// Admission webhooks may still change it on the server.
pub fn keeps_template(live: &Value, applied: &Value) -> bool {
    let merged = attempt(Some(live), applied)
        .map(|attempt| attempt.under(attempt.owners()).merged().object)
        .and_then(|object| default_daemon_set(object).ok());
    merged.is_some_and(|object| object.pointer("/spec/template") == live.pointer("/spec/template"))
}

/// Returns the fields of a live object that `ds-apply` owns; applying them again changes nothing.
/// `None` when it owns none, or the managed fields cannot be read.
pub fn owned(live: &Value) -> Option<Value> {
    ssa::owned_by(&DAEMON_SET, live, FIELD_MANAGER).ok().flatten()
}

/// `None` when the two cannot be merged: the server reports the error.
fn attempt<'m>(live: Option<&Value>, applied: &'m Value) -> Option<Attempt<'m>> {
    let manifest = Manifest { applied, defaulted: applied };
    // The time is written to `managedFields` only, which is not used here.
    Attempt::new(&DAEMON_SET, live, manifest, FIELD_MANAGER, Timestamp::UNIX_EPOCH).ok()
}

/// A warning about the structs that the manifest empties and the first apply would remove: `first`
/// is the object after that apply, `after` the object after any further one.
pub(super) fn warning(
    key: &DaemonSetKey,
    emptied: &[FieldPath],
    first: &Value,
    after: &Value,
) -> Option<Warning> {
    let differs = |path: &&FieldPath| {
        let [first, after] = [first, after].map(|object| ssa::value_at(&DAEMON_SET, object, path));
        first != after
    };
    let paths: Vec<String> =
        emptied.iter().filter(differs).map(|path| format!("`{path}`")).collect();
    let (is, it) = match paths.len() {
        0 => return None,
        1 => ("is", "it"),
        _ => ("are", "them"),
    };
    let paths = paths.join(", ");
    Some(Warning {
        code: "emptiedFields".to_owned(),
        message: format!(
            "{paths} {is} `{{}}` in the manifest and not empty in the cluster: a server-side apply \
             removes {it}, and the next one adds `{{}}`, which creates two revisions. ds-apply \
             sends the final form at once, other tools do not: remove {it} from the manifest"
        ),
        daemon_set: Some(key.to_string()),
        nodes: Vec::new(),
    })
}
