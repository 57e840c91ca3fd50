//! Applies several DaemonSets one after the other: whether the next one is applied, and the outcome
//! of the whole run.

use super::session::Session;
use crate::error::{Error, report};
use crate::exit::Exit;
use crate::printer::Printer;

/// The work on one DaemonSet.
pub(super) trait InSequence {
    /// Does the work.
    ///
    /// # Errors
    /// The work failed.
    fn run(&self, session: &mut Session) -> impl Future<Output = Result<Exit, Error>> + Send;

    /// The `order` of its policy; lower ones are applied first.
    fn order(&self) -> i32 {
        0
    }
}

/// Applies each DaemonSet. The first rollout that fails stops the rest, unless `keep_going` is set.
/// One that cannot start, because of objects in its own namespace, stops only DaemonSets with a
/// higher `order`.
///
/// # Errors
/// The error of the apply that stops the rest.
pub(super) async fn take(
    all: Vec<impl InSequence + Send + Sync>,
    keep_going: bool,
    session: &mut Session,
) -> Result<Exit, Error> {
    take_but(all, None, keep_going, session).await
}

/// As [`take`], if guards block some DaemonSets already; `refused` is the lowest order of these.
///
/// # Errors
/// The error of the apply that stops the rest.
pub(super) async fn take_but(
    all: Vec<impl InSequence + Send + Sync>,
    refused: Option<i32>,
    keep_going: bool,
    session: &mut Session,
) -> Result<Exit, Error> {
    let mut sequence = Sequence::new(keep_going, session.shell.printer);
    sequence.refused = refused;
    for one in all {
        if session.is_interrupted() {
            return Ok(sequence.cut_short());
        }
        if !sequence.may_begin(one.order()) {
            break;
        }
        if !sequence.resumes(one.run(session).await, one.order())? {
            break;
        }
    }
    Ok(sequence.exit())
}

/// The state of a sequence.
struct Sequence {
    keep_going: bool,
    printer: Printer,
    exit: Exit,
    /// The order of the first DaemonSet that could not start.
    refused: Option<i32>,
}

impl Sequence {
    /// The state before the first DaemonSet.
    fn new(keep_going: bool, printer: Printer) -> Self {
        Self { keep_going, printer, exit: Exit::Done, refused: None }
    }

    /// Whether no DaemonSet with a lower order was refused.
    fn may_begin(&self, order: i32) -> bool {
        self.keep_going || self.refused.is_none_or(|refused| order <= refused)
    }

    /// Records the outcome of an apply with this order; returns whether the next one is applied.
    /// The first rollout that fails stops the rest, unless `--keep-going` is given; an interrupt
    /// stops all of them.
    ///
    /// # Errors
    /// The error of this apply, if it stops the rest; otherwise it is printed, and counts.
    fn resumes(&mut self, done: Result<Exit, Error>, order: i32) -> Result<bool, Error> {
        let (exit, alone) = match done {
            Ok(exit) => (exit, is_about_one(exit)),
            Err(error) => {
                let alone = error.is_about_one();
                if !alone && !may_resume(error.exit(), self.keep_going) {
                    return Err(error);
                }
                (report(&error, self.printer), alone)
            }
        };
        self.exit = self.exit.or_more_severe(exit);
        if alone {
            self.refused.get_or_insert(order);
        }
        Ok(alone || may_resume(exit, self.keep_going))
    }

    /// The outcome if an interrupt came while an apply ended otherwise; the rest is not applied.
    fn cut_short(&self) -> Exit {
        self.exit.or_more_severe(Exit::Interrupted)
    }

    /// The most severe outcome.
    fn exit(&self) -> Exit {
        self.exit
    }
}

/// Whether this outcome is limited to one DaemonSet: any user who may write in its namespace can
/// cause it.
fn is_about_one(exit: Exit) -> bool {
    matches!(exit, Exit::Stale | Exit::Refused | Exit::Locked)
}

fn may_resume(exit: Exit, keep_going: bool) -> bool {
    match exit {
        Exit::Done => true,
        Exit::Interrupted | Exit::Terminated => false,
        Exit::Changes
        | Exit::Drift
        | Exit::Paused
        | Exit::Stale
        | Exit::Refused
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
    fn an_error_stops_the_rest_or_is_printed_and_counts() {
        let printer = Printer::new(anstream::ColorChoice::Never);
        let mut sequence = Sequence::new(true, printer);
        assert!(sequence.resumes(Ok(Exit::Paused), 0).unwrap());
        assert!(sequence.resumes(Err(Error::Declined), 0).unwrap());
        assert!(sequence.resumes(Ok(Exit::Done), 0).unwrap());
        assert_eq!(sequence.exit(), Exit::Failed);
        assert!(sequence.resumes(Err(Error::Interrupted), 0).is_err());
        assert!(Sequence::new(false, printer).resumes(Err(Error::Declined), 0).is_err());
    }

    #[test]
    fn one_that_cannot_start_stops_only_higher_orders() {
        let printer = Printer::new(anstream::ColorChoice::Never);
        let refused = || Err(Error::Refused(Vec::new()));
        for (done, resumes, exit) in [
            (refused(), true, Exit::Refused),
            (Err(Error::Stale(Vec::new())), true, Exit::Stale),
            (Ok(Exit::Locked), true, Exit::Locked),
            (Ok(Exit::Paused), false, Exit::Paused),
        ] {
            let mut sequence = Sequence::new(false, printer);
            assert_eq!(sequence.resumes(done, 3).unwrap(), resumes, "{exit:?}");
            assert_eq!(sequence.exit(), exit);
            assert!(sequence.may_begin(3) && sequence.may_begin(-1));
            assert_eq!(sequence.may_begin(4), !resumes, "{exit:?}");
        }
        let mut sequence = Sequence::new(true, printer);
        assert!(sequence.resumes(refused(), 3).unwrap() && sequence.may_begin(4));
    }
}
