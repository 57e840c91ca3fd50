//! `ds-apply`: its commands.

mod approve;
mod asking;
mod can_i;
pub(crate) mod cli;
mod command;
mod daemon_set_apply;
mod dispatch;
mod embedded_run;
mod event_stream;
mod evidence;
mod flags;
mod identity;
mod in_sequence;
mod permitted;
mod planning;
mod predecessors;
mod progress;
mod rehearse;
mod rehearsed_approvals;
mod release;
mod removal;
mod roll;
mod saved;
mod session;
mod sharing;
mod step_approval;
mod together;
mod undo;
mod unlock;
mod unmet_predecessor;

use tokio::sync::mpsc;

use super::{completions, man};
use crate::command_line;
use crate::error::{Error, RehearsalError};
use crate::exit::Exit;
use crate::flags::GlobalFlags;
use crate::printer::Printer;
use crate::shell::Shell;
use cli::{Command, DsApply};
use dispatch::in_session;
pub use embedded_run::{Ended, Outside, ds_apply_at, ds_apply_within};
use event_stream::{EventStream, Finished};
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
    let (output, printer) = (command.output(), shell.printer);
    let rehearsal = command.common().is_some_and(|common| common.rehearsal.rehearse);
    let success = command.common().map_or_else(Vec::new, |it| it.success_exit_codes.clone());
    let begun = command.common().map_or(Ok(None), |common| common.notify.begin());
    let (begun, failed) = match begun {
        Ok(begun) => (begun, None),
        Err(error) => (None, Some(error)),
    };
    let (notifications, deliveries) = begun.unzip();
    let shell = Shell { rehearsal, notifications, ..shell };
    let stream = EventStream::of(&shell, output);
    let finished = if let Some(error) = failed {
        Finished { done: Err(error), at: shell.now, acted: false }
    } else if rehearsal {
        rehearse::run(command, global, shell, interrupts).await
    } else {
        Box::pin(on_cluster(command, &global, &shell, interrupts, printer)).await
    };
    stream.run_ended(&finished);
    if let Some(deliveries) = deliveries {
        deliveries.finish(printer).await;
    }
    finished.done.map(|exit| as_success(exit, &success, printer))
}

/// The outcome for the caller: `Done` in place of those that `--success-exit-codes` names.
fn as_success(exit: Exit, success: &[u8], printer: Printer) -> Exit {
    if !success.contains(&exit.code()) {
        return exit;
    }
    printer.remark(format!("exit code {} is a success (--success-exit-codes)\n", exit.code()));
    Exit::Done
}

/// Runs one command on the cluster that the flags name.
async fn on_cluster(
    command: Command,
    global: &GlobalFlags,
    shell: &Shell,
    interrupts: mpsc::Receiver<Interrupt>,
    printer: Printer,
) -> Finished {
    let output = command.output();
    let opened = match command.live_only().filter(|_| global.snapshot.is_some()) {
        Some(command) => Err(RehearsalError::LiveOnly { command }.into()),
        None => Session::open(global, shell, interrupts).await,
    };
    let report = command.common().and_then(|common| common.report.clone());
    let mut session = match opened {
        Ok(session) => session.with_output(output, report),
        Err(error) => return Finished { done: Err(error), at: shell.now, acted: false },
    };
    if let Some(notifications) = &shell.notifications {
        notifications.name_cluster(session.cluster.live().name());
    }
    let done = in_session(command, global, &mut session).await;
    let done = session.reported(done, printer);
    let at = session.cluster.live().server_time().unwrap_or(shell.now);
    Finished { done, at, acted: session.has_acted() }
}
