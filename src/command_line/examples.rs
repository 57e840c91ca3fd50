//! The examples at the end of each command's help.

use clap::Command;

/// The examples of a command: what it does, and the line to type.
pub(super) type Examples = &'static [(&'static str, &'static str)];

/// The examples of a command of a program; those of the program itself have no command.
pub(super) fn of(program: &str, command: Option<&str>) -> Examples {
    match (program, command) {
        (_, Some("completions" | "man")) => shared(program, command),
        ("ds-apply", command) => of_ds_apply(command.unwrap_or("apply")),
        (_, command) => of_ds_plan(command.unwrap_or("plan")),
    }
}

fn shared(program: &str, command: Option<&str>) -> Examples {
    match (program, command) {
        ("ds-apply", Some("man")) => &[
            ("Read the manual page of a command", "ds-apply man undo | man -l -"),
            ("Write all pages into a folder", "ds-apply man --out ~/.local/share/man/man1"),
        ],
        ("ds-apply", _) => &[
            ("Complete in this shell", "source <(ds-apply completions bash)"),
            ("Complete in each zsh", "ds-apply completions zsh > ~/.zfunc/_ds-apply"),
        ],
        (_, Some("man")) => &[
            ("Read the manual page of a command", "ds-plan man drift | man -l -"),
            ("Write all pages into a folder", "ds-plan man --out ~/.local/share/man/man1"),
        ],
        _ds_plan => &[
            ("Complete in this shell", "source <(ds-plan completions bash)"),
            ("Complete in each zsh", "ds-plan completions zsh > ~/.zfunc/_ds-plan"),
        ],
    }
}

fn of_ds_plan(command: &str) -> Examples {
    match command {
        "plan" => &[
            ("Plan the commit that is checked out", "ds-plan"),
            ("Plan one DaemonSet from files", "ds-plan -f deploy/ ds/fluent-bit -n logging"),
            ("Comment on a pull request", "ds-plan --base origin/main -o markdown"),
            ("Save a plan to apply it later", "ds-plan --out plan.json"),
        ],
        "diff" => &[
            ("Compare the live objects with the commit", "ds-plan diff"),
            ("Compare with rendered manifests", "helm template x | ds-plan diff -f -"),
        ],
        "drift" => &[
            ("Fail if the cluster differs from the main branch", "ds-plan drift --rev origin/main"),
            ("Write metrics for a textfile collector", "ds-plan drift --metrics drift.prom"),
        ],
        "checks" => &[
            ("Ask the checks of all policies", "ds-plan checks"),
            (
                "With a token, and how they did in a week",
                "ds-plan checks --over 7d --check-token prom.example=token",
            ),
            ("Save the answers for a rehearsal", "ds-plan checks --over 6h --record answers.json"),
        ],
        "explain" => &[
            ("Ask why a node has no pod", "ds-plan explain ds/fluent-bit node-7 -n logging"),
            ("With the logs of its pods", "ds-plan explain logging/fluent-bit node-7 --logs"),
            (
                "What the commit would do there",
                "ds-plan explain logging/fluent-bit node-7 --rev HEAD",
            ),
        ],
        "status" => &[
            ("List the DaemonSets of all namespaces", "ds-plan status -A"),
            ("See what blocks each node of one", "ds-plan status ds/fluent-bit -n logging -v"),
            (
                "Wait in a pipeline until a rollout has ended",
                "ds-plan status logging/fluent-bit --watch --exit --timeout 30m",
            ),
        ],
        "history" => &[
            ("List the revisions of a DaemonSet", "ds-plan history logging/fluent-bit"),
            ("Compare two revisions", "ds-plan history logging/fluent-bit --diff 3..5"),
        ],
        "show" => &[
            ("Read a saved plan", "ds-plan show plan.json"),
            ("Open it in a browser", "ds-plan show plan.json -o html > plan.html"),
        ],
        "snapshot" => &[
            ("Record the cluster", "ds-plan snapshot --out cluster.json.gz"),
            ("Record a namespace without secrets", "ds-plan snapshot -n logging --mask-values"),
        ],
        "schema" => &[
            ("Print the schema of a plan", "ds-plan schema plan"),
            ("Print the schema of a policy", "ds-plan schema rollout-policy"),
        ],
        _no_command => &[],
    }
}

fn of_ds_apply(command: &str) -> Examples {
    match command {
        "apply" => &[
            ("Print the plan of the commit, and ask", "ds-apply"),
            ("Only print the plan", "ds-apply --dry-run"),
            ("Apply a saved plan in a pipeline", "ds-apply --plan plan.json --yes"),
            ("Rehearse on a copy of the cluster", "ds-apply --rehearse"),
        ],
        "approve" => &[
            ("See who runs a step, and approve the next", "ds-apply approve logging/agent half"),
            ("In a pipeline, after its own review", "ds-apply approve logging/agent half --yes"),
        ],
        "roll" => &[
            ("Replace outdated pods one by one", "ds-apply roll logging/fluent-bit"),
            ("At most a tenth at a time", "ds-apply roll logging/fluent-bit --max-unavailable 10%"),
        ],
        "step" => &[
            ("Replace one pod", "ds-apply step logging/fluent-bit --count 1"),
            ("Replace those of two nodes", "ds-apply step logging/fluent-bit --nodes a-1,a-2"),
        ],
        "undo" => &[
            ("Roll back to the previous revision", "ds-apply undo logging/fluent-bit"),
            ("Roll back to a revision", "ds-apply undo logging/fluent-bit --to-revision 3"),
        ],
        "release" => &[
            ("See what the controller would do", "ds-apply release logging/fluent-bit --dry-run"),
            ("Let it continue at its own pace", "ds-apply release logging/fluent-bit"),
        ],
        "unlock" => &[
            ("See the holder of a lock; remove it if the run is gone", "ds-apply unlock a/b"),
            ("Remove it although the run is in progress", "ds-apply unlock a/b --force"),
        ],
        "can-i" => &[
            ("List the permissions for a namespace", "ds-apply can-i -n logging"),
            (
                "Check those of a service account",
                "ds-apply can-i -n logging --as system:serviceaccount:ci:deployer",
            ),
            (
                "Include what a policy needs",
                "ds-apply can-i logging/fluent-bit --policy policy.yaml",
            ),
        ],
        _no_command => &[],
    }
}

/// Adds the examples to the help of a program and of its commands.
pub(super) fn add(command: Command, program: &str) -> Command {
    let own = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let text = format!("{}\n\n{own}", text(of(program, None)));
    command.after_help(text).mut_subcommands(|command| {
        let examples = of(program, Some(command.get_name()));
        if examples.is_empty() { command } else { command.after_help(self::text(examples)) }
    })
}

fn text(examples: Examples) -> String {
    let lines: Vec<String> =
        examples.iter().map(|(what, line)| format!("  # {what}\n  {line}")).collect();
    format!("Examples:\n{}", lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::Parser;

    use super::super::{definition, parse};
    use super::*;
    use crate::commands::DsPlan;
    use crate::commands::apply::cli::DsApply;

    /// Checks that a line of the shell parses as the program that it calls.
    fn check(line: &str) {
        let call = line.split(" | ").find(|it| it.starts_with("ds-")).unwrap_or(line);
        let call = call.strip_prefix("source <(").map_or(call, |it| it.trim_end_matches(')'));
        let call = call.split(" > ").next().unwrap_or_default();
        let words = || call.split(' ').map(OsString::from);
        let error = if call.starts_with("ds-plan") {
            parse::<DsPlan>(words(), |_| None).1.err()
        } else {
            parse::<DsApply>(words(), |_| None).1.err()
        };
        assert!(error.is_none(), "{line}: {}", error.unwrap());
    }

    fn check_program<P: Parser>() {
        let program = definition::<P>();
        let commands = program.get_subcommands().map(Command::get_name);
        let commands = commands.filter(|name| *name != "help").map(Some);
        for command in commands.chain([None]) {
            let examples = of(program.get_name(), command);
            assert!((2..=4).contains(&examples.len()), "{} {command:?}", program.get_name());
            for (what, line) in examples {
                assert!(what.len() < 60 && !what.ends_with('.'), "{what}");
                check(line);
                let named = command.is_none_or(|name| line.contains(name) || name == "plan");
                assert!(named || command == Some("apply"), "{command:?}: {line}");
            }
        }
    }

    #[test]
    fn each_command_has_examples_that_parse() {
        check_program::<DsPlan>();
        check_program::<DsApply>();
    }
}
