//! Whether the live object is as the source has it, and who wrote what is not.
//!
//! What a hold changes for its time is the hold's, not a difference: the strategy, and while it is
//! parked the template. Provenance is no difference either.

use serde_json::Value;

use super::document::Deviation;
use crate::controller::revision_data::{Matching, matches};
use crate::model::{DaemonSet, DesiredDaemonSet, Revision};
use crate::plan::hold::{Hold, HoldState};
use crate::plan::object;
use crate::plan::writers::Writers;

/// The live object, and what is known of how it came about.
pub(super) struct Live<'a> {
    /// The object.
    pub object: &'a DaemonSet,
    /// The hold that it is under.
    pub hold: Option<&'a Hold>,
    /// Its revisions.
    pub revisions: &'a [&'a Revision],
    /// Who wrote it.
    pub writers: &'a Writers,
}

/// The fields of the live object that are not as in the source.
pub(super) fn deviations(
    live: &Live<'_>,
    desired: &DesiredDaemonSet,
    show_values: bool,
) -> Vec<Deviation> {
    let mut before = live.object.raw.as_ref().clone();
    if let Some(hold) = live.hold {
        undo_hold(&mut before, live, desired, hold);
    }
    let changes = object::deviations(&before, &desired.raw, show_values);
    let with_writers = changes.into_iter().map(|change| {
        // A field that the cluster lacks has no writer; what is around it was written by others.
        let writers = change.before.as_ref().map(|_| live.writers.of_field(&change.path));
        Deviation::FieldDiffers { change, writers: writers.unwrap_or_default() }
    });
    with_writers.collect()
}

/// Puts back what the hold has changed.
fn undo_hold(before: &mut Value, live: &Live<'_>, desired: &DesiredDaemonSet, hold: &Hold) {
    before["spec"]["updateStrategy"] = hold.declared.clone();
    let is_good = |revision: &&Revision| {
        hold.from.as_ref().is_some_and(|from| from.name == revision.name)
            && matches(live.object.spec.template.raw(), &revision.data, Matching::Tolerant)
    };
    match hold.state {
        HoldState::Holding => {}
        // Another template than the last good one is somebody's edit.
        HoldState::Parked => {
            if live.revisions.iter().any(is_good) {
                before["spec"]["template"] = desired.spec.template.raw().clone();
            }
        }
    }
}
