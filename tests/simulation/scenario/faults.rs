//! Random faults of the cluster and of its API server.

use serde_json::{Value, json};

use super::{NEW, NodeSpec};
use crate::dice::Dice;

/// A random fault; two entries if the second one ends the first.
pub(super) fn fault(nodes: &[NodeSpec], dice: &mut Dice) -> Vec<(&'static str, Value)> {
    let some = |dice: &mut Dice| -> Vec<String> {
        (0..dice.between(1, 2)).map(|_| dice.pick(nodes).name).collect()
    };
    let at = dice.between(1, 120);
    let later = format!("{}s", at + dice.between(10, 400));
    let at = format!("{at}s");
    let down = |names: Vec<String>, dice: &mut Dice| {
        let nodes = json!({"names": names});
        let mut events =
            vec![("nodes", json!({"event": "dies", "at": at, "nodes": nodes.clone()}))];
        if !dice.one_in(3) {
            events.push(("nodes", json!({"event": "comesBack", "at": later, "nodes": nodes})));
        }
        events
    };
    match dice.between(0, 13) {
        0 => {
            let kind = dice.pick(&["neverPulls", "crashLoops"]);
            let names = if dice.one_in(2) { some(dice) } else { Vec::new() };
            vec![("images", json!({"fault": kind, "image": NEW, "nodes": {"names": names}}))]
        }
        1 => {
            let by = dice.pick(&["20s", "2m", "20m"]);
            let nodes = json!({"names": some(dice)});
            let late = json!({"fault": "readyLate", "image": NEW, "by": by, "nodes": nodes});
            vec![("images", late)]
        }
        2 | 3 => {
            let names = some(dice);
            down(names, dice)
        }
        4 => {
            let labels = json!({"pool": dice.pick(&["blue", "green"])});
            let name = format!("late-{at}");
            vec![("nodes", json!({"event": "added", "at": at, "name": name, "labels": labels}))]
        }
        5 => {
            let event = dice.pick(&["removed", "cordoned"]);
            vec![("nodes", json!({"event": event, "at": at, "nodes": {"names": some(dice)}}))]
        }
        6 => {
            let labels = json!({"pool": dice.pick(&["blue", "green"])});
            let nodes = json!({"names": some(dice)});
            let event = json!({"event": "relabelled", "at": at, "nodes": nodes, "labels": labels});
            vec![("nodes", event)]
        }
        7 => {
            let effect = dice.pick(&["NoSchedule", "NoExecute"]);
            let taint = json!({"key": "trial", "value": "", "effect": effect});
            let nodes = json!({"names": some(dice)});
            vec![("nodes", json!({"event": "tainted", "at": at, "nodes": nodes, "taint": taint}))]
        }
        8 => vec![("controllerManagerDown", json!({"from": at, "until": later}))],
        9 => {
            let zone = dice.pick(nodes).zone;
            let names = nodes.iter().filter(|node| node.zone == zone);
            down(names.map(|node| node.name.clone()).collect(), dice)
        }
        10 => blindness(&at, &later, dice),
        _ => vec![("api", api_fault(dice))],
    }
}

/// Watches of one kind end and new ones fail or are late for a while: the answers that the program
/// has received are then newer than its watch events.
fn blindness(from: &str, until: &str, dice: &mut Dice) -> Vec<(&'static str, Value)> {
    let resources = json!([dice.pick(&["nodes", "pods", "daemonsets"])]);
    let cut = json!({"answer": {"cut": "15s"}, "verbs": ["watch"], "resources": resources.clone()});
    let answer = dice.pick(&[json!({"refused": 503}), json!({"late": "8s"})]);
    let again = json!({
        "answer": answer, "verbs": ["watch", "list"], "resources": resources,
        "when": {"from": from, "until": until},
    });
    vec![("api", cut), ("api", again)]
}

/// Delays every delete by `late`.
pub(crate) fn slow_deletes(late: &str) -> Value {
    json!({"answer": {"late": late}, "verbs": ["delete"]})
}

fn api_fault(dice: &mut Dice) -> Value {
    let answer = dice.pick(&[
        json!({"refused": 503}),
        json!({"refused": 500}),
        json!({"refused": 429}),
        json!({"late": "2s"}),
        json!({"late": "9s"}),
        json!({"late": "25s"}),
        json!({"cut": "15s"}),
        json!("lost"),
        json!("conflict"),
    ]);
    let verbs = if answer.get("cut").is_some() {
        json!(["watch"])
    } else if answer == "conflict" {
        json!(["update", "patch", "delete"])
    } else {
        dice.pick(&[json!([]), json!(["delete"]), json!(["patch", "update"]), json!(["watch"])])
    };
    json!({"answer": answer, "verbs": verbs, "percent": dice.pick(&[3, 10, 40])})
}
