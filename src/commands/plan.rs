//! `ds-plan plan`: the effect of applying the source on every node.

use std::path::{Path, PathBuf};

use clap::ValueHint;

use crate::atomic_write;
use crate::comparison::{self, Compared};
use crate::error::Error;
use crate::exit::Exit;
use crate::file_digest::FileDigest;
use crate::flags::{
    CommentFlags, GlobalFlags, NarrowFlags, OwnershipFlags, SourceFlags, ValueFlags, heading,
};
use crate::input::Desired;
use crate::output::{self, Format, Options, formats};
use crate::prune::PruneFlags;
use crate::shell::Shell;
use daemonset::model::Node;
use planner::plan::{self, Detail, Intent, Plan};
use planner::rollout::Extent;
use render::{self, HtmlOptions, MarkdownOptions};

/// Show what applying the source would do to every node, and why (the default)
///
/// Reads DaemonSets from git (or files), compares them with the cluster (or a recorded one) by the
/// DaemonSet controller's own rules, and writes to neither.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    source: SourceFlags,

    #[command(flatten)]
    narrow: NarrowFlags,

    #[command(flatten)]
    ownership: OwnershipFlags,

    #[command(flatten)]
    prune: PruneFlags,

    /// Output format; `name` prints NAMESPACE/NAME of each DaemonSet that changes
    ///
    /// `markdown` is for a pull request comment or a job summary: the effect of merging in the
    /// first line, one row per DaemonSet, the rest collapsed, at most 60,000 characters. `html` is
    /// a self-contained page, with a map of the fleet and a searchable table of nodes: it loads
    /// nothing, so it can be kept as a job's artifact and opened anywhere.
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    #[arg(value_parser = formats(Format::ALL))]
    #[arg(help_heading = heading::OUTPUT)]
    output: Format,

    #[command(flatten)]
    comment: CommentFlags,

    #[command(flatten)]
    detail: DetailFlags,

    /// Show changes since the merge base with this revision apart from existing drift
    ///
    /// For pull requests: `--base origin/main`; a remote branch takes precedence over a tag of the
    /// same name. Policies, those of `--policy` too, are read at the tip of this revision, so that
    /// a pull request cannot loosen the policy that applies to it; guard `policyChange` reports one
    /// that tries.
    #[arg(long, value_name = "REV", help_heading = heading::SOURCE, conflicts_with = "filename")]
    base: Option<String>,

    /// Also save the plan as JSON, atomically, and print its SHA-256
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(help_heading = heading::OUTPUT)]
    out: Option<PathBuf>,

    /// Also write the page of -o html to this file, atomically
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(help_heading = heading::OUTPUT)]
    report: Option<PathBuf>,

    #[command(flatten)]
    exit: ExitFlags,
}

/// The flags for the content of the plan.
#[derive(clap::Args, Clone, Debug)]
struct DetailFlags {
    /// Include nodes with nothing to do
    #[arg(long, help_heading = heading::OUTPUT)]
    all_nodes: bool,

    #[command(flatten)]
    values: ValueFlags,
}

/// The flags for the exit code.
#[derive(clap::Args, Clone, Copy, Debug)]
struct ExitFlags {
    /// Exit with 2 when there are changes, and with 0 only when there are none
    #[arg(long, help_heading = heading::OUTPUT)]
    detailed_exitcode: bool,

    /// Exit with 6 when a guard blocks the plan
    #[arg(long, help_heading = heading::OUTPUT)]
    fail_on_guards: bool,
}

pub(super) async fn run(args: &Args, global: &GlobalFlags, shell: &Shell) -> Result<Exit, Error> {
    let Decided { plan, markdown, nodes } = read_and_decide(args, global, shell).await?;
    let verbose = global.is_verbose();
    let exit = exit(&plan, args.exit);
    if let Some(file) = &args.out {
        let text = render::json(&plan)?;
        save(&text, file)?;
        let digest = FileDigest::of(text.as_bytes());
        shell.printer.remark(format!("saved {}, {digest}\n", file.display()));
    }
    if let Some(file) = &args.report {
        save(&render::plan_html(&plan, &HtmlOptions { nodes: &nodes, verbose })?, file)?;
    }
    let options = Options { format: args.output, verbose, markdown: &markdown, nodes: &nodes };
    output::print(plan, &options, shell)?;
    Ok(exit)
}

/// The plan, and what its layouts need besides.
struct Decided {
    plan: Plan,
    markdown: MarkdownOptions,
    /// The nodes of the cluster.
    nodes: Vec<Node>,
}

async fn read_and_decide(
    args: &Args,
    global: &GlobalFlags,
    shell: &Shell,
) -> Result<Decided, Error> {
    let base = args.base.as_deref();
    let Compared { snapshot, desired, connection: _ } =
        comparison::read(&args.source, base, &args.narrow, &args.prune, global, shell).await?;
    let declared = desired.daemon_sets.iter().map(|one| one.key.clone()).collect();
    let Desired {
        daemon_sets,
        others: _,
        namespaces,
        base,
        removed,
        source,
        version: _,
        warnings,
        assignment: _,
    } = desired;
    let is_markdown = args.output == Format::Markdown;
    let markdown = args.comment.options(is_markdown, global.is_verbose(), &snapshot.nodes)?;
    let pruned = source.prune_namespaces.clone();
    let plan = plan::plan(plan::Input {
        snapshot: &snapshot,
        desired: &daemon_sets,
        created_namespaces: &namespaces,
        force_conflicts: &args.ownership.names(),
        prune: args.prune.of(&declared, &pruned),
        base: base.as_deref(),
        removed: &removed,
        source,
        warnings,
        created_at: shell.now,
        extent: &Extent::All,
        intent: Intent::Preview,
        detail: detail(&args.detail),
    });
    Ok(Decided { plan, markdown, nodes: snapshot.nodes })
}

fn save(text: &str, file: &Path) -> Result<(), Error> {
    let written = atomic_write::write(file, text);
    written.map_err(|source| Error::Save { file: file.to_owned(), source })
}

fn detail(DetailFlags { all_nodes, values }: &DetailFlags) -> Detail<'_> {
    Detail { all_nodes: *all_nodes, show_values: values.shown() }
}

fn exit(plan: &Plan, ExitFlags { detailed_exitcode, fail_on_guards }: ExitFlags) -> Exit {
    let changes = detailed_exitcode && plan.has_changes();
    let blocked = fail_on_guards && !plan.guards.is_empty();
    let exit = if changes { Exit::Changes } else { Exit::Done };
    exit.or_more_severe(if blocked { Exit::Blocked } else { Exit::Done })
}
