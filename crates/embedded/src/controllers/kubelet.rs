//! The kubelets: each simulates the life and the termination of the pods on its node.
//!
//! A dead kubelet does nothing; when it comes back, its pods continue. A node that is not Ready
//! when the cluster is loaded has a dead kubelet. Not here: the stages of a pod's life (`life`),
//! and its status in the API (`status`).

mod life;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;

use self::life::{Cause, ContainerFault, Life, Stage, StartUp};
use self::status::Spec;
use super::moment::{Moment, Work};
use crate::{Change, DeleteOptions, Event, Kind, Object, ObjectKey, Target};
use daemonset::model::{ImageFault, Node, NodeName, PRE_PULL_LABEL, Pod, PodPhase, PodTarget, Uid};

/// Field manager of a kubelet's writes.
const MANAGER: &str = "kubelet";

/// All kubelets of the cluster.
#[derive(Debug)]
pub(super) struct Kubelets {
    faults: Vec<ImageFault>,
    pods: BTreeMap<ObjectKey, Held>,
    /// The time of death of each dead kubelet.
    dead: BTreeMap<NodeName, Timestamp>,
    /// The images that pullers have brought to each node.
    pulled: BTreeMap<NodeName, BTreeSet<Box<str>>>,
}

/// A pod of a kubelet.
#[derive(Debug)]
struct Held {
    uid: Uid,
    node: NodeName,
    doing: Doing,
}

#[derive(Debug)]
enum Doing {
    /// The pod is alive; `reported` if its stage was written to the API.
    Living { life: Life, plan: StartUp, reported: bool },
    /// The pod terminates, and is gone at that time.
    Ending(Timestamp),
    /// The pod does not change: it was loaded with a failure, or has ended.
    Staying,
}

impl Kubelets {
    pub(super) fn new(faults: Vec<ImageFault>) -> Self {
        Self { faults, pods: BTreeMap::new(), dead: BTreeMap::new(), pulled: BTreeMap::new() }
    }

    /// The time of death of each dead kubelet.
    pub(super) fn dead(&self) -> &BTreeMap<NodeName, Timestamp> {
        &self.dead
    }

    /// Stops the kubelet of a node.
    pub(super) fn die(&mut self, node: &NodeName, now: Timestamp) {
        self.dead.entry(node.clone()).or_insert(now);
    }

    /// Starts the kubelet again: its pods continue, and their status is written again.
    pub(super) fn come_back(&mut self, node: &NodeName, moment: &mut Moment<'_>) {
        if self.dead.remove(node).is_none() {
            return;
        }
        let now = moment.now;
        for (key, held) in self.pods.iter_mut().filter(|(_, held)| held.node == *node) {
            match &mut held.doing {
                Doing::Living { reported, .. } => *reported = false,
                Doing::Ending(_) => {}
                Doing::Staying => {
                    let runs = moment.store.at(Kind::Pod, key).and_then(|it| it.pod()).is_some_and(
                        |pod| pod.phase == PodPhase::Running && pod.container_failure.is_none(),
                    );
                    if runs {
                        held.doing = found_ready(now);
                    }
                }
            }
            moment.agenda.add(now, Work::Kubelet(key.clone()));
        }
    }

    /// Removes the machine and all its pods.
    pub(super) fn vanish(&mut self, node: &NodeName) {
        self.dead.remove(node);
        self.pulled.remove(node);
        self.pods.retain(|_, held| held.node != *node);
    }

    /// Adopts a pod that exists at the start.
    pub(super) fn adopt(&mut self, object: &Object, moment: &mut Moment<'_>) {
        let Some((pod, node)) = bound(object) else { return };
        let running = pod.phase == PodPhase::Running;
        let doing = if pod.terminating {
            Doing::Ending(object.meta().deleted.unwrap_or(moment.now))
        } else if pod.is_ready() && running {
            found_ready(moment.now)
        } else if pod.phase == PodPhase::Pending && pod.container_failure.is_none() {
            return self.begin(object, pod, node, moment);
        } else {
            self.found_starting(object, pod, node, moment).unwrap_or(Doing::Staying)
        };
        let next = match &doing {
            Doing::Living { life, plan, .. } => life.next(plan).map(|next| next.max(moment.now)),
            Doing::Ending(at) => Some(*at),
            Doing::Staying => None,
        };
        self.pods
            .insert(object.key().clone(), Held { uid: pod.uid.clone(), node: node.clone(), doing });
        if let Some(at) = next {
            moment.agenda.add(at, Work::Kubelet(object.key().clone()));
        }
    }

    /// The state of a pod whose containers run for the first time, and become ready at the time that
    /// is known for its images. `None` if that time is over: something keeps it from becoming ready.
    fn found_starting(
        &self,
        object: &Object,
        pod: &Pod,
        node: &NodeName,
        moment: &Moment<'_>,
    ) -> Option<Doing> {
        let is_first = pod.restarts == 0 && pod.container_failure.is_none();
        let created = pod.created.filter(|_| is_first && pod.phase == PodPhase::Running)?;
        let plan = self.plan(object, node, moment);
        let started = pod.containers_changed.map_or(moment.now, Timestamp::from);
        let mut life = Life::at(Stage::Running, started);
        life.since = Timestamp::from(created) + plan.creating;
        let is_starting = life.since + plan.ready > moment.now && !plan.starts_nothing;
        is_starting.then_some(Doing::Living { life, plan, reported: true })
    }

    /// Handles an event of a pod.
    pub(super) fn hear(&mut self, event: &Event, moment: &mut Moment<'_>) {
        let object = &event.object;
        let Some((pod, node)) = bound(object) else { return };
        let key = object.key();
        if event.change == Change::Deleted {
            if self.pods.get(key).is_some_and(|held| held.uid == pod.uid) {
                self.pods.remove(key);
                moment.agenda.remove(&Work::Kubelet(key.clone()));
            }
            return;
        }
        let known = self.pods.get(key).filter(|held| held.uid == pod.uid);
        if known.is_none() {
            self.begin(object, pod, node, moment);
        }
        if pod.terminating {
            self.end(object, moment);
        }
    }

    fn begin(&mut self, object: &Object, pod: &Pod, node: &NodeName, moment: &mut Moment<'_>) {
        let plan = self.plan(object, node, moment);
        let life = Life::begin(moment.now);
        let doing = Doing::Living { life, plan, reported: false };
        let held = Held { uid: pod.uid.clone(), node: node.clone(), doing };
        self.pods.insert(object.key().clone(), held);
        moment.agenda.put(moment.now, Work::Kubelet(object.key().clone()));
    }

    /// Starts the termination of a pod: its processes get their grace period.
    fn end(&mut self, object: &Object, moment: &mut Moment<'_>) {
        let Some(held) = self.pods.get_mut(object.key()) else { return };
        let stop = stretched(moment, moment.timings.stop, &["stop", &held.uid.to_string()]);
        let limit = object.meta().deleted.unwrap_or(Timestamp::MAX);
        let at = match held.doing {
            Doing::Ending(before) => before.min(limit),
            Doing::Living { .. } | Doing::Staying => (moment.now + stop).min(limit),
        }
        .max(moment.now);
        held.doing = Doing::Ending(at);
        moment.agenda.put(at, Work::Kubelet(object.key().clone()));
    }

    /// The start-up of a pod with these images on that node.
    fn plan(&self, object: &Object, node: &NodeName, moment: &Moment<'_>) -> StartUp {
        let spec: Spec = object.spec();
        let images: Vec<&str> = spec.containers.iter().map(|it| &*it.image).collect();
        let starts_nothing = object.meta().labels.get(PRE_PULL_LABEL).is_some();
        let all = spec.containers.iter().chain(&spec.init_containers);
        let here = self.pulled.get(node);
        let are_here = here.is_some_and(|here| all.into_iter().all(|it| here.contains(&it.image)));
        let start = moment.timings.start_of(images.iter().copied(), are_here);
        let start = stretched(moment, start, &["start", &object.meta().uid.to_string()]);
        // Without a probe, a container is ready as soon as it has started.
        let (creating, ready) =
            if spec.is_probed() { (start / 2, start / 2) } else { (start, Duration::ZERO) };
        let plan = StartUp { creating, ready, fault: None, starts_nothing };
        match moment.cache.node(node) {
            Some(node) => struck(plan, &self.faults, &images, node),
            None => plan,
        }
    }

    /// Continues with a pod.
    pub(super) fn resume(&mut self, key: &ObjectKey, moment: &mut Moment<'_>) {
        let Some(held) = self.pods.get_mut(key) else { return };
        if self.dead.contains_key(&held.node) {
            return;
        }
        let (now, work) = (moment.now, Work::Kubelet(key.clone()));
        let target = Target::new(Kind::Pod, key.namespace(), key.name());
        match &mut held.doing {
            Doing::Living { life, plan, reported } => {
                if *reported && life.next(plan).is_some_and(|next| next <= now) {
                    life.advance(plan, now);
                }
                *reported = true;
                let is_through = plan.starts_nothing && life.started.is_some();
                if let Some(next) = life.next(plan).filter(|_| !is_through) {
                    moment.agenda.add(next.max(now), work);
                }
                let spec: Spec =
                    moment.store.at(Kind::Pod, key).map(|pod| pod.spec()).unwrap_or_default();
                if is_through {
                    let here = self.pulled.entry(held.node.clone()).or_default();
                    here.extend(spec.containers.iter().map(|it| it.image.clone()));
                }
                let mut verbs = moment.store.verbs(now, MANAGER);
                let written = verbs.edit(target.status(), |pod| {
                    pod["status"] = if is_through {
                        status::ended(&spec, &pod["status"], now)
                    } else {
                        status::status(&spec, &pod["status"], life, plan, now)
                    };
                });
                if let Err(error) = written {
                    tracing::debug!(pod = %key, %error, "the status cannot be written");
                }
                if is_through {
                    held.doing = Doing::Staying;
                }
            }
            Doing::Ending(at) if *at <= now => {
                let options = DeleteOptions { uid: Some(held.uid.clone()), ..DeleteOptions::now() };
                let deleted = moment.store.verbs(now, MANAGER).delete(target, &options);
                if let Err(error) = deleted {
                    tracing::debug!(pod = %key, %error, "the pod cannot be deleted");
                }
            }
            Doing::Ending(at) => moment.agenda.add(*at, work),
            Doing::Staying => {}
        }
    }
}

/// A pod with its node, if it has one.
fn bound(object: &Object) -> Option<(&Pod, &NodeName)> {
    let pod = object.pod()?;
    match &pod.target {
        PodTarget::Bound(node) => Some((pod, node)),
        PodTarget::Aimed(_) | PodTarget::Nowhere => None,
    }
}

/// The state of a pod that is Ready and stays so.
fn found_ready(now: Timestamp) -> Doing {
    let (creating, ready) = (Duration::ZERO, Duration::ZERO);
    let plan = StartUp { creating, ready, fault: None, starts_nothing: false };
    Doing::Living { life: Life::at(Stage::Ready, now), plan, reported: true }
}

/// The duration plus a random jitter.
fn stretched(moment: &Moment<'_>, time: Duration, words: &[&str]) -> Duration {
    time.mul_f64(1.0 + moment.timings.jitter * moment.chance.share(words))
}

/// The same start-up with the faults that apply. The first of several causes is used; delays are
/// added up.
fn struck(mut plan: StartUp, faults: &[ImageFault], images: &[&str], node: &Node) -> StartUp {
    for (container, image) in images.iter().enumerate() {
        for fault in faults.iter().filter(|fault| fault.strikes(image, node)) {
            let cause = match fault {
                // Nothing of the image runs.
                ImageFault::CrashLoops { .. } | ImageFault::ReadyLate { .. }
                    if plan.starts_nothing =>
                {
                    continue;
                }
                ImageFault::NeverPulls { .. } => Cause::NeverPulls,
                ImageFault::CrashLoops { after, .. } => Cause::Ends(after.0),
                ImageFault::ReadyLate { by, .. } => {
                    plan.ready += by.0;
                    continue;
                }
            };
            plan.fault.get_or_insert(ContainerFault { container, cause });
        }
    }
    plan
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemonset::controller::test_cluster::node;

    #[test]
    fn faults_change_a_start_up() {
        let plan = || StartUp {
            creating: Duration::from_secs(1),
            ready: Duration::from_secs(2),
            fault: None,
            starts_nothing: false,
        };
        let faults: Vec<ImageFault> = [
            "{fault: readyLate, image: b, by: 10s}",
            "{fault: neverPulls, image: b, nodes: {names: [bad]}}",
            "{fault: crashLoops, image: 'c*', after: 3s}",
        ]
        .map(|text| serde_saphyr::from_str(text).unwrap())
        .into();
        let fault = |container, cause| Some(ContainerFault { container, cause });
        let ends = Cause::Ends(Duration::from_secs(3));
        for (images, on, ready, want) in [
            (&["a"][..], "good", 2, None),
            (&["a", "b"], "good", 12, None),
            (&["a", "b"], "bad", 12, fault(1, Cause::NeverPulls)),
            (&["c:1", "b"], "bad", 12, fault(0, ends)),
        ] {
            let struck = struck(plan(), &faults, images, &node(on, &[], &[]));
            assert_eq!(struck.ready, Duration::from_secs(ready), "{images:?} on {on}");
            assert_eq!(struck.fault, want, "{images:?} on {on}");
        }
    }
}
