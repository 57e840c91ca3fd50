//! `sharedBudget`: on which nodes one of several DaemonSets may begin now, so that all of them
//! together disturb few nodes at once, and each node once.
//!
//! Each rollout says with every step what it has to do with each node ([`Share`]); whoever runs
//! several of them passes to each one the shares of the others ([`Siblings`]). [`Slots`] decides
//! from that alone; nothing is remembered, so a run that was killed finds its place again:
//!
//! - A node is *disturbed* while any selected DaemonSet should have a pod there and has no available
//!   one, whatever the cause.
//! - A node is *open* if one rollout has updated it and another one has not yet. It keeps its slot
//!   until all have.
//! - Disturbed and open nodes together take up the slots. Beyond them, no node begins.
//! - On one node, the DaemonSets follow in their order, each when the new pod of the one before it
//!   is available; and the first one begins only if the policy lets all of them begin.
//!
//! Not here: the budget of each DaemonSet and what its policy lets begin (`steps`), which apply as
//! well; and the order in which the nodes of one DaemonSet are chosen (`rollout/next_deletes`).

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::steps::{NodeRank, WaitKind, WaitsFor};
use daemonset::model::{DaemonSetKey, IntOrPercent, NodeName};

/// What one of the selected DaemonSets has to do with the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Share {
    /// The DaemonSet.
    pub daemon_set: DaemonSetKey,
    /// What this run does with it.
    pub course: ShareCourse,
    /// The nodes on which it should run a pod, or has one.
    pub nodes: BTreeMap<NodeName, NodeShare>,
}

/// What a run does with one of the selected DaemonSets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShareCourse {
    /// Nothing: its nodes only count. Also while it is rolled back.
    Counted,
    /// What it will replace is not known yet: it is about to begin, a check has still to answer, or it does
    /// not see the cluster now.
    Starting,
    /// It replaces pods.
    Rolling,
    /// Its policy lets no more nodes begin for now.
    Waiting(Vec<WaitsFor>),
    /// It was rolled out by this run.
    Done,
    /// It failed, or was stopped: the others begin no more nodes.
    Stopped,
}

/// What one DaemonSet has to do with one node.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the node")]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeShare {
    /// Whether it should have a pod there.
    pub is_desired: bool,
    /// Whether that counts as disturbed.
    pub is_disturbed: bool,
    /// Whether its pod is of the target.
    pub is_updated: bool,
    /// Whether its pod is outdated, and the node is Ready.
    pub is_outdated: bool,
    /// Whether it waits for its new pod there.
    pub is_in_flight: bool,
    /// Whether the policy lets it begin there now.
    pub may_begin: bool,
    /// Restarts of its pod.
    pub restarts: u32,
}

/// The other selected DaemonSets, as one of them sees them.
#[derive(Clone, Debug)]
pub struct Siblings {
    /// The one that sees them.
    pub daemon_set: DaemonSetKey,
    /// `sharedBudget` of the policy.
    pub budget: IntOrPercent,
    /// Number of DaemonSets that come before this one on each node.
    pub position: usize,
    /// The others, in their order.
    pub others: Vec<Share>,
}

/// Whether it is the turn of a DaemonSet on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It may begin there, if there is a slot.
    Now,
    /// Another one comes first there, or it will go along later.
    Later,
    /// Another one keeps it from beginning, and this run will not change that.
    MayNotBegin(WaitsFor),
}

impl ShareCourse {
    /// Whether the run rolls, or has rolled, its template out.
    fn takes_part(&self) -> bool {
        match self {
            Self::Starting | Self::Rolling | Self::Waiting(_) | Self::Done => true,
            Self::Counted | Self::Stopped => false,
        }
    }
}

impl Siblings {
    /// Number of rollouts that follow one another on a node, with the one that sees the others.
    pub(crate) fn rollouts(&self) -> u32 {
        let is_open = |share: &&Share| match share.course {
            ShareCourse::Starting | ShareCourse::Rolling | ShareCourse::Waiting(_) => true,
            ShareCourse::Counted | ShareCourse::Done | ShareCourse::Stopped => false,
        };
        1 + number(self.others.iter().filter(is_open).count())
    }

    /// The wait for one that was stopped, if any was: then no node begins. `step` is the step in progress.
    pub(crate) fn stopped(&self, step: &str) -> Option<WaitsFor> {
        let one = self.others.iter().find(|share| share.course == ShareCourse::Stopped)?;
        Some(stopped(one, step))
    }

    /// What a node is to the others: nodes that matter to all of them come first, so that a count of
    /// nodes selects the same ones for each.
    pub(crate) fn rank(&self, node: &NodeName) -> NodeRank {
        let mut rank = NodeRank::default();
        for share in self.others.iter().filter(|share| share.course.takes_part()) {
            let Some(here) = share.nodes.get(node) else { continue };
            rank.is_open |= here.is_updated;
            if here.is_desired {
                rank.siblings += 1;
                rank.restarts = rank.restarts.saturating_add(here.restarts);
            }
        }
        rank
    }
}

/// The slots of the shared budget, as one DaemonSet sees them.
#[derive(Clone)]
pub(crate) struct Slots<'s> {
    siblings: &'s Siblings,
    /// Nodes that are disturbed.
    disturbed: BTreeSet<NodeName>,
    /// Nodes that one rollout has updated, and another one has not yet.
    open: BTreeSet<NodeName>,
    /// The part of them whose slot is reserved.
    reserved: BTreeSet<NodeName>,
    /// Number of nodes that are disturbed or have a reserved slot.
    taken: u32,
    /// Maximum of that number.
    allowed: u32,
    /// Whether nothing could begin if all waited for each other.
    is_stuck: bool,
}

impl<'s> Slots<'s> {
    /// The slots, with what this DaemonSet has to do with the nodes itself.
    pub(crate) fn of(own: &Share, siblings: &'s Siblings) -> Self {
        let shares = Shares { own, others: &siblings.others };
        let desired = shares.names(|_, here| here.is_desired).len();
        let disturbed = shares.names(|_, here| here.is_disturbed);
        let open = shares.open();
        let reserved = shares.reserved(&open);
        let taken = number(reserved.union(&disturbed).count());
        let allowed = siblings.budget.scaled(number(desired)).max(1);
        let owned = |names: BTreeSet<&NodeName>| names.into_iter().cloned().collect();
        let (disturbed, reserved): (BTreeSet<_>, BTreeSet<_>) = (owned(disturbed), owned(reserved));
        let has_slot = |node: &NodeName| {
            taken < allowed || reserved.contains(node) || disturbed.contains(node)
        };
        Self {
            siblings,
            taken,
            allowed,
            is_stuck: shares.is_stuck(has_slot),
            open: owned(open),
            disturbed,
            reserved,
        }
    }

    /// Whether it is the turn of this DaemonSet on a node that its policy lets begin. `step` is its
    /// step in progress.
    pub(crate) fn turn(&self, node: &NodeName, step: &str) -> Turn {
        let is_open = self.is_open(node);
        let mut turn = Turn::Now;
        for (at, share) in self.siblings.others.iter().enumerate() {
            let here = share.nodes.get(node).copied().unwrap_or_default();
            let is_before = at < self.siblings.position;
            match &share.course {
                ShareCourse::Stopped => return Turn::MayNotBegin(stopped(share, step)),
                ShareCourse::Rolling | ShareCourse::Waiting(_) if here.is_in_flight => {
                    turn = Turn::Later;
                }
                ShareCourse::Waiting(waits_for) if here.is_outdated && !is_open => {
                    if let Some(wait) = first_wait(waits_for, share) {
                        return Turn::MayNotBegin(wait);
                    }
                }
                ShareCourse::Starting => turn = Turn::Later,
                ShareCourse::Rolling if self.comes_first(here, is_before, is_open) => {
                    turn = Turn::Later;
                }
                ShareCourse::Counted
                | ShareCourse::Rolling
                | ShareCourse::Waiting(_)
                | ShareCourse::Done => {}
            }
        }
        turn
    }

    /// Whether another rollout has to act on a node first, or cannot go along yet. What has begun is
    /// finished without it, and so is what could not begin otherwise.
    fn comes_first(&self, here: NodeShare, is_before: bool, is_open: bool) -> bool {
        let waits = match (is_before, here.may_begin) {
            (true, true) => true,
            (false, true) => false,
            (_, false) => !is_open && !self.is_stuck,
        };
        here.is_outdated && waits
    }

    /// Whether one rollout has updated a node, and another one has not yet.
    pub(crate) fn is_open(&self, node: &NodeName) -> bool {
        self.open.contains(node)
    }

    /// Whether a node was begun already, or is disturbed.
    pub(crate) fn has(&self, node: &NodeName) -> bool {
        self.disturbed.contains(node) || self.open.contains(node)
    }

    /// Takes a slot for a node that is going to be disturbed; returns whether it has one.
    pub(crate) fn take(&mut self, node: &NodeName) -> bool {
        if self.disturbed.contains(node) {
            return true;
        }
        // There may be more open nodes than slots: an earlier run had another budget.
        let has_slot = self.reserved.contains(node);
        let is_free =
            number(self.disturbed.len()) < self.allowed && (has_slot || self.taken < self.allowed);
        if is_free {
            self.taken += u32::from(!has_slot);
            self.disturbed.insert(node.clone());
        }
        is_free
    }

    /// Number of nodes that take up slots, and their maximum.
    pub(crate) fn numbers(&self) -> (u32, u32) {
        (self.taken, self.allowed)
    }

    /// Whether another rollout of this run will free a slot.
    pub(crate) fn others_are_in_flight(&self) -> bool {
        self.siblings.others.iter().any(|share| match share.course {
            ShareCourse::Rolling | ShareCourse::Waiting(_) => {
                share.nodes.values().any(|here| here.is_in_flight)
            }
            ShareCourse::Counted
            | ShareCourse::Starting
            | ShareCourse::Done
            | ShareCourse::Stopped => false,
        })
    }

    /// Whether another rollout of this run is about to begin, or waits for the answer to a check.
    pub(crate) fn others_start(&self) -> bool {
        self.siblings.others.iter().any(|share| share.course == ShareCourse::Starting)
    }
}

/// The shares of all selected DaemonSets.
struct Shares<'a> {
    own: &'a Share,
    others: &'a [Share],
}

impl<'a> Shares<'a> {
    fn all(&self) -> impl Iterator<Item = &'a Share> + use<'a> {
        self.others.iter().chain([self.own])
    }

    /// The nodes to which this applies for any DaemonSet.
    fn names(&self, applies: impl Fn(&Share, NodeShare) -> bool) -> BTreeSet<&'a NodeName> {
        let nodes = self.all().flat_map(|share| share.nodes.iter().map(move |it| (share, it)));
        let found = nodes.filter(|(share, (_, here))| applies(share, **here));
        found.map(|(_, (name, _))| name).collect()
    }

    fn open(&self) -> BTreeSet<&'a NodeName> {
        let takes_part = |share: &Share| share.course.takes_part();
        // Also one that should not run there any more (a taint), and stays: its node was disturbed.
        let updated = self.names(|share, here| takes_part(share) && here.is_updated);
        let outdated = self.names(|share, here| takes_part(share) && here.is_outdated);
        updated.intersection(&outdated).copied().collect()
    }

    /// Open nodes on which a rollout may begin now. One that nobody may finish would keep others from
    /// what has to come before that.
    fn reserved(&self, open: &BTreeSet<&NodeName>) -> BTreeSet<&'a NodeName> {
        let may_begin = self.names(|share, here| {
            share.course == ShareCourse::Rolling && here.is_outdated && here.may_begin
        });
        may_begin.into_iter().filter(|name| open.contains(name)).collect()
    }

    /// Whether nothing is in flight, nothing waits, and on no node that has a slot all rollouts may begin
    /// that have to: the steps, or the domains, of two DaemonSets select different nodes.
    fn is_stuck(&self, has_slot: impl Fn(&NodeName) -> bool) -> bool {
        let moves = self.all().any(|share| match share.course {
            ShareCourse::Starting | ShareCourse::Waiting(_) | ShareCourse::Stopped => true,
            ShareCourse::Rolling => share.nodes.values().any(|here| here.is_in_flight),
            ShareCourse::Counted | ShareCourse::Done => false,
        });
        let is_due = |share: &Share, here: NodeShare| {
            share.course == ShareCourse::Rolling && here.is_outdated
        };
        let due = self.names(is_due);
        let not_yet = self.names(|share, here| is_due(share, here) && !here.may_begin);
        !moves && due.difference(&not_yet).all(|node| !has_slot(node))
    }
}

/// The wait for a sibling that was stopped.
fn stopped(share: &Share, step: &str) -> WaitsFor {
    let daemon_set = Some(share.daemon_set.to_string());
    WaitsFor { daemon_set, ..WaitsFor::of(WaitKind::SharedBudget, step) }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// What a sibling waits for, with its name.
fn first_wait(waits_for: &[WaitsFor], share: &Share) -> Option<WaitsFor> {
    let wait = waits_for.first()?.clone();
    let name = share.daemon_set.to_string();
    Some(WaitsFor { daemon_set: Some(wait.daemon_set.unwrap_or(name)), ..wait })
}
