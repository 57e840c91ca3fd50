//! `ds-apply`: its commands.

mod approve;
mod can_i;
mod command;
mod daemon_set_apply;
mod embedded_run;
mod evidence;
mod flags;
mod identity;
mod in_sequence;
mod permitted;
mod progress;
mod rehearse;
mod release;
mod removal;
mod roll;
mod saved;
mod session;
mod undo;
mod unlock;

use std::slice;

use clap::{CommandFactory, Parser, Subcommand};
use tokio::sync::mpsc;

use super::{completions, man};
use crate::error::Error;
use crate::exit::Exit;
use crate::flags::GlobalFlags;
use crate::shell::Shell;
use daemonset::model::DaemonSetKey;
pub use embedded_run::{Ended, ds_apply_at};
use executor::Interrupt;
use flags::CommonFlags;
use progress::Format;
use session::Session;

/// Apply DaemonSet changes from git, node by node, within the budget
///
/// Without a command, `ds-apply` means `ds-apply apply`. Run it again to resume.
#[derive(Parser, Debug)]
#[command(name = "ds-apply", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct DsApply {
    #[command(flatten)]
    apply: command::Args,

    #[command(flatten)]
    global: GlobalFlags,

    #[command(subcommand)]
    command: Option<Command>,
}

impl DsApply {
    /// The command, which is `apply` unless another one is named.
    pub(crate) fn into_command(self) -> (GlobalFlags, Command) {
        let Self { apply, global, command } = self;
        (global, command.unwrap_or_else(|| Command::Apply(Box::new(apply))))
    }
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 4 paused or aborted (run again, or roll \
                          back), 5 stale (plan again), 6 blocked by a guard, 7 locked by another \
                          run, \
                          64 usage, 130 interrupted, 143 terminated";

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Apply(Box<command::Args>),
    Roll(Box<roll::Args>),
    Step(Box<roll::StepArgs>),
    Undo(Box<undo::Args>),
    Release(Box<release::Args>),
    Unlock(unlock::Args),
    CanI(can_i::Args),
    Completions(completions::Args),
    Man(man::Args),
}

impl Command {
    /// The common flags of the commands that change the cluster.
    fn common(&self) -> Option<&CommonFlags> {
        match self {
            Self::Apply(args) => Some(&args.common),
            Self::Roll(args) => Some(&args.named.common),
            Self::Step(args) => Some(&args.common),
            Self::Undo(args) => Some(&args.named.common),
            Self::Release(args) => Some(&args.named.common),
            Self::Unlock(_) | Self::CanI(_) | Self::Completions(_) | Self::Man(_) => None,
        }
    }

    /// The output format of the command.
    fn output(&self) -> Format {
        self.common().map_or(Format::Text, |common| common.output)
    }

    /// The same command with `--yes`.
    fn approved(mut self) -> Self {
        match &mut self {
            Self::Apply(args) => args.common.yes = true,
            Self::Roll(args) => args.named.common.yes = true,
            Self::Step(args) => args.common.yes = true,
            Self::Undo(args) => args.named.common.yes = true,
            Self::Release(args) => args.named.common.yes = true,
            Self::Unlock(_) | Self::CanI(_) | Self::Completions(_) | Self::Man(_) => {}
        }
        self
    }

    /// The DaemonSets named on the command line; `None` when they come from a source.
    fn names(&self) -> Option<&[DaemonSetKey]> {
        match self {
            Self::Roll(args) => Some(&args.named.names),
            Self::Step(args) => Some(slice::from_ref(&args.name)),
            Self::Undo(args) => Some(&args.named.names),
            Self::Release(args) => Some(&args.named.names),
            Self::Apply(_)
            | Self::Unlock(_)
            | Self::CanI(_)
            | Self::Completions(_)
            | Self::Man(_) => None,
        }
    }
}

/// Runs one command. The interrupts are for commands that can stop in the middle.
pub(crate) async fn run(
    command: Command,
    global: GlobalFlags,
    shell: Shell,
    interrupts: mpsc::Receiver<Interrupt>,
) -> Result<Exit, Error> {
    let command = match command {
        Command::Completions(args) => {
            return completions::run(&args, DsApply::command(), &shell);
        }
        Command::Man(args) => return man::run(&args, DsApply::command(), &shell),
        command => command,
    };
    if command.common().is_some_and(|common| common.rehearsal.rehearse) {
        return rehearse::run(command, global, shell, interrupts).await;
    }
    let output = command.output();
    let mut session = Session::open(&global, &shell, interrupts).await?.telling(output);
    let done = in_session(command, &global, &mut session).await;
    session.reported(done, false, shell.printer)
}

/// Runs one command on the session's cluster.
async fn in_session(
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
