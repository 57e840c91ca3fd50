//! The apply of DaemonSets that share a budget: all are locked and prepared, then rolled out at the
//! same time, so that a node is disturbed once for all of them.

use super::daemon_set_apply::{DaemonSetApply, Prepared};
use super::in_sequence::{InSequence, Sequence};
use super::session::{Rollout, Session};
use super::sharing::Sharing;
use crate::error::Error;
use crate::exit::Exit;
use daemonset::model::DaemonSetKey;
use planner::plan::{DaemonSetPlan, SharedBudget};
use planner::rollout::Task;

/// One DaemonSet, or several that share a budget.
pub(super) enum Unit<'a> {
    /// One that shares no budget.
    Alone(DaemonSetApply<'a>),
    /// Those that share one.
    Together(Together<'a>),
}

/// The DaemonSets of the plan that share a budget.
pub(super) struct Together<'a> {
    /// Their applies; at least one.
    all: Vec<DaemonSetApply<'a>>,
    /// The budget.
    budget: &'a SharedBudget,
}

/// Puts those that share a budget together, at the place of the first one.
pub(super) fn units<'a>(all: impl Iterator<Item = DaemonSetApply<'a>>) -> Vec<Unit<'a>> {
    let mut units: Vec<Unit<'a>> = Vec::new();
    for one in all {
        let Some(budget) = shared_budget(&one) else {
            units.push(Unit::Alone(one));
            continue;
        };
        let of_same = units.iter_mut().find_map(|unit| match unit {
            Unit::Together(together) if together.budget == budget => Some(together),
            Unit::Together(_) | Unit::Alone(_) => None,
        });
        match of_same {
            Some(together) => together.all.push(one),
            None => units.push(Unit::Together(Together { all: vec![one], budget })),
        }
    }
    units
}

/// The budget that a DaemonSet of the plan shares.
fn shared_budget<'a>(one: &DaemonSetApply<'a>) -> Option<&'a SharedBudget> {
    let plans = one.approved.daemon_sets.iter();
    let mut of_it = plans.filter(|plan| plan.key() == one.desired.key);
    of_it.find_map(|plan| plan.shared_budget.as_ref())
}

impl InSequence for Unit<'_> {
    fn key(&self) -> &DaemonSetKey {
        match self {
            Self::Alone(one) => one.key(),
            Self::Together(together) => together.all[0].key(),
        }
    }

    async fn run(&self, session: &mut Session) -> Result<Exit, Error> {
        match self {
            Self::Alone(one) => one.run(session).await,
            Self::Together(together) => together.run(session).await,
        }
    }

    fn set_exit(&self, exit: Exit, session: &mut Session) {
        match self {
            Self::Alone(one) => one.set_exit(exit, session),
            Self::Together(together) => together.set_exit_of_rest(exit, session),
        }
    }

    fn report_left_out(&self, session: &Session) {
        match self {
            Self::Alone(one) => one.report_left_out(session),
            Self::Together(together) => {
                together.all.iter().for_each(|one| one.report_left_out(session));
            }
        }
    }
}

impl<'a> Together<'a> {
    async fn run(&self, session: &mut Session) -> Result<Exit, Error> {
        let mut sequence = Sequence::new(self.all[0].args.keep_going);
        let mut open = Vec::new();
        for one in &self.all {
            if let Some(unmet) = one.unmet_predecessor(session).await? {
                one.note_waiting(session).await?;
                one.does_not_begin(&unmet, session);
                end(one, Ok(Exit::Waiting), &mut sequence, session)?;
            } else if changes(one) {
                open.push(one);
            } else {
                // It has nothing to begin, so that the others need not be locked for it.
                let done = one.run(session).await;
                if !end(one, done, &mut sequence, session)? {
                    return Ok(sequence.exit());
                }
            }
        }
        let Some(first) = open.first() else { return Ok(sequence.exit()) };
        let rolled: Vec<&DaemonSetKey> = open.iter().map(|one| one.key()).collect();
        let spec = first.desired.policy_spec();
        let policy = (&*spec, first.desired.managed_by);
        let locked = Sharing::lock(self.budget, policy, &rolled, first.args, session).await;
        let locked = locked.map_err(|error| first.without_namespace(error))?;
        let Some(mut sharing) = locked else { return Ok(sequence.exit()) };
        let done = self.under(&open, &mut sharing, &mut sequence, session).await;
        sharing.release().await;
        done.map(|()| sequence.exit())
    }

    /// Prepares each, and rolls them out.
    async fn under(
        &self,
        open: &[&DaemonSetApply<'a>],
        sharing: &mut Sharing,
        sequence: &mut Sequence,
        session: &mut Session,
    ) -> Result<(), Error> {
        let mut tasks: Vec<(&DaemonSetApply<'a>, Task)> = Vec::new();
        for &one in open {
            // Those that are rolled out are locked.
            let Some(lock) = sharing.lock_of(one.key()).cloned() else { continue };
            let done = match one.prepared(&lock, session).await {
                Ok(Prepared::Rollout(task)) => {
                    tasks.push((one, *task));
                    continue;
                }
                Ok(Prepared::Ended(exit)) => Ok(exit),
                Err(error) => {
                    sharing.stop(one.key());
                    Err(error)
                }
            };
            if !end(one, done, sequence, session)? {
                return Ok(());
            }
        }
        let owners: Vec<_> = tasks.iter().map(|(one, _)| one.owner()).collect();
        let rollouts = tasks.iter().zip(&owners).filter_map(|((one, task), owner)| {
            let lock = sharing.lock_of(one.key())?.clone();
            Some(Rollout { owner, lock, task: task.clone() })
        });
        let output = self.all[0].args.output;
        let endings = session.run_rollouts(rollouts.collect(), Some(sharing), output).await?;
        let mut stops = Ok(());
        for ((one, _), ending) in tasks.iter().zip(endings) {
            let done = one.look_again(&ending, session).await;
            // All of them have ended, whatever becomes of one.
            if let Err(error) = end(one, done, sequence, session) {
                stops = stops.and(Err(error));
            }
        }
        stops
    }

    /// Sets the exit of those that came to no end of their own.
    fn set_exit_of_rest(&self, exit: Exit, session: &mut Session) {
        for one in &self.all {
            if session.state(one.key()).is_none() {
                session.set_exit(one.key(), exit);
            }
        }
    }
}

/// Whether the plan changes a DaemonSet.
fn changes(one: &DaemonSetApply<'_>) -> bool {
    let mut plans = one.approved.daemon_sets.iter();
    plans.any(|plan| plan.key() == *one.key() && DaemonSetPlan::has_changes(plan))
}

/// Sets how the apply of one of them ended; returns whether the others are applied.
fn end(
    one: &DaemonSetApply<'_>,
    done: Result<Exit, Error>,
    sequence: &mut Sequence,
    session: &mut Session,
) -> Result<bool, Error> {
    let exit = done.as_ref().map_or_else(Error::exit, |exit| *exit);
    session.set_exit(one.key(), exit);
    sequence.resumes(done, |error| session.report(error))
}
