//! One version of one object: its JSON text, and the parts that are read often.
//!
//! The text is stored, because it is what is served: lists and watches copy it, and it takes a
//! fifth of the memory of a tree of values. A change parses the object once, without its `spec` if
//! that stays the same ([`Draft`]).

mod text;

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::text::Text;
use super::Kind;
use cluster::{SlimDecoder, SlimObject};
use daemonset::model::{DaemonSet, Interner, Labels, Node, Pod, Revision, Uid};

/// Namespace and name, in the order in which the server's store keeps them: by `NAMESPACE/NAME` as
/// one text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey(Arc<str>);

impl ObjectKey {
    /// The key of an object; the namespace is empty for cluster-scoped kinds.
    pub fn new(namespace: &str, name: &str) -> Self {
        if namespace.is_empty() { Self(name.into()) } else { Self(path(namespace, name).into()) }
    }

    /// The namespace; empty for cluster-scoped kinds.
    pub fn namespace(&self) -> &str {
        self.0.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(_, name)| name)
    }

    /// `NAMESPACE/NAME`, or the name for cluster-scoped kinds.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn path(namespace: &str, name: &str) -> String {
    format!("{namespace}/{name}")
}

impl Borrow<str> for ObjectKey {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// An owner of an object (upstream: `metav1.OwnerReference`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Kind of the owner; `None` for kinds that are not served.
    pub kind: Option<Kind>,
    /// Name of the owner, which is in the same namespace or cluster-scoped.
    pub name: Box<str>,
    /// Uid of the owner.
    pub uid: Uid,
    /// `true` if a foreground deletion of the owner waits for this object.
    pub blocks_deletion: bool,
}

/// The part of `metadata` that the server itself uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The `uid`.
    pub uid: Uid,
    /// The `labels`.
    pub labels: Labels,
    /// The `ownerReferences`.
    pub owners: Box<[Owner]>,
    /// The `finalizers`, which must be removed before the object is.
    pub finalizers: Box<[Box<str>]>,
    /// The `generation`; 0 if absent.
    pub generation: i64,
    /// The `creationTimestamp`.
    pub created: Option<Timestamp>,
    /// The `deletionTimestamp`: the end of the grace period.
    pub deleted: Option<Timestamp>,
    /// The `deletionGracePeriodSeconds`.
    pub grace_seconds: Option<i64>,
}

impl Meta {
    fn of(object: &Value, labels: Labels) -> Self {
        let metadata = &object["metadata"];
        let list = |field: &str| metadata[field].as_array().map(Vec::as_slice).unwrap_or_default();
        let time = |field: &str| metadata[field].as_str().and_then(|text| text.parse().ok());
        Self {
            uid: metadata["uid"].as_str().unwrap_or_default().into(),
            labels,
            owners: list("ownerReferences").iter().map(owner).collect(),
            finalizers: list("finalizers")
                .iter()
                .filter_map(Value::as_str)
                .map(Into::into)
                .collect(),
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            created: time("creationTimestamp"),
            deleted: time("deletionTimestamp"),
            grace_seconds: metadata["deletionGracePeriodSeconds"].as_i64(),
        }
    }
}

/// Reads `metadata.labels`.
fn labels(object: &Value, interner: &mut Interner) -> Labels {
    let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
    let pairs: Vec<_> =
        labels.map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default())).collect();
    interner.labels(pairs.iter().copied())
}

fn owner(reference: &Value) -> Owner {
    let text = |field: &str| reference[field].as_str().unwrap_or_default();
    Owner {
        kind: Kind::of(text("apiVersion"), text("kind")),
        name: text("name").into(),
        uid: text("uid").into(),
        blocks_deletion: reference["blockOwnerDeletion"] == true,
    }
}

/// The slim view of an object for controllers and planning.
#[derive(Clone, Debug, PartialEq)]
enum View {
    Node(Node),
    Pod(Pod),
    /// Boxed: DaemonSets are few, and large.
    DaemonSet(Box<DaemonSet>),
    Revision(Revision),
    /// The DaemonSet of a record ConfigMap.
    DaemonSetRecord(Box<DaemonSet>),
    /// There is no slim view of this kind.
    None,
}

impl View {
    /// The labels of the view, to be shared.
    fn labels(&self) -> Option<&Labels> {
        match self {
            Self::Node(node) => Some(&node.labels),
            Self::Pod(pod) => Some(&pod.labels),
            Self::DaemonSet(daemon_set) => Some(&daemon_set.labels),
            Self::Revision(revision) => Some(&revision.labels),
            Self::DaemonSetRecord(_) | Self::None => None,
        }
    }
}

/// One immutable version of one object.
#[derive(Debug)]
pub struct Object {
    kind: Kind,
    key: ObjectKey,
    version: u64,
    text: Text,
    meta: Meta,
    view: View,
}

/// A changed object before it is stored.
#[derive(Debug)]
pub(super) struct Draft {
    /// The object as values; without `spec` if that is taken from another version.
    pub(super) value: Value,
    /// The version whose `spec` is reused.
    spec_of: Option<Arc<Object>>,
}

impl From<Value> for Draft {
    fn from(value: Value) -> Self {
        Self { value, spec_of: None }
    }
}

/// An object that cannot be stored, and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {key}: {reason}")]
pub struct UnreadableObject {
    /// Kind of the object.
    pub kind: Kind,
    /// Key of the object.
    pub key: ObjectKey,
    /// The reason.
    pub reason: String,
}

impl Object {
    /// Reads the required parts of an object whose `metadata` is complete.
    pub(super) fn new(
        kind: Kind,
        key: ObjectKey,
        version: u64,
        draft: &Draft,
        reading: &mut Reading,
    ) -> Result<Self, UnreadableObject> {
        let Draft { value, spec_of } = draft;
        let before = spec_of.as_deref();
        let text = Text::of(value, before.map(|before| &before.text), &mut reading.room);
        match reading.view(kind, value, before, &text) {
            Ok(view) => {
                let shared = view.labels().cloned();
                let labels = shared.unwrap_or_else(|| labels(value, &mut reading.interner));
                let meta = Meta::of(value, labels);
                Ok(Self { kind, key, version, text, meta, view })
            }
            Err(reason) => Err(UnreadableObject { kind, key, reason }),
        }
    }

    /// Kind of the object.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Key of the object.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// `metadata.resourceVersion`.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The metadata.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The JSON text as an item of a list, without `kind` and `apiVersion`, in pieces.
    pub fn item_json(&self) -> [&str; 3] {
        self.text.pieces()
    }

    /// The JSON text of the single object.
    pub fn json(&self) -> String {
        let (kind, version) = (self.kind, self.kind.api_version());
        let [first, spec, rest] = self.text.pieces();
        let first = first.strip_prefix('{').unwrap_or(first);
        format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{version}\",{first}{spec}{rest}")
    }

    /// A copy of the object as values, with `kind` and `apiVersion`, to be changed and written.
    pub fn value(&self) -> Value {
        self.typed(&self.text.whole())
    }

    /// A draft that keeps `spec`, which is not parsed.
    pub(super) fn draft(self: &Arc<Self>) -> Draft {
        let value = self.typed(&self.text.without_spec());
        Draft { value, spec_of: Some(Arc::clone(self)) }
    }

    /// Parts of its `spec`; the default if it does not have one.
    pub(super) fn spec<T: DeserializeOwned + Default>(&self) -> T {
        // The text was written from values of that shape.
        self.text.spec().and_then(|spec| serde_json::from_str(spec).ok()).unwrap_or_default()
    }

    fn typed(&self, text: &str) -> Value {
        // The text was written from values.
        let mut value: Value = serde_json::from_str(text).unwrap_or_default();
        value["kind"] = self.kind.as_str().into();
        value["apiVersion"] = self.kind.api_version().into();
        value
    }

    /// The slim view of a node.
    pub fn node(&self) -> Option<&Node> {
        if let View::Node(node) = &self.view { Some(node) } else { None }
    }

    /// The slim view of a pod.
    pub fn pod(&self) -> Option<&Pod> {
        if let View::Pod(pod) = &self.view { Some(pod) } else { None }
    }

    /// The slim view of a DaemonSet.
    pub fn daemon_set(&self) -> Option<&DaemonSet> {
        if let View::DaemonSet(daemon_set) = &self.view { Some(daemon_set) } else { None }
    }

    /// The DaemonSet of a record ConfigMap, if it can be read.
    pub fn record(&self) -> Option<&DaemonSet> {
        if let View::DaemonSetRecord(daemon_set) = &self.view { Some(daemon_set) } else { None }
    }

    /// The slim view of a ControllerRevision.
    pub fn revision(&self) -> Option<&Revision> {
        if let View::Revision(revision) = &self.view { Some(revision) } else { None }
    }
}

/// Reads views, and interns their strings.
#[derive(Debug, Default)]
pub(super) struct Reading {
    interner: Interner,
    decoder: SlimDecoder,
    /// Buffer for JSON texts before they are stored.
    room: Vec<u8>,
}

impl Reading {
    /// The view of an object; `before` is the version whose `spec` is reused, if the draft omits
    /// its own.
    fn view(
        &mut self,
        kind: Kind,
        values: &Value,
        before: Option<&Object>,
        text: &Text,
    ) -> Result<View, String> {
        let slim = match kind {
            Kind::Node => cluster::Kind::Node,
            Kind::Pod => cluster::Kind::Pod,
            Kind::DaemonSet => cluster::Kind::DaemonSet,
            Kind::ControllerRevision => cluster::Kind::ControllerRevision,
            Kind::ConfigMap => return Ok(self.record(text)),
            Kind::Namespace | Kind::Service | Kind::Event | Kind::Lease => return Ok(View::None),
        };
        // Pods are the most frequent kind, and most of their text would be skipped.
        if kind == Kind::Pod
            && let Some(pod) = self.decoder.pod(values)
        {
            let target = before.and_then(Object::pod).map(|before| before.target.clone());
            return Ok(View::Pod(Pod { target: target.unwrap_or(pod.target), ..pod }));
        }
        match self.decoder.decode(slim, &text.whole()).map_err(|error| error.to_string())? {
            Some(SlimObject::Node(node)) => Ok(View::Node(node)),
            Some(SlimObject::Pod(pod)) => Ok(View::Pod(pod)),
            Some(SlimObject::DaemonSet(daemon_set)) => Ok(View::DaemonSet(Box::new(daemon_set))),
            Some(SlimObject::ControllerRevision(revision)) => Ok(View::Revision(revision)),
            None => Ok(View::None),
        }
    }

    /// Reads a record; an invalid one is accepted, as it is an ordinary ConfigMap to the server.
    fn record(&mut self, text: &Text) -> View {
        match self.decoder.decode(cluster::Kind::DaemonSetRecord, &text.whole()) {
            Ok(Some(SlimObject::DaemonSet(daemon_set))) => {
                View::DaemonSetRecord(Box::new(daemon_set))
            }
            Ok(_) | Err(_) => View::None,
        }
    }
}
