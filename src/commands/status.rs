//! `ds-plan status`: the state of DaemonSets, and the reasons that block each node.

use crate::connection;
use crate::error::Error;
use crate::exit::Exit;
use crate::flags::{GlobalFlags, NarrowFlags, VerbosityFlags, heading};
use crate::output::{self, Format, formats};
use crate::shell::Shell;
use planner::plan::{self, StatusReport};

/// Show the state of DaemonSets, and what blocks each node
///
/// The table is that of `kubectl get daemonsets`; the nodes that are not up to date follow below.
/// Without -n, -l and names: all DaemonSets of all namespaces.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    narrow: NarrowFlags,

    /// Output format; `name` prints NAMESPACE/NAME of each DaemonSet
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    #[arg(value_parser = formats([Format::Text, Format::Json, Format::Yaml, Format::Name]))]
    #[arg(help_heading = heading::OUTPUT)]
    output: Format,

    #[command(flatten)]
    verbosity: VerbosityFlags,
}

pub(super) async fn run(args: &Args, global: &GlobalFlags, shell: &Shell) -> Result<Exit, Error> {
    let status = read_and_decide(args, global, shell).await?;
    output::print_plain(status, args.output, args.verbosity.verbose, shell)?;
    Ok(Exit::Done)
}

async fn read_and_decide(
    args: &Args,
    global: &GlobalFlags,
    shell: &Shell,
) -> Result<StatusReport, Error> {
    let (snapshot, chosen) =
        connection::read_chosen_with_warnings(&args.narrow, global, shell).await?;
    Ok(plan::status(&snapshot, |key| chosen.contains(key)))
}
