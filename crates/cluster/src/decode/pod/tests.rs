//! Decodes pods from the API server's JSON.

use super::super::MESSAGE_LENGTH;
use super::super::tests::{at, pod};
use super::*;

#[test]
fn the_node_of_a_pod() {
    let aimed = |terms: &str| {
        format!(
            r#"{{"affinity":{{"nodeAffinity":{{
                "requiredDuringSchedulingIgnoredDuringExecution":{{"nodeSelectorTerms":{terms}}}}}}}}}"#
        )
    };
    let name =
        |values: &str| format!(r#"{{"key":"metadata.name","operator":"In","values":{values}}}"#);
    let (a, ab, b) = (name(r#"["a"]"#), name(r#"["a","b"]"#), name(r#"["b"]"#));
    let to_a = || PodTarget::Aimed("a".into());
    for (spec, want) in [
        (r#"{"nodeName":"n"}"#.to_owned(), PodTarget::Bound("n".into())),
        (r#"{"nodeName":""}"#.to_owned(), PodTarget::Nowhere),
        ("null".to_owned(), PodTarget::Nowhere),
        (r#"{"affinity":{}}"#.to_owned(), PodTarget::Nowhere),
        (aimed("null"), PodTarget::Nowhere),
        (aimed("[]"), PodTarget::Nowhere),
        (aimed(&format!(r#"[{{"matchFields":[{a}]}}]"#)), to_a()),
        (aimed(&format!(r#"[{{"matchFields":[{ab}]}}]"#)), PodTarget::Nowhere),
        (aimed(&format!(r#"[{{"matchFields":[{}]}}]"#, name("[]"))), PodTarget::Nowhere),
        // The first one counts, across terms and within them.
        (aimed(&format!(r#"[{{}},{{"matchFields":[{a},{b}]}}]"#)), to_a()),
        (aimed(&format!(r#"[{{"matchFields":[{a}]}},{{"matchFields":[{b}]}}]"#)), to_a()),
        (
            aimed(&format!(r#"[{{"matchFields":[{ab}]}},{{"matchFields":[{a}]}}]"#)),
            PodTarget::Nowhere,
        ),
        // Other fields and operators are skipped.
        (
            aimed(&format!(
                r#"[{{"matchFields":[{{"key":"metadata.name","operator":"NotIn","values":["x"]}},{a}]}}]"#
            )),
            to_a(),
        ),
        (
            aimed(&format!(
                r#"[{{"matchFields":[{{"key":"x","operator":"In","values":["x"]}},{a}]}}]"#
            )),
            to_a(),
        ),
        (
            aimed(
                r#"[{"matchExpressions":[{"key":"metadata.name","operator":"In","values":["a"]}]}]"#,
            ),
            PodTarget::Nowhere,
        ),
    ] {
        assert_eq!(pod(&spec, "{}").target, want, "{spec}");
    }
}

#[test]
fn failures_of_a_pod() {
    let state =
        |state: &str| format!(r#"{{"containerStatuses":[{{"name":"c","state":{state}}}]}}"#);
    for (status, want) in [
        ("{}".to_owned(), None),
        (state(r#"{"running":{"startedAt":"2026-01-01T00:00:00Z"}}"#), None),
        (state(r#"{"waiting":{"reason":"ContainerCreating"}}"#), None),
        (state(r#"{"waiting":{"reason":"PodInitializing"}}"#), None),
        (state(r#"{"waiting":{}}"#), None),
        (state(r#"{"terminated":{"exitCode":0,"reason":"Completed"}}"#), None),
        (state(r#"{"waiting":{"reason":"CrashLoopBackOff","message":"back-off"}},
            "lastState":{"terminated":{"exitCode":3,"reason":"Error","message":"no config\n"}}"#),
            Some(("c", "CrashLoopBackOff", "back-off; it ended with Error, exit code 3: no config"))),
        (state(r#"{"waiting":{"reason":"ImagePullBackOff","message":"m"}}"#),
            Some(("c", "ImagePullBackOff", "m"))),
        (state(r#"{"terminated":{"exitCode":137,"reason":"OOMKilled"}}"#),
            Some(("c", "OOMKilled", "exit code 137"))),
        (state(r#"{"terminated":{"exitCode":1,"message":"boom"}}"#), Some(("c", "Error", "boom"))),
        (r#"{"initContainerStatuses":[{"name":"i","state":{"waiting":{"reason":"CrashLoopBackOff"}}}],
            "containerStatuses":[{"name":"c","state":{"waiting":{"reason":"PodInitializing"}}}]}"#.to_owned(),
            Some(("i", "CrashLoopBackOff", ""))),
        (r#"{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/3"}]}"#.to_owned(),
            Some(("", "Unschedulable", "0/3"))),
        (r#"{"phase":"Failed","reason":"Evicted","message":"low on memory"}"#.to_owned(),
            Some(("", "Evicted", "low on memory"))),
    ] {
        let found = pod("{}", &status).container_failure;
        let found = found.as_ref().map(|t| (&*t.container, &*t.reason, &*t.message));
        assert_eq!(found, want, "{status}");
    }
}

#[test]
fn reasons_of_a_pod_that_is_not_ready() {
    let pending = |rest: &str| format!(r#"{{"phase":"Pending",{rest}}}"#);
    let one = |state: &str| pending(&format!(r#""containerStatuses":[{{"name":"c",{state}}}]"#));
    let creating = r#""state":{"waiting":{"reason":"ContainerCreating"}}"#;
    let running = r#""state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}"#;
    let done = r#""state":{"terminated":{"exitCode":0}}"#;
    let no_sandbox = "its sandbox, network or volumes are not ready";
    for (status, want) in [
        ("{}".to_owned(), None),
        (one(creating), Some(("c", "ContainerCreating", ""))),
        (
            pending(&format!(
                r#""conditions":[{{"type":"PodReadyToStartContainers","status":"False"}}],
                "containerStatuses":[{{"name":"c",{creating}}}]"#
            )),
            Some(("c", "ContainerCreating", no_sandbox)),
        ),
        (
            pending(&format!(
                r#""initContainerStatuses":[{{"name":"a",{done}}},{{"name":"b",{running}}}],
                "containerStatuses":[{{"name":"c","state":{{"waiting":{{"reason":"PodInitializing"}}}}}}]"#
            )),
            Some(("b", "PodInitializing", "still running")),
        ),
        // A sidecar that has started is not waited for.
        (
            pending(&format!(
                r#""initContainerStatuses":[{{"name":"s","started":true,{running}}}],
                "containerStatuses":[{{"name":"c",{creating}}}]"#
            )),
            Some(("c", "ContainerCreating", "")),
        ),
        (
            one(&format!(r#""started":false,"ready":false,{running}"#)),
            Some(("c", "StartupProbe", "running, but its startup probe has not passed yet")),
        ),
        (
            one(&format!(r#""started":true,"ready":false,{running}"#)),
            Some(("c", "ReadinessProbe", "running, but its readiness probe fails")),
        ),
        (
            pending(&format!(
                r#""conditions":[{{"type":"Ready","status":"False","reason":"ReadinessGatesNotReady",
                "message":"gate x"}}],"containerStatuses":[{{"name":"c","ready":true,{running}}}]"#
            )),
            Some(("", "ReadinessGatesNotReady", "gate x")),
        ),
        (
            pending(r#""conditions":[{"type":"PodScheduled","status":"True"}]"#),
            Some(("", "NoStatus", "its kubelet has not reported a status yet")),
        ),
        // A failure has priority, and a Ready pod has no reason.
        (one(r#""state":{"waiting":{"reason":"ErrImagePull"}}"#), None),
        (
            format!(
                r#"{{"conditions":[{{"type":"Ready","status":"True"}}],
                "containerStatuses":[{{"name":"c","ready":true,{running}}}]}}"#
            ),
            None,
        ),
        (format!(r#"{{"phase":"Failed","containerStatuses":[{{"name":"c",{creating}}}]}}"#), None),
    ] {
        let found = pod("{}", &status).unready.and_then(|it| it.waits_for);
        let found = found.as_ref().map(|t| (&*t.container, &*t.reason, &*t.message));
        assert_eq!(found, want, "{status}");
    }
}

#[test]
fn long_messages_are_truncated_between_characters() {
    let long = "ä".repeat(MESSAGE_LENGTH + 1);
    let status = format!(r#"{{"reason":"R","message":"{long}"}}"#);
    let kept = pod("{}", &status).container_failure.unwrap().message;
    assert_eq!(*kept, format!("{}…", "ä".repeat(MESSAGE_LENGTH)));
}

#[test]
fn phase_readiness_and_restarts() {
    for (status, phase) in [
        ("null", PodPhase::Pending),
        (r#"{"phase":"Running"}"#, PodPhase::Running),
        (r#"{"phase":"Succeeded"}"#, PodPhase::Succeeded),
        (r#"{"phase":"Failed"}"#, PodPhase::Failed),
        (r#"{"phase":"Sleeping"}"#, PodPhase::Unknown),
    ] {
        assert_eq!(pod("{}", status).phase, phase, "{status}");
    }
    let ready = |status: &str| {
        format!(
            r#"{{"conditions":[{{"type":"Ready","status":"{status}","lastTransitionTime":"2026-01-01T00:00:00Z"}}]}}"#
        )
    };
    let since = Some(at("2026-01-01T00:00:00Z").into());
    assert_eq!(pod("{}", &ready("True")).readiness, PodReadiness::Ready { since });
    assert_eq!(pod("{}", &ready("False")).readiness, PodReadiness::NotReady { since });
    for (started, since) in [("2025-12-31T23:59:59Z", None), ("2025-12-31T23:59:58Z", since)] {
        let status = ready("False").replacen('{', &format!(r#"{{"startTime":"{started}","#), 1);
        assert_eq!(pod("{}", &status).readiness, PodReadiness::NotReady { since }, "{started}");
    }
    let restarts = r#"{"initContainerStatuses":[{"restartCount":2}],
        "containerStatuses":[{"restartCount":3},{}]}"#;
    assert_eq!(pod("{}", restarts).restarts, 5);
}

#[test]
fn the_last_start_or_termination_of_a_container() {
    let state = |state: &str| {
        format!(
            r#"{{"containerStatuses":[{{"name":"a","state":{state}}},
            {{"name":"b","state":{{"running":{{"startedAt":"2026-01-01T00:00:05Z"}}}}}}]}}"#
        )
    };
    for (status, want) in [
        ("{}".to_owned(), None),
        (state("{}"), Some("2026-01-01T00:00:05Z")),
        (
            state(r#"{"running":{"startedAt":"2026-01-01T00:00:09Z"}}"#),
            Some("2026-01-01T00:00:09Z"),
        ),
        (
            state(
                r#"{"terminated":{"startedAt":"2026-01-01T00:00:01Z","finishedAt":"2026-01-01T00:00:12Z"}}"#,
            ),
            Some("2026-01-01T00:00:12Z"),
        ),
    ] {
        assert_eq!(
            pod("{}", &status).containers_changed,
            want.map(|want| at(want).into()),
            "{status}"
        );
    }
}
