//! `deploy/namespaced`: write permissions are bound in single namespaces, and do not reach any
//! other.

use super::in_cluster::shown_overlay;
use super::roles::{self, Worker};
use super::*;
use crate::harness::kubectl_path;

const NODES: usize = 3;

/// A file of `deploy/namespaced`, for this user and namespace.
fn shipped(file: &str, user: &str, namespace: &str) -> String {
    let path = format!("{}/deploy/namespaced/{file}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let account = "{kind: ServiceAccount, name: ds-apply, namespace: ds-plan}";
    assert!(text.contains(account), "{text}");
    let group = "apiGroup: rbac.authorization.k8s.io";
    text.replace(account, &format!("{{kind: User, name: {user}, {group}}}"))
        .replace("namespace: logging", &format!("namespace: {namespace}"))
}

/// Together with the cluster-wide binding, those in single namespaces would limit nothing.
#[test]
fn the_component_replaces_the_cluster_wide_binding() {
    let bindings = |components: &str| {
        let folder = shown_overlay();
        let path = folder.path().join("kustomization.yaml");
        let shown = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{shown}{components}")).unwrap();
        let mut kustomize = std::process::Command::new(kubectl_path());
        let output = kustomize.arg("kustomize").arg(folder.path()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        let objects = text.split("\n---\n").map(|it| serde_yaml::from_str::<Value>(it).unwrap());
        let binds = |it: &Value| {
            let mut subjects = it["subjects"].as_array().into_iter().flatten();
            subjects.any(|subject| subject["name"] == "ds-apply")
        };
        let name = |it: Value| {
            let of = |value: &Value| value.as_str().unwrap().to_owned();
            format!("{} of {}", of(&it["kind"]), of(&it["roleRef"]["name"]))
        };
        objects.filter(binds).map(name).collect::<BTreeSet<String>>()
    };
    let (wide, of_fleet) =
        ("ClusterRoleBinding of ds-apply", "ClusterRoleBinding of ds-apply-fleet");
    assert_eq!(bindings(""), BTreeSet::from([wide.to_owned()]));
    let narrow = ["RoleBinding of ds-apply", of_fleet].map(str::to_owned);
    assert_eq!(bindings("components: [deploy/namespaced]\n"), BTreeSet::from(narrow));
}

#[test]
fn roles_in_single_namespaces_suffice_there_and_grant_nothing_elsewhere() {
    let plane = ControlPlane::builder().user("tenant", &[]).start();
    plane.create_nodes(three_zones(NODES));
    let roles =
        std::fs::read_to_string(format!("{}/deploy/ds-apply.yaml", env!("CARGO_MANIFEST_DIR")));
    plane.kubectl_stdin(&["apply", "--filename=-"], &roles.unwrap());
    for namespace in ["mine", "theirs"] {
        plane.kubectl(&["create", "namespace", namespace]);
    }
    for file in ["fleet.yaml", "binding.yaml"] {
        plane.kubectl_stdin(&["apply", "--filename=-"], &shipped(file, "tenant", "mine"));
    }
    let apply = |namespace: &str, image: &str| {
        let manifest = manifest(namespace, image, &at_most("1"));
        let files = [("agent.yaml", &*manifest)];
        plane.ds_apply_as("tenant", &["--yes", "-f", "agent.yaml"], &files).run()
    };
    for image in ["v1", "v2"] {
        let done = apply("mine", image);
        assert_eq!(done.status.code(), Some(0), "{}", output_text(&done));
    }
    let refused = apply("theirs", "v1");
    assert_eq!(refused.status.code(), Some(1), "{}", output_text(&refused));
    assert!(
        output_text(&refused).contains("forbidden")
            || output_text(&refused).contains("not permitted")
    );
    let left = ["get", "daemonsets,leases", "--namespace=theirs", "--output=name"];
    assert_eq!(plane.kubectl(&left), "", "{}", output_text(&refused));
}

/// RBAC does not know the name of an object that is created by a POST, as the Lease is.
#[test]
fn a_role_that_limits_the_creation_of_leases_by_name_does_not_suffice() {
    let plane = ControlPlane::builder().user("narrow", &[]).start();
    plane.create_nodes(three_zones(NODES));
    let (role, missing) = (roles::shipped("ds-apply.yaml"), ("leases".into(), "create".into()));
    plane.apply_yaml(&roles::without(&role, &missing, "narrow").to_string());
    Worker::new(&plane, "narrow", "narrow");
    let in_namespace = ["--namespace=narrow", "create"];
    let lease = ["--verb=create", "--resource=leases", "--resource-name=ds-plan-agent"];
    plane.kubectl(&[&in_namespace[..], &["role", "lease"], &lease].concat());
    let binding = ["rolebinding", "lease", "--role=lease", "--user=narrow"];
    plane.kubectl(&[&in_namespace[..], &binding].concat());
    let manifest = manifest("narrow", "v1", &at_most("1"));
    let files = [("agent.yaml", &*manifest)];
    let refused = plane.ds_apply_as("narrow", &["--yes", "-f", "agent.yaml"], &files).run();
    let text = output_text(&refused);
    assert_eq!(refused.status.code(), Some(1), "{text}");
    // Found before the lock is tried.
    assert!(text.contains("error: not permitted; nothing was changed"), "{text}");
    assert!(text.contains("create leases"), "{text}");
    assert_eq!(plane.kubectl(&["get", "daemonsets", "--namespace=narrow", "--output=name"]), "");
}
