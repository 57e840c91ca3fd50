//! Runs one command of `ds-apply` on the cluster of a session.

use super::cli::Command;
use super::session::Session;
use super::{can_i, command, release, roll, undo, unlock};
use crate::error::Error;
use crate::exit::Exit;
use crate::flags::GlobalFlags;

/// Runs one command on the session's cluster.
pub(super) async fn in_session(
    command: Command,
    global: &GlobalFlags,
    session: &mut Session,
) -> Result<Exit, Error> {
    session.logs = command.common().is_some_and(|common| common.logs);
    match command {
        Command::Apply(args) => command::run(&args, global, session).await,
        Command::Roll(args) => roll::run(&args, session).await,
        Command::Step(args) => roll::step(&args, session).await,
        Command::Undo(args) => undo::run(&args, session).await,
        Command::Release(args) => release::run(&args, session).await,
        Command::Unlock(args) => unlock::run(&args, session).await,
        Command::CanI(args) => can_i::run(&args, global, session).await,
        Command::Completions(_) | Command::Man(_) => Ok(Exit::Done),
    }
}
