//! `maxUnavailable` and `maxSurge` as numbers of nodes of a cluster (upstream: `UnavailableCount`,
//! `SurgeCount`, `updatedDesiredNodeCounts`).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::UpdateStrategy;

/// The budget of a rolling update, in nodes of this cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Number of nodes that may be without an available pod.
    pub max_unavailable: u32,
    /// Number of nodes that may run an old and a new pod at the same time; 0 means delete first.
    pub max_surge: u32,
}

impl Limits {
    /// The limits for `desired` nodes; `None` under `OnDelete`, which never rolls.
    ///
    /// Percentages of `desired` are rounded up for both limits. If both limits are zero, one node
    /// may be unavailable: otherwise the rollout could not progress.
    pub fn of(strategy: &UpdateStrategy, desired: u32) -> Option<Self> {
        let UpdateStrategy::RollingUpdate { max_unavailable, max_surge } = strategy else {
            return None;
        };
        let mut limits = Self {
            max_unavailable: max_unavailable.scaled(desired),
            max_surge: max_surge.scaled(desired),
        };
        if desired > 0 && limits.max_unavailable == 0 && limits.max_surge == 0 {
            limits.max_unavailable = 1;
        }
        Some(limits)
    }
}

/// Whether a node may hold two pods at all (upstream: `AllowsSurge`): the limit is scaled over
/// one node, so any percentage above zero allows it.
pub fn allows_surge(strategy: &UpdateStrategy) -> bool {
    match strategy {
        UpdateStrategy::OnDelete => false,
        UpdateStrategy::RollingUpdate { max_surge, .. } => max_surge.scaled(1) > 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::IntOrPercent;

    fn rolling(max_unavailable: &str, max_surge: &str) -> UpdateStrategy {
        let parse = |text: &str| text.parse::<IntOrPercent>().unwrap();
        UpdateStrategy::RollingUpdate {
            max_unavailable: parse(max_unavailable),
            max_surge: parse(max_surge),
        }
    }

    #[test]
    fn limits_follow_get_unavailable_numbers() {
        for (name, max_unavailable, max_surge, desired, want) in [
            ("No nodes", "0", "0", 0, (0, 0)),
            ("Two nodes with ready pods", "1", "0", 2, (1, 0)),
            ("both limits 0", "0", "0", 2, (1, 0)),
            ("both limits 0%", "0%", "0%", 2, (1, 0)),
            ("MaxUnavailable in percents", "50%", "0", 2, (1, 0)),
            ("MaxUnavailable in percents, pod terminating", "50%", "0", 3, (2, 0)),
            ("in percents, surge", "0", "50%", 2, (0, 1)),
            ("100%, surge", "0", "100%", 2, (0, 2)),
            ("a percentage is never rounded down to nothing", "1%", "0", 1, (1, 0)),
            ("10% of 412", "10%", "0", 412, (42, 0)),
            ("more than there are", "50", "0", 3, (50, 0)),
        ] {
            let limits = Limits::of(&rolling(max_unavailable, max_surge), desired).unwrap();
            assert_eq!((limits.max_unavailable, limits.max_surge), want, "{name}");
        }
        assert_eq!(Limits::of(&UpdateStrategy::OnDelete, 5), None);
    }

    #[test]
    fn any_percentage_above_zero_allows_surge() {
        for (max_surge, want) in [("0", false), ("0%", false), ("1%", true), ("3", true)] {
            assert_eq!(allows_surge(&rolling("0", max_surge)), want, "{max_surge}");
        }
        assert!(!allows_surge(&UpdateStrategy::OnDelete));
    }
}
