//! Pages, retries, timeouts and refusals.

mod protobuf;

use std::time::Duration;

use tokio::time::Instant;

use super::*;
use crate::decode::Encoded;
use crate::list::{self, List, Sink};
use crate::request::Accept;
use crate::{Error, Kind, Permission, Resource, Verb};
use daemonset::controller::test_cluster::Cluster;
use daemonset::model::{Coverage, DaemonSetKey, ManagedBy, RECORD_LABEL, Snapshot};

const NODES: &str = "/api/v1/nodes?limit=500";

/// The snapshot of a cluster whose list of nodes has this answer.
async fn nodes_answered(
    mut answer: impl FnMut(usize) -> Option<Answer> + Send + 'static,
) -> (Result<Snapshot, Error>, usize, Duration) {
    let (cluster, log) = cluster(move |uri, before| (uri == NODES).then(|| answer(before))?);
    let start = Instant::now();
    let snapshot = cluster.snapshot(&namespaces(&["a"]), now()).await;
    (snapshot, count(&log, "/api/v1/nodes"), start.elapsed())
}

#[tokio::test]
async fn a_snapshot_needs_a_fixed_number_of_requests() {
    let (cluster, log) = cluster(|_, _| None);
    let snapshot = cluster.snapshot(&namespaces(&["a", "b"]), now()).await.unwrap();
    let asked: Vec<String> =
        log.lock().unwrap().iter().map(|(uri, n)| format!("{n} {uri}")).collect();
    assert_eq!(
        asked,
        [
            "1 /api/v1/namespaces/a/pods?limit=500",
            "1 /api/v1/namespaces/a/services?limit=500",
            "1 /api/v1/namespaces/b/pods?limit=500",
            "1 /api/v1/namespaces/b/services?limit=500",
            "1 /api/v1/namespaces?limit=500",
            "1 /api/v1/nodes?limit=500",
            "1 /apis/apps/v1/namespaces/a/controllerrevisions?limit=500",
            "1 /apis/apps/v1/namespaces/a/daemonsets?limit=500",
            "1 /apis/apps/v1/namespaces/b/controllerrevisions?limit=500",
            "1 /apis/apps/v1/namespaces/b/daemonsets?limit=500",
            "1 /apis/coordination.k8s.io/v1/namespaces/a/leases?limit=500",
            "1 /apis/coordination.k8s.io/v1/namespaces/b/leases?limit=500",
            "1 /version",
        ]
    );
    let info = &snapshot.cluster;
    assert_eq!((info.name.as_deref(), info.version.as_deref()), (Some("prod"), Some("v1.36.3")));
    assert_eq!((info.uid.as_ref(), info.file.as_ref()), (Some(&"cluster-uid".into()), None));
    assert_eq!(snapshot.observed_at.to_string(), "2026-03-04T05:06:07Z");
    assert_eq!(
        snapshot.coverage,
        Coverage {
            scope: Some(["a".into(), "b".into()].into()),
            managed_fields: true,
            namespaces: true,
            services: true,
            leases: true,
            records: true,
            masked: None
        }
    );
    assert_eq!((cluster.name(), cluster.default_namespace().as_str()), (Some("prod"), "team"));
}

#[tokio::test]
async fn the_number_of_requests_depends_on_pages_not_daemon_sets() {
    let object = |name: String| {
        json!({
            "metadata": {"namespace": "a", "name": name, "uid": format!("uid-of-{name}")},
            "spec": {"selector": {}, "template": {}},
        })
    };
    for daemon_sets in [1, 20, 100] {
        let (cluster, log) = cluster(move |uri, _| {
            let objects = |count: usize, kind: &str| -> Vec<Value> {
                (0..count).map(|at| object(format!("{kind}-{at}"))).collect()
            };
            match uri {
                "/apis/apps/v1/namespaces/a/daemonsets?limit=500" => {
                    Some(Answer::list(&objects(daemon_sets, "agent")))
                }
                "/apis/apps/v1/namespaces/a/controllerrevisions?limit=500" => {
                    Some(Answer::list(&objects(daemon_sets * 2, "agent")))
                }
                NODES => Some(Answer::page(&objects(500, "first"), "more")),
                "/api/v1/nodes?limit=500&continue=more" => {
                    Some(Answer::page(&objects(500, "second"), "most"))
                }
                "/api/v1/nodes?limit=500&continue=most" => {
                    Some(Answer::list(&objects(200, "third")))
                }
                _ => None,
            }
        });
        // The planner's scope: the namespaces of the DaemonSets, each once.
        let of_two = (0..=daemon_sets).map(|at| if at % 2 == 0 { "a" } else { "b" });
        let scope = namespaces(&of_two.collect::<Vec<_>>());
        let snapshot = cluster.snapshot(&scope, now()).await.unwrap();
        assert_eq!((snapshot.daemon_sets.len(), snapshot.nodes.len()), (daemon_sets, 1_200));
        // Three pages of nodes, five lists in each of two namespaces, the namespaces themselves,
        // and the version.
        assert_eq!(count(&log, ""), 3 + 5 * 2 + 1 + 1, "{daemon_sets}");
    }
}

/// A sink that accepts objects of the first page only after the second page was requested.
struct Waiting {
    asked: Log,
}

impl Sink for Waiting {
    fn accepts(_: Kind) -> Accept {
        Accept::Json
    }

    fn object(&mut self, _: Kind, index: usize, _: Encoded<'_>) -> Result<(), Error> {
        let next = "/api/v1/nodes?limit=500&continue=x";
        let timeout = 1_000;
        let asked = (0..timeout).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            count(&self.asked, next) > 0
        });
        assert!(asked, "object {index} was decoded before the next page was requested");
        Ok(())
    }

    fn append(&mut self, _: Self) {
        unreachable!("this server answers with JSON")
    }

    fn has_seen_record(&self) -> bool {
        false
    }
}

#[tokio::test]
async fn a_page_is_decoded_while_the_next_one_is_fetched() {
    let (cluster, log) = cluster(|uri, _| match uri {
        NODES => Some(Answer::page(&[node("a")], "x")),
        "/api/v1/nodes?limit=500&continue=x" => Some(Answer::list(&[node("b")])),
        _ => None,
    });
    let list = List::all(Kind::Node, None);
    let sink = || Waiting { asked: Arc::clone(&log) };
    list::read(&cluster.requests, &list, 500, &sink).await.unwrap();
    assert_eq!(count(&log, "/api/v1/nodes"), 2);
}

#[tokio::test]
async fn all_namespaces_are_one_list_per_kind() {
    let (cluster, log) = cluster(|_, _| None);
    cluster.snapshot(&Scope::All, now()).await.unwrap();
    assert_eq!(count(&log, ""), 8);
    // The leases of the kubelets are excluded.
    let leases = "/apis/coordination.k8s.io/v1/leases?limit=500&\
                  fieldSelector=metadata.namespace%21%3Dkube-node-lease";
    assert_eq!(count(&log, leases), 1);
    assert_eq!(count(&log, "/api/v1/pods?limit=500"), 1);
}

#[tokio::test]
async fn pages_follow_each_other_by_their_tokens() {
    let (cluster, log) = cluster(|uri, _| match uri {
        "/api/v1/nodes?limit=2" => Some(Answer::page(&[node("c"), node("a")], "x/+=")),
        "/api/v1/nodes?limit=2&continue=x%2F%2B%3D" => Some(Answer::page(&[node("b")], "y")),
        "/api/v1/nodes?limit=2&continue=y" => Some(Answer::list(&[])),
        _ => None,
    });
    let snapshot = cluster.with_page_size(2).snapshot(&namespaces(&["a"]), now()).await.unwrap();
    let names: Vec<_> = snapshot.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    assert_eq!(count(&log, "/api/v1/nodes"), 3);
}

#[tokio::test]
async fn a_list_that_expires_in_the_middle_is_started_again_up_to_three_times() {
    for (expiries, want) in [(1, Ok(1)), (3, Ok(1)), (4, Err(4))] {
        let (cluster, log) = cluster(move |uri, before| match uri {
            NODES => Some(Answer::page(&[node("a")], "next")),
            "/api/v1/nodes?limit=500&continue=next" if before < expiries => {
                Some(Answer::status(410))
            }
            _ => None,
        });
        let snapshot = cluster.snapshot(&namespaces(&["a"]), now()).await;
        match want {
            Ok(nodes) => assert_eq!(snapshot.unwrap().nodes.len(), nodes, "{expiries}"),
            Err(attempts) => assert!(
                matches!(&snapshot, Err(Error::Expired { kind: Kind::Node, attempts: n }) if *n == attempts),
                "{snapshot:?}"
            ),
        }
        assert_eq!(count(&log, NODES), (expiries + 1).min(4) * 2, "{expiries}");
    }
}

#[tokio::test]
async fn a_repeated_token_is_an_error() {
    let (cluster, log) = cluster(|uri, _| match uri {
        NODES => Some(Answer::page(&[node("a")], "x")),
        "/api/v1/nodes?limit=500&continue=x" => Some(Answer::page(&[node("b")], "y")),
        "/api/v1/nodes?limit=500&continue=y" => Some(Answer::page(&[node("c")], "x")),
        _ => None,
    });
    let snapshot = cluster.snapshot(&namespaces(&["a"]), now()).await;
    assert!(matches!(snapshot, Err(Error::EndlessList { kind: Kind::Node })), "{snapshot:?}");
    assert_eq!(count(&log, "/api/v1/nodes"), 3);
}

#[tokio::test(start_paused = true)]
async fn transient_refusals_are_retried_with_growing_waits() {
    for code in [429, 500, 502, 503, 504] {
        let (snapshot, requests, waited) =
            nodes_answered(move |before| (before < 4).then(|| Answer::status(code))).await;
        assert!(snapshot.is_ok(), "{code}: {snapshot:?}");
        assert_eq!((requests, waited.as_millis()), (5, 7_500), "{code}");
    }
    let (snapshot, requests, _) = nodes_answered(|_| Some(Answer::status(503))).await;
    let error = snapshot.unwrap_err().to_string();
    assert_eq!(
        error,
        "the API server https://test:6443 answered GET /api/v1/nodes with 503: no, 503"
    );
    assert_eq!(requests, 5);
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honoured() {
    for (retry_after, seconds) in [
        ("7", 7),
        ("9999", 30),
        ("Wed, 04 Mar 2026 05:06:19 GMT", 12),
        // Less than our own wait, or invalid: our own.
        ("0", 0),
        ("Wed, 04 Mar 2026 05:06:00 GMT", 0),
        ("soon", 0),
    ] {
        let (snapshot, requests, waited) = nodes_answered(move |before| {
            (before == 0).then_some(Answer::Status { code: 429, retry_after: Some(retry_after) })
        })
        .await;
        assert!(snapshot.is_ok(), "{retry_after}: {snapshot:?}");
        let want = if seconds == 0 { 500 } else { seconds * 1_000 };
        assert_eq!((requests, waited.as_millis()), (2, want), "{retry_after}");
    }
}

#[tokio::test(start_paused = true)]
async fn permanent_refusals_are_not_retried() {
    for (code, want) in [
        (400, "the API server https://test:6443 answered GET /api/v1/nodes with 400: no, 400"),
        (404, "the API server https://test:6443 answered GET /api/v1/nodes with 404: no, 404"),
        (401, "the API server https://test:6443 does not accept the credentials"),
        (403, "not permitted: list nodes"),
    ] {
        let (snapshot, requests, waited) =
            nodes_answered(move |_| Some(Answer::status(code))).await;
        assert_eq!(snapshot.unwrap_err().to_string(), want);
        assert_eq!((requests, waited), (1, Duration::ZERO), "{code}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_timeout_is_retried_once() {
    let (snapshot, requests, waited) = nodes_answered(|_| Some(Answer::Silence)).await;
    assert_eq!(
        snapshot.unwrap_err().to_string(),
        "the API server https://test:6443 did not answer GET /api/v1/nodes within 60 s"
    );
    assert_eq!((requests, waited.as_millis()), (2, 120_500));

    let (cluster, log) = cluster(|uri, _| (uri == "/version").then_some(Answer::Silence));
    let error = cluster.snapshot(&namespaces(&["a"]), now()).await.unwrap_err();
    assert!(error.to_string().ends_with("did not answer GET /version within 10 s"), "{error}");
    assert_eq!(count(&log, "/version"), 2);

    let (snapshot, requests, _) =
        nodes_answered(|before| (before == 0).then_some(Answer::Silence)).await;
    assert!(snapshot.is_ok());
    assert_eq!(requests, 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answered_is_not_waited_for() {
    for (kind, want, attempts) in [
        (
            io::ErrorKind::ConnectionRefused,
            "cannot reach the API server https://test:6443: it failed",
            1,
        ),
        (
            io::ErrorKind::TimedOut,
            "cannot reach the API server https://test:6443: no connection within 8 s",
            1,
        ),
        (
            io::ErrorKind::InvalidData,
            "no trusted connection to the API server https://test:6443: it failed",
            1,
        ),
        (
            io::ErrorKind::ConnectionReset,
            "lost the connection to the API server https://test:6443: it failed",
            5,
        ),
    ] {
        let (cluster, log) = cluster(move |_, _| Some(Answer::Fails(kind)));
        let error = cluster.snapshot(&namespaces(&["a"]), now()).await.unwrap_err();
        assert_eq!(error.to_string(), want);
        // The first list that is read.
        let first = "/apis/apps/v1/namespaces/a/daemonsets?limit=500";
        assert_eq!(count(&log, first), attempts, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_answered_is_waited_for() {
    let (snapshot, requests, _) = nodes_answered(|before| match before {
        0 => Some(Answer::status(503)),
        1 => Some(Answer::Fails(io::ErrorKind::ConnectionRefused)),
        _ => None,
    })
    .await;
    assert!(snapshot.is_ok(), "{snapshot:?}");
    assert_eq!(requests, 3);
}

#[tokio::test(start_paused = true)]
async fn a_page_without_its_end_is_fetched_again() {
    let whole = r#"{"metadata":{},"items":[{"metadata":{"name":"n","uid":"u"}}]}"#;
    for end in [whole.len() - 1, whole.len() - 2, whole.len() / 2, 1, 0] {
        let (snapshot, requests, _) = nodes_answered(move |before| {
            let end = if before == 0 { end } else { whole.len() };
            Some(Answer::Body(whole[..end].to_owned()))
        })
        .await;
        assert_eq!(snapshot.unwrap().nodes.len(), 1);
        assert_eq!(requests, 2, "{end}");
    }
}

#[tokio::test]
async fn all_forbidden_lists_are_reported_at_once() {
    let (cluster, _) = cluster(|uri, _| {
        (uri == NODES || uri.contains("/namespaces/b/")).then(|| Answer::status(403))
    });
    let error = cluster.snapshot(&namespaces(&["a", "b"]), now()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "not permitted: list nodes, list daemonsets.apps in namespace b, \
         list controllerrevisions.apps in namespace b, list pods in namespace b"
    );
    let Error::Forbidden { missing, message } = error else { unreachable!() };
    assert_eq!(
        missing[0],
        Permission { verb: Verb::List, resource: Resource::Of(Kind::Node), namespace: None }
    );
    assert_eq!(message, "no, 403");
}

#[tokio::test]
async fn optional_lists_may_be_forbidden() {
    for (forbidden, services, leases) in
        [("", true, true), ("/b/services", false, true), ("/a/leases", true, false)]
    {
        let (cluster, _) = cluster(move |uri, _| {
            (!forbidden.is_empty() && uri.contains(forbidden)).then(|| Answer::status(403))
        });
        let snapshot = cluster.snapshot(&namespaces(&["a", "b"]), now()).await.unwrap();
        let coverage = snapshot.coverage;
        assert_eq!((coverage.services, coverage.leases), (services, leases), "{forbidden}");
    }
    let (cluster, _) = cluster(|uri, _| uri.contains("/services").then(|| Answer::status(400)));
    assert!(cluster.snapshot(&namespaces(&["a"]), now()).await.is_err(), "not a refusal");
}

#[tokio::test]
async fn namespaces_that_cannot_be_listed_are_read_one_by_one() {
    let (cluster, log) = cluster(|uri, _| match uri {
        "/api/v1/namespaces?limit=500" | "/api/v1/namespaces/b" => Some(Answer::status(403)),
        "/api/v1/namespaces/c" => Some(Answer::status(404)),
        "/api/v1/namespaces/a" => Some(Answer::Body(node("a").to_string())),
        "/api/v1/namespaces/kube-system" => Some(Answer::Body(node("kube-system").to_string())),
        _ => None,
    });
    let snapshot = cluster.snapshot(&namespaces(&["a", "b", "c"]), now()).await.unwrap();
    let names: Vec<_> =
        snapshot.namespaces.iter().map(|namespace| namespace.name.as_str()).collect();
    assert_eq!(names, ["a", "kube-system"]);
    assert_eq!(snapshot.cluster.uid, Some("uid-of-kube-system".into()));
    assert!(!snapshot.coverage.namespaces);
    let lists = ["a", "b", "c"].map(|name| count(&log, &format!("/api/v1/namespaces/{name}/")));
    assert_eq!(count(&log, "/api/v1/namespaces/") - lists.iter().sum::<usize>(), 4);
}

#[tokio::test]
async fn a_version_that_may_not_be_read_is_unknown() {
    let (cluster, _) = cluster(|uri, _| (uri == "/version").then(|| Answer::status(403)));
    let snapshot = cluster.snapshot(&namespaces(&["a"]), now()).await.unwrap();
    assert_eq!(snapshot.cluster.version, None);
}

#[tokio::test]
async fn invalid_answers_are_errors() {
    for (body, want) in [
        (
            "<html>log in</html>",
            "the API server's answer to GET /api/v1/nodes cannot be read: expected value at line 1 column 1",
        ),
        (
            r#"{"items":[{"metadata":{}}]}"#,
            "https://test:6443: Node (item 1 of its list): metadata.name: is missing",
        ),
        (
            r#"{"items":[{"metadata":{"name":"n","uid":"u"}},{"metadata":{"name":"n","uid":"u"}}]}"#,
            "https://test:6443: Node `n` appears twice",
        ),
    ] {
        let (snapshot, ..) = nodes_answered(move |_| Some(Answer::Body(body.to_owned()))).await;
        assert_eq!(snapshot.unwrap_err().to_string(), want);
    }
}

/// A revision that is owned by a record.
fn of_record() -> Value {
    let owner = json!({"kind": "ConfigMap", "name": "ds-plan-x", "uid": "u", "controller": true});
    json!({"metadata": {
        "namespace": "a", "name": "x-1", "uid": "r", "ownerReferences": [owner],
    }})
}

#[tokio::test]
async fn records_are_read_if_one_is_referenced_or_wanted() {
    let forbidden = |uri: &str, _| uri.contains("/configmaps").then(|| Answer::status(403));
    let (plain, log) = cluster(forbidden);
    let snapshot = plain.snapshot(&namespaces(&["a"]), now()).await.unwrap();
    assert_eq!(
        (count(&log, "/api/v1/namespaces/a/configmaps"), snapshot.coverage.records),
        (0, true)
    );

    let mut wanted = Cluster::of(0).desired();
    wanted.managed_by = ManagedBy::DsApply;
    let error =
        plain.snapshot_for(&[wanted.clone()], &namespaces(&["a"]), now()).await.unwrap_err();
    assert!(matches!(error, Error::Forbidden { .. }), "{error:?}");
    let (allowed, log) = cluster(|_, _| None);
    allowed.snapshot_for(&[wanted], &namespaces(&["a"]), now()).await.unwrap();
    assert_eq!(count(&log, "/api/v1/namespaces/a/configmaps"), 1);

    for may in [true, false] {
        let (seen, log) = cluster(move |uri, before| match uri {
            "/apis/apps/v1/namespaces/a/controllerrevisions?limit=500" => {
                Some(Answer::list(&[of_record()]))
            }
            uri if !may => forbidden(uri, before),
            _ => None,
        });
        let snapshot = seen.snapshot(&namespaces(&["a"]), now()).await.unwrap();
        let asked = count(
            &log,
            "/api/v1/namespaces/a/configmaps?limit=500&labelSelector=ds-plan.dev%2Frecord%3Dtrue",
        );
        assert_eq!((asked, snapshot.coverage.records), (1, may));
    }
}

#[tokio::test]
async fn records_are_listed_as_the_daemon_sets_that_they_stand_for() {
    let object = json!({
        "metadata": {"name": "x", "labels": {"tier": "node"}},
        "spec": {
            "selector": {"matchLabels": {"app": "x"}},
            "template": {"metadata": {"labels": {"app": "x"}}, "spec": {}},
        },
    });
    let record = |name: &str, object: &str| {
        let labels = json!({RECORD_LABEL: "true"});
        let metadata = json!({"namespace": "a", "name": name, "uid": name, "labels": labels});
        json!({"metadata": metadata, "data": {"daemonSet": object}})
    };
    let all = [record("ds-plan-x", &object.to_string()), record("ds-plan-y", "{")];
    let asked =
        "/api/v1/namespaces/a/configmaps?limit=500&labelSelector=ds-plan.dev%2Frecord%3Dtrue";
    let (live, _) = cluster(move |uri, _| (uri == asked).then(|| Answer::list(&all)));
    let found = live.records_in(&"a".into()).await.unwrap();
    let [one] = &found[..] else { panic!("{found:#?}") };
    assert_eq!(one.key, DaemonSetKey::new("a", "x"));
    assert_eq!((one.managed_by, one.labels.get("tier")), (ManagedBy::DsApply, Some("node")));
}
