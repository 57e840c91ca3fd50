//! Collects the decoded objects of a snapshot. Each object is decoded at once and its text dropped.

mod protobuf;

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::event::{self, PodWarning};
use super::pieces::Pieces;
use super::{
    Cause, Context, Kind, ObjectError, Wire, controller_revision, daemon_set, lease, namespace,
    node, pod, record, rest, service,
};
use daemonset::model::{
    ClusterInfo, Coverage, DaemonSet, Interner, Lease, Namespace, Node, NodeName, Pod, PodTarget,
    Revision, Service, Snapshot, TextSet, Uid,
};

pub(crate) use protobuf::has_protobuf;

/// The namespace whose uid serves as the cluster's identity.
pub(crate) const KUBE_SYSTEM: &str = "kube-system";

/// The objects of a cluster that have been read.
#[derive(Debug, Default)]
pub(crate) struct SnapshotBuilder {
    nodes: Pieces<Node>,
    pods: Pieces<Pod>,
    daemon_sets: Vec<DaemonSet>,
    /// DaemonSets from record ConfigMaps.
    records: Vec<DaemonSet>,
    revisions: Vec<Revision>,
    namespaces: Vec<Namespace>,
    services: Vec<Service>,
    leases: Vec<Lease>,
    /// The number of leases that are not kept, because they are not held locks and have no failed
    /// templates: each node has one.
    other_leases: usize,
    /// The last warning about each pod.
    warnings: BTreeMap<Uid, PodWarning>,
    interner: Interner,
    /// Uid of the namespace `kube-system`, once it was read.
    pub(crate) kube_system: Option<Uid>,
    /// Objects with a part that could not be decoded.
    unreadable: Vec<ObjectError>,
    /// Whether any object had `managedFields`.
    pub(crate) managed_fields: bool,
    /// The newest past time in any object.
    pub(crate) newest: Option<Timestamp>,
}

/// Decodes a single DaemonSet.
pub(crate) fn one_daemon_set(json: &str) -> Result<DaemonSet, ObjectError> {
    alone::<daemon_set::Wire<'_>>(json)
}

/// Decodes a single ConfigMap; `None` when it is not a record.
pub(crate) fn one_record(json: &str) -> Result<Option<DaemonSet>, ObjectError> {
    alone::<record::Wire<'_>>(json)
}

/// Decodes a single ControllerRevision.
pub(crate) fn one_revision(json: &str) -> Result<Revision, ObjectError> {
    alone::<controller_revision::Wire<'_>>(json)
}

fn alone<'a, W: Wire<'a>>(json: &'a str) -> Result<W::Slim, ObjectError> {
    let decoded = SnapshotBuilder::default().one::<W>(json);
    decoded.map_err(|cause| explain(W::KIND, 0, json, &cause))
}

/// A decoded object of a watched kind.
#[derive(Debug)]
#[expect(missing_docs, reason = "each variant is the kind of its name")]
pub enum Object {
    Node(Node),
    DaemonSet(DaemonSet),
    ControllerRevision(Revision),
    Pod(Pod),
}

impl SnapshotBuilder {
    /// Removes and returns the last decoded object of this kind. Interned texts stay.
    pub(crate) fn take_last(&mut self, kind: Kind) -> Option<Object> {
        match kind {
            // Not watched.
            Kind::Namespace | Kind::Service | Kind::Lease | Kind::Event => None,
            Kind::DaemonSetRecord => self.records.pop().map(Object::DaemonSet),
            Kind::Node => self.nodes.pop().map(Object::Node),
            Kind::DaemonSet => self.daemon_sets.pop().map(Object::DaemonSet),
            Kind::ControllerRevision => self.revisions.pop().map(Object::ControllerRevision),
            Kind::Pod => self.pods.pop().map(Object::Pod),
        }
    }

    /// Decodes one object; `index` is its place in the list, from 0. A part that clients other than
    /// the API server write, such as a status, may be invalid: it is recorded as unreadable, and is
    /// not an error.
    ///
    /// # Errors
    /// The object is invalid for its kind.
    pub(crate) fn add(&mut self, kind: Kind, index: usize, json: &str) -> Result<(), ObjectError> {
        let Err(cause) = self.decode(kind, json) else { return Ok(()) };
        let error = explain(kind, index, json, &cause);
        if self.rest(&error, json) {
            self.unreadable.push(error);
            return Ok(());
        }
        Err(error)
    }

    /// Decodes the object without its invalid part. Returns whether that part is dispensable.
    fn rest(&mut self, error: &ObjectError, json: &str) -> bool {
        let mut again =
            |field| rest::without(json, field).map(|json| self.decode(error.kind, &json));
        match error.kind {
            Kind::Pod | Kind::Node => {
                let is_read = matches!(again("status"), Some(Ok(())));
                if let (true, Kind::Pod, Some(pod)) = (is_read, error.kind, self.pods.last_mut()) {
                    rest::is_not_ready(pod, error, json);
                }
                is_read
            }
            Kind::ControllerRevision => matches!(again("data"), Some(Ok(()))),
            // Any client that may write ConfigMaps can create these, so they may be invalid.
            Kind::DaemonSetRecord => error.name.as_ref().is_some_and(|name| name.contains('/')),
            Kind::Namespace | Kind::DaemonSet | Kind::Service | Kind::Lease | Kind::Event => false,
        }
    }

    /// Removes and returns the error of a record that cannot be decoded, if there is one.
    pub(crate) fn unreadable_record(&mut self) -> Option<ObjectError> {
        let at = self.unreadable.iter().position(|error| error.kind == Kind::DaemonSetRecord)?;
        Some(self.unreadable.swap_remove(at))
    }

    fn decode(&mut self, kind: Kind, json: &str) -> Result<(), Cause> {
        match kind {
            Kind::Namespace => {
                let namespace = self.one::<namespace::Wire<'_>>(json)?;
                self.namespaces.push(namespace);
            }
            Kind::Node => {
                let node = self.one::<node::Wire<'_>>(json)?;
                self.nodes.push(node);
            }
            Kind::DaemonSet => {
                let daemon_set = self.one::<daemon_set::Wire<'_>>(json)?;
                self.daemon_sets.push(daemon_set);
            }
            Kind::ControllerRevision => {
                let revision = self.one::<controller_revision::Wire<'_>>(json)?;
                self.revisions.push(revision);
            }
            Kind::Pod => {
                let pod = self.one::<pod::Wire<'_>>(json)?;
                self.pods.push(pod);
            }
            Kind::Service => {
                let service = self.one::<service::Wire<'_>>(json)?;
                self.services.push(service);
            }
            Kind::Event => {
                if let Some(warning) = self.one::<event::Wire<'_>>(json)? {
                    self.warn(warning);
                }
            }
            Kind::DaemonSetRecord => {
                let record = self.one::<record::Wire<'_>>(json)?;
                self.records.extend(record);
            }
            Kind::Lease => {
                let lease = self.one::<lease::Wire<'_>>(json)?;
                if lease.failed.is_empty() && lease.steps.is_none() && lease.holder.is_none() {
                    self.other_leases += 1;
                } else {
                    self.leases.push(lease);
                }
            }
        }
        Ok(())
    }

    /// Keeps a warning unless a later one about the same pod is known.
    fn warn(&mut self, warning: PodWarning) {
        let known = self.warnings.get(&warning.pod);
        if known.is_none_or(|known| known.at <= warning.at) {
            self.warnings.insert(warning.pod.clone(), warning);
        }
    }

    /// Adds the last warning to each pod that is not Ready.
    pub(crate) fn report_warnings(&self, pods: &mut [Pod]) {
        if self.warnings.is_empty() {
            return;
        }
        for pod in pods.iter_mut().filter(|pod| !pod.is_ready() && !pod.terminating) {
            if let Some(warning) = self.warnings.get(&pod.uid) {
                pod.unready.get_or_insert_default().warning = Some(warning.text.clone());
            }
        }
    }

    fn one<'a, W: Wire<'a>>(&mut self, json: &'a str) -> Result<W::Slim, Cause> {
        let wire: W = serde_json::from_str(json)?;
        self.slim(wire, json)
    }

    /// Converts a pod from a JSON value. `None` when it is invalid: decode its text for the error.
    pub(super) fn pod(&mut self, values: &Value) -> Option<Pod> {
        let wire = pod::Wire::deserialize(values).ok()?;
        // A slim pod does not keep its text.
        self.slim(wire, "").ok()
    }

    fn slim<'a, W: Wire<'a>>(&mut self, wire: W, json: &'a str) -> Result<W::Slim, Cause> {
        let mut context = Context { interner: &mut self.interner, newest: &mut self.newest };
        wire.metadata().note(&mut context);
        if wire.metadata().name()? == KUBE_SYSTEM && W::KIND == Kind::Namespace {
            self.kube_system = Some(wire.metadata().uid()?);
        }
        self.managed_fields |= wire.metadata().has_managed_fields();
        wire.slim(json, &mut context)
    }

    /// Adds the objects of another list.
    pub(crate) fn merge(&mut self, mut other: Self) {
        self.nodes.append(&mut other.nodes);
        self.pods.append(&mut other.pods);
        self.daemon_sets.append(&mut other.daemon_sets);
        self.records.append(&mut other.records);
        self.revisions.append(&mut other.revisions);
        self.namespaces.append(&mut other.namespaces);
        self.services.append(&mut other.services);
        self.leases.append(&mut other.leases);
        self.other_leases += other.other_leases;
        for warning in other.warnings.into_values() {
            self.warn(warning);
        }
        self.kube_system = self.kube_system.take().or(other.kube_system);
        self.unreadable.append(&mut other.unreadable);
        self.managed_fields |= other.managed_fields;
        self.newest = self.newest.max(other.newest);
    }

    /// Whether no nodes were read.
    pub(crate) fn has_no_nodes(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether any object of this kind was read.
    pub(crate) fn has(&self, wanted: Kind) -> bool {
        self.counts().into_iter().any(|(kind, count)| kind == wanted && count > 0)
    }

    /// Whether a revision is owned by a record.
    pub(crate) fn has_seen_record(&self) -> bool {
        let of_record = |it: &Revision| it.controller.as_deref().is_some_and(record::is_named_by);
        self.revisions.iter().any(of_record)
    }

    /// A kind without objects that the other objects refer to.
    pub(crate) fn left_out(&self) -> Option<Kind> {
        let seen = |daemon_set: &DaemonSet| daemon_set.status.observed_generation > 0;
        let runs = |daemon_set: &DaemonSet| daemon_set.status.current_number_scheduled > 0;
        let is_daemon_pod =
            |pod: &Pod| pod.controller.as_ref().is_some_and(|c| &*c.kind == "DaemonSet");
        if self.daemon_sets.is_empty() && self.pods.iter().any(is_daemon_pod) {
            return Some(Kind::DaemonSet);
        }
        // The controller creates a revision before it updates the status.
        if self.revisions.is_empty() && self.daemon_sets.iter().any(seen) {
            return Some(Kind::ControllerRevision);
        }
        (self.pods.is_empty() && self.daemon_sets.iter().any(runs)).then_some(Kind::Pod)
    }

    /// The number of objects of each kind.
    pub(crate) fn counts(&self) -> [(Kind, usize); 9] {
        Kind::ALL.map(|kind| {
            let count = match kind {
                Kind::Namespace => self.namespaces.len(),
                Kind::Node => self.nodes.len(),
                Kind::DaemonSet => self.daemon_sets.len(),
                Kind::ControllerRevision => self.revisions.len(),
                Kind::Pod => self.pods.len(),
                Kind::Service => self.services.len(),
                Kind::Lease => self.leases.len() + self.other_leases,
                Kind::DaemonSetRecord => self.records.len(),
                Kind::Event => self.warnings.len(),
            };
            (kind, count)
        })
    }

    /// Builds the snapshot, sorted as its methods require.
    ///
    /// # Errors
    /// The kind and name of a duplicate object.
    pub(crate) fn into_snapshot(
        mut self,
        cluster: ClusterInfo,
        observed_at: Timestamp,
        coverage: Coverage,
    ) -> Result<Snapshot, (Kind, String)> {
        let mut pods = std::mem::take(&mut self.pods).into_vec();
        self.report_warnings(&mut pods);
        let nodes = self.nodes.into_vec();
        share_node_names(&nodes, &mut pods);
        let mut records = self.records;
        records.sort_by(|a, b| a.key.cmp(&b.key));
        if let Some(key) = twice(&records, |it| it.key.clone()) {
            return Err((Kind::DaemonSetRecord, key.to_string()));
        }
        let mut daemon_sets = self.daemon_sets;
        let is_beside = |record: &DaemonSet| daemon_sets.iter().any(|it| it.key == record.key);
        let (beside, alone): (Vec<DaemonSet>, Vec<DaemonSet>) =
            records.into_iter().partition(is_beside);
        daemon_sets.extend(alone);
        let mut snapshot = Snapshot {
            cluster,
            observed_at,
            nodes,
            pods,
            daemon_sets,
            records_beside: beside.into_iter().map(|it| it.key).collect(),
            revisions: self.revisions,
            namespaces: self.namespaces,
            services: self.services,
            leases: self.leases,
            priority_classes: BTreeMap::new(),
            approvals: BTreeMap::new(),
            coverage,
            unreadable: self.unreadable.into_iter().map(rest::reported).collect(),
        };
        snapshot.sort();
        match duplicate(&snapshot) {
            Some(twice) => Err(twice),
            None => Ok(snapshot),
        }
    }
}

/// Has pods and nodes share the names of the nodes: each thread that decoded some has its own copy.
fn share_node_names(nodes: &[Node], pods: &mut [Pod]) {
    let names: TextSet<&NodeName> = nodes.iter().map(|node| &node.name).collect();
    for pod in pods {
        if let PodTarget::Bound(name) | PodTarget::Aimed(name) = &mut pod.target
            && let Some(shared) = names.get(name)
        {
            *name = (*shared).clone();
        }
    }
}

/// The first duplicate object of a sorted snapshot.
fn duplicate(snapshot: &Snapshot) -> Option<(Kind, String)> {
    let in_namespace = |(namespace, name): (_, _)| format!("{namespace}/{name}");
    let Snapshot { nodes, pods, daemon_sets, revisions, namespaces, services, leases, .. } =
        snapshot;
    [
        (Kind::Namespace, twice(namespaces, |n| n.name.clone()).map(|name| name.to_string())),
        (Kind::Node, twice(nodes, |n| n.name.clone()).map(|name| name.to_string())),
        (Kind::DaemonSet, twice(daemon_sets, |d| d.key.clone()).map(|key| key.to_string())),
        (
            Kind::ControllerRevision,
            twice(revisions, |r| (r.namespace.to_string(), r.name.to_string())).map(in_namespace),
        ),
        (
            Kind::Pod,
            twice(pods, |p| (p.namespace.to_string(), p.name.to_string())).map(in_namespace),
        ),
        (
            Kind::Service,
            twice(services, |s| (s.namespace.to_string(), s.name.to_string())).map(in_namespace),
        ),
        (
            Kind::Lease,
            twice(leases, |l| (l.namespace.to_string(), l.name.to_string())).map(in_namespace),
        ),
    ]
    .into_iter()
    .find_map(|(kind, name)| Some((kind, name?)))
}

/// The key of the first two neighbours with the same key.
fn twice<T, K: PartialEq>(objects: &[T], key: impl Fn(&T) -> K) -> Option<K> {
    let same = |pair: &&[T]| key(&pair[0]) == key(&pair[1]);
    objects.windows(2).find(same).map(|pair| key(&pair[0]))
}

/// Decodes the object again, slowly, to find its name and the invalid field.
fn explain(kind: Kind, index: usize, json: &str, cause: &Cause) -> ObjectError {
    let (path, reason) = match cause {
        Cause::Missing(path) => ((*path).to_owned(), "is missing".to_owned()),
        Cause::Inside(path, reason) => ((*path).to_owned(), reason.clone()),
        Cause::Malformed(malformed) => (malformed.path.clone(), malformed.reason.to_string()),
        Cause::Shape => match kind {
            Kind::Namespace => field_at_fault::<namespace::Wire<'_>>(json),
            Kind::Node => field_at_fault::<node::Wire<'_>>(json),
            Kind::DaemonSet => field_at_fault::<daemon_set::Wire<'_>>(json),
            Kind::ControllerRevision => field_at_fault::<controller_revision::Wire<'_>>(json),
            Kind::Pod => field_at_fault::<pod::Wire<'_>>(json),
            Kind::Service => field_at_fault::<service::Wire<'_>>(json),
            Kind::Lease => field_at_fault::<lease::Wire<'_>>(json),
            Kind::DaemonSetRecord => field_at_fault::<record::Wire<'_>>(json),
            Kind::Event => field_at_fault::<event::Wire<'_>>(json),
        },
    };
    ObjectError { kind, index, name: name_of(json), path, reason }
}

fn field_at_fault<'de, T: Deserialize<'de>>(json: &'de str) -> (String, String) {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
        Err(error) => {
            let path = error.path().to_string();
            let reason = reason_alone(error.inner());
            (if path == "." { String::new() } else { path }, reason)
        }
        // The typed form is valid, so the raw object is nested too deeply.
        Ok(_) => (String::new(), "is nested too deeply".to_owned()),
    }
}

/// The message of an error without its line and column, which are relative to the parsed text.
pub(crate) fn reason_alone(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).map_or(text.clone(), str::to_owned)
}

/// `NAMESPACE/NAME` of an object that could not be decoded, as far as they can be read.
fn name_of(json: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct Whole {
        metadata: Named,
    }
    #[derive(Deserialize)]
    struct Named {
        namespace: Option<String>,
        name: String,
    }
    // All other fields are skipped, however deep they are.
    let Whole { metadata: Named { namespace, name } } = serde_json::from_str(json).ok()?;
    Some(namespace.map_or_else(|| name.clone(), |namespace| format!("{namespace}/{name}")))
}
