//! The observer of a rollout of one DaemonSet: all nodes, the DaemonSet's pods, revisions and
//! `FailedCreate` events, and the other pods that its checks look at, each kept current by a watch.
//!
//! Staleness: a change arrives within milliseconds while the watch works. When a connection dies
//! silently, no changes arrive until the watch counts as dead (75 s without an event or bookmark)
//! and is resumed. A watch never stops silently: [`Observer::health`] shows for each watch the time
//! since the last event and the current error.

mod failed_create;
mod feeds;
mod neighbours;
mod picked;
mod pullers;
mod shared;
mod task;
mod view;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch as channel;
use tokio::task::JoinSet;

pub use self::failed_create::FailedCreate;
pub use self::feeds::WatchedDaemonSet;
pub use self::view::{View, WatchHealth};

use self::neighbours::NeighbourWatch;
use self::shared::Shared;
use self::task::{SILENCE, Task, WatchHandler};
use super::decode::SnapshotBuilder;
use super::failure::{Failure, Refusal};
use super::list::List;
use super::live::Decoder;
use super::request::{Accept, REQUEST_LIMIT, Requests};
use super::watch::{self, End, Feed};
use super::{Clock, Error, Kind, LiveCluster, Permission, Resource, Verb};
use daemonset::model::{ClusterInfo, Coverage, Snapshot, lease_name};

/// Keeps a [`View`] current until it is dropped. Clones share the view, and each is notified of
/// changes separately.
#[derive(Clone)]
pub struct Observer {
    shared: Arc<Shared>,
    requests: Arc<Requests>,
    changes: channel::Receiver<u64>,
    /// The start by the local wall clock and by the monotonic clock.
    begun: (Timestamp, Duration),
    /// The tasks of the watches. They end with the last clone.
    _watches: Arc<JoinSet<()>>,
}

impl LiveCluster {
    /// Starts an observer. Returns when all objects have been listed. `now` is the local time, for
    /// a server that sends no `Date`.
    ///
    /// # Errors
    /// As [`LiveCluster::snapshot`]; all missing permissions to list or watch are in one error.
    /// [`Observer::health`] reports later errors until they are resolved.
    pub async fn observe(
        &self,
        target: &WatchedDaemonSet,
        clock: Clock,
        now: Timestamp,
    ) -> Result<Observer, Error> {
        let begun = (now, clock.now());
        let sink = || Decoder::new(&self.requests.server);
        let mut listed = self.read_all(feeds::lists(target), &sink).await?;
        listed.sort_by(|(a, _), (b, _)| a.cmp(b));
        let resources = resources(listed.iter().map(|(list, _)| list.kind), target);
        let mut view = View::empty(self.name(), target);
        let mut pullers = None;
        if target.pullers {
            let (list, lease) = (feeds::pullers(target), lease_name(target.key.name.as_str()));
            let read = pullers::list(&self.requests, &list, self.page_size, &lease).await?;
            view.pullers = read.0;
            pullers = Some((list, lease, read.1));
        }
        let mut versions = Vec::new();
        for query in &target.neighbours {
            let (neighbours, version) = self.neighbours_of(query).await?;
            view.neighbours.push(neighbours);
            versions.push(version);
        }
        let shared = Arc::new(Shared::new(clock, view, &resources));
        let mut tasks = Vec::new();
        for (list, decoder) in listed {
            let mut task = self.task(&shared, tasks.len(), feeds::feed_of(&list));
            task.version = task.handler.replace(list.kind, decoder)?;
            task.list = Some(list);
            tasks.push(task);
        }
        if target.events {
            tasks.push(self.task(&shared, tasks.len(), feeds::failed_creates(target)));
        }
        if let Some((list, lease, version)) = pullers {
            let mut task = self.task_after(list, version, &shared, tasks.len());
            task.feed.accept = Accept::Json;
            task.handler.pullers_of = Some(lease);
            tasks.push(task);
        }
        for (at, (query, version)) in target.neighbours.iter().zip(versions).enumerate() {
            let list = neighbours::list_of(query);
            let mut task = self.task_after(list, version, &shared, tasks.len());
            task.handler.neighbours = Some(NeighbourWatch::new(at, query.clone()));
            tasks.push(task);
        }
        let watches = self.begin(tasks).await?;
        let changes = shared.subscribe();
        Ok(Observer {
            shared,
            requests: Arc::clone(&self.requests),
            changes,
            begun,
            _watches: Arc::new(watches),
        })
    }

    /// The task of the watch that follows a list, from its version.
    fn task_after(
        &self,
        list: List,
        version: Option<String>,
        shared: &Arc<Shared>,
        number: usize,
    ) -> Task {
        let task = self.task(shared, number, feeds::feed_of(&list));
        Task { list: Some(list), version, ..task }
    }

    fn task(&self, shared: &Arc<Shared>, number: usize, feed: Feed) -> Task {
        let handler = WatchHandler {
            shared: Arc::clone(shared),
            number,
            server: Arc::clone(&self.requests.server),
            kind: match feed.resource {
                // Events are not objects of the view.
                Resource::Of(Kind::Event)
                | Resource::PodLog
                | Resource::AccessReview
                | Resource::PriorityClass
                | Resource::Approvals
                | Resource::Version => None,
                Resource::Of(kind) => Some(kind),
            },
            pullers_of: None,
            neighbours: None,
            snapshot_builder: SnapshotBuilder::default(),
        };
        let (requests, page_size) = (Arc::clone(&self.requests), self.page_size);
        Task { requests, feed, list: None, page_size, version: None, handler }
    }

    /// Opens all watches concurrently, and reports all forbidden ones in one error. Each task
    /// handles other errors itself.
    async fn begin(&self, tasks: Vec<Task>) -> Result<JoinSet<()>, Error> {
        let opening = tasks
            .iter()
            .map(|task| watch::open(&self.requests, &task.feed, task.version.as_deref()));
        let opened = futures::future::join_all(opening).await;
        let (mut running, mut missing, mut first_message) = (JoinSet::new(), Vec::new(), None);
        for (task, opened) in tasks.into_iter().zip(opened) {
            if let Err(End::Failed(Failure::Status(Refusal { code: 403, message, .. }))) = &opened {
                let Feed { resource, namespace, .. } = &task.feed;
                let (verb, resource) = (Verb::Watch, *resource);
                missing.push(Permission { verb, resource, namespace: namespace.clone() });
                first_message.get_or_insert_with(|| message.clone());
            }
            if opened.is_err() {
                task.handler.shared.closed(task.handler.number);
            }
            running.spawn(task.run(opened.ok()));
        }
        missing.sort();
        match first_message {
            Some(message) => Err(Error::Forbidden { missing, message }),
            None => Ok(running),
        }
    }
}

/// The resources of all watches, in the order of their tasks. `listed` are the kinds of the lists of
/// the DaemonSet itself.
fn resources(listed: impl Iterator<Item = Kind>, target: &WatchedDaemonSet) -> Vec<Resource> {
    let events = target.events.then_some(Kind::Event);
    let pullers = target.pullers.then_some(Kind::Pod);
    let neighbours = target.neighbours.iter().map(|_| Kind::Pod);
    listed.chain(events).chain(pullers).chain(neighbours).map(Resource::Of).collect()
}

impl View {
    /// An empty view.
    fn empty(cluster: Option<&str>, target: &WatchedDaemonSet) -> Self {
        let scope = Some([target.key.namespace.clone()].into());
        let snapshot = Snapshot {
            unreadable: Vec::new(),
            cluster: ClusterInfo { name: cluster.map(str::to_owned), ..ClusterInfo::default() },
            observed_at: Timestamp::UNIX_EPOCH,
            nodes: Vec::new(),
            pods: Vec::new(),
            daemon_sets: Vec::new(),
            records_beside: BTreeSet::new(),
            revisions: Vec::new(),
            namespaces: Vec::new(),
            services: Vec::new(),
            leases: Vec::new(),
            priority_classes: BTreeMap::new(),
            approvals: BTreeMap::new(),
            coverage: Coverage {
                scope,
                managed_fields: true,
                namespaces: false,
                services: false,
                leases: false,
                records: false,
                masked: None,
            },
        };
        let (failed_creates, pullers, neighbours) = (Vec::new(), Vec::new(), Vec::new());
        Self { snapshot, nodes_version: 0, failed_creates, pullers, neighbours }
    }
}

impl Observer {
    /// Calls `look` with the view. The view is locked meanwhile: return quickly and do not block.
    pub fn look<R>(&self, look: impl FnOnce(&View) -> R) -> R {
        let mut view = self.shared.view();
        let (now, began) = self.begun;
        let since = SignedDuration::try_from(self.shared.clock.now().saturating_sub(began));
        let local = || now + since.unwrap_or_default();
        view.snapshot.observed_at = self.requests.server_time().unwrap_or_else(local);
        look(&view)
    }

    /// Waits until the view or the health of a watch has changed since the last call. Returns at
    /// once if it already has; several changes count as one.
    pub async fn changed(&mut self) {
        // Cannot fail: `shared` owns the sender.
        let _ = self.changes.changed().await;
    }

    /// The health of each watch.
    pub fn health(&self) -> Vec<WatchHealth> {
        self.shared.health()
    }

    /// The current error of a watch, if one fails.
    pub fn failure(&self) -> Option<String> {
        self.health().into_iter().find_map(|watch| watch.failure)
    }

    /// Whether all watches are open and none has been silent for too long. Check this before acting
    /// on the view: while one is closed, what was seen last, such as a Ready pod, may be over. After
    /// the machine was suspended it is false until the watches are reopened. It stays false once the
    /// servers' time has gone back: recorded times are then in the future.
    pub fn is_current(&self) -> bool {
        // A watch that counts as dead has the time of one request to be reopened.
        let limit = SILENCE + REQUEST_LIMIT;
        let stands = |watch: &WatchHealth| {
            watch.failure.is_none() && !watch.is_closed && watch.silent < limit
        };
        self.health().iter().all(stands) && !self.requests.clock_went_back()
    }
}
