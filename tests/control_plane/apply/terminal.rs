//! A rollout on a terminal: it asks for approval, draws a bar, and prints the result.

use super::*;

const NODES: usize = 4;

fn version(image: &str) -> String {
    slowly(&manifest("drawn", image, &at_most("1")))
}

#[test]
fn a_terminal_shows_a_prompt_and_a_bar() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(NODES));
    let fleet = Fleet::new(&plane, "drawn", NODES, &version("v1"));
    let on_a_terminal = |image: &str, term: &str, typed: &str| {
        let manifest = version(image);
        let program = plane.ds_apply(&["-f", "agent.yaml"], &[("agent.yaml", &manifest)]);
        let (status, drawn) = program.run_on_a_terminal(term, typed);
        (status.code(), drawn)
    };

    let (code, drawn) = on_a_terminal("v2", "xterm", "no\n");
    assert_eq!(code, Some(1), "{drawn}");
    assert!(drawn.contains("Continue? Only `yes` is accepted: "), "{drawn}");
    assert_eq!(fleet.images(), ["v1".to_owned()].into());

    let (code, drawn) = on_a_terminal("v2", "xterm", "yes\n");
    assert_eq!(code, Some(0), "{drawn}");
    for part in ["drawn/agent  [", "]  2 of 4 updated, ", " in flight, ", "4 nodes replaced"] {
        assert!(drawn.contains(part), "{part}: {drawn:?}");
    }
    assert!(!drawn.contains("deleting pod"), "the bar shows the count: {drawn:?}");
    assert!(!drawn.contains("wave"), "{drawn:?}");
    let lines = drawn.rsplit("\u{1b}[2K").next().unwrap();
    assert!(
        lines.contains("  done\r\n") && !lines.contains("updated,"),
        "no bar is left: {drawn:?}"
    );

    let (code, drawn) = on_a_terminal("v3", "dumb", "yes\n");
    assert_eq!(code, Some(0), "{drawn}");
    assert!(drawn.contains("deleting pod") && !drawn.contains("updated, "), "{drawn:?}");

    // A plan that was approved elsewhere still requires approval here.
    let manifest = version("v4");
    let files = [("agent.yaml", &*manifest)];
    let planned = stdout(&plane.ds_plan(&["-f", "agent.yaml", "-o", "json"], &files));
    let files = [("agent.yaml", &*manifest), ("plan.json", &*planned)];
    let program = plane.ds_apply(&["--plan", "plan.json", "-f", "agent.yaml"], &files);
    let (status, drawn) = program.run_on_a_terminal("dumb", "no\n");
    assert_eq!(status.code(), Some(1), "{drawn}");
    assert!(drawn.contains("Continue? Only `yes` is accepted: "), "{drawn}");
    assert_eq!(fleet.images(), ["v3".to_owned()].into());
}
