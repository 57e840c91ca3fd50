//! Records which nodes have ever had a pod of which version, from all pods of a namespace.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use kube::{Client, ResourceExt as _};

use crate::harness::block_on;

/// Nodes by version.
type Seen = BTreeMap<String, BTreeSet<String>>;

/// Watches a namespace until it is dropped.
pub(crate) struct Witness {
    stop: Arc<AtomicBool>,
    seen: Arc<Mutex<Seen>>,
}

impl Witness {
    /// Starts to watch; existing pods are recorded when this returns.
    pub(crate) fn begin(client: Client, namespace: &str) -> Self {
        let pods: Api<Pod> = Api::namespaced(client, namespace);
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::new(Mutex::new(Seen::new()));
        let witness = Self { stop: Arc::clone(&stop), seen: Arc::clone(&seen) };
        block_on(async move {
            let list = pods.list(&ListParams::default()).await.expect("the API server lists");
            list.items.iter().for_each(|pod| note(&seen, pod));
            let version = list.metadata.resource_version.expect("a list has a version");
            tokio::spawn(watch(pods, version, seen, stop));
        });
        witness
    }

    /// The nodes that have had a pod of this version.
    pub(crate) fn nodes_with(&self, version: &str) -> BTreeSet<String> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(version).cloned().unwrap_or_default()
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

async fn watch(pods: Api<Pod>, mut version: String, seen: Arc<Mutex<Seen>>, stop: Arc<AtomicBool>) {
    while !stop.load(Ordering::Relaxed) {
        let parameters = WatchParams::default().timeout(2);
        let Ok(stream) = pods.watch(&parameters, &version).await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let mut stream = pin!(stream);
        while let Some(Ok(event)) = stream.next().await {
            match event {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) | WatchEvent::Deleted(pod) => {
                    version = pod.resource_version().unwrap_or(version);
                    note(&seen, &pod);
                }
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(error) => panic!("the watch failed: {error:?}"),
            }
        }
    }
}

fn note(seen: &Mutex<Seen>, pod: &Pod) {
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone());
    if let (Some(node), Some(version)) = (node, pod.labels().get("version")) {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.entry(version.clone()).or_default().insert(node);
    }
}
