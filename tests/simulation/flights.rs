//! The nodes whose pod a run has replaced: how many are in flight, and whether the new pods stay
//! up. Computed from the documented rules, independently of the program's code.

use std::collections::BTreeMap;

use daemonset::model::{DaemonSet, DaemonSetKey, NodeName, Pod, PodReadiness, Uid};
use embedded::Store;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::budget::{Nodes, desired_nodes, owns};
use crate::objects::{is_updated, pods};

/// The nodes that each run has replaced, by DaemonSet and user.
#[derive(Default)]
pub(crate) struct Flights {
    runs: BTreeMap<(DaemonSetKey, String), Run>,
}

#[derive(Default)]
struct Run {
    nodes: BTreeMap<NodeName, Replaced>,
    /// How often a new pod has become available.
    available: usize,
}

/// A node whose pod was deleted.
struct Replaced {
    /// The pod.
    pod: Uid,
    /// Whether a new pod has become available there.
    is_back: bool,
    /// Whether the run has deleted it as outdated, and not perhaps as the controller.
    is_sure: bool,
}

impl Run {
    /// Records which of these new pods are available at this moment for the first time.
    fn look(&mut self, new: &BTreeMap<NodeName, &Pod>, bar: Bar, now: Timestamp) {
        for (node, replaced) in self.nodes.iter_mut().filter(|(_, it)| !it.is_back) {
            let seconds = if self.available == 0 { bar.first } else { bar.others };
            if new.get(node).is_some_and(|pod| stays_up(pod, seconds, now)) {
                replaced.is_back = true;
                self.available += 1;
            }
        }
    }
}

/// How long the first new pod, and each later one, must stay Ready, in seconds.
#[derive(Clone, Copy)]
pub(crate) struct Bar {
    first: i64,
    others: i64,
}

impl Bar {
    pub(crate) fn of(live: &DaemonSet, policy: &Value) -> Self {
        let own = i64::from(live.spec.min_ready_seconds);
        let bar = |seconds: i64| seconds.max(own);
        let probed = |it: &Value| !it["readinessProbe"].is_null();
        let containers = live.spec.template.raw()["spec"]["containers"].as_array();
        match policy["minReadySeconds"].as_i64() {
            Some(asked) => Self { first: bar(asked), others: bar(asked) },
            None if containers.is_some_and(|all| all.iter().all(probed)) => {
                Self { first: bar(10), others: bar(0) }
            }
            None => Self { first: bar(10), others: bar(10) },
        }
    }
}

impl Bar {
    /// The longer of the two.
    pub(crate) fn longest(self) -> i64 {
        self.first.max(self.others)
    }
}

impl Flights {
    /// Records which new pods have become available since the last call.
    pub(crate) fn look(&mut self, live: &DaemonSet, policy: &Value, store: &Store, now: Timestamp) {
        let bar = Bar::of(live, policy);
        let new = new_pods(live, store);
        for run in self.of(&live.key) {
            run.look(&new, bar, now);
        }
    }

    /// Records that a pod that is not Ready any more was available until then: between two requests,
    /// it may have been seen so.
    pub(crate) fn look_back(
        &mut self,
        live: &DaemonSet,
        policy: &Value,
        (was, is): (&Pod, &Pod),
        store: &Store,
    ) {
        let PodReadiness::NotReady { since: Some(at) } = is.readiness else { return };
        if !owns(live, was) || was.terminating || !is_updated(was, live, store) {
            return;
        }
        let new = by_node([was].into_iter());
        for run in self.of(&live.key) {
            run.look(&new, Bar::of(live, policy), at.into());
        }
    }

    fn of(&mut self, daemon_set: &DaemonSetKey) -> impl Iterator<Item = &mut Run> {
        self.runs.iter_mut().filter(move |((key, _), _)| key == daemon_set).map(|(_, run)| run)
    }

    /// Records that the program deletes an outdated pod; `is_sure` unless it may do so as the
    /// controller.
    pub(crate) fn takes_off(&mut self, live: &DaemonSet, user: &str, pod: &Pod, is_sure: bool) {
        let Some(node) = pod.node() else { return };
        let run = self.runs.entry((live.key.clone(), user.to_owned())).or_default();
        let replaced = Replaced { pod: pod.uid.clone(), is_back: false, is_sure };
        run.nodes.insert(node.clone(), replaced);
    }

    /// The broken law if the pod of `node` is deleted now.
    pub(crate) fn broken(
        &self,
        live: &DaemonSet,
        (user, node): (&str, &NodeName),
        policy: &Value,
        (store, nodes, now): (&Store, &Nodes, Timestamp),
    ) -> Option<String> {
        let run = self.runs.get(&(live.key.clone(), user.to_owned()))?;
        let bar = Bar::of(live, policy);
        let (new, old) = (new_pods(live, store), old_pods(live, store));
        let seen = nodes.seen_by(now);
        let desired: Vec<&NodeName> = desired_nodes(live, store).map(|it| &it.name).collect();
        let counts = |it: &NodeName| it != node && desired.contains(&it) && nodes.is_ready(it, now);
        let made = || run.nodes.iter().filter(|(it, replaced)| replaced.is_sure && counts(it));
        // The program need not know of a change that has only just happened.
        let is_known = |pod: &Pod| pod.containers_changed.is_some_and(|at| at <= seen);
        let restarted = made().find(|(it, _)| {
            let pod = new.get(*it).filter(|pod| pod.restarts > 0 && is_known(pod));
            pod.is_some_and(|pod| !stays_up(pod, bar.others, now))
        });
        if let Some((at, _)) = restarted {
            return Some(format!(", while the new pod on {at} has restarted and is not available"));
        }
        if policy["ramp"] == "none" {
            return None;
        }
        let flies = |it: &NodeName, taken: &Uid| {
            let landed = |pod: &Pod| pod.uid != *taken || pod.terminating;
            let has_old = old.get(it).is_some_and(|pod| !pod.terminating);
            let is_up = new.get(it).is_some_and(|pod| {
                stays_up(pod, bar.others, now) || pod.containers_changed.is_none_or(|at| at > seen)
            });
            let is_gone = new.contains_key(it) || nodes.must_miss_pod(live, it, now);
            !has_old && !is_up && is_gone && old.get(it).is_none_or(|pod| landed(pod))
        };
        let flying: Vec<&NodeName> =
            made().filter(|(it, replaced)| flies(it, &replaced.pod)).map(|(it, _)| it).collect();
        let may = 1 + run.available;
        (flying.len() >= may).then(|| format!(", while {flying:?} are in flight, {may} allowed"))
    }
}

/// Pods of the live template that are not terminating, by node.
pub(crate) fn new_pods<'s>(live: &DaemonSet, store: &'s Store) -> BTreeMap<NodeName, &'s Pod> {
    let own = pods(store).filter(|pod| owns(live, pod) && !pod.terminating);
    by_node(own.filter(|pod| is_updated(pod, live, store)))
}

/// Pods of other templates, by node.
pub(crate) fn old_pods<'s>(live: &DaemonSet, store: &'s Store) -> BTreeMap<NodeName, &'s Pod> {
    by_node(pods(store).filter(|pod| owns(live, pod) && !is_updated(pod, live, store)))
}

fn by_node<'s>(pods: impl Iterator<Item = &'s Pod>) -> BTreeMap<NodeName, &'s Pod> {
    pods.filter_map(|pod| Some((pod.node()?.clone(), pod))).collect()
}

/// Whether a pod has been Ready for this many seconds without a container restart.
pub(crate) fn stays_up(pod: &Pod, seconds: i64, now: Timestamp) -> bool {
    let PodReadiness::Ready { since } = pod.readiness else { return false };
    let since = since.max(pod.containers_changed);
    seconds == 0
        || since
            .is_some_and(|at| now.duration_since(at.into()) >= SignedDuration::from_secs(seconds))
}
