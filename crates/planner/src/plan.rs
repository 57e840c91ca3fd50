//! Plans the changes that applying the source would make to the cluster: a pure function from a
//! snapshot and the desired DaemonSets to a [`Plan`].
//!
//! The target is the result of server-side apply on the live object (`applied`). Not here: applying
//! the plan.
//!
//! A template is evaluated once per class of nodes that no template of the plan can tell apart.
//! Nodes that have no pod and get none are counted, and described only on request.

mod applied;
mod changes;
mod coded;
mod completion;
mod daemon_set;
mod daemon_set_view;
mod diff;
mod digest;
mod document;
mod drift;
mod explanation;
mod forecast;
mod git_ops;
mod guards;
mod health;
mod history;
mod input;
pub mod lint;
mod lock;
mod measures;
mod narrow;
mod nodes;
mod object;
mod pause;
mod policy_progress;
mod pre_pull;
mod prune;
pub(crate) mod reason;
mod record;
mod revision;
mod rollout_history;
mod secrets;
mod settle;
mod shared;
mod stale;
mod status;
mod target;
#[cfg(test)]
mod tests;
mod warnings;
mod waves;
mod writers;

use rayon::prelude::*;
use serde_json::Value;

pub use applied::{after_apply, sent};
pub use coded::Coded;
pub use completion::Completion;
pub use diff::{DaemonSetDiff, Diff, DiffInput, DiffKind, diff};
pub use document::{
    Access, Action, ActionTotals, ApiVersion, Approved, BaseChange, Change, CheckPlan, CheckRole,
    ClusterSummary, Counters, DaemonSetForecast, DaemonSetPlan, Fate, FieldChange, FieldOwner,
    Forecast, ForecastSpan, Guard, GuardCode, NewPods, NodePlan, Plan, PlanKind, PodPlan,
    PrePullForecast, PrePullPlan, RevisionKind, RevisionPlan, RevisionTotals, SharedBudget,
    SourceInfo, SpanKind, StepForecast, StepPlan, StepState, Strategy, TargetRevision, Totals,
    Warning, Wave, Zones, zones,
};
pub use drift::{
    Classified, DaemonSetDrift, DeviatingNodes, Deviation, Drift, DriftClass, DriftInput,
    DriftKind, DriftTotals, NodeDrift, drift,
};
pub use explanation::{
    ContainerLog, Explanation, ExplanationKind, RuleReport, RuleResult, explain, explain_planned,
    explain_under,
};
pub use git_ops::is_git_ops;
pub use health::{ailments, node_not_ready, not_available};
pub use history::{
    DaemonSetHistory, History, HistoryKind, HistoryQuestion, NoSuchRevision, RevisionDifference,
    RevisionEntry, history,
};
pub use input::{Detail, Input, Intent, NotFound, Prune};
pub use lock::LockStatus;
pub use measures::{Measured, RolloutState, measures};
pub use object::masked;
pub use pause::{LeftoverPause, PauseState, PausedRollout, PausedRolloutError};
pub(crate) use pause::{goes_back_from, noted_from, restored_at};
pub use policy_progress::{PolicyProgress, StepApproval, roll_under_way};
pub use prune::{source_paths, source_repository};
pub use reason::{Age, NotReadyNode, PodNotReady, Reason};
pub use record::{DaemonSetRecordError, record_after};
pub use rollout_history::{RolloutHistory, StepHistory};
pub use secrets::ShownValues;
pub use settle::{keeps_template, owned, settled};
pub use stale::{Binding, Difference, Stale, stale};
pub use status::{
    DaemonSetStatusReport, NodeObstacles, StatusKind, StatusReport, status, status_under,
};
pub use warnings::NAMESPACE_MISSING;
pub use warnings::WAY_BACK;
pub use warnings::unreadable::UNREADABLE;
pub use writers::{WriteOperation, Writer};

use applied::Applied;
use daemon_set::{PlanRequest, Planned};
use daemonset::controller::node_pods::Fleet;
use daemonset::controller::start_times::StartTimes;
use daemonset::model::{DesiredDaemonSet, Snapshot};

/// Plans every DaemonSet of the source against the snapshot.
pub fn plan(input: Input<'_>) -> Plan {
    let Input {
        snapshot,
        desired,
        created_namespaces,
        force_conflicts,
        prune,
        base,
        removed,
        source,
        mut warnings,
        created_at,
        extent,
        intent,
        detail,
    } = input;
    warnings.extend(warnings::of_cluster(snapshot));
    let written = desired;
    let masked = snapshot.coverage.masked.map(|salt| masked(desired, &salt));
    let manifests = masked.as_deref().unwrap_or(desired);
    warnings.extend(applied::about_ownership(snapshot, manifests));
    let applied = applied::applied(snapshot, manifests, force_conflicts, intent);
    let desired: Vec<&DesiredDaemonSet> = applied.iter().map(|it| &it.desired).collect();
    let fleet = fleet(snapshot, &desired);
    // Usually this is done beside the planning, which does not need it.
    let has_windows = desired.iter().any(|it| !it.policy_spec().windows.is_empty());
    let early = has_windows.then(|| StartTimes::seen_in(snapshot));
    let starts = early.as_ref();
    let created = created_namespaces;
    let request = PlanRequest { force_conflicts, created, detail, starts, desired: &desired };
    // A base is compared with git as written: neither is masked as a recording is.
    let of_one = |(applied, manifest): (&Applied, _)| {
        let since = base.map(|base| object::since_base(base, manifest, detail.show_values));
        daemon_set::plan(snapshot, &fleet, applied, since, request)
    };
    // DaemonSets are planned in parallel; their order is kept.
    let (mut planned, (of_nodes, starts)) = rayon::join(
        || applied.par_iter().zip(written).map(of_one).collect::<Vec<Planned>>(),
        || (warnings::of_nodes(&desired, snapshot, &fleet), StartTimes::seen_in(snapshot)),
    );
    planned.extend(prune.iter().flat_map(|it| prune::removals(*it, snapshot, &fleet, &source)));
    planned.sort_by_cached_key(|it| it.plan.key());
    let decided: Vec<Value> = planned.iter_mut().map(|it| it.decided.take()).collect();
    let digest = digest::digest(snapshot.cluster.uid.as_ref(), &decided);
    let mut guards = Vec::from_iter(prune.and_then(|prune| prune::mass_deletion(prune, snapshot)));
    warnings.extend(prune::warnings(&source, prune, &applied, snapshot));
    let mut daemon_sets = plans(planned, &mut guards, &mut warnings);
    for one in &mut daemon_sets {
        narrow::narrow(one, extent);
    }
    warnings.extend(warnings::removed(removed, &daemon_sets, snapshot));
    warnings.extend(of_nodes);
    warnings.extend(warnings::clocks::warning(&desired, snapshot));
    warnings.extend(warnings::unchecked::warning(daemon_sets.iter(), &desired, snapshot));
    let forecast = forecast::forecast(&daemon_sets, &desired, &starts, snapshot.observed_at);
    let plan = Plan {
        api_version: ApiVersion::V1Alpha1,
        kind: PlanKind::Plan,
        created_at,
        rehearsal: false,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        digest,
        source,
        cluster: ClusterSummary::from(snapshot),
        totals: totals(&daemon_sets),
        daemon_sets,
        forecast,
        guards,
        warnings,
    };
    debug_assert_eq!(lint::lint(&plan), [], "a plan contradicts itself");
    plan
}

/// The plans of the DaemonSets, with their guards and warnings added to those of all.
fn plans(
    planned: Vec<Planned>,
    guards: &mut Vec<Guard>,
    warnings: &mut Vec<Warning>,
) -> Vec<DaemonSetPlan> {
    let plan = |one: Planned| {
        guards.extend(one.guards);
        warnings.extend(one.warnings);
        one.plan
    };
    planned.into_iter().map(plan).collect()
}

/// The nodes, in classes that no template of the cluster or the source can tell apart.
fn fleet<'a>(snapshot: &'a Snapshot, desired: &[&'a DesiredDaemonSet]) -> Fleet<'a> {
    let live = snapshot.daemon_sets.iter().map(|live| &live.spec);
    let specs = desired.iter().map(|desired| &desired.spec).chain(live);
    Fleet::seen_by(&snapshot.nodes, specs.map(|spec| &spec.template.placement))
}

fn totals(daemon_sets: &[DaemonSetPlan]) -> Totals {
    let mut totals = Totals::default();
    for daemon_set in daemon_sets {
        totals.actions += daemon_set.totals;
        totals.deleted_pods += deleted_pods(daemon_set);
        *match daemon_set.revision.kind {
            RevisionKind::New => &mut totals.revisions.new,
            RevisionKind::Reused => &mut totals.revisions.reused,
            RevisionKind::Unchanged => &mut totals.revisions.unchanged,
        } += 1;
    }
    totals
}

fn deleted_pods(daemon_set: &DaemonSetPlan) -> u32 {
    let pods: usize = daemon_set.nodes.iter().map(|node| node.deleted().count()).sum();
    u32::try_from(pods).unwrap_or(u32::MAX)
}
