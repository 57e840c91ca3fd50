//! Deletes pods that no other controller deletes: those of missing nodes, and terminating ones
//! without a node (upstream: `podgc`).
//!
//! Terminated pods are kept: the threshold is 12,500.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::moment::{CONTROLLER_MANAGER, Moment, Work};
use crate::{Change, DeleteOptions, Event, Kind, ObjectKey, Target};
use daemonset::model::{NodeName, Pod};

/// Period of the collection (upstream: `gcCheckPeriod`).
const PERIOD: SignedDuration = SignedDuration::from_secs(20);

/// Time for which a node must be missing (upstream: `quarantineTime`).
const QUARANTINE: SignedDuration = SignedDuration::from_secs(40);

/// Missing nodes, and the end of their quarantine.
#[derive(Debug, Default)]
pub(super) struct PodGc {
    quarantine: BTreeMap<NodeName, Timestamp>,
    began: Option<Timestamp>,
}

impl PodGc {
    /// Starts the collection.
    pub(super) fn begin(&mut self, moment: &mut Moment<'_>) {
        self.began = Some(moment.now);
        moment.agenda.add(moment.now, Work::CollectPods);
    }

    /// Handles an event: a deleted node, or a pod that begins to terminate.
    pub(super) fn hear(&mut self, event: &Event, moment: &mut Moment<'_>) {
        let node_gone = event.object.node().is_some() && event.change == Change::Deleted;
        let ends = event.object.pod().is_some_and(|pod| pod.terminating && !pod.is_bound());
        let orphaned = event.object.pod().is_some_and(|pod| is_orphaned(pod, moment));
        if node_gone || ends || orphaned {
            self.look_later(moment);
        }
    }

    fn look_later(&self, moment: &mut Moment<'_>) {
        let began = self.began.unwrap_or(moment.now);
        moment.agenda.add(next_look(began, moment.now), Work::CollectPods);
    }

    /// Checks all pods.
    pub(super) fn collect(&mut self, moment: &mut Moment<'_>) {
        let (cache, now) = (moment.cache, moment.now);
        for pod in cache.all_pods().filter(|pod| is_orphaned(pod, moment)) {
            if let Some(node) = pod.node() {
                self.quarantine.entry(node.clone()).or_insert(now + QUARANTINE);
            }
        }
        let over = |node: &NodeName| self.quarantine.get(node).is_some_and(|until| *until <= now);
        let goes = |pod: &&Pod| {
            let unbound = pod.terminating && !pod.is_bound();
            unbound || is_orphaned(pod, moment) && pod.node().is_some_and(over)
        };
        let going: Vec<ObjectKey> = cache
            .all_pods()
            .filter(goes)
            .map(|pod| ObjectKey::new(pod.namespace.as_str(), pod.name.as_str()))
            .collect();
        for key in &going {
            remove(key, moment);
        }
        self.quarantine.retain(|_, until| *until > now);
        if !self.quarantine.is_empty() {
            self.look_later(moment);
        }
    }
}

/// The time of the next collection.
fn next_look(began: Timestamp, now: Timestamp) -> Timestamp {
    let passed = now.duration_since(began).as_millis() / PERIOD.as_millis();
    let periods = i32::try_from(passed + 1).unwrap_or(i32::MAX);
    began.saturating_add(PERIOD.saturating_mul(periods)).unwrap_or(Timestamp::MAX)
}

/// `true` if the pod is bound to a missing node.
fn is_orphaned(pod: &Pod, moment: &Moment<'_>) -> bool {
    pod.is_bound() && pod.node().is_some_and(|node| moment.cache.node(node).is_none())
}

/// Marks a pod as failed and deletes it (upstream: `markFailedAndDeletePod`).
fn remove(key: &ObjectKey, moment: &mut Moment<'_>) {
    let target = Target::new(Kind::Pod, key.namespace(), key.name());
    let mut verbs = moment.store.verbs(moment.now, CONTROLLER_MANAGER);
    let marked = verbs.edit(target.status(), |pod| {
        let ended = matches!(pod["status"]["phase"].as_str(), Some("Failed" | "Succeeded"));
        if !ended {
            pod["status"]["phase"] = "Failed".into();
        }
    });
    let deleted = marked.and_then(|_| verbs.delete(target, &DeleteOptions::now()));
    if let Err(error) = deleted {
        tracing::debug!(pod = %key, %error, "a pod cannot be collected");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemonset::controller::test_cluster::at;

    #[test]
    fn pods_are_collected_every_20_seconds() {
        for (now, want) in [(5, 25), (24, 25), (25, 45), (100, 105)] {
            assert_eq!(next_look(at(5), at(now)), at(want), "{now}");
        }
    }
}
