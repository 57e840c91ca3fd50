//! Flags from the environment: `DS_PLAN_CONTEXT` is `--context` of `ds-plan`, `DS_APPLY_RAMP` is
//! `--ramp` of `ds-apply`.
//!
//! The command line has precedence, also over variables of flags that conflict with it. So variables
//! become arguments of a second pass over the command line: clap's own variables count as given when
//! it looks for conflicts. Flags that consent to a danger are only read from the command line.

use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::is_given;

/// Flags without a variable: each consents to a danger or shows secrets, and must be seen where it
/// is used. (`help` and `version` are no settings.)
const ONLY_TYPED: [&str; 18] = [
    "allow-commands",
    "allow-deadlock",
    "allow-kustomize",
    "allow-mass-deletion",
    "allow-mass-eviction",
    "allow-mutation",
    "allow-other-source",
    "force",
    "force-conflicts",
    "help",
    "prune",
    "prune-namespace",
    "retry",
    "show-env",
    "show-values",
    "to-commit",
    "version",
    "yes",
];

/// More flags without one: they say what a single run is about or where its output goes, or they
/// are an error without another flag.
const OF_ONE_RUN: [&str; 20] = [
    "cascade",
    "check-answers",
    "count",
    "diff",
    "exit",
    "fault",
    "metrics",
    "nodes",
    "out",
    "over",
    "plan",
    "record",
    "report",
    "revision",
    "save",
    "seed",
    "sha256",
    "strict",
    "to-revision",
    "watch",
];

/// The variable of a flag; `None` if it has none.
fn name_of(program: &str, arg: &Arg) -> Option<String> {
    let long = arg.get_long().filter(|_| !arg.is_positional())?;
    let is_typed = ONLY_TYPED.contains(&long) || OF_ONE_RUN.contains(&long);
    // That of `status`; a run of `ds-apply` has one, too.
    let is_of_status = (program, long) == ("ds-plan", "timeout");
    if is_typed || is_of_status || arg.is_hide_set() {
        return None;
    }
    Some(format!("{program}-{long}").to_uppercase().replace('-', "_"))
}

/// Adds the names of the variables to the long help of each command, which must be built already.
pub(super) fn document(command: Command, program: &str) -> Command {
    let document = |arg: Arg| {
        let Some(name) = name_of(program, &arg) else { return arg };
        let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string);
        arg.long_help(format!("{}\n\n[env: {name}]", help.unwrap_or_default()))
    };
    command.mut_args(document).mut_subcommands(|command| command.mut_args(document))
}

/// Adds what the environment sets to a line that was parsed once, and parses it again.
///
/// # Errors
/// The value of a variable is invalid; the error names the variable.
pub(super) fn add(
    program: &str,
    command: &mut Command,
    line: Vec<OsString>,
    matches: ArgMatches,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<ArgMatches, clap::Error> {
    let (active, given) = match matches.subcommand() {
        Some((name, matches)) => (command.find_subcommand(name), matches),
        None => (Some(&*command), &matches),
    };
    let Some(active) = active else { return Ok(matches) };
    let set = active.get_arguments().filter_map(|arg| {
        let name = name_of(program, arg)?;
        let value = variable(&name).filter(|_| is_free(arg, active, given))?;
        let flag = format!("--{}", arg.get_long()?);
        Some((flag, name, arguments(arg, &value)))
    });
    let set: Vec<(String, String, Option<Vec<OsString>>)> = set.collect();
    let (mut more, mut names) = (Vec::new(), Vec::new());
    for (flag, name, arguments) in set {
        let Some(arguments) = arguments else {
            let text = format!("{name} is neither `true` nor `false`");
            return Err(command.error(ErrorKind::InvalidValue, text));
        };
        more.extend(arguments);
        names.push((flag, name));
    }
    if more.is_empty() {
        return Ok(matches);
    }
    command
        .try_get_matches_from_mut(before_the_rest(line, more))
        .map_err(|error| named(error, &names))
}

/// Whether neither the flag nor one that conflicts with it is on the command line.
fn is_free(arg: &Arg, command: &Command, given: &ArgMatches) -> bool {
    let mut all = command.get_arguments();
    let excludes = |one: &Arg, other: &Arg| {
        let conflicts = command.get_arg_conflicts_with(one);
        conflicts.iter().any(|conflict| conflict.get_id() == other.get_id())
    };
    all.all(|other| {
        !is_given(given, other.get_id().as_str())
            || (other.get_id() != arg.get_id() && !excludes(arg, other) && !excludes(other, arg))
    })
}

/// The arguments that set a flag to a value: `true` or `false` for one without, one line for each
/// value of one with several. `None` if the value is neither.
fn arguments(arg: &Arg, value: &OsStr) -> Option<Vec<OsString>> {
    let long = arg.get_long().unwrap_or_default();
    let with = |value: &OsStr| {
        let mut argument = OsString::from(format!("--{long}="));
        argument.push(value);
        argument
    };
    let text = value.to_string_lossy();
    match arg.get_action() {
        ArgAction::SetTrue => match &*text.to_lowercase() {
            "true" | "1" | "yes" => Some(vec![format!("--{long}").into()]),
            "false" | "0" | "no" => Some(Vec::new()),
            _other => None,
        },
        ArgAction::Count => {
            let times: usize = text.parse().ok().filter(|times| *times < 10)?;
            Some(vec![format!("--{long}").into(); times])
        }
        ArgAction::Append => Some(match value.to_str() {
            Some(lines) => {
                let lines = lines.lines().filter(|line| !line.is_empty());
                lines.map(|line| with(line.as_ref())).collect()
            }
            None => vec![with(value)],
        }),
        _one_value => Some(vec![with(value)]),
    }
}

/// The line with more arguments at its end, but before `--`.
fn before_the_rest(mut line: Vec<OsString>, more: Vec<OsString>) -> Vec<OsString> {
    let end = line.iter().position(|word| word == "--").unwrap_or(line.len());
    line.splice(end..end, more);
    line
}

/// The error with the name of the variable that caused it.
fn named(mut error: clap::Error, names: &[(String, String)]) -> clap::Error {
    let about = match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(arg)) => arg.clone(),
        _other => String::new(),
    };
    let flag = about.split([' ', '=', '[']).next().unwrap_or_default();
    let of_flag = names.iter().filter(|(long, _)| long == flag);
    let tips: Vec<_> =
        of_flag.map(|(_, name)| format!("the value is that of {name}").into()).collect();
    if !tips.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::super::parse;
    use super::*;
    use crate::commands::DsPlan;
    use crate::commands::apply::cli::DsApply;

    fn parsed<P: Parser + std::fmt::Debug>(
        line: &str,
        variables: &[(&str, &str)],
    ) -> Result<String, String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(it, _)| *it == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let parsed = parse::<P>(line.split(' ').map(OsString::from), variable).1;
        parsed.map(|parsed| format!("{parsed:?}")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_variable_is_as_good_as_its_flag() {
        for (variables, without, with) in [
            (&[("DS_PLAN_NAMESPACE", "a")][..], "ds-plan", "ds-plan -n a"),
            (&[("DS_PLAN_NAMESPACE", "a")], "ds-plan status", "ds-plan status -n a"),
            (&[("DS_PLAN_ALL_NODES", "true")], "ds-plan", "ds-plan --all-nodes"),
            (&[("DS_PLAN_ALL_NODES", "0")], "ds-plan", "ds-plan"),
            (&[("DS_PLAN_VERBOSE", "2")], "ds-plan", "ds-plan -vv"),
            (&[("DS_PLAN_PATH", "a\nb\n")], "ds-plan", "ds-plan --path a --path b"),
            (&[("DS_PLAN_OUTPUT", "json")], "ds-plan status a/b", "ds-plan status a/b -o json"),
            // The command line has precedence.
            (&[("DS_PLAN_NAMESPACE", "a")], "ds-plan -n b", "ds-plan -n b"),
            (&[("DS_PLAN_CONTEXT", "a")], "ds-plan --snapshot f", "ds-plan --snapshot f"),
            (&[("DS_PLAN_SNAPSHOT", "f")], "ds-plan --context a", "ds-plan --context a"),
            (&[("DS_PLAN_FILENAME", "f")], "ds-plan --rev a", "ds-plan --rev a"),
            (&[("DS_PLAN_REV", "a")], "ds-plan -f f", "ds-plan -f f"),
            (&[("DS_PLAN_OUTPUT", "json")], "ds-plan status -w", "ds-plan status -w"),
            (&[("DS_PLAN_NAMESPACE", "a")], "ds-plan -- b", "ds-plan -n a -- b"),
            // Variables of other commands and of the other program.
            (
                &[("DS_PLAN_BASE", "a"), ("DS_APPLY_CONTEXT", "b")],
                "ds-plan status",
                "ds-plan status",
            ),
            (&[("DS_PLAN_KUBECONFIG", "a")], "ds-plan schema", "ds-plan schema"),
        ] {
            let found = parsed::<DsPlan>(without, variables);
            assert_eq!(found, parsed::<DsPlan>(with, &[]), "{variables:?} {without}");
        }
    }

    #[test]
    fn consent_is_only_typed() {
        let variables = ONLY_TYPED.map(|flag| format!("DS_APPLY_{flag}").to_uppercase());
        let variables = variables.map(|name| name.replace('-', "_"));
        let set: Vec<(&str, &str)> = variables.iter().map(|name| (&**name, "true")).collect();
        for line in ["ds-apply", "ds-apply undo a/b", "ds-apply unlock a/b"] {
            assert_eq!(parsed::<DsApply>(line, &set), parsed::<DsApply>(line, &[]), "{line}");
        }
    }

    #[test]
    fn each_flag_that_allows_something_is_only_typed() {
        let program = super::super::definition::<DsApply>();
        let all = program.get_subcommands().flat_map(Command::get_arguments);
        let consents = all.filter(|arg| {
            arg.get_help_heading() == Some("Allowances")
                || arg.get_long().is_some_and(|long| long.starts_with("allow"))
        });
        for arg in consents {
            assert_eq!(name_of("ds-apply", arg), None, "{arg}");
        }
    }

    #[test]
    fn errors_name_the_variable() {
        for (name, value) in [
            ("DS_PLAN_OUTPUT", "xml"),
            ("DS_PLAN_ALL_NODES", "maybe"),
            ("DS_PLAN_VERBOSE", "many"),
            ("DS_PLAN_REQUEST_TIMEOUT", "soon"),
        ] {
            let error = parsed::<DsPlan>("ds-plan", &[(name, value)]).unwrap_err();
            assert!(error.contains(name), "{error}");
        }
    }
}
