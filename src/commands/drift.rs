//! `ds-plan drift`: differences between the cluster and the source, and inside the cluster.

use std::path::{Path, PathBuf};

use clap::ValueHint;

use crate::atomic_write;
use crate::comparison::{self, Compared};
use crate::error::Error;
use crate::exit::Exit;
use crate::flags::{CommentFlags, GlobalFlags, NarrowFlags, SourceFlags, ValueFlags, heading};
use crate::input::Desired;
use crate::output::{self, Format, Options, formats};
use crate::prune::PruneFlags;
use crate::shell::Shell;
use daemonset::model::Node;
use planner::plan::{self, Drift, Measured};
use render::{self, HtmlOptions};

/// Report drift: where the cluster differs from the source, and which client caused it
///
/// Exits with 3 when there is drift, and with 0 when there is none: for a cron job. A rollout that
/// waits as its policy says is reported, but is no drift until it is forgotten for an hour.
///
/// Kinds: `spec` (the object), `pod` (missing, surplus, outdated, failed or misscheduled pods),
/// `rollout` (paused, aborted or unfinished), `history` (revisions), `eligibility` (pods on nodes
/// where a new pod may not start).
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    source: SourceFlags,

    #[command(flatten)]
    narrow: NarrowFlags,

    /// Output format; `name` prints NAMESPACE/NAME of each DaemonSet with drift
    ///
    /// `html` is a self-contained page, with a map of the fleet and a searchable table of nodes.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    #[arg(value_parser = formats(Format::ALL))]
    #[arg(help_heading = heading::OUTPUT)]
    output: Format,

    #[command(flatten)]
    comment: CommentFlags,

    /// Also write OpenMetrics to this file, atomically, for a textfile collector
    ///
    /// Deviations by class, nodes by state, the state of the rollout and the age of the oldest
    /// outdated pod of each DaemonSet, and when this run succeeded. A run that fails leaves the
    /// file unchanged.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(help_heading = heading::OUTPUT)]
    metrics: Option<PathBuf>,

    /// Also write the page of -o html to this file, atomically
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(help_heading = heading::OUTPUT)]
    report: Option<PathBuf>,

    #[command(flatten)]
    values: ValueFlags,
}

pub(super) async fn run(args: &Args, global: &GlobalFlags, shell: &Shell) -> Result<Exit, Error> {
    let is_markdown = args.output == Format::Markdown;
    let markdown = args.comment.options(is_markdown, global.is_verbose(), &[])?;
    let Decided { drift, measured, nodes } = read_and_decide(args, global, shell).await?;
    let exit = if drift.is_found() { Exit::Drift } else { Exit::Done };
    let verbose = global.is_verbose();
    if let Some(file) = &args.report {
        let written = atomic_write::write(
            file,
            &render::drift_html(&drift, &HtmlOptions { nodes: &nodes, verbose })?,
        );
        written.map_err(|source| Error::Save { file: file.clone(), source })?;
    }
    let options = Options { format: args.output, verbose, markdown: &markdown, nodes: &nodes };
    output::print(drift, &options, shell)?;
    // The last step: the metrics say that the run has succeeded.
    if let Some(file) = &args.metrics {
        save(&measured, file, shell)?;
    }
    Ok(exit)
}

/// The drift, and the data for metrics and HTML.
struct Decided {
    drift: Drift,
    measured: Vec<Measured>,
    nodes: Vec<Node>,
}

async fn read_and_decide(
    args: &Args,
    global: &GlobalFlags,
    shell: &Shell,
) -> Result<Decided, Error> {
    let Compared { snapshot, desired, connection: _ } =
        comparison::read(&args.source, None, &args.narrow, &PruneFlags::default(), global, shell)
            .await?;
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
    let drift = plan::drift(plan::DriftInput {
        snapshot: &snapshot,
        desired: &daemon_sets,
        source,
        warnings,
        show_values: args.values.shown(),
    });
    let measured = plan::measures(&drift, &snapshot);
    Ok(Decided { drift, measured, nodes: snapshot.nodes })
}

fn save(measured: &[Measured], file: &Path, shell: &Shell) -> Result<(), Error> {
    let written = atomic_write::write_for_all(file, &render::metrics(measured, shell.now)?);
    written.map_err(|source| Error::Save { file: file.to_owned(), source })
}
