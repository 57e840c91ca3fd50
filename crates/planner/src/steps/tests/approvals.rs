//! Steps that need an approval, and those that need none because nothing is left to begin.

use serde_json::json;

use super::Is::{Going, New, Old};
use super::{at, world};

#[test]
fn an_approval_is_waited_for_before_the_step_begins() {
    let steps = json!({"steps": [
        {"name": "canary", "nodes": 1},
        {"name": "half", "nodes": 2, "approve": true},
    ]});
    let mut world = world(steps, &[("a", &[Old, Old, Old])]);
    let canary = world.next();
    world.set(&canary, New(1_000));
    world.noted();
    assert_eq!(world.next(), "step half is not approved");
    world.approved.insert("half".to_owned());
    assert_eq!(world.next().split(' ').count(), 1);
}

#[test]
fn nodes_without_pods_for_a_moment_do_not_stand_for_an_approval() {
    let steps = json!({"steps": [
        {"name": "canary", "nodes": 1},
        {"name": "half", "nodes": 2, "approve": true},
    ]});
    let mut world = world(steps, &[("a", &[New(0), New(0), Going])]);
    // The last good template is live: the third node gets a pod of it.
    world.is_target_live = false;
    assert_eq!(world.next(), "step half is not approved");
    // It gets the new one. If that is not so in the end, the step still needs its approval.
    world.is_target_live = true;
    assert_eq!(world.next(), "");
    world.noted().set("a-2", Old);
    assert_eq!(world.next(), "step half is not approved");
}

#[test]
fn nodes_that_need_no_approval_soak_all_the_same() {
    let steps = json!({"steps": [{"name": "half", "nodes": 2, "approve": true, "soak": "60s"}]});
    let mut world = world(steps, &[("a", &[New(0), New(990)])]);
    let until = "step half soaks until 1970-01-01T00:17:30Z";
    assert_eq!(world.next(), until);
    world.now += 40;
    assert_eq!(world.noted().next(), until);
    world.now += 10;
    assert_eq!(world.noted().next(), "");
}

#[test]
fn a_step_that_needs_no_approval_lets_the_next_one_soak() {
    let policy = json!({
        "steps": [
            {"name": "canary", "nodes": 1},
            {"name": "half", "nodes": 2, "approve": true},
            {"name": "most", "nodes": 3, "soak": "60s"},
        ],
        "gates": [{"name": "errors", "http": {"url": "https://gate.example"}}],
    });
    let mut world = world(policy, &[("a", &[New(900)])]);
    world.gates_passed = [("canary".to_owned(), at(1_000))].into();
    let until = world.noted().noted().next();
    assert!(until.starts_with("step most soaks until"), "{until}");
    // The next run, which knows only the answers that it got itself.
    world.gates_passed.clear();
    world.now = 1_030;
    assert_eq!(world.noted().next(), until);
    world.now = 1_060;
    assert_eq!(world.noted().next(), "step most waits for its gates");
}
