//! `ds-apply release`: restores the declared strategy of a paused DaemonSet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::approve::{DRY_RUN, ask, show};
use super::flags::{CommonFlags, NamedFlags};
use super::in_sequence::{self, InSequence};
use super::permitted;
use super::planning::{ApprovalRequest, planned};
use super::session::{Session, find, unlock};
use super::{identity, progress};
use crate::error::Error;
use crate::exit::Exit;
use crate::output::Format;
use cluster::Lock;
use daemonset::controller::Owner;
use daemonset::model::{DaemonSet, DaemonSetKey, ManagedBy, PolicySpec, Snapshot};
use executor::permissions::{Errand, Work};
use planner::live_object::{pause, with_template, written};
use planner::plan::{self, Binding, Plan, SourceInfo};
use planner::rollout::{ClusterChecks, Goal, Provenance, Task};

/// The heading of the plan that follows a release.
fn heading(managed_by: ManagedBy) -> &'static str {
    match managed_by {
        ManagedBy::DaemonSetController => "The controller will do this by itself, at its own pace:",
        ManagedBy::DsApply => "This happens when ds-apply runs again, which then paces it:",
    }
}

/// Restore the declared update strategy, whatever the controller then does
///
/// Prints what the controller will then do at once. Where `ds-apply` is the controller, its next
/// run does it.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) named: NamedFlags,
}

pub(super) async fn run(
    args: &Args,
    keys: &[DaemonSetKey],
    session: &mut Session,
) -> Result<Exit, Error> {
    let NamedFlags { names: _, common } = &args.named;
    if !common.dry_run {
        permitted::check_named(keys, Work::Release, |_, errand| errand, session).await?;
    }
    let each = keys.iter().map(|key| One { key, args: common }).collect();
    in_sequence::take(each, common.keep_going, session).await
}

/// The release of one DaemonSet.
struct One<'a> {
    key: &'a DaemonSetKey,
    args: &'a CommonFlags,
}

impl InSequence for One<'_> {
    fn key(&self) -> &DaemonSetKey {
        self.key
    }

    async fn run(&self, session: &mut Session) -> Result<Exit, Error> {
        release(self.args, self.key, session).await
    }
}

async fn release(
    args: &CommonFlags,
    key: &DaemonSetKey,
    session: &mut Session,
) -> Result<Exit, Error> {
    let Some((snapshot, plan)) = look(args, key, session).await? else {
        return not_paused(args, key, session);
    };
    let live = find(&snapshot, key)?;
    show(&plan, Some(heading(live.managed_by)), args, &session.shell)?;
    if args.dry_run {
        session.shell.printer.remark(DRY_RUN);
        return Ok(Exit::Done);
    }
    let errand = Errand::with(key, live.managed_by, Work::Release);
    permitted::check(&[errand], vec![key.clone()], session).await?;
    if !args.yes {
        ask(&session.shell)?;
    }
    let lock = session.lock(key, &args.pace, args.output).await?;
    let done = Box::pin(under(&lock, &plan, args, key, session)).await;
    unlock(lock).await;
    done
}

/// Releases the DaemonSet under its lock, if the plan is still as it was shown.
async fn under(
    lock: &Arc<Lock>,
    shown: &Plan,
    args: &CommonFlags,
    key: &DaemonSetKey,
    session: &mut Session,
) -> Result<Exit, Error> {
    let Some((snapshot, plan)) = look(args, key, session).await? else {
        return not_paused(args, key, session);
    };
    // Guards do not block a release.
    let stale = plan::stale(shown, &plan, Binding::Reasons);
    if !stale.is_empty() {
        return Err(Error::Stale(stale));
    }
    let live = find(&snapshot, key)?;
    let task = task(live, &snapshot, args, session)?;
    let ending = session.run_rollout(&Owner::from(live), lock, task, args.output).await?;
    Ok(progress::exit(&ending.outcome))
}

/// The cluster, and the plan of the controller once the strategy is restored; `None` if the DaemonSet is
/// not paused.
async fn look(
    args: &CommonFlags,
    key: &DaemonSetKey,
    session: &mut Session,
) -> Result<Option<(Snapshot, Plan)>, Error> {
    let snapshot = session.snapshot(key).await?;
    let live = find(&snapshot, key)?;
    let Some(pause) = pause(live)? else { return Ok(None) };
    let desired = [with_template(live, Some(&pause), &live.spec.template)?];
    let wanted = ApprovalRequest::only(&desired, SourceInfo::default());
    let plan = planned(&snapshot, wanted, args, session.shell.now);
    Ok(Some((snapshot, plan)))
}

/// The task that restores the strategy.
fn task(
    live: &DaemonSet,
    snapshot: &Snapshot,
    args: &CommonFlags,
    session: &Session,
) -> Result<Task, Error> {
    Ok(Task {
        goal: Goal::Release { written: Arc::new(written(live)?) },
        policy: PolicySpec::default(),
        waves: Vec::new(),
        provenance: Provenance { by: Some(identity::by(&session.holder)), ..Provenance::default() },
        deadline: session.ends(&args.pace, snapshot.observed_at),
        allow_mass_eviction: true,
        failed_templates: BTreeSet::new(),
        note: None,
        approvals: BTreeMap::new(),
        node_seconds: None,
        has_pullers: false,
        cluster_checks: ClusterChecks::Observed,
        wait_until: None,
    })
}

/// Says that there is nothing to release.
fn not_paused(args: &CommonFlags, key: &DaemonSetKey, session: &Session) -> Result<Exit, Error> {
    let (printer, words) = (session.shell.printer, format!("{key} is not paused\n"));
    match args.output {
        // Standard output has only events.
        Format::Json => printer.err(words),
        _text => printer.out(words).map_err(Error::Output)?,
    }
    Ok(Exit::Done)
}
