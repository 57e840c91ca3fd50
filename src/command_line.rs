//! The command line of both programs, as clap parses it, and what clap does not know: the name by
//! which the program was called, variables of the environment, flags without an effect, examples.
//!
//! Not here: the flags themselves (`flags`, and the files of the commands).

pub(super) mod completion;
mod elsewhere;
mod examples;
mod unused;
mod variables;

use std::ffi::OsString;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;

use super::flags::name::GivenName;
use super::invocation::Invocation;

/// The whole definition of a program's command line, as the help shows it.
pub(super) fn definition<P: Parser>() -> clap::Command {
    defined::<P>(Invocation::Directly)
}

fn defined<P: Parser>(called: Invocation) -> clap::Command {
    let command = P::command();
    let program = command.get_name().to_owned();
    let mut command = command.bin_name(called.name(&program));
    // Adds the flags of all commands to each.
    command.build();
    let command = unused::hide(examples::add(command, &program), &program);
    variables::document(command, &program)
}

/// Parses the command line of a program, and detects the name by which it was called. Flags that
/// are not on it can come from the environment.
pub(super) fn parse<P: Parser>(
    line: impl Iterator<Item = OsString>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> (Invocation, Result<P, clap::Error>) {
    let line: Vec<OsString> = line.collect();
    let called = Invocation::of(line.first().map(OsString::as_os_str));
    (called, parse_called(line, called, variable))
}

fn parse_called<P: Parser>(
    line: Vec<OsString>,
    called: Invocation,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<P, clap::Error> {
    let mut command = defined::<P>(called);
    let program = command.get_name().to_owned();
    let matches = command.try_get_matches_from_mut(line.clone())?;
    if let Some(flag) = misplaced(&command, &matches)
        && let Some(name) = matches.subcommand_name()
    {
        let text = format!("`{flag}` belongs after `{} {name}`, not before", called.name(&program));
        return Err(command.error(ErrorKind::ArgumentConflict, text));
    }
    if let Some((of, flag)) = unused::given(&program, &command, &matches) {
        let text = format!("`{flag}` has no effect on `{} {of}`", called.name(&program));
        return Err(command.error(ErrorKind::ArgumentConflict, text));
    }
    if let Some(error) = mistyped_command(&mut command, &matches) {
        return Err(error);
    }
    let matches = variables::add(&program, &mut command, line, matches, variable)?;
    P::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// Whether an argument is on the command line.
fn is_given(matches: &clap::ArgMatches, id: &str) -> bool {
    matches.try_contains_id(id).unwrap_or(false)
        && matches.value_source(id) == Some(ValueSource::CommandLine)
}

/// A flag of `plan` that was given before the name of a command, where it would be ignored.
fn misplaced(command: &clap::Command, matches: &clap::ArgMatches) -> Option<String> {
    matches.subcommand_name()?;
    let given = |arg: &&clap::Arg| is_given(matches, arg.get_id().as_str());
    let arg = command.get_arguments().filter(|arg| !arg.is_global_set()).find(given)?;
    Some(arg.get_long().map_or_else(|| arg.get_id().to_string(), |long| format!("--{long}")))
}

/// The error of `ds-plan statsu` and of `ds-plan get`, which would otherwise be names of DaemonSets.
fn mistyped_command(
    command: &mut clap::Command,
    matches: &clap::ArgMatches,
) -> Option<clap::Error> {
    if matches.subcommand_name().is_some() {
        return None;
    }
    let names = matches.try_get_many::<GivenName>("names").ok().flatten()?;
    let first = names.into_iter().next()?.bare()?.to_owned();
    let known = command.get_subcommands().map(clap::Command::get_name);
    let similar = known.filter(|name| is_mistyped(&first, name)).min();
    let meant = match elsewhere::here(command, &first) {
        Some(here) => format!("use '{here}'"),
        None => format!("a similar command exists: '{}'", similar?),
    };
    let mut error = clap::Error::new(ErrorKind::InvalidSubcommand).with_cmd(command);
    error.insert(ContextKind::InvalidSubcommand, ContextValue::String(first.clone()));
    let tips = [meant, format!("to name the DaemonSet: 'ds/{first}'")];
    let tips = tips.into_iter().map(Into::into).collect();
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    Some(error)
}

/// Whether a word is nearly this command. Short ones are too near to real names, such as `shop`.
fn is_mistyped(word: &str, command: &str) -> bool {
    const SHORTEST: usize = 5;
    command.len() >= SHORTEST && word != command && strsim::osa_distance(word, command) < 2
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::commands::DsPlan;
    use crate::commands::apply::cli::DsApply;

    fn parsed(line: &str) -> Result<DsPlan, String> {
        parse(line.split(' ').map(OsString::from), |_| None).1.map_err(|error| error.to_string())
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
            ("ds-plan --validate a/b/c", "NAMESPACE/NAME"),
            ("ds-plan schema --kubeconfig a", "`--kubeconfig` has no effect on `ds-plan schema`"),
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
