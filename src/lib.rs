//! The programs `ds-plan` and `ds-apply`: command line in, exit status out.
//!
//! Here: what both share (flags, input, output, errors with hints, exit statuses), and
//! [`commands`], one file each. Not here: decisions about DaemonSets; they are in the crates below
//! `crates`, which this one calls in the order of the data: `source` and `manifest` read what is
//! wanted, `cluster` what is there; `planner` decides, `render` prints, `executor` applies.

use std::ffi::OsString;

mod annotations;
mod atomic_write;
mod check_flags;
mod command_line;
mod commands;
mod comparison;
mod connection;
mod container_log;
mod error;
mod exit;
mod file_digest;
mod flags;
mod hints;
mod input;
mod invocation;
mod log;
mod notifications;
mod output;
mod printer;
mod prune;
mod saved_plan;
mod shell;
mod signature;
mod warnings;

use command_line::completion;
use commands::apply;
use commands::apply::cli::DsApply;
pub use commands::apply::{Ended, Outside, ds_apply_at, ds_apply_within};
use commands::{Command, DsPlan};
use error::{Error, report};
pub use exit::Exit;
use flags::{Color, GlobalFlags};
use invocation::{Invocation, Program};
use printer::Printer;
use shell::Shell;

/// An environment variable of a flag that is set and not empty.
#[expect(clippy::disallowed_methods, reason = "the command line is parsed before the shell")]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The version, with the commit in a released program.
const VERSION: &str = env!("DS_PLAN_VERSION");

/// Runs the program by whose name the process was started, on its command line.
pub fn run() -> Exit {
    match Program::of(std::env::args_os().next().as_deref()) {
        Program::DsPlan => ds_plan(),
        Program::DsApply => ds_apply(),
    }
}

fn ds_plan() -> Exit {
    if completion::complete::<DsPlan>() {
        return Exit::Done;
    }
    let (called, parsed) = command_line::parse::<DsPlan>(std::env::args_os(), variable);
    match parsed.map(DsPlan::into_command) {
        Ok((global, command)) => run_plan(global, command, called),
        Err(error) => usage(&error, called),
    }
}

/// Runs `ds-apply`, whatever the name of the process.
pub fn ds_apply() -> Exit {
    if completion::complete::<DsApply>() {
        return Exit::Done;
    }
    let (called, parsed) = command_line::parse::<DsApply>(std::env::args_os(), variable);
    match parsed.map(DsApply::into_command) {
        Ok((global, command)) => run_apply(global, command, called),
        Err(error) => usage(&error, called),
    }
}

/// As [`run_plan`], for `ds-apply`, which has to stop a rollout safely when it is interrupted.
fn run_apply(global: GlobalFlags, command: apply::cli::Command, called: Invocation) -> Exit {
    let printer = printer(&global, called);
    let done = begin(&global, printer).and_then(|shell| {
        shell::run_with_interrupts(|interrupts| async move {
            apply::run(command, global, shell, interrupts)
                .await
                .unwrap_or_else(|error| report(&error, printer))
        })
        .map_err(Error::Process)
    });
    done.unwrap_or_else(|error| report(&error, printer))
}

/// Runs one command, and prints its error if it fails.
fn run_plan(global: GlobalFlags, command: Command, called: Invocation) -> Exit {
    let printer = printer(&global, called);
    let done = begin(&global, printer).and_then(|shell| {
        let work = async move {
            commands::dispatch(&command, &global, &shell)
                .await
                .unwrap_or_else(|error| report(&error, printer))
        };
        shell::run_until_interrupted(work).map_err(Error::Process)
    });
    done.unwrap_or_else(|error| report(&error, printer))
}

fn printer(global: &GlobalFlags, called: Invocation) -> Printer {
    let printer = Printer::new(global.color.into()).called_as(called).quiet(global.quiet);
    printer.annotating(global.annotations)
}

/// Reads the environment, and starts the log.
fn begin(global: &GlobalFlags, printer: Printer) -> Result<Shell, Error> {
    let shell = Shell::of_process(printer).map_err(Error::CurrentFolder)?;
    let shell = Shell { verbose: global.is_verbose(), ..shell };
    log::begin(global.verbose, &shell)?;
    Ok(shell)
}

/// Prints the message of clap: help and version are output, everything else is an error.
fn usage(error: &clap::Error, called: Invocation) -> Exit {
    let printer = Printer::new(Color::Auto.into()).called_as(called);
    let text = called.with_called_name(&error.render().ansi().to_string());
    if error.use_stderr() {
        printer.err(text);
        return Exit::Usage;
    }
    match printer.out(text) {
        Ok(()) => Exit::Done,
        Err(source) => report(&Error::Output(source), printer),
    }
}
