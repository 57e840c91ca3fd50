//! The node lifecycle controller: nodes with a silent kubelet become unknown, and their pods are
//! not Ready any more (upstream: `nodelifecycle`, `monitorNodeHealth`, `MarkPodsNotReady`). Every
//! node is tainted by its conditions and its cordon.
//!
//! No heartbeat is written: heartbeats would be most of the traffic of a rehearsal. Not here: the
//! limits of the controller when many nodes of a zone are lost.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::moment::{CONTROLLER_MANAGER, Moment, Work};
use crate::clock::whole_second;
use crate::{Change, Event, Kind, Target};
use daemonset::model::{Node, NodeName, NodeReadiness, Taint, TaintEffect};

/// Period of the checks (upstream: `--node-monitor-period`).
const PERIOD: Duration = Duration::from_secs(5);

/// Grace period of a silent kubelet (upstream: `--node-monitor-grace-period`, 50 s since 1.32).
const GRACE: Duration = Duration::from_secs(50);

/// Period of heartbeats (upstream: `nodeLeaseDurationSeconds`, a quarter of it).
const HEARTBEAT: Duration = Duration::from_secs(10);

/// The taint of a node whose kubelet is silent, with both effects.
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// The taint of a node whose kubelet reports that it is not ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// The taint of a cordoned node.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// The conditions that the kubelet reports. Others belong to other clients, and stay as they are
/// (upstream: `nodeConditionTypes` of `tryUpdateNodeHealth`).
const OF_KUBELET: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];

/// Checks every node for the first time.
pub(super) fn begin(moment: &mut Moment<'_>) {
    for node in &moment.cache.nodes {
        moment.agenda.add(moment.now, Work::TaintNode(node.name.clone()));
    }
    soon(moment);
}

/// Handles an event of a node.
pub(super) fn hear(event: &Event, moment: &mut Moment<'_>) {
    if let Some(node) = event.object.node().filter(|_| event.change != Change::Deleted) {
        moment.agenda.add(moment.now, Work::TaintNode(node.name.clone()));
    }
}

/// Taints a node with `NoSchedule` by its conditions, at once (upstream:
/// `doNoScheduleTaintingPass`).
pub(super) fn taint(name: &NodeName, moment: &mut Moment<'_>) {
    let Some(node) = moment.cache.node(name) else { return };
    if !node.readiness.is_ready() {
        soon(moment);
    }
    let has = |key: &str| has_taint(node, key, TaintEffect::NoSchedule);
    let wrong = reported(node).into_iter().filter(|(key, is_so)| has(key) != *is_so);
    let wrong: Vec<(&str, bool)> = wrong.collect();
    if !wrong.is_empty() {
        change_taints(name, &wrong, "NoSchedule", moment);
    }
}

/// The taints of a node, with `true` if its conditions require them. Pressure conditions are not
/// simulated.
fn reported(node: &Node) -> [(&'static str, bool); 3] {
    [
        (NOT_READY, matches!(node.readiness, NodeReadiness::NotReady { .. })),
        (UNREACHABLE, matches!(node.readiness, NodeReadiness::Unknown { .. })),
        (UNSCHEDULABLE, node.unschedulable),
    ]
}

fn has_taint(node: &Node, key: &str, effect: TaintEffect) -> bool {
    node.taints.iter().any(|taint| *taint.key == *key && taint.effect == effect)
}

/// Checks every node, and schedules the next check while one is needed.
pub(super) fn check(dead: &BTreeMap<NodeName, Timestamp>, moment: &mut Moment<'_>) {
    let cache = moment.cache;
    for node in &cache.nodes {
        let silent = dead.get(&node.name).map(|died| silence(&node.name, *died, moment));
        if is_lost(node, silent) {
            lose(node, moment);
            continue;
        }
        let has = |key: &str| has_taint(node, key, TaintEffect::NoExecute);
        let wrong = reported(node)
            .into_iter()
            .filter(|(key, is_so)| *key != UNSCHEDULABLE && has(key) != *is_so);
        let wrong: Vec<(&str, bool)> = wrong.collect();
        if !wrong.is_empty() {
            change_taints(&node.name, &wrong, "NoExecute", moment);
        }
    }
    if !dead.is_empty() || cache.nodes.iter().any(is_unwell) {
        soon(moment);
    }
}

/// Schedules a check at the next full period.
pub(super) fn soon(moment: &mut Moment<'_>) {
    moment.agenda.add(moment.now + PERIOD, Work::CheckNodes);
}

/// A kubelet reports that its node is ready, for the first time or again.
pub(super) fn revive(name: &NodeName, moment: &mut Moment<'_>) {
    let now = moment.now;
    let target = Target::new(Kind::Node, "", name.as_str());
    let written = moment.store.verbs(now, "kubelet").edit(target.status(), |node| {
        conditions(node, now, "True", "KubeletReady", "kubelet is posting ready status");
    });
    if let Err(error) = written {
        tracing::debug!(%name, %error, "a node cannot be revived");
    }
    soon(moment);
}

/// The time since the last heartbeat of a kubelet that died at `died`.
fn silence(node: &NodeName, died: Timestamp, moment: &Moment<'_>) -> Duration {
    let since_death = Duration::try_from(moment.now.duration_since(died)).unwrap_or_default();
    since_death + HEARTBEAT.mul_f64(moment.chance.share(&["heartbeat", node.as_str()]))
}

/// `true` if a node that was ready has been silent for longer than the grace period.
fn is_lost(node: &Node, silent: Option<Duration>) -> bool {
    node.readiness.is_ready() && silent.is_some_and(|silent| silent >= GRACE)
}

/// `true` if a node is not ready, or has a taint for that.
fn is_unwell(node: &Node) -> bool {
    let is_mark = |taint: &Taint| matches!(&*taint.key, UNREACHABLE | NOT_READY);
    !node.readiness.is_ready() || node.taints.iter().any(is_mark)
}

fn lose(node: &Node, moment: &mut Moment<'_>) {
    let (now, name) = (moment.now, node.name.as_str());
    let target = Target::new(Kind::Node, "", name);
    let mut verbs = moment.store.verbs(now, CONTROLLER_MANAGER);
    let marked = verbs.edit(target.status(), |node| {
        conditions(
            node,
            now,
            "Unknown",
            "NodeStatusUnknown",
            "Kubelet stopped posting node status.",
        );
    });
    let tainted = marked.and_then(|_| {
        verbs.edit(target, |node| {
            for effect in ["NoSchedule", "NoExecute"] {
                set_taint(node, UNREACHABLE, effect, true, now);
            }
        })
    });
    if let Err(error) = tainted {
        tracing::debug!(name, %error, "a lost node cannot be marked");
    }
    let pods = moment.cache.all_pods();
    let pods = pods.filter(|pod| pod.is_bound() && pod.node() == Some(&node.name));
    for pod in pods {
        let target = Target::new(Kind::Pod, pod.namespace.as_str(), pod.name.as_str());
        let written = verbs.edit(target.status(), |pod| not_ready(pod, now));
        if let Err(error) = written {
            tracing::debug!(pod = %pod.name, %error, "a pod of a lost node cannot be marked");
        }
    }
}

/// Sets or removes taints of one effect.
fn change_taints(name: &NodeName, wanted: &[(&str, bool)], effect: &str, moment: &mut Moment<'_>) {
    let now = moment.now;
    let target = Target::new(Kind::Node, "", name.as_str());
    let written = moment.store.verbs(now, CONTROLLER_MANAGER).edit(target, |node| {
        for (key, is_so) in wanted {
            set_taint(node, key, effect, *is_so, now);
        }
    });
    if let Err(error) = written {
        tracing::debug!(node = %name, %error, "a node cannot be tainted");
    }
}

/// Sets the condition `Ready` and the other conditions that the kubelet reports.
fn conditions(node: &mut Value, now: Timestamp, ready: &str, reason: &str, message: &str) {
    let list = &mut node["status"]["conditions"];
    if !list.is_array() {
        *list = json!([{"type": "Ready"}]);
    }
    let is_of_kubelet =
        |it: &&mut Value| it["type"].as_str().is_some_and(|kind| OF_KUBELET.contains(&kind));
    for condition in list.as_array_mut().into_iter().flatten().filter(is_of_kubelet) {
        let is_ready = condition["type"] == "Ready";
        let status = if is_ready || ready == "Unknown" { ready } else { "False" };
        if condition["status"] != status {
            condition["status"] = status.into();
            condition["lastTransitionTime"] = whole_second(now).into();
        }
        if is_ready || ready == "Unknown" {
            condition["reason"] = reason.into();
            condition["message"] = message.into();
        }
    }
}

fn set_taint(node: &mut Value, key: &str, effect: &str, is_so: bool, now: Timestamp) {
    let taints = &mut node["spec"]["taints"];
    if !taints.is_array() {
        *taints = json!([]);
    }
    let Some(taints) = taints.as_array_mut() else { return };
    let is_it = |taint: &Value| taint["key"] == key && taint["effect"] == effect;
    if !is_so {
        taints.retain(|taint| !is_it(taint));
    } else if !taints.iter().any(is_it) {
        let time = whole_second(now);
        taints.push(json!({"key": key, "effect": effect, "timeAdded": time}));
    }
}

fn not_ready(pod: &mut Value, now: Timestamp) {
    let conditions = pod["status"]["conditions"].as_array_mut();
    for condition in conditions.into_iter().flatten() {
        if condition["type"] == "Ready" && condition["status"] == "True" {
            condition["status"] = "False".into();
            condition["lastTransitionTime"] = whole_second(now).into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemonset::controller::test_cluster::node;

    #[test]
    fn a_node_is_lost_after_the_grace_period() {
        for (ready, silent, want) in [
            (true, None, false),
            (true, Some(49), false),
            (true, Some(50), true),
            (false, Some(60), false),
        ] {
            let mut node = node("a", &[], &[]);
            if !ready {
                node.readiness = NodeReadiness::Unknown { since: None };
            }
            let silent = silent.map(Duration::from_secs);
            assert_eq!(is_lost(&node, silent), want, "{ready} {silent:?}");
        }
    }

    #[test]
    fn taints_follow_the_conditions() {
        use NodeReadiness::{NotReady, Ready, Unknown};
        for (readiness, unschedulable, want) in [
            (Ready, false, [false, false, false]),
            (Ready, true, [false, false, true]),
            (NotReady { since: None }, false, [true, false, false]),
            (Unknown { since: None }, true, [false, true, true]),
        ] {
            let mut node = node("a", &[], &[]);
            (node.readiness, node.unschedulable) = (readiness, unschedulable);
            assert_eq!(reported(&node).map(|(_, is_so)| is_so), want, "{readiness:?}");
        }
    }

    #[test]
    fn conditions_of_the_kubelet_become_unknown_and_others_stay() {
        let at = daemonset::controller::test_cluster::at;
        let mut node = json!({"status": {"conditions": [
            {"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"},
            {"type": "KernelDeadlock", "status": "True"},
        ]}});
        let statuses = |node: &Value| -> Vec<String> {
            let all = node["status"]["conditions"].as_array().unwrap();
            all.iter().map(|it| it["status"].as_str().unwrap().to_owned()).collect()
        };
        conditions(&mut node, at(60), "Unknown", "NodeStatusUnknown", "");
        assert_eq!(statuses(&node), ["Unknown", "Unknown", "True"]);
        conditions(&mut node, at(90), "True", "KubeletReady", "");
        assert_eq!(statuses(&node), ["False", "True", "True"]);
        assert_eq!(node["status"]["conditions"][1]["lastTransitionTime"], "1970-01-01T00:01:30Z");
    }
}
