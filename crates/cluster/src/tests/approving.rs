//! Approvals of steps: one request reads those of a DaemonSet, one writes that of a step.

use super::scripted::{Reply, server};
use super::*;
use crate::{Error, Permission, Resource, Verb, WriteError};
use daemonset::controller::test_cluster::Cluster;
use daemonset::model::{Approval, DaemonSetKey, DesiredDaemonSet, RolloutPolicy};

/// A DaemonSet whose policy has these steps.
fn with_steps(name: &str, steps: &Value) -> DesiredDaemonSet {
    let mut desired = Cluster::of(0).desired();
    desired.key = DaemonSetKey::new("a", name);
    let mut policy = RolloutPolicy::named("p");
    policy.spec.steps = serde_json::from_value(steps.clone()).unwrap();
    desired.policy = Some(policy.into());
    desired
}

fn asking(name: &str) -> DesiredDaemonSet {
    with_steps(name, &json!([{"name": "rest", "nodes": 3, "approve": true}]))
}

fn path(name: &str) -> String {
    format!("/api/v1/namespaces/a/configmaps/ds-plan-{name}-approvals")
}

#[tokio::test]
async fn approvals_are_read_where_a_policy_asks_for_some() {
    let given = json!({"uid": "u", "template": "t", "step": "s", "by": "b",
        "at": "2026-08-01T12:00:00Z"});
    let object = json!({"data": {"rest": given.to_string(), "bad": "{"}}).to_string();
    let (cluster, log) = cluster(move |uri, _| match uri {
        it if it == path("given") => Some(Answer::Body(object.clone())),
        it if it == path("none") => Some(Answer::status(404)),
        it if it == path("denied") => Some(Answer::status(403)),
        _ => None,
    });
    let mut snapshot = cluster.snapshot(&namespaces(&["a"]), now()).await.unwrap();
    let no_policy = Cluster::of(0).desired();
    let desired = [
        asking("given"),
        asking("none"),
        asking("denied"),
        with_steps("soaking", &json!([{"name": "rest", "nodes": 3}])),
        no_policy,
    ];
    cluster.read_approvals(&desired, &mut snapshot).await.unwrap();
    assert_eq!(count(&log, "/api/v1/namespaces/a/configmaps"), 3);
    let read = |name: &str| snapshot.approvals.get(&DaemonSetKey::new("a", name));
    assert_eq!(read("given").unwrap().keys().collect::<Vec<_>>(), ["rest"]);
    assert!(read("none").unwrap().is_empty(), "looked up");
    assert_eq!(read("denied"), None, "not looked up");
    let [unreadable] = &snapshot.unreadable[..] else { panic!("{:?}", snapshot.unreadable) };
    assert_eq!(unreadable.name, "ds-plan-given-approvals");
    assert!(unreadable.reason.starts_with("key bad: it is not JSON"), "{unreadable:?}");
    // A record of this name is another object.
    assert_eq!(snapshot.unreadable_record(&DaemonSetKey::new("a", "given-approvals")), None);
}

#[tokio::test]
async fn a_run_that_waits_is_told_which_permission_is_missing() {
    let (cluster, _) = cluster(|uri, _| (uri == path("agent")).then(|| Answer::status(403)));
    let error = cluster.approvals_of(&DaemonSetKey::new("a", "agent")).await.unwrap_err();
    let Error::Forbidden { missing, .. } = error else { panic!("{error:?}") };
    let namespace = Some("a".into());
    let want = Permission { verb: Verb::Get, resource: Resource::Approvals, namespace };
    assert_eq!(missing, std::slice::from_ref(&want));
    assert_eq!(want.to_string(), "get configmaps in namespace a");
}

#[tokio::test]
async fn an_answer_that_is_no_config_map_is_an_error() {
    let (cluster, _) = cluster(|uri, _| {
        (uri == path("agent")).then(|| Answer::Body(r#"{"data": ["a"]}"#.to_owned()))
    });
    let mut snapshot = cluster.snapshot(&namespaces(&["a"]), now()).await.unwrap();
    let error = cluster.read_approvals(&[asking("agent")], &mut snapshot).await.unwrap_err();
    assert!(matches!(error, Error::NotAnAnswer { .. }), "{error:?}");
}

#[tokio::test]
async fn an_approval_is_applied_by_the_manager_of_its_step() {
    let approval = Approval {
        uid: "u".into(),
        template: "sha256:t".to_owned(),
        step: "sha256:s".to_owned(),
        by: "a\u{85}b".to_owned(),
        at: "2026-08-01T12:00:00Z".parse().unwrap(),
    };
    let text = "{\"uid\":\"u\",\"template\":\"sha256:t\",\"step\":\"sha256:s\",\"by\":\"a\u{85}b\",\
                \"at\":\"2026-08-01T12:00:00Z\"}";
    let want = json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "ds-plan-agent-approvals",
            "namespace": "a",
            "labels": {"app.kubernetes.io/managed-by": "ds-apply"},
        },
        "data": {"rest": text},
    });
    let line = format!(
        "PATCH {}?fieldManager=ds-plan-approve-rest&fieldValidation=Strict&force=true",
        path("agent")
    );
    let key = DaemonSetKey::new("a", "agent");
    for dry_run in [false, true] {
        let (cluster, log) =
            server(|seen| seen.line.contains("/configmaps/").then(|| Reply::Json(json!({}))));
        if dry_run {
            cluster.try_approve_step(&key, "rest", &approval).await.unwrap();
        } else {
            cluster.approve_step(&key, "rest", &approval).await.unwrap();
        }
        let [seen] = &log.lock().unwrap()[..] else { panic!("one request") };
        assert_eq!(seen.line, format!("{line}{}", if dry_run { "&dryRun=All" } else { "" }));
        assert_eq!(seen.media_type, "application/apply-patch+yaml");
        assert_eq!(serde_json::from_str::<Value>(&seen.body).unwrap(), want);
        assert!(!seen.body.contains('\u{85}'), "a line break of YAML: {}", seen.body);
    }
}

#[tokio::test]
async fn who_may_not_write_is_told_which_permission_is_missing() {
    let approval = Approval {
        uid: "u".into(),
        template: String::new(),
        step: String::new(),
        by: String::new(),
        at: now(),
    };
    let key = DaemonSetKey::new("a", "agent");
    // A patch of an object that does not exist needs both.
    for verb in ["patch", "create"] {
        let message = format!("User \"x\" cannot {verb} resource \"configmaps\"");
        let status = json!({"reason": "Forbidden", "message": message});
        let (cluster, _) = server(move |_| Some(Reply::Refusal(403, status.clone())));
        let error = cluster.approve_step(&key, "rest", &approval).await.unwrap_err();
        assert!(matches!(error, WriteError::Forbidden { .. }), "{error:?}");
        assert_eq!(error.to_string(), format!("not permitted: {verb} configmaps in namespace a"));
    }
}
