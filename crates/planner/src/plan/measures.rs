//! Values of the metrics: the amount of drift, the number of nodes in each state, and the state of
//! the rollout.

use std::collections::{BTreeMap, BTreeSet};

use super::document::Counters;
use super::drift::{DaemonSetDrift, Deviation, Drift, DriftTotals, last_seen};
use super::pause::{PausedRollout, waits_since};
use super::status::{DaemonSetStatusReport, StatusReport, status};
use crate::digest::{is_of_template, template_digest};
use daemonset::controller::Owner;
use daemonset::controller::claims::Claims;
use daemonset::controller::history::hash_of;
use daemonset::model::{
    DaemonSet, DaemonSetKey, NamespaceName, Pod, PodName, Revision, RevisionHash, Snapshot,
};

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
    /// Age of the oldest pod of another template than the one that is rolled out, in seconds;
    /// `None` when there is none.
    pub oldest_outdated: Option<i64>,
}

/// State of a rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RolloutState {
    /// Every node runs the live template.
    Complete,
    /// Not every node runs the live template, or the DaemonSet does not exist.
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
        pods.get(&(namespace, name)).and_then(|pod| age_of(pod, snapshot))
    };
    drift
        .daemon_sets
        .iter()
        .map(|one| while_waiting(one, measured(one, &counted, &age), snapshot))
        .collect()
}

fn age_of(pod: &Pod, snapshot: &Snapshot) -> Option<i64> {
    Some(pod.created?.duration_until(snapshot.observed_at).as_secs())
}

/// Adds the wait of a rollout that waits, and the age of the oldest pod that it has still to
/// replace: that pod is no deviation, and the last good template may be live.
fn while_waiting(drift: &DaemonSetDrift, measured: Measured, snapshot: &Snapshot) -> Measured {
    let pause = drift.deviations.iter().find_map(|it| {
        let Deviation::Waiting { pause, .. } = &it.deviation.reason else { return None };
        Some(pause)
    });
    let Some(pause) = pause else { return measured };
    Measured {
        waiting: Some(waiting(&measured.key, pause, snapshot)),
        oldest_outdated: oldest_to_replace(&measured.key, pause, snapshot),
        ..measured
    }
}

/// Age of the oldest pod of another template than the one that waits. Where values are masked, that
/// one is not known, and every pod counts.
fn oldest_to_replace(
    key: &DaemonSetKey,
    pause: &PausedRollout,
    snapshot: &Snapshot,
) -> Option<i64> {
    let live = snapshot.daemon_set(key)?;
    let outdated = by_target(live, pause, snapshot).1.into_iter();
    let left = outdated.filter(|pod| !pod.terminating && !pod.is_terminal());
    left.filter_map(|pod| age_of(pod, snapshot)).max()
}

/// The pods of the template that waits, and the others.
fn by_target<'s>(
    live: &DaemonSet,
    pause: &PausedRollout,
    snapshot: &'s Snapshot,
) -> (Vec<&'s Pod>, Vec<&'s Pod>) {
    let owner = Owner::from(live);
    let target = pause.target.clone();
    let target = target.unwrap_or_else(|| template_digest(live.spec.template.raw()));
    let is_target = |revision: &&Revision| is_of_template(revision, &target);
    let revisions = Claims::of(&owner, snapshot.revisions_in(&live.key.namespace)).claimed;
    let hashes: BTreeSet<RevisionHash> =
        revisions.into_iter().filter(is_target).map(hash_of).collect();
    let pods = Claims::of(&owner, snapshot.pods_in(&live.key.namespace)).claimed;
    let is_updated = |pod: &&Pod| pod.revision_hash().is_some_and(|hash| hashes.contains(&hash));
    pods.into_iter().partition(is_updated)
}

/// The step in which a rollout waits, and for how long. If that is not known, as without managed fields,
/// the time counts from the beginning of the rollout.
fn waiting(key: &DaemonSetKey, pause: &PausedRollout, snapshot: &Snapshot) -> (String, i64) {
    let since = snapshot.daemon_set(key).and_then(|live| {
        if PausedRollout::readable(live).is_some() {
            return waits_since(live, pause);
        }
        // `ds-apply roll` does not write the object.
        let updated = by_target(live, pause, snapshot).0;
        last_seen(snapshot.steps_note(key)?, updated.into_iter(), snapshot)
    });
    let seconds = snapshot.observed_at.duration_since(since.unwrap_or(pause.since)).as_secs();
    let step = pause.waits_for.first().map(|wait| wait.step.clone());
    (step.unwrap_or_default(), seconds.max(0))
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
        Deviation::Unfinished { .. }
        | Deviation::NotObserved { .. }
        | Deviation::ObjectMissing
        | Deviation::ObjectTerminating
        | Deviation::PodMissing { .. }
        | Deviation::PodFailed { .. } => RolloutState::Unfinished,
        // `Unfinished` comes with outdated pods, unless they are part of a rollout that waits.
        // Surplus and misscheduled pods leave the nodes with the template that they should run.
        Deviation::FieldDiffers { .. }
        | Deviation::PauseLeftOver { .. }
        | Deviation::PodSurplus { .. }
        | Deviation::PodOutdated { .. }
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::annotations::ROLLOUT_ANNOTATION;
    use crate::plan::tests::{desired, settle, settled, snapshot};
    use crate::plan::{DriftInput, ShownValues, SourceInfo, drift};
    use daemonset::controller::test_cluster::{Cluster, OURS, at, labels};
    use daemonset::model::{
        DesiredDaemonSet, PodPhase, REVISION_HASH_LABEL, RolloutPolicy, StepsNote,
    };

    fn of(snapshot: &Snapshot, desired: &DesiredDaemonSet) -> Measured {
        let drift = drift(DriftInput {
            snapshot,
            desired: std::slice::from_ref(desired),
            source: SourceInfo::default(),
            warnings: Vec::new(),
            show_values: ShownValues::None,
        });
        measures(&drift, snapshot).remove(0)
    }

    /// The state after `change` of a converged cluster.
    fn after(change: impl FnOnce(&mut Cluster)) -> RolloutState {
        let mut cluster = settled(2);
        let desired = desired(&cluster);
        change(&mut cluster);
        of(&snapshot(&cluster), &desired).rollout
    }

    #[test]
    fn a_rollout_is_complete_only_if_every_node_has_its_pod() {
        assert_eq!(after(|_| {}), RolloutState::Complete);
        assert_eq!(after(|cluster| drop(cluster.pods.remove(0))), RolloutState::Unfinished);
        let failed = after(|cluster| cluster.pods[0].phase = PodPhase::Failed);
        assert_eq!(failed, RolloutState::Unfinished);
        let terminating = after(|cluster| cluster.daemon_set.terminating = true);
        assert_eq!(terminating, RolloutState::Unfinished);

        let cluster = settled(2);
        let mut gone = snapshot(&cluster);
        gone.daemon_sets.clear();
        assert_eq!(of(&gone, &desired(&cluster)).rollout, RolloutState::Unfinished);
    }

    /// One node has the template that waits; the last good one is live.
    #[test]
    fn the_pods_that_a_waiting_rollout_has_to_replace_are_outdated() {
        let mut cluster = settled(2);
        let old = cluster.pods[0].labels.clone();
        cluster.set_image("foo:2");
        let target = template_digest(cluster.daemon_set.spec.template.raw());
        let wanted = desired(&cluster);
        settle(&mut cluster);
        cluster.pods[0].labels = old;
        cluster.pods[0].created = Some(at(100).into());
        cluster.pods[1].created = Some(at(50).into());
        cluster.set_image("foo/bar");
        cluster.set_on_delete();
        let pause = json!({
            "state": "waiting", "planDigest": "sha256:6fd1", "since": "1970-01-01T00:08:20Z",
            "declared": {
                "type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}
            },
            "target": target,
        });
        let pause = pause.to_string();
        cluster.daemon_set.annotations = labels([(ROLLOUT_ANNOTATION, pause.as_str())]);
        cluster.sync_once();
        let snapshot = snapshot(&cluster);
        let measured = of(&snapshot, &wanted);
        assert_eq!(measured.rollout, RolloutState::Waiting);
        assert!(measured.waiting.is_some());
        let age = snapshot.observed_at.duration_since(at(100)).as_secs();
        assert_eq!(measured.oldest_outdated, Some(age));
    }

    /// Nothing on the object says so: the note and the policy do.
    #[test]
    fn a_roll_waits_since_its_last_note_or_new_pod() {
        let mut cluster = settled(2);
        cluster.set_on_delete();
        cluster.set_image("foo:2");
        let mut policy = RolloutPolicy::named("p");
        policy.spec.steps =
            serde_json::from_value(json!([{"name": "half", "nodes": 1, "approve": true}])).unwrap();
        let wanted = DesiredDaemonSet { policy: Some(policy.into()), ..desired(&cluster) };
        cluster.sync_once();
        cluster.pods[0].created = Some(at(100).into());
        cluster.pods[1].created = Some(at(50).into());
        let note = StepsNote {
            template: template_digest(cluster.daemon_set.spec.template.raw()),
            started_at: Some(at(600)),
            ..StepsNote::default()
        };
        let measured = |cluster: &Cluster| {
            let mut snapshot = snapshot(cluster);
            snapshot.set_notes(&wanted.key, "", Some(note.clone()));
            snapshot.approvals.insert(wanted.key.clone(), BTreeMap::new());
            of(&snapshot, &wanted)
        };
        let found = measured(&cluster);
        assert_eq!((found.rollout, found.drift), (RolloutState::Waiting, DriftTotals::default()));
        let now = cluster.now.as_second();
        assert_eq!(found.waiting, Some(("half".to_owned(), now - 600)));
        assert_eq!(found.oldest_outdated, Some(now - 50));

        // A run has replaced a pod.
        let hash = cluster.hash();
        cluster.pods[1].labels =
            OURS.into_iter().chain([(REVISION_HASH_LABEL, hash.as_str())]).collect();
        cluster.pods[1].created = Some(at(700).into());
        let found = measured(&cluster);
        assert_eq!(found.waiting.map(|(_, seconds)| seconds), Some(now - 700));
        assert_eq!(found.oldest_outdated, Some(now - 100));

        // The controller has created it: the node is new.
        cluster.nodes[1].created = Some(at(690).into());
        let found = measured(&cluster);
        assert_eq!(found.waiting.map(|(_, seconds)| seconds), Some(now - 600));
    }
}
