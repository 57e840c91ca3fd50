//! What the cluster still knows of the last rollout by steps: when its steps were updated and done,
//! who approved them, and what it waits for.
//!
//! That is the note on the Lease, the annotation of the pause, and the approvals. Each rollout
//! replaces those of the one before it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pause::{PauseState, PausedRollout};
use super::policy_progress::noted_revision;
use crate::steps::WaitsFor;
use daemonset::model::{Approval, DaemonSet, RevisionNumber, Snapshot, StepsNote};

/// The last rollout by steps, or the paused one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutHistory {
    /// The revision that was rolled out, if it still exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revision: Option<RevisionNumber>,
    /// Whether it is paused, waits or was aborted; none if it is neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<PauseState>,
    /// Its beginning, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Timestamp>,
    /// The user or CI job of the last run, while it is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Its steps and domains that were updated or approved, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepHistory>,
    /// What it waits for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<WaitsFor>,
}

/// One step, or a domain in a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepHistory {
    /// Its name; of a domain, `STEP/DOMAIN`.
    pub name: String,
    /// The user who has approved it, as told by their machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_by: Option<String>,
    /// Time of the approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approved_at: Option<Timestamp>,
    /// Time since which all its nodes have had an available new pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub complete_at: Option<Timestamp>,
    /// Time since which it is done: its soak is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub done_at: Option<Timestamp>,
}

impl RolloutHistory {
    /// The last rollout of a DaemonSet; none if nothing is known about one.
    pub(super) fn of(live: &DaemonSet, snapshot: &Snapshot) -> Option<Self> {
        let note = snapshot.steps_note(&live.key).filter(|note| !note.template.is_empty());
        // An unreadable annotation is reported by `status`.
        let pause = PausedRollout::readable(live);
        let steps = note.map(|note| steps(note, snapshot.approvals.get(&live.key)));
        let steps = steps.unwrap_or_default();
        if pause.is_none() && steps.is_empty() {
            return None;
        }
        let revision = note.and_then(|note| noted_revision(live, note, snapshot));
        let started = note.and_then(|note| note.started_at);
        let (state, since, by, waits_for) = match pause {
            Some(PausedRollout { state, since, by, waits_for, .. }) => {
                (Some(state), started.or(Some(since)), by, waits_for)
            }
            None => (None, started, None, Vec::new()),
        };
        let revision = revision.map(|revision| revision.number);
        Some(Self { revision, state, since, by, steps, waits_for })
    }
}

/// What is noted about steps, with the approvals of the same template.
fn steps(note: &StepsNote, given: Option<&BTreeMap<String, Approval>>) -> Vec<StepHistory> {
    let mut steps: BTreeMap<&str, StepHistory> = BTreeMap::new();
    for (name, noted) in &note.steps {
        let step = steps.entry(name).or_default();
        (step.complete_at, step.done_at) = (noted.complete_at, noted.done_at);
    }
    for (name, approval) in given.into_iter().flatten() {
        if approval.template == note.template {
            let step = steps.entry(name).or_default();
            step.approved_by = Some(approval.by.clone());
            step.approved_at = Some(approval.at);
        }
    }
    let named = |(name, step): (&str, StepHistory)| StepHistory { name: name.to_owned(), ..step };
    let mut steps: Vec<StepHistory> = steps.into_iter().map(named).collect();
    let latest = Timestamp::MAX;
    steps.sort_by_key(|step| (step.complete_at.unwrap_or(latest), step.approved_at));
    steps
}
