//! Runs one command of `ds-apply` on the cluster of a session.

use std::sync::Arc;

use super::asking::CheckSource;
use super::cli::Command;
use super::command::default_namespace;
use super::session::Session;
use super::{can_i, command, release, roll, step_approval, undo, unlock};
use crate::error::Error;
use crate::exit::Exit;
use crate::flags::{GlobalFlags, name};

/// Runs one command on the session's cluster.
pub(super) async fn in_session(
    command: Command,
    global: &GlobalFlags,
    session: &mut Session,
) -> Result<Exit, Error> {
    session.logs = command.common().is_some_and(|common| common.logs);
    if let (false, Some(common)) = (session.shell.rehearsal, command.common()) {
        let client = common.checks.client(command.has_policies_of_folder(), &session.shell)?;
        match session.checks {
            CheckSource::Endpoints(_) | CheckSource::Rehearsed(_) => {
                session.checks = CheckSource::Endpoints(Arc::new(client));
            }
            CheckSource::Given(_) => {}
        }
    }
    let names = command.names().unwrap_or_default();
    let default = default_namespace(global, &session.cluster);
    let keys = &name::keys(names, global.namespace.as_ref(), &default)?;
    match command {
        Command::Apply(args) => Box::pin(command::run(&args, global, session)).await,
        Command::Approve(args) => step_approval::run(&args, &keys[0], global, session).await,
        Command::Roll(args) => Box::pin(roll::run(&args, keys, session)).await,
        Command::Step(args) => roll::step(&args, keys, session).await,
        Command::Undo(args) => Box::pin(undo::run(&args, keys, session)).await,
        Command::Release(args) => release::run(&args, keys, session).await,
        Command::Unlock(args) => unlock::run(&args, keys, session).await,
        Command::CanI(args) => can_i::run(&args, keys, &default, session).await,
        Command::Completions(_) | Command::Man(_) => Ok(Exit::Done),
    }
}
