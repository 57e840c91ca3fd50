//! What a later run considers an ended rollout, whose template is the last good one.

use serde_json::json;

use super::checks::{gated, later};
use super::run::Run;
use super::sim::Sim;
use super::steps::{run, waits};
use crate::rollout::Outcome;
use crate::steps::WaitKind;
use daemonset::model::PolicySpec;

/// Three of four nodes are not Ready when a rollout ends, more than are skipped, and come back with their
/// old pods.
fn many_come_back(policy: &PolicySpec) -> Sim {
    let mut sim = Sim::of(4, &json!(1));
    let away = ["node-1", "node-2", "node-3"];
    let old = away.map(|node| sim.pod_on(node).clone());
    let mut first = Run::apply(sim, "v2").with(|task| task.policy = policy.clone());
    first.look();
    first.until(|run| run.images().get("v2") == Some(&1));
    (1..4).for_each(|at| first.sim.set_ready(at, false));
    let first = first.finish();
    assert_eq!((waits(&first), first.deletes.len()), (vec![WaitKind::Gate], 1));
    let mut done = later(first, 120, policy);
    assert_eq!((done.outcome(), done.deletes.len()), (&Outcome::Done, 0));
    (1..4).for_each(|at| done.sim.set_ready(at, true));
    // As if no controller had replaced them meanwhile (`managedBy: ds-apply`).
    away.iter().zip(old).for_each(|(node, old)| *done.sim.pod_on(node) = old);
    done.sim
}

/// Found by story 277702: the template before was put back while the last gates were waited for.
#[test]
fn what_is_noted_as_done_is_the_last_good_one_however_many_nodes_come_back() {
    let policy = PolicySpec { steps: Vec::new(), ..gated(&json!({"delay": "100s"})) };
    let again = run(many_come_back(&policy), "v2", &policy);
    assert_eq!((waits(&again), again.deletes.len()), (vec![WaitKind::Gate], 3));
    assert_eq!(again.sim.live_image(), "v2");
    assert_eq!(*later(again, 120, &policy).outcome(), Outcome::Done);
    // But an old pod that is newer than the end is of another client's rollout.
    let mut sim = many_come_back(&policy);
    let now = sim.now();
    sim.pod_on("node-1").created = Some(now.into());
    let again = run(sim, "v2", &policy);
    assert_eq!((waits(&again), again.sim.live_image()), (vec![WaitKind::Gate], "v1".to_owned()));
}

/// Found by story 291512. Without the note, the managed fields say whether `ds-apply` has ended the pause.
#[test]
fn a_rollout_whose_note_is_lost_has_ended_if_only_ds_apply_has_written_the_strategy() {
    let policy = PolicySpec { steps: Vec::new(), ..gated(&json!({"delay": "100s"})) };
    let strategy = json!({"f:spec": {"f:updateStrategy": {"f:type": {}}}});
    let by = |manager: &str, operation: &str, time: &str| {
        let mut entry = json!({"manager": manager, "operation": operation, "time": time});
        entry["fieldsV1"] = strategy.clone();
        entry
    };
    // The old pods were created in between.
    let (early, late) = ("1970-01-01T00:00:00Z", "2100-01-01T00:00:00Z");
    for (rule, entries, live) in [
        ("only ds-apply", vec![by("ds-apply", "Apply", late)], "v2"),
        ("the old pods are newer", vec![by("ds-apply", "Apply", early)], "v1"),
        (
            "another client, too",
            vec![by("ds-apply", "Apply", late), by("kubectl-edit", "Update", late)],
            "v1",
        ),
        ("only another client", vec![by("kubectl-edit", "Update", late)], "v1"),
        ("nobody", vec![], "v1"),
    ] {
        let mut sim = many_come_back(&policy);
        sim.note = None;
        sim.set_managed_fields(entries);
        // Without the note, the gates count from the oldest pod of the target on.
        let longer = PolicySpec { steps: Vec::new(), ..gated(&json!({"delay": "1h"})) };
        let again = run(sim, "v2", &longer);
        assert_eq!(
            (waits(&again), again.sim.live_image().as_str()),
            (vec![WaitKind::Gate], live),
            "{rule}"
        );
    }
}
