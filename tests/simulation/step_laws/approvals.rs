//! Which approvals were given, and which are used up.

use serde_json::Value;

use crate::rules::StepRule;

/// An approval: of a step as the policy had it, and of an image.
#[derive(Clone, Debug, PartialEq)]
struct Approved {
    step: Value,
    image: u32,
}

/// The approvals that count, and those that a rollout has used up.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    given: Vec<Approved>,
    used: Vec<Approved>,
}

impl Approvals {
    /// Somebody approves a step of the commit with this image.
    pub(crate) fn give(&mut self, step: &StepRule, image: u32) {
        self.given.push(Approved { step: step.json(), image });
    }

    /// The last approval was not written.
    pub(crate) fn retract(&mut self) {
        self.given.pop();
    }

    /// Whether a step is approved for an image.
    pub(super) fn has(&self, step: &StepRule, image: u32) -> bool {
        self.given.contains(&Approved { step: step.json(), image })
    }

    /// Approvals of some images are used up.
    pub(super) fn use_up(&mut self, of: impl Fn(u32) -> bool) {
        self.used.extend(self.given.extract_if(.., |it| of(it.image)));
    }

    /// Nothing says any more which approvals are used up.
    pub(super) fn forget_use(&mut self) {
        self.given.append(&mut self.used);
    }
}
