//! What has to be sent so that one apply comes to where every further apply of the same manifest
//! stays.
//!
//! A struct that the manifest empties (`securityContext: {}`) is dropped by the server first and
//! stored by the next apply (`merge::Settling`). A rollout writes its manifest twice, at the
//! beginning and to restore the strategy: the second write must not make another template.

use jiff::Timestamp;
use serde_json::Value;

use super::document::Warning;
use crate::manifest::default_daemon_set;
use crate::merge::{self, Attempt, Manifest};
use crate::model::{DaemonSetKey, FIELD_MANAGER, FieldPath};

/// What to send instead of `applied`: the same where it empties nothing.
pub fn settled(live: Option<&Value>, applied: Value) -> Value {
    let settling = attempt(live, &applied).and_then(|attempt| {
        let settling = attempt.under(attempt.owners()).settling()?;
        Some(settling.applied)
    });
    settling.unwrap_or(applied)
}

/// Whether an apply leaves the live pod template exactly as it is, as far as the rules of
/// server-side apply can tell: webhooks have their say on the server.
pub fn keeps_template(live: &Value, applied: &Value) -> bool {
    let merged = attempt(Some(live), applied)
        .map(|attempt| attempt.under(attempt.owners()).merged().object)
        .and_then(|object| default_daemon_set(object).ok());
    merged.is_some_and(|object| object.pointer("/spec/template") == live.pointer("/spec/template"))
}

/// What `ds-apply` owns of a live object, as it is applied again: that changes nothing. `None` when
/// it never applied it, or who owns what cannot be read.
pub fn owned(live: &Value) -> Option<Value> {
    merge::owned_by(live, FIELD_MANAGER).ok().flatten()
}

/// `None` when the two do not merge: the server says so itself.
fn attempt<'m>(live: Option<&Value>, applied: &'m Value) -> Option<Attempt<'m>> {
    let manifest = Manifest { applied, defaulted: applied };
    // Only times in the record of ownership come of it, and nobody looks at them here.
    Attempt::new(live, manifest, FIELD_MANAGER, Timestamp::UNIX_EPOCH).ok()
}

/// A warning about the structs that the manifest empties and that the first apply would drop:
/// `first` is what it makes, `after` what every further one does.
pub(super) fn warning(
    key: &DaemonSetKey,
    emptied: &[FieldPath],
    first: &Value,
    after: &Value,
) -> Option<Warning> {
    let differs = |path: &&FieldPath| merge::value_at(first, path) != merge::value_at(after, path);
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
             drops {it}, and the next one adds `{{}}`, which makes two revisions. ds-apply comes to \
             the second one at once; other tools do not, so leave {it} out of the manifest instead"
        ),
        daemon_set: Some(key.to_string()),
        nodes: Vec::new(),
    })
}
