//! One version of one object: its JSON text, and what is read of it again and again.
//!
//! The text is what is kept, because it is what is served: lists and watches copy it, and it takes
//! a fifth of what a tree of values does. Whoever changes an object has it parsed once, and without
//! its `spec` where that stays as it is ([`Draft`]).

mod text;

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde::de::DeserializeOwned;
use serde_json::Value;

use self::text::Text;
use super::Kind;
use crate::cluster::{SlimDecoder, SlimObject};
use crate::model::{DaemonSet, Interner, Labels, Node, Pod, Revision, Uid};

/// Namespace and name, in the order in which the server's store keeps them: by `NAMESPACE/NAME` as
/// one text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey(Arc<str>);

impl ObjectKey {
    /// The key of an object; the namespace is empty for what lives in none.
    pub fn new(namespace: &str, name: &str) -> Self {
        if namespace.is_empty() { Self(name.into()) } else { Self(path(namespace, name).into()) }
    }

    /// The namespace; empty for what lives in none.
    pub fn namespace(&self) -> &str {
        self.0.split_once('/').map_or("", |(namespace, _)| namespace)
    }

    /// The name.
    pub fn name(&self) -> &str {
        self.0.split_once('/').map_or(&*self.0, |(_, name)| name)
    }

    /// `NAMESPACE/NAME`, or the name.
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

/// An object to whom another one belongs (upstream: `metav1.OwnerReference`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// What it is; `None` for kinds that are not served.
    pub kind: Option<Kind>,
    /// Its name; it is in the same namespace, or in none.
    pub name: Box<str>,
    /// Its identity.
    pub uid: Uid,
    /// Whether a deletion of the owner in the foreground waits for this object.
    pub blocks_deletion: bool,
}

/// `metadata`, as far as the server itself goes by it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// `uid`.
    pub uid: Uid,
    /// `labels`.
    pub labels: Labels,
    /// `ownerReferences`.
    pub owners: Box<[Owner]>,
    /// `finalizers`: what must be gone before the object is.
    pub finalizers: Box<[Box<str>]>,
    /// `generation`.
    pub generation: i64,
    /// `creationTimestamp`.
    pub created: Option<Timestamp>,
    /// `deletionTimestamp`: when the grace period will have passed.
    pub deleted: Option<Timestamp>,
    /// `deletionGracePeriodSeconds`.
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

/// `metadata.labels`.
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

/// What controllers and planning see of an object.
#[derive(Clone, Debug, PartialEq)]
enum View {
    Node(Node),
    Pod(Pod),
    /// Of these there are few, and they are large.
    DaemonSet(Box<DaemonSet>),
    Revision(Revision),
    /// A ConfigMap that stands for it.
    Ledger(Box<DaemonSet>),
    /// Of this kind there is no slim view.
    None,
}

impl View {
    /// The labels, to be shared.
    fn labels(&self) -> Option<&Labels> {
        match self {
            Self::Node(node) => Some(&node.labels),
            Self::Pod(pod) => Some(&pod.labels),
            Self::DaemonSet(daemon_set) => Some(&daemon_set.labels),
            Self::Revision(revision) => Some(&revision.labels),
            Self::Ledger(_) | Self::None => None,
        }
    }
}

/// One version of one object. It never changes; a change makes another one.
#[derive(Debug)]
pub struct Object {
    kind: Kind,
    key: ObjectKey,
    version: u64,
    text: Text,
    meta: Meta,
    view: View,
}

/// What is to become of an object.
#[derive(Debug)]
pub(super) struct Draft {
    /// Its values; with nothing in `spec` if that is another version's.
    pub(super) value: Value,
    /// The version whose `spec` stays as it is.
    spec_of: Option<Arc<Object>>,
}

impl From<Value> for Draft {
    fn from(value: Value) -> Self {
        Self { value, spec_of: None }
    }
}

/// Why an object cannot be kept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} {key}: {reason}")]
pub struct UnreadableObject {
    /// What it is.
    pub kind: Kind,
    /// Which one.
    pub key: ObjectKey,
    /// What is wrong with it.
    pub reason: String,
}

impl Object {
    /// Reads what is needed of an object whose `metadata` is complete.
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

    /// What it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Which one.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// `metadata.resourceVersion`.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Its metadata.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// The text that a list has for it, with neither `kind` nor `apiVersion`, in pieces.
    pub fn item_json(&self) -> [&str; 3] {
        self.text.pieces()
    }

    /// The text that is served when it is asked for by itself.
    pub fn json(&self) -> String {
        let (kind, version) = (self.kind, self.kind.api_version());
        let [first, spec, rest] = self.text.pieces();
        let first = first.strip_prefix('{').unwrap_or(first);
        format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{version}\",{first}{spec}{rest}")
    }

    /// The object as values, with `kind` and `apiVersion`: a copy, to be changed and written.
    pub fn value(&self) -> Value {
        self.typed(&self.text.whole())
    }

    /// The same for whoever leaves `spec` alone, which is not read then.
    pub(super) fn draft(self: &Arc<Self>) -> Draft {
        let value = self.typed(&self.text.without_spec());
        Draft { value, spec_of: Some(Arc::clone(self)) }
    }

    /// What is asked of its `spec`; the default when it has none.
    pub(super) fn spec<T: DeserializeOwned + Default>(&self) -> T {
        // It was written from values of that shape.
        self.text.spec().and_then(|spec| serde_json::from_str(spec).ok()).unwrap_or_default()
    }

    fn typed(&self, text: &str) -> Value {
        // It was written from values.
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

    /// What a ledger stands for, if it is one that can be read.
    pub fn ledger(&self) -> Option<&DaemonSet> {
        if let View::Ledger(daemon_set) = &self.view { Some(daemon_set) } else { None }
    }

    /// The slim view of a ControllerRevision.
    pub fn revision(&self) -> Option<&Revision> {
        if let View::Revision(revision) = &self.view { Some(revision) } else { None }
    }
}

/// Reads views, and keeps one copy of each text in them.
#[derive(Debug, Default)]
pub(super) struct Reading {
    interner: Interner,
    decoder: SlimDecoder,
    /// Where texts are written before they are kept.
    room: Vec<u8>,
}

impl Reading {
    /// The view of an object; `before` is the version whose `spec` it has, if its own is left out.
    fn view(
        &mut self,
        kind: Kind,
        values: &Value,
        before: Option<&Object>,
        text: &Text,
    ) -> Result<View, String> {
        let slim = match kind {
            Kind::Node => crate::cluster::Kind::Node,
            Kind::Pod => crate::cluster::Kind::Pod,
            Kind::DaemonSet => crate::cluster::Kind::DaemonSet,
            Kind::ControllerRevision => crate::cluster::Kind::ControllerRevision,
            Kind::ConfigMap => return Ok(self.ledger(text)),
            Kind::Namespace
            | Kind::Service
            | Kind::Event
            | Kind::Lease
            | Kind::PodDisruptionBudget => return Ok(View::None),
        };
        // Of pods there are most, and most of a text would be passed over.
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

    /// Whoever spoils a ledger may: to the server it is a ConfigMap as any other.
    fn ledger(&mut self, text: &Text) -> View {
        match self.decoder.decode(crate::cluster::Kind::Ledger, &text.whole()) {
            Ok(Some(SlimObject::DaemonSet(daemon_set))) => View::Ledger(Box::new(daemon_set)),
            Ok(_) | Err(_) => View::None,
        }
    }
}
