//! A rollout that `ds-apply` is pacing, as recorded on the DaemonSet itself.
//!
//! While it is paced, the DaemonSet is paused: its live update strategy is `OnDelete`, and the
//! annotation [`ROLLOUT_ANNOTATION`] records the declared strategy. This module defines the format
//! of the annotation and when it is valid. Not here: pausing, resuming, restoring the strategy.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::annotations::ROLLOUT_ANNOTATION;
use crate::checks::CheckFinding;
use crate::digest::template_digest;
use crate::steps::WaitsFor;
use crate::time::next_whole_second;
use daemonset::model::{
    DaemonSet, FIELD_MANAGER, PolicySpec, RevisionRef, Snapshot, UpdateStrategy, short_commit,
};

/// The type of the update strategy, in the `fieldsV1` of `managedFields`.
const STRATEGY_TYPE: &str = "/f:spec/f:updateStrategy/f:type";

/// The value of the annotation: the rollout in progress, and the strategy to restore.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PausedRollout {
    /// Whether the rollout is in progress, or was aborted after a failure.
    pub state: PauseState,
    /// `spec.updateStrategy` as declared, which is restored at the end.
    pub declared: Value,
    /// Digest of the plan that is applied.
    pub plan_digest: String,
    /// The revision before the rollout; an aborted DaemonSet has its template again. None when
    /// there was no revision yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<RevisionRef>,
    /// Start of the rollout.
    pub since: Timestamp,
    /// Git commit that is rolled out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The user or CI job that runs it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// Digest of the template that failed; only for an aborted rollout, and for one of the last good
    /// template that replaces the failed pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
    /// Digest of the template that is rolled out; only for a waiting rollout, whose live template may
    /// be the last good one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// What the rollout waits for; only for a waiting one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<WaitsFor>,
    /// The gate of the policy that has failed; only for a rollout that is aborted, or that stays
    /// paused after the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_gate: Option<Box<CheckFinding>>,
}

/// State of a paced rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PauseState {
    /// The new template is live, and pods are replaced one wave after the other.
    Paused,
    /// No more nodes may begin for now: unless the policy keeps the target, the last good template is
    /// live again. The next run resumes it.
    Waiting,
    /// It failed: the last good template is live again, and no pod is replaced.
    Aborted,
}

/// The rollout annotation on a DaemonSet that is not paused: another client set the update strategy
/// during the pause. It is ignored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeftoverPause {
    /// Value of the annotation, if it can be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause: Option<PausedRollout>,
    /// Whether the next apply by `ds-apply` removes it, because `ds-apply` owns it.
    pub removed: bool,
}

/// The value of the annotation is not valid.
#[derive(Debug, thiserror::Error)]
#[error("annotation {ROLLOUT_ANNOTATION} cannot be read")]
pub struct PausedRolloutError(#[source] serde_json::Error);

impl PausedRollout {
    /// Returns the paused or aborted rollout of the DaemonSet; `None` when it is not paused.
    ///
    /// The annotation alone is not a pause. It is valid while the live strategy is `OnDelete`
    /// although another one was declared, and while `ds-apply` owns the strategy: an `OnDelete`
    /// that another client has declared since is not a pause.
    ///
    /// # Errors
    /// The strategy is `OnDelete`, and the declared one cannot be read from the annotation.
    pub fn of(live: &DaemonSet) -> Result<Option<Self>, PausedRolloutError> {
        let Some(text) = live.annotations.get(ROLLOUT_ANNOTATION) else { return Ok(None) };
        let paused = live.spec.update_strategy == UpdateStrategy::OnDelete;
        if !paused || is_ours(live, STRATEGY_TYPE) == Some(false) {
            return Ok(None);
        }
        let pause: Self = serde_json::from_str(text).map_err(PausedRolloutError)?;
        let declared = UpdateStrategy::deserialize(&pause.declared).map_err(PausedRolloutError)?;
        Ok((declared != UpdateStrategy::OnDelete).then_some(pause))
    }

    /// As [`of`](Self::of), where an annotation that cannot be read is reported elsewhere.
    pub(crate) fn readable(live: &DaemonSet) -> Option<Self> {
        Self::of(live).ok().flatten()
    }
}

/// The last good revision, as it is noted for a rollout of the live template that has not ended. A surge
/// that was interrupted has no pause that would say so.
pub(crate) fn noted_from<'s>(live: &DaemonSet, snapshot: &'s Snapshot) -> Option<&'s RevisionRef> {
    let note = snapshot.steps_note(&live.key)?;
    let template = template_digest(live.spec.template.raw());
    note.from.as_ref().filter(|_| note.is_unfinished(&template))
}

/// The digest of the template that failed, if a rollout of `template` is the way back from it: the last good
/// template is live already, and pods of others are replaced.
pub(crate) fn goes_back_from(live: &DaemonSet, template: &Value) -> Option<String> {
    let failed = PausedRollout::readable(live)?.failed?;
    let is_live = template_digest(live.spec.template.raw()) == template_digest(template);
    is_live.then_some(failed)
}

/// The policy of a rollout of `template`. The way back from a template that failed keeps only its budgets,
/// as `undo` does: its gates would judge the failed pods, and they would stay until it may continue.
pub(super) fn policy_for<'a>(
    policy: &'a PolicySpec,
    live: Option<&DaemonSet>,
    template: &Value,
) -> Cow<'a, PolicySpec> {
    match live.and_then(|live| goes_back_from(live, template)) {
        Some(_) => Cow::Owned(policy.budgets()),
        None => Cow::Borrowed(policy),
    }
}

impl LeftoverPause {
    /// Returns the leftover annotation of a DaemonSet that is not paused; `None` without one.
    pub fn of(live: &DaemonSet) -> Option<Self> {
        let text = live.annotations.get(ROLLOUT_ANNOTATION)?;
        let left = matches!(PausedRollout::of(live), Ok(None));
        let owned = || is_ours(live, &format!("/f:metadata/f:annotations/f:{}", escaped()));
        left.then(|| Self {
            pause: serde_json::from_str(text).ok(),
            removed: owned() == Some(true),
        })
    }
}

/// The time since which a rollout waits: that of the last apply by `ds-apply`, which wrote what it
/// waits for. None if it does not wait, or its managed fields are not known.
pub(super) fn waits_since(live: &DaemonSet, pause: &PausedRollout) -> Option<Timestamp> {
    match pause.state {
        PauseState::Paused | PauseState::Aborted => return None,
        PauseState::Waiting => {}
    }
    last_write(managed_fields(live)?)
}

/// The end of the last rollout at the latest: the time of the last apply by `ds-apply`, which has restored
/// the update strategy of a DaemonSet that is not paused. `None` if another field manager has written
/// the strategy, too, and may have ended the pause; or if the managed fields are not known.
pub(crate) fn restored_at(live: &DaemonSet) -> Option<Timestamp> {
    let entries = managed_fields(live)?;
    let mut others = entries.iter().filter(|entry| !is_own_apply(entry));
    let is_others = others.any(|entry| entry["fieldsV1"].pointer(STRATEGY_TYPE).is_some());
    let is_only_ours = is_ours(live, STRATEGY_TYPE) == Some(true) && !is_others;
    is_only_ours.then(|| last_write(entries))?
}

fn last_write(entries: &[Value]) -> Option<Timestamp> {
    let ours = entries.iter().filter(|entry| entry["manager"] == FIELD_MANAGER);
    ours.filter_map(|entry| entry["time"].as_str()?.parse().ok()).max()
}

fn managed_fields(live: &DaemonSet) -> Option<&[Value]> {
    let entries = live.raw.pointer("/metadata/managedFields").and_then(Value::as_array)?;
    Some(entries)
}

/// The annotation's key, escaped for a JSON pointer.
fn escaped() -> String {
    ROLLOUT_ANNOTATION.replace('/', "~1")
}

/// Whether `ds-apply` owns a field by server-side apply; `None` without `managedFields`.
fn is_ours(live: &DaemonSet, field: &str) -> Option<bool> {
    let entries = managed_fields(live)?;
    let mut applied = entries.iter().filter(|it| is_own_apply(it));
    (!entries.is_empty()).then(|| applied.any(|entry| entry["fieldsV1"].pointer(field).is_some()))
}

/// Whether an entry of `managedFields` is that of `ds-apply` by server-side apply.
fn is_own_apply(entry: &Value) -> bool {
    entry["manager"] == FIELD_MANAGER
        && entry["operation"] == "Apply"
        && entry.get("subresource").is_none_or(|it| it == "")
}

/// The DaemonSet with the declared update strategy, so that the `OnDelete` of a pause is not shown
/// as a change.
pub(super) fn as_declared<'a>(
    live: &'a DaemonSet,
    pause: Option<&PausedRollout>,
) -> Cow<'a, DaemonSet> {
    let declared = pause.and_then(|pause| {
        let strategy = UpdateStrategy::deserialize(&pause.declared).ok()?;
        Some((strategy, pause.declared.clone()))
    });
    let Some((update_strategy, value)) = declared else { return Cow::Borrowed(live) };
    let mut live = live.clone();
    live.spec.update_strategy = update_strategy;
    Arc::make_mut(&mut live.raw)["spec"]["updateStrategy"] = value;
    Cow::Owned(live)
}

/// `paused by ci since 2026-08-01T12:00:00Z, commit 4f2c9e1, from revision 7`; `waiting, begun by ci
/// at 2026-08-01T12:00:00Z, step canary soaks until 2026-08-01T12:30:00Z`.
impl fmt::Display for PausedRollout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            state,
            declared: _,
            plan_digest: _,
            from,
            since,
            commit,
            by,
            failed: _,
            target: _,
            waits_for,
            failed_gate,
        } = self;
        let by = by.as_deref().unwrap_or("ds-apply");
        match state {
            PauseState::Paused | PauseState::Aborted => write!(f, "{state} by {by} since {since}")?,
            PauseState::Waiting => write!(f, "{state}, begun by {by} at {since}")?,
        }
        commit.iter().try_for_each(|commit| write!(f, ", commit {}", short_commit(commit)))?;
        from.iter().try_for_each(|from| write!(f, ", from revision {}", from.number))?;
        waits_for.iter().try_for_each(|wait| {
            let until = wait.until.map(next_whole_second);
            write!(f, ", {}", WaitsFor { until, ..wait.clone() })
        })?;
        let gate = failed_gate.as_deref();
        gate.map_or(Ok(()), |CheckFinding { check, since, reason }| {
            write!(f, ", gate {check} failed at {since}: {reason}")
        })
    }
}

/// A sentence without the name of the DaemonSet.
impl fmt::Display for LeftoverPause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { pause, removed } = self;
        write!(f, "annotation {ROLLOUT_ANNOTATION} is left over")?;
        pause.iter().try_for_each(|pause| write!(f, " ({pause})"))?;
        f.write_str(": another client has set the update strategy since, so it is ignored; ")?;
        f.write_str(if *removed {
            "the next apply by ds-apply removes it"
        } else {
            "ds-apply does not own it: remove it with `kubectl annotate daemonset NAME \
             ds-plan.dev/rollout-`"
        })
    }
}

impl fmt::Display for PauseState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Paused => "paused",
            Self::Waiting => "waiting",
            Self::Aborted => "aborted",
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use daemonset::controller::test_cluster::Cluster;
    use daemonset::model::RevisionNumber;

    fn pause() -> PausedRollout {
        PausedRollout {
            state: PauseState::Aborted,
            declared: json!({
                "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%", "maxSurge": 0}
            }),
            plan_digest: "sha256:6fd1".into(),
            from: Some(RevisionRef { name: "agent-abc".into(), number: RevisionNumber(7) }),
            since: "2026-08-01T12:00:00Z".parse().unwrap(),
            commit: Some("4f2c9e1".into()),
            by: None,
            failed: None,
            target: None,
            waits_for: Vec::new(),
            failed_gate: None,
        }
    }

    #[test]
    fn the_format_of_the_annotation() {
        let text = json!({
            "state": "aborted",
            "declared": {
                "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "10%", "maxSurge": 0}
            },
            "planDigest": "sha256:6fd1",
            "from": {"name": "agent-abc", "number": 7},
            "since": "2026-08-01T12:00:00Z",
            "commit": "4f2c9e1",
        });
        assert_eq!(serde_json::to_value(pause()).unwrap(), text);
        assert_eq!(serde_json::from_value::<PausedRollout>(text).unwrap(), pause());
    }

    /// Cases: the live strategy, the managed fields, whether it is a pause, and whether a leftover
    /// annotation is removed by the next apply.
    #[test]
    fn a_strategy_of_another_client_is_not_a_pause_and_the_annotation_is_left_over() {
        let on_delete = json!({"type": "OnDelete"});
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}});
        let text = serde_json::to_string(&pause()).unwrap();
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
            ("no managed fields", &on_delete, vec![], true, None),
            (
                "declared by another client",
                &on_delete,
                vec![ours(&annotation), other(&strategy)],
                false,
                Some(true),
            ),
            ("set back", &rolling, vec![ours(&annotation), other(&strategy)], false, Some(true)),
            ("set back, and not ours", &rolling, vec![other(&both)], false, Some(false)),
            ("set back, no managed fields", &rolling, vec![], false, Some(false)),
        ] {
            let mut cluster = Cluster::of(0);
            cluster.edit(|spec| spec["updateStrategy"] = value.clone());
            cluster.daemon_set.annotations =
                [(ROLLOUT_ANNOTATION, text.as_str())].into_iter().collect();
            Arc::make_mut(&mut cluster.daemon_set.raw)["metadata"]["managedFields"] =
                entries.into();
            let found = PausedRollout::of(&cluster.daemon_set).unwrap();
            assert_eq!(found.is_some(), held, "{rule}");
            let found = LeftoverPause::of(&cluster.daemon_set);
            assert_eq!(found.as_ref().map(|it| it.removed), left, "{rule}");
            assert!(found.is_none_or(|it| it.pause == Some(pause())), "{rule}");
        }
    }

    #[test]
    fn the_annotation_is_valid_while_the_strategy_differs_from_the_declared_one() {
        let on_delete = json!({"type": "OnDelete"});
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}});
        let valid = serde_json::to_string(&pause()).unwrap();
        let same = serde_json::to_string(&PausedRollout { declared: on_delete.clone(), ..pause() })
            .unwrap();
        for (rule, strategy, annotation, want) in [
            ("paused", &on_delete, Some(valid.as_str()), Ok(Some(pause()))),
            ("no annotation", &on_delete, None, Ok(None)),
            ("restored already", &rolling, Some(&valid), Ok(None)),
            ("OnDelete was declared", &on_delete, Some(&same), Ok(None)),
            ("invalid but ignored", &rolling, Some("{"), Ok(None)),
            ("invalid", &on_delete, Some("{"), Err(())),
        ] {
            let mut cluster = Cluster::of(0);
            cluster.edit(|spec| spec["updateStrategy"] = strategy.clone());
            cluster.daemon_set.annotations =
                annotation.map(|text| (ROLLOUT_ANNOTATION, text)).into_iter().collect();
            assert_eq!(PausedRollout::of(&cluster.daemon_set).map_err(|_| ()), want, "{rule}");
        }
    }
}
