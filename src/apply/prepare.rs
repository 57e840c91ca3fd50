//! What comes before the first step: taking ownership over, and asking the server whether it would
//! accept what is to come.

use jiff::Timestamp;
use serde_json::Value;

use crate::cluster::{
    Access, Apply, Error, Kind, LedgerWrite, Resource, Verb, Verdict, WritableCluster, WriteError,
    Writer,
};
use crate::controller::Owner;
use crate::controller::pod::PodMaker;
use crate::controller::updated::CurrentTemplate;
use crate::merge::{self, ManagedFieldsError};
use crate::model::{DaemonSet, FIELD_MANAGER, ManagedBy, NamespaceName, NodeName, RevisionHash};
use crate::plan::{LedgerError, ledger_after};

/// Why nothing is begun.
#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    /// The server does not accept the DaemonSet.
    #[error("the server does not accept the DaemonSet")]
    DaemonSet(#[source] WriteError),
    /// The server would not accept its pods: a node whose pod is deleted would have none.
    #[error("the server would not accept the pods of the DaemonSet")]
    Pod(#[source] WriteError),
    /// No pod that is deleted would be followed by another.
    #[error("the user may not create pods in {namespace}, and no controller does it instead")]
    MayNotCreate {
        /// Where.
        namespace: NamespaceName,
    },
    /// A ledger cannot be made of it.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Who owns the live object's fields cannot be read.
    #[error(transparent)]
    Ownership(#[from] ManagedFieldsError),
    /// Ownership cannot be taken over.
    #[error("cannot take over the fields of others")]
    TakeOver(#[source] WriteError),
    /// The cluster cannot be read.
    #[error(transparent)]
    Cluster(#[from] Error),
}

/// How often ownership is tried to be taken over while the controller writes the status in between.
const ATTEMPTS: usize = 10;

/// Makes what `from` own of the live object ours, in one compare-and-swap write that changes
/// nothing else; the object afterwards. Tried again when only the status has changed meanwhile, as
/// it does with every pod that comes or goes.
///
/// Before the apply, not after it: only then does the apply remove what git has no longer, and
/// there is one new revision instead of two.
///
/// # Errors
/// The object has changed meanwhile, or the server does not accept it.
pub async fn take_over(
    cluster: &WritableCluster,
    writer: &Writer,
    live: &DaemonSet,
    from: &[String],
    now: Timestamp,
) -> Result<DaemonSet, PreflightError> {
    let names: Vec<&str> = from.iter().map(String::as_str).collect();
    let mut seen = live.clone();
    for _ in 1..ATTEMPTS {
        let taken = take(writer, &seen, &names, now).await;
        let Err(PreflightError::TakeOver(WriteError::Stale { .. })) = taken else { return taken };
        let fresh = cluster.live().daemon_set_listed(&live.key).await?;
        match fresh.filter(|fresh| is_as_it_was(fresh, live)) {
            Some(fresh) => seen = fresh,
            None => return taken,
        }
    }
    take(writer, &seen, &names, now).await
}

async fn take(
    writer: &Writer,
    seen: &DaemonSet,
    names: &[&str],
    now: Timestamp,
) -> Result<DaemonSet, PreflightError> {
    let owners = merge::ownership(&seen.raw, now)?.taken_over(names, FIELD_MANAGER);
    let taken = writer.replace_managed_fields(seen, &owners.to_value()).await;
    taken.map_err(PreflightError::TakeOver)
}

/// Whether nothing but the status has changed.
fn is_as_it_was(fresh: &DaemonSet, before: &DaemonSet) -> bool {
    fresh.uid == before.uid
        && (&fresh.labels, &fresh.annotations) == (&before.labels, &before.annotations)
        && fresh.raw.get("spec") == before.raw.get("spec")
}

/// What the server is asked to try.
#[derive(Clone, Copy, Debug)]
pub enum Trial<'a> {
    /// The server-side apply of this object.
    Apply(&'a Value),
    /// The live object, were it changed into this one: what the apply makes of it once the fields
    /// of others have been taken over. Until then the apply itself is a conflict, or leaves what
    /// will be gone.
    Outcome(&'a Value),
}

/// Asks the server what it would make of the DaemonSet, and of a pod of it; what it would make of
/// the DaemonSet. Nothing is changed.
///
/// The controller, not we, creates the pods; but what admission says to us, it says to everybody.
/// Whoever may not create pods does not ask.
///
/// # Errors
/// The server would refuse either of them.
pub async fn preflight(
    cluster: &WritableCluster,
    live: Option<&DaemonSet>,
    trial: Trial<'_>,
    desired: &Owner<'_>,
    now: Timestamp,
) -> Result<DaemonSet, PreflightError> {
    let answer = match (trial, live) {
        (Trial::Apply(object), live) if desired.managed_by == ManagedBy::DsApply => {
            let object = ledger_after(live, object, now)?;
            cluster.try_ledger(desired.key, &LedgerWrite { object: &object, seen: live }).await
        }
        (Trial::Outcome(object), Some(live)) => cluster.try_outcome(live, object).await,
        (Trial::Apply(object) | Trial::Outcome(object), live) => {
            let uid = live.map(|live| &live.uid);
            let apply = Apply { object, force: false, uid, resource_version: None };
            cluster.try_apply(desired.key, &apply).await
        }
    };
    let answer = answer.map_err(PreflightError::DaemonSet)?;
    try_pod(cluster, &Owner { spec: &answer.spec, ..*desired }).await?;
    Ok(answer)
}

/// Asks the server whether it would take a pod of the DaemonSet.
///
/// # Errors
/// It would not.
pub async fn try_pod(cluster: &WritableCluster, owner: &Owner<'_>) -> Result<(), PreflightError> {
    let create_pods = Access {
        verb: Verb::Create,
        resource: Resource::Of(Kind::Pod),
        namespace: Some(owner.key.namespace.clone()),
        name: None,
    };
    let verdict = cluster.review(vec![create_pods]).await.pop();
    let is_controller = owner.managed_by == ManagedBy::DsApply;
    let may_not = || PreflightError::MayNotCreate { namespace: owner.key.namespace.clone() };
    if verdict == Some(Verdict::Denied) {
        return if is_controller { Err(may_not()) } else { Ok(()) };
    }
    let unlabelled = CurrentTemplate::new(RevisionHash::from(""), None);
    // Any node will do: the server does not look whether there is one of that name.
    let pod = PodMaker::new(owner, &unlabelled).pod_for(&NodeName::from("preflight"));
    match cluster.try_pod(&owner.key.namespace, &pod).await {
        Ok(_) => {}
        // Where the server does not say what is permitted, trying says it.
        Err(WriteError::Forbidden { .. }) if !is_controller => {}
        Err(WriteError::Forbidden { .. }) => return Err(may_not()),
        Err(error) => return Err(PreflightError::Pod(error)),
    }
    Ok(())
}
