//! A stranger's view of a rollout: every event of every pod, and how many nodes were without an
//! available one at the worst moment.

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

/// Watches in a thread of its own until it is asked what it saw.
pub(crate) struct Watcher {
    stop: Arc<AtomicBool>,
    /// How many pods were seen to go.
    gone: Arc<AtomicUsize>,
    seen: JoinHandle<Seen>,
}

/// What was seen.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Most nodes without an available pod at one time.
    pub(crate) most_unavailable: usize,
    /// Nodes in the order in which their pods were first seen to go.
    pub(crate) deleted: Vec<String>,
    /// Each pod that went.
    pub(crate) gone: BTreeMap<String, Gone>,
    /// When the first pod was seen to go.
    first_gone: Option<Instant>,
    /// When every node had an available pod again, the last time.
    whole: Option<Instant>,
}

impl Seen {
    /// From the first pod that went to the last one that became available.
    pub(crate) fn took(&self) -> Duration {
        let [Some(from), Some(to)] = [self.first_gone, self.whole] else { return Duration::ZERO };
        to.saturating_duration_since(from)
    }
}

/// A pod that went.
#[derive(Debug)]
pub(crate) struct Gone {
    /// Its image's tag.
    pub(crate) image: String,
    /// How many nodes were without an available pod then, its own among them.
    pub(crate) unavailable: usize,
}

#[derive(Default)]
struct Count {
    /// Node of each available pod.
    available: BTreeMap<String, String>,
    terminating: BTreeSet<String>,
    /// Node of each pod that is there.
    present: BTreeMap<String, String>,
    nodes: usize,
    /// How many of them were without an available one at last.
    unavailable: usize,
    seen: Seen,
    gone: Arc<AtomicUsize>,
}

impl Count {
    fn event(&mut self, pod: &Pod, gone: bool) {
        let uid = pod.uid().unwrap();
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
        let terminating = pod.metadata.deletion_timestamp.is_some();
        if gone {
            self.present.remove(&uid);
        } else {
            self.present.insert(uid.clone(), node.clone());
        }
        let goes = (terminating || gone) && self.goes(&uid, &node);
        if !gone && !terminating && is_ready(pod) {
            self.available.insert(uid, node);
        } else {
            self.available.remove(&uid);
        }
        let unavailable = self.add_up();
        if goes {
            self.seen.gone.insert(pod.name_any(), Gone { image: image(pod), unavailable });
        }
    }

    /// Notes that a pod goes; whether that is news.
    fn goes(&mut self, uid: &str, node: &str) -> bool {
        let is_news = self.terminating.insert(uid.to_owned());
        if is_news {
            self.seen.deleted.push(node.to_owned());
            self.seen.first_gone.get_or_insert_with(Instant::now);
            self.gone.fetch_add(1, Ordering::Relaxed);
        }
        is_news
    }

    /// What a list says after events were missed.
    fn replace(&mut self, pods: &[Pod]) {
        let listed: BTreeSet<String> = pods.iter().filter_map(kube::ResourceExt::uid).collect();
        let missed = self.present.iter().filter(|(uid, _)| !listed.contains(*uid));
        let missed: Vec<_> = missed.map(|(uid, node)| (uid.clone(), node.clone())).collect();
        for (uid, node) in missed {
            self.goes(&uid, &node);
            self.present.remove(&uid);
            self.available.remove(&uid);
        }
        for pod in pods {
            self.event(pod, false);
        }
    }

    /// How many nodes are without an available pod.
    fn add_up(&mut self) -> usize {
        let served: BTreeSet<&String> = self.available.values().collect();
        let unavailable = self.nodes.saturating_sub(served.len());
        self.seen.most_unavailable = self.seen.most_unavailable.max(unavailable);
        if self.unavailable > 0 && unavailable == 0 {
            self.seen.whole = Some(Instant::now());
        }
        self.unavailable = unavailable;
        unavailable
    }
}

impl Watcher {
    /// Begins to watch a namespace in which `nodes` nodes have an available pod.
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

    /// How many pods were seen to go so far.
    pub(crate) fn gone(&self) -> usize {
        self.gone.load(Ordering::Relaxed)
    }

    /// Ends, and tells what was seen.
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
    // Before, pods were counted one by one.
    (count.nodes, count.seen) = (nodes, Seen::default());
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
                // A server that was started anew does not know what was before.
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

/// The tag of its first container's image.
fn image(pod: &Pod) -> String {
    let image = pod.spec.as_ref().and_then(|spec| spec.containers.first()?.image.clone());
    image.unwrap_or_default().rsplit(':').next().unwrap_or_default().to_owned()
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|one| one.type_ == "Ready" && one.status == "True"))
}
