//! What the controller writes into a DaemonSet's status (upstream: `updateDaemonSetStatus`,
//! `storeDaemonSetStatus`).
//!
//! Nodes are counted, never pods, and of each node's pods the first in upstream's order speaks.
//! During a surge that is the old one, so "updated" comes late. Conditions are never set.

use super::manage::View;
use crate::model::DaemonSetStatus;

/// The status after a sync: seven counters of what is seen now, before the sync's own effects,
/// and the generation of the spec that was acted on.
pub fn status(view: &View<'_, '_>) -> DaemonSetStatus {
    DaemonSetStatus { observed_generation: view.owner.generation, ..counters(view) }
}

/// The status of a sync that has to wait for its earlier effects: the counters only; the
/// generation is not raised, because its spec was not acted on.
pub fn counters(view: &View<'_, '_>) -> DaemonSetStatus {
    let mut status = DaemonSetStatus {
        observed_generation: view.owner.status.observed_generation,
        collision_count: view.owner.status.collision_count,
        ..DaemonSetStatus::default()
    };
    for (at, placement) in view.placements.iter().enumerate() {
        let speaker = view.pods.at(at).first();
        if placement.may_start {
            status.desired_number_scheduled += 1;
        } else {
            status.number_misscheduled += u32::from(speaker.is_some());
        }
        let Some(pod) = speaker.filter(|_| placement.may_start) else { continue };
        status.current_number_scheduled += 1;
        status.number_ready += u32::from(pod.is_ready());
        status.number_available += u32::from(view.is_available(pod));
        status.updated_number_scheduled += u32::from(view.current.is_updated(pod));
    }
    status.number_unavailable = status.desired_number_scheduled - status.number_available;
    status
}

/// Whether the controller writes `new` over `live`: not when all counters are equal and the
/// generation is observed.
///
/// A sync that does not raise the generation writes again and again while it is behind.
pub fn needs_write(live: &DaemonSetStatus, new: &DaemonSetStatus, generation: i64) -> bool {
    let counters = |status: &DaemonSetStatus| DaemonSetStatus {
        observed_generation: 0,
        collision_count: None,
        ..*status
    };
    counters(live) != counters(new) || live.observed_generation < generation
}
