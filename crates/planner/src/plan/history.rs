//! The output of `history -o json`: the revisions of each DaemonSet, their change causes, and the
//! number of pods of each.
//!
//! The revisions are those that `kubectl rollout history` shows: selected by the DaemonSet and
//! controlled by it (upstream: `controlledHistory`). Not here: checking the revisions (`drift`).

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::document::{ApiVersion, ClusterSummary, FieldChange, Warning};
use super::rollout_history::RolloutHistory;
use super::secrets::ShownValues;
use super::{changes, secrets, warnings};
use crate::annotations::COMMIT_ANNOTATION;
use daemonset::controller::Owner;
use daemonset::controller::claims::Claims;
use daemonset::controller::history::hash_of;
use daemonset::controller::revision_data::{Matching, matches, template_of};
use daemonset::model::mask::is_secret_annotation;
use daemonset::model::{
    CHANGE_CAUSE_ANNOTATION, DaemonSet, DaemonSetKey, DaemonSetName, NamespaceName, Pod, Revision,
    RevisionHash, RevisionName, RevisionNumber, RevisionRef, Snapshot,
};

/// History of DaemonSets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct History {
    /// Version of this document's format.
    pub api_version: ApiVersion,
    /// Always `History`.
    pub kind: HistoryKind,
    /// The cluster, and the time of its snapshot.
    pub cluster: ClusterSummary,
    /// One entry per DaemonSet, ordered by namespace and name.
    pub daemon_sets: Vec<DaemonSetHistory>,
    /// Warnings.
    pub warnings: Vec<Warning>,
}

/// Kind of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum HistoryKind {
    /// A history.
    History,
}

/// The revisions of one DaemonSet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DaemonSetHistory {
    /// `metadata.namespace`.
    pub namespace: NamespaceName,
    /// `metadata.name`.
    pub name: DaemonSetName,
    /// Its revisions by number, or only the requested one.
    pub revisions: Vec<RevisionEntry>,
    /// Number of pods without an existing revision.
    pub pods_without_revision: u32,
    /// What is still known of the last rollout by steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutHistory>,
    /// Difference of two revisions, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<RevisionDifference>,
}

/// One revision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionEntry {
    /// Revision number.
    pub number: RevisionNumber,
    /// Name of the ControllerRevision.
    pub name: RevisionName,
    /// Value of the label `controller-revision-hash` of its pods.
    pub hash: RevisionHash,
    /// Whether it has the live template.
    pub live: bool,
    /// `metadata.creationTimestamp`. A reused revision keeps it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<Timestamp>,
    /// The annotation `kubernetes.io/change-cause`; masked if it may contain a secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change_cause: Option<String>,
    /// The annotation `ds-plan.dev/commit`: the commit that the template was applied from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Number of pods of the DaemonSet with its hash.
    pub pods: u32,
    /// Its template, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<Value>,
}

/// Difference of two revisions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RevisionDifference {
    /// The revision on the left.
    pub from: RevisionRef,
    /// The revision on the right.
    pub to: RevisionRef,
    /// The fields that differ.
    pub changes: Vec<FieldChange>,
    /// Template of the revision on the left.
    pub before: Value,
    /// Template of the revision on the right.
    pub after: Value,
}

/// The part of the history to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryQuestion {
    /// All revisions, without templates.
    Overview,
    /// One revision, with its template.
    Revision(RevisionNumber),
    /// Difference of two revisions.
    Difference(RevisionNumber, RevisionNumber),
}

/// The DaemonSet has no such revision.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("DaemonSet {daemon_set} has no revision {number}")]
pub struct NoSuchRevision {
    /// The DaemonSet.
    pub daemon_set: DaemonSetKey,
    /// The requested revision number.
    pub number: RevisionNumber,
    /// The existing revision numbers.
    pub known: Vec<RevisionNumber>,
}

/// Returns the history of the DaemonSets in the snapshot that `wanted` accepts.
///
/// # Errors
/// One of them does not have a requested revision.
pub fn history(
    snapshot: &Snapshot,
    wanted: impl Fn(&DaemonSetKey) -> bool,
    question: HistoryQuestion,
    show_values: ShownValues<'_>,
) -> Result<History, NoSuchRevision> {
    let live = snapshot.daemon_sets.iter().filter(|live| wanted(&live.key));
    let daemon_sets = live
        .map(|live| Past::of(live, snapshot).answer(question, show_values))
        .collect::<Result<_, _>>()?;
    Ok(History {
        api_version: ApiVersion::V1Alpha1,
        kind: HistoryKind::History,
        cluster: ClusterSummary::from(snapshot),
        daemon_sets,
        warnings: warnings::about_server(&snapshot.cluster).into_iter().collect(),
    })
}

/// One DaemonSet with its revisions by number and its pods by hash.
struct Past<'a> {
    live: &'a DaemonSet,
    snapshot: &'a Snapshot,
    revisions: Vec<&'a Revision>,
    pods: BTreeMap<RevisionHash, u32>,
    pods_without_revision: u32,
}

impl<'a> Past<'a> {
    fn of(live: &'a DaemonSet, snapshot: &'a Snapshot) -> Self {
        let owner = Owner::from(live);
        let namespace = &live.key.namespace;
        let Claims { claimed, adopted, .. } = Claims::of(&owner, snapshot.revisions_in(namespace));
        let orphans: BTreeSet<&RevisionName> =
            adopted.iter().map(|revision| &revision.name).collect();
        let mut revisions: Vec<&Revision> =
            claimed.into_iter().filter(|revision| !orphans.contains(&revision.name)).collect();
        revisions.sort_by(|a, b| (a.number, &a.name).cmp(&(b.number, &b.name)));
        let known: BTreeSet<RevisionHash> =
            revisions.iter().map(|revision| hash_of(revision)).collect();
        let mut pods = BTreeMap::new();
        let mut pods_without_revision = 0;
        for pod in Claims::of(&owner, snapshot.pods_in(namespace)).claimed {
            match Pod::revision_hash(pod).filter(|hash| known.contains(hash)) {
                Some(hash) => *pods.entry(hash).or_default() += 1,
                None => pods_without_revision += 1,
            }
        }
        Self { live, snapshot, revisions, pods, pods_without_revision }
    }

    fn answer(
        &self,
        question: HistoryQuestion,
        show_values: ShownValues<'_>,
    ) -> Result<DaemonSetHistory, NoSuchRevision> {
        let (revisions, difference) = match question {
            HistoryQuestion::Overview => {
                let entry = |revision: &&Revision| self.entry(revision, show_values);
                (self.revisions.iter().map(entry).collect(), None)
            }
            HistoryQuestion::Revision(number) => {
                let revision = self.numbered(number)?;
                let mut template = template(revision);
                if show_values != ShownValues::All {
                    secrets::mask(&mut template, show_values);
                }
                let entry =
                    RevisionEntry { template: Some(template), ..self.entry(revision, show_values) };
                (vec![entry], None)
            }
            HistoryQuestion::Difference(from, to) => {
                let (from, to) = (self.numbered(from)?, self.numbered(to)?);
                let entries = [from, to].map(|revision| self.entry(revision, show_values)).into();
                (entries, Some(difference(from, to, show_values)))
            }
        };
        Ok(DaemonSetHistory {
            namespace: self.live.key.namespace.clone(),
            name: self.live.key.name.clone(),
            revisions,
            pods_without_revision: self.pods_without_revision,
            rollout: (question == HistoryQuestion::Overview)
                .then(|| RolloutHistory::of(self.live, self.snapshot))
                .flatten(),
            difference,
        })
    }

    /// The revision with this number; of several, the last by name, as in kubectl.
    fn numbered(&self, number: RevisionNumber) -> Result<&'a Revision, NoSuchRevision> {
        let found = self.revisions.iter().rfind(|revision| revision.number == number);
        found.copied().ok_or_else(|| NoSuchRevision {
            daemon_set: self.live.key.clone(),
            number,
            known: self.revisions.iter().map(|revision| revision.number).collect(),
        })
    }

    fn entry(&self, revision: &Revision, show_values: ShownValues<'_>) -> RevisionEntry {
        let hash = hash_of(revision);
        let live = self.live.spec.template.raw();
        RevisionEntry {
            number: revision.number,
            name: revision.name.clone(),
            live: matches(live, &revision.data, Matching::Tolerant),
            created: revision.created,
            change_cause: revision.change_cause().map(|cause| change_cause(cause, show_values)),
            commit: revision.annotations.get(COMMIT_ANNOTATION).map(str::to_owned),
            pods: self.pods.get(&hash).copied().unwrap_or_default(),
            template: None,
            hash,
        }
    }
}

/// The change cause as it is shown: `kubectl` records whole command lines, with their values.
fn change_cause(cause: &str, show_values: ShownValues<'_>) -> String {
    let is_hidden =
        show_values != ShownValues::All && is_secret_annotation(CHANGE_CAUSE_ANNOTATION, cause);
    if is_hidden { secrets::MASK.to_owned() } else { cause.to_owned() }
}

/// The pod template of a revision.
fn template(revision: &Revision) -> Value {
    template_of(&revision.data).unwrap_or_default()
}

fn difference(from: &Revision, to: &Revision, show_values: ShownValues<'_>) -> RevisionDifference {
    let (before, after) = (template(from), template(to));
    let (mut shown_before, mut shown_after) = (before.clone(), after.clone());
    if show_values != ShownValues::All {
        secrets::mask(&mut shown_before, show_values);
        secrets::mask(&mut shown_after, show_values);
    }
    let mut changes = Vec::new();
    changes::compare(
        "",
        Some(changes::Side { truth: &before, shown: &shown_before }),
        Some(changes::Side { truth: &after, shown: &shown_after }),
        &mut changes,
    );
    let (mut before, mut after) = (before, after);
    if show_values != ShownValues::All {
        secrets::mask_pair(&mut before, &mut after, show_values);
    }
    RevisionDifference { from: from.into(), to: to.into(), changes, before, after }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::{settled, snapshot};

    /// `kubectl set env ... --record` puts values into the change cause.
    #[test]
    fn a_change_cause_that_may_hold_a_secret_is_masked() {
        let secret = "kubectl set env daemonset/foo API_TOKEN=hunter2 --record=true";
        let names = ["API_TOKEN".to_owned()];
        for (cause, shown, want) in [
            ("c0ffee: a new image", ShownValues::None, "c0ffee: a new image"),
            (secret, ShownValues::None, secrets::MASK),
            (secret, ShownValues::Env(&names), secrets::MASK),
            (secret, ShownValues::All, secret),
        ] {
            let mut snapshot = snapshot(&settled(1));
            let annotations = [(CHANGE_CAUSE_ANNOTATION, cause)].into_iter().collect();
            snapshot.revisions[0].annotations = annotations;
            let number = snapshot.revisions[0].number;
            for question in [
                HistoryQuestion::Overview,
                HistoryQuestion::Revision(number),
                HistoryQuestion::Difference(number, number),
            ] {
                let history = history(&snapshot, |_| true, question, shown).unwrap();
                let found = history.daemon_sets[0].revisions[0].change_cause.as_deref();
                assert_eq!(found, Some(want), "{question:?} {shown:?}");
            }
        }
    }
}
