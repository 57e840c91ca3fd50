//! `ds-apply`: its commands.

mod approve;
mod can_i;
pub(crate) mod cli;
mod command;
mod daemon_set_apply;
mod dispatch;
mod embedded_run;
mod evidence;
mod flags;
mod identity;
mod in_sequence;
mod permitted;
mod planning;
mod progress;
mod rehearse;
mod release;
mod removal;
mod roll;
mod saved;
mod session;
mod undo;
mod unlock;

use tokio::sync::mpsc;

use super::{completions, man};
use crate::command_line;
use crate::error::Error;
use crate::exit::Exit;
use crate::flags::GlobalFlags;
use crate::shell::Shell;
use cli::{Command, DsApply};
use dispatch::in_session;
pub use embedded_run::{Ended, ds_apply_at};
use executor::Interrupt;
use session::Session;

/// Runs one command. The interrupts are for commands that can stop in the middle.
pub(crate) async fn run(
    command: Command,
    global: GlobalFlags,
    shell: Shell,
    interrupts: mpsc::Receiver<Interrupt>,
) -> Result<Exit, Error> {
    let command = match command {
        Command::Completions(args) => {
            return completions::run(&args, "ds-apply", &shell);
        }
        Command::Man(args) => {
            return man::run(&args, command_line::definition::<DsApply>(), &shell);
        }
        command => command,
    };
    if command.common().is_some_and(|common| common.rehearsal.rehearse) {
        return rehearse::run(command, global, shell, interrupts).await;
    }
    let output = command.output();
    let mut session = Session::open(&global, &shell, interrupts).await?.with_output(output);
    let done = in_session(command, &global, &mut session).await;
    session.reported(done, false, shell.printer)
}
