//! One version of one object: its JSON text, and what is read of it again and again.
//!
//! The text is what is kept, because it is what is served: lists and watches copy it, and it takes
//! a fifth of what a tree of values does. Whoever changes an object has it parsed once.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::Kind;
use crate::cluster::{SlimDecoder, SlimObject};
use crate::model::{DaemonSet, Interner, Labels, Node, Pod, Revision, Uid};

/// Bytes of a pod's text, more or less.
const USUAL_SIZE: usize = 4096;

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
    fn of(object: &Value, interner: &mut Interner) -> Self {
        let metadata = &object["metadata"];
        let list = |field: &str| metadata[field].as_array().map(Vec::as_slice).unwrap_or_default();
        let time = |field: &str| metadata[field].as_str().and_then(|text| text.parse().ok());
        let labels = match metadata["labels"].as_object() {
            Some(labels) => {
                let pairs: Vec<_> = labels
                    .iter()
                    .map(|(k, v)| (k.as_str(), v.as_str().unwrap_or_default()))
                    .collect();
                interner.labels(pairs.iter().copied())
            }
            None => Labels::default(),
        };
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
    DaemonSet(DaemonSet),
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
    /// With neither `kind` nor `apiVersion`, as items of lists have it.
    json: Box<str>,
    meta: Meta,
    view: View,
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
        object: &Value,
        reading: &mut Reading,
    ) -> Result<Self, UnreadableObject> {
        let json = without_type(object);
        let meta = Meta::of(object, &mut reading.interner);
        match reading.view(kind, object, &json) {
            Ok(view) => {
                let meta = Meta { labels: view.labels().cloned().unwrap_or(meta.labels), ..meta };
                Ok(Self { kind, key, version, json: json.into(), meta, view })
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

    /// The text that a list has for it: with neither `kind` nor `apiVersion`.
    pub fn item_json(&self) -> &str {
        &self.json
    }

    /// The text that is served when it is asked for by itself.
    pub fn json(&self) -> String {
        let (kind, version) = (self.kind, self.kind.api_version());
        let rest = self.json.strip_prefix('{').unwrap_or(&self.json);
        format!("{{\"kind\":\"{kind}\",\"apiVersion\":\"{version}\",{rest}")
    }

    /// The object as values, with `kind` and `apiVersion`: a copy, to be changed and written.
    pub fn value(&self) -> Value {
        // It was written from values.
        let mut value: Value = serde_json::from_str(&self.json).unwrap_or_default();
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
}

impl Reading {
    fn view(&mut self, kind: Kind, object: &Value, json: &str) -> Result<View, String> {
        let kind = match kind {
            Kind::Node => crate::cluster::Kind::Node,
            Kind::Pod => crate::cluster::Kind::Pod,
            Kind::DaemonSet => crate::cluster::Kind::DaemonSet,
            Kind::ControllerRevision => crate::cluster::Kind::ControllerRevision,
            Kind::ConfigMap => return Ok(self.ledger(object, json)),
            Kind::Namespace
            | Kind::Service
            | Kind::Event
            | Kind::Lease
            | Kind::PodDisruptionBudget => return Ok(View::None),
        };
        match self.decoder.decode(kind, object, json).map_err(|error| error.to_string())? {
            Some(SlimObject::Node(node)) => Ok(View::Node(node)),
            Some(SlimObject::Pod(pod)) => Ok(View::Pod(pod)),
            Some(SlimObject::DaemonSet(daemon_set)) => Ok(View::DaemonSet(daemon_set)),
            Some(SlimObject::ControllerRevision(revision)) => Ok(View::Revision(revision)),
            None => Ok(View::None),
        }
    }
}

impl Reading {
    /// Whoever spoils a ledger may: to the server it is a ConfigMap as any other.
    fn ledger(&mut self, object: &Value, json: &str) -> View {
        match self.decoder.decode(crate::cluster::Kind::Ledger, object, json) {
            Ok(Some(SlimObject::DaemonSet(daemon_set))) => View::Ledger(Box::new(daemon_set)),
            Ok(_) | Err(_) => View::None,
        }
    }
}

/// The object's text with `metadata` in front, and without what every item of a list shares.
fn without_type(object: &Value) -> String {
    let fields = object.as_object().into_iter().flatten();
    let fields = fields.filter(|(name, _)| !matches!(name.as_str(), "kind" | "apiVersion"));
    let mut text = Vec::with_capacity(USUAL_SIZE);
    let mut separator = b'{';
    for (name, value) in fields {
        text.push(separator);
        separator = b',';
        text.push(b'"');
        text.extend_from_slice(name.as_bytes());
        text.extend_from_slice(b"\":");
        // Values can be written, and memory takes whatever is written.
        let _ = serde_json::to_writer(&mut text, value);
    }
    if separator == b'{' {
        text.push(separator);
    }
    text.push(b'}');
    String::from_utf8(text).unwrap_or_default()
}
