//! The scheduler for daemon pods: it binds each to the node of its affinity, if the node accepts it
//! (upstream: the plugins `NodeAffinity` and `TaintToleration`).
//!
//! Resources and ports are not checked. A pod without affinity to exactly one node stays pending.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::moment::{Moment, Work};
use crate::clock::whole_second;
use crate::{Change, Event, Kind, ObjectKey, Target};
use daemonset::controller::tolerations::tolerates;
use daemonset::model::{Node, NodeName, Pod, PodTarget, TaintEffect, Toleration};

/// Field manager of the scheduler's writes.
const MANAGER: &str = "kube-scheduler";

/// Pods that wait for a node.
#[derive(Debug, Default)]
pub(super) struct Scheduler {
    waiting: BTreeSet<ObjectKey>,
}

impl Scheduler {
    /// Handles an event of a pod or a node.
    pub(super) fn hear(&mut self, event: &Event, moment: &mut Moment<'_>) {
        let key = event.object.key();
        if let Some(pod) = event.object.pod() {
            let gone = event.change == Change::Deleted;
            if !gone && !pod.terminating && matches!(pod.target, PodTarget::Aimed(_)) {
                if self.waiting.insert(key.clone()) {
                    self.try_soon(key, moment);
                }
            } else {
                self.waiting.remove(key);
            }
        } else if let Some(node) = event.object.node() {
            for key in self.waiting.clone() {
                let pod = moment.store.at(Kind::Pod, &key).and_then(|it| it.pod());
                if pod.is_some_and(|pod| pod.node() == Some(&node.name)) {
                    self.try_soon(&key, moment);
                }
            }
        }
    }

    /// Adopts a pod that exists at the start.
    pub(super) fn adopt(&mut self, key: &ObjectKey, pod: &Pod, moment: &mut Moment<'_>) {
        if !pod.terminating && matches!(pod.target, PodTarget::Aimed(_)) {
            self.waiting.insert(key.clone());
            self.try_soon(key, moment);
        }
    }

    #[expect(clippy::unused_self, reason = "it belongs to the ones above")]
    fn try_soon(&self, key: &ObjectKey, moment: &mut Moment<'_>) {
        moment.agenda.add(moment.now + moment.timings.request, Work::Bind(key.clone()));
    }

    /// Tries to bind a pod.
    pub(super) fn bind(&mut self, key: &ObjectKey, moment: &mut Moment<'_>) {
        if !self.waiting.contains(key) {
            return;
        }
        let Some(object) = moment.store.at(Kind::Pod, key).cloned() else { return };
        let Some(PodTarget::Aimed(name)) = object.pod().map(|pod| pod.target.clone()) else {
            return;
        };
        let node = moment.cache.node(&name);
        // Most nodes have no taint, so the pod need not be parsed.
        let is_tainted = node.is_some_and(|node| !node.taints.is_empty());
        let tolerations = if is_tainted { tolerations(&object.spec()) } else { Vec::new() };
        let fit = fits(&name, node, &tolerations, moment.cache.nodes.len());
        let now = moment.now;
        let mut verbs = moment.store.verbs(now, MANAGER);
        let target = Target::of(&object);
        let written = match fit {
            Ok(()) => {
                self.waiting.remove(key);
                verbs.bind(key.namespace(), key.name(), name.as_str())
            }
            Err(why) => verbs.edit(target.status(), |pod| unschedulable(pod, &why, now)),
        };
        if let Err(error) = written {
            tracing::debug!(pod = %key, %error, "cannot be scheduled");
        }
    }
}

/// Checks that the node accepts a pod with these tolerations; the error is the scheduler's message.
fn fits(
    name: &NodeName,
    node: Option<&Node>,
    tolerations: &[Toleration],
    nodes: usize,
) -> Result<(), String> {
    let Some(node) = node else {
        let why = "node(s) didn't satisfy plugin(s) [NodeAffinity]";
        tracing::debug!(%name, "node not found");
        return Err(format!("0/{nodes} nodes are available: {nodes} {why}."));
    };
    let in_the_way = node.taints.iter().find(|taint| {
        let counts = match taint.effect {
            TaintEffect::NoSchedule | TaintEffect::NoExecute => true,
            TaintEffect::PreferNoSchedule => false,
        };
        counts && !tolerations.iter().any(|it| tolerates(it, taint))
    });
    match in_the_way {
        None => Ok(()),
        Some(taint) => Err(format!(
            "0/{nodes} nodes are available: 1 node(s) had untolerated taint {{{}: {}}}, {} node(s) \
             didn't satisfy plugin(s) [NodeAffinity].",
            taint.key,
            taint.value,
            nodes.saturating_sub(1)
        )),
    }
}

/// The tolerations of a pod.
pub(super) fn tolerations(spec: &Value) -> Vec<Toleration> {
    let written = spec["tolerations"].as_array().into_iter().flatten();
    written.filter_map(|it| Toleration::deserialize(it).ok()).collect()
}

/// Writes the reason why a pod is not bound, unless the pod has it already.
fn unschedulable(pod: &mut Value, why: &str, now: Timestamp) {
    let condition = json!({
        "type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": why,
        "lastProbeTime": null, "lastTransitionTime": whole_second(now),
    });
    let conditions = &mut pod["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(conditions) = conditions.as_array_mut() else { return };
    match conditions.iter_mut().find(|it| it["type"] == "PodScheduled") {
        Some(known) if known["status"] == "False" && known["message"] == why => {}
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemonset::controller::test_cluster::node;

    #[test]
    fn nodes_accept_pods_that_tolerate_their_taints() {
        let exists = |key: &str| Toleration {
            key: key.to_owned(),
            operator: "Exists".to_owned(),
            ..Toleration::default()
        };
        for (name, taints, tolerations, want) in [
            ("no taint", &[][..], vec![], true),
            ("a taint", &["gpu:NoSchedule"][..], vec![], false),
            ("a tolerated one", &["gpu:NoSchedule"], vec![exists("gpu")], true),
            ("one of two", &["gpu:NoSchedule", "x:NoExecute"], vec![exists("gpu")], false),
            ("a wish", &["gpu:PreferNoSchedule"], vec![], true),
        ] {
            let node = node("a", &[], taints);
            let fit = fits(&"a".into(), Some(&node), &tolerations, 3);
            assert_eq!(fit.is_ok(), want, "{name}: {fit:?}");
        }
        assert!(fits(&"gone".into(), None, &[], 3).is_err());
    }

    #[test]
    fn an_equal_reason_is_not_written_again() {
        let at = daemonset::controller::test_cluster::at;
        let mut pod = json!({"status": {}});
        unschedulable(&mut pod, "why", at(1));
        let first = pod.clone();
        unschedulable(&mut pod, "why", at(2));
        assert_eq!(pod, first);
        unschedulable(&mut pod, "another", at(3));
        let all = pod["status"]["conditions"].as_array().unwrap();
        assert_eq!((all.len(), &all[0]["message"]), (1, &"another".into()));
    }
}
