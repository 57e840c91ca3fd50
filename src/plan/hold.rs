//! A rollout that `ds-apply` is pacing, as the DaemonSet itself remembers it.
//!
//! While it is paced the live strategy is `OnDelete` (the *hold*), and the annotation
//! [`ROLLOUT_ANNOTATION`] says what was declared. Here is the one form of that annotation, and when
//! it counts. Not here: setting a hold, going on, giving back.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::document::RevisionRef;
use crate::model::{DaemonSet, UpdateStrategy, short_commit};

/// The annotation of a DaemonSet whose rollout is held or parked; its value is a [`Hold`] as JSON.
pub const ROLLOUT_ANNOTATION: &str = "ds-plan.dev/rollout";

/// What the annotation remembers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hold {
    /// Whether it goes on, or has stopped on a failure.
    pub state: HoldState,
    /// `spec.updateStrategy` as declared, to be given back at the end.
    pub declared: Value,
    /// Digest of the plan that is carried out.
    pub plan_digest: String,
    /// The revision that it came from; a parked DaemonSet has its template again. None for one
    /// that had no revision yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<RevisionRef>,
    /// Since when.
    pub since: Timestamp,
    /// The commit that is rolled out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Who carries it out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Digest of the template that failed, of a parked rollout.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// How far a paced rollout has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum HoldState {
    /// The new template is live, and pods are replaced one wave after the other.
    Holding,
    /// It failed: the last good template is live again, and no pod is replaced.
    Parked,
}

/// Why an annotation does not say what is held.
#[derive(Debug, thiserror::Error)]
#[error("annotation {ROLLOUT_ANNOTATION} cannot be read")]
pub struct HoldError(#[source] serde_json::Error);

impl Hold {
    /// The hold that the DaemonSet is under; `None` when it is under none.
    ///
    /// The annotation alone is no hold. It counts while the live strategy is `OnDelete` although
    /// another one was declared.
    ///
    /// # Errors
    /// The strategy is `OnDelete`, and the annotation does not say what was declared.
    pub fn of(live: &DaemonSet) -> Result<Option<Self>, HoldError> {
        let Some(text) = live.annotations.get(ROLLOUT_ANNOTATION) else { return Ok(None) };
        if live.spec.update_strategy != UpdateStrategy::OnDelete {
            return Ok(None);
        }
        let hold: Self = serde_json::from_str(text).map_err(HoldError)?;
        let declared = UpdateStrategy::deserialize(&hold.declared).map_err(HoldError)?;
        Ok((declared != UpdateStrategy::OnDelete).then_some(hold))
    }
}

/// The DaemonSet as it was declared: a strategy that only stands in for the declared one is no
/// change to be made.
pub(super) fn as_declared<'a>(live: &'a DaemonSet, hold: Option<&Hold>) -> Cow<'a, DaemonSet> {
    let declared = hold.and_then(|hold| {
        let strategy = UpdateStrategy::deserialize(&hold.declared).ok()?;
        Some((strategy, hold.declared.clone()))
    });
    let Some((update_strategy, value)) = declared else { return Cow::Borrowed(live) };
    let mut live = live.clone();
    live.spec.update_strategy = update_strategy;
    Arc::make_mut(&mut live.raw)["spec"]["updateStrategy"] = value;
    Cow::Owned(live)
}

/// `held by ci since 2026-08-01T12:00:00Z, commit 4f2c9e1, from revision 7`.
impl fmt::Display for Hold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { state, declared: _, plan_digest: _, from, since, commit, by, failed: _ } = self;
        write!(f, "{state} by {} since {since}", by.as_deref().unwrap_or("ds-apply"))?;
        commit.iter().try_for_each(|commit| write!(f, ", commit {}", short_commit(commit)))?;
        from.iter().try_for_each(|from| write!(f, ", from revision {}", from.number))
    }
}

impl fmt::Display for HoldState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Holding => "held",
            Self::Parked => "parked",
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controller::test_cluster::Cluster;
    use crate::model::RevisionNumber;

    fn hold() -> Hold {
        Hold {
            state: HoldState::Parked,
            declared: json!({
                "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%", "maxSurge": 0}
            }),
            plan_digest: "sha256:6fd1".into(),
            from: Some(RevisionRef { name: "agent-abc".into(), number: RevisionNumber(7) }),
            since: "2026-08-01T12:00:00Z".parse().unwrap(),
            commit: Some("4f2c9e1".into()),
            by: None,
            failed: None,
        }
    }

    #[test]
    fn the_form_of_the_annotation() {
        let text = json!({
            "state": "parked",
            "declared": {
                "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%", "maxSurge": 0}
            },
            "planDigest": "sha256:6fd1",
            "from": {"name": "agent-abc", "number": 7},
            "since": "2026-08-01T12:00:00Z",
            "commit": "4f2c9e1",
        });
        assert_eq!(serde_json::to_value(hold()).unwrap(), text);
        assert_eq!(serde_json::from_value::<Hold>(text).unwrap(), hold());
    }

    #[test]
    fn the_annotation_counts_while_the_strategy_is_another_than_declared() {
        let on_delete = json!({"type": "OnDelete"});
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}});
        let valid = serde_json::to_string(&hold()).unwrap();
        let same = serde_json::to_string(&Hold { declared: on_delete.clone(), ..hold() }).unwrap();
        for (rule, strategy, annotation, want) in [
            ("held", &on_delete, Some(valid.as_str()), Ok(Some(hold()))),
            ("nothing remembered", &on_delete, None, Ok(None)),
            ("given back already", &rolling, Some(&valid), Ok(None)),
            ("OnDelete was declared", &on_delete, Some(&same), Ok(None)),
            ("nonsense that does not count", &rolling, Some("{"), Ok(None)),
            ("nonsense", &on_delete, Some("{"), Err(())),
        ] {
            let mut cluster = Cluster::of(0);
            cluster.edit(|spec| spec["updateStrategy"] = strategy.clone());
            cluster.daemon_set.annotations =
                annotation.map(|text| (ROLLOUT_ANNOTATION, text)).into_iter().collect();
            assert_eq!(Hold::of(&cluster.daemon_set).map_err(|_| ()), want, "{rule}");
        }
    }
}
