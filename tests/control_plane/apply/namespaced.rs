//! `deploy/namespaced`: write permissions are bound in single namespaces, and do not reach any
//! other.

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
