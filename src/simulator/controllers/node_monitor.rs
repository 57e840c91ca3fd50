//! Nodes whose kubelet is not heard of: they become unknown and are tainted, and their pods are not
//! Ready any more (upstream: `nodelifecycle`, `monitorNodeHealth`, `MarkPodsNotReady`).
//!
//! No heartbeat is written: they would be most of the traffic of a rehearsal. Not here: how many
//! nodes of a zone may be lost before the controller becomes careful.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Moment, Work, whole_second};
use crate::model::{Node, NodeName, NodeReadiness};
use crate::simulator::{Kind, Target};

/// How often nodes are looked at (upstream: `--node-monitor-period`).
const PERIOD: Duration = Duration::from_secs(5);

/// How long a kubelet may be silent (upstream: `--node-monitor-grace-period`, 50 s since 1.32).
const GRACE: Duration = Duration::from_secs(50);

/// How often a kubelet is heard (upstream: `nodeLeaseDurationSeconds`, a quarter of it).
const HEARTBEAT: Duration = Duration::from_secs(10);

/// The taint of a node whose kubelet is silent, with both effects.
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";

/// The taint of a node whose kubelet says that it is not ready.
const NOT_READY: &str = "node.kubernetes.io/not-ready";

/// Who the controller is to the API server.
const MANAGER: &str = "kube-controller-manager";

/// Looks at every node, and comes back while there is something to look after.
pub(super) fn check(dead: &BTreeMap<NodeName, Timestamp>, moment: &mut Moment<'_>) {
    let cache = moment.cache;
    for node in &cache.nodes {
        let silent = dead.get(&node.name).map(|died| silence(&node.name, *died, moment));
        match judge(node, silent) {
            Verdict::Nothing => {}
            Verdict::Lost => lose(node, moment),
            Verdict::Back => untaint(node, moment),
        }
    }
    if !dead.is_empty() || cache.nodes.iter().any(is_tainted) {
        soon(moment);
    }
}

/// Looks at the nodes at the next full period.
pub(super) fn soon(moment: &mut Moment<'_>) {
    moment.agenda.add(moment.now + PERIOD, Work::CheckNodes);
}

/// A kubelet posts that its node is ready, for the first time or again.
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

/// How long nothing was heard of a kubelet that died then.
fn silence(node: &NodeName, died: Timestamp, moment: &Moment<'_>) -> Duration {
    let since_death = Duration::try_from(moment.now.duration_since(died)).unwrap_or_default();
    since_death + HEARTBEAT.mul_f64(moment.chance.share(&["heartbeat", node.as_str()]))
}

/// What a look at a node leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Nothing,
    /// It is lost.
    Lost,
    /// It was lost, and is ready.
    Back,
}

fn judge(node: &Node, silent: Option<Duration>) -> Verdict {
    match (silent, node.readiness) {
        (Some(silent), NodeReadiness::Ready) if silent >= GRACE => Verdict::Lost,
        (None, NodeReadiness::Ready) if is_tainted(node) => Verdict::Back,
        (Some(_) | None, _) => Verdict::Nothing,
    }
}

fn is_tainted(node: &Node) -> bool {
    node.taints.iter().any(|taint| matches!(&*taint.key, UNREACHABLE | NOT_READY))
}

fn lose(node: &Node, moment: &mut Moment<'_>) {
    let (now, name) = (moment.now, node.name.as_str());
    let target = Target::new(Kind::Node, "", name);
    let mut verbs = moment.store.verbs(now, MANAGER);
    let marked = verbs.edit(target.status(), |node| {
        conditions(
            node,
            now,
            "Unknown",
            "NodeStatusUnknown",
            "Kubelet stopped posting node status.",
        );
    });
    let tainted = marked.and_then(|_| verbs.edit(target, |node| taint(node, now)));
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

fn untaint(node: &Node, moment: &mut Moment<'_>) {
    let target = Target::new(Kind::Node, "", node.name.as_str());
    let written = moment.store.verbs(moment.now, MANAGER).edit(target, |node| {
        if let Some(taints) = node["spec"]["taints"].as_array_mut() {
            taints.retain(|taint| taint["key"] != UNREACHABLE && taint["key"] != NOT_READY);
        }
    });
    if let Err(error) = written {
        tracing::debug!(node = %node.name, %error, "a node cannot be untainted");
    }
}

/// Sets the condition `Ready` and, as they are known by the same voice, the others.
fn conditions(node: &mut Value, now: Timestamp, ready: &str, reason: &str, message: &str) {
    let list = &mut node["status"]["conditions"];
    if !list.is_array() {
        *list = json!([{"type": "Ready"}]);
    }
    for condition in list.as_array_mut().into_iter().flatten() {
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

fn taint(node: &mut Value, now: Timestamp) {
    let taints = &mut node["spec"]["taints"];
    if !taints.is_array() {
        *taints = json!([]);
    }
    let Some(taints) = taints.as_array_mut() else { return };
    for effect in ["NoSchedule", "NoExecute"] {
        if !taints.iter().any(|it| it["key"] == UNREACHABLE && it["effect"] == effect) {
            let time = whole_second(now);
            taints.push(json!({"key": UNREACHABLE, "effect": effect, "timeAdded": time}));
        }
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
    use crate::controller::test_cluster::node;

    #[test]
    fn a_node_is_lost_after_the_grace_period_and_back_when_it_is_heard() {
        let seconds = Duration::from_secs;
        let tainted = "node.kubernetes.io/unreachable:NoExecute";
        for (taints, ready, silent, want) in [
            (&[][..], true, None, Verdict::Nothing),
            (&[], true, Some(seconds(49)), Verdict::Nothing),
            (&[], true, Some(seconds(50)), Verdict::Lost),
            (&[], false, Some(seconds(60)), Verdict::Nothing),
            (&[tainted], true, None, Verdict::Back),
            (&[tainted], false, None, Verdict::Nothing),
        ] {
            let mut node = node("a", &[], taints);
            if !ready {
                node.readiness = NodeReadiness::Unknown { since: None };
            }
            assert_eq!(judge(&node, silent), want, "{taints:?} {ready} {silent:?}");
        }
    }

    #[test]
    fn all_conditions_of_a_lost_node_are_unknown() {
        let at = crate::controller::test_cluster::at;
        let mut node = json!({"status": {"conditions": [
            {"type": "MemoryPressure", "status": "False"}, {"type": "Ready", "status": "True"},
        ]}});
        let statuses = |node: &Value| -> Vec<String> {
            let all = node["status"]["conditions"].as_array().unwrap();
            all.iter().map(|it| it["status"].as_str().unwrap().to_owned()).collect()
        };
        conditions(&mut node, at(60), "Unknown", "NodeStatusUnknown", "");
        assert_eq!(statuses(&node), ["Unknown", "Unknown"]);
        conditions(&mut node, at(90), "True", "KubeletReady", "");
        assert_eq!(statuses(&node), ["False", "True"]);
        assert_eq!(node["status"]["conditions"][1]["lastTransitionTime"], "1970-01-01T00:01:30Z");
    }
}
