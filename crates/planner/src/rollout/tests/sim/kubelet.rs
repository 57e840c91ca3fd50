//! The kubelets: what becomes of pods, and of the pods that pull images.

use jiff::{SignedDuration, Timestamp};

use super::Sim;
use daemonset::model::{
    ContainerFailure, Pod, PodPhase, PodReadiness, PullProblem, PullState, REVISION_HASH_LABEL,
};

/// The behavior of the pods of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::rollout::tests) enum Fate {
    /// Ready after this number of seconds.
    ReadyAfter(i64),
    /// Ready, by the clock of a kubelet that is far ahead.
    ReadyInFuture,
    /// `ImagePullBackOff`, permanently.
    NoImage,
    /// Running, never Ready.
    NeverReady,
    /// Ready, then crashing, repeatedly.
    Crashes,
    /// Ready as soon as it runs, and ends after this number of seconds: restarted at once the first
    /// time, then after 10 s, 20 s, 40 s and so on.
    EndsAfter(i64),
    /// The API server rejects their creation.
    NotCreated,
}

impl Sim {
    pub(super) fn kubelet(&mut self) {
        let now = self.now();
        let images = self.images();
        let (fates, picky, nodes) = (&self.fates, &self.picky, &self.cluster.nodes);
        for pod in self.cluster.pods.iter_mut().filter(|pod| !pod.terminating) {
            let node = pod.node().unwrap().clone();
            if !nodes.iter().any(|it| it.name == node && it.readiness.is_ready()) {
                set_ready(pod, false, now);
                continue;
            }
            let image = pod.labels.get(REVISION_HASH_LABEL).and_then(|hash| images.get(hash));
            let image = image.map_or("", String::as_str);
            let mut fate = fates.get(image).copied().unwrap_or(Fate::ReadyAfter(3));
            if picky.get(node.as_str()).is_some_and(|wanted| wanted != image) {
                fate = Fate::NeverReady;
            }
            let created = *pod.created.get_or_insert(now.into());
            run(pod, fate, now.duration_since(created.into()).as_secs(), now);
        }
    }

    /// The kubelets' part in the pullers.
    pub(super) fn pull(&mut self) {
        let now = self.now();
        self.pullers.retain(|puller| !puller.terminating);
        for puller in &mut self.pullers {
            let takes = self.pulls.get(puller.node.as_str()).copied().unwrap_or(Some(2));
            let age = now.duration_since(puller.created.unwrap()).as_secs();
            let missing = |reason: &str| PullProblem {
                image: "v2".into(),
                reason: reason.into(),
                message: "not found".into(),
            };
            puller.state = match takes {
                Some(takes) if age >= takes => PullState::Pulled,
                Some(_) => PullState::Pulling(None),
                None => PullState::Pulling(Some(missing("ErrImagePull"))),
            };
        }
    }
}

/// Updates one pod according to its age.
fn run(pod: &mut Pod, fate: Fate, age: i64, now: Timestamp) {
    let mut set = |ready: bool| set_ready(pod, ready, now);
    match fate {
        Fate::ReadyAfter(seconds) => {
            set(age >= seconds);
            pod.phase = PodPhase::Running;
            pod.container_failure = None;
        }
        Fate::ReadyInFuture => {
            set_ready(pod, true, now + SignedDuration::from_hours(1));
            pod.phase = PodPhase::Running;
        }
        Fate::NeverReady => set(false),
        Fate::NoImage | Fate::NotCreated => {
            set(false);
            pod.container_failure =
                Some(pod_failure("ImagePullBackOff", "Back-off pulling image").into());
        }
        Fate::EndsAfter(seconds) => {
            let (up, since, restarts) = life(seconds, age);
            set(up);
            pod.phase = PodPhase::Running;
            pod.restarts = restarts;
            pod.containers_changed = Some((now - SignedDuration::from_secs(age - since)).into());
            pod.container_failure =
                (!up).then(|| pod_failure("CrashLoopBackOff", "back-off restarting").into());
        }
        Fate::Crashes => {
            // Ready for two seconds, in the back-off for eight.
            let up = age % 10 < 2;
            set(up);
            pod.restarts = u32::try_from(age / 10).unwrap();
            if up && age % 10 == 0 {
                pod.containers_changed = Some(now.into());
            }
            pod.container_failure =
                (!up).then(|| pod_failure("CrashLoopBackOff", "back-off 10s restarting").into());
        }
    }
}

/// Sets the Ready condition. It keeps its time while its status is unchanged; a condition that was
/// never true has none.
pub(super) fn set_ready(pod: &mut Pod, ready: bool, now: Timestamp) {
    match (ready, pod.readiness) {
        (true, PodReadiness::NotReady { .. }) => {
            pod.readiness = PodReadiness::Ready { since: Some(now.into()) };
        }
        (false, PodReadiness::Ready { .. }) => {
            pod.readiness = PodReadiness::NotReady { since: Some(now.into()) };
        }
        (true, PodReadiness::Ready { .. }) | (false, PodReadiness::NotReady { .. }) => {}
    }
}

/// The state at this age of a container that ends `up` seconds after each start: whether it runs,
/// since when it does or does not, and its number of restarts.
fn life(up: i64, age: i64) -> (bool, i64, u32) {
    let (mut start, mut restarts, mut wait) = (0, 0, 0);
    loop {
        let end = start + up;
        if age < end {
            return (true, start, restarts);
        }
        if age < end + wait {
            return (false, end, restarts);
        }
        start = end + wait;
        restarts += 1;
        wait = (wait * 2).max(10);
    }
}

pub(in crate::rollout::tests) fn pod_failure(reason: &str, message: &str) -> ContainerFailure {
    ContainerFailure { container: "c".into(), reason: reason.into(), message: message.into() }
}
