//! A manifest within the size limits, with very many duplicates of something that should be unique.

use std::time::Duration;

use crate::watched::Watched;
use testkit::fixture::{AGENT, cluster};
use testkit::sandbox::Sandbox;

const HANG: Duration = Duration::from_mins(2);

/// Runs `ds-plan` on a manifest of about 2 MB.
fn plan(text: &str) -> Watched {
    assert!(text.len() > 200_000 && text.len() < 3 << 20, "{}", text.len());
    let sandbox = Sandbox::with(&[("agent.yaml", text), ("cluster.json", &cluster().to_string())]);
    Watched::run(sandbox.ds_plan_command("-f agent.yaml --snapshot cluster.json"), HANG)
}

/// A list of `count` equal items in the container, or on the pod's level.
fn with_list(level: &str, field: &str, item: &str, count: usize) -> String {
    let items = vec![item; count].join(",");
    match level {
        "container" => {
            AGENT.replace("- name: agent", &format!("- {field}: [{items}]\n          name: agent"))
        }
        _ => AGENT
            .replace("      containers:", &format!("      {field}: [{items}]\n      containers:")),
    }
}

#[test]
fn equal_items_are_reported_in_time() {
    for (level, field, item) in [
        ("container", "env", "{name: A}"),
        ("container", "ports", "{containerPort: 80, name: a}"),
        ("container", "ports", "{containerPort: 80}"),
        ("container", "volumeMounts", "{name: a, mountPath: /a}"),
        ("container", "envFrom", "{secretRef: {name: a}}"),
        ("pod", "volumes", "{name: a, emptyDir: {}}"),
        ("pod", "initContainers", "{name: a, image: b}"),
        ("pod", "tolerations", "{operator: Exists}"),
        ("pod", "hostAliases", "{ip: 10.0.0.1}"),
        ("pod", "imagePullSecrets", "{name: abcdef}"),
        ("pod", "readinessGates", "{conditionType: a}"),
        ("pod", "resourceClaims", "{name: abcdef}"),
        ("pod", "topologySpreadConstraints", "{topologyKey: a}"),
        ("container", "volumeDevices", "{name: a, devicePath: /a}"),
        ("pod", "schedulingGates", "{name: abcdef}"),
    ] {
        // One field with as many items as possible; they take minutes without optimization.
        let count = if field == "env" { 100_000 } else { 20_000 };
        let run = plan(&with_list(level, field, item, count));
        let code = run.status.and_then(|it| it.code());
        assert!(code == Some(0) || code == Some(1), "{field} {item}: {run}");
        run.expect(code.unwrap(), 700);
    }
}

/// Items that are compared with each other, and all differ.
#[test]
fn different_items_are_compared_in_time() {
    let list = |item: &dyn Fn(usize) -> String| -> String {
        (0..20_000).map(item).collect::<Vec<_>>().join(", ")
    };
    let mounts = list(&|at| format!("{{name: a, mountPath: /m{at}}}"));
    let devices = list(&|at| format!("{{name: d{at}, devicePath: /d{at}}}"));
    let claims = list(&|at| format!("{{name: c{at:010}}}"));
    let other = list(&|at| format!("{{name: o{at:010}}}"));
    let spread = list(&|at| format!("{{topologyKey: k{at}, maxSkew: 1}}"));
    let keys = list(&|at| format!("k{at:06}"));
    let needs = list(&|at| format!("{{key: k{at:06}, operator: Exists}}"));
    let app_armor =
        list(&|at| format!("container.apparmor.security.beta.kubernetes.io/c{at}: unconfined"));
    let containers = list(&|at| format!("{{name: d{at}, image: a}}"));
    let pod = |fields: &str| {
        AGENT.replace("      containers:", &format!("      {fields}\n      containers:"))
    };
    for text in [
        AGENT.replace("- name: agent", &format!("- volumeMounts: [{mounts}]\n          volumeDevices: [{devices}]\n          name: agent")),
        pod(&format!("resourceClaims: [{claims}]")).replace("- name: agent", &format!("- resources: {{claims: [{other}]}}\n          name: agent")),
        pod(&format!("topologySpreadConstraints: [{spread}]")),
        pod(&format!("topologySpreadConstraints: [{{topologyKey: a, maxSkew: 1, matchLabelKeys: [{keys}], labelSelector: {{matchExpressions: [{needs}]}}}}]")),
        pod(&format!("initContainers: [{containers}]")).replace("labels: {app: agent}}", &format!("labels: {{app: agent}}, annotations: {{{app_armor}}}}}")),
    ] {
        let run = plan(&text);
        let code = run.status.and_then(|it| it.code());
        assert!(code == Some(0) || code == Some(1), "{}: {run}", &text[..400]);
        run.expect(code.unwrap(), 900);
    }
}

#[test]
fn equal_keys_and_labels_are_reported_in_time() {
    let keys = "a: b, ".repeat(50_000);
    let many: String =
        (0..30_000).map(|at| format!("k{at:06}: v{at:06}")).collect::<Vec<_>>().join(", ");
    let many = format!("{many}, ");
    for text in [
        AGENT.replace("{tier: node}", &format!("{{{keys}tier: node}}")),
        AGENT.replace("{tier: node}", &format!("{{{many}tier: node}}")),
        AGENT.replace("labels: {app: agent}", &format!("labels: {{{many}app: agent}}")),
        AGENT.replace(
            "      containers:",
            &format!("      nodeSelector: {{{many}}}\n      containers:"),
        ),
        format!("{AGENT}{}", "---\n".repeat(300_000)),
        format!("{AGENT}{}", format!("---\n{AGENT}").repeat(2_000)),
        format!("{AGENT}---\nitems: [{}]", "{kind: A},".repeat(50_000)),
        format!("# DaemonSet\na: {}", "\"x\n".repeat(400_000)),
        format!("# DaemonSet\na: {}", "[".repeat(1_500_000)),
    ] {
        let run = plan(&text);
        let code = run.status.and_then(|it| it.code());
        let beginning: String = text.chars().take(300).collect();
        assert!(code == Some(0) || code == Some(1), "{beginning}: {run}");
        run.expect(code.unwrap(), 900);
    }
}
