//! Checks that the cluster answers itself, in a report: the conditions of nodes, and other pods.

use std::collections::BTreeMap;

use super::{AskedCheck, CheckRole, CheckVerdict, CheckedNodes, ToAsk};
use crate::checks::{
    CheckAnswer, CheckReason, CheckedCluster, CheckedNode, Found, gate, precondition,
};
use daemonset::model::{CheckKind, DaemonSet, DaemonSetKey, Neighbours, NodeName, Snapshot, Time};

/// The cluster that answers.
#[derive(Clone, Copy, Debug)]
pub struct Answering<'a> {
    /// Its nodes, and the DaemonSet with its pods.
    pub snapshot: &'a Snapshot,
    /// The other pods, of each query of the policy; or why they are not known.
    pub neighbours: Result<&'a [Neighbours], &'a str>,
}

impl ToAsk<'_> {
    /// The check with the answer of the cluster. A precondition is about the nodes that are not
    /// updated, a gate about the others.
    pub fn observed(
        &self,
        key: &DaemonSetKey,
        nodes: &CheckedNodes,
        answering: Answering<'_>,
    ) -> AskedCheck {
        let answer = match (answering.snapshot.daemon_set(key), answering.neighbours) {
            (None, _) => unknown("the DaemonSet is not in the cluster"),
            (Some(_), Err(why)) if self.looks_at_pods() => unknown(why),
            (Some(live), neighbours) => {
                let neighbours = neighbours.unwrap_or_default();
                answer(&self.found(live, nodes, answering.snapshot, neighbours))
            }
        };
        let (answer, reason) = match answer {
            CheckAnswer::Pass => (CheckVerdict::Pass, None),
            CheckAnswer::Fail(reason) => (CheckVerdict::Fail, Some(reason.into())),
            CheckAnswer::Unknown(reason) => (CheckVerdict::Unknown, Some(reason.into())),
        };
        AskedCheck {
            check: self.check.name.clone(),
            role: self.role,
            asks: self.check.kind.to_string(),
            answer,
            reason,
            series: 0,
            points: Vec::new(),
            min: None,
            max: None,
            each: Vec::new(),
            over: None,
        }
    }

    fn looks_at_pods(&self) -> bool {
        matches!(self.check.kind, CheckKind::Pods(_))
    }

    fn found(
        &self,
        live: &DaemonSet,
        nodes: &CheckedNodes,
        snapshot: &Snapshot,
        neighbours: &[Neighbours],
    ) -> Found {
        let names = match self.role {
            CheckRole::Precondition => &nodes.others,
            CheckRole::Gate => &nodes.nodes,
        };
        let created = newest_pods(live, snapshot);
        let checked: Vec<CheckedNode<'_>> = names
            .iter()
            .filter_map(|name| snapshot.node(name))
            .map(|node| CheckedNode { node, pod_created: created.get(&node.name).copied() })
            .collect();
        let cluster = CheckedCluster {
            nodes: &snapshot.nodes,
            neighbours,
            owner: &live.uid,
            now: snapshot.observed_at,
        };
        match self.role {
            CheckRole::Precondition => precondition(self.check, &checked, cluster),
            CheckRole::Gate => gate(self.check, &checked, cluster),
        }
    }
}

fn unknown(why: &str) -> CheckAnswer {
    CheckAnswer::Unknown(CheckReason::unanswered(why))
}

/// In a rollout, nothing begins before that is known.
fn answer(found: &Found) -> CheckAnswer {
    match (found.answer(), found.pending) {
        (answer @ CheckAnswer::Fail(_), _) | (answer, None) => answer,
        (CheckAnswer::Pass | CheckAnswer::Unknown(_), Some(until)) => {
            unknown(&format!("something has become bad, and fails at {until} if it stays so"))
        }
    }
}

/// The creation of the DaemonSet's newest pod on each node.
fn newest_pods<'s>(live: &DaemonSet, snapshot: &'s Snapshot) -> BTreeMap<&'s NodeName, Time> {
    let mut newest = BTreeMap::new();
    for pod in snapshot.pods_in(&live.key.namespace) {
        let is_ours = pod.controller.as_ref().is_some_and(|owner| owner.uid == live.uid);
        if let (true, false, Some(node), Some(created)) =
            (is_ours, pod.terminating, pod.node(), pod.created)
        {
            let known = newest.entry(node).or_insert(created);
            *known = created.max(*known);
        }
    }
    newest
}
