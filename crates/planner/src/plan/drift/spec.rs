//! Drift of the object: fields of the live object that differ from the source, and their managers.
//!
//! The temporary changes of a pause are not differences: the update strategy, and while the source
//! declares the template that waits or has failed, the last good template. Neither is provenance.

use std::collections::BTreeSet;

use serde_json::Value;

use super::super::secrets::ShownValues;
use super::document::Deviation;
use crate::digest::template_digest;
use crate::plan::applied::after_apply;
use crate::plan::object;
use crate::plan::pause::{PauseState, PausedRollout};
use crate::plan::writers::Writers;
use daemonset::controller::revision_data::{Matching, matches};
use daemonset::model::{DaemonSet, DesiredDaemonSet, Revision, Snapshot};

/// The live object with its rollout, revisions and field managers.
pub(super) struct Live<'a> {
    /// The live DaemonSet.
    pub object: &'a DaemonSet,
    /// Its paused or aborted rollout.
    pub pause: Option<&'a PausedRollout>,
    /// Whether the source declares the template of that rollout.
    pub is_declared: bool,
    /// Revisions that it controls.
    pub revisions: &'a [&'a Revision],
    /// Field managers of the object.
    pub writers: &'a Writers,
}

/// The fields of the live object that differ from the source.
pub(super) fn deviations(
    live: &Live<'_>,
    desired: &DesiredDaemonSet,
    show_values: ShownValues<'_>,
) -> Vec<Deviation> {
    let mut before = live.object.raw.as_ref().clone();
    if let Some(pause) = live.pause {
        undo_pause(&mut before, live, desired, pause);
    }
    let changes = object::deviations(&before, &desired.raw, show_values);
    let with_writers = changes.into_iter().map(|change| {
        // A field that is not in the cluster has no manager; those of its parent did not remove it.
        let writers = change.before.as_ref().map(|_| live.writers.of_field(&change.path));
        Deviation::FieldDiffers { change, writers: writers.unwrap_or_default() }
    });
    with_writers.collect()
}

/// Whether the source declares the template that waits, or that has failed. One that is not recorded
/// counts as declared; so does any where values are masked, as their digests differ.
pub(super) fn is_declared(
    pause: &PausedRollout,
    snapshot: &Snapshot,
    desired: &DesiredDaemonSet,
) -> bool {
    let recorded = match pause.state {
        PauseState::Paused => None,
        PauseState::Waiting => pause.target.as_ref(),
        PauseState::Aborted => pause.failed.as_ref(),
    };
    recorded.filter(|_| snapshot.coverage.masked.is_none()).is_none_or(|recorded| {
        // Fields of other managers are a part of the template.
        let after = after_apply(snapshot, desired, &BTreeSet::new());
        template_digest(after.spec.template.raw()) == *recorded
    })
}

/// Undoes the changes of a pause or abort.
fn undo_pause(
    before: &mut Value,
    live: &Live<'_>,
    desired: &DesiredDaemonSet,
    pause: &PausedRollout,
) {
    before["spec"]["updateStrategy"] = pause.declared.clone();
    let is_good = |revision: &&Revision| {
        pause.from.as_ref().is_some_and(|from| from.name == revision.name)
            && matches(live.object.spec.template.raw(), &revision.data, Matching::Tolerant)
    };
    match pause.state {
        PauseState::Paused => {}
        // A template other than the last good one was set by another client. If the source declares
        // another one by now, no run is on its way to it.
        PauseState::Aborted | PauseState::Waiting => {
            if live.is_declared && live.revisions.iter().any(is_good) {
                before["spec"]["template"] = desired.spec.template.raw().clone();
            }
        }
    }
}
