//! Applies several DaemonSets one after the other: whether the next one is applied, and the outcome
//! of the whole run.

use super::session::Session;
use crate::error::Error;
use crate::exit::Exit;
use daemonset::model::DaemonSetKey;

/// The work on one DaemonSet.
pub(super) trait InSequence {
    /// The DaemonSet.
    fn key(&self) -> &DaemonSetKey;

    /// Does the work.
    ///
    /// # Errors
    /// The work failed.
    fn run(&self, session: &mut Session) -> impl Future<Output = Result<Exit, Error>> + Send;

    /// Sets how the work ended.
    fn set_exit(&self, exit: Exit, session: &mut Session) {
        session.set_exit(self.key(), exit);
    }

    /// Reports why the work is not done, if it depends on a DaemonSet that has stopped the run.
    fn report_left_out(&self, _session: &Session) {}
}

/// Applies each DaemonSet. The first rollout that fails stops the rest, unless `keep_going` is set.
/// One that cannot start, because of objects in its own namespace, and one that waits, do not stop
/// others; those that come after it find out by themselves.
///
/// # Errors
/// The error of the apply that stops the rest.
pub(super) async fn take(
    all: Vec<impl InSequence + Send + Sync>,
    keep_going: bool,
    session: &mut Session,
) -> Result<Exit, Error> {
    let mut sequence = Sequence::new(keep_going);
    let mut left = all.iter();
    for one in left.by_ref() {
        if session.is_interrupted() {
            return Ok(sequence.cut_short());
        }
        let done = one.run(session).await;
        one.set_exit(done.as_ref().map_or_else(Error::exit, |exit| *exit), session);
        if !sequence.resumes(done, |error| session.report(error))? {
            break;
        }
    }
    left.for_each(|one| one.report_left_out(session));
    Ok(sequence.exit())
}

/// The state of a sequence.
pub(super) struct Sequence {
    keep_going: bool,
    exit: Exit,
}

impl Sequence {
    /// The state before the first DaemonSet.
    pub(super) fn new(keep_going: bool) -> Self {
        Self { keep_going, exit: Exit::Done }
    }

    /// Records the outcome of an apply; returns whether the next one is applied. The first rollout
    /// that fails stops the rest, unless `--keep-going` is given; an interrupt stops all of them.
    ///
    /// # Errors
    /// The error of this apply, if it stops the rest; otherwise it is reported, and counts.
    pub(super) fn resumes(
        &mut self,
        done: Result<Exit, Error>,
        report: impl FnOnce(&Error) -> Exit,
    ) -> Result<bool, Error> {
        let (exit, alone) = match done {
            Ok(exit) => (exit, is_about_one(exit)),
            Err(error) => {
                let alone = error.is_about_one();
                if !alone && !may_resume(error.exit(), self.keep_going) {
                    return Err(error);
                }
                (report(&error), alone)
            }
        };
        self.exit = self.exit.or_more_severe(exit);
        Ok(alone || may_resume(exit, self.keep_going))
    }

    /// The outcome if an interrupt came while an apply ended otherwise; the rest is not applied.
    fn cut_short(&self) -> Exit {
        self.exit.or_more_severe(Exit::Interrupted)
    }

    /// The most severe outcome.
    pub(super) fn exit(&self) -> Exit {
        self.exit
    }
}

/// Whether this outcome is limited to one DaemonSet: it is no failure, or any user who may write in
/// its namespace can cause it.
fn is_about_one(exit: Exit) -> bool {
    matches!(
        exit,
        Exit::Stale | Exit::Blocked | Exit::Locked | Exit::Waiting | Exit::ApprovalNeeded
    )
}

fn may_resume(exit: Exit, keep_going: bool) -> bool {
    match exit {
        Exit::Done | Exit::Waiting | Exit::ApprovalNeeded => true,
        Exit::Interrupted | Exit::Terminated => false,
        Exit::Changes
        | Exit::Drift
        | Exit::Paused
        | Exit::Stale
        | Exit::Blocked
        | Exit::Locked
        | Exit::Failed
        | Exit::Usage => keep_going,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_one_is_applied_after_success_or_with_keep_going() {
        for (exit, alone, keep_going) in [
            (Exit::Done, true, true),
            (Exit::Waiting, true, true),
            (Exit::ApprovalNeeded, true, true),
            (Exit::Paused, false, true),
            (Exit::Locked, false, true),
            (Exit::Failed, false, true),
            (Exit::Interrupted, false, false),
            (Exit::Terminated, false, false),
        ] {
            assert_eq!([may_resume(exit, false), may_resume(exit, true)], [alone, keep_going]);
        }
    }

    #[test]
    fn an_error_stops_the_rest_or_is_reported_and_counts() {
        let mut sequence = Sequence::new(true);
        assert!(sequence.resumes(Ok(Exit::Paused), Error::exit).unwrap());
        assert!(sequence.resumes(Err(Error::Declined), Error::exit).unwrap());
        assert!(sequence.resumes(Ok(Exit::Done), Error::exit).unwrap());
        assert_eq!(sequence.exit(), Exit::Failed);
        assert!(sequence.resumes(Err(Error::Interrupted), Error::exit).is_err());
        assert!(Sequence::new(false).resumes(Err(Error::Declined), Error::exit).is_err());
    }

    /// Schedules count 7 as a success.
    #[test]
    fn a_lock_does_not_hide_a_rollout_that_has_failed() {
        for exits in [[Exit::Locked, Exit::Paused], [Exit::Paused, Exit::Locked]] {
            let mut sequence = Sequence::new(true);
            for exit in exits {
                assert!(sequence.resumes(Ok(exit), Error::exit).unwrap());
            }
            assert_eq!(sequence.exit(), Exit::Paused);
        }
    }

    #[test]
    fn one_that_cannot_start_or_waits_does_not_stop_others() {
        for (done, resumes, exit) in [
            (Err(Error::Blocked(Vec::new())), true, Exit::Blocked),
            (Err(Error::Stale(Vec::new())), true, Exit::Stale),
            (Ok(Exit::Locked), true, Exit::Locked),
            (Ok(Exit::Waiting), true, Exit::Waiting),
            (Ok(Exit::ApprovalNeeded), true, Exit::ApprovalNeeded),
            (Ok(Exit::Paused), false, Exit::Paused),
        ] {
            let mut sequence = Sequence::new(false);
            assert_eq!(sequence.resumes(done, Error::exit).unwrap(), resumes, "{exit:?}");
            assert_eq!(sequence.exit(), exit);
        }
    }
}
