//! Details of the pods that failed a rollout, read once it has ended: the last warning event of
//! each, and with `--logs` the last log lines of the container. They are read only if that is
//! permitted; failures here do not change the outcome of the run.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::container_log;
use cluster::{Access, Kind, Observer, Resource, Verb, Verdict, WritableCluster};
use daemonset::model::{DaemonSetKey, NodeName, Pod, PodName};
use planner::plan::ContainerLog;
use planner::rollout::{Ending, PodEvidence};

/// Number of nodes whose logs are read.
const WITH_LOGS: usize = 3;

/// Timeout for reading all of it: the user is waiting for the end of the run.
const LIMIT: Duration = Duration::from_secs(15);

/// Details of the failed pods, by node.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Evidence(BTreeMap<NodeName, PodEvidence>);

/// Reads the details of the pods that failed.
pub(super) async fn gather(
    ending: &Ending,
    key: &DaemonSetKey,
    observer: &Observer,
    cluster: &WritableCluster,
    logs: bool,
) -> Evidence {
    let failed = failed_pods(ending, observer);
    if failed.is_empty() {
        return Evidence::default();
    }
    let reading = read(failed, key, cluster, logs);
    tokio::time::timeout(LIMIT, reading).await.unwrap_or_default()
}

/// The pods that failed, as they were last observed.
fn failed_pods(ending: &Ending, observer: &Observer) -> BTreeMap<NodeName, Pod> {
    let failed = ending.outcome.failed().into_iter().flatten();
    let named = failed.filter_map(|(node, pod_failure)| Some((node, pod_failure.pod()?)));
    observer.look(|view| {
        let of = |name: &PodName| view.snapshot.pods.iter().find(|pod| pod.name == *name).cloned();
        named.filter_map(|(node, name)| Some((node.clone(), of(name)?))).collect()
    })
}

async fn read(
    failed: BTreeMap<NodeName, Pod>,
    key: &DaemonSetKey,
    cluster: &WritableCluster,
    logs: bool,
) -> Evidence {
    let access = |verb, resource| Access {
        verb,
        resource,
        namespace: Some(key.namespace.clone()),
        name: None,
    };
    let events = access(Verb::List, Resource::Of(Kind::Event));
    let questions = [events].into_iter().chain(logs.then(|| access(Verb::Get, Resource::PodLog)));
    let verdicts = cluster.review(questions.collect()).await;
    let may = |at: usize| verdicts.get(at) == Some(&Verdict::Allowed);
    let (nodes, mut pods): (Vec<NodeName>, Vec<Pod>) = failed.into_iter().unzip();
    if may(0) {
        cluster.live().report_warnings(&mut pods, |_| true).await;
    }
    let mut evidence = Evidence::default();
    for (at, (node, pod)) in nodes.into_iter().zip(&pods).enumerate() {
        let warning = pod.last_warning().map(str::to_owned);
        let log = if may(1) && at < WITH_LOGS {
            Some(container_log::read(cluster.live(), pod).await)
        } else {
            None
        };
        evidence.0.insert(node, PodEvidence { warning, log });
    }
    evidence
}

impl Evidence {
    /// The lines printed below the line of a node.
    pub(super) fn of(&self, node: &NodeName) -> Vec<String> {
        let Some(PodEvidence { warning, log }) = self.0.get(node) else { return Vec::new() };
        let warning = warning.iter().map(|text| format!("last warning: {text}"));
        warning.chain(log.iter().flat_map(ContainerLog::lines_shown)).collect()
    }

    /// The details as a document.
    pub(super) fn document(&self) -> BTreeMap<NodeName, PodEvidence> {
        self.0.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_are_printed_below_the_node() {
        let log = |lines: &[&str], error: Option<&str>| ContainerLog {
            pod: "agent-x".into(),
            container: Some("agent".to_owned()),
            previous: true,
            lines: lines.iter().map(|&line| line.to_owned()).collect(),
            error: error.map(str::to_owned),
        };
        let seen =
            |warning: Option<&str>, log| PodEvidence { warning: warning.map(str::to_owned), log };
        let evidence = Evidence(BTreeMap::from([
            ("a".into(), seen(Some("FailedMount: no such volume"), None)),
            ("b".into(), seen(None, Some(log(&["one", "two"], None)))),
            ("c".into(), seen(None, Some(log(&[], Some("no answer"))))),
            ("d".into(), seen(None, Some(log(&[], None)))),
        ]));
        let of = |node: &str| evidence.of(&node.into());
        assert_eq!(of("a"), ["last warning: FailedMount: no such volume"]);
        assert_eq!(of("b"), ["container agent printed before it ended:", "  | one", "  | two"]);
        assert_eq!(of("c"), ["the log of container agent cannot be read: no answer"]);
        assert_eq!(of("d"), ["container agent printed nothing before it ended"]);
        assert_eq!(of("e"), Vec::<String>::new());
    }
}
