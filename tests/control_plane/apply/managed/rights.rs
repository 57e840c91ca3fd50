//! The role that is shipped for it is enough, and asks for nothing that is denied.

use super::*;

#[test]
fn the_shipped_role_is_enough() {
    let plane = ControlPlane::builder()
        .without_controller("daemonset-controller")
        .user("keeper", &[])
        .audit()
        .start();
    plane.create_nodes(three_zones(4));
    plane.kubectl(&["create", "namespace", "kept"]);
    let deploy = format!("{}/deploy", env!("CARGO_MANIFEST_DIR"));
    for file in ["ds-apply.yaml", "managed-by-ds-apply.yaml"] {
        plane.kubectl(&["apply", "-f", &format!("{deploy}/{file}")]);
    }
    for role in ["ds-apply", "ds-apply-as-controller"] {
        plane.kubectl(&[
            "create",
            "clusterrolebinding",
            role,
            &format!("--clusterrole={role}"),
            "--user=keeper",
        ]);
    }
    for image in ["v1", "v2"] {
        let files = format!("{}{}", manifest("kept", image, &at_most("2")), policy("kept"));
        let arguments = ["--yes", "-f", "agent.yaml"];
        let run = plane.ds_apply_as("keeper", &arguments, &[("agent.yaml", &files)]).run();
        assert_eq!(run.status.code(), Some(0), "{}", told(&run));
    }
    let denied: Vec<String> = plane
        .audit_log()
        .iter()
        .filter(|event| {
            event["user"]["username"] == "keeper" && event["responseStatus"]["code"] == 403
        })
        .map(|event| format!("{} {}", event["verb"], event["requestURI"]))
        .collect();
    assert_eq!(denied, Vec::<String>::new());

    // Without the second role nothing is begun, and the message says what is missing.
    plane.kubectl(&["delete", "clusterrolebinding", "ds-apply-as-controller"]);
    let files = format!("{}{}", manifest("kept", "v3", &at_most("2")), policy("kept"));
    wait_until("the role to be gone", SOON, || {
        let arguments = ["--yes", "-f", "agent.yaml"];
        let run = plane.ds_apply_as("keeper", &arguments, &[("agent.yaml", &files)]).run();
        run.status.code() == Some(1) && told(&run).contains("configmaps")
    });
}
