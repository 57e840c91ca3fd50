//! Whether a step of a rollout is approved: what makes an approval void, as one pure rule; whether
//! a step can be approved; and the evidence for it.
//!
//! Approvals survive runs, commits and edits of the policy, so each names what was approved. Not
//! here: reading and writing them, and what a run does without one.

mod evidence;
mod request;

use std::fmt;

use jiff::{SignedDuration, Timestamp};

pub use evidence::{EarlierStep, Evidence, UpdatedNode, noted_steps};
pub use request::{NotDone, NotToApprove, StepToApprove};

use crate::digest::json_digest;
use daemonset::model::{Approval, PolicyStep, StepsNote, Uid};

/// How much later than now an approval may seem to be: the clocks of API servers differ.
const CLOCKS_DIFFER: SignedDuration = SignedDuration::from_secs(30);

/// Returns the digest of a step as the policy has it: `sha256:` and hexadecimal digits. Every edit
/// of the step changes it, whatever the order of fields in the manifest.
pub fn step_digest(step: &PolicyStep) -> String {
    // Texts and numbers: it cannot fail.
    json_digest(&serde_json::to_value(step).unwrap_or_default())
}

/// What an approval of a step must be about, and the time.
#[derive(Clone, Copy, Debug)]
pub struct ApprovalCheck<'a> {
    /// Uid of the DaemonSet.
    pub uid: &'a Uid,
    /// [`template_digest`](crate::digest::template_digest) of the template that is rolled out.
    pub template: &'a str,
    /// The step as the policy has it.
    pub step: &'a PolicyStep,
    /// What the rollout has noted.
    pub note: Option<&'a StepsNote>,
    /// Whether there is no note although the template was rolled out before: a revision has it. Then
    /// nothing says which approvals were used, so a run notes that and asks again.
    pub is_note_lost: bool,
    /// The server's time.
    pub now: Timestamp,
}

/// Whether a step is approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ApprovalStatus {
    /// It is.
    Given {
        /// The user who approved it, as told by their machine.
        by: String,
        /// Time of the approval.
        at: Timestamp,
    },
    /// It never was.
    Missing,
    /// It was, but that no longer counts.
    Void(VoidApproval),
}

/// Why an approval does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VoidApproval {
    /// It is of a deleted DaemonSet with the same name.
    OtherDaemonSet,
    /// It is of another template.
    OtherTemplate,
    /// The step was edited since.
    StepEdited,
    /// A rollout has ended since: it was done, it failed, it was undone, or another one has begun.
    RolloutEnded {
        /// Time of the approval.
        at: Timestamp,
        /// Time of the end, or of the begin of the other one.
        ended: Timestamp,
    },
    /// What was noted about rollouts of this template is lost: it may have been used.
    NoteLost {
        /// Time of the approval.
        at: Timestamp,
    },
    /// It is from the future.
    FromFuture {
        /// Time of the approval.
        at: Timestamp,
        /// The server's time.
        now: Timestamp,
    },
}

impl ApprovalCheck<'_> {
    /// A new approval of the step by a user, of now.
    pub fn approve(&self, by: String) -> Approval {
        let Self { uid, template, step, note: _, is_note_lost: _, now } = *self;
        let (template, step) = (template.to_owned(), step_digest(step));
        Approval { uid: uid.clone(), template, step, by, at: now }
    }

    /// Whether this approval of the step counts.
    pub fn status(&self, approval: Option<&Approval>) -> ApprovalStatus {
        let Some(approval) = approval else { return ApprovalStatus::Missing };
        match self.void(approval) {
            Some(why) => ApprovalStatus::Void(why),
            None => ApprovalStatus::Given { by: approval.by.clone(), at: approval.at },
        }
    }

    fn void(&self, approval: &Approval) -> Option<VoidApproval> {
        let Self { uid, template, step, note, is_note_lost, now } = *self;
        let Approval { uid: of_uid, template: of_template, step: of_step, by: _, at } = approval;
        let (at, ended) = (*at, note.and_then(|note| note.voids_before(template)));
        if of_uid != uid {
            return Some(VoidApproval::OtherDaemonSet);
        }
        if of_template != template {
            return Some(VoidApproval::OtherTemplate);
        }
        if *of_step != step_digest(step) {
            return Some(VoidApproval::StepEdited);
        }
        if let Some(ended) = ended.filter(|ended| at <= *ended) {
            return Some(VoidApproval::RolloutEnded { at, ended });
        }
        if is_note_lost {
            return Some(VoidApproval::NoteLost { at });
        }
        (at.duration_since(now) > CLOCKS_DIFFER).then_some(VoidApproval::FromFuture { at, now })
    }
}

impl ApprovalStatus {
    /// Whether the step may begin.
    pub fn is_given(&self) -> bool {
        match self {
            Self::Given { .. } => true,
            Self::Missing | Self::Void(_) => false,
        }
    }
}

/// `approved by alice@build-7 at 2026-08-01T12:00:00Z`.
impl fmt::Display for ApprovalStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Given { by, at } => write!(f, "approved by {by} at {at}"),
            Self::Missing => f.write_str("not approved"),
            Self::Void(why) => write!(f, "not approved: {why}"),
        }
    }
}

impl fmt::Display for VoidApproval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OtherDaemonSet => {
                f.write_str("the approval is of a deleted DaemonSet with this name")
            }
            Self::OtherTemplate => f.write_str("the approval is of another template"),
            Self::StepEdited => f.write_str("the step was edited after its approval"),
            Self::RolloutEnded { at, ended } => {
                write!(
                    f,
                    "the approval is of {at}, and a rollout ended, or another began, at {ended}"
                )
            }
            Self::NoteLost { at } => write!(
                f,
                "the approval is of {at}, and what was noted about rollouts of this template since \
                 is lost: it may have been used"
            ),
            Self::FromFuture { at, now } => {
                write!(f, "the approval is of {at}, but the server's clock shows {now}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const NOW: &str = "2026-08-01T12:00:00Z";

    fn at(time: &str) -> Timestamp {
        time.parse().unwrap()
    }

    fn step(change: &Value) -> PolicyStep {
        let mut step = json!({"name": "rest", "nodes": "50%", "approve": true, "soak": "1h"});
        for (field, value) in change.as_object().unwrap() {
            step[field] = value.clone();
        }
        serde_json::from_value(step).unwrap()
    }

    fn given() -> Approval {
        Approval {
            uid: "u1".into(),
            template: "sha256:t1".into(),
            step: step_digest(&step(&json!({}))),
            by: "alice@laptop".to_owned(),
            at: at("2026-08-01T11:00:00Z"),
        }
    }

    /// The status with the current uid and template, and this step and end of a rollout.
    fn status(approval: &Approval, step: &PolicyStep, ended: Option<&str>) -> ApprovalStatus {
        let ended = ended.map(at);
        let note = StepsNote { approvals_void_before: ended, ..StepsNote::default() };
        let (uid, template, note) = (&"u1".into(), "sha256:t1", Some(&note));
        ApprovalCheck { uid, template, step, note, is_note_lost: false, now: at(NOW) }
            .status(Some(approval))
    }

    #[test]
    fn an_approval_is_void_for_all_that_it_was_not_given_for() {
        let same = step(&json!({}));
        let (t, now) = (given().at, at(NOW));
        let ended = |ended: &str| VoidApproval::RolloutEnded { at: t, ended: at(ended) };
        let late = |time: &str| Approval { at: at(time), ..given() };
        let future = late("2026-08-01T12:00:31Z");
        for (row, approval, ended, void) in [
            ("as it was given", given(), None, None),
            (
                "another uid",
                Approval { uid: "u2".into(), ..given() },
                None,
                Some(VoidApproval::OtherDaemonSet),
            ),
            (
                "another template",
                Approval { template: "sha256:t2".into(), ..given() },
                None,
                Some(VoidApproval::OtherTemplate),
            ),
            (
                "another step",
                Approval { step: "sha256:s".into(), ..given() },
                None,
                Some(VoidApproval::StepEdited),
            ),
            ("a rollout ended before", given(), Some("2026-08-01T10:59:59Z"), None),
            (
                "in the same moment",
                given(),
                Some("2026-08-01T11:00:00Z"),
                Some(ended("2026-08-01T11:00:00Z")),
            ),
            (
                "after it",
                given(),
                Some("2026-08-01T11:30:00Z"),
                Some(ended("2026-08-01T11:30:00Z")),
            ),
            ("servers' clocks differ a little", late("2026-08-01T12:00:30Z"), None, None),
            (
                "from the future",
                future.clone(),
                None,
                Some(VoidApproval::FromFuture { at: future.at, now }),
            ),
        ] {
            let want = match void {
                Some(why) => ApprovalStatus::Void(why),
                None => ApprovalStatus::Given { by: approval.by.clone(), at: approval.at },
            };
            assert_eq!(status(&approval, &same, ended), want, "{row}");
        }
    }

    #[test]
    fn any_edit_of_the_step_makes_it_void() {
        for change in [
            json!({"name": "other"}),
            json!({"nodes": "60%"}),
            json!({"nodes": 5}),
            json!({"nodes": {"names": ["a"]}}),
            json!({"nodes": {"matchLabels": {"a": "b"}}}),
            json!({"spread": "zone"}),
            json!({"maxUnavailable": 1}),
            json!({"approve": false}),
            json!({"soak": "2h"}),
        ] {
            let status = status(&given(), &step(&change), None);
            assert_eq!(status, ApprovalStatus::Void(VoidApproval::StepEdited), "{change}");
        }
        // The same step, written in another way.
        let same = step(&json!({"soak": "60m", "maxUnavailable": null}));
        assert!(status(&given(), &same, None).is_given());
    }

    #[test]
    fn without_a_note_or_an_approval() {
        let (uid, template, step) = (&"u1".into(), "sha256:t1", &step(&json!({})));
        let is_note_lost = false;
        let check = ApprovalCheck { uid, template, step, note: None, is_note_lost, now: at(NOW) };
        assert!(check.status(Some(&given())).is_given());
        assert_eq!(check.status(None), ApprovalStatus::Missing);
        assert!(!check.status(None).is_given());
        // The template was rolled out before, so there should be one.
        let lost = ApprovalCheck { is_note_lost: true, ..check };
        let void = VoidApproval::NoteLost { at: given().at };
        assert_eq!(lost.status(Some(&given())), ApprovalStatus::Void(void));
    }

    /// Found by story 393408: only what its run had read before was void.
    #[test]
    fn the_begin_of_another_rollout_voids_an_approval_from_before() {
        let (uid, step) = (&"u1".into(), &step(&json!({})));
        for (template, started, is_void) in [
            ("sha256:other", "2026-08-01T11:30:00Z", true),
            ("sha256:other", "2026-08-01T10:59:00Z", false),
            ("sha256:t1", "2026-08-01T11:30:00Z", false),
        ] {
            let started_at = Some(at(started));
            let note =
                StepsNote { template: template.to_owned(), started_at, ..StepsNote::default() };
            let (template, note, is_note_lost) = ("sha256:t1", Some(&note), false);
            let check = ApprovalCheck { uid, template, step, note, is_note_lost, now: at(NOW) };
            let is_given = check.status(Some(&given())).is_given();
            assert_eq!(is_given, !is_void, "{started} {template}");
        }
    }

    #[test]
    fn a_new_approval_is_given() {
        let (uid, step) = ("u1".into(), step(&json!({})));
        let check = ApprovalCheck {
            uid: &uid,
            template: "t",
            step: &step,
            note: None,
            is_note_lost: false,
            now: at(NOW),
        };
        let new = check.approve("alice".to_owned());
        assert_eq!(check.status(Some(&new)).to_string(), format!("approved by alice at {NOW}"));
    }
}
