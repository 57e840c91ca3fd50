//! `ds-plan status`: the state of DaemonSets, and the reasons that block each node.

mod watch;

use std::time::Duration;

use crate::connection::{self, Chosen};
use crate::error::Error;
use crate::exit::Exit;
use crate::flags::{GlobalFlags, LiveFlags, SourceFlags, duration, heading};
use crate::input::policies::{self, asks, of_live};
use crate::output::{self, Format, formats};
use crate::shell::Shell;
use daemonset::model::DaemonSetKey;
use planner::plan::{self, StatusReport};
use render::TextOptions;

/// Show the state of DaemonSets, and what blocks each node
///
/// The table is that of `kubectl get daemonsets`; the nodes that are not up to date follow below.
/// Without names: the DaemonSets of the namespace (-n, or that of the context); of a recording, all.
/// With the flags of a source (`--policy`, `-f`, `--repo`, …), the policies there are read, too: the
/// status then shows the steps of each rollout, their approvals, and what is waited for.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    live: LiveFlags,

    #[command(flatten)]
    source: SourceFlags,

    /// Output format; `name` prints NAMESPACE/NAME of each DaemonSet
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    #[arg(value_parser = formats([Format::Text, Format::Json, Format::Yaml, Format::Name]))]
    #[arg(help_heading = heading::OUTPUT)]
    output: Format,

    /// Print the row of a DaemonSet again when it changes, until interrupted
    #[arg(short, long, help_heading = WATCH, conflicts_with_all = ["snapshot", "output"])]
    watch: bool,

    /// With --watch: end when each rollout is complete (exit code 0), is paused or aborted (4), or
    /// waits (8, for an approval 9)
    ///
    /// For pipelines, instead of `kubectl rollout status`, which refuses a paused DaemonSet. A
    /// rollout is complete when each node runs the live template and its pod is available. At most
    /// 5% of the nodes, but at least one, are not waited for if they are not Ready.
    // A required flag may be missing where it conflicts with another one.
    #[arg(long, help_heading = WATCH, requires = "watch")]
    #[arg(conflicts_with_all = ["snapshot", "output"])]
    exit: bool,

    /// With --exit: fail (1) after this time; default: never
    #[arg(long, value_name = "TIME", help_heading = WATCH, requires = "exit")]
    #[arg(value_parser = duration)]
    timeout: Option<Duration>,
}

/// Heading of the flags for waiting.
const WATCH: &str = "Waiting";

pub(super) async fn run(args: &Args, global: &GlobalFlags, shell: &Shell) -> Result<Exit, Error> {
    if args.watch {
        return watch::run(args, global, shell).await;
    }
    let Listed { status, options } = read_and_decide(args, global, shell).await?;
    output::print_plain(status, args.output, &options, shell)?;
    Ok(Exit::Done)
}

/// The status, and how it is laid out as text.
struct Listed {
    status: StatusReport,
    options: TextOptions,
}

async fn read_and_decide(
    args: &Args,
    global: &GlobalFlags,
    shell: &Shell,
) -> Result<Listed, Error> {
    let policies = policies::of_source(&args.source, shell)?;
    let Chosen { mut snapshot, keys, all_namespaces, connection } =
        connection::read_chosen_with_warnings(&args.live, global, shell).await?;
    if let Some(namespace) = global.namespace.as_ref().filter(|_| keys.is_empty()) {
        let exists = snapshot.namespaces.iter().any(|one| one.name == *namespace);
        if snapshot.coverage.namespaces && !exists {
            shell.printer.remark(format!("warning: namespace {namespace} does not exist\n"));
        }
    }
    let of_live = of_live(&policies, &snapshot, &keys)?;
    let asking = of_live.iter().filter(|(_, policy)| asks(policy)).map(|(key, _)| key.clone());
    connection.read_approvals_of(asking.collect(), &mut snapshot).await?;
    let wanted = |key: &DaemonSetKey| keys.contains(key);
    let status = plan::status_under(&snapshot, wanted, |key| of_live.get(key).cloned());
    let options = shell.text_options(global.is_verbose());
    Ok(Listed { status, options: TextOptions { namespaces: all_namespaces, ..options } })
}
