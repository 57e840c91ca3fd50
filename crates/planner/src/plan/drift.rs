//! Detects drift: differences between the object and the source, the pods and the object, the
//! revisions and their history, and unfinished rollouts. A pure function, as a plan is.
//!
//! Not here: how to fix it (`plan`).

mod document;
mod pods;
mod revisions;
mod roll;
mod spec;
#[cfg(test)]
mod tests;

pub use document::{
    Classified, DaemonSetDrift, DeviatingNodes, Deviation, Drift, DriftClass, DriftKind,
    DriftTotals, NodeDrift,
};
pub(super) use roll::last_seen;

use super::daemon_set_view::DaemonSetView;
use super::document::{ApiVersion, Change, ClusterSummary, SourceInfo, Warning};
use super::pause::{LeftoverPause, PausedRollout};
use super::secrets::ShownValues;
use super::writers::Writers;
use super::{object, warnings};
use daemonset::controller::Owner;
use daemonset::controller::node_pods::Fleet;
use daemonset::model::{DaemonSet, DesiredDaemonSet, Snapshot};

/// Input of a drift report.
#[derive(Clone, Debug)]
pub struct DriftInput<'a> {
    /// Snapshot of the cluster.
    pub snapshot: &'a Snapshot,
    /// The DaemonSets of the source, each once.
    pub desired: &'a [DesiredDaemonSet],
    /// Origin of the manifests.
    pub source: SourceInfo,
    /// Warnings from reading the source.
    pub warnings: Vec<Warning>,
    /// Whether values that may be secret are shown.
    pub show_values: ShownValues<'a>,
}

/// Finds the deviations of every DaemonSet of the source.
pub fn drift(input: DriftInput<'_>) -> Drift {
    let DriftInput { snapshot, desired, source, mut warnings, show_values } = input;
    warnings.extend(warnings::of_cluster(snapshot));
    let masked = snapshot.coverage.masked.map(|salt| object::masked(desired, &salt));
    let desired = masked.as_deref().unwrap_or(desired);
    let fleet = Fleet::new(&snapshot.nodes);
    let mut daemon_sets: Vec<DaemonSetDrift> = desired
        .iter()
        .map(|desired| one(snapshot, &fleet, desired, show_values, &mut warnings))
        .collect();
    daemon_sets.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
    warnings.extend(about_writers(snapshot, &daemon_sets));
    let mut totals = DriftTotals::default();
    for deviation in daemon_sets.iter().flat_map(|one| &one.deviations) {
        totals.add(deviation);
    }
    Drift {
        api_version: ApiVersion::V1Alpha1,
        kind: DriftKind::Drift,
        source,
        cluster: ClusterSummary::from(snapshot),
        daemon_sets,
        totals,
        warnings,
    }
}

fn one(
    snapshot: &Snapshot,
    fleet: &Fleet<'_>,
    desired: &DesiredDaemonSet,
    show_values: ShownValues<'_>,
    warnings: &mut Vec<Warning>,
) -> DaemonSetDrift {
    let key = &desired.key;
    let mut deviations = match snapshot.daemon_set(key) {
        None => of_missing(snapshot, desired),
        Some(live) if live.terminating => vec![Deviation::ObjectTerminating],
        Some(live) => {
            let writers = Writers::of(&live.raw).unwrap_or_else(|error| {
                warnings.push(unreadable_writers(desired, &error));
                Writers::unknown()
            });
            of_live(snapshot, fleet, live, desired, &writers, show_values)
        }
    };
    deviations.sort_by_key(Deviation::class);
    DaemonSetDrift {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        deviations: deviations.into_iter().map(Classified::from).collect(),
    }
}

/// Deviations of a DaemonSet that does not exist: itself, and the revisions that it left behind.
/// Its missing pods are part of a plan.
fn of_missing(snapshot: &Snapshot, desired: &DesiredDaemonSet) -> Vec<Deviation> {
    let owner = object::owner_after(None, desired, Change::Create);
    let namespace = snapshot.revisions_in(&desired.key.namespace);
    let mut found = vec![Deviation::ObjectMissing];
    found.extend(revisions::deviations(&owner, None, namespace));
    found
}

fn of_live(
    snapshot: &Snapshot,
    fleet: &Fleet<'_>,
    live: &DaemonSet,
    desired: &DesiredDaemonSet,
    writers: &Writers,
    show_values: ShownValues<'_>,
) -> Vec<Deviation> {
    let owner = Owner::from(live);
    let in_namespace = snapshot.revisions_in(&live.key.namespace);
    let own = revisions::own(&owner, in_namespace);
    let mut found = Vec::new();
    let pause = PausedRollout::of(live).unwrap_or_else(|error| {
        found.push(Deviation::PauseUnreadable { problem: error.to_string() });
        None
    });
    let is_declared =
        pause.as_ref().is_none_or(|pause| spec::is_declared(pause, snapshot, desired));
    let object =
        spec::Live { object: live, pause: pause.as_ref(), is_declared, revisions: &own, writers };
    found.extend(spec::deviations(&object, desired, show_values));
    let daemon_set_view = DaemonSetView::of(owner, Some(live), snapshot, fleet);
    let namespace = snapshot.namespaces.iter().find(|one| one.name == live.key.namespace);
    let mut of_pods = pods::deviations(&daemon_set_view, namespace);
    let is_outdated = of_pods.iter().any(|it| matches!(it, Deviation::PodOutdated { .. }));
    let rollout = match pause {
        Some(pause) => Some(Deviation::of_pause(pause, is_declared, snapshot.observed_at)),
        None if is_outdated => roll::waiting(live, desired, snapshot, fleet),
        None => None,
    };
    let waits = rollout.as_ref().is_some_and(Deviation::is_expected);
    found.extend(rollout);
    found.extend(LeftoverPause::of(live).map(|left| Deviation::PauseLeftOver { left }));
    if live.status.observed_generation < live.generation {
        found.push(Deviation::NotObserved {
            generation: live.generation,
            observed_generation: live.status.observed_generation,
        });
    }
    // The pods of both templates are part of a rollout that waits.
    of_pods.retain(|it| {
        !waits || !matches!(it, Deviation::PodOutdated { .. } | Deviation::Unfinished { .. })
    });
    found.extend(of_pods);
    found.extend(revisions::deviations(&owner, Some(live), in_namespace));
    found
}

fn unreadable_writers(desired: &DesiredDaemonSet, error: &dyn std::error::Error) -> Warning {
    Warning {
        code: "managedFieldsUnreadable".to_owned(),
        message: format!("the field managers cannot be read: {error}"),
        daemon_set: Some(desired.key.to_string()),
        nodes: Vec::new(),
    }
}

/// A warning when fields differ and the snapshot has no `managedFields` to name their managers.
fn about_writers(snapshot: &Snapshot, daemon_sets: &[DaemonSetDrift]) -> Option<Warning> {
    let any_field = daemon_sets
        .iter()
        .flat_map(|one| &one.deviations)
        .any(|classified| matches!(classified.deviation.reason, Deviation::FieldDiffers { .. }));
    (any_field && !snapshot.coverage.managed_fields).then(|| Warning {
        code: "noManagedFields".to_owned(),
        message:
            "the snapshot has no managed fields, so the field managers are unknown; record it \
                  with `ds-plan snapshot`, or with kubectl's --show-managed-fields"
                .to_owned(),
        daemon_set: None,
        nodes: Vec::new(),
    })
}
