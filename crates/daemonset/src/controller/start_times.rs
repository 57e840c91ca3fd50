//! Start times of pods, from creation to Ready, as observed on the pods of a cluster.
//!
//! Times are by image without its tag, because a rollout's new tag rarely runs already. Forecasts
//! (`planner`) and rehearsals (`embedded`) use them.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use serde_json::Value;

use crate::model::{NamespaceName, Pod, PodReadiness, REVISION_HASH_LABEL, Snapshot};

/// The assumed start time of a pod whose image has not been observed.
pub const DEFAULT_START: Duration = Duration::from_secs(8);

/// Minimum number of observed starts of an image: a single pod may have become Ready again later,
/// which falsifies its start time.
const ENOUGH: usize = 3;

/// Start times by image.
#[derive(Clone, Debug, Default)]
pub struct StartTimes {
    /// The median and the number of observed starts, by image without tag and digest.
    by_image: BTreeMap<String, (Duration, usize)>,
    /// The shortest of them: where the image was on the node already.
    fastest: BTreeMap<String, Duration>,
}

impl StartTimes {
    /// The start times observed on the pods of a cluster.
    pub fn seen_in(snapshot: &Snapshot) -> Self {
        let mut by_revision = times_by_revision(&snapshot.pods);
        let mut seen: BTreeMap<String, Times> = BTreeMap::new();
        for revision in &snapshot.revisions {
            let hash = revision.labels.get(REVISION_HASH_LABEL);
            // Two DaemonSets with equal templates have revisions with equal hashes: their pods
            // count once.
            let times = hash.and_then(|hash| by_revision.remove(&(&revision.namespace, hash)));
            let Some(times) = times else { continue };
            let Some(spec) = revision.data.pointer("/spec/template/spec") else { continue };
            for image in images(spec) {
                seen.entry(repository(image).to_owned()).or_default().extend(&times);
            }
        }
        Self::of_images(seen)
    }

    /// Those of the images that have been observed often enough.
    fn of_images(seen: BTreeMap<String, Times>) -> Self {
        let mut this = Self::default();
        for (image, times) in seen.into_iter().filter(|(_, times)| times.count() >= ENOUGH) {
            this.fastest.extend(times.fastest().map(|time| (image.clone(), time)));
            this.by_image.extend(times.median().map(|time| (image, (time, times.count()))));
        }
        this
    }

    /// The median of each image, without its tag.
    pub fn medians(&self) -> impl Iterator<Item = (&str, Duration)> {
        self.by_image.iter().map(|(image, (time, _))| (image.as_str(), *time))
    }

    /// The shortest time of each image, without its tag.
    pub fn fastest(&self) -> impl Iterator<Item = (&str, Duration)> {
        self.fastest.iter().map(|(image, time)| (image.as_str(), *time))
    }

    /// The start time of the slowest of these images where they are on the node already: the
    /// shortest that was observed. `None` if none of them has been observed.
    pub fn with_images<'i>(&self, images: impl IntoIterator<Item = &'i str>) -> Option<Duration> {
        images.into_iter().filter_map(|image| self.fastest.get(repository(image))).max().copied()
    }

    /// The start time of the slowest of these images, and the number of its observed starts; `None`
    /// if none of them has been observed.
    pub fn of<'i>(&self, images: impl IntoIterator<Item = &'i str>) -> Option<(Duration, usize)> {
        images.into_iter().filter_map(|image| self.by_image.get(repository(image))).max().copied()
    }
}

/// The time from creation to Ready. The median removes pods that became Ready again later. A time
/// below one second, the resolution of timestamps, is ignored.
fn start_time(pod: &Pod) -> Option<Duration> {
    let PodReadiness::Ready { since: Some(since) } = pod.readiness else { return None };
    let time = Duration::try_from(pod.created?.duration_until(since.into())).ok()?;
    (time >= Duration::from_secs(1)).then_some(time)
}

/// Start times: the number of pods, by their time. Times are whole seconds, so many pods have the same.
#[derive(Debug, Default)]
struct Times(BTreeMap<Duration, usize>);

impl Times {
    fn add(&mut self, time: Duration, pods: usize) {
        *self.0.entry(time).or_default() += pods;
    }

    fn extend(&mut self, others: &Self) {
        others.0.iter().for_each(|(time, pods)| self.add(*time, *pods));
    }

    fn count(&self) -> usize {
        self.0.values().sum()
    }

    fn fastest(&self) -> Option<Duration> {
        self.0.keys().next().copied()
    }

    /// The median: of an even number, the lower one in the middle.
    fn median(&self) -> Option<Duration> {
        let (count, mut upto) = (self.count(), 0);
        let mut times = self.0.iter();
        let middle = times.find(|(_, pods)| {
            upto += *pods;
            2 * upto >= count
        });
        middle.map(|(time, _)| *time)
    }
}

/// The start times of the pods of each revision, by namespace and hash. Images are read from the
/// revision, because a snapshot may have many more pods than revisions.
fn times_by_revision(pods: &[Pod]) -> HashMap<(&NamespaceName, &str), Times> {
    let mut times: HashMap<_, Times> = HashMap::new();
    for pod in pods {
        if let (Some(time), Some(hash)) = (start_time(pod), pod.labels.get(REVISION_HASH_LABEL)) {
            times.entry((&pod.namespace, hash)).or_default().add(time, 1);
        }
    }
    times
}

/// The images of the containers of a pod's spec.
pub fn images(spec: &Value) -> impl Iterator<Item = &str> {
    let containers = spec["containers"].as_array().into_iter().flatten();
    containers.filter_map(|container| container["image"].as_str())
}

/// An image without tag and digest. The port of a registry is not a tag.
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
    fn the_median_and_the_fastest() {
        let seconds = Duration::from_secs;
        for (times, fastest, median) in [
            (&[9, 1, 2][..], 1, 2),
            (&[4, 3, 2, 1], 1, 2),
            (&[7, 7, 7, 2], 2, 7),
            (&[5, 5, 1, 1, 1], 1, 1),
            (&[8], 8, 8),
        ] {
            let (mut all, mut rest) = (Times::default(), Times::default());
            all.add(seconds(times[0]), 1);
            times[1..].iter().for_each(|time| rest.add(seconds(*time), 1));
            all.extend(&rest);
            let found = (all.fastest(), all.median(), all.count());
            assert_eq!(found, (Some(seconds(fastest)), Some(seconds(median)), times.len()));
        }
        assert_eq!((Times::default().fastest(), Times::default().median()), (None, None));
    }

    #[test]
    fn two_pods_are_not_enough() {
        let times = |pods| {
            let mut times = Times::default();
            times.add(Duration::from_secs(4), pods);
            times
        };
        let starts = StartTimes::of_images(
            [("few".to_owned(), times(2)), ("enough".to_owned(), times(3))].into(),
        );
        assert_eq!(starts.of(["few:1"]), None);
        assert_eq!(starts.with_images(["few:1"]), None);
        assert_eq!(starts.of(["few:1", "enough:1"]), Some((Duration::from_secs(4), 3)));
        assert_eq!(starts.with_images(["few:1", "enough:1"]), Some(Duration::from_secs(4)));
    }

    #[test]
    fn the_slowest_image_counts() {
        let seconds = Duration::from_secs;
        let starts = [("a".to_owned(), (seconds(3), 7)), ("b".to_owned(), (seconds(20), 4))];
        let fastest = [("a".to_owned(), seconds(1)), ("b".to_owned(), seconds(2))];
        let starts = StartTimes { by_image: starts.into(), fastest: fastest.into() };
        assert_eq!(starts.of(["a:1", "b:2", "c:3"]), Some((seconds(20), 4)));
        assert_eq!(starts.of(["c:3"]), None);
        assert_eq!(starts.with_images(["a:1", "b:2", "c:3"]), Some(seconds(2)));
        assert_eq!(starts.with_images(["c:3"]), None);
    }
}
