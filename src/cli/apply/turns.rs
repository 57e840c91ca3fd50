//! Several DaemonSets, one after the other: whether the next one has its turn, and how the whole
//! came out.

use super::session::Session;
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::printer::Printer;
use crate::cli::report;

/// Something to be done about one DaemonSet.
pub(super) trait InTurn {
    /// Does it.
    ///
    /// # Errors
    /// It cannot be done.
    fn carry_out(&self, session: &mut Session) -> impl Future<Output = Result<Exit, Error>> + Send;

    /// Its place among the others, as a policy gives it (`order`).
    fn order(&self) -> i32 {
        0
    }
}

/// Gives each one its turn. The first rollout that fails stops the rest, unless told otherwise; one
/// that cannot even begin, for what stands in its own namespace, stops only what a policy puts after
/// it.
///
/// # Errors
/// That of the turn that stops the rest.
pub(super) async fn take(
    all: Vec<impl InTurn + Send + Sync>,
    keep_going: bool,
    session: &mut Session,
) -> Result<Exit, Error> {
    take_but(all, None, keep_going, session).await
}

/// The same where some have been refused already, the first of them of this order.
///
/// # Errors
/// That of the turn that stops the rest.
pub(super) async fn take_but(
    all: Vec<impl InTurn + Send + Sync>,
    refused: Option<i32>,
    keep_going: bool,
    session: &mut Session,
) -> Result<Exit, Error> {
    let mut turns = Turns::new(keep_going, session.shell.printer);
    turns.refused = refused;
    for one in all {
        if session.is_interrupted() {
            return Ok(turns.cut_short());
        }
        if !turns.has_its_turn(one.order()) {
            break;
        }
        if !turns.goes_on(one.carry_out(session).await, one.order())? {
            break;
        }
    }
    Ok(turns.exit())
}

/// The turns so far.
struct Turns {
    keep_going: bool,
    printer: Printer,
    exit: Exit,
    /// The order of the first one that could not begin.
    refused: Option<i32>,
}

impl Turns {
    /// Before the first one.
    fn new(keep_going: bool, printer: Printer) -> Self {
        Self { keep_going, printer, exit: Exit::Done, refused: None }
    }

    /// Whether nothing that a policy puts before it was refused.
    fn has_its_turn(&self, order: i32) -> bool {
        self.keep_going || self.refused.is_none_or(|refused| order <= refused)
    }

    /// Takes in how one of this order came out; whether the next one has its turn. The first rollout
    /// that fails stops the rest, unless told otherwise; an interrupt is meant for all of them.
    ///
    /// # Errors
    /// That of this turn, if it stops the rest; else it is told, and counts.
    fn goes_on(&mut self, done: Result<Exit, Error>, order: i32) -> Result<bool, Error> {
        let (exit, alone) = match done {
            Ok(exit) => (exit, is_about_one(exit)),
            Err(error) => {
                let alone = error.is_about_one();
                if !alone && !may_go_on(error.exit(), self.keep_going) {
                    return Err(error);
                }
                (report(&error, self.printer), alone)
            }
        };
        self.exit = self.exit.or_graver(exit);
        if alone {
            self.refused.get_or_insert(order);
        }
        Ok(alone || may_go_on(exit, self.keep_going))
    }

    /// An interrupt came while a turn ended in another way; those that are left have none.
    fn cut_short(&self) -> Exit {
        self.exit.or_graver(Exit::Interrupted)
    }

    /// The gravest outcome.
    fn exit(&self) -> Exit {
        self.exit
    }
}

/// Whether this end of a turn says nothing of the others: whoever may write in a namespace brings it
/// about there.
fn is_about_one(exit: Exit) -> bool {
    matches!(exit, Exit::Stale | Exit::Refused | Exit::Locked)
}

fn may_go_on(exit: Exit, keep_going: bool) -> bool {
    match exit {
        Exit::Done => true,
        Exit::Interrupted | Exit::Terminated => false,
        Exit::Changes
        | Exit::Drift
        | Exit::Held
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
    fn whether_the_next_one_has_its_turn() {
        for (exit, alone, keep_going) in [
            (Exit::Done, true, true),
            (Exit::Held, false, true),
            (Exit::Locked, false, true),
            (Exit::Failed, false, true),
            (Exit::Interrupted, false, false),
            (Exit::Terminated, false, false),
        ] {
            assert_eq!([may_go_on(exit, false), may_go_on(exit, true)], [alone, keep_going]);
        }
    }

    #[test]
    fn an_error_stops_the_rest_or_is_told_and_counts() {
        let printer = Printer::new(anstream::ColorChoice::Never);
        let mut turns = Turns::new(true, printer);
        assert!(turns.goes_on(Ok(Exit::Held), 0).unwrap());
        assert!(turns.goes_on(Err(Error::Declined), 0).unwrap());
        assert!(turns.goes_on(Ok(Exit::Done), 0).unwrap());
        assert_eq!(turns.exit(), Exit::Failed);
        assert!(turns.goes_on(Err(Error::Interrupted), 0).is_err());
        assert!(Turns::new(false, printer).goes_on(Err(Error::Declined), 0).is_err());
    }

    #[test]
    fn what_cannot_begin_stops_only_what_a_policy_puts_after_it() {
        let printer = Printer::new(anstream::ColorChoice::Never);
        let refused = || Err(Error::Refused(Vec::new()));
        for (done, goes_on, exit) in [
            (refused(), true, Exit::Refused),
            (Err(Error::Stale(Vec::new())), true, Exit::Stale),
            (Ok(Exit::Locked), true, Exit::Locked),
            (Ok(Exit::Held), false, Exit::Held),
        ] {
            let mut turns = Turns::new(false, printer);
            assert_eq!(turns.goes_on(done, 3).unwrap(), goes_on, "{exit:?}");
            assert_eq!(turns.exit(), exit);
            assert!(turns.has_its_turn(3) && turns.has_its_turn(-1));
            assert_eq!(turns.has_its_turn(4), !goes_on, "{exit:?}");
        }
        let mut turns = Turns::new(true, printer);
        assert!(turns.goes_on(refused(), 3).unwrap() && turns.has_its_turn(4));
    }
}
