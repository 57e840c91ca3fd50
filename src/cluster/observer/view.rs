//! The view itself: sorted lists, changed in place, one object at a time.

use std::cmp::Ordering;

use super::{Complaint, View};
use crate::cluster::Kind;
use crate::cluster::decode::Object;
use crate::model::{DaemonSet, Node, Pod, Revision, Snapshot};

/// How many complaints are kept: the newest ones.
const COMPLAINTS: usize = 100;

impl View {
    /// Puts an object into its place. Says whether that changed anything: heartbeats do not.
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

    /// Takes an object out. Says whether it was there.
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

    /// Replaces everything of one kind at once by what a list brought. Says whether that changed
    /// anything.
    pub(super) fn replace(&mut self, kind: Kind, listed: Snapshot) -> bool {
        let known = &mut self.snapshot;
        match kind {
            Kind::Node => {
                let changed = replace(&mut known.nodes, listed.nodes);
                self.count_nodes(changed)
            }
            Kind::Pod => replace(&mut known.pods, listed.pods),
            Kind::DaemonSet | Kind::Ledger => replace(&mut known.daemon_sets, listed.daemon_sets),
            Kind::ControllerRevision => replace(&mut known.revisions, listed.revisions),
            // Not observed.
            Kind::Namespace | Kind::Service | Kind::Lease | Kind::Event => false,
        }
    }

    /// Counts a change of nodes, if it was one.
    fn count_nodes(&mut self, changed: bool) -> bool {
        self.nodes_version += u64::from(changed);
        changed
    }

    /// Notes a complaint, or that it was made again.
    pub(super) fn complain(&mut self, complaint: Complaint) -> bool {
        if self.complaints.contains(&complaint) {
            return false;
        }
        self.complaints.retain(|known| known.event != complaint.event);
        self.complaints.push(complaint);
        self.complaints.sort_by(|a, b| (a.last, &a.event).cmp(&(b.last, &b.event)));
        let surplus = self.complaints.len().saturating_sub(COMPLAINTS);
        self.complaints.drain(..surplus);
        true
    }
}

fn by_name_of_node(a: &Node, b: &Node) -> Ordering {
    a.name.cmp(&b.name)
}

fn by_name_of_pod(a: &Pod, b: &Pod) -> Ordering {
    (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name))
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
