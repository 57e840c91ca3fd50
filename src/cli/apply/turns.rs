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
}

/// Gives each one its turn. The first that is not done stops the rest, unless told otherwise.
///
/// # Errors
/// That of the turn that stops the rest.
pub(super) async fn take(
    all: Vec<impl InTurn + Send + Sync>,
    keep_going: bool,
    session: &mut Session,
) -> Result<Exit, Error> {
    let mut turns = Turns::new(keep_going, session.shell.printer);
    for one in all {
        if session.is_interrupted() {
            return Ok(turns.cut_short());
        }
        if !turns.goes_on(one.carry_out(session).await)? {
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
}

impl Turns {
    /// Before the first one.
    fn new(keep_going: bool, printer: Printer) -> Self {
        Self { keep_going, printer, exit: Exit::Done }
    }

    /// Takes in how one came out; whether the next one has its turn. The first that is not done
    /// stops the rest, unless told otherwise; an interrupt is meant for all of them.
    ///
    /// # Errors
    /// That of this turn, if it stops the rest; else it is told, and counts.
    fn goes_on(&mut self, done: Result<Exit, Error>) -> Result<bool, Error> {
        let exit = match done {
            Ok(exit) => exit,
            Err(error) if may_go_on(error.exit(), self.keep_going) => report(&error, self.printer),
            Err(error) => return Err(error),
        };
        self.exit = self.exit.or_graver(exit);
        Ok(may_go_on(exit, self.keep_going))
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
        assert!(turns.goes_on(Ok(Exit::Held)).unwrap());
        assert!(turns.goes_on(Err(Error::Declined)).unwrap());
        assert!(turns.goes_on(Ok(Exit::Done)).unwrap());
        assert_eq!(turns.exit(), Exit::Failed);
        assert!(turns.goes_on(Err(Error::Interrupted)).is_err());
        assert!(Turns::new(false, printer).goes_on(Err(Error::Declined)).is_err());
    }
}
