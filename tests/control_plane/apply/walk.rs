//! The guide's walk through `ds-apply`: each of its commands, with the output that it shows.

use std::fs;
use std::path::Path;

use super::workspace::Workspace;
use super::*;
use crate::harness::kubernetes;

/// The markers of the walk in the guide.
const BEGIN: &str = "<!-- walk -->";
const END: &str = "<!-- end of walk -->";

/// The text without times of day, durations, and random name suffixes.
fn timeless(text: &str) -> String {
    let word = |word: &str| -> String {
        let end = word.trim_end_matches([',', ';', ':', '.']);
        let tail = &word[end.len()..];
        let is_time = end.len() == 9 && end.ends_with('Z') && end.matches(':').count() == 2;
        let is_moment = end.starts_with("20") && end.ends_with('Z') && end.contains('T');
        let is_pod = end.strip_prefix("agent-").is_some_and(|rest| rest.len() == 5);
        let is_span = end.strip_suffix('s').is_some_and(|count| count.parse::<u32>().is_ok());
        let name = match () {
            () if is_time => "TIME",
            () if is_moment => "MOMENT",
            () if is_pod => "agent-POD",
            () if is_span => "SECONDS",
            () => end,
        };
        format!("{name}{tail}")
    };
    // The duration per node depends on the machine.
    let line = |line: &str| {
        let took = line.split_once(" replaced, each").or(line.split_once(" replaced in"));
        let line = took.map_or(line, |(before, _)| before);
        line.split(' ').map(word).collect::<Vec<_>>().join(" ")
    };
    text.trim().lines().map(|text| line(text.trim_end())).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_guides_walk_shows_the_real_output() {
    if !kubernetes::since(36, "the guide shows the newest version, and hashes of its templates") {
        return;
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src/apply.md");
    let page = fs::read_to_string(page).unwrap();
    let (_, walk) = page.split_once(BEGIN).unwrap();
    let (walk, _) = walk.split_once(END).unwrap();
    let plane = ControlPlane::start();
    plane.create_nodes(["a-1", "a-2", "b-1"].map(FakeNode::new));
    plane.kubectl(&["create", "namespace", "logging"]);
    let workspace = Workspace::careful(&plane);
    workspace.init();
    workspace.commit("3.1", "Ship agent 3.1");
    let first = workspace.run("ds-apply --yes");
    assert!(first.contains("done"), "{first}");
    let available = "--output=jsonpath={.status.numberAvailable}";
    wait_for("the first pods", SOON, "3".to_owned(), || {
        plane.kubectl(&["--namespace=logging", "get", "daemonset", "agent", available])
    });
    workspace.commit("3.2", "Ship agent 3.2");

    let (mut reported, mut shown, mut raw) = (String::new(), String::new(), String::new());
    for block in walk.split("```console\n").skip(1) {
        let (block, _) = block.split_once("```").unwrap();
        for step in block.split("$ ").filter(|step| !step.trim().is_empty()) {
            let (line, output) = step.split_once('\n').unwrap_or((step, ""));
            if line == "git commit -am 'Ship agent 3.3'" {
                workspace.commit("3.3-bad", "Ship agent 3.3");
                continue;
            }
            let printed = workspace.run(line);
            raw = format!("{raw}$ {line}\n{printed}");
            reported = format!("{reported}$ {line}\n{}\n", timeless(&printed));
            shown = format!("{shown}$ {line}\n{}\n", timeless(output));
        }
    }
    assert!(reported == shown, "the guide shows\n{shown}\nbut the output is\n{raw}");
}
