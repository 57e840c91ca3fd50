//! The role shipped for it is sufficient, and no request is denied. Without any one verb of it, a
//! run reports it before it writes anything.

use super::super::roles::{Right, Worker, rights, shipped, without};
use super::*;

/// Users that have both roles without one verb each; more than the second role has verbs.
const USERS: usize = 14;

fn user(number: usize) -> String {
    format!("controller-{number:02}")
}

#[test]
fn each_missing_permission_is_reported_before_any_write() {
    let builder = ControlPlane::builder().without_controller("daemonset-controller").audit();
    let plane = (0..USERS).fold(builder, |builder, at| builder.user(&user(at), &[])).start();
    plane.create_nodes(three_zones(2));
    let second = shipped("managed-by-ds-apply.yaml");
    let mut both = shipped("ds-apply.yaml");
    let rules = both["rules"].as_array_mut().unwrap();
    rules.extend(second["rules"].as_array().unwrap().iter().cloned());
    let missing: Vec<Right> = rights(&second).into_iter().collect();
    assert!(missing.len() <= USERS, "{} rights", missing.len());
    for (number, missing) in missing.iter().enumerate() {
        let user = user(number);
        let role = without(&both, missing, &user).to_string();
        plane.kubectl_stdin(&["apply", "--filename=-"], &role);
        let worker = Worker::new(&plane, &user, &user);
        let one = format!("{}{}", manifest(&user, "v1", &at_most("2")), policy(&user));
        let id = format!("--source-id={user}");
        let two =
            format!("{one}---{}", manifest(&user, "v1", &at_most("2")).replace("agent", "other"));
        let two = two.replace(&format!("[{user}/agent]"), &format!("[{user}/agent, {user}/other]"));
        let mut last = worker.step(&two, std::slice::from_ref(&id));
        // Only a delete needs that permission.
        if *missing == ("configmaps".to_owned(), "delete".to_owned()) {
            assert_eq!(last.code, Some(0), "without {missing:?}: {}", last.reported);
            last = worker.step(&one, &[id, "--prune".to_owned()]);
        }
        last.says_what_is_missing(missing, "ds-apply-as-controller");
    }
}

#[test]
fn the_shipped_role_is_sufficient() {
    let plane = ControlPlane::builder()
        .without_controller("daemonset-controller")
        .user("controller", &[])
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
            "--user=controller",
        ]);
    }
    for image in ["v1", "v2"] {
        let files = format!("{}{}", manifest("kept", image, &at_most("2")), policy("kept"));
        let arguments = ["--yes", "-f", "agent.yaml"];
        let run = plane.ds_apply_as("controller", &arguments, &[("agent.yaml", &files)]).run();
        assert_eq!(run.status.code(), Some(0), "{}", output_text(&run));
    }
    let denied: Vec<String> = plane
        .audit_log()
        .iter()
        .filter(|event| {
            event["user"]["username"] == "controller" && event["responseStatus"]["code"] == 403
        })
        .map(|event| format!("{} {}", event["verb"], event["requestURI"]))
        .collect();
    assert_eq!(denied, Vec::<String>::new());

    // Without the second role nothing is started, and the message names the missing permissions.
    plane.kubectl(&["delete", "clusterrolebinding", "ds-apply-as-controller"]);
    let files = format!("{}{}", manifest("kept", "v3", &at_most("2")), policy("kept"));
    wait_until("the deleted role to take effect", SOON, || {
        let arguments = ["--yes", "-f", "agent.yaml"];
        let run = plane.ds_apply_as("controller", &arguments, &[("agent.yaml", &files)]).run();
        run.status.code() == Some(1) && output_text(&run).contains("configmaps")
    });
}
