//! `ds-plan diff`: the live objects compared with the result of applying the source.

use crate::comparison::{self, Compared};
use crate::error::Error;
use crate::exit::Exit;
use crate::flags::{
    CommentFlags, GlobalFlags, NarrowFlags, OwnershipFlags, SourceFlags, ValueFlags, heading,
};
use crate::input::Desired;
use crate::output::{self, Format, Options, formats};
use crate::prune::{self, PruneFlags};
use crate::shell::Shell;
use planner::plan::{self, Diff};

/// Show what applying the source would change in live DaemonSets
///
/// The unified diff of `kubectl diff`, without the permission to write that `kubectl diff` needs.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    source: SourceFlags,

    #[command(flatten)]
    narrow: NarrowFlags,

    #[command(flatten)]
    ownership: OwnershipFlags,

    /// The source id that ds-apply writes on the DaemonSets of this source
    #[arg(long, value_name = "ID", help_heading = heading::SOURCE, value_parser = prune::source_id)]
    source_id: Option<String>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    #[arg(value_parser = formats([Format::Text, Format::Json, Format::Yaml, Format::Markdown]))]
    #[arg(help_heading = heading::OUTPUT)]
    output: Format,

    #[command(flatten)]
    comment: CommentFlags,

    #[command(flatten)]
    values: ValueFlags,

    /// Exit with 2 when there are changes, and with 0 only when there are none
    #[arg(long, help_heading = heading::OUTPUT)]
    detailed_exitcode: bool,
}

pub(super) async fn run(args: &Args, global: &GlobalFlags, shell: &Shell) -> Result<Exit, Error> {
    let markdown = args.comment.options(args.output == Format::Markdown, false, &[])?;
    let diff = read_and_decide(args, global, shell).await?;
    let changes = args.detailed_exitcode && diff.has_changes();
    let options = Options { format: args.output, verbose: false, markdown: &markdown, nodes: &[] };
    output::print(diff, &options, shell)?;
    Ok(if changes { Exit::Changes } else { Exit::Done })
}

async fn read_and_decide(args: &Args, global: &GlobalFlags, shell: &Shell) -> Result<Diff, Error> {
    let mark = PruneFlags::marking(args.source_id.clone());
    let Compared { snapshot, desired, connection: _ } =
        comparison::read(&args.source, None, &args.narrow, &mark, global, shell).await?;
    let Desired {
        daemon_sets,
        namespaces: _,
        base: _,
        removed: _,
        source,
        version: _,
        warnings,
        assignment: _,
        others: _,
    } = desired;
    Ok(plan::diff(plan::DiffInput {
        snapshot: &snapshot,
        desired: &daemon_sets,
        force_conflicts: &args.ownership.names(),
        source,
        warnings,
        show_values: args.values.shown(),
    }))
}
