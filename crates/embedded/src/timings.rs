//! Durations in the embedded cluster: requests of controllers, and start-ups of pods.
//!
//! Start-ups are taken from the cluster that is rehearsed, if it has any: the median time of its
//! own pods from creation to Ready, by image without its tag, because the new image of a rollout is
//! seldom there already. Not here: delays by faults.

use std::collections::BTreeMap;
use std::time::Duration;

pub use daemonset::controller::start_times::DEFAULT_START;
use daemonset::controller::start_times::{StartTimes, repository};
use daemonset::model::Snapshot;

/// Durations in the embedded cluster.
#[derive(Clone, Debug)]
pub struct Timings {
    /// Delay until a controller or kubelet receives a change.
    pub informer: Duration,
    /// Time that a controller waits for the answer to one request, or to many sent in parallel.
    pub request: Duration,
    /// Nodes that a sync of the DaemonSet controller processes in a millisecond: for each node it
    /// checks three times if a pod should run there, and copies the node for that (upstream:
    /// `NodeShouldRunDaemonPod`).
    pub nodes_a_millisecond: u32,
    /// Rate limit of the controller manager, in requests per second (upstream: `--kube-api-qps`,
    /// 20).
    pub requests_per_second: f64,
    /// Burst of that rate limit (upstream: `--kube-api-burst`, 30).
    pub burst: u32,
    /// Time from the end of a grace period or of a process to the deletion of the pod, in addition
    /// to the grace period.
    pub stop: Duration,
    /// Maximum random share that is added to start-ups and stops.
    pub jitter: f64,
    /// Time from creation to Ready, by image without tag and digest.
    pub starts: BTreeMap<String, Duration>,
    /// The same where the images are on the node: the shortest time that was observed.
    pub fastest: BTreeMap<String, Duration>,
    /// Time from creation to Ready for all other images.
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
            fastest: BTreeMap::new(),
            start: DEFAULT_START,
        }
    }
}

impl Timings {
    /// Duration of a sync without its requests.
    pub(super) fn sync(&self, nodes: usize) -> Duration {
        let nodes = u64::try_from(nodes).unwrap_or(u64::MAX);
        Duration::from_millis(nodes / u64::from(self.nodes_a_millisecond.max(1)))
    }

    /// The timings of a cluster, as far as its pods show them.
    pub fn seen_in(snapshot: &Snapshot) -> Self {
        let seen = StartTimes::seen_in(snapshot);
        let starts = seen.medians().map(|(image, time)| (image.to_owned(), time)).collect();
        let fastest = seen.fastest().map(|(image, time)| (image.to_owned(), time)).collect();
        Self { starts, fastest, ..Self::default() }
    }

    /// Time from creation to Ready for a pod with these images: that of the slowest. `are_here`:
    /// whether they were pulled before.
    pub fn start_of<'i>(
        &self,
        images: impl IntoIterator<Item = &'i str>,
        are_here: bool,
    ) -> Duration {
        let starts = if are_here { &self.fastest } else { &self.starts };
        let known = images.into_iter().filter_map(|image| starts.get(repository(image)));
        known.max().copied().unwrap_or(self.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_known_image_counts() {
        let seconds = Duration::from_secs;
        let starts = [("a".to_owned(), seconds(3)), ("b".to_owned(), seconds(20))];
        let fastest = [("b".to_owned(), seconds(2))].into();
        let timings = Timings { starts: starts.into(), fastest, ..Timings::default() };
        for (images, want) in [
            (&["a:1"][..], seconds(3)),
            (&["a:1", "b:2", "c:3"], seconds(20)),
            (&["c:3"], DEFAULT_START),
        ] {
            assert_eq!(timings.start_of(images.iter().copied(), false), want, "{images:?}");
        }
        assert_eq!(timings.start_of(["b:3"], true), seconds(2), "the images are there");
        assert_eq!(timings.start_of(["c:3"], true), DEFAULT_START);
    }
}
