//! How long pods take to start, as the pods of a cluster tell themselves: from creation to Ready.
//!
//! Told by image without its tag, because a rollout's new image is seldom there already. Not here:
//! what a forecast (`plan`) or a rehearsal (`simulator`) makes of it.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde_json::Value;

use crate::model::{NamespaceName, Pod, PodReadiness, REVISION_HASH_LABEL, Snapshot};

/// How long a pod takes to be Ready when nothing is known about its image.
pub const DEFAULT_START: Duration = Duration::from_secs(8);

/// So many starts of an image have to be seen: one alone may be that of a pod that has been Ready
/// again since.
const ENOUGH: usize = 3;

/// Start times by image.
#[derive(Clone, Debug, Default)]
pub struct StartTimes {
    /// The median of those that were seen, by image without tag and digest, and how many were.
    by_image: BTreeMap<String, (Duration, usize)>,
}

impl StartTimes {
    /// Those of a cluster, as far as its pods tell.
    pub fn seen_in(snapshot: &Snapshot) -> Self {
        let mut by_revision = times_by_revision(&snapshot.pods);
        let mut seen: BTreeMap<String, Vec<Duration>> = BTreeMap::new();
        for revision in &snapshot.revisions {
            let hash = revision.labels.get(REVISION_HASH_LABEL);
            // Two DaemonSets with one template have revisions of one hash: their pods count once.
            let times = hash.and_then(|hash| by_revision.remove(&(&revision.namespace, hash)));
            let Some(times) = times else { continue };
            let Some(spec) = revision.data.pointer("/spec/template/spec") else { continue };
            for image in images(spec) {
                seen.entry(repository(image).to_owned()).or_default().extend(&times);
            }
        }
        let told = |(image, times): (String, Vec<Duration>)| {
            let count = times.len();
            Some((image, (median(times)?, count)))
        };
        Self { by_image: seen.into_iter().filter_map(told).collect() }
    }

    /// The median of each image, without its tag.
    pub fn medians(&self) -> impl Iterator<Item = (&str, Duration)> {
        self.by_image.iter().map(|(image, (time, _))| (image.as_str(), *time))
    }

    /// That of the slowest of these images, and how many starts tell of it; `None` when nothing is
    /// known about any of them.
    pub fn of<'i>(&self, images: impl IntoIterator<Item = &'i str>) -> Option<(Duration, usize)> {
        images.into_iter().filter_map(|image| self.by_image.get(repository(image))).max().copied()
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

/// The times of the pods of each revision, by namespace and hash. Images are the revision's to
/// tell: a snapshot may have more pods than one would look up names for.
fn times_by_revision(pods: &[Pod]) -> HashMap<(&NamespaceName, &str), Vec<Duration>> {
    let mut times: HashMap<_, Vec<Duration>> = HashMap::new();
    for pod in pods {
        if let (Some(time), Some(hash)) = (start_time(pod), pod.labels.get(REVISION_HASH_LABEL)) {
            times.entry((&pod.namespace, hash)).or_default().push(time);
        }
    }
    times
}

/// The images of the containers of a pod's spec.
pub fn images(spec: &Value) -> impl Iterator<Item = &str> {
    let containers = spec["containers"].as_array().into_iter().flatten();
    containers.filter_map(|container| container["image"].as_str())
}

/// An image without tag and digest. The port of a registry is no tag.
pub fn repository(image: &str) -> &str {
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
    fn the_one_in_the_middle_of_enough() {
        let seconds = Duration::from_secs;
        assert_eq!(median(vec![seconds(9), seconds(1), seconds(2)]), Some(seconds(2)));
        assert_eq!(median(vec![seconds(9), seconds(1)]), None);
    }

    #[test]
    fn the_slowest_image_counts() {
        let seconds = Duration::from_secs;
        let starts = [("a".to_owned(), (seconds(3), 7)), ("b".to_owned(), (seconds(20), 4))];
        let starts = StartTimes { by_image: starts.into() };
        assert_eq!(starts.of(["a:1", "b:2", "c:3"]), Some((seconds(20), 4)));
        assert_eq!(starts.of(["c:3"]), None);
    }
}
