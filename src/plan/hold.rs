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
use crate::model::{DaemonSet, FIELD_MANAGER, UpdateStrategy, short_commit};

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

/// The annotation of a rollout on a DaemonSet that is not held: somebody set the update strategy
/// while it was. It counts for nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeftHold {
    /// What it remembers, if it can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// Whether the next apply by `ds-apply` removes it: nobody else owns it.
    pub removed: bool,
}

/// Why an annotation does not say what is held.
#[derive(Debug, thiserror::Error)]
#[error("annotation {ROLLOUT_ANNOTATION} cannot be read")]
pub struct HoldError(#[source] serde_json::Error);

impl Hold {
    /// The hold that the DaemonSet is under; `None` when it is under none.
    ///
    /// The annotation alone is no hold. It counts while the live strategy is `OnDelete` although
    /// another one was declared, and while it is `ds-apply` that has set it: an `OnDelete` that
    /// somebody else has declared since is no pause.
    ///
    /// # Errors
    /// The strategy is `OnDelete`, and the annotation does not say what was declared.
    pub fn of(live: &DaemonSet) -> Result<Option<Self>, HoldError> {
        let Some(text) = live.annotations.get(ROLLOUT_ANNOTATION) else { return Ok(None) };
        let paused = live.spec.update_strategy == UpdateStrategy::OnDelete;
        if !paused || is_ours(live, "/f:spec/f:updateStrategy/f:type") == Some(false) {
            return Ok(None);
        }
        let hold: Self = serde_json::from_str(text).map_err(HoldError)?;
        let declared = UpdateStrategy::deserialize(&hold.declared).map_err(HoldError)?;
        Ok((declared != UpdateStrategy::OnDelete).then_some(hold))
    }
}

impl LeftHold {
    /// What is left over on a DaemonSet that is not held; `None` when nothing is.
    pub fn of(live: &DaemonSet) -> Option<Self> {
        let text = live.annotations.get(ROLLOUT_ANNOTATION)?;
        let left = matches!(Hold::of(live), Ok(None));
        let owned = || is_ours(live, &format!("/f:metadata/f:annotations/f:{}", escaped()));
        left.then(|| Self { hold: serde_json::from_str(text).ok(), removed: owned() == Some(true) })
    }
}

/// The annotation's key as a JSON pointer has it.
fn escaped() -> String {
    ROLLOUT_ANNOTATION.replace('/', "~1")
}

/// Whether `ds-apply` has applied a field; `None` where nobody's ownership is known.
fn is_ours(live: &DaemonSet, field: &str) -> Option<bool> {
    let entries = live.raw.pointer("/metadata/managedFields").and_then(Value::as_array)?;
    let applied = |entry: &&Value| {
        entry["manager"] == FIELD_MANAGER
            && entry["operation"] == "Apply"
            && entry.get("subresource").is_none_or(|it| it == "")
    };
    let mut applied = entries.iter().filter(applied);
    (!entries.is_empty()).then(|| applied.any(|entry| entry["fieldsV1"].pointer(field).is_some()))
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

/// As a sentence without the name of the DaemonSet.
impl fmt::Display for LeftHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hold, removed } = self;
        write!(f, "annotation {ROLLOUT_ANNOTATION} is left over")?;
        hold.iter().try_for_each(|hold| write!(f, " ({hold})"))?;
        f.write_str(": somebody has set the update strategy since, and it counts for nothing; ")?;
        f.write_str(if *removed {
            "the next apply by ds-apply removes it"
        } else {
            "ds-apply does not own it: remove it with `kubectl annotate`"
        })
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

    /// Who set the strategy, whether `ds-apply` owns the annotation, the strategy, and whether it is
    /// a hold, left over to be removed, or left over for good.
    #[test]
    fn what_somebody_else_declares_is_no_hold_and_what_is_left_of_one_is_told() {
        let on_delete = json!({"type": "OnDelete"});
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}});
        let text = serde_json::to_string(&hold()).unwrap();
        let strategy = json!({"f:spec": {"f:updateStrategy": {"f:type": {}}}});
        let annotation = json!({"f:metadata": {"f:annotations": {"f:ds-plan.dev/rollout": {}}}});
        let both = {
            let mut both = strategy.clone();
            both["f:metadata"] = annotation["f:metadata"].clone();
            both
        };
        let other =
            |entry: &Value| json!({"manager": "argocd", "operation": "Apply", "fieldsV1": entry});
        let ours =
            |entry: &Value| json!({"manager": "ds-apply", "operation": "Apply", "fieldsV1": entry});
        for (rule, value, entries, held, left) in [
            ("ours", &on_delete, vec![ours(&both)], true, None),
            ("ours as well", &on_delete, vec![ours(&both), other(&strategy)], true, None),
            ("nobody is known", &on_delete, vec![], true, None),
            (
                "declared by another",
                &on_delete,
                vec![ours(&annotation), other(&strategy)],
                false,
                Some(true),
            ),
            ("set back", &rolling, vec![ours(&annotation), other(&strategy)], false, Some(true)),
            ("set back, and not ours", &rolling, vec![other(&both)], false, Some(false)),
            ("set back, and nobody is known", &rolling, vec![], false, Some(false)),
        ] {
            let mut cluster = Cluster::of(0);
            cluster.edit(|spec| spec["updateStrategy"] = value.clone());
            cluster.daemon_set.annotations =
                [(ROLLOUT_ANNOTATION, text.as_str())].into_iter().collect();
            Arc::make_mut(&mut cluster.daemon_set.raw)["metadata"]["managedFields"] =
                entries.into();
            let found = Hold::of(&cluster.daemon_set).unwrap();
            assert_eq!(found.is_some(), held, "{rule}");
            let found = LeftHold::of(&cluster.daemon_set);
            assert_eq!(found.as_ref().map(|it| it.removed), left, "{rule}");
            assert!(found.is_none_or(|it| it.hold == Some(hold())), "{rule}");
        }
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
