//! Why a pod is not Ready: its last warning, live and recorded, and the logs of its containers.

use super::*;
use crate::{Error, LogOf, Verb, read_recorded_from};
use daemonset::model::Snapshot;

const EVENTS: &str = "/api/v1/namespaces/a/events?limit=500&\
                      fieldSelector=involvedObject.kind%3DPod%2Ctype%3DWarning";

fn pod(name: &str, ready: bool) -> Value {
    let ready = if ready { "True" } else { "False" };
    json!({
        "metadata": {
            "namespace": "a", "name": name, "uid": format!("uid-{name}"),
            "ownerReferences": [
                {"kind": "DaemonSet", "name": "agent", "uid": "ds", "controller": true},
            ],
        },
        "spec": {"nodeName": "n"},
        "status": {
            "phase": "Pending",
            "conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}}],
        },
    })
}

fn event(about: &str, severity: &str, reason: &str) -> Value {
    json!({
        "metadata": {"namespace": "a", "name": format!("{about}.{reason}"), "uid": reason},
        "involvedObject": {"kind": "Pod", "namespace": "a", "name": about, "uid": format!("uid-{about}")},
        "type": severity, "reason": reason, "message": "no such volume", "firstTimestamp": null,
        "lastTimestamp": "2026-01-01T00:00:00Z", "source": {"host": "hunter2"},
    })
}

/// A cluster with a pod that is not Ready and one that is.
fn served() -> (LiveCluster, Log) {
    let pods = [pod("bad", false), pod("good", true)];
    let events = [
        event("bad", "Warning", "FailedMount"),
        event("bad", "Normal", "Scheduled"),
        event("good", "Warning", "Unhealthy"),
    ];
    let daemon_set = json!({
        "metadata": {"namespace": "a", "name": "agent", "uid": "ds"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": {}},
    });
    cluster(move |uri, _| match uri.split(['/', '?']).rev().nth(1)? {
        "pods" => Some(Answer::list(&pods)),
        "nodes" => Some(Answer::list(&[node("n")])),
        "daemonsets" => Some(Answer::list(std::slice::from_ref(&daemon_set))),
        "events" => Some(Answer::list(&events)),
        _ => None,
    })
}

/// Each pod with its unready reason and its last warning.
fn reported(snapshot: &Snapshot) -> Vec<(&str, Option<&str>, Option<&str>)> {
    let pods = snapshot.pods.iter();
    pods.map(|pod| {
        let waits_for = pod.why_unready().map(|it| &*it.reason);
        (pod.name.as_str(), waits_for, pod.last_warning())
    })
    .collect()
}

const WANT: [(&str, Option<&str>, Option<&str>); 2] =
    [("bad", Some("ContainerCreating"), Some("FailedMount: no such volume")), ("good", None, None)];

#[tokio::test]
async fn a_recorded_pod_has_the_same_warnings_as_a_live_one() {
    let (live, log) = served();
    let mut snapshot = live.snapshot(&namespaces(&["a"]), now()).await.unwrap();
    assert_eq!(count(&log, EVENTS), 0, "a plan does not need them");
    live.report_warnings(&mut snapshot.pods, |_| true).await;
    assert_eq!((reported(&snapshot), count(&log, EVENTS)), (WANT.to_vec(), 1));

    let mut bytes = Vec::new();
    let recorded = served().0.record(&namespaces(&["a"]), None, now()).await.unwrap();
    recorded.write_to(&mut bytes).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    assert!(!text.contains("hunter2") && !text.contains("Scheduled"), "{text}");
    let read = read_recorded_from(text.as_bytes(), "s.json").unwrap();
    assert_eq!(reported(&read), WANT);
    assert_eq!(read.pods, snapshot.pods);
}

#[tokio::test]
async fn events_that_are_forbidden_or_not_needed_are_skipped() {
    for (wanted, code, asked) in [(true, 403, 1), (true, 400, 1), (false, 200, 0)] {
        let pods = [pod("bad", false)];
        let (live, log) = cluster(move |uri, _| match uri.split(['/', '?']).rev().nth(1)? {
            "pods" => Some(Answer::list(&pods)),
            "events" => Some(Answer::status(code)),
            _ => None,
        });
        let mut snapshot = live.snapshot(&namespaces(&["a"]), now()).await.unwrap();
        live.report_warnings(&mut snapshot.pods, |_| wanted).await;
        assert_eq!(snapshot.pods[0].last_warning(), None);
        assert_eq!(count(&log, EVENTS), asked);
    }
}

#[tokio::test]
async fn a_log_is_read_once_and_only_its_end() {
    let current = "/api/v1/namespaces/a/pods/x/log?container=c&tailLines=20&limitBytes=16384";
    let before =
        "/api/v1/namespaces/a/pods/x/log?container=c&previous=true&tailLines=20&limitBytes=16384";
    let (live, log) = cluster(move |uri, _| match uri {
        uri if uri == current => Some(Answer::Body("one\ntwo \u{1b}[31m\n".to_owned())),
        uri if uri == before => Some(Answer::status(500)),
        _ => Some(Answer::status(403)),
    });
    let (namespace, pod) = ("a".into(), "x".into());
    let of = |container, previous| LogOf { namespace: &namespace, pod: &pod, container, previous };
    assert_eq!(live.log(of(Some("c"), false)).await.unwrap(), "one\ntwo \u{1b}[31m\n");
    assert!(matches!(live.log(of(Some("c"), true)).await, Err(Error::Refused { status: 500, .. })));
    assert_eq!(count(&log, before), 1, "a failing kubelet is not called again");
    let Err(Error::Forbidden { missing, .. }) = live.log(of(None, false)).await else { panic!() };
    assert_eq!(
        (missing[0].verb, missing[0].to_string()),
        (Verb::Get, "get pods/log in namespace a".into())
    );
}
