//! Kubelets whose clock is wrong, as far as pods show it. A kubelet says since when a pod is Ready, the
//! API server when it was created; so one that is ahead is Ready in the future, and one that is behind
//! was Ready before it was created.
//!
//! Not here: the local clock, which no plan depends on.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::plan::document::Warning;
use crate::words::{agree, count};
use daemonset::model::{DesiredDaemonSet, NodeName, Pod, PodReadiness, Snapshot};

/// Difference of two clocks that is worth a warning.
const APART: SignedDuration = SignedDuration::from_secs(30);

/// One warning about all kubelets whose clock is wrong, by the pods of these DaemonSets.
pub(in crate::plan) fn warning(
    desired: &[&DesiredDaemonSet],
    snapshot: &Snapshot,
) -> Option<Warning> {
    let mut off: BTreeMap<NodeName, SignedDuration> = BTreeMap::new();
    let live = desired.iter().filter_map(|one| snapshot.daemon_set(&one.key));
    for daemon_set in live {
        let is_its =
            |pod: &&Pod| pod.controller.as_ref().is_some_and(|owner| owner.uid == daemon_set.uid);
        for pod in snapshot.pods_in(&daemon_set.key.namespace).iter().filter(is_its) {
            let ahead = kubelet_ahead(pod, snapshot.observed_at).unwrap_or_default();
            if let Some(node) = pod.node().filter(|_| ahead.abs() > APART) {
                let known = off.entry(node.clone()).or_insert(ahead);
                *known = if ahead.abs() > known.abs() { ahead } else { *known };
            }
        }
    }
    let (node, most) = off.iter().max_by_key(|(_, ahead)| ahead.abs())?;
    let apart = SignedDuration::from_secs(most.abs().as_secs());
    let which = if most.is_negative() { "behind" } else { "ahead of" };
    let message = format!(
        "the {} of the kubelet{} on {} {} wrong, on {node} by at least {apart:#} {which} the API \
         server. Times at which pods became Ready are by these clocks; soaks and minReadySeconds are \
         never shorter for it, but may be longer",
        agree(off.len(), "clock", "clocks"),
        agree(off.len(), "", "s"),
        count(off.len(), "node"),
        agree(off.len(), "is", "are"),
    );
    let nodes = off.into_keys().collect();
    Some(Warning { code: "kubeletClock".to_owned(), message, daemon_set: None, nodes })
}

/// By how much the kubelet of a pod must at least be ahead; negative if it is behind.
fn kubelet_ahead(pod: &Pod, now: Timestamp) -> Option<SignedDuration> {
    let PodReadiness::Ready { since: Some(since) } = pod.readiness else { return None };
    let in_future = -since.duration_until(now);
    if in_future.is_positive() {
        return Some(in_future);
    }
    let after_creation = pod.created?.duration_until(since.into());
    Some(after_creation).filter(SignedDuration::is_negative)
}
