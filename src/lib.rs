//! The programs `ds-plan` and `ds-apply`: command line in, exit status out.
//!
//! Here: what both share (flags, input, output, errors with hints, exit statuses), and
//! [`commands`], one file each. Not here: decisions about DaemonSets; they are in the crates below
//! `crates`, which this one calls in the order of the data: `source` and `manifest` read what is
//! wanted, `cluster` what is there; `planner` decides, `render` prints, `executor` applies.

use std::ffi::OsString;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};

mod annotations;
mod atomic_write;
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
mod output;
mod printer;
mod prune;
mod shell;
mod signature;
mod warnings;

use commands::apply;
use commands::apply::cli::DsApply;
pub use commands::apply::{Ended, ds_apply_at};
use commands::{Command, DsPlan};
use error::{Error, report};
pub use exit::Exit;
use flags::{Color, GlobalFlags};
use invocation::{Invocation, Program};
use printer::Printer;
use shell::Shell;

/// Runs the program by whose name the process was started, on its command line.
pub fn run() -> Exit {
    match Program::of(std::env::args_os().next().as_deref()) {
        Program::DsPlan => ds_plan(),
        Program::DsApply => ds_apply(),
    }
}

fn ds_plan() -> Exit {
    let (called, parsed) = parse::<DsPlan>(std::env::args_os());
    match parsed.map(DsPlan::into_command) {
        Ok((global, command)) => run_plan(global, command, called),
        Err(error) => usage(&error, called),
    }
}

/// Runs `ds-apply`, whatever the name of the process.
pub fn ds_apply() -> Exit {
    let (called, parsed) = parse::<DsApply>(std::env::args_os());
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
    log::begin(global.verbose, &shell)?;
    Ok(shell)
}

/// Parses the command line of a program, and detects the name by which it was called.
fn parse<P: Parser>(line: impl Iterator<Item = OsString>) -> (Invocation, Result<P, clap::Error>) {
    let mut line = line.peekable();
    let called = Invocation::of(line.peek().map(OsString::as_os_str));
    (called, parse_called(line, called))
}

fn parse_called<P: Parser>(
    line: impl Iterator<Item = OsString>,
    called: Invocation,
) -> Result<P, clap::Error> {
    let name = called.name(P::command().get_name());
    let mut command = P::command().bin_name(name);
    let matches = match command.try_get_matches_from_mut(line) {
        Ok(matches) => matches,
        Err(error) => return Err(with_similar_command(error, &command)),
    };
    if let Some(name) = matches.subcommand_name()
        && let Some(flag) = misplaced(&command, &matches)
    {
        let program = called.name(command.get_name());
        let text = format!("`{flag}` belongs after `{program} {name}`, not before");
        return Err(command.error(ErrorKind::ArgumentConflict, text));
    }
    P::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// A flag of `plan` that was given before the name of a command, where it would be ignored.
fn misplaced(command: &clap::Command, matches: &clap::ArgMatches) -> Option<String> {
    let given = |arg: &&clap::Arg| {
        let id = arg.get_id().as_str();
        matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine)
    };
    let arg = command.get_arguments().filter(|arg| !arg.is_global_set()).find(given)?;
    Some(arg.get_long().map_or_else(|| arg.get_id().to_string(), |long| format!("--{long}")))
}

/// Suggests a command for `ds-plan statsu`, which parses as the name of a DaemonSet.
fn with_similar_command(mut error: clap::Error, command: &clap::Command) -> clap::Error {
    if let Some(ContextValue::String(value)) = error.get(ContextKind::InvalidValue)
        && error.kind() == ErrorKind::ValueValidation
    {
        let mut names = command.get_subcommands().map(clap::Command::get_name);
        if let Some(name) = names.find(|name| strsim::jaro(value, name) > 0.7) {
            let tip = format!("a similar command exists: '{name}'").into();
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
        }
    }
    error
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

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parsed(line: &str) -> Result<DsPlan, String> {
        parse(line.split(' ').map(OsString::from)).1.map_err(|error| error.to_string())
    }

    #[test]
    fn the_command_line_is_sound() {
        DsPlan::command().debug_assert();
        DsApply::command().debug_assert();
    }

    #[test]
    fn flags_of_plan_work_with_and_without_its_name() {
        let bare = parsed("ds-plan -f a.yaml --snapshot s.json x/y -n x").unwrap();
        let named = parsed("ds-plan plan -f a.yaml --snapshot s.json x/y -n x").unwrap();
        let (bare, named) = (bare.into_command(), named.into_command());
        assert!(format!("{bare:?}").contains("Plan("), "{bare:?}");
        assert_eq!(format!("{bare:?}"), format!("{named:?}"));
    }

    #[test]
    fn ignored_flags_are_refused() {
        for (line, want) in [
            ("ds-plan -f a.yaml status", "`--filename` belongs after `ds-plan status`, not before"),
            ("ds-plan --rev main plan", "`--rev` belongs after `ds-plan plan`, not before"),
            ("ds-plan -f a.yaml --rev main", "cannot be used with"),
            ("ds-plan -R", "--filename"),
            ("ds-plan --snapshot a --context b", "cannot be used with"),
            ("ds-plan statsu", "a similar command exists: 'status'"),
            ("ds-plan --validate strict", "NAMESPACE/NAME"),
            ("ds-plan -o xml", "[possible values: text, json, yaml, markdown, html, name]"),
        ] {
            let error = parsed(line).map(|_| ()).unwrap_err();
            assert!(error.contains(want), "{line}: {error}");
        }
    }

    #[test]
    fn a_kubectl_plugin_prints_its_kubectl_name() {
        for (line, want) in [
            ("kubectl-ds_plan --nonsense", "Usage: kubectl ds-plan [OPTIONS]"),
            ("kubectl-ds_plan status --nonsense", "Usage: kubectl ds-plan status [OPTIONS]"),
            ("kubectl-ds_plan --rev main plan", "belongs after `kubectl ds-plan plan`, not before"),
            ("ds-plan --nonsense", "Usage: ds-plan [OPTIONS]"),
        ] {
            let error = parsed(line).map(|_| ()).unwrap_err();
            assert!(error.contains(want), "{line}: {error}");
        }
    }

    #[test]
    fn global_flags_work_before_and_after_the_command() {
        for line in ["ds-plan --snapshot a -n b status", "ds-plan status --snapshot a -n b"] {
            let global = parsed(line).unwrap().into_command().0;
            assert_eq!(global.snapshot.unwrap().to_str(), Some("a"), "{line}");
            assert_eq!(global.namespace.unwrap().as_str(), "b", "{line}");
        }
    }
}
