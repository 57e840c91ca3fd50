//! The progress of a rollout's steps that cannot be seen in the cluster, and approvals of steps.
//!
//! The note is an annotation of the DaemonSet's lease. If it is lost, soaks begin again: they become
//! longer, never shorter; and approvals are asked for again. Not here: the decisions based on it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{DaemonSetName, RevisionRef, Uid, lease_name};

/// Annotation of a DaemonSet's lease: the [`StepsNote`] as JSON.
pub const STEPS_ANNOTATION: &str = "ds-plan.dev/steps";

/// What a rollout has noted about its steps. Times are by the server's clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepsNote {
    /// Digest of the template that is rolled out.
    pub template: String,
    /// The revision with the last good template, while the rollout is in progress. The annotation of
    /// the pause has it, too, but a surge has no pause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<RevisionRef>,
    /// Time before the first delete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// Digest of the live template, while that is the one of a surge that was interrupted, and this
    /// rollout has not written its own yet. [`from`](Self::from) is where the surge came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaces: Option<String>,
    /// Steps by name; domains of a step as `STEP/DOMAIN`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub steps: BTreeMap<String, StepNote>,
    /// Approvals from before this time are void: a rollout has ended since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approvals_void_before: Option<Timestamp>,
    /// Time since which a run that was to begin has waited before the first node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_since: Option<Timestamp>,
    /// The waits for checks that held the first node back when the last run looked, or the next one of a
    /// roll, as the pause of a rollout has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held_by: Vec<Value>,
    /// Since when the gates are sampled, by step: its first new pod was available then.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sampled_since: BTreeMap<String, Timestamp>,
    /// Since when the answers of checks are unknown, by their name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub unknown_since: BTreeMap<String, Timestamp>,
}

/// The progress of one step, or of one domain in a step.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StepNote {
    /// Digest of the step as the policy has it: an edited step is not done.
    pub digest: String,
    /// Time since which all its nodes have had an available new pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete_at: Option<Timestamp>,
    /// Time since which it is done: complete, and its soak is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done_at: Option<Timestamp>,
}

impl StepsNote {
    /// Reads the annotation. One that cannot be read is as good as none.
    pub fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The note of a run that has to wait before the first node; `before` is the note so far, and
    /// `surge` the live template, if that is of an interrupted surge of another template. So a later run
    /// knows that this template was to be rolled out, and what the surge came from.
    #[must_use]
    pub fn waiting(
        before: Option<&Self>,
        template: &str,
        surge: Option<String>,
        approvals: &BTreeMap<String, Approval>,
        now: Timestamp,
    ) -> Self {
        match before {
            Some(noted) if noted.template == template => Self {
                waits_since: noted.waits_since.or(noted.started_at.is_none().then_some(now)),
                ..noted.clone()
            },
            other => Self {
                template: template.to_owned(),
                from: before.filter(|_| surge.is_some()).and_then(|noted| noted.from.clone()),
                replaces: surge,
                waits_since: Some(now),
                approvals_void_before: Self::void_before(other, template, approvals),
                ..Self::default()
            },
        }
    }

    /// Time before which approvals are void when a rollout of this template begins: those of an
    /// interrupted rollout of another one are not used by a later one. `approvals` are those that the run has
    /// read: others may have been given since.
    #[must_use]
    pub fn void_before(
        before: Option<&Self>,
        template: &str,
        approvals: &BTreeMap<String, Approval>,
    ) -> Option<Timestamp> {
        if let Some(noted) = before.filter(|noted| noted.template == template) {
            return noted.approvals_void_before;
        }
        let noted = before.and_then(|noted| noted.voids_before(template));
        let others = approvals.values().filter(|it| it.template != template);
        noted.max(others.map(|approval| approval.at).max())
    }

    /// Time before which approvals of this template are void by this note: a rollout has ended since, or one
    /// of another template has begun.
    pub fn voids_before(&self, template: &str) -> Option<Timestamp> {
        let other = self.started_at.filter(|_| self.template != template);
        self.approvals_void_before.max(other)
    }

    /// Whether a rollout of this template has begun, and has not ended.
    pub fn has_begun(&self, template: &str) -> bool {
        self.template == template && self.started_at.is_some()
    }

    /// Whether a rollout of this template has begun, or waits before its first node.
    pub fn is_under_way(&self, template: &str) -> bool {
        self.has_begun(template) || (self.template == template && self.waits_since.is_some())
    }

    /// Whether its steps are those of the rollout of this template. Once that has ended, they are so only
    /// while the template is live: if it comes back after another one, that is another rollout, whoever
    /// wrote the other one.
    pub fn steps_count(&self, template: &str, is_live: bool) -> bool {
        self.has_begun(template) || (is_live && self.template == template)
    }

    /// Whether this template, if it is live, is that of a rollout that has begun and has not ended: of
    /// this one, or of the surge that it replaces.
    pub fn is_unfinished(&self, template: &str) -> bool {
        let is_replaced = self.replaces.as_deref() == Some(template);
        is_replaced || self.has_begun(template)
    }

    /// The last time at which a run has noted that the rollout begins, waits, or has come farther.
    pub fn last_noted(&self) -> Option<Timestamp> {
        let steps = self.steps.values().flat_map(|step| [step.complete_at, step.done_at]);
        steps.chain([self.started_at, self.waits_since]).flatten().max()
    }

    /// The value of the annotation.
    pub fn text(&self) -> String {
        // Text, times and maps of them: it cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The approval of a step: the value of its key in the ConfigMap [`approvals_name`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Uid of the DaemonSet.
    pub uid: Uid,
    /// Digest of the template.
    pub template: String,
    /// Digest of the step as the policy has it.
    pub step: String,
    /// The user who has approved it, as told by their machine; the audit log has the proof.
    pub by: String,
    /// Time of the approval, by the server's clock.
    pub at: Timestamp,
}

impl Approval {
    /// The value of its key in the ConfigMap.
    pub fn text(&self) -> String {
        // Text and a time: it cannot fail.
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// `metadata.name` of the ConfigMap with the approvals of a DaemonSet's steps.
pub fn approvals_name(daemon_set: &DaemonSetName) -> String {
    lease_name(&format!("{daemon_set}-approvals"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RevisionNumber;

    #[test]
    fn a_note_survives_its_text_and_one_that_cannot_be_read_is_none() {
        let at: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
        let step = StepNote { digest: "d".into(), complete_at: Some(at), done_at: None };
        let note = StepsNote {
            template: "sha256:a".into(),
            from: Some(RevisionRef { name: "agent-1".into(), number: RevisionNumber(1) }),
            started_at: Some(at),
            replaces: Some("sha256:b".into()),
            steps: [("canary".to_owned(), step)].into(),
            approvals_void_before: None,
            waits_since: Some(at),
            held_by: vec![serde_json::json!({"kind": "precondition"})],
            sampled_since: [("canary".to_owned(), at)].into(),
            unknown_since: [("errors".to_owned(), at)].into(),
        };
        assert_eq!(StepsNote::read(&note.text()), Some(note));
        for text in ["", "{", "[]", r#"{"steps": 3}"#, r#"{"startedAt": "soon"}"#] {
            assert_eq!(StepsNote::read(text), None, "{text}");
        }
    }
}
