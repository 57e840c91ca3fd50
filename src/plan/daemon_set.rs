//! The plan of one DaemonSet, step by step.

use std::collections::BTreeSet;

use serde_json::Value;

use super::applied::Applied;
use super::digest::{self, template_digest};
use super::document::{
    Action, ActionTotals, BaseChange, Change, Counters, DaemonSetPlan, Guard, NodePlan, Strategy,
    Warning, Wave,
};
use super::guards::{Judged, guards};
use super::hold::{Hold, LeftHold, as_declared};
use super::nodes::{self, Described, Outcomes};
use super::reason::Reason;
use super::scene::Scene;
use super::waves::Schedule;
use super::{Detail, object, warnings, waves};
use crate::controller::limits::Limits;
use crate::controller::manage::View;
use crate::controller::node_pods::Fleet;
use crate::controller::status;
use crate::model::{DaemonSet, NamespaceName, NodeName, PolicySpec, Snapshot};

/// A DaemonSet's plan, and what belongs beside it.
pub(super) struct Planned {
    /// The plan.
    pub plan: DaemonSetPlan,
    /// What `ds-apply` would refuse.
    pub guards: Vec<Guard>,
    /// What a reader should know.
    pub warnings: Vec<Warning>,
    /// What goes into the digest.
    pub decided: Value,
}

/// What was asked for of all DaemonSets alike.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    /// Field managers whose fields become ours.
    pub take_over: &'a BTreeSet<String>,
    /// Namespaces that the same source creates.
    pub created: &'a BTreeSet<NamespaceName>,
    /// How much is told.
    pub detail: Detail,
}

/// Plans one DaemonSet.
pub(super) fn plan<'a>(
    snapshot: &'a Snapshot,
    fleet: &'a Fleet<'a>,
    applied: &'a Applied,
    since: Option<BaseChange>,
    asked: Asked<'_>,
) -> Planned {
    let Asked { take_over, created, detail: Detail { all_nodes, show_values } } = asked;
    let desired = &applied.desired;
    let described = if all_nodes { Described::All } else { Described::Busy };
    let live = snapshot.daemon_set(&desired.key);
    let (hold, unreadable) = held(live);
    let declared = live.map(|live| as_declared(live, hold.as_ref()));
    let changes = object::changes(
        declared.as_deref(),
        &desired.raw,
        live.and_then(LeftHold::of).as_ref(),
        show_values,
    );
    let change = object::change(live, desired, &changes);
    let scene = Scene::of(object::owner_after(live, desired, change), live, snapshot, fleet);
    let strategy = strategy(&scene.view());
    let default = PolicySpec::default();
    let pace = desired.policy.as_ref().map_or(&default, |policy| &policy.spec);
    let untouched = untouched(change, live);
    let Rollout { nodes, waves, holders, idle } =
        rollout(&scene, strategy, pace, untouched, described);
    let now = live.map(|live| scene.as_it_is(live, snapshot));
    let mut plan = DaemonSetPlan {
        namespace: desired.key.namespace.clone(),
        name: desired.key.name.clone(),
        uid: live.map(|live| live.uid.clone()),
        generation: live.map(|live| live.generation),
        change,
        cascade: None,
        managed_by: desired.managed_by,
        policy: desired.policy.as_ref().map(|policy| policy.metadata.name.clone()),
        strategy,
        hold,
        live_template: live.map(|live| template_digest(live.spec.template.raw())),
        target_template: template_digest(desired.spec.template.raw()),
        revision: scene.target.plan.clone(),
        changes,
        base: since,
        leftovers: applied.leftovers.clone(),
        conflicts: applied.conflicts.clone(),
        taken_over: applied.taken_over.clone(),
        waves,
        totals: totals(&nodes, idle),
        nodes,
        status: now.as_ref().map(|now| Counters::from(status::counters(&now.view()))),
    };
    let mut warnings = warnings::about(&scene, live, snapshot, created);
    warnings.extend(applied.warnings.iter().cloned().chain(unreadable));
    warnings.extend(warnings::creates_at_once(&plan));
    warnings.extend(warnings::services::warnings(&plan, &scene, live, snapshot));
    let guards = guards(&Judged {
        plan: &plan,
        desired,
        live,
        now: now.as_ref(),
        scene: &scene,
        holders: &holders,
        failed_before: snapshot.has_failed(&desired.key, &plan.target_template),
        take_over,
        snapshot,
    });
    if !all_nodes {
        plan.nodes.retain(|node| node.action != Action::Keep);
        plan.nodes.shrink_to_fit();
    }
    Planned { decided: digest::decided(&plan), plan, guards, warnings }
}

/// The hold that a DaemonSet is under; a warning when its memory of one cannot be read, or is left
/// over.
pub(super) fn held(live: Option<&DaemonSet>) -> (Option<Hold>, Option<Warning>) {
    match live.map(Hold::of) {
        None => (None, None),
        Some(Ok(hold)) => (hold, live.and_then(left_over)),
        Some(Err(error)) => {
            let warning = Warning {
                code: "holdUnreadable".to_owned(),
                message: format!(
                    "{error}: what was declared is unknown, and OnDelete is taken for it"
                ),
                daemon_set: live.map(|live| live.key.to_string()),
                nodes: Vec::new(),
            };
            (None, Some(warning))
        }
    }
}

fn left_over(live: &DaemonSet) -> Option<Warning> {
    LeftHold::of(live).map(|left| Warning {
        code: "holdLeftOver".to_owned(),
        message: left.to_string(),
        daemon_set: Some(live.key.to_string()),
        nodes: Vec::new(),
    })
}

/// What happens on each node, and in which waves.
#[derive(Default)]
pub(super) struct Rollout {
    /// The nodes in name order.
    pub nodes: Vec<NodePlan>,
    /// The waves in order.
    pub waves: Vec<Wave>,
    /// Nodes that use up the budget, if that holds others back.
    pub holders: Vec<NodeName>,
    /// How many nodes beside them have no pod and get none.
    pub idle: u32,
}

/// Decides what happens on each node, and in which waves; to no node anything if there is a reason
/// why all of it stays `untouched`.
pub(super) fn rollout(
    scene: &Scene<'_>,
    strategy: Strategy,
    pace: &PolicySpec,
    untouched: Option<Reason>,
    described: Described,
) -> Rollout {
    let Outcomes { mut nodes, standings, idle } = nodes::outcomes(scene, pace, described);
    if let Some(reason) = untouched {
        leave_alone(&mut nodes, &reason);
        return Rollout { nodes, idle, ..Rollout::default() };
    }
    let Schedule { waves, holders } =
        waves::schedule(&mut nodes, &standings, strategy, pace, pace.min_ready(scene.owner.spec));
    Rollout { nodes, waves, holders, idle }
}

/// Why nothing at all happens to this DaemonSet's pods.
fn untouched(change: Change, live: Option<&DaemonSet>) -> Option<Reason> {
    if live.is_some_and(|live| live.terminating) {
        return Some(Reason::DaemonSetTerminating);
    }
    (change == Change::Recreate).then_some(Reason::MustBeRecreated)
}

fn leave_alone(nodes: &mut [NodePlan], reason: &Reason) {
    for node in nodes {
        node.action = Action::Keep;
        node.reasons.insert(0, reason.clone().into());
        for pod in &mut node.pods {
            pod.fate = super::document::Fate::Keep;
        }
    }
}

/// The update strategy in numbers of this cluster.
pub(super) fn strategy(view: &View<'_, '_>) -> Strategy {
    let desired = view.desired();
    match Limits::of(&view.owner.spec.update_strategy, desired) {
        None => Strategy::OnDelete,
        Some(Limits { max_unavailable, max_surge }) => {
            Strategy::RollingUpdate { max_unavailable, max_surge, desired }
        }
    }
}

pub(super) fn totals(nodes: &[NodePlan], idle: u32) -> ActionTotals {
    let mut totals = ActionTotals { keep: idle, ..ActionTotals::default() };
    for node in nodes {
        totals.add(node.action);
    }
    totals
}
