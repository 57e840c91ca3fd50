//! How far the rollout of one image is.

use std::collections::{BTreeMap, BTreeSet};

use daemonset::model::{NodeName, Pod, Uid};
use jiff::Timestamp;

use super::domains::ZoneSoaks;
use super::here::Here;
use super::order::Steps;
use crate::rules::Rules;

/// The progress of one image.
pub(super) struct Progress {
    pub(super) steps: Steps,
    pub(super) soaks: ZoneSoaks,
    /// Nodes of which it has replaced the outdated pod.
    pub(super) begun: BTreeSet<NodeName>,
    pub(super) unfinished: Unfinished,
}

/// Nodes whose pod was deleted, and on which no pod of the target was seen since: another pod is not
/// deleted there.
#[derive(Default)]
pub(super) struct Unfinished(BTreeMap<NodeName, Deleted>);

/// The pod that was deleted.
struct Deleted {
    pod: Uid,
    /// Whether the good template was put back since: the node may have got a pod of that one.
    is_put_back: bool,
}

impl Progress {
    pub(super) fn of(rules: &Rules, now: Timestamp) -> Self {
        Self {
            steps: Steps::of(rules, now),
            soaks: ZoneSoaks::default(),
            begun: BTreeSet::new(),
            unfinished: Unfinished::default(),
        }
    }

    /// All soaks begin again.
    pub(super) fn begin_again(&mut self, now: Timestamp) {
        self.steps.begin_again(0, now);
        self.soaks = ZoneSoaks::default();
    }
}

impl Unfinished {
    pub(super) fn contains(&self, node: &NodeName) -> bool {
        self.0.contains_key(node)
    }

    pub(super) fn insert(&mut self, node: NodeName, pod: &Pod) {
        self.0.insert(node, Deleted { pod: pod.uid.clone(), is_put_back: false });
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// The good template was put back.
    pub(super) fn put_back(&mut self) {
        self.0.values_mut().for_each(|deleted| deleted.is_put_back = true);
    }

    /// Removes the nodes that have got their pod. One that dies meanwhile is disturbed by itself.
    pub(super) fn look(&mut self, here: &[Here<'_>]) {
        self.0.retain(|node, deleted| {
            let one = here.iter().find(|one| one.node.name == *node);
            one.is_some_and(|one| one.node.readiness.is_ready() && !deleted.has_its_pod(one))
        });
    }
}

impl Deleted {
    /// Whether the node has got the pod for which this one was deleted.
    fn has_its_pod(&self, one: &Here<'_>) -> bool {
        let is_another = one.pod.is_some_and(|pod| pod.uid != self.pod);
        one.is_updated || (self.is_put_back && is_another)
    }
}
