//! The output of `drift -o json`. Every deviation has data, from which its sentence is made here.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::Age;
use crate::plan::coded::Coded;
use crate::plan::document::{ApiVersion, ClusterSummary, FieldChange, SourceInfo, Warning};
use crate::plan::pause::{LeftoverPause, PauseState, PausedRollout};
use crate::plan::reason::Reason;
use crate::plan::writers::Writer;
use crate::words::count;
use daemonset::model::{
    DaemonSetName, NamespaceName, NodeName, PodName, RevisionName, RevisionNumber, RevisionRef,
};

/// A drift report: the deviations of every DaemonSet of the source.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Drift {
    /// Version of this document's format.
    pub api_version: ApiVersion,
    /// Always `Drift`.
    pub kind: DriftKind,
    /// Origin of the manifests.
    pub source: SourceInfo,
    /// The cluster, and the time of its snapshot.
    pub cluster: ClusterSummary,
    /// One entry per DaemonSet, ordered by namespace and name.
    pub daemon_sets: Vec<DaemonSetDrift>,
    /// Number of deviations of each class.
    pub totals: DriftTotals,
    /// Warnings.
    pub warnings: Vec<Warning>,
}

impl Drift {
    /// Whether there is any deviation that is not [expected](Deviation::is_expected).
    pub fn is_found(&self) -> bool {
        let mut all = self.daemon_sets.iter().flat_map(|one| &one.deviations);
        all.any(|one| !one.deviation.reason.is_expected())
    }
}

/// Kind of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DriftKind {
    /// A drift report.
    Drift,
}

/// The deviations of one DaemonSet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DaemonSetDrift {
    /// `metadata.namespace`.
    pub namespace: NamespaceName,
    /// `metadata.name`.
    pub name: DaemonSetName,
    /// Deviations, ordered by class; empty without drift.
    pub deviations: Vec<Classified>,
}

/// A deviation and its class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Classified {
    /// Class of the deviation.
    pub class: DriftClass,
    /// The deviation.
    #[serde(flatten)]
    pub deviation: Coded<Deviation>,
}

impl From<Deviation> for Classified {
    fn from(deviation: Deviation) -> Self {
        Self { class: deviation.class(), deviation: deviation.into() }
    }
}

/// Class of drift.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum DriftClass {
    /// The object differs from the source.
    Spec,
    /// Pods differ from the object.
    Pod,
    /// A rollout is paused, aborted or unfinished.
    Rollout,
    /// The revisions do not match the object or each other.
    History,
    /// Pods are on nodes, or selected for nodes, where a new pod may not start.
    Eligibility,
}

impl fmt::Display for DriftClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spec => "spec",
            Self::Pod => "pod",
            Self::Rollout => "rollout",
            Self::History => "history",
            Self::Eligibility => "eligibility",
        })
    }
}

/// A deviation with its data; `code` names it in JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Deviation {
    /// The DaemonSet does not exist in the cluster.
    ObjectMissing,
    /// The DaemonSet is being deleted.
    ObjectTerminating,
    /// A field of the live object differs from the source.
    FieldDiffers {
        /// The field: its value in the cluster before, its value in the source after.
        #[serde(flatten)]
        change: FieldChange,
        /// Field managers that wrote it in the cluster, the latest first. Empty when the cluster
        /// does not have the field, or the managers are unknown.
        writers: Vec<Writer>,
    },
    /// Nodes that should run a pod and have none, apart from terminating ones.
    PodMissing {
        /// The nodes.
        nodes: Vec<NodeDrift>,
    },
    /// Pods in addition to the one that their node should have.
    PodSurplus {
        /// The nodes and their pods.
        nodes: Vec<NodeDrift>,
    },
    /// Pods of another template than the live one.
    PodOutdated {
        /// The nodes and their pods.
        nodes: Vec<NodeDrift>,
    },
    /// Pods in phase Failed or Succeeded.
    PodFailed {
        /// The nodes and their pods.
        nodes: Vec<NodeDrift>,
    },
    /// Pods on nodes that may not keep them, or that no longer exist.
    PodMisscheduled {
        /// The nodes and their pods.
        nodes: Vec<NodeDrift>,
    },
    /// `ds-apply` is pacing a rollout.
    Paused {
        /// The rollout, as recorded in the annotation.
        pause: PausedRollout,
    },
    /// The policy of a rollout lets no more nodes begin for now; a later run continues it.
    Waiting {
        /// The rollout, as recorded in the annotation; one by `ds-apply roll`, which has none, as its
        /// policy and the note in its Lease have it.
        pause: PausedRollout,
        /// Seconds since it could continue, if no run has come for an hour.
        #[serde(skip_serializing_if = "Option::is_none")]
        overdue_seconds: Option<i64>,
        /// The source declares another template than the one that waits.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        superseded: bool,
    },
    /// `ds-apply` has aborted a rollout that failed.
    Aborted {
        /// The rollout, as recorded in the annotation.
        pause: PausedRollout,
    },
    /// The DaemonSet appears to be paused, but its rollout annotation cannot be read.
    PauseUnreadable {
        /// The error.
        problem: String,
    },
    /// The rollout annotation is left over: another client has set the strategy back.
    PauseLeftOver {
        /// The rollout, as recorded in the annotation.
        left: LeftoverPause,
    },
    /// The controller has not observed the latest generation of the object.
    NotObserved {
        /// `metadata.generation`.
        generation: i64,
        /// `status.observedGeneration`.
        observed_generation: i64,
    },
    /// Not every node runs the live template yet.
    Unfinished {
        /// The revision of the live template, when there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        revision: Option<RevisionNumber>,
        /// Number of desired nodes that run it.
        updated: u32,
        /// Number of desired nodes.
        desired: u32,
    },
    /// No revision has the live template.
    RevisionMissing,
    /// Two revisions have the same template.
    RevisionDuplicate {
        /// The duplicate, with the lower number.
        revision: RevisionRef,
        /// The revision that the controller keeps.
        of: RevisionRef,
    },
    /// Two revisions have the same number; `kubectl rollout` uses only the last of them.
    RevisionNumberTwice {
        /// The shared revision number.
        number: RevisionNumber,
        /// Names of the revisions.
        names: Vec<RevisionName>,
    },
    /// A revision that does not belong to an existing DaemonSet.
    RevisionOrphaned {
        /// The revision.
        revision: RevisionRef,
    },
    /// A revision that mixes two templates: the manifest was applied in two steps.
    RevisionMixed {
        /// The revision.
        revision: RevisionRef,
        /// The revision before it.
        older: RevisionRef,
        /// The revision after it.
        newer: RevisionRef,
    },
    /// The status counts pods as updated, by their template generation, that come from another
    /// template.
    StatusDisagrees {
        /// The nodes and their pods.
        nodes: Vec<NodeDrift>,
    },
    /// Pods on nodes where they may keep running but a new pod may not start.
    RunsWhereNoneMayStart {
        /// The nodes and their pods.
        nodes: Vec<NodeDrift>,
    },
    /// The node selector of the namespace excludes nodes that the DaemonSet selects.
    NamespaceNodeSelector {
        /// Key of the annotation of the namespace.
        annotation: String,
        /// Value of the annotation.
        selector: String,
        /// The excluded nodes.
        nodes: Vec<NodeName>,
    },
}

/// A deviating node and the pods that deviate on it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeDrift {
    /// Name of the node.
    pub node: NodeName,
    /// Its deviating pods.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub pods: Vec<PodName>,
    /// The reasons.
    pub reasons: Vec<Coded<Reason>>,
}

/// The nodes of a deviation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DeviatingNodes<'a> {
    /// None: the deviation is of the DaemonSet or its revisions.
    None,
    /// Nodes with a reason each.
    WithReasons(&'a [NodeDrift]),
    /// Nodes that share one reason.
    Named(&'a [NodeName]),
}

/// Time after the end of a wait after which the rollout counts as forgotten: a pipeline comes again
/// by a schedule.
const FORGOTTEN: SignedDuration = SignedDuration::from_hours(1);

impl Deviation {
    /// Class of the deviation.
    pub fn class(&self) -> DriftClass {
        match self {
            Self::ObjectMissing | Self::ObjectTerminating | Self::FieldDiffers { .. } => {
                DriftClass::Spec
            }
            Self::PodMissing { .. }
            | Self::PodSurplus { .. }
            | Self::PodOutdated { .. }
            | Self::PodFailed { .. }
            | Self::PodMisscheduled { .. } => DriftClass::Pod,
            Self::Paused { .. }
            | Self::Waiting { .. }
            | Self::Aborted { .. }
            | Self::PauseUnreadable { .. }
            | Self::PauseLeftOver { .. }
            | Self::NotObserved { .. }
            | Self::Unfinished { .. } => DriftClass::Rollout,
            Self::RevisionMissing
            | Self::RevisionDuplicate { .. }
            | Self::RevisionNumberTwice { .. }
            | Self::RevisionOrphaned { .. }
            | Self::RevisionMixed { .. }
            | Self::StatusDisagrees { .. } => DriftClass::History,
            Self::RunsWhereNoneMayStart { .. } | Self::NamespaceNodeSelector { .. } => {
                DriftClass::Eligibility
            }
        }
    }

    /// Returns its nodes.
    pub fn nodes(&self) -> DeviatingNodes<'_> {
        match self {
            Self::PodMissing { nodes }
            | Self::PodSurplus { nodes }
            | Self::PodOutdated { nodes }
            | Self::PodFailed { nodes }
            | Self::PodMisscheduled { nodes }
            | Self::StatusDisagrees { nodes }
            | Self::RunsWhereNoneMayStart { nodes } => DeviatingNodes::WithReasons(nodes),
            Self::NamespaceNodeSelector { annotation: _, selector: _, nodes } => {
                DeviatingNodes::Named(nodes)
            }
            Self::ObjectMissing
            | Self::ObjectTerminating
            | Self::FieldDiffers { .. }
            | Self::Paused { .. }
            | Self::Waiting { .. }
            | Self::Aborted { .. }
            | Self::PauseUnreadable { .. }
            | Self::PauseLeftOver { .. }
            | Self::NotObserved { .. }
            | Self::Unfinished { .. }
            | Self::RevisionMissing
            | Self::RevisionDuplicate { .. }
            | Self::RevisionNumberTwice { .. }
            | Self::RevisionOrphaned { .. }
            | Self::RevisionMixed { .. } => DeviatingNodes::None,
        }
    }

    /// Whether it is no drift: the policy of a rollout of the source's template lets no more nodes begin
    /// for now, and it is not forgotten. It is reported, but not counted.
    pub fn is_expected(&self) -> bool {
        matches!(self, Self::Waiting { pause: _, overdue_seconds: None, superseded: false })
    }

    /// The deviation of a DaemonSet with this paused or aborted rollout. `is_declared`: the source
    /// declares its template.
    pub(super) fn of_pause(pause: PausedRollout, is_declared: bool, now: Timestamp) -> Self {
        match pause.state {
            PauseState::Paused => Self::Paused { pause },
            PauseState::Waiting => {
                let ends = pause.waits_for.iter().map(|wait| wait.until);
                let end = ends.collect::<Option<Vec<_>>>().and_then(|ends| ends.into_iter().max());
                let overdue = end.map(|end| now.duration_since(end));
                let overdue = overdue.filter(|overdue| *overdue >= FORGOTTEN);
                let overdue_seconds = overdue.map(|it| it.as_secs());
                Self::Waiting { pause, overdue_seconds, superseded: !is_declared }
            }
            PauseState::Aborted => Self::Aborted { pause },
        }
    }
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ObjectMissing => f.write_str("it does not exist in the cluster"),
            Self::ObjectTerminating => f.write_str("it is being deleted"),
            Self::FieldDiffers { change, writers: _ } => {
                write!(f, "{} differs from the source", change.path)
            }
            Self::PodMissing { nodes } => on(f, nodes, "without a pod"),
            Self::PodSurplus { nodes } => on(f, nodes, "with more than one pod"),
            Self::PodOutdated { nodes } => on(f, nodes, "with a pod of another template"),
            Self::PodFailed { nodes } => on(f, nodes, "with a failed or completed pod"),
            Self::PodMisscheduled { nodes } => on(f, nodes, "with a pod that may not run there"),
            Self::Paused { pause } | Self::Aborted { pause } => pause.fmt(f),
            Self::Waiting { pause, overdue_seconds, superseded } => {
                waiting(f, pause, *overdue_seconds, *superseded)
            }
            Self::PauseUnreadable { problem } => f.write_str(problem),
            Self::PauseLeftOver { left } => left.fmt(f),
            Self::NotObserved { generation, observed_generation } => write!(
                f,
                "the controller has observed generation {observed_generation}, the object is at \
                 {generation}"
            ),
            Self::Unfinished { revision, updated, desired } => {
                f.write_str("the live template")?;
                revision.iter().try_for_each(|number| write!(f, ", revision {number},"))?;
                write!(f, " runs on {updated} of {}", count(*desired, "node"))
            }
            Self::RevisionMissing => f.write_str("no revision has the live template"),
            Self::RevisionDuplicate { revision, of } => {
                write!(f, "{} has the same template as {}", Named(revision), Named(of))
            }
            Self::RevisionNumberTwice { number, names } => {
                let names: Vec<&str> = names.iter().map(RevisionName::as_str).collect();
                write!(f, "revision {number} exists more than once: {}", names.join(", "))
            }
            Self::RevisionOrphaned { revision } => {
                write!(f, "{} does not belong to an existing DaemonSet", Named(revision))
            }
            Self::RevisionMixed { revision, older, newer } => write!(
                f,
                "{} mixes {} and {}: the manifest was applied in two steps",
                Named(revision),
                Named(older),
                Named(newer)
            ),
            Self::StatusDisagrees { nodes } => write!(
                f,
                "the status counts {} as updated whose pods run another template",
                count(nodes.len(), "node")
            ),
            Self::RunsWhereNoneMayStart { nodes } => {
                on(f, nodes, "with a pod where a new pod may not start")
            }
            Self::NamespaceNodeSelector { annotation, selector, nodes } => write!(
                f,
                "{annotation} {selector} of the namespace excludes {} that the DaemonSet \
                 selects",
                count(nodes.len(), "node")
            ),
        }
    }
}

fn waiting(
    f: &mut fmt::Formatter<'_>,
    pause: &PausedRollout,
    overdue_seconds: Option<i64>,
    superseded: bool,
) -> fmt::Result {
    write!(f, "{pause}")?;
    let forgotten = overdue_seconds.map(Age);
    forgotten.iter().try_for_each(|age| write!(f, "; forgotten: no run has come for {age}"))?;
    f.write_str(if superseded { "; superseded: the source declares another template" } else { "" })
}

/// `3 nodes without a pod`.
fn on<T>(f: &mut fmt::Formatter<'_>, nodes: &[T], words: &str) -> fmt::Result {
    write!(f, "{} {words}", count(nodes.len(), "node"))
}

struct Named<'a>(&'a RevisionRef);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RevisionRef { name, number } = self.0;
        write!(f, "revision {number} ({name})")
    }
}

/// Number of deviations of each class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftTotals {
    /// Number of deviations of class `spec`.
    pub spec: u32,
    /// Number of deviations of class `pod`.
    pub pod: u32,
    /// Number of deviations of class `rollout`.
    pub rollout: u32,
    /// Number of deviations of class `history`.
    pub history: u32,
    /// Number of deviations of class `eligibility`.
    pub eligibility: u32,
}

impl DriftTotals {
    /// Counts a deviation, if it is drift.
    pub fn add(&mut self, Classified { class, deviation }: &Classified) {
        if deviation.reason.is_expected() {
            return;
        }
        *match class {
            DriftClass::Spec => &mut self.spec,
            DriftClass::Pod => &mut self.pod,
            DriftClass::Rollout => &mut self.rollout,
            DriftClass::History => &mut self.history,
            DriftClass::Eligibility => &mut self.eligibility,
        } += 1;
    }
}
