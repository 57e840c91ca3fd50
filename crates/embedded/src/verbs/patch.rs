//! Patches of an existing object: JSON merge patch and JSON patch (upstream: `jsonPatcher`).
//!
//! Strategic merge patch is not supported; no client here sends it.

use std::sync::Arc;

use json_patch::PatchOperation;
use serde_json::Value;

use super::update::check_place;
use super::{Ownership, Part, Target, Verbs, strategy};
use crate::{Cause, Object, Reason, Status};

/// A patch.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patch<'a> {
    /// RFC 7386: `application/merge-patch+json`.
    Merge(&'a Value),
    /// RFC 6902: `application/json-patch+json`.
    Json(&'a [PatchOperation]),
}

impl Verbs<'_> {
    /// Patches an object. A `resourceVersion` and a `uid` in the result must be those of the live
    /// object.
    ///
    /// # Errors
    /// 404 if it does not exist; 409 for another version; 422 for another uid, a failed test, or
    /// violations of the API's rules.
    pub(crate) fn patch(
        &mut self,
        target: Target<'_>,
        patch: Patch<'_>,
    ) -> Result<Arc<Object>, Status> {
        let live = self.get(target)?;
        let mut object = live.value();
        match patch {
            Patch::Merge(patch) => json_patch::merge(&mut object, patch),
            Patch::Json(operations) => {
                json_patch::patch(&mut object, operations).map_err(|_| refused())?;
            }
        }
        if !object.is_object() {
            return Err(Status::bad_request("the patch leaves no object"));
        }
        if target.part == Part::Main {
            strategy::default(target.kind, &mut object).map_err(|status| unreadable(&status))?;
        }
        check_place(target, &mut object)?;
        self.replace(target, &live, object, Ownership::Recorded)
    }
}

/// The error for a patched object that does not have its kind's shape.
fn unreadable(status: &Status) -> Status {
    let cause = Cause {
        reason: "FieldValueInvalid",
        message: format!("Invalid value: {}", status.message),
        field: "patch".to_owned(),
    };
    let message = format!(" \"\" is invalid: patch: {}", cause.message);
    Status::new(Reason::Invalid, message).because(&[cause])
}

/// The error for any other invalid patch, without details as in upstream (`applyJSPatch`).
fn refused() -> Status {
    let why = "the server rejected our request due to an error in our request";
    Status::new(Reason::Invalid, why).without_details()
}
