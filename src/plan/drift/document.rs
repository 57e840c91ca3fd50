//! What `drift -o json` prints. Every deviation carries its data; its sentence is made here.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::{DaemonSetName, NamespaceName, NodeName, PodName, RevisionName, RevisionNumber};
use crate::plan::coded::Coded;
use crate::plan::document::{
    ApiVersion, ClusterSummary, FieldChange, RevisionRef, SourceInfo, Warning,
};
use crate::plan::hold::{Hold, HoldState, LeftHold};
use crate::plan::reason::Reason;
use crate::plan::writers::Writer;

/// How the cluster deviates from the source and from itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Drift {
    /// Version of this document's form.
    pub api_version: ApiVersion,
    /// Always `Drift`.
    pub kind: DriftKind,
    /// Where the manifests came from.
    pub source: SourceInfo,
    /// Which cluster was looked at, and when.
    pub cluster: ClusterSummary,
    /// One entry a DaemonSet, ordered by namespace and name.
    pub daemon_sets: Vec<DaemonSetDrift>,
    /// How many deviations there are of each class.
    pub totals: DriftTotals,
    /// What a careful reader should know.
    pub warnings: Vec<Warning>,
}

impl Drift {
    /// Whether there is any deviation.
    pub fn is_found(&self) -> bool {
        self.daemon_sets.iter().any(|one| !one.deviations.is_empty())
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
    /// What deviates, by class; empty when all is as it should be.
    pub deviations: Vec<Classified>,
}

/// A deviation and its class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Classified {
    /// Which of the five kinds of drift it is.
    pub class: DriftClass,
    /// What deviates.
    #[serde(flatten)]
    pub deviation: Coded<Deviation>,
}

impl From<Deviation> for Classified {
    fn from(deviation: Deviation) -> Self {
        Self { class: deviation.class(), deviation: deviation.into() }
    }
}

/// Which kind of drift.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "camelCase")]
pub enum DriftClass {
    /// The object differs from the source.
    Spec,
    /// Pods differ from the object.
    Pod,
    /// A rollout is held, parked or unfinished.
    Rollout,
    /// The revisions differ from the object, or from each other.
    History,
    /// Pods are, or will be, where they may not start.
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

/// What deviates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "code", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Deviation {
    /// The cluster does not have the DaemonSet.
    ObjectMissing,
    /// The DaemonSet is being deleted.
    ObjectTerminating,
    /// A field of the live object is not as the source has it.
    FieldDiffers {
        /// The field: its value in the cluster before, its value in the source after.
        #[serde(flatten)]
        change: FieldChange,
        /// Who wrote it in the cluster, the latest first. Nobody when the cluster lacks the field,
        /// or does not say.
        writers: Vec<Writer>,
    },
    /// Nodes that should run a pod and have none that stays.
    PodMissing {
        /// Which.
        nodes: Vec<NodeDrift>,
    },
    /// Pods beside the one that their node should have.
    PodSurplus {
        /// Where.
        nodes: Vec<NodeDrift>,
    },
    /// Pods of another template than the live one.
    PodOutdated {
        /// Where.
        nodes: Vec<NodeDrift>,
    },
    /// Pods that have ended.
    PodFailed {
        /// Where.
        nodes: Vec<NodeDrift>,
    },
    /// Pods on nodes that may not keep them, or that are gone.
    PodMisscheduled {
        /// Where.
        nodes: Vec<NodeDrift>,
    },
    /// `ds-apply` is pacing a rollout.
    Held {
        /// What it remembers.
        hold: Hold,
    },
    /// `ds-apply` has stopped a rollout that failed.
    Parked {
        /// What it remembers.
        hold: Hold,
    },
    /// The DaemonSet looks held, but what is remembered of it cannot be read.
    HoldUnreadable {
        /// Why.
        problem: String,
    },
    /// The annotation of a rollout is left over: somebody has set the strategy back.
    HoldLeftOver {
        /// What it remembers.
        left: LeftHold,
    },
    /// The controller has not seen the object as it is.
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
        /// Nodes that run it.
        updated: u32,
        /// Nodes that should.
        desired: u32,
    },
    /// No revision holds the live template.
    RevisionMissing,
    /// Two revisions hold one template.
    RevisionDuplicate {
        /// The one that is too many.
        revision: RevisionRef,
        /// The one that stays.
        of: RevisionRef,
    },
    /// Two revisions have one number; `kubectl rollout` sees only the last of them.
    RevisionNumberTwice {
        /// The number.
        number: RevisionNumber,
        /// The revisions.
        names: Vec<RevisionName>,
    },
    /// A revision that belongs to no DaemonSet that exists.
    RevisionOrphaned {
        /// Which.
        revision: RevisionRef,
    },
    /// A revision that is half one template and half the next: somebody applied in two steps.
    RevisionMixed {
        /// Which.
        revision: RevisionRef,
        /// The revision that one half is from.
        older: RevisionRef,
        /// The revision that the other half is from.
        newer: RevisionRef,
    },
    /// The status counts pods as updated, by their template generation, that come from another
    /// template.
    StatusDisagrees {
        /// Where they are.
        nodes: Vec<NodeDrift>,
    },
    /// Pods that run where none may start.
    RunsWhereNoneMayStart {
        /// Where.
        nodes: Vec<NodeDrift>,
    },
    /// The namespace keeps pods off nodes where the DaemonSet wants one.
    NamespaceNodeSelector {
        /// The annotation of the namespace.
        annotation: String,
        /// Its value.
        selector: String,
        /// The nodes that it keeps pods off.
        nodes: Vec<NodeName>,
    },
}

/// A node that deviates, and the pods because of which it does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeDrift {
    /// Name of the node.
    pub node: NodeName,
    /// The pods.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub pods: Vec<PodName>,
    /// Why.
    pub reasons: Vec<Coded<Reason>>,
}

/// The nodes that a deviation is about.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DeviatingNodes<'a> {
    /// It is about the DaemonSet or its revisions.
    None,
    /// Each has reasons of its own.
    WithReasons(&'a [NodeDrift]),
    /// One reason holds for all.
    Named(&'a [NodeName]),
}

impl Deviation {
    /// Which of the five kinds of drift it is.
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
            Self::Held { .. }
            | Self::Parked { .. }
            | Self::HoldUnreadable { .. }
            | Self::HoldLeftOver { .. }
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

    /// The nodes it is about.
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
            | Self::Held { .. }
            | Self::Parked { .. }
            | Self::HoldUnreadable { .. }
            | Self::HoldLeftOver { .. }
            | Self::NotObserved { .. }
            | Self::Unfinished { .. }
            | Self::RevisionMissing
            | Self::RevisionDuplicate { .. }
            | Self::RevisionNumberTwice { .. }
            | Self::RevisionOrphaned { .. }
            | Self::RevisionMixed { .. } => DeviatingNodes::None,
        }
    }

    /// The deviation of a DaemonSet that is under this hold.
    pub(super) fn of_hold(hold: Hold) -> Self {
        match hold.state {
            HoldState::Holding => Self::Held { hold },
            HoldState::Parked => Self::Parked { hold },
        }
    }
}

impl fmt::Display for Deviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ObjectMissing => f.write_str("the cluster does not have it"),
            Self::ObjectTerminating => f.write_str("it is being deleted"),
            Self::FieldDiffers { change, writers: _ } => {
                write!(f, "{} is not as in the source", change.path)
            }
            Self::PodMissing { nodes } => write!(f, "{} without a pod", Nodes(nodes.len())),
            Self::PodSurplus { nodes } => {
                write!(f, "{} with more than one pod", Nodes(nodes.len()))
            }
            Self::PodOutdated { nodes } => {
                write!(f, "{} with a pod of another template", Nodes(nodes.len()))
            }
            Self::PodFailed { nodes } => write!(f, "{} with a pod that ended", Nodes(nodes.len())),
            Self::PodMisscheduled { nodes } => {
                write!(f, "{} with a pod that may not be there", Nodes(nodes.len()))
            }
            Self::Held { hold } | Self::Parked { hold } => hold.fmt(f),
            Self::HoldUnreadable { problem } => f.write_str(problem),
            Self::HoldLeftOver { left } => left.fmt(f),
            Self::NotObserved { generation, observed_generation } => write!(
                f,
                "the controller is at generation {observed_generation}, the object at {generation}"
            ),
            Self::Unfinished { revision, updated, desired } => {
                f.write_str("the live template")?;
                revision.iter().try_for_each(|number| write!(f, ", revision {number},"))?;
                write!(f, " runs on {updated} of {}", Nodes(*desired))
            }
            Self::RevisionMissing => f.write_str("no revision holds the live template"),
            Self::RevisionDuplicate { revision, of } => {
                write!(f, "{} holds the same template as {}", Named(revision), Named(of))
            }
            Self::RevisionNumberTwice { number, names } => {
                let names: Vec<&str> = names.iter().map(RevisionName::as_str).collect();
                write!(f, "revision {number} is there twice: {}", names.join(", "))
            }
            Self::RevisionOrphaned { revision } => {
                write!(f, "{} belongs to no DaemonSet that exists", Named(revision))
            }
            Self::RevisionMixed { revision, older, newer } => write!(
                f,
                "{} is half {} and half {}: somebody applied in two steps",
                Named(revision),
                Named(older),
                Named(newer)
            ),
            Self::StatusDisagrees { nodes } => write!(
                f,
                "the status counts {} as updated that run another template",
                Nodes(nodes.len())
            ),
            Self::RunsWhereNoneMayStart { nodes } => {
                write!(f, "{} with a pod where none may start", Nodes(nodes.len()))
            }
            Self::NamespaceNodeSelector { annotation, selector, nodes } => write!(
                f,
                "{annotation} {selector} of the namespace keeps pods off {} where the DaemonSet \
                 wants one",
                Nodes(nodes.len())
            ),
        }
    }
}

struct Named<'a>(&'a RevisionRef);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RevisionRef { name, number } = self.0;
        write!(f, "revision {number} ({name})")
    }
}

/// `1 node`, `2 nodes`.
struct Nodes<N>(N);

impl<N: TryInto<u64> + Copy> fmt::Display for Nodes<N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count: u64 = self.0.try_into().unwrap_or(u64::MAX);
        write!(f, "{count} node{}", if count == 1 { "" } else { "s" })
    }
}

/// How many deviations there are of each class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DriftTotals {
    /// Of class `spec`.
    pub spec: u32,
    /// Of class `pod`.
    pub pod: u32,
    /// Of class `rollout`.
    pub rollout: u32,
    /// Of class `history`.
    pub history: u32,
    /// Of class `eligibility`.
    pub eligibility: u32,
}

impl DriftTotals {
    /// Counts one more deviation.
    pub fn add(&mut self, class: DriftClass) {
        *match class {
            DriftClass::Spec => &mut self.spec,
            DriftClass::Pod => &mut self.pod,
            DriftClass::Rollout => &mut self.rollout,
            DriftClass::History => &mut self.history,
            DriftClass::Eligibility => &mut self.eligibility,
        } += 1;
    }
}
