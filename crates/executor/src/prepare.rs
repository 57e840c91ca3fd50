//! The stages before the first decision: forcing conflicts, and the preflight (a dry run against the
//! server).

use jiff::Timestamp;
use serde_json::Value;

use cluster::{
    Access, Apply, Error, Kind, RecordWrite, Resource, Verb, Verdict, WritableCluster, WriteError,
    Writer,
};
use daemonset::controller::Owner;
use daemonset::controller::pod::PodMaker;
use daemonset::controller::updated::CurrentTemplate;
use daemonset::model::{
    DaemonSet, FIELD_MANAGER, ManagedBy, NamespaceName, NodeName, RevisionHash,
};
use planner::plan::{DaemonSetRecordError, record_after};
use ssa::{self, DAEMON_SET, ManagedFieldsError};

/// The reason why a run does not begin.
#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    /// The server rejects the DaemonSet.
    #[error("the server rejected the DaemonSet")]
    DaemonSet(#[source] WriteError),
    /// The server would reject its pods: a node whose pod is deleted would stay without one.
    #[error("the server would reject the pods of the DaemonSet")]
    Pod(#[source] WriteError),
    /// The user may not create pods, so deleted pods would not be replaced.
    #[error("the user may not create pods in {namespace}; no DaemonSet controller creates them")]
    MayNotCreate {
        /// The namespace of the pods.
        namespace: NamespaceName,
    },
    /// The DaemonSet cannot be written as a record.
    #[error(transparent)]
    DaemonSetRecord(#[from] DaemonSetRecordError),
    /// The field ownership of the live object cannot be read.
    #[error(transparent)]
    Ownership(#[from] ManagedFieldsError),
    /// The conflicts cannot be forced.
    #[error("cannot force conflicts with other field managers")]
    ForceConflicts(#[source] WriteError),
    /// The cluster cannot be read.
    #[error(transparent)]
    Cluster(#[from] Error),
}

/// Attempts to force conflicts while the controller writes the status in between.
const ATTEMPTS: usize = 10;

/// Transfers the fields of the live object that the managers `from` own to `ds-apply`, in one
/// compare-and-swap write that changes nothing else; returns the new object. Retried when only the
/// status has changed, which it does with every pod that is created or deleted.
///
/// This comes before the apply: only then does the apply remove fields that are not in git, and
/// there is one new revision instead of two.
///
/// # Errors
/// Another client changed the object, or the server rejects the write.
pub async fn force_conflicts(
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
        let Err(PreflightError::ForceConflicts(WriteError::Stale { .. })) = taken else {
            return taken;
        };
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
    let owners = ssa::ownership(&DAEMON_SET, &seen.raw, now)?;
    let owners = owners.transferred(&DAEMON_SET, names, FIELD_MANAGER);
    let taken = writer.replace_managed_fields(seen, &owners.to_value()).await;
    taken.map_err(PreflightError::ForceConflicts)
}

/// Whether nothing but the status has changed.
fn is_as_it_was(fresh: &DaemonSet, before: &DaemonSet) -> bool {
    fresh.uid == before.uid
        && (&fresh.labels, &fresh.annotations) == (&before.labels, &before.annotations)
        && fresh.raw.get("spec") == before.raw.get("spec")
}

/// The write that the preflight tries as a dry run.
#[derive(Clone, Copy, Debug)]
pub enum Trial<'a> {
    /// The server-side apply of this object.
    Apply(&'a Value),
    /// An update of the live object to this one: the result of the apply after conflicts were
    /// forced. Before that, the apply itself would conflict, or leave fields that it will remove.
    Outcome(&'a Value),
}

/// Tries the DaemonSet and one pod of it as dry runs; returns the DaemonSet as the server would
/// store it. Nothing is changed.
///
/// The DaemonSet controller creates the pods, not this program, but admission applies to both. A
/// user who may not create pods skips the pod.
///
/// # Errors
/// The server would reject either of them.
pub async fn preflight(
    cluster: &WritableCluster,
    live: Option<&DaemonSet>,
    trial: Trial<'_>,
    desired: &Owner<'_>,
    now: Timestamp,
) -> Result<DaemonSet, PreflightError> {
    let answer = match (trial, live) {
        (Trial::Apply(object), live) if desired.managed_by == ManagedBy::DsApply => {
            let object = record_after(live, object, now)?;
            cluster.try_record(desired.key, &RecordWrite { object: &object, seen: live }).await
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

/// Tries a pod of the DaemonSet as a dry run.
///
/// # Errors
/// The server would reject it.
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
    // Any node name works: the server does not check that the node exists.
    let pod = PodMaker::new(owner, &unlabelled).pod_for(&NodeName::from("preflight"));
    match cluster.try_pod(&owner.key.namespace, &pod).await {
        Ok(_) => {}
        // Without an access review, the dry run shows whether it is allowed.
        Err(WriteError::Forbidden { .. }) if !is_controller => {}
        Err(WriteError::Forbidden { .. }) => return Err(may_not()),
        Err(error) => return Err(PreflightError::Pod(error)),
    }
    Ok(())
}
