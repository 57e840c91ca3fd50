//! A rollout by `ds-apply roll` that waits.
//!
//! It never writes the DaemonSet, which declares `OnDelete`, so there is no pause. The note of its steps
//! says that it is under way, and the policy says what a run would wait for, at any time. So the waits
//! are followed from the last sign of a run to the time of the snapshot: one that has ended is forgotten
//! if no run has come since.
//!
//! Not here: what only a run knows, which are the checks, `after`, and the other DaemonSets of a shared
//! budget. Nor `apply`, whose pause says what it waits for.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::document::Deviation;
use super::spec;
use crate::annotations::{COMMIT_ANNOTATION, PLAN_DIGEST_ANNOTATION};
use crate::plan::daemon_set::{RolloutRequest, rollout, strategy};
use crate::plan::daemon_set_view::DaemonSetView;
use crate::plan::forecast::seconds_in_window;
use crate::plan::nodes::Described;
use crate::plan::pause::{PauseState, PausedRollout};
use crate::plan::policy_progress::{roll_under_way, rolled_out};
use crate::steps::{WaitKind, WaitsFor, is_soak_noted};
use daemonset::controller::Owner;
use daemonset::controller::node_pods::Fleet;
use daemonset::model::{
    Calendar, DaemonSet, DesiredDaemonSet, Node, NodeName, Pod, PolicySpec, Snapshot, StepsNote,
};

/// The deviation of a rollout by `ds-apply roll` that waits, or has waited since the last run. None if
/// a run could continue it all the time, or no policy is at hand: then its pods are just outdated.
pub(super) fn waiting(
    live: &DaemonSet,
    desired: &DesiredDaemonSet,
    snapshot: &Snapshot,
    fleet: &Fleet<'_>,
) -> Option<Deviation> {
    let note = roll_under_way(live, snapshot)?;
    // Whether checks pass is only known to a run that asks.
    let policy = &desired.policy.as_ref()?.spec.without_checks();
    let target = &*rolled_out(live, policy, snapshot);
    let daemon_set_view = &DaemonSetView::of(Owner::from(target), Some(target), snapshot, fleet);
    let node_seconds = seconds_in_window(policy, &target.spec, snapshot);
    let roll = Roll { daemon_set_view, live, policy, node_seconds, note, snapshot };
    let annotation = |key| live.annotations.get(key).map(str::to_owned);
    let pause = PausedRollout {
        state: PauseState::Waiting,
        declared: live.raw["spec"]["updateStrategy"].clone(),
        plan_digest: annotation(PLAN_DIGEST_ANNOTATION).unwrap_or_default(),
        from: note.from.clone(),
        since: note.started_at.or(note.waits_since)?,
        commit: annotation(COMMIT_ANNOTATION),
        by: None,
        failed: None,
        target: Some(note.template.clone()),
        waits_for: roll.waits_for()?,
        failed_gate: None,
    };
    let is_declared = spec::is_declared(&pause, snapshot, desired);
    Some(Deviation::of_pause(pause, is_declared, snapshot.observed_at))
}

/// The last sign of a run: it has noted something, or one of these pods, which have the live template,
/// was created. The controller creates the pods of nodes that have joined since the rollout began.
pub(in crate::plan) fn last_seen<'p>(
    note: &StepsNote,
    updated: impl Iterator<Item = &'p Pod>,
    snapshot: &Snapshot,
) -> Option<Timestamp> {
    let begin = note.started_at.or(note.waits_since);
    let has_joined = |node: &&Node| node.created.map(Timestamp::from) > begin;
    let joined: BTreeSet<&NodeName> =
        snapshot.nodes.iter().filter(has_joined).map(|node| &node.name).collect();
    let by_a_run = updated.filter(|pod| pod.node().is_none_or(|node| !joined.contains(node)));
    let newest = by_a_run.filter_map(|pod| pod.created).map(Timestamp::from).max();
    note.last_noted().max(newest)
}

/// A rollout under way.
struct Roll<'r, 'v> {
    daemon_set_view: &'r DaemonSetView<'v>,
    live: &'r DaemonSet,
    /// Its policy, without checks.
    policy: &'r PolicySpec,
    /// Time that the update of one node takes, in seconds: a window has to be open as long.
    node_seconds: u32,
    note: &'r StepsNote,
    snapshot: &'r Snapshot,
}

impl Roll<'_, '_> {
    /// What it waits for, or waited for last before a run could have continued it.
    fn waits_for(&self) -> Option<Vec<WaitsFor>> {
        let now = self.snapshot.observed_at;
        let mut at = self.last_seen()?;
        let mut waits = self.waits_at(at);
        if waits.is_empty() {
            // The run could continue until its window closed.
            let calendar = Calendar::of(&self.policy.windows, &self.policy.exclusions);
            let closes = calendar.openings(at).next().and_then(|opening| opening.closes);
            at = closes.map_or(now, |closes| closes.min(now));
            waits = self.waits_at(at);
        }
        let mut last = None;
        while !waits.is_empty() {
            let ends: Option<Vec<Timestamp>> = waits.iter().map(|wait| wait.until).collect();
            let end = ends.and_then(|ends| ends.into_iter().max());
            last = Some(waits);
            // At the end of a soak, the window may be closed.
            let Some(end) = end.filter(|end| at < *end && *end <= now) else { break };
            at = end;
            waits = self.waits_at(at);
        }
        last
    }

    /// The last sign of a run.
    fn last_seen(&self) -> Option<Timestamp> {
        let Self { daemon_set_view, live, note, snapshot, .. } = self;
        let now = snapshot.observed_at;
        if snapshot.lock_holder(&live.key).is_some_and(|holder| holder.is_live(now)) {
            return Some(now);
        }
        let is_updated = |pod: &&Pod| daemon_set_view.target.templates.is_updated(pod);
        let updated = daemon_set_view.pods.claimed.iter().copied().filter(is_updated);
        last_seen(note, updated, snapshot).map(|seen| seen.min(now))
    }

    /// What a run waits for at this time, with the pods as they are now.
    fn waits_at(&self, now: Timestamp) -> Vec<WaitsFor> {
        let Self { daemon_set_view, live, policy, node_seconds, note, snapshot } = *self;
        let request = RolloutRequest {
            strategy: strategy(&daemon_set_view.view()),
            policy,
            shared_budget: None,
            siblings: &BTreeMap::new(),
            untouched: None,
            node_seconds,
            described: Described::Busy,
            live: Some(live),
            snapshot,
            now,
        };
        let waits = rollout(daemon_set_view, request).schedule.waits_for;
        let given = snapshot.approvals.get(&live.key);
        let known = waits.into_iter().filter_map(|wait| match wait.kind {
            // Else it begins again at each look: no run has seen its pods available.
            WaitKind::Soak => is_soak_noted(&wait, policy, note).then_some(wait),
            // Where approvals could not be read, it may be approved. One that was given later ended it.
            WaitKind::Approval => {
                let approval = given?.get(&wait.step).filter(|approval| approval.at > now);
                Some(WaitsFor { until: approval.map(|approval| approval.at), ..wait })
            }
            WaitKind::Window
            | WaitKind::ReadyNode
            | WaitKind::Order
            | WaitKind::SharedBudget
            | WaitKind::Precondition
            | WaitKind::Gate
            | WaitKind::Unknown => Some(wait),
        });
        known.collect()
    }
}
