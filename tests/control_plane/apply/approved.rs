//! Approving steps: only with the role of approvers, once, and only when it is a step's turn.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;
use crate::harness::kubernetes;
use daemonset::model::{PolicyStep, STEPS_ANNOTATION, StepNote, StepsNote};
use planner::approval::step_digest;

const NODES: usize = 4;

/// Two users: one with the role of `ds-apply`, one with those of approvers.
pub(super) const RUN: &str = "the-run";
pub(super) const APPROVER: &str = "the-approver";

/// The third step cannot be approved before the second, which has no approval.
fn policy(namespace: &str) -> String {
    format!(
        "---
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {{name: careful}}
spec:
  selects: {{names: [{namespace}/agent]}}
  steps:
  - {{name: canary, nodes: 1, soak: 1h}}
  - {{name: half, nodes: 50%, approve: true}}
  - {{name: most, nodes: 75%, approve: true}}
"
    )
}

fn version(namespace: &str, image: &str) -> String {
    format!("{}{}", manifest(namespace, image, &at_most("1")), policy(namespace))
}

/// The first step, as the policy has it.
fn canary() -> PolicyStep {
    serde_json::from_value(json!({"name": "canary", "nodes": 1, "soak": "1h"})).unwrap()
}

/// A DaemonSet whose rollout of `v2` has completed its first step, as a run leaves it.
struct Site<'p> {
    fleet: Fleet<'p>,
}

impl<'p> Site<'p> {
    fn new(plane: &'p ControlPlane, namespace: &str) -> Self {
        let v1 = manifest(namespace, "v1", &at_most("1"));
        Self { fleet: Fleet::new(plane, namespace, NODES, &v1) }
    }

    fn name(&self) -> String {
        format!("{}/agent", self.fleet.namespace)
    }

    /// `ds-apply approve`, by a user, of the step, with the manifests of `v2`.
    fn approve(&self, user: &str, step: &str, flags: &[&str]) -> Output {
        self.approve_image(user, step, "v2", flags)
    }

    fn approve_image(&self, user: &str, step: &str, image: &str, flags: &[&str]) -> Output {
        let manifest = version(&self.fleet.namespace, image);
        let (name, files) = (self.name(), [("agent.yaml", &*manifest)]);
        let arguments = [&["approve", &name, step, "-f", "agent.yaml"], flags].concat();
        self.fleet.plane.ds_apply_as(user, &arguments, &files).run()
    }

    /// The digest of the target template, from the plan.
    fn template(&self) -> String {
        let manifest = version(&self.fleet.namespace, "v2");
        let files = [("agent.yaml", &*manifest)];
        let plan = self.fleet.plane.ds_plan(&["-f", "agent.yaml", "-o", "json"], &files);
        let plan: Value = serde_json::from_slice(&plan.stdout).unwrap();
        plan["daemonSets"][0]["targetTemplate"].as_str().unwrap().to_owned()
    }

    /// Writes the note of a run for which these steps are done.
    fn note(&self, done: &[(&str, String)]) {
        let at = "2026-08-01T12:00:00Z".parse().unwrap();
        let step = |digest: &String| StepNote {
            digest: digest.clone(),
            complete_at: Some(at),
            done_at: Some(at),
        };
        let note = StepsNote {
            template: self.template(),
            started_at: Some(at),
            steps: done.iter().map(|(name, digest)| ((*name).to_owned(), step(digest))).collect(),
            ..StepsNote::default()
        };
        let patch = json!({"metadata": {"annotations": {STEPS_ANNOTATION: note.text()}}});
        let patch = format!("--patch={patch}");
        self.fleet.kubectl(&["patch", "lease", "ds-plan-agent", "--type=merge", &patch]);
    }

    /// The ConfigMap of approvals.
    fn approvals(&self) -> Option<Value> {
        let get = ["get", "configmap", "ds-plan-agent-approvals", "--ignore-not-found"];
        let all = ["--output=json", "--show-managed-fields"];
        let found = self.fleet.kubectl(&[&get[..], &all].concat());
        (!found.is_empty()).then(|| serde_json::from_str(&found).unwrap())
    }

    fn uid(&self) -> String {
        self.fleet.kubectl(&["get", "daemonset", "agent", "--output=jsonpath={.metadata.uid}"])
    }
}

/// Binds the shipped roles in this namespace, those of approvers for one DaemonSet.
pub(super) fn bind(plane: &ControlPlane, namespace: &str, daemon_set: &str) {
    let deploy = format!("{}/deploy", env!("CARGO_MANIFEST_DIR"));
    plane.kubectl(&["apply", "-f", &format!("{deploy}/ds-apply.yaml")]);
    for role in approvers(namespace, daemon_set) {
        plane.kubectl_stdin(&["apply", "--filename=-"], &role.to_string());
    }
    let bind = |kind: &str, name: &str, role: &str, user: &str| {
        let (role, user) = (format!("--{role}"), format!("--user={user}"));
        plane.kubectl(&["--namespace", namespace, "create", kind, name, &role, &user]);
    };
    bind("clusterrolebinding", RUN, "clusterrole=ds-apply", RUN);
    bind("clusterrolebinding", APPROVER, "clusterrole=ds-plan-approver", APPROVER);
    bind("rolebinding", APPROVER, "role=ds-plan-approver", APPROVER);
}

/// The shipped roles for approvers, for this DaemonSet.
fn approvers(namespace: &str, daemon_set: &str) -> [Value; 2] {
    let path = format!("{}/deploy/approver.yaml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let text = text.replace("namespace: logging", &format!("namespace: {namespace}"));
    let text = text.replace("ds-plan-agent-", &format!("ds-plan-{daemon_set}-"));
    let roles: Vec<Value> =
        text.split("---\n").map(|role| serde_yaml::from_str(role).unwrap()).collect();
    roles.try_into().unwrap()
}

/// Resource and verb of the user's requests that were denied.
fn denied(plane: &ControlPlane, user: &str) -> BTreeSet<(String, String)> {
    let log = plane.audit_log();
    let denied = log.iter().filter(|event| {
        event["user"]["username"] == user && event["responseStatus"]["code"] == 403
    });
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    denied.map(|event| (text(&event["objectRef"]["resource"]), text(&event["verb"]))).collect()
}

/// Checks the exit code of a run, and that it reports all of these words.
#[track_caller]
pub(super) fn ends(run: &Output, code: i32, words: &[&str]) {
    let text = output_text(run);
    assert_eq!(run.status.code(), Some(code), "{text}");
    for part in words {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn only_approvers_approve_a_step_and_only_once() {
    let plane = ControlPlane::builder().user(RUN, &[]).user(APPROVER, &[]).audit().start();
    plane.create_nodes(three_zones(NODES));
    let site = Site::new(&plane, "approved");
    bind(&plane, "approved", "agent");

    // No run has begun.
    let early = site.approve(APPROVER, "half", &["--yes"]);
    ends(&early, 6, &["step canary of approved/agent is not done: it has not begun"]);
    site.note(&[("canary", "sha256:other".to_owned())]);
    let edited = site.approve(APPROVER, "half", &["--yes"]);
    ends(&edited, 6, &["step canary of approved/agent is not done: it was edited since it began"]);
    site.note(&[("canary", step_digest(&canary()))]);
    let other = site.approve_image(APPROVER, "half", "v3", &["--yes"]);
    ends(&other, 6, &["the last rollout was of another template"]);

    // The token of a run is refused by the server, before anyone is asked.
    let by_run = site.approve(RUN, "half", &["--yes"]);
    let words = ["not permitted: patch configmaps in namespace approved", "deploy/approver.yaml"];
    ends(&by_run, 1, &words);
    let by_run = ("configmaps".to_owned(), "patch".to_owned());
    assert_eq!(denied(&plane, RUN), [by_run].into());
    assert_eq!(site.approvals(), None);

    // No terminal to ask on, and nothing is written without an answer.
    ends(&site.approve(APPROVER, "half", &[]), 1, &["no terminal; pass `--yes`"]);
    assert_eq!(site.approvals(), None);

    // Those who may only read see the same.
    let words = ["step half: 50%, approve of approved/agent", "dry run: nothing was changed"];
    for user in [RUN, APPROVER] {
        ends(&site.approve(user, "half", &["--dry-run"]), 0, &words);
    }
    let shown = site.approve(APPROVER, "half", &["--dry-run", "-o", "json"]);
    let shown: Value = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!((&shown["step"], &shown["approvedBy"]), (&json!("half"), &Value::Null));
    assert_eq!(site.approvals(), None);

    let before: jiff::Timestamp = jiff::Timestamp::now();
    let done = site.approve(APPROVER, "half", &["--yes"]);
    let words = ["step half: 50%, approve of approved/agent", "agent:v1 -> cr.example/agent:v2"];
    ends(&done, 0, &words);
    let words = ["step canary: complete at 2026-08-01T12:00:00Z, done at 2026", "0 nodes run this"];
    ends(&done, 0, &[&words[..], &["step half of approved/agent is approved: by "]].concat());
    let written = site.approvals().unwrap();
    is_written(&site, &written, before);

    let again = site.approve(APPROVER, "half", &["--yes"]);
    ends(&again, 0, &["step half of approved/agent is approved already: by "]);
    assert_eq!(site.approvals(), Some(written.clone()), "nothing was written");

    // Another step has its own key, and both stay.
    let early = site.approve(APPROVER, "most", &["--yes"]);
    ends(&early, 6, &["step half of approved/agent is not done: it has not begun"]);
    let half = json!({"name": "half", "nodes": "50%", "approve": true});
    let half: PolicyStep = serde_json::from_value(half).unwrap();
    site.note(&[("canary", step_digest(&canary())), ("half", step_digest(&half))]);
    let most = site.approve(APPROVER, "most", &["--yes", "-o", "json"]);
    ends(&most, 0, &[]);
    let document: Value = serde_json::from_slice(&most.stdout).unwrap();
    assert_eq!((&document["step"], &document["kind"]), (&json!("most"), &json!("StepApproval")));
    assert_eq!(document["evidence"]["steps"][1]["name"], "half");
    let both = site.approvals().unwrap()["data"].clone();
    assert_eq!(both["half"], written["data"]["half"]);
    assert_eq!(both.as_object().unwrap().keys().collect::<Vec<_>>(), ["half", "most"]);
    let optional = [("namespaces", "get"), ("namespaces", "list"), ("services", "list")];
    let optional = optional.map(|(resource, verb)| (resource.to_owned(), verb.to_owned()));
    assert_eq!(denied(&plane, APPROVER), optional.into(), "nothing else is missing");
}

/// One user for each verb of the approvers' roles, who has all but this one.
fn without(number: usize) -> String {
    format!("without-{number}")
}

#[test]
fn approvers_need_every_verb_of_their_roles() {
    const VERBS: usize = 8;
    if !kubernetes::since(33, "the server names the verb that a patch that creates lacks") {
        return;
    }
    let builder = (0..VERBS)
        .fold(ControlPlane::builder(), |builder, number| builder.user(&without(number), &[]));
    let plane = builder.start();
    plane.create_nodes(three_zones(NODES));
    let site = Site::new(&plane, "needed");
    site.note(&[("canary", step_digest(&canary()))]);
    let all = approvers("needed", "agent");
    let mut missing = Vec::new();
    for (at, role) in all.iter().enumerate() {
        for (rule, of) in role["rules"].as_array().unwrap().iter().enumerate() {
            for resource in 0..of["resources"].as_array().unwrap().len() {
                let verbs = of["verbs"].as_array().unwrap().len();
                missing.extend((0..verbs).map(|verb| (at, rule, resource, verb)));
            }
        }
    }
    assert_eq!(missing.len(), VERBS);
    for (number, (at, rule, resource, verb)) in missing.into_iter().enumerate() {
        let (user, mut roles) = (without(number), all.clone());
        let name = roles[at]["rules"][rule]["resources"][resource].as_str().unwrap().to_owned();
        let word = roles[at]["rules"][rule]["verbs"][verb].as_str().unwrap().to_owned();
        // The rule without the verb, and a rule for its other resources.
        let mut rest = roles[at]["rules"][rule].clone();
        rest["resources"].as_array_mut().unwrap().remove(resource);
        let of = &mut roles[at]["rules"][rule];
        of["resources"] = json!([name]);
        of["verbs"].as_array_mut().unwrap().remove(verb);
        let left = roles[at]["rules"].as_array_mut().unwrap();
        left.push(rest);
        left.retain(|rule| rule["verbs"] != json!([]) && rule["resources"] != json!([]));
        for (role, binding) in roles.iter_mut().zip(["clusterrolebinding", "rolebinding"]) {
            role["metadata"]["name"] = json!(user);
            plane.kubectl_stdin(&["apply", "--filename=-"], &role.to_string());
            let kind = role["kind"].as_str().unwrap().to_lowercase();
            let (role, who) = (format!("--{kind}={user}"), format!("--user={user}"));
            plane.kubectl(&["-n=needed", "create", binding, &user, &role, &who]);
        }
        let run = site.approve(&user, "half", &["--yes"]);
        ends(&run, 1, &["not permitted", &format!("{word} {name}")]);
        assert_eq!(site.approvals(), None, "without {word} {name}");
    }
}

/// Checks the fields of the ConfigMap with the only approval.
fn is_written(site: &Site<'_>, written: &Value, before: jiff::Timestamp) {
    assert_eq!(written["metadata"]["labels"], json!({"app.kubernetes.io/managed-by": "ds-apply"}));
    let managers = written["metadata"]["managedFields"].as_array().unwrap();
    let managers: Vec<&Value> = managers.iter().map(|it| &it["manager"]).collect();
    assert_eq!(managers, ["ds-plan-approve-half"]);
    let data = written["data"].as_object().unwrap();
    assert_eq!(data.keys().collect::<Vec<_>>(), ["half"]);
    let approval: Value = serde_json::from_str(data["half"].as_str().unwrap()).unwrap();
    let step = json!({"name": "half", "nodes": "50%", "approve": true});
    let step: PolicyStep = serde_json::from_value(step).unwrap();
    assert_eq!(approval["uid"], json!(site.uid()));
    assert_eq!(approval["template"], json!(site.template()));
    assert_eq!(approval["step"], json!(step_digest(&step)));
    assert!(approval["by"].as_str().is_some_and(|by| !by.is_empty()), "{approval}");
    let at: jiff::Timestamp = approval["at"].as_str().unwrap().parse().unwrap();
    let off = at.duration_since(before).as_secs();
    assert!((-2..60).contains(&off), "{off} s after the command began, by the server's clock");
    assert_eq!(approval.as_object().unwrap().len(), 5, "{approval}");
}

#[test]
fn what_cannot_be_approved_is_said_and_approvals_become_void() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(NODES));
    let site = Site::new(&plane, "void");
    site.note(&[("canary", step_digest(&canary()))]);
    let unknown = site.approve("admin", "rest", &["--yes"]);
    let asks = "steps that need an approval: half, most";
    let words = ["the policy of void/agent has no step rest", asks];
    ends(&unknown, 1, &words);
    let words = ["step canary of void/agent needs no approval: it has no `approve: true`", asks];
    ends(&site.approve("admin", "canary", &["--yes"]), 1, &words);
    let (agent, v2) = (site.name(), version("void", "v2"));
    let approve = |name: &str, manifest: &str| {
        let files = [("agent.yaml", manifest)];
        plane.ds_apply(&["approve", name, "half", "-f", "agent.yaml", "--yes"], &files).run()
    };
    ends(&approve("void/other", &v2), 1, &["DaemonSet void/other not found in the manifests"]);
    let other = v2.replace("agent", "other");
    ends(&approve("void/other", &other), 1, &["DaemonSet void/other not found in the cluster"]);
    let plain = manifest("void", "v2", &at_most("1"));
    let words = ["no RolloutPolicy with steps applies to void/agent"];
    ends(&approve(&agent, &plain), 1, &words);
    let v1 = version("void", "v1");
    let words = ["void/agent is rolled out: no step waits for an approval"];
    ends(&approve(&agent, &v1), 1, &words);
    let own = v2.replace("  steps:", "  managedBy: ds-apply\n  steps:");
    ends(&approve(&agent, &own), 6, &["void/agent is managed by the DaemonSet controller"]);

    // What others wrote under the same name.
    ends(&approve(&agent, &v2), 0, &["step half of void/agent is approved: by "]);
    for (value, warning) in [
        ("{", "ConfigMap void/ds-plan-agent-approvals cannot be read (key half: it is not JSON"),
        (
            "{\"uid\": 3}",
            "(key half: field at is missing, or not a text); it counts as no approval",
        ),
    ] {
        let patch = format!("--patch={}", json!({"data": {"half": value}}));
        site.fleet.kubectl(&["patch", "configmap", "ds-plan-agent-approvals", &patch]);
        let files = [("agent.yaml", &*v2)];
        let planned = plane.ds_plan(&["-f", "agent.yaml"], &files);
        ends(&planned, 0, &[warning]);
        ends(&approve(&agent, &v2), 0, &[warning, "step half of void/agent is approved: by "]);
    }

    // An edited step.
    let edited = v2.replace("50%", "40%");
    let words = ["an earlier approval is void: the step was edited after its approval"];
    ends(&approve(&agent, &edited), 0, &words);
}

#[test]
fn a_terminal_asks_which_step_is_approved() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(NODES));
    let site = Site::new(&plane, "asked");
    site.note(&[("canary", step_digest(&canary()))]);
    let manifest = version("asked", "v2");
    let approve = |typed: &str| {
        let arguments = ["approve", "asked/agent", "half", "-f", "agent.yaml"];
        let program = plane.ds_apply(&arguments, &[("agent.yaml", &manifest)]);
        let (status, drawn) = program.run_on_a_terminal("xterm", typed);
        let question = "Approve step half of asked/agent? Only `yes` is accepted: ";
        assert!(drawn.contains(question), "{drawn}");
        (status.code(), drawn)
    };
    let (code, drawn) = approve("no\n");
    assert_eq!((code, site.approvals()), (Some(1), None), "{drawn}");
    let (code, drawn) = approve("yes\n");
    assert_eq!(code, Some(0), "{drawn}");
    assert!(site.approvals().is_some());
}
