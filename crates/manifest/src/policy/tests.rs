//! Tests of policies, from files to DaemonSets with their policy, or errors.

mod refused;

use crate::{FieldValidation, Options};
use daemonset::model::{
    Check, CheckKind, Deadline, EmptyAnswer, IntOrPercent, ManifestFile, OnFailure, StepNodes,
};

const AGENT: &str = "\
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: logging, labels: {tier: node}}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {containers: [{name: agent, image: agent}]}
";

fn read(policies: &[&str]) -> Result<crate::Desired, crate::Errors> {
    let head = "apiVersion: ds-plan.dev/v1alpha1\nkind: RolloutPolicy\n";
    let policies: Vec<String> =
        policies.iter().map(|text| format!("---\n{head}{text}\n")).collect();
    let text = format!("{AGENT}{}", policies.concat());
    let file = ManifestFile { path: "f.yaml".into(), bytes: text.into_bytes() };
    crate::read(&[file], &options())
}

fn options() -> Options {
    Options {
        default_namespace: "default".into(),
        // Policies are strict even so.
        validate: FieldValidation::Ignore,
        policies: None,
        every_file: false,
        not_objects: crate::objects::NotObjects::Reject,
    }
}

#[test]
fn a_policy_is_assigned_to_the_daemon_sets_it_selects() {
    for (selects, selected) in [
        ("{names: [logging/agent]}", true),
        ("{names: [other/agent]}", false),
        ("{labels: {tier: node}}", true),
        ("{labels: {tier: node, app: agent}}", false),
        ("{names: [other/agent], labels: {tier: node}}", true),
    ] {
        let policy = format!("metadata: {{name: p}}\nspec: {{selects: {selects}}}");
        let desired = read(&[&policy]).unwrap();
        assert_eq!(desired.daemon_sets[0].policy.is_some(), selected, "{selects}");
    }
}

#[test]
fn every_field_is_read_and_has_a_default() {
    let bare = "metadata: {name: p}\nspec:\n  selects: {names: [logging/agent]}\n";
    let policy = read(&[bare]).unwrap().daemon_sets[0].policy.clone().unwrap();
    assert_eq!(policy.spec.progress_deadline, Deadline(600));
    assert_eq!(policy.spec.skip_unready_nodes.max, IntOrPercent::Percent(5));
    assert_eq!((policy.spec.max_unavailable, policy.spec.max_restarts), (None, 3));
    let full = format!(
        "{bare}  managedBy: daemonset-controller\n  onFailure: rollback\n  maxUnavailable: 10%\n  \
         after: [net/cni]\n  progressDeadline: 1h30m\n  skipUnreadyNodes: {{max: 7}}\n  maxRestarts: 0\n"
    );
    let policy = read(&[&full]).unwrap().daemon_sets[0].policy.clone().unwrap();
    let spec = &policy.spec;
    assert_eq!(spec.on_failure, OnFailure::Rollback);
    assert_eq!(spec.after, ["net/cni".parse().unwrap()]);
    assert_eq!(spec.max_unavailable, Some(IntOrPercent::Percent(10)));
    assert_eq!((spec.progress_deadline, spec.max_restarts), (Deadline(5400), 0));
    assert_eq!(spec.skip_unready_nodes.max, IntOrPercent::Int(7));
}

#[test]
fn errors_of_a_policy_have_their_place() {
    let good = "metadata: {name: p}\nspec:\n  selects: {names: [logging/agent]}\n";
    for (policy, want) in [
        (
            format!("{good}  maxUnavailble: 1"),
            "f.yaml:15:18: RolloutPolicy: spec.maxUnavailble: \
            unknown field `maxUnavailble`, expected one of",
        ),
        (
            format!("{good}  maxUnavailable: ten"),
            "f.yaml:15:19: RolloutPolicy: spec.maxUnavailable: \
            `ten` is neither a number of nodes nor a percentage such as 10%",
        ),
        (
            format!("{good}  maxUnavailable: -1"),
            "f.yaml:15:19: RolloutPolicy: spec.maxUnavailable: invalid value: integer `-1`, \
            expected a number of nodes or a percentage such as 10%",
        ),
        (
            format!("{good}  sharedBudget: 9999999999"),
            "f.yaml:15:17: RolloutPolicy: spec.sharedBudget: invalid value: integer `9999999999`, \
            expected a number of nodes or a percentage such as 10%",
        ),
        (
            format!("{good}  maxUnavailable: [1]"),
            "f.yaml:15:3: RolloutPolicy: spec.maxUnavailable: invalid type: sequence, \
            expected a number of nodes or a percentage such as 10%",
        ),
        (
            format!("{good}  maxRestarts: -1"),
            "f.yaml:15:16: RolloutPolicy: spec.maxRestarts: invalid value: integer `-1`, \
            expected a whole number that is not negative",
        ),
        (
            format!("{good}  steps: [3]"),
            "f.yaml:15:11: RolloutPolicy: spec.steps[0]: invalid type: integer `3`, \
            expected a mapping",
        ),
        (
            format!("{good}  steps: 3"),
            "f.yaml:15:10: RolloutPolicy: spec.steps: invalid type: integer `3`, expected a list",
        ),
        (
            format!("{good}  progressDeadline: soon"),
            "f.yaml:15:21: RolloutPolicy: \
            spec.progressDeadline: `soon` is not a duration such as 90s, 10m or 1h30m",
        ),
        (
            format!("{good}  managedBy: kubelet"),
            "f.yaml:15:14: RolloutPolicy: spec.managedBy: \
            unknown variant `kubelet`, expected `daemonset-controller` or `ds-apply`",
        ),
        (
            "spec: {selects: {names: [a/b]}}".into(),
            "f.yaml:10:1: RolloutPolicy: missing field `metadata`",
        ),
        (
            "metadata: {name: p}\nspec: {selects: {}}".into(),
            "f.yaml:13:8: RolloutPolicy: \
            spec.selects: set `names` or `labels`",
        ),
        (
            "metadata: {name: p}\nspec: {selects: {names: [agent]}}".into(),
            "f.yaml:13:18: \
            RolloutPolicy: spec.selects.names: ",
        ),
    ] {
        let error = read(&[&policy]).unwrap_err().to_string();
        assert!(error.starts_with(want), "{policy}: {error}");
    }
}

#[test]
fn steps_and_names_are_limited() {
    let of = |steps: &str| {
        let head = "metadata: {name: p}\nspec:\n  selects: {labels: {a: b}}\n  steps:\n";
        read(&[&format!("{head}{steps}")]).err().map(|errors| errors.to_string())
    };
    let steps = |count: usize| -> String {
        let steps = (1..=count).map(|at| format!("  - {{name: s-{at}, nodes: {at}}}\n"));
        steps.collect::<Vec<_>>().concat()
    };
    let names = |count: usize| {
        let names: Vec<String> = (0..count).map(|at| format!("n-{at}")).collect();
        format!("  - {{name: s, nodes: {{names: [{}]}}}}\n", names.join(", "))
    };
    let place = "f.yaml:15:3: RolloutPolicy: spec.steps: 51 steps; at most 50 are allowed";
    let of_names = "f.yaml:16:23: RolloutPolicy: spec.steps[0].nodes.names: 5001 names; at most \
                    5000 are allowed: use a label instead";
    for (text, want) in [
        (steps(50), None),
        (steps(51), Some(place)),
        (names(5_000), None),
        (names(5_001), Some(of_names)),
    ] {
        assert_eq!(of(&text).as_deref(), want);
    }
}

/// Whom a pull request may have asked.
#[test]
fn addresses_of_checks_are_limited() {
    let of = |url: &str| {
        let url = serde_json::to_string(url).unwrap().replace('\u{1b}', "\\u001b");
        let head = "metadata: {name: p}\nspec:\n  selects: {labels: {a: b}}\n";
        let gate = format!("  gates: [{{name: a, http: {{url: {url}}}}}]");
        let errors = read(&[&format!("{head}{gate}")]).err().map(|errors| errors.to_string());
        errors.map(|text| text.split_once(".url: ").unwrap().1.to_owned()).unwrap_or_default()
    };
    let far = "http is only allowed to loopback and to a Service";
    for (url, want) in [
        ("https://example.com", ""),
        ("https://example.com:9090/a/b?c=d%20e", ""),
        ("https://[2001:db8::1]:443/", ""),
        ("http://127.0.0.1:9090", ""),
        ("http://127.1.2.3", ""),
        ("http://[::1]:9090/x", ""),
        ("http://localhost:1", ""),
        ("http://prom.monitoring.svc:9090", ""),
        ("http://prom.monitoring.svc.cluster.local", ""),
        ("http://example.com", far),
        ("http://10.0.0.1", far),
        ("http://localhost.example.com", far),
        ("http://127.0.0.1.example.com", far),
        ("http://svc", far),
        ("http://example.com/.svc", far),
        ("http://example.com?.svc", far),
        ("http://[::2]", far),
        ("http://127.0.0.1@example.com", "an address has no credentials"),
        ("https://user:secret@example.com", "an address has no credentials"),
        ("https://example.com#.svc", "`https://example.com#.svc` has characters"),
        ("https://a\\b", "`https://a\\\\b` has characters"),
        ("https://a b", "`https://a b` has characters"),
        ("https://ex\u{e4}mple.com", "`https://ex\u{e4}mple.com` has characters"),
        ("https://a\u{1b}[31m", "`https://a\\u{1b}[31m` has characters"),
        ("https://", "`` is not a host"),
        ("https://:80", "`:80` is not a host"),
        ("https://a:0", "`a:0` is not a host"),
        ("https://a:99999", "`a:99999` is not a host"),
        ("https://[::1", "`[::1` is not a host"),
        ("https://[a]", "`[a]` is not a host"),
        ("file:///etc/passwd", "it has to begin with https:// or http://"),
        ("HTTP://example.com", "it has to begin with"),
        ("example.com", "it has to begin with"),
    ] {
        let found = of(url);
        assert_eq!(found.is_empty(), want.is_empty(), "{url}: {found}");
        assert!(found.starts_with(want), "{url}: {found}");
    }
}

#[test]
fn checks_have_defaults() {
    let policy = "metadata: {name: p}\nspec:\n  selects: {names: [logging/agent]}\n  \
                  preconditions: [{name: a, http: {url: 'https://a'}}]\n  \
                  gates: [{name: b, prometheus: {address: 'https://a', query: x, max: 1}}]";
    let policy = read(&[policy]).unwrap().daemon_sets[0].policy.clone().unwrap();
    let (precondition, gate) = (&policy.spec.preconditions[0], &policy.spec.gates[0]);
    let times = |check: &Check| (check.interval.0, check.delay.0, check.unknown_for.0, check.allow);
    assert_eq!((times(precondition), times(gate)), ((60, 0, 3600, 0), (60, 0, 3600, 0)));
    let CheckKind::Http(http) = &precondition.kind else { panic!("{precondition:?}") };
    let CheckKind::Prometheus(query) = &gate.kind else { panic!("{gate:?}") };
    assert_eq!((http.status, query.empty, query.min), (200, EmptyAnswer::Unknown, None));
}

/// The same policy as JSON: its places are those of the JSON text.
#[test]
fn policies_in_json_are_read_and_refused_alike() {
    let of = |policy: &str| {
        let agent: serde_json::Value = serde_yaml::from_str(AGENT).unwrap();
        let file =
            |path: &str, bytes: String| ManifestFile { path: path.into(), bytes: bytes.into() };
        let files = [file("a.json", agent.to_string()), file("p.json", policy.to_owned())];
        crate::read(&files, &options())
    };
    let head = r#"{"apiVersion": "ds-plan.dev/v1alpha1", "kind": "RolloutPolicy",
 "metadata": {"name": "p"}, "spec": {"selects": {"names": ["logging/agent"]},
  "#;
    let good = r#""steps": [{"name": "a", "nodes": "5%"}], "after": ["net/cni"]}}"#;
    let desired = of(&format!("{head}{good}")).unwrap();
    let policy = desired.daemon_sets[0].policy.as_ref().unwrap();
    assert_eq!(policy.spec.steps[0].nodes, StepNodes::Count(IntOrPercent::Percent(5)));
    for (rest, want) in [
        (
            r#""prePull": {"parallel": 0}}}"#,
            "p.json:3:27: RolloutPolicy: spec.prePull.parallel: no node could ever pull",
        ),
        (
            r#""steps": [{"name": "a", "nodes": 0}]}}"#,
            "p.json:3:36: RolloutPolicy: spec.steps[0].nodes: `0` selects no node",
        ),
        (
            r#""maxRestarts": 1, "maxRestarts": 9}}"#,
            "p.json:3:21: RolloutPolicy: key `maxRestarts` is already on line 3",
        ),
    ] {
        let error = of(&format!("{head}{rest}")).unwrap_err().to_string();
        assert!(error.starts_with(want), "{error}\ninstead of\n{want}");
    }
}

#[test]
fn two_policies_for_one_daemon_set_are_an_error_that_names_both() {
    let by = |selects: &str| format!("metadata: {{name: p}}\nspec: {{selects: {{{selects}}}}}");
    let both = [by("names: [logging/agent]"), by("labels: {tier: node}")];
    let error = read(&[&both[0], &both[1]]).unwrap_err().to_string();
    assert_eq!(
        error,
        "f.yaml:15:1: a second RolloutPolicy for DaemonSet logging/agent; the first is at f.yaml:10:1"
    );
}

#[test]
fn daemon_sets_that_come_after_themselves_are_an_error_with_the_circle() {
    let of = |name: &str, after: &str| {
        format!("metadata: {{name: p}}\nspec:\n  selects: {{names: [{name}]}}\n  after: [{after}]")
    };
    let agent = "logging/agent";
    for (policies, want) in [
        (vec![of(agent, "net/cni")], None),
        (vec![of(agent, "net/cni"), of("net/cni", "net/other")], None),
        (
            vec![of(agent, "net/cni, logging/agent")],
            Some(
                "f.yaml:15:20: RolloutPolicy: spec.after: a DaemonSet comes after itself: \
                 logging/agent -> logging/agent",
            ),
        ),
        (
            vec![of(agent, "net/cni"), of("net/cni", "net/x"), of("net/x", agent)],
            Some(
                "f.yaml:15:11: RolloutPolicy: spec.after: a DaemonSet comes after itself: \
                 logging/agent -> net/cni -> net/x -> logging/agent \
                 (also at f.yaml:22:11, f.yaml:29:11)",
            ),
        ),
        // A circle that no DaemonSet of the source is part of, nor comes after.
        (vec![of("net/x", "net/x")], None),
    ] {
        let policies: Vec<&str> = policies.iter().map(String::as_str).collect();
        let error = read(&policies).err().map(|errors| errors.to_string());
        assert_eq!(error.as_deref(), want, "{policies:#?}");
    }
    let by_label = "metadata: {name: p}\nspec:\n  selects: {labels: {tier: node}}\n  \
                    after: [logging/agent]";
    let error = read(&[by_label]).unwrap_err().to_string();
    assert!(error.contains("logging/agent -> logging/agent"), "{error}");
}
