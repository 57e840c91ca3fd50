//! Updates the view: sorted lists, changed in place, one object at a time.

use std::cmp::Ordering;
use std::time::Duration;

use super::failed_create::FailedCreate;
use crate::decode::Object;
use crate::{Kind, Resource};
use daemonset::model::{DaemonSet, Neighbours, Node, Pod, Puller, Revision, Snapshot};

/// The number of warnings that are kept, the newest ones.
const MAX_FAILED_CREATES: usize = 100;

/// The observed objects at one moment.
#[derive(Clone, Debug)]
pub struct View {
    /// Nodes, pods, revisions and the DaemonSet, if it exists. `observed_at` is the server's time.
    /// Namespaces and the cluster's name are not observed.
    pub snapshot: Snapshot,
    /// A counter of the changes of nodes.
    pub nodes_version: u64,
    /// The warnings about the DaemonSet, oldest first.
    pub failed_creates: Vec<FailedCreate>,
    /// The pods that pull images for the DaemonSet, by name; empty if they are not watched.
    pub pullers: Vec<Puller>,
    /// The other pods that checks look at, in the order of the queries.
    pub neighbours: Vec<Neighbours>,
}

/// The health of one watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchHealth {
    /// The watched resource.
    pub resource: Resource,
    /// The time since the last event or bookmark.
    pub silent: Duration,
    /// The current error; `None` while the watch works.
    pub failure: Option<String>,
    /// Whether it has ended, and is not open again yet.
    pub is_closed: bool,
}

impl View {
    /// Adds or replaces an object. Returns whether that changed the view: heartbeats do not.
    pub(super) fn put(&mut self, object: Object) -> bool {
        let snapshot = &mut self.snapshot;
        match object {
            Object::Node(node) => {
                let changed = put(&mut snapshot.nodes, node, by_name_of_node);
                self.count_nodes(changed)
            }
            Object::Pod(pod) => put(&mut snapshot.pods, pod, by_name_of_pod),
            Object::DaemonSet(it) => put(&mut snapshot.daemon_sets, it, by_key),
            Object::ControllerRevision(it) => put(&mut snapshot.revisions, it, by_name_of_revision),
        }
    }

    /// Removes an object. Returns whether it was in the view.
    pub(super) fn remove(&mut self, object: &Object) -> bool {
        let snapshot = &mut self.snapshot;
        match object {
            Object::Node(node) => {
                let changed = remove(&mut snapshot.nodes, node, by_name_of_node);
                self.count_nodes(changed)
            }
            Object::Pod(pod) => remove(&mut snapshot.pods, pod, by_name_of_pod),
            Object::DaemonSet(it) => remove(&mut snapshot.daemon_sets, it, by_key),
            Object::ControllerRevision(it) => {
                remove(&mut snapshot.revisions, it, by_name_of_revision)
            }
        }
    }

    /// Replaces all objects of one kind by those of a list. Returns whether that changed the view.
    pub(super) fn replace(&mut self, kind: Kind, listed: Snapshot) -> bool {
        let known = &mut self.snapshot;
        match kind {
            Kind::Node => {
                let changed = replace(&mut known.nodes, listed.nodes);
                self.count_nodes(changed)
            }
            Kind::Pod => replace(&mut known.pods, listed.pods),
            Kind::DaemonSet | Kind::DaemonSetRecord => {
                replace(&mut known.daemon_sets, listed.daemon_sets)
            }
            Kind::ControllerRevision => replace(&mut known.revisions, listed.revisions),
            // Not observed.
            Kind::Namespace | Kind::Service | Kind::Lease | Kind::Event => false,
        }
    }

    /// Increments the counter of node changes if `changed`.
    fn count_nodes(&mut self, changed: bool) -> bool {
        self.nodes_version += u64::from(changed);
        changed
    }

    /// Adds or replaces a puller. Returns whether that changed the view.
    pub(super) fn put_puller(&mut self, puller: Puller) -> bool {
        put(&mut self.pullers, puller, by_name_of_puller)
    }

    /// Removes a puller. Returns whether it was in the view.
    pub(super) fn remove_puller(&mut self, puller: &Puller) -> bool {
        remove(&mut self.pullers, puller, by_name_of_puller)
    }

    /// Changes the pods of one query, by its position. Returns whether that changed the view.
    pub(super) fn change_neighbours(
        &mut self,
        at: usize,
        change: impl FnOnce(&mut Neighbours) -> bool,
    ) -> bool {
        self.neighbours.get_mut(at).is_some_and(change)
    }

    /// Adds a warning, or updates it when it occurred again. Returns whether the view changed.
    pub(super) fn report_failed_create(&mut self, failed_create: FailedCreate) -> bool {
        if self.failed_creates.contains(&failed_create) {
            return false;
        }
        self.failed_creates.retain(|known| known.event != failed_create.event);
        self.failed_creates.push(failed_create);
        self.failed_creates.sort_by(|a, b| (a.last, &a.event).cmp(&(b.last, &b.event)));
        let surplus = self.failed_creates.len().saturating_sub(MAX_FAILED_CREATES);
        self.failed_creates.drain(..surplus);
        true
    }
}

fn by_name_of_node(a: &Node, b: &Node) -> Ordering {
    a.name.cmp(&b.name)
}

fn by_name_of_pod(a: &Pod, b: &Pod) -> Ordering {
    (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name))
}

fn by_name_of_puller(a: &Puller, b: &Puller) -> Ordering {
    a.name.cmp(&b.name)
}

fn by_key(a: &DaemonSet, b: &DaemonSet) -> Ordering {
    a.key.cmp(&b.key)
}

fn by_name_of_revision(a: &Revision, b: &Revision) -> Ordering {
    (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name))
}

fn put<T: PartialEq>(list: &mut Vec<T>, item: T, order: fn(&T, &T) -> Ordering) -> bool {
    match list.binary_search_by(|known| order(known, &item)) {
        Ok(at) if list[at] == item => false,
        Ok(at) => {
            list[at] = item;
            true
        }
        Err(at) => {
            list.insert(at, item);
            true
        }
    }
}

fn remove<T>(list: &mut Vec<T>, item: &T, order: fn(&T, &T) -> Ordering) -> bool {
    let found = list.binary_search_by(|known| order(known, item));
    if let Ok(at) = found {
        list.remove(at);
    }
    found.is_ok()
}

fn replace<T: PartialEq>(list: &mut Vec<T>, new: Vec<T>) -> bool {
    let changed = *list != new;
    *list = new;
    changed
}
