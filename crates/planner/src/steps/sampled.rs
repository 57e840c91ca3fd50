//! Since when the gates of a policy are sampled.

use jiff::Timestamp;

use super::{Evaluation, NodeUpdate, StepsInput};
use daemonset::model::{StepsNote, Time};

/// The samples of the gates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sampled {
    /// Their begin: the first new pod of the step was available then, or the rollout began. In whole
    /// seconds, as questions have them.
    pub since: Timestamp,
    /// The begin of the rollout, if it is known.
    pub began: Option<Timestamp>,
    /// The end of the soak of the step in progress, if it is over: a gate has to pass after it.
    pub soaked_at: Option<Timestamp>,
}

/// Since when the gates are sampled: since the first new pod of the step in progress was available.
/// Before that, the samples of the step before it go on. The time is noted: a pod that restarts does
/// not make its samples forgotten. What was measured before the rollout does not judge it: after a
/// revert, old pods of the target may be there from before the bad version.
pub(super) fn since(
    evaluation: &mut Evaluation<'_>,
    input: &StepsInput<'_, '_>,
) -> Option<Sampled> {
    if input.policy.gates.is_empty() {
        return None;
    }
    let current = evaluation.current?;
    let now = Timestamp::from(Time::from(input.now));
    let began = began(&evaluation.note, input, now);
    let updated = || (0..input.nodes.len()).filter(|at| input.nodes[*at].is_gated(began));
    let step = updated().map(|at| evaluation.step_of[at]).filter(|step| *step <= current).max();
    // A node of a later step may be updated before: it was given the target by hand.
    let step = step.or_else(|| updated().map(|at| evaluation.step_of[at]).min())?;
    let first = updated().filter(|at| evaluation.step_of[*at] == step);
    let first = first.filter_map(|at| match input.nodes[at].update {
        NodeUpdate::Updated { since } => since,
        NodeUpdate::InProgress => input.nodes[at].pod_created,
        NodeUpdate::Outdated { .. } => None,
    });
    let first = first.min().map_or(now, Timestamp::from);
    let first = began.map_or(first, |began| first.max(began)).min(now);
    let name = evaluation.steps[step].name().to_owned();
    let noted = evaluation.note.sampled_since.entry(name).or_insert(first);
    *noted = (*noted).min(first);
    let soaked_at = match evaluation.steps[current].progress {
        super::Progress::Soaked { since, .. } => Some(since),
        super::Progress::Running
        | super::Progress::Complete { .. }
        | super::Progress::Done { .. } => None,
    };
    Some(Sampled { since: *noted, began, soaked_at })
}

/// The time at which the rollout began: now, if a rollout of another template is noted, or the end of
/// one. If the note is lost, it is not known; a note after that voids all approvals when it begins.
pub(super) fn began(
    note: &StepsNote,
    input: &StepsInput<'_, '_>,
    now: Timestamp,
) -> Option<Timestamp> {
    let void_before = note.approvals_void_before;
    let is_other = |note: &StepsNote| note.template != input.template || void_before.is_some();
    match note.started_at {
        Some(started_at) if void_before.is_none_or(|void| void < started_at) => Some(started_at),
        None if input.note.is_some_and(is_other) => Some(now),
        Some(_) | None => None,
    }
}
