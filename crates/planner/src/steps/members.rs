//! The nodes of each step.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::soak::Progress;
use super::{NodeUpdate, StepNode, StepProgress};
use crate::classification::NodeStanding;
use daemonset::model::{PolicyStep, StepNodes};

/// The nodes of the steps so far.
pub(super) struct Members<'s, 'a> {
    nodes: &'s [StepNode<'a>],
    /// Whether each node is a member.
    is_member: Vec<bool>,
    /// Number of desired nodes.
    desired: u32,
}

/// The nodes that a step adds to those of the earlier ones.
pub(super) struct Added {
    /// Their positions.
    pub nodes: Vec<usize>,
    /// Whether the step selects no node at all.
    pub is_empty: bool,
}

impl<'s, 'a> Members<'s, 'a> {
    pub(super) fn of(nodes: &'s [StepNode<'a>]) -> Self {
        let desired = nodes.iter().filter(|node| node.is_desired).count();
        let desired = u32::try_from(desired).unwrap_or(u32::MAX);
        Self { nodes, is_member: vec![false; nodes.len()], desired }
    }

    /// Adds the nodes of a step. A step that is done adds only nodes that are updated, or almost:
    /// it never reopens.
    pub(super) fn add(&mut self, step: &PolicyStep, is_done: bool) -> Added {
        let (mut nodes, is_empty) = match &step.nodes {
            StepNodes::Selected(selector) => {
                // A node that counts and is not desired is lost after its update.
                let counts = |node: &StepNode<'_>| node.standing == NodeStanding::Counted;
                let selects = |node: &StepNode<'_>| {
                    (node.is_desired || counts(node))
                        && selector.selects(&node.node.name, &node.node.labels)
                };
                let selected: Vec<usize> =
                    (0..self.nodes.len()).filter(|at| selects(&self.nodes[*at])).collect();
                let is_empty = selected.is_empty() && self.desired > 0;
                (selected, is_empty)
            }
            StepNodes::Count(count) => {
                let wanted = count.scaled(self.desired).clamp(1, self.desired.max(1));
                (self.chosen(wanted, step.spread.as_deref()), false)
            }
        };
        nodes.retain(|at| !self.is_member[*at]);
        if is_done {
            nodes.retain(|at| !matches!(self.nodes[*at].update, NodeUpdate::Outdated { .. }));
        }
        for at in &nodes {
            self.is_member[*at] = true;
        }
        Added { nodes, is_empty }
    }

    /// The nodes that make the members `wanted` in all. A member that is skipped proves nothing:
    /// another node takes its place.
    fn chosen(&self, wanted: u32, spread: Option<&str>) -> Vec<usize> {
        let present = self.members().filter(|node| node.standing != NodeStanding::Skipped).count();
        let more = usize::try_from(wanted).unwrap_or(usize::MAX).saturating_sub(present);
        let mut others: Vec<usize> = (0..self.nodes.len())
            .filter(|at| self.nodes[*at].is_desired && !self.is_member[*at])
            .collect();
        others.sort_by_cached_key(|at| preference(&self.nodes[*at]));
        match spread {
            None => {
                others.truncate(more);
                others
            }
            Some(key) => self.spread(others, more, key),
        }
    }

    /// Deals `more` nodes over the values of a label, so that the members are spread evenly. Nodes
    /// without the label are a group of their own. Nodes that have begun, and those with an
    /// intermediate version, come first, wherever they are.
    fn spread(&self, others: Vec<usize>, more: usize, key: &str) -> Vec<usize> {
        let value = |at: usize| self.nodes[at].node.labels.get(key);
        let mut groups: BTreeMap<Option<&str>, (usize, Vec<usize>)> = BTreeMap::new();
        for at in (0..self.nodes.len()).filter(|at| self.is_member[*at]) {
            groups.entry(value(at)).or_default().0 += 1;
        }
        let is_first = |at: &usize| {
            let has_begun = match self.nodes[*at].update {
                NodeUpdate::Updated { .. } | NodeUpdate::InProgress => true,
                NodeUpdate::Outdated { is_intermediate } => is_intermediate,
            };
            (has_begun || self.nodes[*at].shared.is_open)
                && self.nodes[*at].standing == NodeStanding::Ready
        };
        let (mut chosen, others): (Vec<usize>, Vec<usize>) = others.into_iter().partition(is_first);
        chosen.truncate(more);
        for at in &chosen {
            groups.entry(value(*at)).or_default().0 += 1;
        }
        // The best one is taken from the end.
        for at in others.into_iter().rev() {
            groups.entry(value(at)).or_default().1.push(at);
        }
        while chosen.len() < more {
            let open = groups.iter_mut().filter(|(_, (_, others))| !others.is_empty());
            let is_unready = |others: &[usize]| {
                others.last().is_some_and(|at| self.nodes[*at].standing != NodeStanding::Ready)
            };
            // Nodes that are not Ready come last, wherever they are. Values before nodes without
            // one; equal ones by name.
            let least = open.min_by_key(|(value, (count, others))| {
                (is_unready(others), *count, value.is_none())
            });
            let Some((_, (count, others))) = least else { break };
            *count += 1;
            chosen.extend(others.pop());
        }
        chosen
    }

    /// Number of members, and of those that are updated.
    pub(super) fn counts(&self) -> (u32, u32) {
        let is_updated = |node: &&StepNode<'_>| matches!(node.update, NodeUpdate::Updated { .. });
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        (number(self.members().count()), number(self.members().filter(is_updated).count()))
    }

    /// Whether they would be complete without those that lack images.
    pub(super) fn only_lack_images(&self) -> bool {
        only_lack_images(|| self.members())
    }

    /// Whether all members that are not skipped are updated, and there is one. Without a desired node
    /// there is nothing to update, unless outdated nodes may come back: most DaemonSets do not tolerate
    /// the taint of one that is not Ready.
    pub(super) fn is_complete(&self) -> bool {
        let mut counted =
            self.members().filter(|node| node.standing != NodeStanding::Skipped).peekable();
        let may_come_back = |node: &StepNode<'_>| {
            node.standing == NodeStanding::Skipped
                && matches!(node.update, NodeUpdate::Outdated { .. })
        };
        let is_empty = self.desired == 0 && !self.nodes.iter().any(may_come_back);
        (counted.peek().is_some() || is_empty)
            && counted.all(|node| matches!(node.update, NodeUpdate::Updated { .. }))
    }

    /// The time since which all updated members have stayed up; none if that of one is unknown.
    pub(super) fn up_since(&self) -> Option<Timestamp> {
        latest(self.members())
    }

    fn members(&self) -> impl Iterator<Item = &StepNode<'a>> {
        self.nodes.iter().zip(&self.is_member).filter_map(|(node, is)| is.then_some(node))
    }

    /// Whether no Ready node is outdated or in progress: there is nothing left to replace.
    pub(super) fn is_last_step_complete(&self) -> bool {
        let is_ready = |node: &&StepNode<'_>| node.standing == NodeStanding::Ready;
        !self.nodes.iter().filter(is_ready).any(is_left)
    }

    /// The implied last step: all other nodes. It is done when no node that counts is outdated or in
    /// progress.
    pub(super) fn last_step(&self) -> StepProgress<'static> {
        let counts = |node: &&StepNode<'_>| node.standing != NodeStanding::Skipped;
        let is_done = !self.nodes.iter().filter(counts).any(is_left);
        let updated = self
            .nodes
            .iter()
            .filter(|node| node.is_desired && matches!(node.update, NodeUpdate::Updated { .. }));
        StepProgress {
            policy: None,
            nodes: self.desired,
            updated: u32::try_from(updated.count()).unwrap_or(u32::MAX),
            is_empty: false,
            progress: if is_done { Progress::done() } else { Progress::Running },
        }
    }
}

/// Whether a node is outdated or in progress.
fn is_left(node: &StepNode<'_>) -> bool {
    match node.update {
        NodeUpdate::Updated { .. } => false,
        NodeUpdate::InProgress => node.is_desired,
        NodeUpdate::Outdated { .. } => true,
    }
}

/// Whether all of these nodes that are not skipped are updated, apart from some that lack images:
/// nothing has begun there.
pub(super) fn only_lack_images<'s, 'a: 's, I: Iterator<Item = &'s StepNode<'a>>>(
    nodes: impl Fn() -> I,
) -> bool {
    let counted = || nodes().filter(|node| node.standing != NodeStanding::Skipped);
    let is_updated = |node: &StepNode<'_>| matches!(node.update, NodeUpdate::Updated { .. });
    counted().any(|node| node.lacks_images)
        && counted().all(|node| node.lacks_images || is_updated(node))
}

/// The latest of the times since which updated nodes have stayed up; none if one is unknown.
pub(super) fn latest<'s, 'a: 's>(
    nodes: impl Iterator<Item = &'s StepNode<'a>>,
) -> Option<Timestamp> {
    let mut latest = Timestamp::MIN;
    for node in nodes {
        if let NodeUpdate::Updated { since } = node.update {
            latest = latest.max(since?.into());
        }
    }
    Some(latest)
}

/// The order in which nodes are chosen for a count: those that run the target already, in the order
/// in which they got it; then Ready nodes, those that another DaemonSet of a shared budget has
/// begun first, then those with an intermediate version, those that matter to most of these
/// DaemonSets, and those with the fewest restarts; then by a hash of the name, so that nodes that join
/// or leave change little. A node that is not Ready proves nothing: another one takes its place.
fn preference(node: &StepNode<'_>) -> impl Ord + use<> {
    let is_ready = node.standing == NodeStanding::Ready;
    let (rank, since) = match node.update {
        NodeUpdate::Updated { since } => (0, since),
        NodeUpdate::InProgress if is_ready => (1, None),
        NodeUpdate::Outdated { .. } if is_ready && node.shared.is_open => (2, None),
        NodeUpdate::Outdated { .. } if is_ready => (3, None),
        NodeUpdate::InProgress => (4, None),
        NodeUpdate::Outdated { .. } => (5, None),
    };
    let is_intermediate = node.update == NodeUpdate::Outdated { is_intermediate: true };
    // The order of updated nodes must not depend on what changes later.
    let (siblings, restarts) = match rank {
        2 | 3 => (node.shared.siblings, node.restarts.saturating_add(node.shared.restarts)),
        _others => (0, 0),
    };
    let hash = Sha256::digest(node.node.name.as_str());
    (rank, since, Reverse(is_intermediate), Reverse(siblings), restarts, <[u8; 32]>::from(hash))
}
