//! `ds-apply apply`: carries out what the source, or a saved plan, asks for.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::agree::{Asked, Asking, planned};
use super::flags::{CommonFlags, DeletionFlags};
use super::removal::{self, Removal};
use super::session::Session;
use super::turns;
use crate::cli::error::{Error, Place};
use crate::cli::exit::Exit;
use crate::cli::flags::{GlobalFlags, NarrowFlags, SourceFlags, heading};
use crate::cli::input::{self, Desired, Selection};
use crate::cli::prune::PruneFlags;
use crate::cli::shell::Shell;
use crate::cli::{label_selector, warnings};
use crate::cluster::WritableCluster;
use crate::model::{DaemonSetKey, DesiredDaemonSet, LabelSelector, ManagedBy};
use crate::plan::{Binding, DaemonSetPlan, Difference, Plan, Prune, SourceInfo, Stale};
use crate::source::FilesVersion;

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
    prune: PruneFlags,

    /// Only go on with rollouts that a run has left held; begin nothing
    ///
    /// Git must still ask for the template that is live. A way back that was begun is finished too.
    #[arg(long, conflicts_with_all = ["prune", "strict"], help_heading = heading::NARROW)]
    resume: bool,

    /// Of a saved plan: replace exactly the pods in it, or nothing
    #[arg(long)]
    strict: bool,

    #[command(flatten)]
    pub(super) common: CommonFlags,

    #[command(flatten)]
    deletion: DeletionFlags,
}

impl Args {
    /// Whether it reads a source anew each time, and no saved plan.
    pub(super) fn plans_anew(&self, shell: &Shell) -> bool {
        sorted_out(&self.what, shell).is_ok_and(|(plan, _)| plan.is_none())
    }
}

pub(super) async fn run(
    args: &Args,
    global: &GlobalFlags,
    session: &mut Session,
) -> Result<Exit, Error> {
    let prepared = session
        .unless_interrupted(async |shell, cluster| prepare(args, global, shell, cluster).await)
        .await?;
    let Prepared { desired, agreed, version, binding, saved, prune } = prepared;
    let mut common = args.common.clone();
    common.allow.deletion = args.deletion;
    let asking = Asking { args: &common, agreed: &agreed, version: version.as_ref(), binding };
    if !asking.agree(&session.shell, saved)? {
        // Where no controller acts, there may be something to do all the same.
        let mut kept = in_order(&desired);
        kept.retain(|desired| desired.managed_by == ManagedBy::DsApply);
        return asking.each(&kept, session).await;
    }
    let exit = asking.each(&in_order(&desired), session).await?;
    let declared = desired.iter().map(|one| one.key.clone()).collect();
    match prune.of(&declared) {
        None => Ok(exit),
        Some(prune) => remove(&asking, prune, exit, session).await,
    }
}

/// What is not in the source any more goes last, and only if all else is as it should be.
async fn remove(
    asking: &Asking<'_>,
    prune: Prune<'_>,
    exit: Exit,
    session: &mut Session,
) -> Result<Exit, Error> {
    let Asking { args, agreed, version: _, binding } = *asking;
    let keys = removal::keys(agreed);
    if exit != Exit::Done {
        if !keys.is_empty() {
            let names = keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            session.shell.printer.err(format!("not deleted, because not all is done: {names}\n"));
        }
        return Ok(exit);
    }
    let each = keys.into_iter().map(|key| Removal { args, agreed, binding, key, prune }).collect();
    turns::take(each, args.keep_going, session).await
}

/// What is to be carried out.
struct Prepared {
    desired: Vec<DesiredDaemonSet>,
    agreed: Plan,
    /// Which version the manifests are when they are of no commit.
    version: Option<FilesVersion>,
    binding: Binding,
    /// Whether the plan was agreed to before.
    saved: bool,
    /// What becomes of what the source has no longer.
    prune: PruneFlags,
}

async fn prepare(
    args: &Args,
    global: &GlobalFlags,
    shell: &Shell,
    cluster: &WritableCluster,
) -> Result<Prepared, Error> {
    let (file, names) = sorted_out(&args.what, shell)?;
    let saved = file.map(|file| read_plan(&file)).transpose()?;
    let prune = prune_of(args, saved.as_ref())?;
    let narrow = NarrowFlags {
        names: match &saved {
            Some(plan) => planned_names(plan),
            None => names,
        },
        selector: args.selector.clone(),
    };
    prune.refuse_narrowed(&narrow, global.namespace.as_ref())?;
    let source = source_of(args, saved.as_ref());
    let selection =
        Selection { namespace: global.namespace.as_ref(), flags: &narrow, place: Place::Manifests };
    let default_namespace =
        global.namespace.clone().unwrap_or_else(|| cluster.live().default_namespace().clone());
    let mut desired = input::desired(&source, None, &selection, default_namespace, shell)?;
    prune.mark(&mut desired)?;
    let Desired { mut daemon_sets, namespaces: _, base: _, source, version, warnings } = desired;
    for desired in &mut daemon_sets {
        args.common.pace.put_over(desired);
    }
    if let Some(agreed) = saved {
        if args.resume {
            return Err(Error::BesidePlan { flag: "--resume", says: "what is to be done" });
        }
        warnings::print(&warnings, shell.printer);
        all_of(&agreed, &daemon_sets)?;
        let binding = if args.strict { Binding::Pods } else { Binding::Reasons };
        return Ok(Prepared { desired: daemon_sets, agreed, version, binding, saved: true, prune });
    }
    let scope = prune.scope(&daemon_sets);
    let snapshot = cluster.live().snapshot_for(&daemon_sets, &scope, shell.now).await?;
    if args.resume {
        let all = Asked::only(&daemon_sets, source.clone());
        let under_way = under_way(&planned(&snapshot, all, &args.common, shell.now));
        daemon_sets.retain(|one| under_way.contains(&one.key));
    }
    let declared = daemon_sets.iter().map(|one| one.key.clone()).collect();
    let wanted = Asked { desired: &daemon_sets, source, warnings, prune: prune.of(&declared) };
    let agreed = planned(&snapshot, wanted, &args.common, shell.now);
    let binding = Binding::Reasons;
    Ok(Prepared { desired: daemon_sets, agreed, version, binding, saved: false, prune })
}

/// The DaemonSets whose rollout a run has left held.
fn under_way(plan: &Plan) -> BTreeSet<DaemonSetKey> {
    let under_way = plan.daemon_sets.iter().filter(|one| one.is_under_way());
    under_way.map(DaemonSetPlan::key).collect()
}

/// What a saved plan says of its source, else what the flags say.
fn prune_of(args: &Args, saved: Option<&Plan>) -> Result<PruneFlags, Error> {
    match saved {
        None => Ok(args.prune.clone()),
        Some(_) if args.prune.any() => {
            Err(Error::BesidePlan { flag: "--source-id", says: "which source it is of" })
        }
        Some(plan) => Ok(PruneFlags::of_plan(&plan.source)),
    }
}

/// The DaemonSets that a saved plan is about. One that deletes is about all of its source.
fn planned_names(plan: &Plan) -> Vec<DaemonSetKey> {
    match plan.source.prune {
        Some(_) => Vec::new(),
        None => plan.daemon_sets.iter().map(DaemonSetPlan::key).collect(),
    }
}

/// A plan that deletes is of a whole source, and what that contains is known before anything is
/// done.
fn all_of(agreed: &Plan, desired: &[DesiredDaemonSet]) -> Result<(), Error> {
    let gone = removal::keys(agreed);
    let planned: BTreeSet<DaemonSetKey> =
        agreed.daemon_sets.iter().map(DaemonSetPlan::key).filter(|it| !gone.contains(it)).collect();
    let now: BTreeSet<DaemonSetKey> = desired.iter().map(|one| one.key.clone()).collect();
    let more = now.difference(&planned).map(|key| (key, Difference::NotPlanned));
    let fewer = planned.difference(&now).map(|key| (key, Difference::NoLongerDesired));
    let stale = more.chain(fewer).map(|(key, what)| Stale { daemon_set: key.clone(), what });
    let stale: Vec<Stale> = stale.collect();
    if stale.is_empty() { Ok(()) } else { Err(Error::Stale(stale)) }
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

/// The DaemonSets in the order of their policies, else by name.
fn in_order(desired: &[DesiredDaemonSet]) -> Vec<&DesiredDaemonSet> {
    let mut all: Vec<_> = desired.iter().collect();
    let order = |one: &DesiredDaemonSet| one.policy.as_ref().map_or(0, |it| it.spec.order);
    all.sort_by_key(|one| (order(one), &one.key));
    all
}
