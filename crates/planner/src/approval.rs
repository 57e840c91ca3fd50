//! Approvals of steps.

use daemonset::model::PolicyStep;

use crate::plan::template_digest;

/// Digest of a step as the policy has it: an edited step has another one.
pub fn step_digest(step: &PolicyStep) -> String {
    // Text and numbers: it cannot fail.
    template_digest(&serde_json::to_value(step).unwrap_or_default())
}
