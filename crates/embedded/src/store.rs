//! The store: every object of the embedded cluster, one version counter, and recent events
//! (upstream: etcd and the watch cache).
//!
//! The store has no rules of the API. Rules are in `verbs`, which all writers use, controllers too;
//! [`Store::load`] fills the store at the start. There is no clock: each write brings its time.
//! Uids and generated names come from a seed, so that the same seed and the same writes give the
//! same history.
//!
//! Controllers call [`Store::objects`] once, then [`Store::events_after`] with the last version
//! that they have seen, woken by [`Store::wake_on`]; slim views of nodes, pods, DaemonSets and
//! revisions are part of each [`Object`].

mod log;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::task::Waker;

use serde_json::{Map, Value};

pub use log::{Change, Event, Expired};

use self::log::Log;
use super::object::{Draft, Reading};
use super::seeded::Seeded;
use super::{Kind, Object, ObjectKey, UnreadableObject};
use daemonset::model::Uid;

/// Default number of events that are kept for each kind: more than a minute of events of 5,000 pods
/// of which a tenth is replaced at once (upstream: `DefaultEventFreshDuration`, 75 s).
const REMEMBERED: usize = 10_000;

/// All objects of a cluster and their recent history.
#[derive(Debug)]
pub struct Store {
    tables: [Table; Kind::COUNT],
    /// The latest version of any object.
    version: u64,
    seeded: Seeded,
    /// The uids and names of loaded objects, which are not generated again: the recording of an
    /// embedded cluster has those of the same seed.
    loaded: BTreeSet<String>,
    reading: Reading,
    /// The dependents of each owner's uid, whether the owner exists or not.
    dependents: BTreeMap<Uid, BTreeSet<(Kind, ObjectKey)>>,
    /// Terminating objects that wait for a finalizer.
    held: BTreeSet<(Kind, ObjectKey)>,
    remembered: usize,
    /// The last valid pod spec, which need not be validated again.
    pub(super) last_spec: LastSpec,
    /// Whether every PriorityClass that a pod names is taken to exist: a snapshot has none.
    pub(super) any_priority_class: bool,
}

/// The objects of one kind.
#[derive(Debug, Default)]
struct Table {
    objects: BTreeMap<ObjectKey, Arc<Object>>,
    log: Log,
    wakers: Vec<Waker>,
}

/// The result for the spec of the last new pod, without its affinity. The pods of a DaemonSet
/// differ in nothing else, and there are thousands of them.
#[derive(Debug, Default)]
pub(super) struct LastSpec {
    /// The spec as written, and with its defaults.
    pub(super) defaulted: Option<(Value, Value)>,
    /// A valid spec.
    pub(super) faultless: Option<Map<String, Value>>,
}

impl Store {
    /// An empty store, without even a namespace; `seed` is for generated names and uids.
    pub fn new(seed: u64) -> Self {
        Self {
            tables: std::array::from_fn(|_| Table::default()),
            version: 0,
            seeded: Seeded::new(seed),
            loaded: BTreeSet::new(),
            reading: Reading::default(),
            dependents: BTreeMap::new(),
            held: BTreeSet::new(),
            remembered: REMEMBERED,
            last_spec: LastSpec::default(),
            any_priority_class: false,
        }
    }

    /// Takes every PriorityClass that a pod names to exist. Otherwise only the two that every
    /// cluster has exist.
    #[must_use]
    pub fn with_any_priority_class(mut self) -> Self {
        self.any_priority_class = true;
        self
    }

    /// Sets the number of kept events of each kind: a watch or list that resumes from further back
    /// expires.
    #[must_use]
    pub fn remembering(mut self, events: usize) -> Self {
        self.remembered = events;
        self
    }

    /// Loads an object as it is, with its uid, times and status, and its version if it has one.
    /// There is no event, and no watch can resume from before; for the start of a cluster.
    ///
    /// # Errors
    /// The object is not valid for its kind.
    pub fn load(&mut self, kind: Kind, mut object: Value) -> Result<Arc<Object>, UnreadableObject> {
        let key = key_of(kind, &object);
        let version = object["metadata"]["resourceVersion"].as_str().and_then(|v| v.parse().ok());
        let version = version.unwrap_or(self.version + 1);
        object["metadata"]["resourceVersion"] = version.to_string().into();
        match object["metadata"]["uid"].as_str().filter(|uid| !uid.is_empty()) {
            Some(uid) => drop(self.loaded.insert(uid.to_owned())),
            None => object["metadata"]["uid"] = self.new_uid().into(),
        }
        if let Some(name) = object["metadata"]["name"].as_str() {
            self.loaded.insert(name.to_owned());
        }
        let draft = object.into();
        let object = Arc::new(Object::new(kind, key.clone(), version, &draft, &mut self.reading)?);
        self.version = self.version.max(version);
        let previous = self.table_mut(kind).objects.insert(key, Arc::clone(&object));
        self.index(previous.as_deref(), Some(&object));
        for table in &mut self.tables {
            table.log.forget(self.version);
        }
        Ok(object)
    }

    /// The latest version of any object: that of a list now.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The current version of one object. The namespace is empty for cluster-scoped kinds.
    pub fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Arc<Object>> {
        self.at(kind, &ObjectKey::new(namespace, name))
    }

    /// The current version of one object, by key.
    pub fn at(&self, kind: Kind, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.table(kind).objects.get(key)
    }

    /// All objects of a kind, in the server's order, of one namespace or of all.
    pub fn objects(
        &self,
        kind: Kind,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = &Arc<Object>> {
        // `0` is the character after the slash between namespace and name.
        let bounds = namespace.map(|name| (format!("{name}/"), format!("{name}0")));
        let (from, to) = match &bounds {
            Some((from, to)) => (Bound::Included(from.as_str()), Bound::Excluded(to.as_str())),
            None => (Bound::Unbounded, Bound::Unbounded),
        };
        self.table(kind).objects.range::<str, _>((from, to)).map(|(_, object)| object)
    }

    /// Number of objects of a kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.table(kind).objects.len()
    }

    /// All objects of a kind as they were at `version`.
    ///
    /// # Errors
    /// The version is too old.
    pub fn objects_as_of(
        &self,
        kind: Kind,
        namespace: Option<&str>,
        version: u64,
    ) -> Result<BTreeMap<ObjectKey, Arc<Object>>, Expired> {
        let before = self.table(kind).log.as_of(version)?;
        let now = self.objects(kind, namespace).map(|it| (it.key().clone(), Arc::clone(it)));
        let mut objects: BTreeMap<_, _> = now.collect();
        for (key, object) in before {
            if namespace.is_some_and(|namespace| key.namespace() != namespace) {
                continue;
            }
            match object {
                Some(object) => objects.insert(key, object),
                None => objects.remove(&key),
            };
        }
        Ok(objects)
    }

    /// The events of a kind after `version`, oldest first.
    ///
    /// # Errors
    /// The version is too old: the client must list again.
    pub fn events_after(
        &self,
        kind: Kind,
        version: u64,
    ) -> Result<impl Iterator<Item = &Event>, Expired> {
        self.table(kind).log.after(version)
    }

    /// Drops all events: watches that resume from before expire.
    pub fn forget_events(&mut self) {
        for table in &mut self.tables {
            table.log.forget(self.version);
        }
    }

    /// Wakes `waker` once, at the next event of the kind.
    pub fn wake_on(&mut self, kind: Kind, waker: &Waker) {
        let wakers = &mut self.table_mut(kind).wakers;
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }

    /// Wakes all wakers without an event.
    pub(super) fn wake_all(&mut self) {
        self.tables.iter_mut().flat_map(|table| table.wakers.drain(..)).for_each(Waker::wake);
    }

    /// The objects with an owner reference to this uid, whether the owner exists or not.
    pub fn dependents(&self, owner: &Uid) -> impl Iterator<Item = &Arc<Object>> {
        let dependents = self.dependents.get(owner).into_iter().flatten();
        dependents.filter_map(|(kind, key)| self.at(*kind, key))
    }

    /// Terminating objects that wait for a finalizer.
    pub fn held(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.held.iter().filter_map(|(kind, key)| self.at(*kind, key))
    }

    /// The uids of all owner references.
    pub fn owner_uids(&self) -> impl Iterator<Item = &Uid> {
        self.dependents.keys()
    }

    /// A new uid, which no loaded object has.
    pub(super) fn new_uid(&mut self) -> String {
        loop {
            let uid = self.seeded.uid();
            if !self.loaded.contains(&uid) {
                return uid;
            }
        }
    }

    /// Whether an object with this name was loaded, in any namespace.
    pub(super) fn was_loaded(&self, name: &str) -> bool {
        self.loaded.contains(name)
    }

    /// A suffix for a generated name.
    pub(super) fn new_suffix(&mut self) -> String {
        self.seeded.suffix()
    }

    /// Parses an object without storing it, with a hypothetical version: for dry runs.
    pub(super) fn read(
        &mut self,
        kind: Kind,
        version: u64,
        draft: &Draft,
    ) -> Result<Object, UnreadableObject> {
        Object::new(kind, key_of(kind, &draft.value), version, draft, &mut self.reading)
    }

    /// Stores an object with a new version, which is also written into it.
    pub(super) fn put(
        &mut self,
        kind: Kind,
        draft: Draft,
    ) -> Result<Arc<Object>, UnreadableObject> {
        let (key, object) = self.renewed(kind, draft)?;
        let previous = self.table_mut(kind).objects.insert(key, Arc::clone(&object));
        let change = if previous.is_some() { Change::Modified } else { Change::Added };
        self.index(previous.as_deref(), Some(&object));
        self.happened(kind, Event { change, object: Arc::clone(&object), previous });
        Ok(object)
    }

    /// Removes an object; returns its last state, with the version of its deletion.
    pub(super) fn remove(
        &mut self,
        kind: Kind,
        draft: Draft,
    ) -> Result<Arc<Object>, UnreadableObject> {
        let (key, last) = self.renewed(kind, draft)?;
        let previous = self.table_mut(kind).objects.remove(&key);
        self.index(previous.as_deref(), None);
        let (change, object) = (Change::Deleted, Arc::clone(&last));
        self.happened(kind, Event { change, object, previous });
        Ok(last)
    }

    /// The object with the next version, and its key.
    fn renewed(
        &mut self,
        kind: Kind,
        mut draft: Draft,
    ) -> Result<(ObjectKey, Arc<Object>), UnreadableObject> {
        let key = key_of(kind, &draft.value);
        let version = self.version + 1;
        draft.value["metadata"]["resourceVersion"] = version.to_string().into();
        let renewed = Object::new(kind, key.clone(), version, &draft, &mut self.reading)?;
        Ok((key, Arc::new(renewed)))
    }

    fn happened(&mut self, kind: Kind, event: Event) {
        self.version = event.version();
        let remembered = self.remembered;
        let table = self.table_mut(kind);
        table.log.push(event, remembered);
        table.wakers.drain(..).for_each(Waker::wake);
    }

    /// Updates the indexes of owners and finalizers.
    fn index(&mut self, before: Option<&Object>, after: Option<&Object>) {
        for (entry, owner) in before.into_iter().flat_map(belongings) {
            let Some(dependents) = self.dependents.get_mut(&owner) else { continue };
            dependents.remove(&entry);
            if dependents.is_empty() {
                self.dependents.remove(&owner);
            }
        }
        for (entry, owner) in after.into_iter().flat_map(belongings) {
            self.dependents.entry(owner).or_default().insert(entry);
        }
        if let Some(object) = before.filter(|it| is_held(it)) {
            self.held.remove(&(object.kind(), object.key().clone()));
        }
        if let Some(object) = after.filter(|it| is_held(it)) {
            self.held.insert((object.kind(), object.key().clone()));
        }
    }

    fn table(&self, kind: Kind) -> &Table {
        &self.tables[kind as usize]
    }

    fn table_mut(&mut self, kind: Kind) -> &mut Table {
        &mut self.tables[kind as usize]
    }
}

/// `true` for a terminating object that waits for a finalizer.
fn is_held(object: &Object) -> bool {
    object.meta().deleted.is_some() && !object.meta().finalizers.is_empty()
}

/// The index entries of an object, one for each of its owners.
fn belongings(object: &Object) -> impl Iterator<Item = ((Kind, ObjectKey), Uid)> {
    let owners = object.meta().owners.iter();
    owners.map(|owner| ((object.kind(), object.key().clone()), owner.uid.clone()))
}

/// The key in an object's metadata.
fn key_of(kind: Kind, object: &Value) -> ObjectKey {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    ObjectKey::new(if kind.is_namespaced() { text("namespace") } else { "" }, text("name"))
}
