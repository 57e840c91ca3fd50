//! The roles shipped for `ds-apply`: with them no request is denied, and every rule of the first is
//! used. Without any one verb, a run reports it before it writes anything, or does not need it.

use std::collections::BTreeSet;
use std::fs;
use std::thread;

use serde_json::json;

use super::*;
use crate::harness::shown_yaml;

const NODES: usize = 3;

/// Users that have the role without one verb each; more than the role has verbs.
const USERS: usize = 26;

/// Optional permissions: checked first, and not used if they are missing.
const OPTIONAL: [(&str, &str); 4] =
    [("events", "watch"), ("events", "list"), ("pods", "create"), ("pods/log", "get")];

/// Optional reads: tried, and not used if they are denied.
const OPTIONAL_READS: [(&str, &str); 4] =
    [("namespaces", "list"), ("services", "list"), ("leases", "list"), ("priorityclasses", "get")];

/// The permission that only policies with `approve: true` need.
const APPROVALS: (&str, &str) = ("configmaps", "get");

/// Resource and verb.
pub(super) type Right = (String, String);

/// A file of `deploy/`.
pub(super) fn shipped(name: &str) -> Value {
    let path = format!("{}/deploy/{name}", env!("CARGO_MANIFEST_DIR"));
    serde_yaml::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
}

/// The permissions of a role.
pub(super) fn rights(role: &Value) -> BTreeSet<Right> {
    let of_rule = |rule: &Value| {
        let verbs = texts(&rule["verbs"]);
        let resources = texts(&rule["resources"]).into_iter();
        resources.flat_map(move |resource| {
            verbs.clone().into_iter().map(move |verb| (resource.clone(), verb))
        })
    };
    role["rules"].as_array().unwrap().iter().flat_map(of_rule).collect()
}

/// The role under another name, without one permission.
pub(super) fn without(role: &Value, missing: &Right, name: &str) -> Value {
    let mut rules = Vec::new();
    for rule in role["rules"].as_array().unwrap() {
        for resource in texts(&rule["resources"]) {
            let mut verbs = texts(&rule["verbs"]);
            verbs.retain(|verb| (&resource, verb) != (&missing.0, &missing.1));
            let groups = &rule["apiGroups"];
            rules.push(json!({"apiGroups": groups, "resources": [resource], "verbs": verbs}));
        }
    }
    rules.retain(|rule| rule["verbs"] != json!([]));
    let head = json!({"apiVersion": role["apiVersion"], "kind": role["kind"]});
    let mut role = head;
    role["metadata"] = json!({"name": name});
    role["rules"] = rules.into();
    role
}

/// The PriorityClass that the template names, so that it is looked up.
const CLASS: &str = "
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: infrastructure}
value: 1000
";

fn version(namespace: &str, image: &str) -> String {
    let class = "spec:\n      priorityClassName: infrastructure\n      terminationGrace";
    manifest(namespace, image, &at_most("3")).replace("spec:\n      terminationGrace", class)
}

/// The same with a policy whose last step waits for an approval.
fn asking(namespace: &str, image: &str) -> String {
    let agent = version(namespace, image);
    format!(
        "{agent}---
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {{name: careful}}
spec:
  selects: {{names: [{namespace}/agent]}}
  steps:
  - {{name: canary, nodes: 1}}
  - {{name: half, nodes: 2, approve: true}}
"
    )
}

/// The same with a policy that pulls images before.
fn pulling(namespace: &str, image: &str) -> String {
    let agent = version(namespace, image);
    format!(
        "{agent}---
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {{name: pulling}}
spec:
  selects: {{names: [{namespace}/agent]}}
  prePull: {{parallel: 2, timeout: 1m}}
"
    )
}

/// The result of one run.
pub(super) struct Step {
    pub(super) code: Option<i32>,
    pub(super) reported: String,
    /// The changes that it made.
    writes: Vec<String>,
}

/// A user with a role, and a namespace.
pub(super) struct Worker<'p> {
    plane: &'p ControlPlane,
    user: String,
}

impl<'p> Worker<'p> {
    pub(super) fn new(plane: &'p ControlPlane, user: &str, role: &str) -> Self {
        plane.kubectl(&["create", "namespace", user]);
        let binding = ["create", "clusterrolebinding", user];
        let (role, who) = (format!("--clusterrole={role}"), format!("--user={user}"));
        plane.kubectl(&[&binding[..], &[&role, &who]].concat());
        Self { plane, user: user.to_owned() }
    }

    fn run(&self, arguments: &[&str], image: &str) -> Output {
        let manifest = version(&self.user, image);
        let files = [("agent.yaml", &*manifest)];
        self.plane.ds_apply_as(&self.user, arguments, &files).run()
    }

    fn apply(&self, image: &str, flags: &[&str]) -> Option<i32> {
        let deadline = ["--yes", "-f", "agent.yaml", "--progress-deadline=5s"];
        self.run(&[&deadline[..], flags].concat(), image).status.code()
    }

    /// Does enough to need every permission: creates, changes, rolls back to the first revision,
    /// and prunes another DaemonSet that is no longer in the source.
    fn works(&self) -> bool {
        self.each_step().all(|step| step.code == Some(0))
    }

    /// The same step by step, up to the first that fails.
    fn each_step(&self) -> impl Iterator<Item = Step> + '_ {
        let again = "v1'}] # from another version of the file\n#";
        let agent = version(&self.user, "v1");
        let both = format!("{agent}---{}", agent.replace("agent", "other"));
        let id = format!("--source-id={}", self.user);
        let mut steps: Vec<(String, Vec<String>)> =
            ["v1", "v2", again].map(|image| (version(&self.user, image), Vec::new())).into();
        steps.push((both, vec![id.clone()]));
        steps.push((agent, vec![id, "--prune".to_owned()]));
        let mut failed = false;
        steps.into_iter().map_while(move |(manifest, flags)| {
            if failed {
                return None;
            }
            let step = self.step(&manifest, &flags);
            failed = step.code != Some(0);
            Some(step)
        })
    }

    pub(super) fn step(&self, manifest: &str, flags: &[String]) -> Step {
        let before = self.writes();
        let first = ["--yes", "-f", "agent.yaml", "--progress-deadline=5s"];
        let flags = flags.iter().map(String::as_str);
        let arguments: Vec<&str> = first.into_iter().chain(flags).collect();
        let files = [("agent.yaml", manifest)];
        let output = self.plane.ds_apply_as(&self.user, &arguments, &files).run();
        let writes = self.writes().split_off(before.len());
        Step { code: output.status.code(), reported: output_text(&output), writes }
    }

    /// Checks that `can-i` lists the permission as missing, and whether it is optional.
    fn table_says_so(&self, missing: &Right) {
        let output = self.run(&["can-i", "--prune", &format!("{}/agent", self.user)], "");
        let (resource, verb) = (missing.0.as_str(), missing.1.as_str());
        let optional = [&OPTIONAL[..], &OPTIONAL_READS, &[APPROVALS]].concat();
        let is_optional = optional.contains(&(resource, verb));
        let table = stdout(&output);
        let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let denied: BTreeSet<Right> = rows
            .filter(|row| row.get(3) == Some(&"no"))
            .map(|row| (row[0].split('.').next().unwrap().to_owned(), row[1].to_owned()))
            .collect();
        assert_eq!(denied, [missing.clone()].into(), "without {missing:?}: {table}");
        let code = i32::from(!is_optional);
        assert_eq!(output.status.code(), Some(code), "without {missing:?}: {table}");
    }

    /// The exit code of `can-i`, and its row about creating objects of a resource, if there is one.
    fn may_create(&self, resource: &str, flags: &[&str]) -> (Option<i32>, Option<String>) {
        let name = format!("{}/agent", self.user);
        let first = ["can-i", name.as_str()];
        let arguments = [&first[..], flags].concat();
        let policy = pulling(&self.user, "v1");
        let files = [("policy.yaml", &*policy)];
        let output = self.plane.ds_apply_as(&self.user, &arguments, &files).run();
        let table = stdout(&output);
        let words = "Policies are not part of this; --policy FILE adds";
        assert_eq!(table.contains(words), flags.is_empty(), "{table}");
        let is_it = |line: &&str| {
            let mut words = line.split_whitespace();
            words.next() == Some(resource) && words.next() == Some("create")
        };
        (output.status.code(), table.lines().find(is_it).map(str::to_owned))
    }

    /// Without `create` of DaemonSets: one that exists need not be created.
    fn needs_not_create_what_exists(&self) {
        let before = self.may_create("daemonsets.apps", &[]);
        assert!(before.0 == Some(1) && before.1.is_some(), "{before:?}");
        self.plane.kubectl_stdin(&["apply", "--filename=-"], &version(&self.user, "v1"));
        assert_eq!(self.may_create("daemonsets.apps", &[]), (Some(0), None));
    }

    /// Without `create` of pods: only a policy that pulls images needs it.
    fn needs_pods_under_a_policy(&self) {
        let (code, row) = self.may_create("pods", &[]);
        assert!(code == Some(0) && row.as_ref().unwrap().ends_with(" (optional)"), "{row:?}");
        let (code, row) = self.may_create("pods", &["--policy", "policy.yaml"]);
        assert!(code == Some(1) && !row.as_ref().unwrap().ends_with(" (optional)"), "{row:?}");
    }

    /// The user's changes, in order.
    fn writes(&self) -> Vec<String> {
        let log = self.plane.audit_log();
        let writes = log.iter().filter(|event| {
            let verb = event["verb"].as_str().unwrap_or_default();
            let uri = event["requestURI"].as_str().unwrap_or_default();
            let code = event["responseStatus"]["code"].as_i64();
            event["user"]["username"] == self.user.as_str()
                && matches!(verb, "create" | "update" | "patch" | "delete")
                && event["objectRef"]["resource"] != "selfsubjectaccessreviews"
                && !uri.contains("dryRun=All")
                && code.is_some_and(|code| code < 300)
        });
        writes.map(|event| format!("{} {}", event["verb"], event["requestURI"])).collect()
    }

    /// The user's requests except access reviews, and whether each was allowed. Where a patch
    /// creates an object, the server requires the permission to create it as well.
    fn requests(&self) -> Vec<(Right, bool)> {
        let log = self.plane.audit_log();
        let ours = log.iter().filter(|event| {
            event["user"]["username"] == self.user.as_str()
                && event["objectRef"]["resource"].is_string()
                && event["objectRef"]["resource"] != "selfsubjectaccessreviews"
        });
        let one = |event: &Value| {
            let resource = event["objectRef"]["resource"].as_str().unwrap();
            let is_log = event["objectRef"]["subresource"] == "log";
            let resource = if is_log { "pods/log" } else { resource };
            let verb = event["verb"].as_str().unwrap();
            let code = event["responseStatus"]["code"].as_i64();
            let mut rights = vec![verb];
            let forbidden = event["annotations"]["authorization.k8s.io/decision"] == "forbid";
            match (verb, code) {
                ("patch", Some(201)) => rights.push("create"),
                ("patch", Some(403)) if !forbidden => rights = vec!["create"],
                _ => {}
            }
            let rights = rights.into_iter().map(|verb| (resource.to_owned(), verb.to_owned()));
            rights.map(|right| (right, code != Some(403))).collect::<Vec<_>>()
        };
        ours.flat_map(one).collect()
    }

    fn denied(&self) -> BTreeSet<Right> {
        self.requests()
            .into_iter()
            .filter(|(_, allowed)| !allowed)
            .map(|(right, _)| right)
            .collect()
    }
}

fn user(number: usize) -> String {
    format!("without-{number:02}")
}

#[test]
fn the_shipped_role_has_exactly_the_needed_permissions() {
    let users = (0..USERS).map(user);
    let builder = ControlPlane::builder().user("whole", &[]).audit();
    let plane = users.fold(builder, |builder, user| builder.user(&user, &[])).start();
    plane.create_nodes(three_zones(NODES));
    plane.kubectl(&["apply", "--kustomize", concat!(env!("CARGO_MANIFEST_DIR"), "/deploy")]);
    plane.kubectl_stdin(&["apply", "--filename=-"], CLASS);
    let role = shipped("ds-apply.yaml");
    let all: Vec<Right> = rights(&role).into_iter().collect();
    assert!(all.len() <= USERS, "{} rights", all.len());
    let plane = &plane;
    thread::scope(|scope| {
        scope.spawn(|| everything_is_used(plane, &role));
        // Two at a time, because most machines have at least two cores.
        for half in 0..2 {
            let (all, role) = (&all, &role);
            scope.spawn(move || {
                for (number, missing) in all.iter().enumerate().skip(half).step_by(2) {
                    one_is_missing(plane, role, missing, &user(number));
                }
            });
        }
    });
}

/// All commands: no request is denied, and each permission is used.
fn everything_is_used(plane: &ControlPlane, role: &Value) {
    let worker = Worker::new(plane, "whole", "ds-apply");
    let name = "whole/agent";
    assert!(worker.works());
    assert_eq!(worker.run(&["can-i", "--prune", name], "").status.code(), Some(0));
    // A failed rollout is recorded, and undone.
    assert_eq!(worker.apply("v3-bad", &["--logs"]), Some(4));
    assert_eq!(worker.run(&["undo", name, "--yes"], "").status.code(), Some(0));
    // Fields of another client, applied with --force-conflicts.
    plane.kubectl(&["--namespace=whole", "rollout", "restart", "daemonset/agent"]);
    let image = "daemonset/agent agent=cr.example/agent:v4";
    plane.kubectl(
        &[&["--namespace=whole", "set", "image"], &*image.split(' ').collect::<Vec<_>>()].concat(),
    );
    assert_eq!(worker.apply("v5", &[]), Some(6));
    assert_eq!(worker.apply("v5", &["--force-conflicts=kubectl-set"]), Some(0));
    // Paused and released, by hand and by one command.
    assert_eq!(worker.apply("v6", &["--timeout=0s"]), Some(4));
    assert_eq!(worker.run(&["unlock", name], "").status.code(), Some(0));
    assert_eq!(worker.run(&["release", name, "--yes"], "").status.code(), Some(0));
    // A policy that asks for approvals.
    assert_eq!(worker.step(&asking("whole", "v7"), &["--dry-run".to_owned()]).code, Some(0));
    // A policy that pulls images.
    let pulled = worker.step(&pulling("whole", "v8"), &[]);
    assert_eq!(pulled.code, Some(0), "{}", pulled.reported);
    assert!(pulled.reported.contains("images pulled after"), "{}", pulled.reported);
    assert_eq!(worker.denied(), BTreeSet::new());
    let used: BTreeSet<Right> = worker.requests().into_iter().map(|(right, _)| right).collect();
    assert_eq!(used, rights(role), "the role has exactly the permissions in use");
}

/// Without one permission, a run reports it and writes nothing; an optional permission may be
/// missing.
fn one_is_missing(plane: &ControlPlane, role: &Value, missing: &Right, user: &str) {
    plane.kubectl_stdin(&["apply", "--filename=-"], &without(role, missing, user).to_string());
    let worker = Worker::new(plane, user, user);
    worker.table_says_so(missing);
    let steps: Vec<Step> = worker.each_step().collect();
    let (resource, verb) = (missing.0.as_str(), missing.1.as_str());
    if (resource, verb) == APPROVALS {
        return approvals_are_not_readable(&worker, &steps, missing);
    }
    let last = steps.last().unwrap();
    let tried = worker.requests().iter().any(|(right, _)| right == missing);
    if OPTIONAL.contains(&(resource, verb)) {
        assert!(last.code == Some(0) && !tried, "without {missing:?}: {}", last.reported);
        assert_eq!(worker.denied(), BTreeSet::new(), "without {missing:?}");
        if (resource, verb) == ("pods", "create") {
            let pulled = worker.step(&pulling(user, "v9"), &[]);
            pulled.says_what_is_missing(missing, "ds-apply");
            worker.needs_pods_under_a_policy();
        }
    } else if OPTIONAL_READS.contains(&(resource, verb)) {
        assert_eq!(last.code, Some(0), "without {missing:?}: {}", last.reported);
        assert!(worker.denied().contains(missing), "without {missing:?}: {:?}", worker.denied());
    } else {
        last.says_what_is_missing(missing, "ds-apply");
        // Missing read permissions are detected by reading; the others by access reviews.
        let denied = if verb == "list" { [missing.clone()].into() } else { BTreeSet::new() };
        assert_eq!(worker.denied(), denied, "without {missing:?}");
        if (resource, verb) == ("daemonsets", "create") {
            worker.needs_not_create_what_exists();
        }
    }
}

/// Without `get` of ConfigMaps: only policies that ask for approvals need it.
fn approvals_are_not_readable(worker: &Worker<'_>, steps: &[Step], missing: &Right) {
    assert!(steps.iter().all(|step| step.code == Some(0)), "no step asks for an approval");
    assert_eq!(worker.denied(), BTreeSet::new());
    let manifest = asking(&worker.user, "v9");
    let planned = worker.step(&manifest, &["--dry-run".to_owned()]);
    let words = "are approved (missing permission: get configmaps in namespace";
    assert!(planned.code == Some(0) && planned.reported.contains(words), "{}", planned.reported);
    worker.step(&manifest, &[]).says_what_is_missing(missing, "ds-apply");
    assert_eq!(worker.denied(), [missing.clone()].into());
}

impl Step {
    /// Checks that the message names the permission and a role that has it, and that nothing was
    /// written.
    pub(super) fn says_what_is_missing(&self, missing: &Right, role: &str) {
        let Self { code, reported, writes } = self;
        let (resource, verb) = missing;
        assert_eq!(*code, Some(1), "without {missing:?}: {reported}");
        let words = format!("{verb} {resource}");
        assert!(reported.contains(&words), "without {missing:?}: {reported}");
        assert!(
            reported.contains(&format!("ClusterRole {role}")),
            "without {missing:?}: {reported}"
        );
        assert_eq!(*writes, Vec::<String>::new(), "without {missing:?}");
    }
}

#[test]
fn the_guide_shows_the_shipped_role() {
    let shown: Value = serde_yaml::from_str(&shown_yaml("ClusterRole")).unwrap();
    assert_eq!(shown, shipped("ds-plan.yaml"));
}
