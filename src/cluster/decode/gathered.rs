//! The objects read so far: each is decoded as it comes, and its text dropped.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use super::event::{self, PodWarning};
use super::{
    Cause, Context, Kind, ObjectError, Wire, controller_revision, daemon_set, lease, ledger,
    namespace, node, pod, rest, service,
};
use crate::model::{
    ClusterInfo, Coverage, DaemonSet, Interner, Lease, Namespace, Node, Pod, Revision, Service,
    Snapshot, Uid,
};

/// The namespace whose uid serves as the cluster's identity.
pub(in crate::cluster) const KUBE_SYSTEM: &str = "kube-system";

/// What has been read of a cluster.
#[derive(Debug, Default)]
pub(in crate::cluster) struct Gathered {
    nodes: Vec<Node>,
    pods: Vec<Pod>,
    daemon_sets: Vec<DaemonSet>,
    /// DaemonSets for which a ConfigMap stands.
    ledgers: Vec<DaemonSet>,
    revisions: Vec<Revision>,
    namespaces: Vec<Namespace>,
    services: Vec<Service>,
    leases: Vec<Lease>,
    /// Leases that remember nothing and are not ours are counted, not kept: each node of a cluster has one.
    other_leases: usize,
    /// The last warning about each pod.
    warnings: BTreeMap<Uid, PodWarning>,
    interner: Interner,
    /// Uid of the namespace `kube-system`, once it was seen.
    pub(in crate::cluster) kube_system: Option<Uid>,
    /// Objects of which something could not be read.
    unreadable: Vec<ObjectError>,
    /// Whether any object had `managedFields`.
    pub(in crate::cluster) managed_fields: bool,
    /// The newest moment that any object speaks of.
    pub(in crate::cluster) newest: Option<Timestamp>,
}

/// Decodes a DaemonSet that was read by itself.
pub(in crate::cluster) fn one_daemon_set(json: &str) -> Result<DaemonSet, ObjectError> {
    alone::<daemon_set::Wire<'_>>(json)
}

/// Decodes a ConfigMap that was read by itself; `None` when it is no ledger.
pub(in crate::cluster) fn one_ledger(json: &str) -> Result<Option<DaemonSet>, ObjectError> {
    alone::<ledger::Wire<'_>>(json)
}

/// Decodes a ControllerRevision that was read by itself.
pub(in crate::cluster) fn one_revision(json: &str) -> Result<Revision, ObjectError> {
    alone::<controller_revision::Wire<'_>>(json)
}

fn alone<'a, W: Wire<'a>>(json: &'a str) -> Result<W::Slim, ObjectError> {
    let decoded = Gathered::default().one::<W>(json);
    decoded.map_err(|cause| explain(W::KIND, 0, json, &cause))
}

/// One object of a kind that is watched, decoded.
#[derive(Debug)]
pub(crate) enum Object {
    Node(Node),
    DaemonSet(DaemonSet),
    ControllerRevision(Revision),
    Pod(Pod),
}

impl Gathered {
    /// Takes out the object of this kind that was read last. Shared texts stay.
    pub(in crate::cluster) fn take_last(&mut self, kind: Kind) -> Option<Object> {
        match kind {
            // Not watched.
            Kind::Namespace | Kind::Service | Kind::Lease | Kind::Event => None,
            Kind::Ledger => self.ledgers.pop().map(Object::DaemonSet),
            Kind::Node => self.nodes.pop().map(Object::Node),
            Kind::DaemonSet => self.daemon_sets.pop().map(Object::DaemonSet),
            Kind::ControllerRevision => self.revisions.pop().map(Object::ControllerRevision),
            Kind::Pod => self.pods.pop().map(Object::Pod),
        }
    }

    /// Decodes one object, which was number `index` (from 0) of its list. What others than the API
    /// server decide, such as a status, keeps nobody from reading the other objects.
    ///
    /// # Errors
    /// It is not what the API server serves for its kind.
    pub(in crate::cluster) fn add(
        &mut self,
        kind: Kind,
        index: usize,
        json: &str,
    ) -> Result<(), ObjectError> {
        let Err(cause) = self.decode(kind, json) else { return Ok(()) };
        let error = explain(kind, index, json, &cause);
        if self.rest(&error, json) {
            self.unreadable.push(error);
            return Ok(());
        }
        Err(error)
    }

    /// Keeps of an object what can be read. Whether the rest can be done without.
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
            // Anybody who may write ConfigMaps writes these; nothing of them is believed.
            Kind::Ledger => error.name.as_ref().is_some_and(|name| name.contains('/')),
            Kind::Namespace | Kind::DaemonSet | Kind::Service | Kind::Lease | Kind::Event => false,
        }
    }

    /// A record of a DaemonSet that cannot be read, if there is one.
    pub(in crate::cluster) fn unreadable_record(&mut self) -> Option<ObjectError> {
        let at = self.unreadable.iter().position(|error| error.kind == Kind::Ledger)?;
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
            Kind::Ledger => {
                let ledger = self.one::<ledger::Wire<'_>>(json)?;
                self.ledgers.extend(ledger);
            }
            Kind::Lease => {
                let lease = self.one::<lease::Wire<'_>>(json)?;
                if lease.failed.is_empty() && lease.holder.is_none() {
                    self.other_leases += 1;
                } else {
                    self.leases.push(lease);
                }
            }
        }
        Ok(())
    }

    /// Keeps a warning, unless a later one about the same pod is known.
    fn warn(&mut self, warning: PodWarning) {
        let known = self.warnings.get(&warning.pod);
        if known.is_none_or(|known| known.at <= warning.at) {
            self.warnings.insert(warning.pod.clone(), warning);
        }
    }

    /// Tells pods that are not Ready the last warning about each.
    pub(in crate::cluster) fn tell_warnings(&self, pods: &mut [Pod]) {
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

    /// The slim view of a pod that is at hand as values. `None` when its text has to be read, to say
    /// what is wrong with it.
    pub(super) fn pod(&mut self, values: &Value) -> Option<Pod> {
        let wire = pod::Wire::deserialize(values).ok()?;
        // A slim pod keeps nothing of its text.
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

    /// Takes over what another list brought.
    pub(in crate::cluster) fn absorb(&mut self, mut other: Self) {
        self.nodes.append(&mut other.nodes);
        self.pods.append(&mut other.pods);
        self.daemon_sets.append(&mut other.daemon_sets);
        self.ledgers.append(&mut other.ledgers);
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

    /// Whether not a single node was read.
    pub(in crate::cluster) fn has_no_nodes(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether any object of this kind was read.
    pub(in crate::cluster) fn has(&self, wanted: Kind) -> bool {
        self.counts().into_iter().any(|(kind, count)| kind == wanted && count > 0)
    }

    /// Whether a revision belongs to a ledger.
    pub(in crate::cluster) fn has_seen_ledger(&self) -> bool {
        let of_ledger = |it: &Revision| it.controller.as_ref().is_some_and(ledger::is_named_by);
        self.revisions.iter().any(of_ledger)
    }

    /// A kind of which there is nothing, although the other objects say that there must be.
    pub(in crate::cluster) fn left_out(&self) -> Option<Kind> {
        let seen = |daemon_set: &DaemonSet| daemon_set.status.observed_generation > 0;
        let runs = |daemon_set: &DaemonSet| daemon_set.status.current_number_scheduled > 0;
        let is_daemon_pod =
            |pod: &Pod| pod.controller.as_ref().is_some_and(|c| &*c.kind == "DaemonSet");
        if self.daemon_sets.is_empty() && self.pods.iter().any(is_daemon_pod) {
            return Some(Kind::DaemonSet);
        }
        // The controller makes a revision before it counts anything.
        if self.revisions.is_empty() && self.daemon_sets.iter().any(seen) {
            return Some(Kind::ControllerRevision);
        }
        (self.pods.is_empty() && self.daemon_sets.iter().any(runs)).then_some(Kind::Pod)
    }

    /// How many objects of each kind were read.
    pub(in crate::cluster) fn counts(&self) -> [(Kind, usize); 9] {
        Kind::ALL.map(|kind| {
            let count = match kind {
                Kind::Namespace => self.namespaces.len(),
                Kind::Node => self.nodes.len(),
                Kind::DaemonSet => self.daemon_sets.len(),
                Kind::ControllerRevision => self.revisions.len(),
                Kind::Pod => self.pods.len(),
                Kind::Service => self.services.len(),
                Kind::Lease => self.leases.len() + self.other_leases,
                Kind::Ledger => self.ledgers.len(),
                Kind::Event => self.warnings.len(),
            };
            (kind, count)
        })
    }

    /// Everything as one snapshot, in the order that its methods rely on.
    ///
    /// # Errors
    /// The kind and name of an object that is there twice.
    pub(in crate::cluster) fn into_snapshot(
        mut self,
        cluster: ClusterInfo,
        observed_at: Timestamp,
        coverage: Coverage,
    ) -> Result<Snapshot, (Kind, String)> {
        let mut pods = std::mem::take(&mut self.pods);
        self.tell_warnings(&mut pods);
        let mut ledgers = self.ledgers;
        ledgers.sort_by(|a, b| a.key.cmp(&b.key));
        if let Some(key) = twice(&ledgers, |it| it.key.clone()) {
            return Err((Kind::Ledger, key.to_string()));
        }
        let mut daemon_sets = self.daemon_sets;
        let is_beside = |ledger: &DaemonSet| daemon_sets.iter().any(|it| it.key == ledger.key);
        let (beside, alone): (Vec<DaemonSet>, Vec<DaemonSet>) =
            ledgers.into_iter().partition(is_beside);
        daemon_sets.extend(alone);
        let mut snapshot = Snapshot {
            cluster,
            observed_at,
            nodes: self.nodes,
            pods,
            daemon_sets,
            ledgers_beside: beside.into_iter().map(|it| it.key).collect(),
            revisions: self.revisions,
            namespaces: self.namespaces,
            services: self.services,
            leases: self.leases,
            coverage,
            unreadable: self.unreadable.into_iter().map(rest::told).collect(),
        };
        snapshot.sort();
        match duplicate(&snapshot) {
            Some(twice) => Err(twice),
            None => Ok(snapshot),
        }
    }
}

/// The first object of a sorted snapshot that is there twice.
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

/// The first two neighbours with the same key.
fn twice<T, K: PartialEq>(objects: &[T], key: impl Fn(&T) -> K) -> Option<K> {
    let same = |pair: &&[T]| key(&pair[0]) == key(&pair[1]);
    objects.windows(2).find(same).map(|pair| key(&pair[0]))
}

/// Reads the object once more, slowly, to say which one it is and which field is wrong.
fn explain(kind: Kind, index: usize, json: &str, cause: &Cause) -> ObjectError {
    let (path, reason) = match cause {
        Cause::Missing(path) => ((*path).to_owned(), "is missing".to_owned()),
        Cause::Inside(path, reason) => ((*path).to_owned(), reason.clone()),
        Cause::Shape => match kind {
            Kind::Namespace => field_at_fault::<namespace::Wire<'_>>(json),
            Kind::Node => field_at_fault::<node::Wire<'_>>(json),
            Kind::DaemonSet => field_at_fault::<daemon_set::Wire<'_>>(json),
            Kind::ControllerRevision => field_at_fault::<controller_revision::Wire<'_>>(json),
            Kind::Pod => field_at_fault::<pod::Wire<'_>>(json),
            Kind::Service => field_at_fault::<service::Wire<'_>>(json),
            Kind::Lease => field_at_fault::<lease::Wire<'_>>(json),
            Kind::Ledger => field_at_fault::<ledger::Wire<'_>>(json),
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
        // The typed view could be read; then it was the whole that is nested too deep.
        Ok(_) => (String::new(), "is nested too deep".to_owned()),
    }
}

/// The message without its line and column, which count from the first byte of what was parsed.
pub(in crate::cluster) fn reason_alone(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).map_or(text.clone(), str::to_owned)
}

/// `NAMESPACE/NAME`, as far as they can be read in an object that could not be decoded.
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
    // Whatever else it holds, and however deep that is, is passed over.
    let Whole { metadata: Named { namespace, name } } = serde_json::from_str(json).ok()?;
    Some(namespace.map_or_else(|| name.clone(), |namespace| format!("{namespace}/{name}")))
}
