//! What a rollout of one DaemonSet sees of the cluster: all nodes, and the DaemonSet's own pods,
//! revisions and complaints, kept current by one watch each.
//!
//! How stale it may be: a change is here as soon as the server tells of it, which takes
//! milliseconds while the watch stands. When a connection dies without a word, nothing is heard
//! until it is given up for dead (75 s without an event or bookmark) and the watch is
//! resumed. A watch never stops silently: [`Observer::health`] says for each when it last gave a
//! sign of life, and what has been wrong since when.

mod complaint;
mod feeds;
mod shared;
mod task;
mod view;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::watch as channel;
use tokio::task::JoinSet;

use self::shared::Shared;
use self::task::{Ear, Task};
use super::decode::Gathered;
use super::failure::{Failure, Refusal};
use super::live::Decoder;
use super::request::{REQUEST_LIMIT, Requests};
use super::watch::{self, End, Feed};
use super::{Clock, Error, Kind, LiveCluster, Permission, Resource, Verb};
use crate::model::{ClusterInfo, Coverage, DaemonSetKey, LabelSelector, ManagedBy, Snapshot, Uid};

/// How long a watch may be silent before it is begun anew. Servers send bookmarks every minute.
const SILENCE: Duration = Duration::from_secs(75);

/// What is to be observed.
#[derive(Clone, Debug)]
pub struct Target {
    /// Which DaemonSet. It need not exist yet.
    pub key: DaemonSetKey,
    /// Who acts on it: whether a DaemonSet is watched, or the ledger that stands for it.
    pub managed_by: ManagedBy,
    /// `spec.selector`: narrows pods and revisions. A pod that does not match is none of the
    /// DaemonSet's, whoever is its owner: the controller releases it.
    pub selector: LabelSelector,
    /// Whether to watch the events of the DaemonSet too. RBAC may not allow it.
    pub events: bool,
}

/// Something that the controller complained of (upstream: `v1` Event on the DaemonSet).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// Name of the event; told again under the same name when it happens again.
    pub event: String,
    /// Uid of the DaemonSet that it is about.
    pub about: Uid,
    /// One word, such as `FailedCreate`.
    pub reason: String,
    /// What is wrong.
    pub message: String,
    /// How often it was told.
    pub count: u32,
    /// When it was told last, by the server's clock.
    pub last: Option<Timestamp>,
}

/// Everything that is observed, at one moment.
#[derive(Clone, Debug)]
pub struct View {
    /// Nodes, pods, revisions and the DaemonSet, if it exists. `observed_at` is the server's clock.
    /// Namespaces and the cluster's name are not observed.
    pub snapshot: Snapshot,
    /// Counts the changes of nodes.
    pub nodes_version: u64,
    /// The DaemonSet's warnings, oldest first.
    pub complaints: Vec<Complaint>,
}

/// How one watch stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchHealth {
    /// Of what.
    pub resource: Resource,
    /// Time since the server last told anything, be it that nothing has changed.
    pub silent: Duration,
    /// What is wrong now; `None` while the watch stands.
    pub trouble: Option<String>,
}

/// Keeps a [`View`] current until it is dropped. Clones look at the same view, and each is told of
/// changes by itself.
#[derive(Clone)]
pub struct Observer {
    shared: Arc<Shared>,
    requests: Arc<Requests>,
    changes: channel::Receiver<u64>,
    /// The local clock when it began, twice.
    begun: (Timestamp, Duration),
    /// The watches. They end with the last clone.
    _watches: Arc<JoinSet<()>>,
}

impl LiveCluster {
    /// Begins to observe. Returns when everything has been seen once; `now` is the local clock, for
    /// a server that does not say what time it is.
    ///
    /// # Errors
    /// As [`LiveCluster::snapshot`]; everything that the user may not list, or not watch, is in one
    /// error. Later troubles are told by [`Observer::health`], and passed over when they pass.
    pub async fn observe(
        &self,
        target: &Target,
        clock: Clock,
        now: Timestamp,
    ) -> Result<Observer, Error> {
        let begun = (now, clock.now());
        let sink = || Decoder::new(&self.requests.server);
        let mut listed = self.read_all(feeds::lists(target), &sink).await?;
        listed.sort_by(|(a, _), (b, _)| a.cmp(b));
        let mut resources: Vec<_> =
            listed.iter().map(|(list, _)| Resource::Of(list.kind)).collect();
        resources.extend(target.events.then_some(Resource::Of(Kind::Event)));
        let view = View::empty(self.name(), target);
        let shared = Arc::new(Shared::new(clock, view, &resources));
        let mut tasks = Vec::new();
        for (list, decoder) in listed {
            let mut task = self.task(&shared, tasks.len(), feeds::feed_of(&list));
            task.version = task.ear.replace(list.kind, decoder)?;
            task.list = Some(list);
            tasks.push(task);
        }
        if target.events {
            tasks.push(self.task(&shared, tasks.len(), feeds::complaints(target)));
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

    fn task(&self, shared: &Arc<Shared>, number: usize, feed: Feed) -> Task {
        let ear = Ear {
            shared: Arc::clone(shared),
            number,
            server: Arc::clone(&self.requests.server),
            kind: match feed.resource {
                // What is complained of is no object of the view.
                Resource::Of(Kind::Event)
                | Resource::PodLog
                | Resource::AccessReview
                | Resource::Version => None,
                Resource::Of(kind) => Some(kind),
            },
            gathered: Gathered::default(),
        };
        let (requests, page_size) = (Arc::clone(&self.requests), self.page_size);
        Task { requests, feed, list: None, page_size, version: None, ear }
    }

    /// Begins all watches at once, so that all that are forbidden can be told at once. What else
    /// goes wrong is up to each of them.
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
            running.spawn(task.run(opened.ok()));
        }
        missing.sort();
        match first_message {
            Some(message) => Err(Error::Forbidden { missing, message }),
            None => Ok(running),
        }
    }
}

impl View {
    /// A view of nothing yet.
    fn empty(cluster: Option<&str>, target: &Target) -> Self {
        let scope = Some([target.key.namespace.clone()].into());
        let snapshot = Snapshot {
            unreadable: Vec::new(),
            cluster: ClusterInfo { name: cluster.map(str::to_owned), ..ClusterInfo::default() },
            observed_at: Timestamp::UNIX_EPOCH,
            nodes: Vec::new(),
            pods: Vec::new(),
            daemon_sets: Vec::new(),
            ledgers_beside: BTreeSet::new(),
            revisions: Vec::new(),
            namespaces: Vec::new(),
            services: Vec::new(),
            leases: Vec::new(),
            coverage: Coverage {
                scope,
                managed_fields: true,
                namespaces: false,
                services: false,
                leases: false,
                ledgers: false,
                masked: None,
            },
        };
        Self { snapshot, nodes_version: 0, complaints: Vec::new() }
    }
}

impl Observer {
    /// Looks at the view. Nothing changes meanwhile, so be quick, and do not wait for anything.
    pub fn look<R>(&self, look: impl FnOnce(&View) -> R) -> R {
        let mut view = self.shared.view();
        let (now, began) = self.begun;
        let since = SignedDuration::try_from(self.shared.clock.now().saturating_sub(began));
        let local = || now + since.unwrap_or_default();
        view.snapshot.observed_at = self.requests.server_time().unwrap_or_else(local);
        look(&view)
    }

    /// Waits until something has changed since this was last called, be it a watch's health. At
    /// once when it already has; many changes are one.
    pub async fn changed(&mut self) {
        // The sender is in `shared`, so there is always one.
        let _ = self.changes.changed().await;
    }

    /// How each watch stands.
    pub fn health(&self) -> Vec<WatchHealth> {
        self.shared.health()
    }

    /// Whether all watches stand, and none has been silent for too long: whoever acts on what
    /// was seen asks this first. After a machine's sleep it is false until the watches are back.
    /// Never again when the servers' time went back: what was noted by it lies in the future.
    pub fn is_current(&self) -> bool {
        // A watch that is given up for dead gets the time of one request to come back.
        let limit = SILENCE + REQUEST_LIMIT;
        let stands = |watch: &WatchHealth| watch.trouble.is_none() && watch.silent < limit;
        self.health().iter().all(stands) && !self.requests.clock_went_back()
    }
}
