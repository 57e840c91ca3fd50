//! Flags without an effect on a command: the help leaves them out, and giving one is an error.
//!
//! Some flags belong to all commands, so that they can stand before the name of the command, or to
//! all commands that change a cluster. Each command lists here those that it does not read.

use clap::{ArgMatches, Command};

use super::is_given;

/// The flags of a connection to a live cluster.
const LIVE: [&str; 6] =
    ["kubeconfig", "context", "as", "as-group", "request-timeout", "concurrency"];
/// The flags of recordings.
const RECORDED: [&str; 3] = ["snapshot", "require-signature", "signature-issuer"];
/// The flags of reading manifests.
const MANIFESTS: [&str; 1] = ["annotations"];
/// The flags about names.
const NAMES: [&str; 1] = ["namespace"];
/// The flags of the log and of warnings.
const REMARKS: [&str; 2] = ["verbose", "quiet"];
/// The flags of a rehearsal.
const REHEARSAL: [&str; 5] = ["rehearse", "fault", "check-answers", "save", "seed"];
/// What restoring the strategy needs no decision about.
const ROLLOUT: [&str; 13] = [
    "check-token",
    "allow-commands",
    "keep-going",
    "logs",
    "force-conflicts",
    "max-unavailable",
    "min-ready-seconds",
    "ramp",
    "progress-deadline",
    "on-failure",
    "allow-mass-eviction",
    "allow-deadlock",
    "allow-mutation",
];
/// What a roll does not do, because it never writes the object.
const WRITING: [&str; 3] = ["force-conflicts", "on-failure", "allow-mutation"];

/// Commands that say themselves why they do not read a recording, or cannot be rehearsed.
const EXPLAINED: [(&str, &str); 6] = [
    ("approve", "snapshot"),
    ("snapshot", "snapshot"),
    ("release", "snapshot"),
    ("release", "rehearse"),
    ("unlock", "snapshot"),
    ("can-i", "snapshot"),
];

/// The flags that a command does not read.
fn flags(program: &str, command: &str) -> Vec<&'static str> {
    let groups: &[&[&'static str]] = match (program, command) {
        (_, "schema" | "completions" | "man") => &[&LIVE, &RECORDED, &MANIFESTS, &NAMES, &REMARKS],
        (_, "show") => &[&LIVE, &["snapshot"], &MANIFESTS, &NAMES],
        (_, "status" | "history" | "undo") => &[&MANIFESTS],
        (_, "snapshot" | "unlock" | "can-i") => &[&RECORDED, &MANIFESTS],
        ("ds-apply", "approve") => &[&RECORDED],
        ("ds-apply", "roll") => &[&MANIFESTS, &WRITING],
        ("ds-apply", "step") => &[&MANIFESTS, &WRITING, &["keep-going"]],
        ("ds-apply", "release") => &[&RECORDED, &MANIFESTS, &ROLLOUT, &["retry"], &REHEARSAL],
        _others => &[],
    };
    groups.concat()
}

/// Hides these flags from the help of each command, which must be built already.
pub(super) fn hide(command: Command, program: &str) -> Command {
    command.mut_subcommands(|command| {
        let unused = flags(program, command.get_name());
        command.mut_args(|arg| {
            let is_unused = arg.get_long().is_some_and(|long| unused.contains(&long));
            if is_unused { arg.hide(true) } else { arg }
        })
    })
}

/// The command and a flag that it does not read, if one is on the command line.
pub(super) fn given(
    program: &str,
    command: &Command,
    matches: &ArgMatches,
) -> Option<(String, String)> {
    let (name, matches) = matches.subcommand()?;
    let unused = flags(program, name);
    let command = command.find_subcommand(name)?;
    let arg = command.get_arguments().find(|arg| {
        let is_unused = |long| unused.contains(&long) && !EXPLAINED.contains(&(name, long));
        arg.get_long().is_some_and(is_unused) && is_given(matches, arg.get_id().as_str())
    })?;
    Some((name.to_owned(), format!("--{}", arg.get_long()?)))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::commands::DsPlan;
    use crate::commands::apply::cli::DsApply;

    #[test]
    fn each_listed_flag_exists() {
        for mut program in [DsPlan::command(), DsApply::command()] {
            program.build();
            for command in program.get_subcommands() {
                for flag in flags(program.get_name(), command.get_name()) {
                    let is_there = command.get_arguments().any(|it| it.get_long() == Some(flag));
                    assert!(is_there, "{} {}: --{flag}", program.get_name(), command.get_name());
                }
            }
        }
    }
}
