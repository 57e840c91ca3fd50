//! Whether a changed policy is looser than before.

use std::fmt::Display;

use super::{Deadline, Domains, OnFailure, PolicySpec, Ramp, WhileWaiting};
use crate::model::IntOrPercent;
use crate::model::min_ready::DEFAULT as DEFAULT_MIN_READY;

impl PolicySpec {
    /// The fields that `after` loosens, one text per field. Different values that cannot be
    /// compared, such as a number of nodes and a percentage, count as loosened.
    pub fn loosened_by(&self, after: &Self) -> Vec<String> {
        // `selects` has no order of strictness.
        let Self {
            selects: _,
            managed_by,
            on_failure,
            max_unavailable,
            min_ready_seconds,
            ramp,
            progress_deadline,
            skip_unready_nodes,
            max_restarts,
            after: predecessors,
            domains,
            steps,
            windows,
            exclusions,
            while_waiting,
            max_duration,
        } = self;
        let mut loosened = Vec::new();
        let mut differs = |is_looser: bool, field: &str, before: String, after: String| {
            if is_looser {
                loosened.push(format!("{field} from {before} to {after}"));
            }
        };
        let limit = |limit: Option<IntOrPercent>| limit.map_or("none".into(), |it| it.to_string());
        let is_looser = allows_more(*max_unavailable, after.max_unavailable);
        let (was, is) = (limit(*max_unavailable), limit(after.max_unavailable));
        differs(is_looser, "maxUnavailable", was, is);
        let seconds = |seconds: Option<u32>| {
            seconds.map_or("the default".to_owned(), |seconds| seconds.to_string())
        };
        let is_looser = match (*min_ready_seconds, after.min_ready_seconds) {
            (Some(before), Some(after)) => after < before,
            // The default is 0 if there is a readiness probe.
            (Some(before), None) => before > 0,
            (None, Some(after)) => after < DEFAULT_MIN_READY,
            (None, None) => false,
        };
        let (was, is) = (seconds(*min_ready_seconds), seconds(after.min_ready_seconds));
        differs(is_looser, "minReadySeconds", was, is);
        let is_looser = (*ramp, after.ramp) == (Ramp::Double, Ramp::None);
        differs(is_looser, "ramp", "double".to_owned(), "none".to_owned());
        let (was, is) = (progress_deadline.0, after.progress_deadline.0);
        differs(is > was, "progressDeadline", format!("{was} s"), format!("{is} s"));
        let (was, is) = (skip_unready_nodes.max, after.skip_unready_nodes.max);
        let is_looser = allows_more(Some(was), Some(is));
        differs(is_looser, "skipUnreadyNodes", was.to_string(), is.to_string());
        let (was, is) = (*max_restarts, after.max_restarts);
        differs(is > was, "maxRestarts", was.to_string(), is.to_string());
        let is_looser = *on_failure != after.on_failure && after.on_failure != OnFailure::Abort;
        differs(is_looser, "onFailure", on_failure.to_string(), after.on_failure.to_string());
        let (was, is) = (managed_by.to_string(), after.managed_by.to_string());
        differs(was != is, "managedBy", was, is);
        let is_looser = predecessors.iter().any(|key| !after.after.contains(key));
        differs(is_looser, "after", listed(predecessors), listed(&after.after));
        let is_looser = domains.is_some() && *domains != after.domains;
        let text = |domains: &Option<Domains>| {
            domains.as_ref().map_or("none".to_owned(), ToString::to_string)
        };
        differs(is_looser, "domains", text(domains), text(&after.domains));
        let is_looser = !steps.is_empty() && *steps != after.steps;
        differs(is_looser, "steps", listed(steps), listed(&after.steps));
        // Fewer windows are stricter, none at all are looser.
        let is_looser = !windows.is_empty()
            && (after.windows.is_empty() || after.windows.iter().any(|it| !windows.contains(it)));
        differs(is_looser, "windows", listed(windows), listed(&after.windows));
        let is_looser = exclusions.iter().any(|it| !after.exclusions.contains(it));
        differs(is_looser, "exclusions", listed(exclusions), listed(&after.exclusions));
        let is_looser =
            (*while_waiting, after.while_waiting) == (WhileWaiting::LastGood, WhileWaiting::Target);
        differs(is_looser, "whileWaiting", "lastGood".to_owned(), "target".to_owned());
        let is_looser = match (max_duration, after.max_duration) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(before), Some(after)) => after.0 > before.0,
        };
        let text =
            |limit: Option<Deadline>| limit.map_or("none".to_owned(), |it| format!("{} s", it.0));
        differs(is_looser, "maxDuration", text(*max_duration), text(after.max_duration));
        loosened
    }
}

/// Whether the second limit may be wider than the first one.
fn allows_more(before: Option<IntOrPercent>, after: Option<IntOrPercent>) -> bool {
    match (before, after) {
        (None, _) => false,
        (Some(IntOrPercent::Int(before)), Some(IntOrPercent::Int(after)))
        | (Some(IntOrPercent::Percent(before)), Some(IntOrPercent::Percent(after))) => {
            after > before
        }
        // A number and a percentage cannot be compared: it depends on the cluster.
        (Some(_), None)
        | (Some(IntOrPercent::Int(_)), Some(IntOrPercent::Percent(_)))
        | (Some(IntOrPercent::Percent(_)), Some(IntOrPercent::Int(_))) => true,
    }
}

/// The items as text, separated by semicolons.
fn listed(items: &[impl Display]) -> String {
    if items.is_empty() {
        return "none".to_owned();
    }
    items.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}
