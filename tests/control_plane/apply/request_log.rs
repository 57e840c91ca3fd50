//! The effects of a run according to the server: the deleted pods by the audit log, and the state
//! of the cluster at the moment when the strategy was restored.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::DaemonSet;
use kube::ResourceExt as _;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};
use serde_json::Value;

use super::Fleet;
use crate::harness::{Program, Running, block_on};

/// The user that runs `ds-apply` where other clients interfere; the audit log distinguishes it.
pub(super) const RUNNER: &str = "runner";

/// Every state of a DaemonSet, from the beginning on.
pub(super) struct RequestLog {
    stop: Arc<AtomicBool>,
    pages: JoinHandle<Vec<Value>>,
}

impl RequestLog {
    /// Starts to record the DaemonSets of a namespace.
    pub(super) fn begin(fleet: &Fleet<'_>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let daemon_sets: Api<DaemonSet> = Api::namespaced(fleet.plane.client(), &fleet.namespace);
        let (ready, is_ready) = mpsc::channel();
        let pages = thread::spawn(move || {
            block_on(async move { note(&daemon_sets, &stopped, &ready).await })
        });
        is_ready.recv().expect("the first list");
        Self { stop, pages }
    }

    /// Ends; returns the resourceVersions at which the strategy became `RollingUpdate` after
    /// `OnDelete`.
    pub(super) fn restored(self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        let pages = self.pages.join().expect("the log's thread");
        let strategy = |page: &Value| page["spec"]["updateStrategy"]["type"].clone();
        let turns = pages.windows(2).filter(|two| {
            two[0]["metadata"]["uid"] == two[1]["metadata"]["uid"]
                && strategy(&two[0]) == "OnDelete"
                && strategy(&two[1]) == "RollingUpdate"
        });
        turns
            .map(|two| two[1]["metadata"]["resourceVersion"].as_str().unwrap().to_owned())
            .collect()
    }
}

async fn note(
    daemon_sets: &Api<DaemonSet>,
    stopped: &AtomicBool,
    ready: &mpsc::Sender<()>,
) -> Vec<Value> {
    let list = daemon_sets.list(&ListParams::default()).await.unwrap();
    let mut pages: Vec<Value> =
        list.items.iter().map(|one| serde_json::to_value(one).unwrap()).collect();
    let mut version = list.metadata.resource_version.unwrap();
    ready.send(()).unwrap();
    while !stopped.load(Ordering::Relaxed) {
        let params = WatchParams::default().timeout(2);
        let stream = daemon_sets.watch(&params, &version).await.unwrap();
        let mut stream = std::pin::pin!(stream);
        while let Some(Ok(event)) = stream.next().await {
            match event {
                WatchEvent::Added(one) | WatchEvent::Modified(one) => {
                    version = one.resource_version().unwrap();
                    pages.push(serde_json::to_value(one).unwrap());
                }
                WatchEvent::Deleted(one) => version = one.resource_version().unwrap(),
                WatchEvent::Bookmark(_) => {}
                WatchEvent::Error(error) => panic!("{error:?}"),
            }
        }
    }
    pages
}

impl Fleet<'_> {
    /// `ds-apply --yes` of a manifest as its own user, ready to be started.
    pub(super) fn runner(&self, manifest: &str, flags: &[&str]) -> Program {
        let arguments = [&["--yes", "-f", "agent.yaml"], flags].concat();
        self.plane.ds_apply_as(RUNNER, &arguments, &[("agent.yaml", manifest)])
    }

    pub(super) fn begin(&self, manifest: &str, flags: &[&str]) -> Running {
        self.runner(manifest, flags).start()
    }

    /// The pods here that the runner had the server delete, in that order.
    pub(super) fn deleted_by_runner(&self) -> Vec<String> {
        let log = self.plane.audit_log();
        let ours = log.iter().filter(|event| {
            event["user"]["username"] == RUNNER
                && event["verb"] == "delete"
                && event["objectRef"]["resource"] == "pods"
                && event["objectRef"]["namespace"] == self.namespace.as_str()
                && event["responseStatus"]["code"] == 200
        });
        ours.map(|event| event["objectRef"]["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Images of the pods that were Ready at this resourceVersion, on nodes that still exist.
    pub(super) fn ready_images_at(&self, version: &str) -> Vec<String> {
        let path = format!(
            "/api/v1/namespaces/{}/pods?resourceVersion={version}&resourceVersionMatch=Exact",
            self.namespace
        );
        let list: Value =
            serde_json::from_str(&self.plane.kubectl(&["get", "--raw", &path])).unwrap();
        let nodes =
            self.plane.kubectl(&["get", "nodes", "--output=jsonpath={.items[*].metadata.name}"]);
        let is_ready = |pod: &&Value| {
            let conditions = pod["status"]["conditions"].as_array();
            let ready = conditions.is_some_and(|all| {
                all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True")
            });
            ready && nodes.split(' ').any(|node| pod["spec"]["nodeName"] == node)
        };
        let pods = list["items"].as_array().unwrap().iter().filter(is_ready);
        let image =
            |pod: &Value| pod["spec"]["containers"][0]["image"].as_str().unwrap().to_owned();
        pods.map(|pod| image(pod).rsplit(':').next().unwrap().to_owned()).collect()
    }
}
