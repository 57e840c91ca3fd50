//! A request that deletes or loosens the policy that judges it: what is allowed before the merge, and
//! what after it.

use super::guard;
use crate::model::{DesiredDaemonSet, LoosenedPolicy, PolicySpec};
use crate::plan::document::{DaemonSetPlan, Guard, GuardCode, Strategy};

/// What `desired` says of its policy.
pub(super) fn policy_change(plan: &DaemonSetPlan, desired: &DesiredDaemonSet) -> Option<Guard> {
    let LoosenedPolicy { after, loosened } = desired.loosened.as_ref()?;
    let what = match (after, &desired.policy) {
        (Some(policy), _) => {
            format!("RolloutPolicy `{}`: {}", policy.metadata.name, loosened.join(", "))
        }
        (None, Some(policy)) => format!("RolloutPolicy `{}` would be gone", policy.metadata.name),
        (None, None) => "its RolloutPolicy would be gone".to_owned(),
    };
    let before = pace(plan.strategy, desired.policy.as_deref().map(|policy| &policy.spec));
    let after = pace(plan.strategy, after.as_deref().map(|policy| &policy.spec));
    let message = format!(
        "the change loosens the policy that judges it ({what}). Before the merge: {before}; after it: \
         {after}. This plan goes by the one from before; let its owners review the policy by itself"
    );
    Some(guard(plan, GuardCode::PolicyChange, message, None, Vec::new()))
}

/// How many nodes at once, in words.
fn pace(strategy: Strategy, policy: Option<&PolicySpec>) -> String {
    match strategy {
        Strategy::OnDelete => "pods are replaced only when somebody deletes them".to_owned(),
        Strategy::RollingUpdate { max_unavailable, max_surge: _, desired } => {
            let most = policy.map_or(max_unavailable, |it| it.stricter(max_unavailable, desired));
            format!("at most {most} of {desired} nodes unavailable")
        }
    }
}
