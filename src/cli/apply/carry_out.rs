//! `ds-apply apply`: carries out what the source, or a saved plan, asks for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use tokio::sync::mpsc;

use super::agree;
use super::flags::{AllowFlags, PaceFlags};
use super::identity;
use super::told::Format;
use super::turn::Turn;
use crate::apply::Interrupt;
use crate::cli::connection::{self, Connection};
use crate::cli::error::{Error, Place};
use crate::cli::exit::Exit;
use crate::cli::flags::{GlobalFlags, NarrowFlags, OwnershipFlags, SourceFlags, heading};
use crate::cli::input::{self, Desired, Selection};
use crate::cli::shell::Shell;
use crate::cli::{label_selector, warnings};
use crate::cluster::{Holder, Scope, WritableCluster};
use crate::model::{DaemonSetKey, DesiredDaemonSet, LabelSelector, Snapshot};
use crate::plan::{self, Binding, DaemonSetPlan, Detail, Plan, SourceInfo};
use crate::render;

/// Carry out what git asks for, or a saved plan (the default)
///
/// Prints the plan and asks; replaces pods within the budget; stops safely when new pods fail. A
/// run that was stopped or killed is continued by running it again.
#[derive(clap::Args, Clone, Debug)]
pub(in crate::cli) struct Args {
    /// A plan that `ds-plan --out` saved, or only these DaemonSets (NAMESPACE/NAME)
    #[arg(value_name = "PLAN or NAMESPACE/NAME")]
    what: Vec<OsString>,

    #[command(flatten)]
    source: SourceFlags,

    /// Only DaemonSets whose labels match: `a=b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a`, `!a`
    #[arg(short = 'l', long = "selector", value_name = "SELECTOR")]
    #[arg(help_heading = heading::NARROW, value_parser = label_selector::parse)]
    selector: Option<LabelSelector>,

    #[command(flatten)]
    pub(super) ownership: OwnershipFlags,

    /// Carry it out without asking
    #[arg(short, long)]
    yes: bool,

    /// Of a saved plan: replace exactly the pods in it, or nothing
    #[arg(long)]
    strict: bool,

    /// Go on with the next DaemonSet when one is held
    #[arg(long)]
    keep_going: bool,

    /// How to tell what happens
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    #[arg(help_heading = heading::OUTPUT)]
    pub(super) output: Format,

    #[command(flatten)]
    pub(super) pace: PaceFlags,

    #[command(flatten)]
    pub(super) allow: AllowFlags,
}

/// The process around a run: its cluster, and how it is interrupted.
pub(super) struct Session {
    pub(super) shell: Shell,
    pub(super) cluster: WritableCluster,
    pub(super) holder: Holder,
    pub(super) interrupts: mpsc::Receiver<Interrupt>,
}

impl Session {
    /// Makes ready to speak to the cluster.
    pub(super) async fn open(
        global: &GlobalFlags,
        shell: &Shell,
        interrupts: mpsc::Receiver<Interrupt>,
    ) -> Result<Self, Error> {
        match connection::open(global, shell).await? {
            Connection::Recorded(_) => Err(Error::WritingToRecording),
            Connection::Live(live) => Ok(Self {
                shell: shell.clone(),
                cluster: live.writable(),
                holder: identity::holder(shell)?,
                interrupts,
            }),
        }
    }
}

pub(super) async fn run(
    args: &Args,
    global: &GlobalFlags,
    mut session: Session,
) -> Result<Exit, Error> {
    let prepared = tokio::select! {
        prepared = prepare(args, global, &session.shell, &session.cluster) => prepared?,
        Some(Interrupt) = session.interrupts.recv() => return Ok(Exit::Interrupted),
    };
    let Prepared { desired, agreed, binding, saved } = prepared;
    show(&agreed, args, &session.shell)?;
    let refusals = agree::refusals(&agreed, args.allow);
    if !refusals.is_empty() {
        return Err(Error::Refused(refusals));
    }
    if !agreed.has_changes() {
        return Ok(Exit::Done);
    }
    if !args.yes && !saved {
        agree::ask(&session.shell)?;
    }
    let mut exit = Exit::Done;
    for one in in_order(&desired) {
        let turn = Turn { args, agreed: &agreed, binding, desired: one };
        exit = exit.or_graver(turn.carry_out(&mut session).await?);
        if exit != Exit::Done && !args.keep_going {
            break;
        }
    }
    Ok(exit)
}

/// What is to be carried out.
struct Prepared {
    desired: Vec<DesiredDaemonSet>,
    agreed: Plan,
    binding: Binding,
    /// Whether the plan was agreed to before.
    saved: bool,
}

async fn prepare(
    args: &Args,
    global: &GlobalFlags,
    shell: &Shell,
    cluster: &WritableCluster,
) -> Result<Prepared, Error> {
    let (file, names) = sorted_out(&args.what, shell)?;
    let saved = file.map(|file| read_plan(&file)).transpose()?;
    let narrow = NarrowFlags {
        names: match &saved {
            Some(plan) => plan.daemon_sets.iter().map(DaemonSetPlan::key).collect(),
            None => names,
        },
        selector: args.selector.clone(),
    };
    let source = source_of(args, saved.as_ref());
    let selection =
        Selection { namespace: global.namespace.as_ref(), flags: &narrow, place: Place::Manifests };
    let default_namespace =
        global.namespace.clone().unwrap_or_else(|| cluster.live().default_namespace().clone());
    let Desired { mut daemon_sets, base: _, source, warnings } =
        input::desired(&source, None, &selection, default_namespace, shell)?;
    for desired in &mut daemon_sets {
        args.pace.put_over(desired);
    }
    let agreed = match saved {
        Some(plan) => {
            warnings::print(&warnings, shell.printer);
            return Ok(Prepared {
                desired: daemon_sets,
                agreed: plan,
                binding: if args.strict { Binding::Pods } else { Binding::Reasons },
                saved: true,
            });
        }
        None => {
            let namespaces = daemon_sets.iter().map(|one| one.key.namespace.clone()).collect();
            let scope = Scope::Namespaces(namespaces);
            let snapshot = cluster.live().snapshot(&scope, shell.now).await?;
            planned(&snapshot, &daemon_sets, source, warnings, args, shell.now)
        }
    };
    Ok(Prepared { desired: daemon_sets, agreed, binding: Binding::Reasons, saved: false })
}

/// A file that is there is a plan; everything else must be a name.
fn sorted_out(
    what: &[OsString],
    shell: &Shell,
) -> Result<(Option<PathBuf>, Vec<DaemonSetKey>), Error> {
    if let [one] = what
        && shell.current_dir.join(one).is_file()
    {
        return Ok((Some(shell.current_dir.join(one)), Vec::new()));
    }
    let names = what.iter().map(|name| {
        let name = name.to_string_lossy();
        name.parse().map_err(|_| Error::NeitherPlanNorName(name.into_owned()))
    });
    Ok((None, names.collect::<Result<_, _>>()?))
}

fn read_plan(file: &Path) -> Result<Plan, Error> {
    let text =
        std::fs::read(file).map_err(|source| Error::OpenPlan { file: file.to_owned(), source })?;
    serde_json::from_slice(&text)
        .map_err(|source| Error::PlanFile { file: file.to_owned(), source })
}

/// Where a saved plan's manifests are: at its commit, unless the flags say otherwise.
fn source_of(args: &Args, saved: Option<&Plan>) -> SourceFlags {
    let mut flags = args.source.clone();
    if let Some(SourceInfo { commit: Some(commit), paths, .. }) = saved.map(|plan| &plan.source)
        && flags.filename.is_empty()
    {
        flags.rev.get_or_insert_with(|| commit.clone());
        if flags.path.is_empty() {
            flags.path = paths.iter().map(PathBuf::from).collect();
        }
    }
    flags
}

/// The plan of what the source asks for, on this snapshot.
pub(super) fn planned(
    snapshot: &Snapshot,
    desired: &[DesiredDaemonSet],
    source: SourceInfo,
    warnings: Vec<plan::Warning>,
    args: &Args,
    created_at: Timestamp,
) -> Plan {
    plan::plan(plan::Input {
        snapshot,
        desired,
        take_over: &args.ownership.names(),
        base: None,
        source,
        warnings,
        created_at,
        detail: Detail::default(),
    })
}

fn show(plan: &Plan, args: &Args, shell: &Shell) -> Result<(), Error> {
    let mut plan = plan.clone();
    warnings::print(&std::mem::take(&mut plan.warnings), shell.printer);
    match args.output {
        Format::Text => {
            let text = render::plan_text(&plan, &shell.text_options(false));
            shell.printer.out(text).map_err(Error::Output)
        }
        // One event a line; the plan is `ds-plan -o json`'s affair.
        Format::Json => Ok(()),
    }
}

/// The DaemonSets in the order of their policies, else by name.
fn in_order(desired: &[DesiredDaemonSet]) -> Vec<&DesiredDaemonSet> {
    let mut all: Vec<_> = desired.iter().collect();
    let order = |one: &DesiredDaemonSet| one.policy.as_ref().map_or(0, |it| it.spec.order);
    all.sort_by_key(|one| (order(one), &one.key));
    all
}
