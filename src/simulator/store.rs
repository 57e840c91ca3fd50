//! Every object of the embedded cluster, one counter of versions, and what happened lately
//! (upstream: etcd and the watch cache).
//!
//! The store keeps; it knows no rule of the API. Rules are in `verbs`, which is the only way to
//! write for everybody, controllers too; [`Store::load`] is how a cluster begins. There is no clock:
//! time comes in with each write. Uids and generated names come from a seed, so that the same
//! seed and the same writes give the same history.
//!
//! How controllers go about it: [`Store::objects`] once, then [`Store::events_after`] the version
//! that was seen last, woken by [`Store::wake_on`]; slim views of nodes, pods, DaemonSets and
//! revisions are ready in each [`Object`].

mod log;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;
use std::task::Waker;

use serde_json::Value;

pub use log::{Change, Event, Expired};

use self::log::Log;
use super::object::{Draft, Reading};
use super::seeded::Seeded;
use super::verbs::LastSpec;
use super::{Kind, Object, ObjectKey, UnreadableObject};
use crate::model::Uid;

/// How many events of each kind are remembered, unless told otherwise: more than what happens in a
/// minute to 5,000 pods of which a tenth is replaced at once (upstream:
/// `DefaultEventFreshDuration`, 75 s).
const REMEMBERED: usize = 10_000;

/// All objects.
#[derive(Debug)]
pub struct Store {
    tables: [Table; Kind::COUNT],
    /// The newest version of anything.
    version: u64,
    seeded: Seeded,
    reading: Reading,
    /// What belongs to an owner of this uid, whether that is there or not.
    dependents: BTreeMap<Uid, BTreeSet<(Kind, ObjectKey)>>,
    /// What is on its way out, but held by a finalizer.
    held: BTreeSet<(Kind, ObjectKey)>,
    remembered: usize,
    /// What need not be judged again.
    pub(super) last_spec: LastSpec,
}

/// The objects of one kind.
#[derive(Debug, Default)]
struct Table {
    objects: BTreeMap<ObjectKey, Arc<Object>>,
    log: Log,
    wakers: Vec<Waker>,
}

impl Store {
    /// An empty store, without even a namespace, whose texts come from `seed`.
    pub fn new(seed: u64) -> Self {
        Self {
            tables: std::array::from_fn(|_| Table::default()),
            version: 0,
            seeded: Seeded::new(seed),
            reading: Reading::default(),
            dependents: BTreeMap::new(),
            held: BTreeSet::new(),
            remembered: REMEMBERED,
            last_spec: LastSpec::default(),
        }
    }

    /// The same store, remembering so many events of each kind: a watch or list that goes on from
    /// further back is told that it has expired.
    #[must_use]
    pub fn remembering(mut self, events: usize) -> Self {
        self.remembered = events;
        self
    }

    /// Takes over an object as it is, with its uid, times and status, and its version if it has
    /// one. Nobody is told, and no watch can go on from before; for the beginning of a cluster.
    ///
    /// # Errors
    /// It is not what the API serves for its kind.
    pub fn load(&mut self, kind: Kind, mut object: Value) -> Result<Arc<Object>, UnreadableObject> {
        let key = key_of(kind, &object);
        let version = object["metadata"]["resourceVersion"].as_str().and_then(|v| v.parse().ok());
        let version = version.unwrap_or(self.version + 1);
        object["metadata"]["resourceVersion"] = version.to_string().into();
        if object["metadata"]["uid"].as_str().is_none_or(str::is_empty) {
            object["metadata"]["uid"] = self.seeded.uid().into();
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

    /// The newest version of anything: that of a list now.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// One object, as it is now. The namespace is empty for kinds that live in none.
    pub fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Arc<Object>> {
        self.at(kind, &ObjectKey::new(namespace, name))
    }

    /// The same, by key.
    pub fn at(&self, kind: Kind, key: &ObjectKey) -> Option<&Arc<Object>> {
        self.table(kind).objects.get(key)
    }

    /// All objects of a kind, in the server's order, of one namespace or of all.
    pub fn objects(
        &self,
        kind: Kind,
        namespace: Option<&str>,
    ) -> impl Iterator<Item = &Arc<Object>> {
        // The character after the slash that stands between namespace and name.
        let bounds = namespace.map(|name| (format!("{name}/"), format!("{name}0")));
        let (from, to) = match &bounds {
            Some((from, to)) => (Bound::Included(from.as_str()), Bound::Excluded(to.as_str())),
            None => (Bound::Unbounded, Bound::Unbounded),
        };
        self.table(kind).objects.range::<str, _>((from, to)).map(|(_, object)| object)
    }

    /// How many objects of a kind there are.
    pub fn count(&self, kind: Kind) -> usize {
        self.table(kind).objects.len()
    }

    /// All objects of a kind as they were at `version`.
    ///
    /// # Errors
    /// That is too long ago.
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

    /// What happened to objects of a kind after `version`, oldest first.
    ///
    /// # Errors
    /// That is too long ago: everything has to be looked at again.
    pub fn events_after(
        &self,
        kind: Kind,
        version: u64,
    ) -> Result<impl Iterator<Item = &Event>, Expired> {
        self.table(kind).log.after(version)
    }

    /// Forgets what happened up to now: watches that go on from before expire.
    pub fn forget_events(&mut self) {
        for table in &mut self.tables {
            table.log.forget(self.version);
        }
    }

    /// Wakes `waker` once, when next something happens to objects of a kind.
    pub fn wake_on(&mut self, kind: Kind, waker: &Waker) {
        let wakers = &mut self.table_mut(kind).wakers;
        if !wakers.iter().any(|known| known.will_wake(waker)) {
            wakers.push(waker.clone());
        }
    }

    /// Wakes everybody, though nothing has happened.
    pub(super) fn wake_all(&mut self) {
        self.tables.iter_mut().flat_map(|table| table.wakers.drain(..)).for_each(Waker::wake);
    }

    /// What has an owner reference with this uid, whether the owner is still there or not.
    pub fn dependents(&self, owner: &Uid) -> impl Iterator<Item = &Arc<Object>> {
        let dependents = self.dependents.get(owner).into_iter().flatten();
        dependents.filter_map(|(kind, key)| self.at(*kind, key))
    }

    /// What is on its way out, but held by a finalizer.
    pub fn held(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.held.iter().filter_map(|(kind, key)| self.at(*kind, key))
    }

    /// The uids that anything names as an owner.
    pub fn owner_uids(&self) -> impl Iterator<Item = &Uid> {
        self.dependents.keys()
    }

    /// A uid that was never used.
    pub(super) fn new_uid(&mut self) -> String {
        self.seeded.uid()
    }

    /// The end of a name that is to be generated.
    pub(super) fn new_suffix(&mut self) -> String {
        self.seeded.suffix()
    }

    /// Reads an object without keeping it, under a version that it may have had: for dry runs.
    pub(super) fn read(
        &mut self,
        kind: Kind,
        version: u64,
        draft: &Draft,
    ) -> Result<Object, UnreadableObject> {
        Object::new(kind, key_of(kind, &draft.value), version, draft, &mut self.reading)
    }

    /// Puts an object into its place under a new version, which is also written into it.
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

    /// Takes an object away; what comes back is its last state, under the version of its end.
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

    /// The object under the next version, and its place.
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

    /// Notes whom an object belongs to and whether it is held, instead of what was before.
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

/// Whether an object is on its way out, but held by a finalizer.
fn is_held(object: &Object) -> bool {
    object.meta().deleted.is_some() && !object.meta().finalizers.is_empty()
}

/// An object, once for each of its owners.
fn belongings(object: &Object) -> impl Iterator<Item = ((Kind, ObjectKey), Uid)> {
    let owners = object.meta().owners.iter();
    owners.map(|owner| ((object.kind(), object.key().clone()), owner.uid.clone()))
}

/// The key that an object names itself.
fn key_of(kind: Kind, object: &Value) -> ObjectKey {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    ObjectKey::new(if kind.is_namespaced() { text("namespace") } else { "" }, text("name"))
}
