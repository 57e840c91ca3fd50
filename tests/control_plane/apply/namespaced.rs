//! `deploy/namespaced`: write permissions are bound in single namespaces, and do not reach any
//! other.

use super::roles::{self, Worker};
use super::*;

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
