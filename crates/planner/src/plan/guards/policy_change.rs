//! Guard of a pull request that deletes or loosens its own RolloutPolicy: the limits before and
//! after the merge, if they differ.

use crate::plan::document::{DaemonSetPlan, Guard, GuardCode, Strategy};
use crate::words::grouped;
use daemonset::model::{DesiredDaemonSet, LoosenedPolicy, PolicySpec};

/// The guard of a DaemonSet whose RolloutPolicy the change loosens.
pub(super) fn policy_change(plan: &DaemonSetPlan, desired: &DesiredDaemonSet) -> Option<Guard> {
    let LoosenedPolicy { after, loosened } = desired.loosened.as_ref()?;
    let what = match (after, &desired.policy) {
        (Some(policy), _) => {
            format!("RolloutPolicy `{}`: {}", policy.metadata.name, loosened.join(", "))
        }
        (None, Some(policy)) => {
            format!("RolloutPolicy `{}` would no longer apply", policy.metadata.name)
        }
        (None, None) => "its RolloutPolicy would no longer apply".to_owned(),
    };
    let before = pace(plan.strategy, desired.policy.as_deref().map(|policy| &policy.spec));
    let after = pace(plan.strategy, after.as_deref().map(|policy| &policy.spec));
    let limits = if before == after {
        String::new()
    } else {
        format!(" Before the merge: {before}; after: {after}.")
    };
    let message = format!(
        "the change loosens the RolloutPolicy that applies to it ({what}).{limits} This plan uses the \
         policy from before the merge; have its owners review the policy change separately"
    );
    Some(plan.guard(GuardCode::PolicyChange, message, None, Vec::new()))
}

/// The number of nodes that may be unavailable at once, in words.
fn pace(strategy: Strategy, policy: Option<&PolicySpec>) -> String {
    match strategy {
        Strategy::OnDelete => {
            "pods are replaced only by `ds-apply roll`, or after they are deleted".to_owned()
        }
        Strategy::RollingUpdate { max_unavailable, max_surge: _, desired } => {
            let most = policy.map_or(max_unavailable, |it| it.stricter(max_unavailable, desired));
            format!("at most {} of {} nodes unavailable", grouped(most), grouped(desired))
        }
    }
}
