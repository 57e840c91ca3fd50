//! The effects on pods: as planned, and as done by the controller.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use planner::plan::{Action, DaemonSetPlan, Fate, NodePlan, Plan, Reason, Strategy};

use crate::controller::{Act, Verb, node_of, owner_of};

/// One effect each: `delete app-x of default/app` or `create default/app on node-1`.
pub(super) type Effects = BTreeSet<String>;

/// The moment at which effects are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// At once, while no kubelet ends terminating pods.
    AtOnce,
    /// After all terminating pods have ended.
    InTheEnd,
}

/// The effects that the plan expects of the controller at once, whatever the strategy.
pub(super) fn planned(plan: &Plan, when: When) -> Effects {
    let mut effects = Effects::new();
    for daemon_set in &plan.daemon_sets {
        let key = format!("{}/{}", daemon_set.namespace, daemon_set.name);
        for node in &daemon_set.nodes {
            for pod in node.pods.iter().filter(|pod| pod.fate == Fate::Delete) {
                if is_immediate(&pod.reason.reason) {
                    effects.insert(format!("delete {} of {key}", pod.name));
                }
            }
            for pod in node.pods.iter().filter(|pod| pod.reason.reason == Reason::Released) {
                effects.insert(format!("release {} of {key}", pod.name));
            }
            if node.reasons.iter().any(|why| why.reason == Reason::Adopted) {
                effects.insert(format!("adopt {key} on {}", node.name));
            }
            if creates(daemon_set, node, when) {
                effects.insert(format!("create {key} on {}", node.name));
            }
        }
    }
    effects
}

/// Panics unless the plan contains enough effects of each kind.
pub(super) fn assert_interesting(plan: &Plan) {
    let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
    for daemon_set in &plan.daemon_sets {
        let pods = daemon_set.nodes.iter().flat_map(|node| &node.pods);
        for pod in pods.filter(|pod| pod.fate == Fate::Delete) {
            *seen.entry(pod.reason.reason.code()).or_default() += 1;
        }
    }
    for effect in planned(plan, When::InTheEnd) {
        for verb in ["create", "adopt", "release"] {
            *seen.entry(verb).or_default() += u32::from(effect.starts_with(verb));
        }
    }
    for (what, least) in [
        ("failed", 20),
        ("succeeded", 10),
        ("surplus", 20),
        ("superseded", 3),
        ("notEligible", 20),
        ("nodeVanished", 4),
        ("terminating", 20),
        ("create", 25),
        ("adopt", 20),
        ("release", 5),
    ] {
        assert!(seen.get(what).is_some_and(|count| *count >= least), "{what}: {seen:#?}");
    }
    let late = planned(plan, When::InTheEnd).len() - planned(plan, When::AtOnce).len();
    assert!(late >= 3, "only {late} pods are created after a kubelet's work");
}

/// Whether the controller deletes a pod for this reason independently of the strategy.
fn is_immediate(reason: &Reason) -> bool {
    match reason {
        Reason::Failed
        | Reason::Succeeded
        | Reason::Surplus { .. }
        | Reason::Superseded { .. }
        | Reason::NotEligible { .. }
        | Reason::NodeVanished => true,
        Reason::Terminating | Reason::Outdated { .. } | Reason::DeletedNotRecreated { .. } => false,
        other => panic!("not a reason to delete a pod: {other}"),
    }
}

/// Whether the node gets a new pod, other than by rolling.
fn creates(daemon_set: &DaemonSetPlan, node: &NodePlan, when: When) -> bool {
    let terminating = node.pods.iter().any(|pod| pod.reason.reason == Reason::Terminating);
    let surges =
        matches!(daemon_set.strategy, Strategy::RollingUpdate { max_surge, .. } if max_surge > 0);
    match node.action {
        Action::Create => true,
        // Without a surge the new pod is created when none of the old ones is left.
        Action::Replace if node.wave.is_none() => when == When::InTheEnd || surges || !terminating,
        Action::Wait => {
            let main = node.reasons.first().map(|reason| &reason.reason);
            when == When::InTheEnd && main == Some(&Reason::Terminating)
        }
        Action::Replace | Action::Delete | Action::Surge | Action::Keep => false,
    }
}

/// The effects of the controller, from the pods before and after, and from its requests to the API
/// server.
pub(super) fn done(before: &[Pod], after: &[Pod], acts: &[Act]) -> Effects {
    let known: BTreeMap<String, &Pod> = before.iter().map(|pod| (pod.name_any(), pod)).collect();
    let mut effects = Effects::new();
    for act in acts {
        let pod = known.get(&act.name);
        match act.verb {
            Verb::Create => {} // it has no name yet
            Verb::Delete => {
                let key = pod.map(|pod| daemon_set_of(pod)).unwrap_or_default();
                effects.insert(format!("delete {} of {key}", act.name));
            }
            Verb::Patch => {
                let pod = pod.expect("only existing pods are adopted or released");
                effects.insert(match owner_of(pod) {
                    Some(owner) => format!("release {} of {owner}", act.name),
                    None => {
                        format!("adopt {} on {}", daemon_set_of(pod), node_of(pod).unwrap())
                    }
                });
            }
        }
    }
    for pod in after.iter().filter(|pod| !known.contains_key(&pod.name_any())) {
        let (owner, node) = (owner_of(pod).unwrap(), node_of(pod).unwrap());
        effects.insert(format!("create {owner} on {node}"));
    }
    effects
}

/// The DaemonSet that a pod of this test belongs to, also if it is an orphan.
fn daemon_set_of(pod: &Pod) -> String {
    let app = pod.labels().get("app").filter(|app| *app != "other");
    let by_label = app.map(|app| format!("default/{app}"));
    by_label.or_else(|| owner_of(pod)).expect("every pod belongs to a DaemonSet")
}
