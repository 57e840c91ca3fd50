//! How long things take in the embedded cluster: requests of controllers, and starts of pods.
//!
//! Starts are taken from the cluster that is rehearsed on, where it has any: the median of its own
//! pods' times from creation to Ready, by image without its tag, because a rollout's new image is
//! seldom there already. Not here: what a fault adds to them.

use std::collections::BTreeMap;
use std::time::Duration;

pub use crate::controller::start_times::DEFAULT_START;
use crate::controller::start_times::{StartTimes, repository};
use crate::model::Snapshot;

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
        let seen = StartTimes::seen_in(snapshot);
        let starts = seen.medians().map(|(image, time)| (image.to_owned(), time)).collect();
        Self { starts, ..Self::default() }
    }

    /// From creation to Ready, for a pod of these images: that of the slowest.
    pub fn start_of<'i>(&self, images: impl IntoIterator<Item = &'i str>) -> Duration {
        let known = images.into_iter().filter_map(|image| self.starts.get(repository(image)));
        known.max().copied().unwrap_or(self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
