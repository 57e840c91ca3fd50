//! Whether everything that a run is to do is permitted: asked in one go before anything is written,
//! the lock included, and told all at once.
//!
//! Not here: what a run needs (`apply::permissions`).

use super::session::Session;
use crate::apply::permissions::{self, Errand, Finding, Need, Weight, Work};
use crate::cli::error::Error;
use crate::cli::printer::Printer;
use crate::cli::warnings;
use crate::cluster::{self, Verb, Verdict, WritableCluster};
use crate::model::{DaemonSet, DaemonSetKey, DesiredDaemonSet, ManagedBy};
use crate::plan::{Change, DaemonSetPlan, Plan, Warning};

/// Asks whether all of this is permitted. What has been read by now need not be asked, and what is
/// optional is asked for where it is used.
///
/// # Errors
/// All that is missing.
pub(super) async fn check(
    errands: &[Errand],
    held: Vec<DaemonSetKey>,
    session: &mut Session,
) -> Result<(), Error> {
    let mut needs = permissions::needs(errands);
    let is_open =
        |need: &Need| need.weight == Weight::Required && need.permission.verb != Verb::List;
    needs.retain(is_open);
    require(needs, held, session).await
}

/// What earlier runs have left held.
pub(super) fn held(plan: &Plan) -> Vec<DaemonSetKey> {
    let held = plan.daemon_sets.iter().filter(|one| one.hold.is_some());
    held.map(DaemonSetPlan::key).collect()
}

/// As [`check`], for DaemonSets that are only named, before any of them has its turn.
///
/// # Errors
/// All that is missing.
pub(super) async fn check_named(
    names: &[DaemonSetKey],
    work: Work,
    session: &mut Session,
) -> Result<(), Error> {
    // One alone is asked for when its plan is there.
    if names.len() < 2 {
        return Ok(());
    }
    let mut errands = Vec::new();
    for key in names {
        let found = session
            .unless_interrupted(async |_, cluster| Ok(cluster.live().daemon_set_listed(key).await))
            .await?;
        let managed_by = match found {
            // What is neither here nor there is told by its turn.
            Ok(None) => continue,
            Ok(Some(DaemonSet { managed_by, .. })) => managed_by,
            Err(cluster::Error::Forbidden { .. }) => ManagedBy::DaemonSetController,
            Err(error) => return Err(error.into()),
        };
        errands.push(Errand::with(key, managed_by, work));
    }
    require(permissions::needs(&errands), Vec::new(), session).await
}

/// What is missing besides, when something may not even be read.
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
    Error::NotPermitted { missing, held: Vec::new() }
}

/// What carrying a plan out does, DaemonSet by DaemonSet.
pub(super) fn errands(plan: &Plan) -> Vec<Errand> {
    plan.daemon_sets.iter().map(errand).collect()
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

/// The same of DaemonSets that cannot be seen.
pub(super) fn errands_unseen(desired: &[DesiredDaemonSet]) -> Vec<Errand> {
    let work = Work::Change { creates: false };
    desired.iter().map(|one| Errand::with(&one.key, one.managed_by, work)).collect()
}

async fn require(
    needs: Vec<Need>,
    held: Vec<DaemonSetKey>,
    session: &mut Session,
) -> Result<(), Error> {
    let findings = session
        .unless_interrupted(async |_, cluster| Ok(permissions::ask(cluster, needs).await))
        .await?;
    warn(&findings, session.shell.printer);
    let missing = missing(findings);
    if missing.is_empty() { Ok(()) } else { Err(Error::NotPermitted { missing, held }) }
}

fn missing(findings: Vec<Finding>) -> Vec<Need> {
    let missing = findings.into_iter().filter(Finding::is_missing);
    missing.map(|finding| finding.need).collect()
}

/// A server that does not say what is permitted is no reason to stop: a dry run of the first write
/// follows in any case.
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
