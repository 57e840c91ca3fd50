//! An independent observer of a rollout: records every event of every pod, and the highest number
//! of nodes without an available pod.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt as _};

use crate::harness::block_on;

/// Watches in its own thread until it is ended.
pub(crate) struct Watcher {
    stop: Arc<AtomicBool>,
    /// The number of deleted pods so far.
    gone: Arc<AtomicUsize>,
    seen: JoinHandle<Seen>,
}

/// The observations of a rollout.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// The highest number of nodes without an available pod at one time.
    pub(crate) most_unavailable: usize,
    /// The sets of nodes that had no available pod together.
    pub(crate) together: BTreeSet<BTreeSet<String>>,
    /// Nodes in the order in which the deletion of their pods was first seen.
    pub(crate) deleted: Vec<String>,
    /// Each deleted pod.
    pub(crate) gone: BTreeMap<String, Gone>,
    /// When the first deletion was seen.
    first_gone: Option<Instant>,
    /// When every node had an available pod again, the last time.
    whole: Option<Instant>,
}

impl Seen {
    /// The duration from the first deletion until every node has an available pod again.
    pub(crate) fn took(&self) -> Duration {
        let [Some(from), Some(to)] = [self.first_gone, self.whole] else { return Duration::ZERO };
        to.saturating_duration_since(from)
    }

    /// Removes the pods whose node kept another pod. A controller whose create was applied but not
    /// answered creates a second pod, and then deletes one of the two.
    pub(crate) fn without_surplus(mut self) -> Self {
        self.gone.retain(|_, gone| !gone.is_surplus);
        self.deleted = self.gone.values().map(|gone| gone.node.clone()).collect();
        self
    }
}

/// A deleted pod.
#[derive(Debug)]
pub(crate) struct Gone {
    pub(crate) node: String,
    /// Its image's tag.
    pub(crate) image: String,
    /// The number of nodes without an available pod then, including its own.
    pub(crate) unavailable: usize,
    /// Whether its node had another pod that stayed.
    is_surplus: bool,
}

/// An existing pod.
struct Present {
    name: String,
    node: String,
    /// Its image's tag.
    image: String,
    available: bool,
    terminating: bool,
}

impl Present {
    fn of(pod: &Pod) -> Self {
        let spec = pod.spec.as_ref();
        let image = spec.and_then(|spec| spec.containers.first()?.image.clone());
        let tag = image.unwrap_or_default().rsplit(':').next().unwrap_or_default().to_owned();
        let terminating = pod.metadata.deletion_timestamp.is_some();
        Self {
            name: pod.name_any(),
            node: spec.and_then(|spec| spec.node_name.clone()).unwrap_or_default(),
            image: tag,
            available: !terminating && is_ready(pod),
            terminating,
        }
    }
}

#[derive(Default)]
struct Count {
    /// The existing pods, by uid.
    present: BTreeMap<String, Present>,
    /// The pods whose deletion was seen.
    went: BTreeSet<String>,
    nodes: usize,
    /// The nodes that had an available pod at the beginning.
    at_first: BTreeSet<String>,
    /// The current number of nodes without an available pod.
    unavailable: usize,
    seen: Seen,
    gone: Arc<AtomicUsize>,
}

impl Count {
    fn event(&mut self, pod: &Pod, gone: bool) {
        let uid = pod.uid().unwrap();
        let mut now = Present::of(pod);
        let goes = gone || now.terminating;
        now.terminating = goes;
        self.present.insert(uid.clone(), now);
        self.take_note(if goes { vec![uid.clone()] } else { vec![] });
        if gone {
            self.present.remove(&uid);
        }
    }

    /// Replaces all pods by a list, after missed events. The list is one moment: counting after
    /// each of its pods would count nodes as unavailable whose new pod follows later in the list.
    fn replace(&mut self, pods: &[Pod]) {
        let mut listed: BTreeMap<_, _> =
            pods.iter().map(|pod| (pod.uid().unwrap(), Present::of(pod))).collect();
        let gone: Vec<String> =
            self.present.keys().filter(|uid| !listed.contains_key(*uid)).cloned().collect();
        for uid in &gone {
            let mut before = self.present.remove(uid).unwrap();
            (before.terminating, before.available) = (true, false);
            listed.insert(uid.clone(), before);
        }
        self.present = listed;
        let terminating = self.present.iter().filter(|(_, pod)| pod.terminating);
        self.take_note(terminating.map(|(uid, _)| uid.clone()).collect());
        self.present.retain(|uid, _| !gone.contains(uid));
    }

    /// Updates the counts when `present` is complete for a moment in which these pods are deleted.
    fn take_note(&mut self, going: Vec<String>) {
        let unavailable = self.add_up();
        for uid in going {
            if !self.went.insert(uid.clone()) {
                continue;
            }
            let Present { name, node, image, .. } = &self.present[&uid];
            let is_surplus = self.present.values().any(|it| it.node == *node && !it.terminating);
            let (node, image) = (node.clone(), image.clone());
            self.seen.deleted.push(node.clone());
            self.seen.gone.insert(name.clone(), Gone { node, image, unavailable, is_surplus });
            self.seen.first_gone.get_or_insert_with(Instant::now);
            self.gone.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The number of nodes without an available pod.
    fn add_up(&mut self) -> usize {
        let available = self.present.values().filter(|pod| pod.available);
        let served: BTreeSet<String> = available.map(|pod| pod.node.clone()).collect();
        let unavailable = self.nodes.saturating_sub(served.len());
        self.seen.together.insert(self.at_first.difference(&served).cloned().collect());
        self.seen.most_unavailable = self.seen.most_unavailable.max(unavailable);
        if self.unavailable > 0 && unavailable == 0 {
            self.seen.whole = Some(Instant::now());
        }
        self.unavailable = unavailable;
        unavailable
    }
}

impl Watcher {
    /// Starts to watch a namespace in which `nodes` nodes have an available pod.
    pub(crate) fn begin(client: Client, namespace: &str, nodes: usize) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let (ready, is_ready) = mpsc::channel();
        let pods: Api<Pod> = Api::namespaced(client, namespace);
        let gone = Arc::new(AtomicUsize::new(0));
        let count = Count { gone: Arc::clone(&gone), ..Count::default() };
        let seen = thread::spawn(move || {
            block_on(async move { watch(&pods, nodes, count, &stopped, ready).await })
        });
        is_ready.recv().expect("the first list");
        Self { stop, gone, seen }
    }

    /// The number of deleted pods so far.
    pub(crate) fn gone(&self) -> usize {
        self.gone.load(Ordering::Relaxed)
    }

    /// Ends; returns the observations.
    pub(crate) fn end(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        self.seen.join().expect("the watcher")
    }
}

async fn watch(
    pods: &Api<Pod>,
    nodes: usize,
    mut count: Count,
    stopped: &AtomicBool,
    ready: mpsc::Sender<()>,
) -> Seen {
    let list = pods.list(&ListParams::default()).await.unwrap();
    for pod in &list.items {
        count.event(pod, false);
    }
    // Up to here, pods were counted one by one.
    (count.nodes, count.seen) = (nodes, Seen::default());
    count.at_first = count.present.values().map(|pod| pod.node.clone()).collect();
    let mut version = list.metadata.resource_version.unwrap();
    ready.send(()).unwrap();
    drop(ready);
    while !stopped.load(Ordering::Relaxed) {
        let params = WatchParams::default().timeout(2);
        let Ok(stream) = pods.watch(&params, &version).await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let mut stream = std::pin::pin!(stream);
        while let Some(Ok(event)) = stream.next().await {
            match event {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) => {
                    version = pod.resource_version().unwrap();
                    count.event(&pod, false);
                }
                WatchEvent::Deleted(pod) => {
                    version = pod.resource_version().unwrap();
                    count.event(&pod, true);
                }
                WatchEvent::Bookmark(_) => {}
                // A restarted server does not know the earlier versions.
                WatchEvent::Error(error) => {
                    assert_eq!(error.code, 410, "{error:?}");
                    let Ok(list) = pods.list(&ListParams::default()).await else { break };
                    count.replace(&list.items);
                    version = list.metadata.resource_version.unwrap();
                    break;
                }
            }
        }
    }
    count.seen
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
}
