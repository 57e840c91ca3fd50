//! The commands of both programs: one file per command, in the order read, decide, show. Those of
//! `ds-apply` are in [`apply`].

pub(crate) mod apply;
mod checks;
mod completions;
mod diff;
mod drift;
mod explain;
mod history;
mod man;
mod plan;
mod schema;
mod show;
mod snapshot;
mod status;

use clap::{Parser, Subcommand};

use crate::command_line;
use crate::error::Error;
use crate::exit::Exit;
use crate::flags::GlobalFlags;
use crate::shell::Shell;

/// Plan Kubernetes DaemonSet changes from git: which node gets what, when, and why
///
/// Without a command, `ds-plan` means `ds-plan plan`. It never writes to the cluster.
#[derive(Parser, Debug)]
#[command(name = "ds-plan", version = crate::VERSION, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct DsPlan {
    #[command(flatten)]
    plan: plan::Args,

    #[command(flatten)]
    global: GlobalFlags,

    #[command(subcommand)]
    command: Option<Command>,
}

impl DsPlan {
    /// The command, which is `plan` unless another one is named.
    pub(crate) fn into_command(self) -> (GlobalFlags, Command) {
        let Self { plan, global, command } = self;
        (global, command.unwrap_or_else(|| Command::Plan(Box::new(plan))))
    }
}

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 changes (--detailed-exitcode), \
                          3 drift (drift), 4 a check fails and 8 one is unknown (checks), \
                          6 blocked by a guard (--fail-on-guards), 64 usage, 130 interrupted";

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    Plan(Box<plan::Args>),
    Diff(Box<diff::Args>),
    Drift(Box<drift::Args>),
    Checks(Box<checks::Args>),
    Explain(explain::Args),
    Status(status::Args),
    History(history::Args),
    Show(show::Args),
    Snapshot(snapshot::Args),
    Schema(schema::Args),
    Completions(completions::Args),
    Man(man::Args),
}

/// Runs one command of `ds-plan`.
pub(crate) async fn dispatch(
    command: &Command,
    global: &GlobalFlags,
    shell: &Shell,
) -> Result<Exit, Error> {
    match command {
        Command::Plan(args) => plan::run(args, global, shell).await,
        Command::Diff(args) => diff::run(args, global, shell).await,
        Command::Drift(args) => drift::run(args, global, shell).await,
        Command::Checks(args) => checks::run(args, global, shell).await,
        Command::Explain(args) => explain::run(args, global, shell).await,
        Command::Status(args) => status::run(args, global, shell).await,
        Command::History(args) => history::run(args, global, shell).await,
        Command::Show(args) => show::run(args, global, shell),
        Command::Snapshot(args) => snapshot::run(args, global, shell).await,
        Command::Schema(args) => schema::run(args, shell),
        Command::Completions(args) => completions::run(args, "ds-plan", shell),
        Command::Man(args) => man::run(args, command_line::definition::<DsPlan>(), shell),
    }
}
