//! Watches a scenario: records what came and went on each node, in order, and when the last change
//! was.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::TryStreamExt as _;
use http::Request;
use kube::Client;
use kube::core::WatchEvent;
use serde_json::Value;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::view::{get, hash_of, is_ready, node_of, owner, paths};

/// A watch; it ends when dropped.
pub(super) struct Watcher {
    seen: Arc<Mutex<Seen>>,
    tasks: Vec<JoinHandle<()>>,
}

struct Seen {
    /// When the last change was.
    last: Instant,
    /// The last seen state of each pod, by uid.
    pods: BTreeMap<String, Value>,
    /// The events on each node since the last call of `take`.
    happened: BTreeMap<String, Vec<String>>,
    /// The hashes of revisions, in the order in which they appeared.
    hashes: Vec<String>,
}

impl Watcher {
    /// Starts the watch.
    pub(super) async fn begin(client: &Client, scenario: &str) -> Self {
        let seen = Arc::new(Mutex::new(Seen {
            last: Instant::now(),
            pods: BTreeMap::new(),
            happened: BTreeMap::new(),
            hashes: Vec::new(),
        }));
        let [daemon_sets, revisions, pods, _events, nodes] = paths(scenario);
        let mut tasks = Vec::new();
        for path in [daemon_sets, revisions, pods, nodes] {
            let version = get(client, &path).await["metadata"]["resourceVersion"].clone();
            let version = version.as_str().unwrap().to_owned();
            let (client, seen) = (client.clone(), Arc::clone(&seen));
            tasks.push(tokio::spawn(watch(client, path, version, seen)));
        }
        Self { seen, tasks }
    }

    /// When the last change was.
    pub(super) fn last_move(&self) -> Instant {
        locked(&self.seen).last
    }

    /// The events on each node since the last call.
    pub(super) fn take(&self) -> BTreeMap<String, Vec<String>> {
        std::mem::take(&mut locked(&self.seen).happened)
    }

    /// The hashes of revisions, in the order in which they appeared.
    pub(super) fn hashes(&self) -> Vec<String> {
        locked(&self.seen).hashes.clone()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

fn locked(seen: &Mutex<Seen>) -> MutexGuard<'_, Seen> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn watch(client: Client, path: String, mut version: String, seen: Arc<Mutex<Seen>>) {
    loop {
        let path = format!("{path}&watch=true&timeoutSeconds=290&resourceVersion={version}");
        let request = Request::get(path.replace("?&", "?")).body(Vec::new()).unwrap();
        let events = client.request_events::<Value>(request).await.unwrap();
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.try_next().await.unwrap() {
            let (object, gone) = match event {
                WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
                WatchEvent::Deleted(object) => (object, true),
                WatchEvent::Bookmark(_) => continue,
                WatchEvent::Error(error) => panic!("{path}: {error:?}"),
            };
            object["metadata"]["resourceVersion"].as_str().unwrap().clone_into(&mut version);
            locked(&seen).hear(object, gone);
        }
    }
}

impl Seen {
    fn hear(&mut self, object: Value, gone: bool) {
        match object["kind"].as_str() {
            Some("Pod") => self.hear_pod(object, gone),
            Some("ControllerRevision") => {
                self.last = Instant::now();
                let hash = hash_of(&object).to_owned();
                if hash != "none" && !self.hashes.contains(&hash) {
                    self.hashes.push(hash);
                }
            }
            _ => self.last = Instant::now(),
        }
    }

    fn hear_pod(&mut self, pod: Value, gone: bool) {
        let uid = pod["metadata"]["uid"].as_str().unwrap().to_owned();
        let before = self.pods.get(&uid);
        let what = changes(before, &pod, gone);
        // Status changes of a crash-looping pod do not count: the cluster would never settle.
        let stands = before.is_some_and(|before| before["spec"] == pod["spec"]);
        if gone || !stands || !what.is_empty() {
            self.last = Instant::now();
        }
        let happened = self.happened.entry(node_of(&pod).to_owned()).or_default();
        let hash = hash_of(&pod);
        happened.extend(what.into_iter().map(|what| format!("{hash} {what}")));
        if gone {
            self.pods.remove(&uid);
        } else {
            self.pods.insert(uid, pod);
        }
    }
}

/// The changes of a pod since it was last seen. Binding and removal are left out: the scheduler,
/// the kubelet and the controller race for what comes next.
fn changes(before: Option<&Value>, pod: &Value, gone: bool) -> Vec<String> {
    let mut changes = Vec::new();
    let is_ending = |pod: &Value| pod["metadata"]["deletionTimestamp"].is_string();
    if before.is_none() {
        changes.push(format!("created, {}", owner(pod)));
    }
    if let Some(before) = before {
        if hash_of(before) != hash_of(pod) {
            changes.push(format!("relabelled, was {}", hash_of(before)));
        }
        if owner(before) != owner(pod) {
            changes.push(format!("now {}", owner(pod)));
        }
    }
    let phase = |pod: &Value| pod["status"]["phase"].as_str().unwrap_or_default().to_owned();
    if matches!(&*phase(pod), "Failed" | "Succeeded")
        && before.is_none_or(|before| phase(before) != phase(pod))
    {
        changes.push(phase(pod).to_lowercase());
    }
    if is_ready(pod) && !before.is_some_and(is_ready) {
        changes.push("ready".to_owned());
    }
    let ends = is_ending(pod) || gone;
    if ends && !before.is_some_and(is_ending) {
        changes.push("deleted".to_owned());
    }
    changes
}
