//! Values of the metrics: the amount of drift, the number of nodes in each state, and the state of
//! the rollout.

use std::collections::BTreeMap;

use super::document::Counters;
use super::drift::{DaemonSetDrift, Deviation, Drift, DriftTotals};
use super::pause::waits_since;
use super::status::{DaemonSetStatusReport, StatusReport, status};
use daemonset::model::{DaemonSetKey, NamespaceName, Pod, PodName, Snapshot};

/// Metric values of one DaemonSet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measured {
    /// Namespace and name.
    pub key: DaemonSetKey,
    /// Number of deviations of each class.
    pub drift: DriftTotals,
    /// Number of nodes in each state, as in `status`; all 0 when the DaemonSet does not exist.
    pub nodes: Counters,
    /// State of its rollout.
    pub rollout: RolloutState,
    /// The step in which it waits, and since when, in seconds; `None` if it does not wait.
    pub waiting: Option<(String, i64)>,
    /// Age of the oldest pod of another template, in seconds; `None` when there is none.
    pub oldest_outdated: Option<i64>,
}

/// State of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RolloutState {
    /// Every node runs the live template.
    Complete,
    /// Not every node runs the live template.
    Unfinished,
    /// Its policy lets no more nodes begin for now.
    Waiting,
    /// `ds-apply` has paused it.
    Paused,
    /// It was aborted: it failed, and the last good template is live again.
    Aborted,
}

impl RolloutState {
    /// All states, the most severe last.
    pub const ALL: [Self; 5] =
        [Self::Complete, Self::Unfinished, Self::Waiting, Self::Paused, Self::Aborted];

    /// Name of the state, as in the label of the metric.
    pub fn name(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Unfinished => "unfinished",
            Self::Waiting => "waiting",
            Self::Paused => "paused",
            Self::Aborted => "aborted",
        }
    }
}

/// Computes the metric values of every DaemonSet of a drift report, in its order.
pub fn measures(drift: &Drift, snapshot: &Snapshot) -> Vec<Measured> {
    let StatusReport { daemon_sets: budget_view, .. } = status(snapshot, |key| {
        drift.daemon_sets.iter().any(|one| one.namespace == key.namespace && one.name == key.name)
    });
    let counted: BTreeMap<DaemonSetKey, Counters> = budget_view
        .into_iter()
        .map(|DaemonSetStatusReport { namespace, name, counted, .. }| {
            (DaemonSetKey::new(namespace, name), counted)
        })
        .collect();
    let pods: BTreeMap<(&NamespaceName, &PodName), &Pod> =
        snapshot.pods.iter().map(|pod| ((&pod.namespace, &pod.name), pod)).collect();
    let age = |namespace: &NamespaceName, name: &PodName| {
        let created = pods.get(&(namespace, name))?.created?;
        Some(created.duration_until(snapshot.observed_at).as_secs())
    };
    drift
        .daemon_sets
        .iter()
        .map(|one| Measured { waiting: waiting(one, snapshot), ..measured(one, &counted, &age) })
        .collect()
}

/// The step in which a rollout waits, and for how long. Without managed fields, the time counts from
/// the beginning of the rollout.
fn waiting(drift: &DaemonSetDrift, snapshot: &Snapshot) -> Option<(String, i64)> {
    let pause = drift.deviations.iter().find_map(|it| {
        let Deviation::Waiting { pause, .. } = &it.deviation.reason else { return None };
        Some(pause)
    })?;
    let key = DaemonSetKey::new(drift.namespace.clone(), drift.name.clone());
    let since = snapshot.daemon_set(&key).and_then(|live| waits_since(live, pause));
    let seconds = snapshot.observed_at.duration_since(since.unwrap_or(pause.since)).as_secs();
    let step = pause.waits_for.first().map(|wait| wait.step.clone());
    Some((step.unwrap_or_default(), seconds.max(0)))
}

fn measured(
    drift: &DaemonSetDrift,
    counted: &BTreeMap<DaemonSetKey, Counters>,
    age: &dyn Fn(&NamespaceName, &PodName) -> Option<i64>,
) -> Measured {
    let DaemonSetDrift { namespace, name, deviations } = drift;
    let key = DaemonSetKey::new(namespace.clone(), name.clone());
    let mut totals = DriftTotals::default();
    let mut rollout = RolloutState::Complete;
    let mut oldest_outdated = None;
    for classified in deviations {
        totals.add(classified);
        let deviation = &classified.deviation;
        rollout = rollout.max(state(&deviation.reason));
        if let Deviation::PodOutdated { nodes } = &deviation.reason {
            let pods = nodes.iter().flat_map(|node| &node.pods);
            oldest_outdated = oldest_outdated.max(pods.filter_map(|pod| age(namespace, pod)).max());
        }
    }
    let nodes = counted.get(&key).copied().unwrap_or_default();
    Measured { key, drift: totals, nodes, rollout, waiting: None, oldest_outdated }
}

fn state(deviation: &Deviation) -> RolloutState {
    match deviation {
        Deviation::Aborted { .. } => RolloutState::Aborted,
        Deviation::Paused { .. } | Deviation::PauseUnreadable { .. } => RolloutState::Paused,
        Deviation::Waiting { .. } => RolloutState::Waiting,
        Deviation::Unfinished { .. } | Deviation::NotObserved { .. } => RolloutState::Unfinished,
        Deviation::ObjectMissing
        | Deviation::ObjectTerminating
        | Deviation::FieldDiffers { .. }
        | Deviation::PauseLeftOver { .. }
        | Deviation::PodMissing { .. }
        | Deviation::PodSurplus { .. }
        | Deviation::PodOutdated { .. }
        | Deviation::PodFailed { .. }
        | Deviation::PodMisscheduled { .. }
        | Deviation::RevisionMissing
        | Deviation::RevisionDuplicate { .. }
        | Deviation::RevisionNumberTwice { .. }
        | Deviation::RevisionOrphaned { .. }
        | Deviation::RevisionMixed { .. }
        | Deviation::StatusDisagrees { .. }
        | Deviation::RunsWhereNoneMayStart { .. }
        | Deviation::NamespaceNodeSelector { .. } => RolloutState::Complete,
    }
}
