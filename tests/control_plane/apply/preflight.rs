//! Changes that the server would reject or alter are detected before any pod is deleted.

use std::thread;

use super::*;
use crate::harness::kubernetes;

const NODES: usize = 4;

fn version(namespace: &str, image: &str) -> String {
    manifest(namespace, image, &at_most("1"))
}

/// A policy whose first step needs an approval.
const APPROVED: &str = "---
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: approved}
spec:
  selects: {names: [mutated/agent]}
  steps: [{name: canary, nodes: 1, approve: true}]
";

/// Puts an annotation on the template of DaemonSets in namespace `mutated`; forbids applies in
/// `denied` whose image is v2.
const POLICIES: &str = r#"
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: stamp}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: mutated}}
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [daemonsets]}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        Object{spec: Object.spec{template: Object.spec.template{
        metadata: Object.spec.template.metadata{annotations: {"stamped": "yes"}}}}}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: stamp}
spec: {policyName: stamp}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: no-v2}
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: denied}}
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [daemonsets]}
  validations:
  - expression: "!object.spec.template.spec.containers[0].image.endsWith(':v2')"
    message: v2 is not for us
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: no-v2}
spec: {policyName: no-v2, validationActions: [Deny]}
"#;

/// The label that enforces the restricted pod security standard: such pods are rejected from now
/// on.
const RESTRICTED: &str = "pod-security.kubernetes.io/enforce=restricted";

#[test]
fn rejected_changes_are_detected_before_any_pod_is_deleted() {
    if !kubernetes::since(36, "MutatingAdmissionPolicy is v1") {
        return;
    }
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(NODES));
    let plane = &plane;
    thread::scope(|scope| {
        scope.spawn(|| insecure(plane));
        scope.spawn(|| insecure_without_forced_conflicts(plane));
        scope.spawn(|| without_priority_class(plane));
        scope.spawn(|| under_policies(plane));
    });
}

impl Fleet<'_> {
    /// Applies; checks the exit code and the message, and that nothing has changed.
    fn is_refused(&self, manifest: &str, code: i32, words: &str) {
        let before = self.kubectl(&[
            "get",
            "daemonset",
            "agent",
            "--output=jsonpath={.metadata.generation}",
        ]);
        let watcher = self.watch();
        let output = self.apply(manifest, &[]);
        let seen = watcher.end();
        assert_eq!(output.status.code(), Some(code), "{}", output_text(&output));
        assert!(output_text(&output).contains(words), "{}", output_text(&output));
        assert!(seen.deleted.is_empty(), "{:?}", seen.deleted);
        let after = self.kubectl(&[
            "get",
            "daemonset",
            "agent",
            "--output=jsonpath={.metadata.generation}",
        ]);
        assert_eq!(before, after, "nothing is written");
        assert_eq!(self.revisions().len(), 1);
    }
}

fn insecure(plane: &ControlPlane) {
    let fleet = Fleet::new(plane, "insecure", NODES, &version("insecure", "v1"));
    plane.kubectl(&["label", "namespace", "insecure", RESTRICTED]);
    fleet.is_refused(&version("insecure", "v2"), 1, "violates PodSecurity");
}

/// Field ownership also stays unchanged until the server has accepted the following apply.
fn insecure_without_forced_conflicts(plane: &ControlPlane) {
    let namespace = "theirs";
    plane.kubectl(&["create", "namespace", namespace]);
    plane.kubectl_stdin(&["apply", "--filename=-"], &version(namespace, "v1"));
    let fleet = Fleet { plane, namespace: namespace.to_owned(), nodes: NODES };
    fleet.wait_until_available();
    let owners = || {
        let live = fleet.json(&["get", "daemonset", "agent", "--show-managed-fields"]);
        let entries = live["metadata"]["managedFields"].as_array().unwrap().iter();
        let owned = entries.filter(|entry| entry["subresource"] != "status");
        owned.map(|entry| (entry["manager"].clone(), entry["fieldsV1"].clone())).collect::<Vec<_>>()
    };
    let before = owners();
    let force_conflicts = ["--force-conflicts=kubectl-client-side-apply"];
    plane.kubectl(&["label", "namespace", namespace, RESTRICTED]);
    let refused = fleet.apply(&version(namespace, "v2"), &force_conflicts);
    assert_eq!(refused.status.code(), Some(1), "{}", output_text(&refused));
    assert!(output_text(&refused).contains("violates PodSecurity"), "{}", output_text(&refused));
    assert_eq!(owners(), before, "nothing is written");

    plane.kubectl(&["label", "namespace", namespace, "pod-security.kubernetes.io/enforce-"]);
    let taken = fleet.apply(&version(namespace, "v2"), &force_conflicts);
    assert_eq!(taken.status.code(), Some(0), "{}", output_text(&taken));
    assert!(owners().iter().all(|(manager, _)| manager == "ds-apply"), "{:?}", owners());
}

fn without_priority_class(plane: &ControlPlane) {
    let fleet = Fleet::new(plane, "classless", NODES, &version("classless", "v1"));
    let important = "      priorityClassName: not-there\n      terminationGracePeriodSeconds: 1";
    let v2 =
        version("classless", "v2").replace("      terminationGracePeriodSeconds: 1", important);
    fleet.is_refused(&v2, 1, "no PriorityClass with name not-there was found");
}

fn under_policies(plane: &ControlPlane) {
    let mutated = Fleet::new(plane, "mutated", NODES, &version("mutated", "v1"));
    let denied = Fleet::new(plane, "denied", NODES, &version("denied", "v1"));
    plane.apply_yaml(POLICIES);
    // A policy takes effect a moment after its creation.
    let try_v2 =
        ["apply", "--server-side", "--force-conflicts", "--dry-run=server", "--filename=-"];
    wait_until("the policies to take effect", SOON, || {
        let stamped = plane.try_kubectl_stdin(
            &[&try_v2[..], &["--output=yaml"]].concat(),
            &version("mutated", "v2"),
        );
        let refused = plane.try_kubectl_stdin(&try_v2, &version("denied", "v2"));
        stdout(&stamped).contains("stamped") && !refused.status.success()
    });
    denied.is_refused(&version("denied", "v2"), 1, "v2 is not for us");
    mutated.is_refused(&version("mutated", "v2"), 5, "admission");

    let approved = version("mutated", "v2") + APPROVED;
    let output = mutated.apply(&approved, &["--allow-mutation"]);
    assert_eq!(output.status.code(), Some(5), "{}", output_text(&output));
    let message = "step canary of its policy needs an approval, which is of the template in the \
                   source";
    assert!(output_text(&output).contains(message), "{}", output_text(&output));
    assert_eq!(mutated.images(), ["v1".to_owned()].into(), "nothing is written");

    let watcher = mutated.watch();
    let output = mutated.apply(&version("mutated", "v2"), &["--allow-mutation"]);
    let seen = watcher.end();
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    assert!(seen.most_unavailable <= 1, "{}", seen.most_unavailable);
    assert_eq!(mutated.images(), ["v2".to_owned()].into());
    assert_eq!(mutated.strategy(), "RollingUpdate");
    let stamp = "--output=jsonpath={.items[*].metadata.annotations.stamped}";
    assert_eq!(mutated.kubectl(&["get", "pods", stamp]), ["yes"; NODES].join(" "));
    assert_eq!(mutated.revisions().len(), 2, "one revision per template");
}
