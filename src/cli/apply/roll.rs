//! `ds-apply roll` and `step`: replace the outdated pods of a DaemonSet that declares `OnDelete`,
//! in waves, without ever writing the object.

use std::collections::BTreeSet;

use super::agree::{Asked, Asking, planned, still_agreed};
use super::flags::{CommonFlags, NamedFlags};
use super::on_live::{as_if_rolling, find, hold, with_template};
use super::permitted;
use super::session::{Session, unlock};
use super::turns::{self, InTurn};
use super::{identity, told};
use crate::apply::permissions::{Errand, Work};
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::controller::Owner;
use crate::model::{
    DaemonSetKey, IntOrPercent, NodeName, PolicySpec, RolloutPolicy, Snapshot, UpdateStrategy,
};
use crate::plan::{Binding, GuardCode, Plan, SourceInfo};
use crate::rollout::{Extent, Goal, Provenance, Task};

/// Replace the outdated pods of DaemonSets that declare OnDelete, in waves
///
/// For objects that somebody else applies, Argo CD or Flux say. The object is never written; when
/// new pods fail, it only stops.
#[derive(clap::Args, Clone, Debug)]
pub(in crate::cli) struct Args {
    #[command(flatten)]
    pub(super) named: NamedFlags,
}

/// Replace some outdated pods of a DaemonSet that declares OnDelete, and stop
#[derive(clap::Args, Clone, Debug)]
pub(in crate::cli) struct StepArgs {
    /// Which DaemonSet
    #[arg(value_name = "NAMESPACE/NAME")]
    pub(super) name: DaemonSetKey,

    #[command(flatten)]
    extent: ExtentFlags,

    #[command(flatten)]
    pub(super) common: CommonFlags,
}

/// How many pods one step replaces.
#[derive(clap::Args, Clone, Debug)]
#[group(required = true, multiple = false)]
struct ExtentFlags {
    /// So many
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,

    /// Those on these nodes
    #[arg(long, value_name = "NODE", value_delimiter = ',')]
    nodes: Vec<NodeName>,

    /// Those of this wave of the plan
    #[arg(long, value_name = "N")]
    wave: Option<u32>,
}

pub(super) async fn run(args: &Args, session: &mut Session) -> Result<Exit, Error> {
    let NamedFlags { names, common: args } = &args.named;
    permitted::check_named(names, Work::Roll, session).await?;
    let each = names.iter().map(|key| One { key, args, extent: None }).collect();
    turns::take(each, args.keep_going, session).await
}

pub(super) async fn step(args: &StepArgs, session: &mut Session) -> Result<Exit, Error> {
    let StepArgs { name, extent, common } = args;
    One { key: name, args: common, extent: Some(extent) }.carry_out(session).await
}

/// One DaemonSet's turn.
struct One<'a> {
    key: &'a DaemonSetKey,
    args: &'a CommonFlags,
    extent: Option<&'a ExtentFlags>,
}

impl InTurn for One<'_> {
    async fn carry_out(&self, session: &mut Session) -> Result<Exit, Error> {
        let snapshot = session.snapshot(self.key).await?;
        let agreed = self.plan(&snapshot, session)?;
        let binding = Binding::Reasons;
        let asking = Asking { args: self.args, agreed: &agreed, version: None, binding };
        let managed_by = find(&snapshot, self.key)?.managed_by;
        let errand = Errand::with(self.key, managed_by, Work::Roll);
        if !asking.agree(&agreed, &[errand], false, session).await?.any {
            return Ok(Exit::Done);
        }
        let lock = session.lock(self.key, &self.args.pace, self.args.output).await?;
        let done = async {
            let snapshot = session.snapshot(self.key).await?;
            let plan = self.plan(&snapshot, session)?;
            still_agreed(&agreed, &plan, binding, self.args.allow)?;
            let task = self.task(&plan, &snapshot, session)?;
            let owner = Owner::from(find(&snapshot, self.key)?);
            session.carry_out(&owner, &lock, task, self.args.output).await
        };
        let ending = done.await;
        unlock(lock).await;
        Ok(told::exit(&ending?.outcome))
    }
}

impl One<'_> {
    /// What would happen if the controller replaced these pods within our budget.
    fn plan(&self, snapshot: &Snapshot, session: &Session) -> Result<Plan, Error> {
        let live = find(snapshot, self.key)?;
        if let Some(hold) = hold(live)? {
            return Err(Error::HeldByApply { daemon_set: self.key.clone(), hold: Box::new(hold) });
        }
        if live.spec.update_strategy != UpdateStrategy::OnDelete {
            return Err(Error::NotOnDelete(self.key.clone()));
        }
        let snapshot = as_if_rolling(snapshot, self.key, self.max_unavailable());
        let live = find(&snapshot, self.key)?;
        let desired = [with_template(live, None, &live.spec.template)?];
        let wanted = Asked::only(&desired, SourceInfo::default());
        let mut plan = planned(&snapshot, wanted, self.args, session.shell.now);
        // Whoever applies the object has nothing to undo: it is not written.
        plan.guards.retain(|guard| guard.code != GuardCode::GitOps);
        Ok(plan)
    }

    fn max_unavailable(&self) -> IntOrPercent {
        self.args.pace.max_unavailable.unwrap_or(IntOrPercent::Int(1))
    }

    fn task(&self, plan: &Plan, snapshot: &Snapshot, session: &Session) -> Result<Task, Error> {
        let waves = plan.daemon_sets.first().map(|one| one.waves.clone()).unwrap_or_default();
        let extent = match self.extent {
            None => Extent::All,
            Some(ExtentFlags { count: Some(count), .. }) => Extent::Count(*count),
            Some(ExtentFlags { wave: Some(index), .. }) => {
                let wave = waves.iter().find(|wave| wave.index == *index);
                let wave = wave.ok_or(Error::NoSuchWave { index: *index, waves: waves.len() })?;
                Extent::Nodes(wave.nodes.iter().cloned().collect())
            }
            Some(ExtentFlags { nodes, .. }) => Extent::Nodes(known(nodes, snapshot)?),
        };
        Ok(Task {
            goal: Goal::Roll(extent),
            pace: self.pace(),
            waves,
            provenance: Provenance {
                by: Some(identity::by(&session.holder)),
                ..Provenance::default()
            },
            deadline: session.ends(&self.args.pace, snapshot.observed_at),
            allow_mass_eviction: self.args.allow.allow_mass_eviction,
            failed_before: false,
        })
    }

    fn pace(&self) -> PolicySpec {
        let mut policy = RolloutPolicy::named("command line");
        self.args.pace.put_into(&mut policy.spec);
        policy.spec.max_unavailable = Some(self.max_unavailable());
        policy.spec
    }
}

/// Those nodes, which must be there.
fn known(nodes: &[NodeName], snapshot: &Snapshot) -> Result<BTreeSet<NodeName>, Error> {
    let is_there = |name: &NodeName| snapshot.nodes.iter().any(|node| node.name == *name);
    match nodes.iter().find(|name| !is_there(name)) {
        Some(unknown) => Err(Error::NoSuchNode { node: unknown.clone(), similar: None }),
        None => Ok(nodes.iter().cloned().collect()),
    }
}
