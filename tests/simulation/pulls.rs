//! The laws of `prePull`: no pod is replaced before its node has the images of the new one, and the
//! pods that pull them, the pullers, do not outlive a run.
//!
//! Which images a node has is read from the status of pullers, as their kubelets report it.

use std::collections::{BTreeMap, BTreeSet};

use daemonset::model::{NodeName, PRE_PULL_LABEL};
use embedded::{Kind, Object, Store};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::cluster::NAMESPACE;

/// The images that pullers have brought to nodes.
#[derive(Default)]
pub(crate) struct Pulls {
    pulled: BTreeSet<(NodeName, u32)>,
    /// The part of that which the run in progress can know: its pullers, or some that were left, showed it
    /// first at this time.
    pulled_in_run: BTreeMap<(NodeName, u32), Timestamp>,
    /// When the last puller of an image was created on a node: in the run in progress, or left for it.
    begun: BTreeMap<(NodeName, u32), Timestamp>,
}

/// Whether an object is a puller.
pub(crate) fn is_puller(object: &Object) -> bool {
    object.kind() == Kind::Pod && object.meta().labels.get(PRE_PULL_LABEL).is_some()
}

/// The DaemonSet for which a puller pulls.
pub(crate) fn pulls_for(object: &Object) -> Option<&str> {
    object.meta().labels.get(PRE_PULL_LABEL).filter(|_| object.kind() == Kind::Pod)
}

/// The pullers that nobody has deleted.
pub(crate) fn left(store: &Store) -> usize {
    let pods = store.objects(Kind::Pod, Some(NAMESPACE));
    pods.filter(|it| is_puller(it) && it.meta().deleted.is_none()).count()
}

impl Pulls {
    /// Notes what a changed pod says about the images of its node.
    pub(crate) fn hear(&mut self, object: &Object, now: Timestamp) {
        let Some(node) = object.pod().and_then(|pod| pod.node()).filter(|_| is_puller(object))
        else {
            return;
        };
        let pod = object.value();
        let statuses = pod["status"]["containerStatuses"].as_array();
        let containers = pod["spec"]["containers"].as_array();
        let images = containers.map_or(0, Vec::len);
        let wanted = containers.into_iter().flatten();
        let wanted = wanted.filter_map(|it| image_number(it["image"].as_str()?));
        if let Some(at) = object.meta().created {
            self.begun.extend(wanted.map(|image| ((node.clone(), image), at)));
        }
        let pulled: Vec<u32> = statuses.into_iter().flatten().filter_map(pulled).collect();
        if pulled.len() == images {
            let on_node = pulled.into_iter().map(|image| (node.clone(), image));
            for here in on_node.clone() {
                self.pulled_in_run.entry(here).or_insert(now);
            }
            self.pulled.extend(on_node);
        }
    }

    /// Looks at all pullers: a change may not have been heard yet.
    pub(crate) fn look(&mut self, store: &Store, now: Timestamp) {
        store.objects(Kind::Pod, Some(NAMESPACE)).for_each(|it| self.hear(it, now));
    }

    /// A run begins: what earlier pullers have shown is not remembered.
    pub(crate) fn run_begins(&mut self) {
        self.pulled_in_run.clear();
        self.begun.clear();
    }

    /// Whether the run in progress can know that a node has an image.
    pub(crate) fn is_known(&self, node: &NodeName, image: u32) -> bool {
        self.pulled_in_run.contains_key(&(node.clone(), image))
    }

    /// Whether a node has an image, as far as pullers have shown.
    pub(crate) fn has(&self, node: &NodeName, image: u32) -> bool {
        self.pulled.contains(&(node.clone(), image))
    }

    /// The nodes of which the run in progress need not know that they have got an image within `limit`, in
    /// seconds: the program skips them, as those that are not Ready. It sees everything after `sight`.
    pub(crate) fn timed_out(
        &self,
        image: u32,
        limit: Option<u32>,
        sight: SignedDuration,
        now: Timestamp,
    ) -> BTreeSet<NodeName> {
        let Some(limit) = limit else { return BTreeSet::new() };
        let of_image = self.begun.iter().filter(|((_, of), _)| *of == image);
        let over = of_image.filter(|(here, begun)| {
            let ends = **begun + SignedDuration::from_secs(limit.into());
            let is_late = |shown: &Timestamp| *shown + sight >= ends;
            ends <= now && self.pulled_in_run.get(here).is_none_or(is_late)
        });
        over.map(|((node, _), _)| node.clone()).collect()
    }
}

/// The image of a container, if it is on the node.
fn pulled(status: &Value) -> Option<u32> {
    let image = status["image"].as_str()?;
    status["imageID"].as_str().filter(|id| !id.is_empty())?;
    image_number(image)
}

/// The number of an image: its tag.
pub(crate) fn image_number(image: &str) -> Option<u32> {
    image.rsplit(':').next()?.parse().ok()
}
