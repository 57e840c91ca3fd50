//! What the other DaemonSets of a shared budget mean for the next deletes: whose turn it is on a node, and
//! what a run does while only they keep nodes from beginning.

use super::{Next, Outdated, Replacement};
use crate::rollout::state::Stall;
use crate::shared::{Slots, Turn};

/// The shared budget of several DaemonSets.
#[derive(Clone, Copy)]
pub(in crate::rollout) struct Shared<'t> {
    /// Its slots.
    pub slots: &'t Slots<'t>,
    /// Whether the DaemonSets take turns on each node. In a rollback, only slots count.
    pub takes_turns: bool,
}

impl Replacement<'_, '_> {
    /// Whether it is the turn of this DaemonSet on a node of a shared budget.
    pub(super) fn turn(&self, outdated: &Outdated<'_, '_>) -> Turn {
        match self.shared {
            Some(Shared { slots, takes_turns: true }) => {
                slots.turn(outdated.name(), self.steps.current_step())
            }
            Some(Shared { slots: _, takes_turns: false }) | None => Turn::Now,
        }
    }

    /// The next action if only the other DaemonSets of a shared budget keep nodes from beginning.
    pub(super) fn waits_for_siblings(&self, outdated: u32) -> Option<Next> {
        let Shared { slots, takes_turns: _ } = self.shared?;
        let until_they_move = match (slots.others_are_in_flight(), slots.others_start()) {
            (true, _) => Some(Next::Wait { until: None }),
            (false, true) => Some(Next::NotKnown),
            (false, false) => None,
        };
        let (mut is_its_turn, mut is_later, mut wait) = (false, false, None);
        for outdated in self.available() {
            match self.turn(&outdated) {
                Turn::Now => is_its_turn = true,
                Turn::Later => is_later = true,
                Turn::MayNotBegin(waits_for) => wait = Some(waits_for),
            }
        }
        // Where it is its turn, the others wait for it: only a budget keeps it, perhaps without end.
        if is_later && (!is_its_turn || until_they_move.is_some()) {
            return until_they_move.or(Some(Next::Wait { until: None }));
        }
        let has_room = self.unavailable < self.allowed_in_step();
        let (taken, allowed) = slots.numbers();
        match wait {
            _ if is_its_turn && has_room && until_they_move.is_some() => until_they_move,
            _ if is_its_turn && has_room && taken >= allowed => {
                Some(Next::Stalled(Stall::SharedBudget { taken, allowed, outdated }))
            }
            Some(wait) if !is_its_turn => Some(Next::MayNotBegin(vec![wait])),
            Some(_) | None => None,
        }
    }
}
