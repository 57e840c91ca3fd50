//! Node events of a rehearsal, caused from outside the cluster: machines die, join and are removed,
//! and administrators cordon, label and taint them.

use serde_json::{Map, Value, json};

use super::kubelet::Kubelets;
use super::moment::Moment;
use super::node_monitor;
use crate::{DeleteOptions, Kind, Status, Target, load};
use daemonset::model::{Labels, NodeEvent, NodeName, NodeSelection, Taint};

/// Field manager of these writes.
const MANAGER: &str = "rehearsal";

/// The taint of a cordoned node.
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";

/// Applies a node event.
pub(super) fn happen(event: &NodeEvent, kubelets: &mut Kubelets, moment: &mut Moment<'_>) {
    match event {
        NodeEvent::Dies { nodes, at: _ } => {
            for node in selected(nodes, moment) {
                kubelets.die(&node, moment.now);
            }
            node_monitor::soon(moment);
        }
        NodeEvent::ComesBack { nodes, at: _ } => {
            for node in selected(nodes, moment) {
                kubelets.come_back(&node, moment);
                node_monitor::revive(&node, moment);
            }
        }
        NodeEvent::Added { name, labels, taints, at: _ } => {
            let object = new_node(name, labels, taints);
            let created = moment.store.verbs(moment.now, MANAGER).create(Kind::Node, "", object);
            reported(created.map(drop), name);
            node_monitor::revive(name, moment);
        }
        NodeEvent::Removed { nodes, at: _ } => {
            for node in selected(nodes, moment) {
                kubelets.vanish(&node);
                let target = Target::new(Kind::Node, "", node.as_str());
                let mut verbs = moment.store.verbs(moment.now, MANAGER);
                reported(verbs.delete(target, &DeleteOptions::default()).map(drop), &node);
            }
        }
        NodeEvent::Cordoned { nodes, at: _ } => edit(nodes, moment, cordon),
        NodeEvent::Uncordoned { nodes, at: _ } => edit(nodes, moment, |node| {
            if let Some(spec) = node["spec"].as_object_mut() {
                spec.remove("unschedulable");
            }
            untaint(node, UNSCHEDULABLE);
        }),
        NodeEvent::Relabelled { nodes, labels, at: _ } => edit(nodes, moment, |node| {
            for (key, value) in labels {
                relabel(node, key, value.as_deref());
            }
        }),
        NodeEvent::Tainted { nodes, taint, at: _ } => {
            edit(nodes, moment, |node| add_taint(node, taint));
        }
        NodeEvent::Untainted { nodes, key, at: _ } => {
            edit(nodes, moment, |node| untaint(node, key));
        }
    }
}

fn selected(nodes: &NodeSelection, moment: &Moment<'_>) -> Vec<NodeName> {
    let all = moment.cache.nodes.iter().filter(|node| nodes.selects(node));
    all.map(|node| node.name.clone()).collect()
}

fn edit(nodes: &NodeSelection, moment: &mut Moment<'_>, change: impl Fn(&mut Value)) {
    for node in selected(nodes, moment) {
        let target = Target::new(Kind::Node, "", node.as_str());
        let mut verbs = moment.store.verbs(moment.now, MANAGER);
        reported(verbs.edit(target, &change).map(drop), &node);
    }
}

fn reported(result: Result<(), Status>, node: &NodeName) {
    if let Err(error) = result {
        tracing::debug!(%node, %error, "nothing happens to a node");
    }
}

fn new_node(name: &NodeName, labels: &Labels, taints: &[Taint]) -> Value {
    // Labels that every node has; given labels take precedence.
    let mut all: Map<String, Value> =
        [("kubernetes.io/hostname", name.as_str()), ("kubernetes.io/os", "linux")]
            .into_iter()
            .chain(labels.iter())
            .map(|(key, value)| (key.to_owned(), value.into()))
            .collect();
    all.retain(|_, value| !value.is_null());
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": all},
        "spec": {"taints": taints.iter().map(load::taint).collect::<Vec<_>>()},
    })
}

fn cordon(node: &mut Value) {
    node["spec"]["unschedulable"] = true.into();
    let taint = Taint {
        key: UNSCHEDULABLE.into(),
        value: "".into(),
        effect: daemonset::model::TaintEffect::NoSchedule,
    };
    add_taint(node, &taint);
}

fn add_taint(node: &mut Value, taint: &Taint) {
    let taints = &mut node["spec"]["taints"];
    if !taints.is_array() {
        *taints = json!([]);
    }
    let Some(taints) = taints.as_array_mut() else { return };
    let effect = taint.effect.as_str();
    taints.retain(|it| it["key"] != *taint.key || it["effect"] != effect);
    taints.push(load::taint(taint));
}

fn untaint(node: &mut Value, key: &str) {
    if let Some(taints) = node["spec"]["taints"].as_array_mut() {
        taints.retain(|taint| taint["key"] != key);
    }
}

fn relabel(node: &mut Value, key: &str, value: Option<&str>) {
    if !node["metadata"]["labels"].is_object() {
        node["metadata"]["labels"] = json!({});
    }
    let Some(labels) = node["metadata"]["labels"].as_object_mut() else { return };
    match value {
        Some(value) => labels.insert(key.to_owned(), value.into()),
        None => labels.remove(key),
    };
}
