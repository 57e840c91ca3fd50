//! Objects that other clients applied before: refused until `--force-conflicts` names them, then
//! applied in one revision.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use super::*;

const NODES: usize = 6;

/// The object as another client applied it, with fields that are no longer in git.
fn theirs(namespace: &str) -> String {
    version(namespace, "v1").replace(
        "'cr.example/agent:v1'",
        "'cr.example/agent:v1', args: [--old], env: [{name: OLD, value: 'yes'}]",
    )
}

fn version(namespace: &str, image: &str) -> String {
    manifest(namespace, image, &at_most("2"))
}

#[test]
fn conflicts_of_a_named_manager_are_forced_in_one_revision() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(NODES));
    let plane = &plane;
    let server_side = ["apply", "--server-side", "--field-manager=helm", "--filename=-"];
    let cases: [(&str, &[&str], &str); 3] = [
        ("kubectl", &["apply", "--filename=-"], "kubectl-client-side-apply"),
        ("helm", &server_side, "helm"),
        ("nobody", &server_side, "before-first-apply"),
    ];
    thread::scope(|scope| {
        for (namespace, apply, manager) in cases {
            scope.spawn(move || taken_over(plane, namespace, apply, manager));
        }
    });
}

fn taken_over(plane: &ControlPlane, namespace: &str, apply: &[&str], manager: &str) {
    plane.kubectl(&["create", "namespace", namespace]);
    plane.kubectl_stdin(apply, &theirs(namespace));
    let fleet = Fleet { plane, namespace: namespace.to_owned(), nodes: NODES };
    fleet.wait_until_available();
    if manager == "before-first-apply" {
        // The only way to remove all owners.
        let patch = ["--type=merge", "--patch={\"metadata\": {\"managedFields\": [{}]}}"];
        let to = format!("--namespace={namespace}");
        plane.kubectl(&[&[to.as_str(), "patch", "daemonset", "agent"][..], &patch].concat());
    }

    let refused = fleet.apply(&version(namespace, "v2"), &[]);
    assert_eq!(refused.status.code(), Some(6), "{}", output_text(&refused));
    let flag = format!("--force-conflicts={manager}");
    assert!(output_text(&refused).contains(&flag), "{}", output_text(&refused));
    assert_eq!(fleet.images(), ["v1".to_owned()].into(), "nothing was changed");
    assert_eq!(fleet.revisions().len(), 1);

    // A rehearsal does the same, and changes nothing.
    let rehearsed = fleet.apply(&version(namespace, "v2"), &[&flag, "--rehearse"]);
    assert_eq!(rehearsed.status.code(), Some(0), "{}", output_text(&rehearsed));
    let replaced = format!("{NODES} nodes replaced");
    assert!(output_text(&rehearsed).contains(&replaced), "{}", output_text(&rehearsed));
    assert_eq!(fleet.images(), ["v1".to_owned()].into(), "nothing was changed");

    let watcher = fleet.watch();
    let output = fleet.apply(&version(namespace, "v2"), &[&flag]);
    let seen = watcher.end();
    assert_eq!(output.status.code(), Some(0), "{}", output_text(&output));
    assert!(seen.most_unavailable <= 2, "{}", seen.most_unavailable);
    assert_eq!(seen.deleted.len(), NODES, "each pod is replaced once");
    let live = fleet.json(&["get", "daemonset", "agent", "--show-managed-fields"]);
    let container = &live["spec"]["template"]["spec"]["containers"][0];
    assert_eq!((&container["env"], &container["args"]), (&Value::Null, &Value::Null));
    let numbers: Vec<i64> = fleet.revisions().iter().map(|(_, number, _)| *number).collect();
    assert_eq!(numbers, [1, 2], "one new revision");
    let owners = live["metadata"]["managedFields"].as_array().unwrap();
    assert!(owners.iter().all(|owner| owner["manager"] != manager), "{owners:?}");
    let next = fleet.plan(&version(namespace, "v2"));
    assert_eq!(next.status.code(), Some(0), "{}", output_text(&next));
}

/// Another client (for example the controller after each pod) writes the status all the time: that
/// is not a change of the fields.
#[test]
fn the_status_may_change_while_conflicts_are_forced() {
    let plane = ControlPlane::builder().without_controller("daemonset-controller").start();
    plane.create_nodes(three_zones(1));
    plane.kubectl(&["create", "namespace", "busy"]);
    let server_side = ["apply", "--server-side", "--field-manager=helm", "--filename=-"];
    plane.kubectl_stdin(&server_side, &theirs("busy"));
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for count in 1.. {
                let patch = format!("{{\"status\": {{\"numberReady\": {count}}}}}");
                let status = ["--subresource=status", "--type=merge", "--patch", &patch];
                let patch = [&["--namespace=busy", "patch", "daemonset", "agent"][..], &status];
                plane.kubectl(&patch.concat());
                thread::sleep(Duration::from_millis(100));
                if ended.load(Ordering::Relaxed) {
                    break;
                }
            }
        });
        let arguments = ["--yes", "-f", "agent.yaml", "--force-conflicts=helm", "--timeout=3s"];
        let run = plane.ds_apply(&arguments, &[("agent.yaml", &version("busy", "v2"))]).run();
        ended.store(true, Ordering::Relaxed);
        // No controller completes the rollout, so the run stops; but the object was written.
        assert_eq!(run.status.code(), Some(4), "{}", output_text(&run));
    });
    let image = "--output=jsonpath={.spec.template.spec.containers[0].image}";
    let image = plane.kubectl(&["--namespace=busy", "get", "daemonset", "agent", image]);
    assert_eq!(image, "cr.example/agent:v2");
}
