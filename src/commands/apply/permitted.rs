//! Checks all permissions of a run before anything is written, the lock included, and reports all
//! missing ones at once.
//!
//! Not here: the list of needed permissions (`apply::permissions`).

use super::session::Session;
use crate::error::Error;
use crate::printer::Printer;
use crate::warnings;
use cluster::{self, Verb, Verdict, WritableCluster};
use daemonset::model::{DaemonSet, DaemonSetKey, DesiredDaemonSet, ManagedBy};
use executor::permissions::{self, Errand, Finding, Need, Weight, Work};
use planner::plan::{Change, DaemonSetPlan, Plan, Warning};

/// Checks the required permissions of these errands. Listing is not checked, because the lists have
/// been read; optional permissions are checked where they are used.
///
/// # Errors
/// All missing permissions.
pub(super) async fn check(
    errands: &[Errand],
    paused: Vec<DaemonSetKey>,
    session: &mut Session,
) -> Result<(), Error> {
    let mut needs = permissions::needs(errands);
    let is_open =
        |need: &Need| need.weight == Weight::Required && need.permission.verb != Verb::List;
    needs.retain(is_open);
    require(needs, paused, session).await
}

/// The DaemonSets that earlier runs have left paused.
pub(super) fn paused(plan: &Plan) -> Vec<DaemonSetKey> {
    let paused = plan.daemon_sets.iter().filter(|one| one.pause.is_some());
    paused.map(DaemonSetPlan::key).collect()
}

/// As [`check`], for DaemonSets named on the command line, before any of them is changed.
///
/// # Errors
/// All missing permissions.
pub(super) async fn check_named(
    names: &[DaemonSetKey],
    work: Work,
    asked: impl Fn(&DaemonSet, Errand) -> Errand,
    session: &mut Session,
) -> Result<(), Error> {
    // For a single DaemonSet, permissions are checked once its plan is made.
    if names.len() < 2 {
        return Ok(());
    }
    let mut errands = Vec::new();
    for key in names {
        let found = session
            .unless_interrupted(async |_, cluster| Ok(cluster.live().daemon_set_listed(key).await))
            .await?;
        let live = match found {
            // A DaemonSet that does not exist is reported later.
            Ok(None) => continue,
            Ok(Some(live)) => Some(live),
            Err(cluster::Error::Forbidden { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        errands.push(match live {
            Some(live) => asked(&live, Errand::with(key, live.managed_by, work)),
            None => Errand::with(key, ManagedBy::DaemonSetController, work),
        });
    }
    require(permissions::needs(&errands), Vec::new(), session).await
}

/// The error if reading is forbidden: it lists all other missing permissions, too.
pub(super) async fn besides(
    error: cluster::Error,
    errands: &[Errand],
    cluster: &WritableCluster,
) -> Error {
    let cluster::Error::Forbidden { .. } = error else { return error.into() };
    let findings = permissions::ask(cluster, permissions::needs(errands)).await;
    let missing = missing(findings);
    if missing.is_empty() {
        return error.into();
    }
    Error::NotPermitted { missing, paused: Vec::new() }
}

/// The errands of a plan of these DaemonSets, one per DaemonSet.
pub(super) fn errands(plan: &Plan, desired: &[DesiredDaemonSet]) -> Vec<Errand> {
    let of = |plan: &DaemonSetPlan| {
        let key = plan.key();
        let of_policy = desired.iter().find(|one| one.key == key);
        of_policy.map_or_else(|| errand(plan), |one| errand(plan).under(&one.policy_spec()))
    };
    let shared = plan.daemon_sets.iter().filter(|one| one.has_changes()).flat_map(shared_errands);
    plan.daemon_sets.iter().map(of).chain(shared).collect()
}

/// The errands of the DaemonSets that share a budget with one of the plan.
pub(super) fn shared_errands(plan: &DaemonSetPlan) -> impl Iterator<Item = Errand> {
    let names = plan.shared_budget.iter().flat_map(|shared| &shared.daemon_sets);
    let keys = names.filter_map(|name| name.parse::<DaemonSetKey>().ok());
    keys.map(|key| Errand::with(&key, plan.managed_by, Work::Share))
}

fn errand(plan: &DaemonSetPlan) -> Errand {
    let acts = plan.has_changes() || plan.managed_by == ManagedBy::DsApply;
    let work = match plan.change {
        Change::Create => Work::Change { creates: true },
        Change::Update | Change::Recreate => Work::Change { creates: false },
        Change::Delete => Work::Remove,
        Change::None if acts => Work::Change { creates: false },
        Change::None => Work::Look,
    };
    Errand::with(&plan.key(), plan.managed_by, work)
}

/// The errands of DaemonSets that may not be read.
pub(super) fn errands_unseen(desired: &[DesiredDaemonSet]) -> Vec<Errand> {
    let work = Work::Change { creates: false };
    let of = |one: &DesiredDaemonSet| {
        Errand::with(&one.key, one.managed_by, work).under(&one.policy_spec())
    };
    desired.iter().map(of).collect()
}

async fn require(
    needs: Vec<Need>,
    paused: Vec<DaemonSetKey>,
    session: &mut Session,
) -> Result<(), Error> {
    let findings = session
        .unless_interrupted(async |_, cluster| Ok(permissions::ask(cluster, needs).await))
        .await?;
    warn(&findings, session.shell.printer);
    let missing = missing(findings);
    if missing.is_empty() { Ok(()) } else { Err(Error::NotPermitted { missing, paused }) }
}

fn missing(findings: Vec<Finding>) -> Vec<Need> {
    let missing = findings.into_iter().filter(Finding::is_missing);
    missing.map(|finding| finding.need).collect()
}

/// Warns about permissions that the server could not check. The run continues: a dry run of the
/// first write follows.
fn warn(findings: &[Finding], printer: Printer) {
    let unknown = findings.iter().filter_map(|finding| match &finding.verdict {
        Verdict::Unknown { why } => Some((finding, why)),
        Verdict::Allowed | Verdict::Denied => None,
    });
    let unknown: Vec<_> = unknown.collect();
    let Some((_, why)) = unknown.first() else { return };
    let (asked, all) = (unknown.len(), findings.len());
    let message = format!("{asked} of {all} permissions were not checked: {why}");
    let code = "permissionsNotChecked".to_owned();
    let warning = Warning { code, message, daemon_set: None, nodes: Vec::new() };
    warnings::print(&[warning], printer);
}
