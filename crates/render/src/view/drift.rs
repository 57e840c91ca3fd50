//! A drift report, ready to be laid out.

use std::iter;

use super::nodes::{NodeGroup, groups, sentence};
use super::notice::Notice;
use super::origin::Origin;
use planner::plan::{
    Classified, Coded, DaemonSetDrift, DeviatingNodes, Deviation, Drift, DriftClass, DriftTotals,
    FieldChange, NodeDrift, Reason, WriteOperation, Writer, Zones,
};
use planner::words::{agree, count};

/// The classes of drift, in the order in which they are shown.
pub(crate) const CLASSES: [DriftClass; 5] = [
    DriftClass::Spec,
    DriftClass::Pod,
    DriftClass::Rollout,
    DriftClass::History,
    DriftClass::Eligibility,
];

/// The headings of a table with a row for each DaemonSet and a column for each class.
pub(crate) fn class_heads() -> Vec<String> {
    iter::once("DaemonSet".to_owned()).chain(CLASSES.map(|class| class.to_string())).collect()
}

/// A drift report.
#[derive(Debug)]
pub(crate) struct DriftView<'a> {
    pub origin: Origin<'a>,
    pub daemon_sets: Vec<DaemonSetDriftView<'a>>,
    /// Number of deviations of each of the [`CLASSES`].
    pub totals: [u32; CLASSES.len()],
    pub warnings: Vec<Notice<'a>>,
}

/// The deviations of one DaemonSet.
#[derive(Debug)]
pub(crate) struct DaemonSetDriftView<'a> {
    /// `NAMESPACE/NAME`.
    pub key: String,
    /// Number of deviations of each of the [`CLASSES`].
    pub totals: [u32; CLASSES.len()],
    /// In the order of the classes.
    pub deviations: Vec<DeviationView<'a>>,
}

/// One deviation.
#[derive(Debug)]
pub(crate) struct DeviationView<'a> {
    pub class: DriftClass,
    pub sentence: String,
    /// Whether it is no drift: a rollout that waits.
    pub is_expected: bool,
    /// For a field that differs: its change, and who wrote it.
    pub field: Option<FieldDrift<'a>>,
    pub state: NodeState,
    pub nodes: Vec<DriftNode<'a>>,
    /// The nodes by reason; without one if the deviation itself is the reason.
    pub groups: Vec<NodeGroup<'a, ()>>,
}

/// A field that differs from the source.
#[derive(Debug)]
pub(crate) struct FieldDrift<'a> {
    pub change: &'a FieldChange,
    /// `written by kubectl-edit (Update) at 2026-08-01T12:00:00Z`, the latest first.
    pub writers: Vec<String>,
}

/// A node that deviates.
#[derive(Debug)]
pub(crate) struct DriftNode<'a> {
    pub name: &'a str,
    /// Names of the pods that deviate.
    pub pods: Vec<&'a str>,
    /// Empty if the deviation itself is the reason.
    reasons: &'a [Coded<Reason>],
}

/// What is wrong on the nodes of a deviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NodeState {
    Missing,
    Ended,
    Misplaced,
    Surplus,
    Outdated,
    Doubtful,
    Fine,
}

impl<'a> DriftView<'a> {
    pub(crate) fn of(drift: &'a Drift) -> Self {
        let Drift { api_version: _, kind: _, source, cluster, daemon_sets, totals, warnings } =
            drift;
        let zones = &cluster.zones;
        let DriftTotals { spec, pod, rollout, history, eligibility } = *totals;
        Self {
            origin: Origin::of(source, cluster, daemon_sets.len()),
            daemon_sets: daemon_sets.iter().map(|it| DaemonSetDriftView::of(it, zones)).collect(),
            totals: [spec, pod, rollout, history, eligibility],
            warnings: Notice::of_warnings(warnings, zones),
        }
    }

    /// The DaemonSets with something to report: drift, or a rollout that waits.
    pub(crate) fn reported(&self) -> Vec<&DaemonSetDriftView<'a>> {
        self.daemon_sets.iter().filter(|it| !it.deviations.is_empty()).collect()
    }

    /// The DaemonSets that deviate.
    pub(crate) fn deviating(&self) -> Vec<&DaemonSetDriftView<'a>> {
        self.daemon_sets.iter().filter(|it| it.totals.iter().any(|number| *number > 0)).collect()
    }

    /// `1 rollout waits`, after a separator; empty without one.
    pub(crate) fn waits_words(&self, separator: &str) -> String {
        let all = self.daemon_sets.iter().flat_map(|it| &it.deviations);
        match all.filter(|it| it.is_expected).count() {
            0 => String::new(),
            waits => {
                let word = agree(waits, "waits", "wait");
                format!("{separator}{} {word}", count(waits, "rollout"))
            }
        }
    }
}

impl<'a> DaemonSetDriftView<'a> {
    fn of(drift: &'a DaemonSetDrift, zones: &Zones) -> Self {
        let DaemonSetDrift { namespace, name, deviations } = drift;
        let of_class = |class| {
            let deviations = deviations.iter().filter(|it| it.class == class);
            let deviations = deviations.filter(|it| !it.deviation.reason.is_expected());
            u32::try_from(deviations.count()).unwrap_or(u32::MAX)
        };
        Self {
            key: format!("{namespace}/{name}"),
            totals: CLASSES.map(of_class),
            deviations: deviations.iter().map(|it| DeviationView::of(it, zones)).collect(),
        }
    }

    /// The fields that differ.
    pub(crate) fn fields(&self) -> Vec<&FieldDrift<'a>> {
        self.deviations.iter().filter_map(|it| it.field.as_ref()).collect()
    }

    /// The other deviations.
    pub(crate) fn others(&self) -> impl Iterator<Item = &DeviationView<'a>> {
        self.deviations.iter().filter(|it| it.field.is_none())
    }
}

impl<'a> DeviationView<'a> {
    fn of(classified: &'a Classified, zones: &Zones) -> Self {
        let Classified { class, deviation: Coded { reason: deviation } } = classified;
        let nodes: Vec<DriftNode<'_>> = match deviation.nodes() {
            DeviatingNodes::None => Vec::new(),
            DeviatingNodes::WithReasons(nodes) => nodes.iter().map(DriftNode::of).collect(),
            DeviatingNodes::Named(nodes) => {
                let names = nodes.iter().map(AsRef::as_ref);
                names.map(|name| DriftNode { name, pods: Vec::new(), reasons: &[] }).collect()
            }
        };
        Self {
            class: *class,
            sentence: deviation.to_string(),
            is_expected: deviation.is_expected(),
            field: FieldDrift::of(deviation),
            state: state(deviation),
            groups: groups(nodes.iter().map(|it| ((), it.name, it.reasons)), zones),
            nodes,
        }
    }

    /// Why `node` deviates.
    pub(crate) fn why(&self, node: &DriftNode<'_>) -> String {
        if node.has_reason() { sentence(node.reasons) } else { self.sentence.clone() }
    }
}

impl<'a> DriftNode<'a> {
    fn of(drift: &'a NodeDrift) -> Self {
        let NodeDrift { node, pods, reasons } = drift;
        Self { name: node.as_ref(), pods: pods.iter().map(AsRef::as_ref).collect(), reasons }
    }

    /// Whether it has a reason besides the deviation itself.
    pub(crate) fn has_reason(&self) -> bool {
        !self.reasons.is_empty()
    }
}

impl<'a> FieldDrift<'a> {
    fn of(deviation: &'a Deviation) -> Option<Self> {
        let Deviation::FieldDiffers { change, writers } = deviation else { return None };
        Some(Self { change, writers: writers.iter().map(writer_words).collect() })
    }
}

fn writer_words(writer: &Writer) -> String {
    let Writer { manager, operation, time, subresource } = writer;
    let operation = match operation {
        WriteOperation::Apply => "Apply",
        WriteOperation::Update => "Update",
    };
    let through = subresource.as_ref().map(|name| format!(" through {name}")).unwrap_or_default();
    let at = time.map(|time| format!(" at {time}")).unwrap_or_default();
    format!("written by {manager} ({operation}){through}{at}")
}

fn state(deviation: &Deviation) -> NodeState {
    match deviation {
        Deviation::PodMissing { .. } => NodeState::Missing,
        Deviation::PodSurplus { .. } => NodeState::Surplus,
        Deviation::PodOutdated { .. } => NodeState::Outdated,
        Deviation::PodFailed { .. } => NodeState::Ended,
        Deviation::PodMisscheduled { .. } | Deviation::RunsWhereNoneMayStart { .. } => {
            NodeState::Misplaced
        }
        Deviation::StatusDisagrees { .. } | Deviation::NamespaceNodeSelector { .. } => {
            NodeState::Doubtful
        }
        Deviation::FieldDiffers { .. }
        | Deviation::ObjectMissing
        | Deviation::ObjectTerminating
        | Deviation::Paused { .. }
        | Deviation::Waiting { .. }
        | Deviation::Aborted { .. }
        | Deviation::PauseUnreadable { .. }
        | Deviation::PauseLeftOver { .. }
        | Deviation::NotObserved { .. }
        | Deviation::Unfinished { .. }
        | Deviation::RevisionMissing
        | Deviation::RevisionDuplicate { .. }
        | Deviation::RevisionNumberTwice { .. }
        | Deviation::RevisionOrphaned { .. }
        | Deviation::RevisionMixed { .. } => NodeState::Fine,
    }
}

/// The line that begins with `Drift:`. Its form is for scripts too.
pub(crate) fn totals_words(totals: [u32; CLASSES.len()]) -> String {
    let numbers = CLASSES.iter().zip(totals).map(|(class, number)| format!("{number} {class}"));
    format!("Drift: {}.", numbers.collect::<Vec<_>>().join(", "))
}
