//! `ds-plan history`: the revisions of DaemonSets, one revision, or the difference of two.

use std::str::FromStr;

use crate::connection::{self, Chosen};
use crate::error::Error;
use crate::exit::Exit;
use crate::flags::{GlobalFlags, LiveFlags, ValueFlags, heading};
use crate::output::{self, Format, formats};
use crate::shell::Shell;
use daemonset::model::{DaemonSetKey, RevisionNumber};
use planner::plan::{self, History, HistoryQuestion};

/// Show the revisions of DaemonSets: why each was made, from which commit, and its pods
///
/// The table is that of `kubectl rollout history`, with two more columns; below it is what the cluster
/// still knows of the last rollout by steps. Without names: the DaemonSets of the namespace (-n, or
/// that of the context); of a recording, all.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    live: LiveFlags,

    /// Show the template of one revision, as `kubectl rollout history --revision` does
    #[arg(long, value_name = "N", requires = "names")]
    #[arg(value_parser = clap::value_parser!(i64).range(1..))]
    revision: Option<i64>,

    /// Show how the templates of two revisions differ
    #[arg(long, value_name = "N..M", requires = "names", conflicts_with = "revision")]
    diff: Option<Between>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    #[arg(value_parser = formats([Format::Text, Format::Json, Format::Yaml]))]
    #[arg(help_heading = heading::OUTPUT)]
    output: Format,

    #[command(flatten)]
    values: ValueFlags,
}

/// Two revisions, written `N..M`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Between(RevisionNumber, RevisionNumber);

/// Error: the text is not `N..M`.
#[derive(Debug, thiserror::Error)]
#[error("write it as two revisions, such as 3..5")]
struct NotBetween;

impl FromStr for Between {
    type Err = NotBetween;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (from, to) = text.split_once("..").ok_or(NotBetween)?;
        let number = |text: &str| {
            let number = text.parse().ok().filter(|number| *number > 0);
            number.map(RevisionNumber).ok_or(NotBetween)
        };
        Ok(Self(number(from)?, number(to)?))
    }
}

pub(super) async fn run(args: &Args, global: &GlobalFlags, shell: &Shell) -> Result<Exit, Error> {
    let history = read_and_decide(args, global, shell).await?;
    output::print_plain(history, args.output, &shell.text_options(false), shell)?;
    Ok(Exit::Done)
}

async fn read_and_decide(
    args: &Args,
    global: &GlobalFlags,
    shell: &Shell,
) -> Result<History, Error> {
    let Chosen { mut snapshot, keys, all_namespaces: _, connection } =
        connection::read_chosen(&args.live, global, shell).await?;
    // Only rollouts by steps have approvals.
    let noted = keys.iter().filter(|key| snapshot.steps_note(key).is_some()).cloned().collect();
    connection.read_approvals_of(noted, &mut snapshot).await?;
    let wanted = |key: &DaemonSetKey| keys.contains(key);
    Ok(plan::history(&snapshot, wanted, question(args), args.values.shown())?)
}

fn question(args: &Args) -> HistoryQuestion {
    match (args.revision, args.diff) {
        (Some(number), _) => HistoryQuestion::Revision(RevisionNumber(number)),
        (None, Some(Between(from, to))) => HistoryQuestion::Difference(from, to),
        (None, None) => HistoryQuestion::Overview,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_revisions_are_written_with_two_dots() {
        let between = |from, to| Some((from, to));
        for (text, want) in [
            ("3..5", between(3, 5)),
            ("5..3", between(5, 3)),
            ("3", None),
            ("3..", None),
            ("..3", None),
            ("3...5", None),
            ("0..5", None),
            ("a..b", None),
        ] {
            let read = text.parse::<Between>().ok().map(|Between(from, to)| (from.0, to.0));
            assert_eq!(read, want, "{text}");
        }
    }
}
