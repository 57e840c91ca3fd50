//! `ds-apply roll` and `step`: replace the outdated pods of a DaemonSet that declares `OnDelete`,
//! in waves, without writing the object.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::approve::{Approved, Asking};
use super::flags::{CommonFlags, NamedFlags, PolicyFlags};
use super::in_sequence::{self, InSequence};
use super::permitted;
use super::planning::{ApprovalRequest, check_not_stale, planned};
use super::predecessors::Predecessors;
use super::progress::SuggestedUndo;
use super::rehearsed_approvals::Rehearsed;
use super::session::{Rollout, Session, find, unlock};
use super::sharing::Sharing;
use super::{identity, progress};
use crate::error::Error;
use crate::exit::Exit;
use crate::flags::name::{GivenName, NAME};
use crate::input::policies;
use crate::warnings;
use cluster::Lock;
use daemonset::controller::Owner;
use daemonset::model::{
    DaemonSet, DaemonSetKey, FAILED_TEMPLATES_ANNOTATION, IntOrPercent, NodeName, PolicySpec,
    RolloutPolicy, STEPS_ANNOTATION, Snapshot, StepsNote,
};
use executor::permissions::{Errand, Work};
use manifest::Policies;
use planner::digest::template_digest;
use planner::plan::{
    Binding, DaemonSetPlan, Guard, GuardCode, Plan, SourceInfo, Strategy, Wave, is_git_ops,
    roll_under_way,
};
use planner::roll::{self, as_rolling_update, check_same_wave};
use planner::rollout::{Ending, Extent, Goal, Provenance, Task};

/// What of the approved plan must not change.
const BINDING: Binding = Binding::Reasons;

/// Replace the outdated pods of DaemonSets that declare OnDelete, in waves
///
/// For objects that another tool applies, such as Argo CD or Flux. The object is never written;
/// when new pods fail, the run only stops.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(super) named: NamedFlags,

    #[command(flatten)]
    policies: PolicyFlags,
}

/// Replace some outdated pods of a DaemonSet that declares OnDelete, and stop
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct StepArgs {
    /// DaemonSet: NAME or ds/NAME (in the namespace of -n), or NAMESPACE/NAME
    #[arg(value_name = NAME)]
    pub(super) name: GivenName,

    #[command(flatten)]
    extent: ExtentFlags,

    #[command(flatten)]
    policies: PolicyFlags,

    #[command(flatten)]
    pub(super) common: CommonFlags,
}

/// The pods that one step replaces.
#[derive(clap::Args, Clone, Debug)]
#[group(required = true, multiple = false)]
struct ExtentFlags {
    /// Number of pods
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,

    /// Pods on these nodes
    #[arg(long, value_name = "NODE", value_delimiter = ',')]
    nodes: Vec<NodeName>,

    /// Pods of this wave: a domain of a step of the policy
    ///
    /// `ds-apply roll --dry-run` shows the waves with their numbers, which stay the same while the
    /// rollout proceeds. Only a wave that comes next is replaced. If the number is that of another
    /// wave when the lock is taken, nothing is replaced.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    wave: Option<u32>,
}

pub(super) async fn run(
    args: &Args,
    keys: &[DaemonSetKey],
    session: &mut Session,
) -> Result<Exit, Error> {
    let policies = &policies::of_files(&args.policies.policy, &session.shell)?;
    let NamedFlags { names: _, common: args } = &args.named;
    let one = |key| One { key, args, extent: None, policies };
    if !args.dry_run {
        let asks = |live: &DaemonSet, errand: Errand| {
            let policy = policies.of(&live.key, &[&live.labels]).ok().flatten();
            match policy {
                Some(policy) => errand.under(&policy.spec),
                None => errand,
            }
        };
        permitted::check_named(keys, Work::Roll, asks, session).await?;
    }
    let each = keys.iter().map(one).collect();
    in_sequence::take(each, args.keep_going, session).await
}

pub(super) async fn step(
    args: &StepArgs,
    keys: &[DaemonSetKey],
    session: &mut Session,
) -> Result<Exit, Error> {
    let StepArgs { name: _, extent, policies, common } = args;
    let policies = &policies::of_files(&policies.policy, &session.shell)?;
    let one = |key| One { key, args: common, extent: Some(extent), policies };
    let each = keys.iter().map(one).collect();
    in_sequence::take(each, common.keep_going, session).await
}

/// The roll of one DaemonSet.
struct One<'a> {
    key: &'a DaemonSetKey,
    args: &'a CommonFlags,
    extent: Option<&'a ExtentFlags>,
    /// The policies of the command line.
    policies: &'a Policies,
}

impl InSequence for One<'_> {
    fn key(&self) -> &DaemonSetKey {
        self.key
    }

    async fn run(&self, session: &mut Session) -> Result<Exit, Error> {
        let snapshot = self.snapshot(session).await?;
        let asked = self.plan(&snapshot, session)?;
        let approved = &asked.plan;
        let asking = Asking {
            args: self.args,
            approved,
            version: None,
            binding: BINDING,
            predecessors: &Predecessors::NONE,
        };
        let live = find(&snapshot, self.key)?;
        session.suggested_undo =
            if is_git_ops(live) { SuggestedUndo::InGit } else { SuggestedUndo::Previous };
        let policy = self.policy(live)?.map(|policy| policy.spec.clone()).unwrap_or_default();
        let errand = Errand::with(self.key, live.managed_by, Work::Roll).under(&policy);
        // The plan is made as if the strategy were RollingUpdate.
        let mut shown = approved.clone();
        for one in &mut shown.daemon_sets {
            one.strategy = Strategy::OnDelete;
        }
        let shared = approved.daemon_sets.iter().flat_map(permitted::shared_errands);
        let errands: Vec<Errand> = [errand].into_iter().chain(shared).collect();
        let Approved { any, blocked } = asking.approve(&shown, &errands, false, session).await?;
        // A run that was killed may have left pods that pull images: this one removes them.
        let may_write = blocked.is_empty() && !self.args.dry_run;
        let removes_pullers = may_write && snapshot.has_pullers(self.key);
        let continues = may_write && self.may_be_left(&snapshot, live);
        // Also if the guard is allowed, the nodes that wait for the budget are no success.
        let waits = approved.guards.iter().any(|guard| guard.code == GuardCode::Deadlock);
        let nothing = if waits && may_write { Exit::Paused } else { Exit::Done };
        if !any && !removes_pullers && !continues {
            return Ok(nothing);
        }
        let spec = self.policy_spec(live)?;
        let budget = approved.daemon_sets.first().and_then(|one| one.shared_budget.as_ref());
        let policy = (&spec, live.managed_by);
        let sharing = match budget {
            Some(budget) => Sharing::lock(budget, policy, &[self.key], self.args, session).await?,
            None => None,
        };
        let lock = match sharing.as_ref().and_then(|sharing| sharing.lock_of(self.key)) {
            Some(lock) => Arc::clone(lock),
            None => session.lock(self.key, &self.args.pace, self.args.output).await?,
        };
        let endings = self.replace(&asked, &lock, sharing.as_ref(), session).await;
        unlock(lock).await;
        if let Some(sharing) = sharing {
            sharing.release().await;
        }
        let exits = endings?.into_iter().map(|ending| progress::exit(&ending.outcome));
        Ok(exits.reduce(Exit::or_more_severe).unwrap_or(nothing))
    }
}

/// The plan of a roll.
struct Planned {
    plan: Plan,
    /// The wave that was asked for, if one was.
    wave: Option<Wave>,
    /// The pods that are replaced.
    extent: Extent,
}

impl One<'_> {
    /// Replaces the pods under the lock, if the plan is still as it was approved.
    async fn replace(
        &self,
        approved: &Planned,
        lock: &Arc<Lock>,
        sharing: Option<&Sharing>,
        session: &mut Session,
    ) -> Result<Vec<Ending>, Error> {
        let mut snapshot = self.snapshot(session).await?;
        // The lock has the current value, even if the user may not list Leases.
        let failed = lock.note(FAILED_TEMPLATES_ANNOTATION).await.unwrap_or_default();
        let steps = lock.note(STEPS_ANNOTATION).await.as_deref().and_then(StepsNote::read);
        snapshot.set_notes(self.key, &failed, steps);
        let live = find(&snapshot, self.key)?;
        let (policy, template) =
            (self.policy_spec(live)?, template_digest(live.spec.template.raw()));
        let is_left = self.is_left(&snapshot, live);
        let of_rehearsal = Rehearsed { key: self.key, policy: &policy, template: &template };
        of_rehearsal.write(&mut snapshot, session).await?;
        let Planned { plan, wave, extent } = self.plan(&snapshot, session)?;
        if let (Some(shown), Some(wave), [one]) = (&approved.wave, &wave, &plan.daemon_sets[..]) {
            check_same_wave(one, shown, wave)?;
        }
        check_not_stale(&approved.plan, &plan, BINDING, self.args.allow)?;
        let has_changes = approved.plan.daemon_sets.iter().any(DaemonSetPlan::has_changes);
        if !has_changes && !is_left && !snapshot.has_pullers(self.key) {
            return Ok(Vec::new());
        }
        let task = self.task(&plan, extent, &snapshot, session)?;
        let owner = &Owner::from(find(&snapshot, self.key)?);
        let rollout = Rollout { owner, lock: Arc::clone(lock), task };
        session.run_rollouts(vec![rollout], sharing, self.args.output).await
    }

    /// Whether something of the rollout is left although no pod is outdated: it is under way, or it has
    /// failed, and its pods and gates are judged again.
    fn is_left(&self, snapshot: &Snapshot, live: &DaemonSet) -> bool {
        let is_under_way = || roll_under_way(live, snapshot).is_some();
        self.extent.is_none() && (is_under_way() || self.has_failed(snapshot, live))
    }

    /// The same as far as it is known before the lock is taken: perhaps Leases may not be listed.
    fn may_be_left(&self, snapshot: &Snapshot, live: &DaemonSet) -> bool {
        let is_unknown = self.extent.is_none() && !snapshot.coverage.leases;
        is_unknown || self.is_left(snapshot, live)
    }

    fn has_failed(&self, snapshot: &Snapshot, live: &DaemonSet) -> bool {
        snapshot.has_failed(self.key, &template_digest(live.spec.template.raw()))
    }

    /// The plan as if the controller replaced the pods within the budget of the flags.
    fn plan(&self, snapshot: &Snapshot, session: &Session) -> Result<Planned, Error> {
        let extent = match self.extent {
            None => Extent::All,
            Some(ExtentFlags { wave: Some(number), .. }) => {
                let plan = self.plan_of(&Extent::All, snapshot, session)?;
                let one = plan.daemon_sets.iter().find(|one| !one.waves.is_empty());
                // Without waves, nothing is outdated.
                let wave = one.map(|one| roll::wave(one, *number)).transpose()?.cloned();
                let nodes = wave.iter().flat_map(|wave| &wave.nodes).cloned().collect();
                let extent = Extent::Nodes(nodes);
                let plan = self.plan_of(&extent, snapshot, session)?;
                return Ok(Planned { plan, wave, extent });
            }
            Some(ExtentFlags { count: Some(count), .. }) => Extent::Count(*count),
            Some(ExtentFlags { nodes, .. }) => Extent::Nodes(known(nodes, snapshot)?),
        };
        Ok(Planned { plan: self.plan_of(&extent, snapshot, session)?, wave: None, extent })
    }

    /// The same for these pods.
    fn plan_of(
        &self,
        extent: &Extent,
        snapshot: &Snapshot,
        session: &Session,
    ) -> Result<Plan, Error> {
        let live = find(snapshot, self.key)?;
        let policy = self.policy(live)?;
        let limit = self.max_unavailable(policy.as_deref());
        let (snapshot, mut desired) = as_rolling_update(snapshot, live, limit)?;
        desired.policy = policy;
        let warnings = warnings::none_selects(self.policies, &desired).into_iter().collect();
        self.args.pace.put_over(&mut desired);
        let desired = [desired];
        let wanted = ApprovalRequest {
            warnings,
            extent,
            ..ApprovalRequest::only(&desired, SourceInfo::default())
        };
        let mut plan = planned(&snapshot, wanted, self.args, session.shell.now);
        // The object is not written, so a GitOps tool has nothing to revert.
        plan.guards.retain(|guard| guard.code != GuardCode::GitOps);
        // Also once it runs on all nodes: its last pod or gate may have failed.
        let is_guarded = plan.guards.iter().any(|guard| guard.code == GuardCode::FailedTemplate);
        if !is_guarded && self.has_failed(&snapshot, live) {
            plan.guards.push(Guard::failed_template(self.key));
        }
        Ok(plan)
    }

    /// Reads the DaemonSet, and the approvals that its policy asks for.
    async fn snapshot(&self, session: &mut Session) -> Result<Snapshot, Error> {
        let mut snapshot = session.snapshot(self.key).await?;
        let policy = self.policy(find(&snapshot, self.key)?)?;
        if policy.is_some_and(|policy| policy.spec.asks_for_approvals()) {
            let approvals = session
                .unless_interrupted(async |_, cluster| {
                    Ok(cluster.live().approvals_of(self.key).await?)
                })
                .await?;
            snapshot.approvals.insert(self.key.clone(), approvals.by_step);
        }
        Ok(snapshot)
    }

    /// The policy of the command line that selects the DaemonSet.
    fn policy(&self, live: &DaemonSet) -> Result<Option<Arc<RolloutPolicy>>, Error> {
        Ok(self.policies.of(self.key, &[&live.labels])?)
    }

    /// The budget: of the flag, else of the policy; else one node.
    fn max_unavailable(&self, policy: Option<&RolloutPolicy>) -> IntOrPercent {
        let of_policy = policy.and_then(|policy| policy.spec.max_unavailable);
        self.args.pace.max_unavailable.or(of_policy).unwrap_or(IntOrPercent::Int(1))
    }

    fn task(
        &self,
        plan: &Plan,
        extent: Extent,
        snapshot: &Snapshot,
        session: &Session,
    ) -> Result<Task, Error> {
        Ok(Task {
            goal: Goal::Roll(extent),
            policy: self.policy_spec(find(snapshot, self.key)?)?,
            waves: plan.daemon_sets.first().map(|one| one.waves.clone()).unwrap_or_default(),
            provenance: Provenance {
                by: Some(identity::by(&session.holder)),
                ..Provenance::default()
            },
            deadline: session.ends(&self.args.pace, snapshot.observed_at),
            allow_mass_eviction: self.args.allow.allow_mass_eviction,
            failed_templates: snapshot.failed_templates(self.key),
            note: snapshot.steps_note(self.key).cloned(),
            approvals: snapshot.approvals.get(self.key).cloned().unwrap_or_default(),
            node_seconds: plan.node_seconds(self.key),
            has_pullers: snapshot.has_pullers(self.key),
            cluster_checks: session.checks.of_cluster(),
            wait_until: session.waits_until(&self.args.pace, snapshot.observed_at),
        })
    }

    fn policy_spec(&self, live: &DaemonSet) -> Result<PolicySpec, Error> {
        let policy = self.policy(live)?;
        let limit = self.max_unavailable(policy.as_deref());
        let mut spec = policy.map(|policy| policy.spec.clone()).unwrap_or_default();
        self.args.pace.put_into(&mut spec);
        spec.max_unavailable = Some(limit);
        Ok(spec)
    }
}

/// The nodes as a set; an error if one does not exist.
fn known(nodes: &[NodeName], snapshot: &Snapshot) -> Result<BTreeSet<NodeName>, Error> {
    let is_there = |name: &NodeName| snapshot.nodes.iter().any(|node| node.name == *name);
    match nodes.iter().find(|name| !is_there(name)) {
        Some(unknown) => Err(Error::NoSuchNode { node: unknown.clone(), similar: None }),
        None => Ok(nodes.iter().cloned().collect()),
    }
}
