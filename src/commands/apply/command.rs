//! `ds-apply apply`: applies the DaemonSets of a source, or a saved plan.

use std::collections::BTreeSet;

use super::approve::{Approved, Asking};
use super::flags::{CommonFlags, DeletionFlags};
use super::in_sequence;
use super::permitted;
use super::planning::{ApprovalRequest, planned};
use super::predecessors::Predecessors;
use super::removal::{self, Removal};
use super::saved::{SavedFlags, SavedPlan};
use super::session::Session;
use crate::error::{Error, Place, SavedPlanError};
use crate::exit::Exit;
use crate::flags::name::{GivenName, NAME};
use crate::flags::{GlobalFlags, NarrowFlags, SourceFlags, heading};
use crate::input::{self, Desired, Reading, Selection};
use crate::prune::PruneFlags;
use crate::shell::Shell;
use cluster::{Scope, WritableCluster};
use daemonset::model::mask::Salt;
use daemonset::model::{
    DaemonSetKey, DesiredDaemonSet, LabelSelector, ManagedBy, NamespaceName, Snapshot,
};
use planner::plan::{self, DaemonSetPlan, Difference, Plan, Prune, Stale};
use planner::rollout::Extent;
use source::{FilesVersion, ReferenceName};

/// Apply the DaemonSets in git, or a saved plan (the default)
///
/// Prints the plan and asks; replaces pods within the budget; stops safely when new pods fail. Run
/// it again to resume a run that was stopped or killed.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Only these DaemonSets: NAME or ds/NAME (in the namespace of -n), or NAMESPACE/NAME
    #[arg(value_name = NAME, value_parser = parse_name)]
    names: Vec<GivenName>,

    #[command(flatten)]
    saved: SavedFlags,

    #[command(flatten)]
    pub(super) source: SourceFlags,

    /// Require the commit to be in the history of this reference: `refs/remotes/origin/main`
    #[arg(long, value_name = "REF", help_heading = heading::SOURCE, conflicts_with = "filename")]
    require_ref: Option<ReferenceName>,

    /// Only DaemonSets whose labels match: `a=b`, `a!=b`, `a in (b,c)`, `a notin (b)`, `a`, `!a`
    #[arg(short = 'l', long = "selector", value_name = "SELECTOR")]
    #[arg(help_heading = heading::NARROW)]
    selector: Option<LabelSelector>,

    #[command(flatten)]
    prune: PruneFlags,

    /// Only resume rollouts that a run has left paused or waiting; start none
    ///
    /// For schedules. Git must still declare the template of the rollout. One that a run could not
    /// begin, because it waits for a window, an approval or another DaemonSet, is resumed too, and a
    /// rollback that was started is finished.
    #[arg(long, conflicts_with_all = ["prune"], help_heading = heading::NARROW)]
    resume: bool,

    #[command(flatten)]
    pub(super) common: CommonFlags,

    #[command(flatten)]
    deletion: DeletionFlags,
}

impl Args {
    /// Whether the command plans from a source each time, and not from a saved plan.
    pub(super) fn plans_again(&self) -> bool {
        self.saved.plan.is_none()
    }

    /// The location of the manifests.
    fn source_of(&self, saved: Option<&SavedPlan>) -> Result<SourceFlags, Error> {
        let source = match saved {
            Some(saved) => saved.source(&self.source)?,
            None => self.source.clone(),
        };
        Ok(SourceFlags { require_ref: self.require_ref.clone(), ..source })
    }

    /// The flags for pruning: those recorded in a saved plan, otherwise those of the command line.
    fn prune(&self, saved: Option<&SavedPlan>) -> PruneFlags {
        saved.map_or_else(|| self.prune.clone(), |saved| PruneFlags::of_plan(&saved.plan.source))
    }
}

/// Parses the name of a DaemonSet; the error mentions `--plan`, in case a file was meant.
fn parse_name(text: &str) -> Result<GivenName, String> {
    text.parse().map_err(|error| format!("{error}; to apply a saved plan, use `--plan FILE`"))
}

pub(super) async fn run(
    args: &Args,
    global: &GlobalFlags,
    session: &mut Session,
) -> Result<Exit, Error> {
    let masked = session.masked;
    let prepared = session
        .unless_interrupted(async |shell, cluster| {
            prepare(args, global, masked, shell, cluster).await
        })
        .await?;
    let Prepared { desired, predecessors, now, pulling, saved, version, prune } = prepared;
    let mut common = args.common.clone();
    common.allow.deletion = args.deletion;
    let approved = saved.as_ref().unwrap_or(&now);
    let binding = args.saved.binding();
    let (version, predecessors) = (version.as_ref(), &predecessors);
    let asking = Asking { args: &common, approved, version, binding, predecessors };
    let errands = permitted::errands(&now, &desired);
    let Approved { any, blocked } =
        asking.approve(&now, &errands, saved.is_some(), session).await?;
    if args.common.dry_run {
        return Ok(if blocked.is_empty() { Exit::Done } else { Exit::Blocked });
    }
    if !any {
        // Without a controller in the cluster, pods may have to be reconciled without changes; and a
        // run that was killed may have left pods that pull images.
        let mut kept = in_order(&desired, predecessors);
        kept.retain(|one| one.managed_by == ManagedBy::DsApply || pulling.contains(&one.key));
        if !kept.is_empty() {
            permitted::check(&errands, permitted::paused(&now), session).await?;
        }
        return asking.each(&kept, &blocked, session).await;
    }
    let exit = asking.each(&in_order(&desired, predecessors), &blocked, session).await?;
    let declared = desired.iter().map(|one| one.key.clone()).collect();
    match prune.of(&declared, &approved.source.prune_namespaces) {
        None => Ok(exit),
        Some(prune) => {
            let gone = removal::keys(approved);
            // A blocked deletion does not stop the other deletions.
            let others = desired.iter().any(|one| blocked.contains(&one.key));
            let only_gone = exit == Exit::Blocked && !others;
            let so_far = if only_gone { Exit::Done } else { exit };
            let keys = gone.difference(&blocked).cloned().collect();
            let done = remove(&asking, (prune, keys), so_far, session).await?;
            Ok(exit.or_more_severe(done))
        }
    }
}

/// Deletes the DaemonSets that are no longer in the source, last and only if the rest succeeded.
async fn remove(
    asking: &Asking<'_>,
    (prune, keys): (Prune<'_>, BTreeSet<DaemonSetKey>),
    exit: Exit,
    session: &mut Session,
) -> Result<Exit, Error> {
    let Asking { args, approved, version: _, binding, predecessors: _ } = *asking;
    if keys.is_empty() {
        return Ok(exit);
    }
    if exit != Exit::Done {
        let names = keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let text = format!("not deleted, because the rest did not succeed: {names}\n");
        session.shell.printer.err(text);
        return Ok(exit);
    }
    removal::check_source(args, &approved.source, prune, session).await?;
    let each =
        keys.into_iter().map(|key| Removal { args, approved, binding, key, prune }).collect();
    in_sequence::take(each, args.keep_going, session).await
}

/// The input of an apply.
struct Prepared {
    desired: Vec<DesiredDaemonSet>,
    /// The DaemonSets that come before others.
    predecessors: Predecessors,
    /// The plan on the current cluster: it is shown, and its guards apply.
    now: Plan,
    /// The DaemonSets with pods that pull images.
    pulling: BTreeSet<DaemonSetKey>,
    /// The DaemonSets of a saved plan, with everything else from the plan of `now`.
    saved: Option<Plan>,
    /// The version of the manifests if they are plain files.
    version: Option<FilesVersion>,
    /// The flags for DaemonSets that are no longer in the source.
    prune: PruneFlags,
}

async fn prepare(
    args: &Args,
    global: &GlobalFlags,
    masked: Option<Salt>,
    shell: &Shell,
    cluster: &WritableCluster,
) -> Result<Prepared, Error> {
    let saved = args.saved.read(&global.signature, shell)?;
    if saved.is_none() && global.snapshot.is_none() && global.signature.is_demanded() {
        return Err(SavedPlanError::NothingSigned.into());
    }
    let prune = args.prune(saved.as_ref());
    let narrow = NarrowFlags { names: args.names.clone(), selector: args.selector.clone() };
    prune.refuse_narrowed(&narrow, global.namespace.as_ref())?;
    let source = args.source_of(saved.as_ref())?;
    let namespace = global.namespace.as_ref();
    let default_namespace = default_namespace(global, cluster);
    let mut selection = Selection::of(&narrow, namespace, &default_namespace, Place::Manifests)?;
    if let Some(saved) = &saved {
        selection.names = saved.names();
    }
    let every_file = prune.every_file();
    let reading = Reading { flags: &source, base: None, every_file, default_namespace };
    let desired = read(reading, &selection, masked, shell);
    let mut desired = desired.map_err(|error| match &saved {
        Some(saved) => saved.repository_named(error),
        None => error,
    })?;
    prune.mark(&mut desired)?;
    if let Some(saved) = &saved {
        saved.is_of(&desired.source)?;
        all_of(&saved.plan, &desired.daemon_sets)?;
    }
    let scope = prune.scope(&desired.daemon_sets);
    let mut snapshot = seen(&desired.daemon_sets, &scope, cluster, shell).await?;
    let precedence = desired.assign_policies(&snapshot)?;
    cluster.live().read_approvals(&desired.daemon_sets, &mut snapshot).await?;
    let Desired { mut daemon_sets, mut others, namespaces, source, version, warnings, .. } =
        desired;
    for desired in &mut daemon_sets {
        args.common.pace.put_over(desired);
    }
    if args.resume {
        let all = ApprovalRequest::only(&daemon_sets, source.clone());
        let plan = planned(&snapshot, all, &args.common, shell.now);
        let under_way = under_way(&plan, &snapshot);
        let (resumed, rest) = daemon_sets.into_iter().partition(|one| under_way.contains(&one.key));
        daemon_sets = resumed;
        others.extend::<Vec<_>>(rest);
    }
    let declared = daemon_sets.iter().map(|one| one.key.clone()).collect();
    let pruned = source.prune_namespaces.clone();
    let gone = prune.of(&declared, &pruned);
    let (desired, namespaces) = (&*daemon_sets, &namespaces);
    let extent = &Extent::All;
    let wanted = ApprovalRequest { desired, source, warnings, prune: gone, namespaces, extent };
    let mut now = planned(&snapshot, wanted, &args.common, shell.now);
    let binding = args.saved.binding();
    let saved = saved.map(|saved| saved.approved(&mut now, binding)).transpose()?;
    let predecessors = Predecessors { precedence, others };
    let keys = daemon_sets.iter().map(|one| one.key.clone());
    let pulling = keys.filter(|key| snapshot.has_pullers(key)).collect();
    Ok(Prepared { desired: daemon_sets, predecessors, now, pulling, saved, version, prune })
}

/// Reads the manifests. In a rehearsal on a masked recording they are masked with its salt, so that
/// the digests in its copy are compared with digests, and only digests are applied to it.
fn read(
    reading: Reading<'_>,
    selection: &Selection<'_>,
    masked: Option<Salt>,
    shell: &Shell,
) -> Result<Desired, Error> {
    let read = input::desired(reading, selection, shell);
    let mut desired = read.map_err(|error| files_named(error, shell))?;
    if let Some(salt) = masked {
        for all in [&mut desired.daemon_sets, &mut desired.others] {
            *all = plan::masked(all, &salt);
        }
    }
    Ok(desired)
}

/// The namespace of names and manifests that have none: of `-n`, or of the kubeconfig's context.
pub(super) fn default_namespace(global: &GlobalFlags, cluster: &WritableCluster) -> NamespaceName {
    global.namespace.clone().unwrap_or_else(|| cluster.live().default_namespace().clone())
}

/// Replaces the error of an unknown DaemonSet if a file has that name: a saved plan may be meant.
fn files_named(error: Error, shell: &Shell) -> Error {
    match error {
        Error::NotFound { missing, place, known } => {
            // As `folder/file`, or as a name without a namespace.
            let forms = missing.iter().flat_map(|key| [key.to_string(), key.name.to_string()]);
            match forms.into_iter().find(|form| shell.current_dir.join(form).is_file()) {
                Some(file) => SavedPlanError::FileAsName(file).into(),
                None => Error::NotFound { missing, place, known },
            }
        }
        error => error,
    }
}

/// Reads the cluster; if that is forbidden, the error lists all other missing permissions, too.
async fn seen(
    desired: &[DesiredDaemonSet],
    scope: &Scope,
    cluster: &WritableCluster,
    shell: &Shell,
) -> Result<Snapshot, Error> {
    match cluster.live().snapshot_for(desired, scope, shell.now).await {
        Ok(snapshot) => Ok(snapshot),
        Err(error) => {
            let errands = permitted::errands_unseen(desired);
            Err(permitted::besides(error, &errands, cluster).await)
        }
    }
}

/// The DaemonSets whose rollout a run has left paused or waiting, also before the first node.
fn under_way(plan: &Plan, snapshot: &Snapshot) -> BTreeSet<DaemonSetKey> {
    let is_noted = |one: &DaemonSetPlan| {
        let note = snapshot.steps_note(&one.key());
        note.is_some_and(|note| note.is_under_way(&one.target_template))
    };
    let under_way = plan.daemon_sets.iter().filter(|one| one.is_under_way() || is_noted(one));
    under_way.map(DaemonSetPlan::key).collect()
}

/// Checks that a saved plan has exactly the DaemonSets of the source, before anything is written.
fn all_of(approved: &Plan, desired: &[DesiredDaemonSet]) -> Result<(), Error> {
    let gone = removal::keys(approved);
    let planned: BTreeSet<DaemonSetKey> = approved
        .daemon_sets
        .iter()
        .map(DaemonSetPlan::key)
        .filter(|it| !gone.contains(it))
        .collect();
    let now: BTreeSet<DaemonSetKey> = desired.iter().map(|one| one.key.clone()).collect();
    let more = now.difference(&planned).map(|key| (key, Difference::NotPlanned));
    let fewer = planned.difference(&now).map(|key| (key, Difference::NoLongerDesired));
    let stale = more.chain(fewer).map(|(key, what)| Stale { daemon_set: key.clone(), what });
    let stale: Vec<Stale> = stale.collect();
    if stale.is_empty() { Ok(()) } else { Err(Error::Stale(stale)) }
}

/// The DaemonSets in the order of `after` in their policies, else by name.
fn in_order<'a>(
    desired: &'a [DesiredDaemonSet],
    predecessors: &Predecessors,
) -> Vec<&'a DesiredDaemonSet> {
    let mut all: Vec<_> = desired.iter().collect();
    let rank = predecessors.precedence.rank();
    all.sort_by_key(|one| (rank(&one.key), &one.key));
    all
}
