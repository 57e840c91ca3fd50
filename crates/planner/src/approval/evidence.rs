//! What a user sees before approving a step: which nodes run the new template, and since when.

use jiff::Timestamp;
use serde::Serialize;

use crate::digest::template_digest;
use crate::plan::DaemonSetPlan;
use daemonset::model::{DaemonSet, NodeName, Pod, PolicyStep, RevisionHash, Snapshot, StepsNote};

/// The evidence for an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    /// The earlier steps, in order.
    pub steps: Vec<EarlierStep>,
    /// The nodes that run the target revision: those with most restarts first, then those that are
    /// not Ready or Ready for the shortest time.
    pub nodes: Vec<UpdatedNode>,
}

/// A step before the one to approve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EarlierStep {
    /// Its name.
    pub name: String,
    /// Time since which all its nodes have had an available new pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete_at: Option<Timestamp>,
    /// Time since which it is done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done_at: Option<Timestamp>,
}

/// A node that runs the target revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdatedNode {
    /// Its name.
    pub node: NodeName,
    /// Time since which its pod has been Ready without a restart; none if it is not Ready.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ready_since: Option<Timestamp>,
    /// Restarts of the pod's containers.
    pub restarts: u32,
}

impl Evidence {
    /// The evidence about the target of this plan. A note about another template says nothing.
    pub fn of(
        snapshot: &Snapshot,
        plan: &DaemonSetPlan,
        earlier: &[PolicyStep],
        note: Option<&StepsNote>,
    ) -> Self {
        let note = note.filter(|note| note.template == plan.target_template);
        let steps = earlier.iter().map(|step| {
            let noted = note.and_then(|note| note.steps.get(&step.name));
            EarlierStep {
                name: step.name.clone(),
                complete_at: noted.and_then(|noted| noted.complete_at),
                done_at: noted.and_then(|noted| noted.done_at),
            }
        });
        Self { steps: steps.collect(), nodes: updated(snapshot, plan) }
    }
}

/// What is noted about the steps of the rollout that this plan is about, or of another template: not that
/// of an earlier rollout of the target, which another template has replaced since.
pub fn noted_steps<'a>(snapshot: &'a Snapshot, plan: &DaemonSetPlan) -> Option<&'a StepsNote> {
    let (key, template) = (plan.key(), plan.target_template.as_str());
    let is_live = |live: &DaemonSet| template_digest(live.spec.template.raw()) == template;
    let is_live = snapshot.daemon_set(&key).is_some_and(is_live);
    let note = snapshot.steps_note(&key)?;
    (note.template != template || note.steps_count(template, is_live)).then_some(note)
}

fn updated(snapshot: &Snapshot, plan: &DaemonSetPlan) -> Vec<UpdatedNode> {
    let (Some(uid), Some(hash)) = (&plan.uid, target_hash(snapshot, plan)) else {
        return Vec::new();
    };
    let is_new = |pod: &&Pod| {
        let is_its = pod.controller.as_ref().is_some_and(|owner| owner.uid == *uid);
        is_its && pod.has_hash(&hash) && !pod.terminating
    };
    let pods = snapshot.pods_in(&plan.namespace).iter().filter(is_new);
    let node = |pod: &Pod| {
        Some(UpdatedNode {
            node: pod.node()?.clone(),
            ready_since: pod.up_since().map(Timestamp::from),
            restarts: pod.restarts,
        })
    };
    let mut nodes: Vec<UpdatedNode> = pods.filter_map(node).collect();
    nodes.sort_by(|a, b| {
        let age = |it: &UpdatedNode| it.ready_since.unwrap_or(Timestamp::MAX);
        b.restarts.cmp(&a.restarts).then(age(b).cmp(&age(a))).then(a.node.cmp(&b.node))
    });
    nodes
}

/// The hash label of the target revision, if the revision exists.
fn target_hash(snapshot: &Snapshot, plan: &DaemonSetPlan) -> Option<RevisionHash> {
    let name = plan.revision.target.name.as_ref()?;
    let revisions = snapshot.revisions_in(&plan.namespace);
    revisions.iter().find(|revision| revision.name == *name)?.hash()
}
