//! Steps that select no node, or none any more.

use serde_json::json;

use super::Is::{New, Old};
use super::world;
use crate::steps::empty_steps;

#[test]
fn a_step_that_is_done_is_not_empty_when_its_nodes_have_left() {
    let steps = json!({"steps": [{"name": "named", "nodes": {"names": ["a-0"]}}]});
    let mut world = world(steps, &[("a", &[New(900), Old])]);
    world.noted().nodes.remove(0);
    let empty = world.evaluated(|evaluation, _| empty_steps(evaluation).len());
    assert_eq!((empty, world.next().as_str()), (0, "a-1"));
}

/// Nothing would be proven there, though the nodes of the steps before it are updated.
#[test]
fn a_step_that_is_empty_is_waited_for_while_other_nodes_are_left() {
    let steps = json!({"steps": [
        {"name": "canary", "nodes": 1},
        {"name": "named", "nodes": {"names": ["b-0"]}},
    ]});
    let mut world = world(steps, &[("a", &[New(900), Old])]);
    assert_eq!(world.noted().next(), "step named has no Ready node");
    // When nothing is left, no step keeps the rollout from its end.
    world.set("a-1", New(1_000));
    let current = world.noted().evaluated(|evaluation, _| evaluation.current);
    assert_eq!((world.next().as_str(), current), ("", None));
}
