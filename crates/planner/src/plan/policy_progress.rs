//! How far a live rollout is by its policy, without any manifest: what `status`, `explain` and
//! `history` show of steps, waits and approvals.
//!
//! The target is the live template, or, while a rollout waits with the last good one live, that of
//! the revision that its note names. Under `OnDelete`, it is what `ds-apply roll` would do, or is doing.
//! Not here: planning a source.

use std::borrow::Cow;
use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::daemon_set::{Rollout, RolloutRequest, rollout, strategy};
use super::daemon_set_view::DaemonSetView;
use super::document::{RevisionKind, StepPlan};
use super::forecast::seconds_in_window;
use super::nodes::Described;
use super::pause::{PausedRollout, policy_for};
use super::reason::Reason;
use crate::approval::{ApprovalCheck, ApprovalStatus};
use crate::digest::{is_of_template, template_digest};
use crate::steps::WaitsFor;
use daemonset::controller::Owner;
use daemonset::controller::claims::Claims;
use daemonset::controller::node_pods::Fleet;
use daemonset::controller::revision_data::template_of;
use daemonset::model::{
    Calendar, DaemonSet, IntOrPercent, PodTemplate, PolicySpec, Revision, RolloutPolicy, Snapshot,
    StepsNote, UpdateStrategy,
};

/// How far the rollout of a DaemonSet is by its policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyProgress {
    /// Name of the policy.
    pub policy: String,
    /// Since when a rollout by `ds-apply roll` is under way; none if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roll_since: Option<Timestamp>,
    /// Its steps in this cluster; empty if it has none, or nothing is left to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepPlan>,
    /// What keeps more nodes from beginning, beside the budget.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<WaitsFor>,
    /// The approvals of steps that need one and are not done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvals: Vec<StepApproval>,
    /// The next opening of a window; none if one is open now, or the policy has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_opening: Option<Timestamp>,
}

/// The approval of a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepApproval {
    /// The step.
    pub step: String,
    /// Whether it counts; none if approvals could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved: Option<bool>,
    /// Who has approved it and when, or why that does not count.
    pub message: String,
}

/// Whether only `ds-apply roll` replaces its pods: it declares `OnDelete`, and that is not the one of a
/// pause. `live` has its declared strategy.
pub(super) fn is_rolled(live: &DaemonSet) -> bool {
    let is_on_delete = live.spec.update_strategy == UpdateStrategy::OnDelete;
    is_on_delete && matches!(PausedRollout::of(live), Ok(None))
}

/// The live DaemonSet with the template that is rolled out, and the strategy by which it is.
pub(super) fn rolled_out<'a>(
    live: &'a DaemonSet,
    policy: &PolicySpec,
    snapshot: &Snapshot,
) -> Cow<'a, DaemonSet> {
    if is_rolled(live) {
        return Cow::Owned(as_rolled(live, policy));
    }
    let template = snapshot.steps_note(&live.key).and_then(|note| noted(live, note, snapshot));
    match template.and_then(|template| PodTemplate::from_json(template).ok()) {
        Some(template) => {
            let mut target = live.clone();
            target.spec.template = template;
            Cow::Owned(target)
        }
        None => Cow::Borrowed(live),
    }
}

/// As `ds-apply roll` replaces the pods: within the budget of the policy, by those of the live template.
/// It never holds that one back, so what is noted about another one is over.
fn as_rolled(live: &DaemonSet, policy: &PolicySpec) -> DaemonSet {
    let mut target = live.clone();
    target.spec.update_strategy = UpdateStrategy::RollingUpdate {
        max_unavailable: policy.max_unavailable.unwrap_or(IntOrPercent::Int(1)),
        max_surge: IntOrPercent::Int(0),
    };
    target
}

/// The template of the rollout that is noted, if another one is live.
fn noted(live: &DaemonSet, note: &StepsNote, snapshot: &Snapshot) -> Option<Value> {
    // The steps of one that has ended say nothing, now that another template is live.
    if note.started_at.is_none() || note.template == template_digest(live.spec.template.raw()) {
        return None;
    }
    noted_revision(live, note, snapshot).and_then(|revision| template_of(&revision.data))
}

/// The revision of the rollout that is noted.
pub(super) fn noted_revision<'a>(
    live: &DaemonSet,
    note: &StepsNote,
    snapshot: &'a Snapshot,
) -> Option<&'a Revision> {
    let all = Claims::of(&Owner::from(live), snapshot.revisions_in(&live.key.namespace)).claimed;
    all.into_iter().find(|revision| is_of_template(revision, &note.template))
}

/// The rollout of the DaemonSet, and how far it is; `live` has its declared strategy.
pub(super) fn progress<'a>(
    live: &DaemonSet,
    target: &'a DaemonSet,
    RolloutPolicy { metadata, spec, .. }: &RolloutPolicy,
    snapshot: &'a Snapshot,
    fleet: &'a Fleet<'a>,
    described: Described,
) -> (DaemonSetView<'a>, Rollout, PolicyProgress) {
    let paused = snapshot.daemon_set(&live.key);
    let policy = &*policy_for(spec, paused, target.spec.template.raw());
    let view = DaemonSetView::of(Owner::from(target), Some(target), snapshot, fleet);
    let has_windows = !policy.windows.is_empty() || !policy.exclusions.is_empty();
    let node_seconds = seconds_in_window(policy, &target.spec, snapshot);
    let request = RolloutRequest {
        strategy: strategy(&view.view()),
        policy,
        untouched: live.terminating.then_some(Reason::DaemonSetTerminating),
        shared_budget: None,
        siblings: &BTreeMap::new(),
        node_seconds,
        described,
        live: Some(live),
        snapshot,
        now: snapshot.observed_at,
    };
    let mut rollout = rollout(&view, request);
    let schedule = &mut rollout.schedule;
    let is_left = !schedule.waves.is_empty();
    let roll = roll_under_way(live, snapshot);
    // Unlike that of `apply`, the template of a roll is live, and nodes are left, while a check holds
    // one back.
    schedule.waits_for.extend(roll.into_iter().flat_map(held_by));
    let (steps, waits_for) = if is_left || roll.is_some() {
        (schedule.steps.clone(), schedule.waits_for.clone())
    } else {
        schedule.waits_for.clear();
        // Of a rollout that has begun, the pause says it.
        let waits = |note: &&StepsNote| note.waits_since.is_some() && !is_rolled(live);
        let note = snapshot.steps_note(&live.key).filter(waits);
        (Vec::new(), note.map(held_by).unwrap_or_default())
    };
    let calendar = Calendar::of(&policy.windows, &policy.exclusions);
    let now = snapshot.observed_at;
    let seconds = u64::from(node_seconds);
    let is_closed = has_windows && is_left && !calendar.fits(now, seconds);
    let progress = PolicyProgress {
        policy: metadata.name.clone(),
        roll_since: roll.and_then(|note| note.started_at.or(note.waits_since)),
        approvals: approvals(&view, live, policy, &steps, snapshot),
        next_opening: is_closed.then(|| calendar.next_start(now, seconds)).flatten(),
        steps,
        waits_for,
    };
    (view, rollout, progress)
}

/// The checks that held the next node back when the last run looked. What cannot be read was written by
/// another version.
fn held_by(note: &StepsNote) -> Vec<WaitsFor> {
    note.held_by.iter().filter_map(|wait| serde_json::from_value(wait.clone()).ok()).collect()
}

/// The note of a rollout of the live template by `ds-apply roll` that has not ended. No pause says so, and
/// it is not over either when no pod is outdated: the last soak and gates are still to come. `live` has
/// its declared strategy.
pub fn roll_under_way<'s>(live: &DaemonSet, snapshot: &'s Snapshot) -> Option<&'s StepsNote> {
    let note = snapshot.steps_note(&live.key).filter(|_| is_rolled(live))?;
    note.is_under_way(&template_digest(live.spec.template.raw())).then_some(note)
}

fn approvals(
    target: &DaemonSetView<'_>,
    live: &DaemonSet,
    policy: &PolicySpec,
    steps: &[StepPlan],
    snapshot: &Snapshot,
) -> Vec<StepApproval> {
    let given = snapshot.approvals.get(&live.key);
    let template = template_digest(target.owner.spec.template.raw());
    let note = snapshot.steps_note(&live.key);
    let was_rolled_out = target.target.plan.kind != RevisionKind::New;
    let is_note_lost = note.is_none() && was_rolled_out && snapshot.coverage.leases;
    let asking = policy.steps.iter().filter(|step| {
        let is_left = |it: &StepPlan| it.name == step.name && it.updated < it.nodes;
        step.approve && steps.iter().any(is_left)
    });
    let approval = |step: &daemonset::model::PolicyStep| {
        let check = ApprovalCheck {
            uid: &live.uid,
            template: &template,
            step,
            note,
            is_note_lost,
            now: snapshot.observed_at,
        };
        let status = given.map(|given| check.status(given.get(&step.name)));
        StepApproval {
            step: step.name.clone(),
            approved: status.as_ref().map(ApprovalStatus::is_given),
            message: status.map_or("approvals could not be read".to_owned(), |it| it.to_string()),
        }
    };
    asking.map(approval).collect()
}
