//! Commands of other programs that are typed out of habit, and what does the same here.
//!
//! Without this list they would be names of DaemonSets.

use clap::Command;

/// What other programs call it, and the command here.
const DS_PLAN: [(&str, &str); 10] = [
    ("apply", "ds-apply"),
    ("describe", "ds-plan explain NAME NODE"),
    ("get", "ds-plan status"),
    ("list", "ds-plan status"),
    ("logs", "ds-plan explain NAME NODE --logs"),
    ("rollback", "ds-apply undo NAME"),
    ("rollout", "ds-plan status, ds-plan history or ds-apply undo"),
    ("undo", "ds-apply undo NAME"),
    ("version", "ds-plan --version"),
    ("watch", "ds-plan status --watch"),
];

/// As [`DS_PLAN`].
const DS_APPLY: [(&str, &str); 13] = [
    ("diff", "ds-plan diff"),
    ("drift", "ds-plan drift"),
    ("explain", "ds-plan explain NAME NODE"),
    ("get", "ds-plan status"),
    ("history", "ds-plan history"),
    ("plan", "ds-plan"),
    ("rehearse", "ds-apply --rehearse"),
    ("restart", "ds-apply roll"),
    ("resume", "ds-apply --resume"),
    ("rollback", "ds-apply undo NAME"),
    ("rollout", "ds-apply, ds-apply undo or ds-plan status"),
    ("status", "ds-plan status"),
    ("version", "ds-apply --version"),
];

/// The command that does what `word` does in another program.
pub(super) fn here(program: &Command, word: &str) -> Option<&'static str> {
    let table: &[(&str, &'static str)] = match program.get_name() {
        "ds-apply" => &DS_APPLY,
        _ds_plan => &DS_PLAN,
    };
    table.iter().find(|(other, _)| *other == word).map(|(_, command)| *command)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::commands::DsPlan;
    use crate::commands::apply::cli::DsApply;

    #[test]
    fn words_are_no_commands_and_commands_exist() {
        let (plan, apply) = (DsPlan::command(), DsApply::command());
        for (program, table) in [(&plan, &DS_PLAN[..]), (&apply, &DS_APPLY[..])] {
            for (word, command) in table {
                assert!(program.find_subcommand(word).is_none(), "{word}");
                assert_eq!(here(program, word), Some(*command));
                for one in command.split(", ").flat_map(|it| it.split(" or ")) {
                    let mut words = one.split(' ');
                    let its = if words.next() == Some("ds-plan") { &plan } else { &apply };
                    let flag_or_command = words.next().filter(|it| !it.starts_with('-'));
                    let exists = flag_or_command.is_none_or(|it| its.find_subcommand(it).is_some());
                    assert!(exists, "{one}");
                }
            }
        }
    }
}
