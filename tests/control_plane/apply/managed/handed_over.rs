//! The two modes are never mixed, and handing over from one to the other restarts no pod.

use super::*;
use crate::harness::kubernetes;

const NODES: usize = 5;

#[test]
fn management_is_handed_over_and_back() {
    if !kubernetes::since(34, "without null timestamps the controller adopts our revision") {
        return;
    }
    let plane = ControlPlane::builder().user(RUNNER, &["system:masters"]).audit().start();
    plane.create_nodes(three_zones(NODES));
    let fleet = Fleet::new(&plane, "handed", NODES, &manifest("handed", "v1", &at_most("1")));
    let agent = Managed { plane: &plane, namespace: "handed".to_owned() };
    let version = |image: &str| manifest("handed", image, &at_most("1"));
    let before = agent.uids();

    // Refused while the DaemonSet exists, whatever the flags.
    let refused = agent.apply(&version("v1"), &[], 6);
    let command = "kubectl -n handed delete daemonset agent --cascade=orphan";
    assert!(output_text(&refused).contains(command), "{}", output_text(&refused));
    let refused = fleet.apply(&version("v1"), &["--managed-by=ds-apply"]);
    assert_eq!(refused.status.code(), Some(6), "{}", output_text(&refused));

    let arguments: Vec<&str> = command.split(' ').skip(1).collect();
    plane.kubectl(&arguments);
    agent.apply(&version("v1"), &[], 0);
    assert_eq!(agent.uids(), before, "adopted");
    agent.is_whole(&version("v1"), NODES);
    assert_eq!(agent.revisions(), [(1, "ConfigMap/ds-plan-agent".to_owned())]);
    agent.apply(&version("v2"), &[], 0);
    agent.is_whole(&version("v2"), NODES);
    let ours = agent.uids();

    // And back.
    let refused = fleet.apply(&version("v2"), &[]);
    assert_eq!(refused.status.code(), Some(6), "{}", output_text(&refused));
    let command = "kubectl -n handed delete configmap ds-plan-agent --cascade=orphan";
    assert!(output_text(&refused).contains(command), "{}", output_text(&refused));
    let arguments: Vec<&str> = command.split(' ').skip(1).collect();
    plane.kubectl(&arguments);
    let applied = fleet.apply(&version("v2"), &[]);
    assert_eq!(applied.status.code(), Some(0), "{}", output_text(&applied));
    fleet.wait_until_available();
    assert_eq!(agent.uids(), ours, "adopted");
    let owners: Vec<i64> = agent.revisions().iter().map(|(number, _)| *number).collect();
    assert_eq!(owners, [1, 2]);

    // Another user created both.
    let record = serde_json::json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": "ds-plan-agent", "namespace": "handed", "labels": {"ds-plan.dev/record": "true"},
        },
        "data": {"daemonSet": serde_json::json!({
            "metadata": {"name": "agent"},
            "spec": agent.json(&["get", "daemonset", "agent"])["spec"],
        }).to_string()},
    });
    plane.kubectl_stdin(&["create", "-f", "-"], &record.to_string());
    let refused = agent.apply(&version("v2"), &[], 6);
    assert!(
        output_text(&refused).contains("both as a DaemonSet and as a record"),
        "{}",
        output_text(&refused)
    );
}

/// A recording contains the record, and a plan and a rehearsal from it match those from the
/// cluster.
#[test]
fn a_recording_contains_the_record() {
    let plane = without_controller();
    plane.create_nodes(three_zones(NODES));
    let agent = Managed::new(&plane, "kept");
    let version = |image: &str| {
        let secret = "containers: [{name: agent, env: [{name: TOKEN, value: sesame}], ";
        manifest("kept", image, &at_most("2")).replace("containers: [{name: agent, ", secret)
    };
    agent.apply(&version("v1"), &[], 0);
    let folder = tempfile::tempdir().unwrap();
    for (file, flags) in [("plain.json", &[][..]), ("masked.json", &["--mask-values"][..])] {
        let file = folder.path().join(file);
        let file = file.to_str().unwrap();
        let arguments = [&["snapshot", "--out", file][..], flags].concat();
        let recorded = plane.ds_plan(&arguments, &[]);
        assert_eq!(recorded.status.code(), Some(0), "{}", output_text(&recorded));
        assert!(output_text(&recorded).contains("1 configmap"), "{}", output_text(&recorded));
        let text = std::fs::read_to_string(file).unwrap();
        assert_eq!(text.contains("sesame"), flags.is_empty());
        let files = agent.files(&version("v2"));
        let arguments = ["--snapshot", file, "-f", "agent.yaml"];
        let planned = crate::harness::ds_plan_offline(&arguments, &[("agent.yaml", &files)]);
        assert!(stdout(&planned).contains("5 to replace"), "{}", output_text(&planned));
    }
    let after = folder.path().join("after.json");
    let after = after.to_str().unwrap();
    let files = agent.files(&version("v2"));
    let rehearsed = agent.apply(&version("v2"), &["--rehearse", "--save", after], 0);
    assert!(output_text(&rehearsed).contains("5 nodes replaced"), "{}", output_text(&rehearsed));
    let arguments = ["--detailed-exitcode", "--snapshot", after, "-f", "agent.yaml"];
    let planned = crate::harness::ds_plan_offline(&arguments, &[("agent.yaml", &files)]);
    assert_eq!(planned.status.code(), Some(0), "{}", output_text(&planned));
    assert_eq!(agent.images(), ["v1".to_owned()].into(), "no changes were made to the cluster");
}
