//! A request to approve a step: whether the policy has such a step, and whether it is its turn.

use std::fmt;

use jiff::Timestamp;

use super::step_digest;
use daemonset::model::{DesiredDaemonSet, PolicyStep, Soak, StepNote, StepsNote};

/// A step that its policy has approved before it begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepToApprove<'a> {
    /// The step.
    pub step: &'a PolicyStep,
    /// The steps before it, in order.
    pub earlier: &'a [PolicyStep],
}

/// Why no approval of a step is needed or possible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotToApprove {
    /// The DaemonSet has no policy, or one without steps.
    NoSteps,
    /// The policy has no step of this name.
    Unknown {
        /// The names of its steps that need an approval, in order.
        needed: Vec<String>,
    },
    /// The step begins without an approval.
    NotAsked {
        /// The names of the steps that need one, in order.
        needed: Vec<String>,
    },
}

/// Why a step is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotDone {
    /// No run has noted anything about it for this template.
    NotBegun,
    /// What was noted is of another template.
    OtherTemplate,
    /// The step was edited since.
    Edited,
    /// Not all of its nodes have an available new pod.
    Incomplete,
    /// It soaks, or no run has noted yet that its soak is over.
    Soaks {
        /// Time since which it is complete.
        complete_at: Timestamp,
        /// Its soak.
        soak: Soak,
    },
}

impl<'a> StepToApprove<'a> {
    /// The step of this name in the policy of a DaemonSet.
    ///
    /// # Errors
    /// Its policy has no such step, or does not ask for an approval of it.
    pub fn of(desired: &'a DesiredDaemonSet, name: &str) -> Result<Self, NotToApprove> {
        let steps = desired.policy.as_ref().map_or(&[][..], |policy| &policy.spec.steps);
        if steps.is_empty() {
            return Err(NotToApprove::NoSteps);
        }
        let needed = steps.iter().filter(|step| step.approve).map(|step| step.name.clone());
        let needed = needed.collect();
        let Some(at) = steps.iter().position(|step| step.name == name) else {
            return Err(NotToApprove::Unknown { needed });
        };
        let (earlier, step) = (&steps[..at], &steps[at]);
        if step.approve {
            Ok(Self { step, earlier })
        } else {
            Err(NotToApprove::NotAsked { needed })
        }
    }

    /// The step before it and why that is not done; `None` if it is, or if there is none.
    /// `template` is the digest of the template that is rolled out.
    pub fn waits_for(
        &self,
        template: &str,
        note: Option<&StepsNote>,
    ) -> Option<(&'a PolicyStep, NotDone)> {
        let before = self.earlier.last()?;
        Some((before, not_done(before, template, note)?))
    }
}

fn not_done(step: &PolicyStep, template: &str, note: Option<&StepsNote>) -> Option<NotDone> {
    let Some(note) = note else { return Some(NotDone::NotBegun) };
    if note.template != template {
        return Some(NotDone::OtherTemplate);
    }
    let Some(StepNote { digest, complete_at, done_at }) = note.steps.get(&step.name) else {
        return Some(NotDone::NotBegun);
    };
    if *digest != step_digest(step) {
        return Some(NotDone::Edited);
    }
    match (done_at, complete_at) {
        (Some(_), _) => None,
        (None, Some(complete_at)) => {
            Some(NotDone::Soaks { complete_at: *complete_at, soak: step.soak })
        }
        (None, None) => Some(NotDone::Incomplete),
    }
}

impl fmt::Display for NotDone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotBegun => f.write_str("it has not begun"),
            Self::OtherTemplate => f.write_str("the last rollout was of another template"),
            Self::Edited => f.write_str("it was edited since it began"),
            Self::Incomplete => f.write_str("not all of its nodes have an available new pod"),
            Self::Soaks { complete_at, soak } if soak.is_zero() => {
                write!(f, "complete since {complete_at}, not yet noted as done")
            }
            Self::Soaks { complete_at, soak } => {
                write!(f, "complete since {complete_at}, its soak of {soak} is not noted as over")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use daemonset::controller::test_cluster::Cluster;
    use daemonset::model::RolloutPolicy;

    fn desired(steps: &Value) -> DesiredDaemonSet {
        let mut policy = RolloutPolicy::named("p");
        policy.spec.steps = serde_json::from_value(steps.clone()).unwrap();
        DesiredDaemonSet { policy: Some(policy.into()), ..Cluster::of(0).desired() }
    }

    fn steps() -> Value {
        json!([
            {"name": "canary", "nodes": 1, "soak": "1h"},
            {"name": "half", "nodes": "50%", "approve": true},
        ])
    }

    #[test]
    fn only_steps_that_ask_for_it_are_approved() {
        let needed = || vec!["half".to_owned()];
        for (steps, name, want) in [
            (json!([]), "half", Some(NotToApprove::NoSteps)),
            (steps(), "rest", Some(NotToApprove::Unknown { needed: needed() })),
            (steps(), "canary", Some(NotToApprove::NotAsked { needed: needed() })),
            (steps(), "half", None),
        ] {
            let desired = desired(&steps);
            assert_eq!(StepToApprove::of(&desired, name).err(), want, "{steps} {name}");
        }
        let no_policy = Cluster::of(0).desired();
        assert_eq!(StepToApprove::of(&no_policy, "half"), Err(NotToApprove::NoSteps));
    }

    #[test]
    fn the_step_before_it_must_be_done() {
        let at: Timestamp = "2026-08-01T12:00:00Z".parse().unwrap();
        let desired = desired(&steps());
        let half = StepToApprove::of(&desired, "half").unwrap();
        let digest = step_digest(&half.earlier[0]);
        let noted = |template: &str, digest: &str, complete_at, done_at| {
            let step = StepNote { digest: digest.to_owned(), complete_at, done_at };
            let steps = [("canary".to_owned(), step)].into();
            Some(StepsNote { template: template.to_owned(), steps, ..StepsNote::default() })
        };
        let nothing = StepsNote { template: "t".to_owned(), ..StepsNote::default() };
        let soak = half.earlier[0].soak;
        for (note, want) in [
            (None, Some(NotDone::NotBegun)),
            (Some(nothing), Some(NotDone::NotBegun)),
            (noted("other", &digest, Some(at), Some(at)), Some(NotDone::OtherTemplate)),
            (noted("t", "other", Some(at), Some(at)), Some(NotDone::Edited)),
            (noted("t", &digest, None, None), Some(NotDone::Incomplete)),
            (noted("t", &digest, Some(at), None), Some(NotDone::Soaks { complete_at: at, soak })),
            (noted("t", &digest, Some(at), Some(at)), None),
        ] {
            let found = half.waits_for("t", note.as_ref());
            assert_eq!(
                found.map(|(step, why)| (step.name.as_str(), why)),
                want.map(|why| ("canary", why))
            );
        }
    }

    #[test]
    fn the_first_step_waits_for_none() {
        let desired = desired(&json!([{"name": "canary", "nodes": 1, "approve": true}]));
        let canary = StepToApprove::of(&desired, "canary").unwrap();
        assert_eq!(canary.waits_for("t", None), None);
    }
}
