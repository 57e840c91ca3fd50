//! The small cluster as a snapshot, and its DaemonSet as a manifest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::Cluster;
use crate::model::{
    ClusterInfo, Coverage, DaemonSet, DesiredDaemonSet, Labels, ManagedBy, Namespace, Place,
    Snapshot, UpdateStrategy,
};

impl Cluster {
    /// A complete snapshot of this cluster. The DaemonSet's `raw` is [`object`], without the fields
    /// that a server adds.
    pub fn snapshot(&self) -> Snapshot {
        let daemon_set = &self.daemon_set;
        let mut snapshot = Snapshot {
            unreadable: Vec::new(),
            cluster: ClusterInfo::default(),
            observed_at: self.now,
            nodes: self.nodes.clone(),
            pods: self.pods.clone(),
            daemon_sets: vec![DaemonSet {
                raw: Arc::new(object(daemon_set)),
                ..daemon_set.clone()
            }],
            revisions: self.revisions.clone(),
            namespaces: vec![Namespace {
                name: "default".into(),
                annotations: Labels::default(),
                terminating: false,
            }],
            services: Vec::new(),
            leases: Vec::new(),
            priority_classes: BTreeMap::new(),
            approvals: BTreeMap::new(),
            records_beside: BTreeSet::new(),
            coverage: Coverage {
                scope: None,
                managed_fields: true,
                namespaces: true,
                services: true,
                leases: true,
                records: true,
                masked: None,
            },
        };
        snapshot.sort();
        snapshot
    }

    /// The manifest in git: the DaemonSet of this cluster.
    pub fn desired(&self) -> DesiredDaemonSet {
        let daemon_set = &self.daemon_set;
        let raw = Arc::new(object(daemon_set));
        DesiredDaemonSet {
            key: daemon_set.key.clone(),
            labels: Labels::default(),
            annotations: Labels::default(),
            spec: daemon_set.spec.clone(),
            raw: Arc::clone(&raw),
            written: raw,
            place: Place { path: "ds.yaml".into(), line: 1, column: 1 },
            managed_by: ManagedBy::DaemonSetController,
            policy: None,
            loosened: None,
        }
    }
}

/// The DaemonSet as a user writes it.
pub fn object(daemon_set: &DaemonSet) -> Value {
    let spec = &daemon_set.spec;
    let strategy = match spec.update_strategy {
        UpdateStrategy::OnDelete => json!({"type": "OnDelete"}),
        UpdateStrategy::RollingUpdate { max_unavailable, max_surge } => json!({
            "type": "RollingUpdate",
            "rollingUpdate": {"maxUnavailable": max_unavailable, "maxSurge": max_surge},
        }),
    };
    json!({
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {
            "namespace": daemon_set.key.namespace, "name": daemon_set.key.name, "labels": {},
        },
        "spec": {
            "selector": spec.selector,
            "template": spec.template.raw(),
            "updateStrategy": strategy,
            "minReadySeconds": spec.min_ready_seconds,
            "revisionHistoryLimit": spec.revision_history_limit,
        },
    })
}
