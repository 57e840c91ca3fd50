//! The status of a DaemonSet as the controller writes it (upstream: `updateDaemonSetStatus`,
//! `storeDaemonSetStatus`).
//!
//! Nodes are counted, not pods; of each node's pods only the first in upstream's order counts.
//! During a surge that is the old one, so "updated" increases late. Conditions are never set.

use super::manage::View;
use crate::model::DaemonSetStatus;

/// The status after a sync: seven counters of the state before the sync's own effects, and the
/// generation of the spec.
pub fn status(view: &View<'_, '_>) -> DaemonSetStatus {
    DaemonSetStatus { observed_generation: view.owner.generation, ..counters(view) }
}

/// The status of a sync that has to wait for earlier effects: only the counters. The observed
/// generation is not changed, because the sync did not act on the spec.
pub fn counters(view: &View<'_, '_>) -> DaemonSetStatus {
    let mut status = DaemonSetStatus {
        observed_generation: view.owner.status.observed_generation,
        collision_count: view.owner.status.collision_count,
        ..DaemonSetStatus::default()
    };
    for (at, placement) in view.placements.iter().enumerate() {
        let speaker = view.pods.at(at).first();
        if placement.may_start {
            status.desired_number_scheduled += 1;
        } else {
            status.number_misscheduled += u32::from(speaker.is_some());
        }
        let Some(pod) = speaker.filter(|_| placement.may_start) else { continue };
        status.current_number_scheduled += 1;
        status.number_ready += u32::from(pod.is_ready());
        status.number_available += u32::from(view.is_available(pod));
        status.updated_number_scheduled += u32::from(view.current.is_updated(pod));
    }
    status.number_unavailable = status.desired_number_scheduled - status.number_available;
    status
}

/// Whether the controller replaces `live` by `new`: not if all counters are equal and the
/// generation is observed.
///
/// A sync that does not change the observed generation writes every time while it is outdated.
pub fn needs_write(live: &DaemonSetStatus, new: &DaemonSetStatus, generation: i64) -> bool {
    let counters = |status: &DaemonSetStatus| DaemonSetStatus {
        observed_generation: 0,
        collision_count: None,
        ..*status
    };
    counters(live) != counters(new) || live.observed_generation < generation
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controller::test_cluster::{Cluster, OTHERS, OURS, at, labels, node, pod, taint};
    use crate::model::{Pod, PodPhase, PodReadiness, PodTarget};

    /// Desired, current, misscheduled, ready, updated, available, unavailable.
    fn seven(status: &DaemonSetStatus) -> [u32; 7] {
        [
            status.desired_number_scheduled,
            status.current_number_scheduled,
            status.number_misscheduled,
            status.number_ready,
            status.updated_number_scheduled,
            status.number_available,
            status.number_unavailable,
        ]
    }

    fn counted(cluster: &Cluster) -> [u32; 7] {
        cluster.with_view(|view| seven(&status(view)))
    }

    #[test]
    fn counters_before_and_after_launching() {
        let mut cluster = Cluster::of(5);
        assert_eq!(counted(&cluster), [5, 0, 0, 0, 0, 0, 5]);
        cluster.sync();
        assert_eq!(counted(&cluster), [5, 5, 0, 0, 5, 0, 5]);
        cluster.make_ready(2, |_| true);
        assert_eq!(counted(&cluster), [5, 5, 0, 2, 5, 2, 3], "TestNumberReadyStatus");
        cluster.edit(|spec| spec["minReadySeconds"] = json!(10));
        assert_eq!(counted(&cluster), [5, 5, 0, 2, 5, 0, 5]);
        cluster.now = at(1010);
        assert_eq!(counted(&cluster), [5, 5, 0, 2, 5, 2, 3]);
        cluster.set_image("foo2/bar2");
        assert_eq!(counted(&cluster), [5, 5, 0, 2, 0, 2, 3]);
    }

    #[test]
    fn nodes_are_counted_by_their_oldest_pod() {
        let mut cluster = Cluster::of(3);
        let hash = cluster.hash();
        cluster.nodes.push(node("node-3", &[], &["gpu:NoSchedule"]));
        cluster.nodes.push(node("node-4", &[], &[]));
        cluster.nodes[1].taints = Box::new([taint("gpu:NoSchedule")]);
        let owned = |name: &str, node: &str, created, readiness| Pod {
            controller: Some(cluster.reference()),
            created: Some(at(created).into()),
            readiness,
            ..pod(name, node)
        };
        let ready = PodReadiness::Ready { since: None };
        let surging = Pod {
            labels: labels([("controller-revision-hash", hash.as_str())])
                .iter()
                .chain(OURS)
                .collect(),
            ..owned("new", "node-0", 20, PodReadiness::NotReady { since: None })
        };
        let pods = vec![
            owned("old", "node-0", 10, ready), // the old one counts during a surge
            surging,
            owned("misplaced", "node-1", 10, ready),
            Pod { terminating: true, ..owned("terminating", "node-2", 10, ready) },
            Pod { labels: labels(OTHERS), ..owned("released", "node-4", 10, ready) },
            Pod {
                terminating: true,
                phase: PodPhase::Failed,
                ..owned("gone", "node-4", 10, ready)
            },
            owned("vanished", "node-9", 10, ready),
            Pod { target: PodTarget::Nowhere, ..owned("nowhere", "", 10, ready) },
        ];
        cluster.pods = pods;
        // Desired are node-0, node-2 and node-4; the last has no pod.
        assert_eq!(counted(&cluster), [3, 2, 1, 2, 0, 2, 1]);
    }

    #[test]
    fn observed_generation() {
        let mut cluster = Cluster::of(1);
        cluster.daemon_set.generation = 7;
        cluster.daemon_set.status.observed_generation = 5;
        cluster.daemon_set.status.collision_count = Some(3);
        cluster.with_view(|view| {
            assert_eq!(status(view).observed_generation, 7);
            assert_eq!(counters(view).observed_generation, 5);
            assert_eq!(status(view).collision_count, Some(3));
        });
    }

    #[test]
    fn the_status_is_written_if_it_differs() {
        let base = DaemonSetStatus { observed_generation: 4, ..DaemonSetStatus::default() };
        let one = |change: fn(&mut DaemonSetStatus)| {
            let mut status = base;
            change(&mut status);
            status
        };
        for (name, live, new, generation, want) in [
            ("nothing new", base, base, 4, false),
            ("a generation to observe", base, base, 5, true),
            ("observed already", base, base, 3, false),
            ("desired", base, one(|s| s.desired_number_scheduled = 1), 4, true),
            ("current", base, one(|s| s.current_number_scheduled = 1), 4, true),
            ("misscheduled", base, one(|s| s.number_misscheduled = 1), 4, true),
            ("ready", base, one(|s| s.number_ready = 1), 4, true),
            ("updated", base, one(|s| s.updated_number_scheduled = 1), 4, true),
            ("available", base, one(|s| s.number_available = 1), 4, true),
            ("unavailable", base, one(|s| s.number_unavailable = 1), 4, true),
            ("the collision count alone", base, one(|s| s.collision_count = Some(1)), 4, false),
        ] {
            assert_eq!(needs_write(&live, &new, generation), want, "{name}");
        }
    }
}
