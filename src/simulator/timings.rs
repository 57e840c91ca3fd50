//! How long things take in the embedded cluster: requests of controllers, and starts of pods.
//!
//! Starts are taken from the cluster that is rehearsed on, where it has any: the median of its own
//! pods' times from creation to Ready, by image without its tag, because a rollout's new image is
//! seldom there already. Not here: what a fault adds to them.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde_json::Value;

use crate::controller::revision_data;
use crate::model::{NamespaceName, Pod, PodReadiness, Revision, RevisionHash, Snapshot};

/// How long a pod takes to be Ready when nothing is known about its image.
pub const DEFAULT_START: Duration = Duration::from_secs(8);

/// So many starts of an image have to be seen: one alone may be that of a pod that has been Ready
/// again since.
const ENOUGH: usize = 3;

/// How long things take.
#[derive(Clone, Debug)]
pub struct Timings {
    /// How long after a change a controller or kubelet hears of it.
    pub informer: Duration,
    /// How long a controller waits for the answer to one request, or to many sent at once.
    pub request: Duration,
    /// Nodes that a sync of the DaemonSet controller gets through in a millisecond: it asks three
    /// times of each whether a pod should run there, and copies the node for that (upstream:
    /// `NodeShouldRunDaemonPod`).
    pub nodes_a_millisecond: u32,
    /// Requests a second that the controller manager allows itself (upstream:
    /// `--kube-api-qps`, 20).
    pub requests_per_second: f64,
    /// Requests that it sends at once before that counts (upstream: `--kube-api-burst`, 30).
    pub burst: u32,
    /// From the end of a grace period or of a process to the pod's end; grace periods are longer.
    pub stop: Duration,
    /// Starts and stops take up to this share longer, by chance.
    pub jitter: f64,
    /// From creation to Ready, by image without tag and digest.
    pub starts: BTreeMap<String, Duration>,
    /// The same, for all others.
    pub start: Duration,
}

impl Default for Timings {
    fn default() -> Self {
        Self {
            informer: Duration::from_millis(5),
            request: Duration::from_millis(10),
            nodes_a_millisecond: 50,
            requests_per_second: 20.0,
            burst: 30,
            stop: Duration::from_secs(1),
            jitter: 0.1,
            starts: BTreeMap::new(),
            start: DEFAULT_START,
        }
    }
}

impl Timings {
    /// How long a sync takes beside its requests.
    pub(super) fn sync(&self, nodes: usize) -> Duration {
        let nodes = u64::try_from(nodes).unwrap_or(u64::MAX);
        Duration::from_millis(nodes / u64::from(self.nodes_a_millisecond.max(1)))
    }

    /// Those of a cluster, as far as its pods tell.
    pub fn seen_in(snapshot: &Snapshot) -> Self {
        let images = images_by_hash(&snapshot.revisions);
        let mut seen: BTreeMap<String, Vec<Duration>> = BTreeMap::new();
        for pod in &snapshot.pods {
            let hash = pod.revision_hash().map(|hash| (pod.namespace.clone(), hash));
            let Some(images) = hash.and_then(|hash| images.get(&hash)) else { continue };
            let Some(time) = start_time(pod) else { continue };
            for image in images {
                seen.entry(image.clone()).or_default().push(time);
            }
        }
        let starts = seen.into_iter().filter_map(|(image, times)| Some((image, median(times)?)));
        Self { starts: starts.collect(), ..Self::default() }
    }

    /// From creation to Ready, for a pod of these images: that of the slowest.
    pub fn start_of<'i>(&self, images: impl IntoIterator<Item = &'i str>) -> Duration {
        let known = images.into_iter().filter_map(|image| self.starts.get(repository(image)));
        known.max().copied().unwrap_or(self.start)
    }
}

/// From creation to Ready. One that has been Ready again since is passed over by the median; one
/// that took less than the second in which times are written tells nothing.
fn start_time(pod: &Pod) -> Option<Duration> {
    let PodReadiness::Ready { since: Some(since) } = pod.readiness else { return None };
    let time = Duration::try_from(since.duration_since(pod.created?)).ok()?;
    (time >= Duration::from_secs(1)).then_some(time)
}

/// The one in the middle; of too few there is none.
fn median(mut times: Vec<Duration>) -> Option<Duration> {
    times.sort_unstable();
    let middle = times.len().saturating_sub(1) / 2;
    times.get(middle).copied().filter(|_| times.len() >= ENOUGH)
}

/// The images of each revision's template, without tags.
fn images_by_hash(revisions: &[Revision]) -> HashMap<(NamespaceName, RevisionHash), Vec<String>> {
    let of = |revision: &Revision| {
        let template = revision_data::template_of(&revision.data)?;
        let images = images(&template["spec"]).map(|image| repository(image).to_owned()).collect();
        Some(((revision.namespace.clone(), revision.hash()?), images))
    };
    revisions.iter().filter_map(of).collect()
}

/// The images of a pod's containers.
pub(super) fn images(spec: &Value) -> impl Iterator<Item = &str> {
    let containers = spec["containers"].as_array().into_iter().flatten();
    containers.filter_map(|container| container["image"].as_str())
}

/// An image without tag and digest. The port of a registry is no tag.
fn repository(image: &str) -> &str {
    let image = image.split_once('@').map_or(image, |(name, _)| name);
    match image.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => name,
        Some(_) | None => image,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_without_its_tag() {
        for (image, want) in [
            ("agent", "agent"),
            ("agent:1", "agent"),
            ("r.example:5000/agent", "r.example:5000/agent"),
            ("r.example:5000/agent:1@sha256:0", "r.example:5000/agent"),
        ] {
            assert_eq!(repository(image), want);
        }
    }

    #[test]
    fn the_slowest_image_that_is_known_counts() {
        let seconds = Duration::from_secs;
        let starts = [("a".to_owned(), seconds(3)), ("b".to_owned(), seconds(20))];
        let timings = Timings { starts: starts.into(), ..Timings::default() };
        for (images, want) in [
            (&["a:1"][..], seconds(3)),
            (&["a:1", "b:2", "c:3"], seconds(20)),
            (&["c:3"], DEFAULT_START),
        ] {
            assert_eq!(timings.start_of(images.iter().copied()), want, "{images:?}");
        }
        assert_eq!(median(vec![seconds(9), seconds(1), seconds(2)]), Some(seconds(2)));
        assert_eq!(median(vec![seconds(9), seconds(1)]), None);
    }
}
