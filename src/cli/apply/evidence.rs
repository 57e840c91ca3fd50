//! What there is to say about pods that have failed a rollout, once it has ended: the last warning
//! event about each, and with `--logs` the last lines of the container. Read only where it is
//! permitted, which is asked first; whatever fails here changes nothing about how the run ended.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::container_log;
use crate::cluster::{Access, Kind, Observer, Resource, Verb, Verdict, WritableCluster};
use crate::model::{DaemonSetKey, NodeName, Pod, PodName};
use crate::plan::ContainerLog;
use crate::rollout::Ending;

/// Nodes whose logs are read.
const WITH_LOGS: usize = 3;

/// How long all of it may take: the rollout has ended, and somebody waits for its end.
const LIMIT: Duration = Duration::from_secs(15);

/// What is known of the pods that failed, by node.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Evidence(BTreeMap<NodeName, Seen>);

/// What is known of one.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    warning: Option<String>,
    log: Option<ContainerLog>,
}

/// Reads what there is about the pods that failed.
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

/// The pods that failed, as they were seen last.
fn failed_pods(ending: &Ending, observer: &Observer) -> BTreeMap<NodeName, Pod> {
    let failed = ending.outcome.failed().into_iter().flatten();
    let named = failed.filter_map(|(node, trouble)| Some((node, trouble.pod()?)));
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
        cluster.live().tell_warnings(&mut pods, |_| true).await;
    }
    let mut evidence = Evidence::default();
    for (at, (node, pod)) in nodes.into_iter().zip(&pods).enumerate() {
        let warning = pod.last_warning().map(str::to_owned);
        let log = if may(1) && at < WITH_LOGS {
            Some(container_log::read(cluster.live(), pod).await)
        } else {
            None
        };
        evidence.0.insert(node, Seen { warning, log });
    }
    evidence
}

impl Evidence {
    /// What is said below the line of a node.
    pub(super) fn of(&self, node: &NodeName) -> Vec<String> {
        let Some(Seen { warning, log }) = self.0.get(node) else { return Vec::new() };
        let warning = warning.iter().map(|text| format!("last warning: {text}"));
        warning.chain(log.iter().flat_map(ContainerLog::lines_shown)).collect()
    }

    /// The same, for programs.
    pub(super) fn data(&self) -> Value {
        let one = |(node, seen): (&NodeName, &Seen)| {
            let Seen { warning, log } = seen;
            (node.to_string(), json!({ "warning": warning, "log": log }))
        };
        self.0.iter().map(one).collect::<serde_json::Map<_, _>>().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_stands_below_its_node() {
        let log = |lines: &[&str], error: Option<&str>| ContainerLog {
            pod: "agent-x".into(),
            container: Some("agent".to_owned()),
            previous: true,
            lines: lines.iter().map(|&line| line.to_owned()).collect(),
            error: error.map(str::to_owned),
        };
        let seen = |warning: Option<&str>, log| Seen { warning: warning.map(str::to_owned), log };
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
