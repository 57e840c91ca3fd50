//! Converts a snapshot to the objects that a server would have served for it.
//!
//! The reverse, a snapshot of the embedded cluster, is taken as from any cluster: by `cluster`,
//! through a client. Parts of an object that a snapshot does not contain get simple values: a
//! daemon pod has the template of its hash label. Not here: storing the objects.

use std::collections::HashMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::Kind;
use super::clock::whole_second;
use super::verbs::with_defaults;
use cluster::config_map;
use daemonset::controller::pod::pod_spec;
use daemonset::controller::revision_data;
use daemonset::model::{
    ContainerFailure, ControllerRef, DaemonSet, FAILED_TEMPLATES_ANNOTATION, Labels, Lease,
    ManagedBy, Namespace, NamespaceName, Node, NodeReadiness, Pod, PodPhase, PodReadiness,
    PodTarget, PodTemplate, RECORD_LABEL, Revision, RevisionHash, STEPS_ANNOTATION, Service,
    Snapshot, Taint, Time, Uid, Unreadable,
};

/// The namespace whose uid serves as the cluster's identity.
const KUBE_SYSTEM: &str = "kube-system";

/// Time after the snapshot at which a terminating pod is gone.
const GRACE: SignedDuration = SignedDuration::from_secs(30);

/// Every object of `snapshot`, namespaces and nodes first. Objects are created lazily: all of them
/// as values take more memory than the whole embedded cluster.
pub(crate) fn objects(snapshot: &Snapshot) -> impl Iterator<Item = (Kind, Value)> {
    let Snapshot {
        cluster,
        observed_at,
        nodes,
        pods,
        daemon_sets,
        records_beside: _,
        revisions,
        namespaces,
        services,
        leases,
        priority_classes: _,
        // Approvals are read from their ConfigMaps; a recording has none.
        approvals: _,
        // The salt of masked values is not in any object: the rehearsal keeps it.
        coverage: _,
        unreadable,
    } = snapshot;
    let uid = cluster.uid.as_ref();
    let templates = templates(revisions);
    let unknown = some_spec();
    let pod = move |one: &Pod| {
        let spec = one.revision_hash().map(|hash| (&one.namespace, hash));
        let spec = spec.and_then(|key| templates.get(&key)).cloned();
        pod_of(one, spec.unwrap_or_else(|| unknown.clone()), *observed_at)
    };
    let namespaces = namespaces.iter().map(move |it| (Kind::Namespace, namespace(it, uid)));
    let nodes = nodes.iter().map(|it| (Kind::Node, node(it)));
    let daemon_sets = daemon_sets.iter().map(daemon_set);
    let revisions = revisions.iter();
    let revisions = revisions.map(|it| (Kind::ControllerRevision, revision(it, *observed_at)));
    let pods = pods.iter().map(move |it| (Kind::Pod, pod(it)));
    let services = services.iter().map(|it| (Kind::Service, service(it)));
    let leases = leases.iter().map(|it| (Kind::Lease, lease(it)));
    let all = namespaces.chain(nodes).chain(daemon_sets).chain(revisions).chain(pods);
    let records = unreadable.iter().filter_map(spoilt_record);
    let all = all.chain(services).chain(leases).chain(records);
    all.map(|(kind, object)| (kind, typed(kind, object)))
}

/// An unreadable record, which stays unreadable in the embedded cluster.
fn spoilt_record(object: &Unreadable) -> Option<(Kind, Value)> {
    let Unreadable { kind, namespace, name, reason } = object;
    (*kind == Kind::ConfigMap.as_str()).then(|| {
        let metadata = json!({
            "namespace": namespace, "name": name, "uid": format!("spoilt-{name}"),
            "labels": {RECORD_LABEL: "true"},
        });
        (Kind::ConfigMap, json!({"metadata": metadata, "data": {"daemonSet": reason}}))
    })
}

fn typed(kind: Kind, mut object: Value) -> Value {
    object["apiVersion"] = kind.api_version().into();
    object["kind"] = kind.as_str().into();
    object
}

fn namespace(namespace: &Namespace, cluster: Option<&Uid>) -> Value {
    let Namespace { name, annotations, terminating } = namespace;
    let mut object = json!({
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/metadata.name": name},
            "annotations": annotations,
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": if *terminating { "Terminating" } else { "Active" }},
    });
    if let Some(uid) = cluster.filter(|_| *name == KUBE_SYSTEM) {
        object["metadata"]["uid"] = json!(uid);
    }
    object
}

fn node(node: &Node) -> Value {
    let Node {
        name,
        uid,
        labels,
        taints,
        unschedulable,
        readiness: _,
        conditions: _,
        allocatable,
        created,
    } = node;
    let mut metadata = metadata(name.as_str(), uid, labels, *created);
    metadata.remove("namespace");
    let mut spec = json!({"taints": taints.iter().map(taint).collect::<Vec<_>>()});
    if *unschedulable {
        spec["unschedulable"] = true.into();
    }
    json!({
        "metadata": metadata,
        "spec": spec,
        "status": {
            "allocatable": allocatable,
            "conditions": node_conditions(node),
        },
    })
}

/// `Ready` by the readiness of the node, which may be newer than its conditions; the others as they
/// are.
fn node_conditions(node: &Node) -> Vec<Value> {
    let (status, since) = match node.readiness {
        NodeReadiness::Ready => ("True", node.created),
        NodeReadiness::NotReady { since } => ("False", since),
        NodeReadiness::Unknown { since } => ("Unknown", since),
    };
    let known = node.condition("Ready").filter(|known| known.status.as_str() == status);
    let ready = (status, known.map_or(since, |known| known.since));
    let others = node.conditions.iter().filter(|condition| *condition.kind != *"Ready");
    let others = others.map(|other| (&*other.kind, (other.status.as_str(), other.since)));
    let all = others.chain([("Ready", ready)]);
    let all = all.map(|(kind, (status, since))| {
        json!({"type": kind, "status": status, "lastTransitionTime": since.map(whole_second)})
    });
    all.collect()
}

/// A taint in the API's format: an empty value is omitted.
pub(super) fn taint(taint: &Taint) -> Value {
    let Taint { key, value, effect } = taint;
    let mut object = json!({"key": key, "effect": effect});
    if !value.is_empty() {
        object["value"] = (**value).into();
    }
    object
}

/// The DaemonSet, or the record ConfigMap that represents it.
fn daemon_set(daemon_set: &DaemonSet) -> (Kind, Value) {
    let DaemonSet { key, managed_by, raw, status, .. } = daemon_set;
    match managed_by {
        ManagedBy::DaemonSetController => {
            let mut object = (**raw).clone();
            object["status"] = serde_json::to_value(status).unwrap_or_default();
            (Kind::DaemonSet, object)
        }
        ManagedBy::DsApply => {
            let mut object = config_map(raw, status, key);
            for field in ["uid", "creationTimestamp"] {
                object["metadata"][field] = raw["metadata"][field].clone();
            }
            (Kind::ConfigMap, object)
        }
    }
}

fn revision(revision: &Revision, observed_at: Timestamp) -> Value {
    let Revision {
        namespace,
        name,
        uid,
        labels,
        annotations,
        controller,
        number,
        data,
        created,
        terminating,
    } = revision;
    let mut metadata = metadata(name.as_str(), uid, labels, created.map(Time::from));
    metadata.insert("namespace".to_owned(), namespace.as_str().into());
    metadata.insert("annotations".to_owned(), json!(annotations));
    own(&mut metadata, controller.as_deref());
    end(&mut metadata, *terminating, observed_at);
    json!({"metadata": metadata, "revision": number, "data": **data})
}

/// The pod specs of the templates, by namespace and revision hash.
fn templates(revisions: &[Revision]) -> HashMap<(&NamespaceName, RevisionHash), Value> {
    let of = |revision: &Revision| {
        let template = revision_data::template_of(&revision.data)?;
        let spec = template.get("spec")?.clone();
        // Without the automatic tolerations, pods on nodes that are not Ready would be evicted.
        let whole = PodTemplate::from_json(template).map(|template| pod_spec(&template).into());
        Some(as_served(whole.unwrap_or(spec)))
    };
    let keyed = revisions.iter().filter_map(|it| Some(((&it.namespace, it.hash()?), of(it)?)));
    keyed.collect()
}

/// The spec of a pod with an unknown template: one container.
fn some_spec() -> Value {
    as_served(json!({"containers": [{"name": "unknown", "image": "unknown"}]}))
}

/// Adds the defaults of a pod to those of its template. If they were added on the first change
/// instead, they would change the immutable spec: no orphan could be adopted.
fn as_served(spec: Value) -> Value {
    let mut pod = json!({"spec": spec.clone()});
    // An invalid spec is kept as recorded.
    match with_defaults(Kind::Pod, &mut pod) {
        Ok(()) => pod["spec"].take(),
        Err(_refused) => spec,
    }
}

fn pod_of(pod: &Pod, mut spec: Value, observed_at: Timestamp) -> Value {
    let Pod {
        namespace,
        name,
        uid,
        labels,
        controller,
        target,
        phase,
        readiness,
        created,
        terminating,
        restarts,
        containers_changed,
        container_failure,
        unready: _,
    } = pod;
    let mut metadata = metadata(name.as_str(), uid, labels, *created);
    metadata.insert("namespace".to_owned(), namespace.as_str().into());
    own(&mut metadata, controller.as_deref());
    end(&mut metadata, *terminating, observed_at);
    match target {
        PodTarget::Bound(node) => spec["nodeName"] = node.as_str().into(),
        PodTarget::Aimed(node) => spec["affinity"]["nodeAffinity"] = aimed(node.as_str()),
        // The required terms of its template name no node.
        PodTarget::Nowhere => {}
    }
    let first = spec["containers"][0]["name"].as_str().unwrap_or_default().to_owned();
    let state =
        containers_changed.map(whole_second).map(|at| json!({"running": {"startedAt": at}}));
    let state = state.unwrap_or_else(|| json!({}));
    let container = json!({"name": first, "restartCount": restarts, "state": state});
    let status = pod_status(*phase, *readiness, container, container_failure.as_deref());
    // There are many pods, and `json!` would copy each value.
    Value::from_iter([("metadata", Value::Object(metadata)), ("spec", spec), ("status", status)])
}

/// The status of a pod with this first container, and the failure of one of its containers.
fn pod_status(
    phase: PodPhase,
    readiness: PodReadiness,
    container: Value,
    container_failure: Option<&ContainerFailure>,
) -> Value {
    let mut status = json!({"phase": phase_word(phase)});
    let mut conditions = vec![ready(readiness)];
    let mut containers = vec![container];
    match container_failure {
        Some(container_failure)
            if container_failure.container.is_empty()
                && container_failure.reason.as_ref() == "Unschedulable" =>
        {
            conditions.push(json!({
                "type": "PodScheduled", "status": "False",
                "reason": container_failure.reason, "message": container_failure.message,
            }));
        }
        Some(container_failure) if container_failure.container.is_empty() => {
            status["reason"] = (*container_failure.reason).into();
            status["message"] = (*container_failure.message).into();
        }
        Some(container_failure) => {
            let waiting =
                json!({"reason": container_failure.reason, "message": container_failure.message});
            containers[0]["name"] = (*container_failure.container).into();
            containers[0]["state"] = json!({"waiting": waiting});
        }
        None => {}
    }
    status["conditions"] = conditions.into();
    status["containerStatuses"] = containers.into();
    status
}

fn phase_word(phase: PodPhase) -> &'static str {
    match phase {
        PodPhase::Pending => "Pending",
        PodPhase::Running => "Running",
        PodPhase::Succeeded => "Succeeded",
        PodPhase::Failed => "Failed",
        PodPhase::Unknown => "Unknown",
    }
}

fn ready(readiness: PodReadiness) -> Value {
    match readiness {
        PodReadiness::Ready { since } => json!({
            "type": "Ready", "status": "True", "lastTransitionTime": since.map(whole_second),
        }),
        // A pod that was never Ready has no transition time: a kubelet would set the pod's start.
        PodReadiness::NotReady { since } => json!({
            "type": "Ready", "status": "False", "lastTransitionTime": since.map(whole_second),
        }),
    }
}

/// Required node affinity to one node, as daemon pods have it.
fn aimed(node: &str) -> Value {
    json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}],
    }]}})
}

fn service(service: &Service) -> Value {
    let Service { namespace, name, selector, headless } = service;
    let address = if *headless { "None" } else { "10.96.0.1" };
    json!({
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": selector, "clusterIP": address, "type": "ClusterIP"},
    })
}

fn lease(lease: &Lease) -> Value {
    // The holder is not part of the rehearsal.
    let Lease { namespace, name, failed, steps, holder: _ } = lease;
    let failed: Vec<&str> = failed.iter().map(|digest| &**digest).collect();
    let mut annotations = json!({FAILED_TEMPLATES_ANNOTATION: failed.join(",")});
    if let Some(steps) = steps {
        annotations[STEPS_ANNOTATION] = steps.text().into();
    }
    json!({
        "metadata": {
            "name": name,
            "namespace": namespace,
            "annotations": annotations,
        },
        "spec": {},
    })
}

fn metadata(name: &str, uid: &Uid, labels: &Labels, created: Option<Time>) -> Map<String, Value> {
    let mut metadata = Map::new();
    metadata.insert("name".to_owned(), name.into());
    metadata.insert("uid".to_owned(), json!(uid));
    metadata.insert("labels".to_owned(), json!(labels));
    if let Some(created) = created {
        metadata.insert("creationTimestamp".to_owned(), whole_second(created).into());
    }
    metadata
}

fn own(metadata: &mut Map<String, Value>, controller: Option<&ControllerRef>) {
    if let Some(ControllerRef { kind, name, uid }) = controller {
        let owner = json!({
            "apiVersion": owner_api_version(kind), "kind": **kind, "name": **name, "uid": uid,
            "controller": true, "blockOwnerDeletion": true,
        });
        metadata.insert("ownerReferences".to_owned(), json!([owner]));
    }
}

/// The `apiVersion` of an owner; for other kinds of owners it does not matter.
fn owner_api_version(kind: &str) -> &'static str {
    [ManagedBy::DaemonSetController, ManagedBy::DsApply]
        .into_iter()
        .find(|managed_by| managed_by.owner_kind() == kind)
        .map_or("apps/v1", ManagedBy::owner_api_version)
}

fn end(metadata: &mut Map<String, Value>, terminating: bool, observed_at: Timestamp) {
    if terminating {
        let at = whole_second(observed_at.saturating_add(GRACE).unwrap_or(observed_at));
        metadata.insert("deletionTimestamp".to_owned(), at.into());
        metadata.insert("deletionGracePeriodSeconds".to_owned(), GRACE.as_secs().into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise the dependents of a record would never be collected.
    #[test]
    fn an_owner_is_found_by_its_api_version_and_kind() {
        for managed_by in [ManagedBy::DaemonSetController, ManagedBy::DsApply] {
            let kind = managed_by.owner_kind();
            let reference = ControllerRef { kind: kind.into(), name: "a".into(), uid: "u".into() };
            let mut metadata = Map::new();
            own(&mut metadata, Some(&reference));
            let owner = &metadata["ownerReferences"][0];
            let found = Kind::of(owner["apiVersion"].as_str().unwrap(), kind);
            assert_eq!(found.map(Kind::as_str), Some(kind), "{owner}");
        }
    }
}
