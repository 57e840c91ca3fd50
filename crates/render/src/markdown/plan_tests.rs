//! The comment on a pull request: its content, and that it never becomes too long.

use super::{MARKDOWN_LIMIT, MarkdownOptions, plan_markdown};
use crate::examples::{
    WithNodes as _, change, guarded, new_image, node, outdated, plan, quiet, rollout, updated,
    wrong_disk,
};
use daemonset::model::{Cascade, NodeName, RevisionNumber};
use planner::plan::{
    Action, BaseChange, Change, DaemonSetPlan, FieldChange, Guard, GuardCode, NodePlan, Plan,
    Reason, Warning, Wave,
};
use planner::words::grouped;

/// The zone of `edge-a-01` is `a`.
fn options(plan: &Plan) -> MarkdownOptions {
    let nodes = plan.daemon_sets.iter().flat_map(|it| &it.nodes);
    let zone = |name: &NodeName| name.as_ref().split('-').nth(1).unwrap_or("none").into();
    let zones = nodes.map(|node| (node.name.clone(), zone(&node.name))).collect();
    MarkdownOptions { zones, ..MarkdownOptions::default() }
}

fn shown(plan: &Plan) -> String {
    plan_markdown(plan, &options(plan))
}

fn first_line(plan: &Plan) -> String {
    shown(plan).lines().next().unwrap().to_owned()
}

#[test]
fn a_rollout() {
    insta::assert_snapshot!(shown(&rollout()));
}

#[test]
fn guards_and_warnings() {
    insta::assert_snapshot!(shown(&guarded()));
}

#[test]
fn nothing_to_do_is_one_line() {
    let plan = plan(vec![quiet("logging", "a"), quiet("logging", "b")]);
    insta::assert_snapshot!(shown(&plan), @"**Cluster `prod-eu`: merging `4f2c9e1` changes nothing**: 2 DaemonSets checked. <!-- ds-plan:default -->");
}

#[test]
fn what_the_pull_request_itself_does_stands_apart() {
    let base = |change: Change, changes: Vec<FieldChange>| Some(BaseChange { change, changes });
    let replaced = |name: &str, n: u32| {
        updated(name, vec![new_image(), change("spec.minReadySeconds", 1, 2)]).with_wave(
            1,
            "all nodes",
            (1..=n)
                .map(|n| node(&format!("edge-a-{n}"), Action::Replace, vec![outdated(7)]))
                .collect(),
        )
    };
    let mut own = replaced("own", 3);
    own.base = base(Change::Update, vec![new_image()]);
    let mut older = replaced("older", 2);
    older.base = base(Change::None, vec![]);
    let mut both = plan(vec![own.clone(), older.clone()]);
    both.source.base = Some("0a5b6c7d8e9f00112233445566778899aabbccdd".into());
    insta::assert_snapshot!(shown(&both));
    let mut only_older = plan(vec![older]);
    only_older.source.base.clone_from(&both.source.base);
    insta::assert_snapshot!(first_line(&only_older), @"**Cluster `prod-eu`: merging `4f2c9e1` itself changes nothing.** 1 DaemonSet differs from git already; applying the rest of git replaces 2 pods in 1 DaemonSet.");
}

#[test]
fn the_first_line_is_the_effect_of_merging() {
    let with = |nodes: Vec<NodePlan>| plan(vec![updated("agent", vec![new_image()]).with(nodes)]);
    let act = |action: Action, names: &[&str]| {
        names.iter().map(|name| node(name, action, vec![Reason::NoPod])).collect::<Vec<_>>()
    };
    let lines = [
        with(vec![]),
        with(act(Action::Create, &["a"])),
        with([act(Action::Replace, &["a", "b"]), act(Action::Delete, &["c"])].concat()),
        with(
            [
                act(Action::Surge, &["a", "b"]),
                act(Action::Create, &["c"]),
                act(Action::Delete, &["d"]),
                act(Action::Wait, &["e"]),
            ]
            .concat(),
        ),
        guarded(),
    ]
    .map(|plan| first_line(&plan));
    insta::assert_snapshot!(lines.join("\n"), @"
    **Cluster `prod-eu`: merging `4f2c9e1` updates 1 DaemonSet and touches no pod.**
    **Cluster `prod-eu`: merging `4f2c9e1` creates 1 pod in 1 DaemonSet.**
    **Cluster `prod-eu`: merging `4f2c9e1` deletes 1 pod and replaces 2 in 1 DaemonSet.**
    **Cluster `prod-eu`: merging `4f2c9e1` deletes 1 pod, surges 2 and creates 1 in 1 DaemonSet; 1 node waits.**
    **Cluster `prod-eu`: merging `4f2c9e1` cannot update 1 DaemonSet and touches no pod.** Blocked by 2 guards.
    ");
}

/// Without unfolding anything: the cluster, the risk, the expected time, and what to do about guards.
#[test]
fn equal_guards_are_listed_once_on_the_first_screen() {
    let guard = |name: &str| Guard {
        code: GuardCode::ForceConflicts,
        message: "it takes fields of kubectl".into(),
        allow_flag: Some("--force-conflicts=kubectl".into()),
        daemon_set: Some(format!("logging/{name}")),
        nodes: vec![],
    };
    let mut plan = plan(vec![updated("a", vec![new_image()]), updated("b", vec![new_image()])]);
    plan.guards = vec![guard("a"), guard("b")];
    let text = shown(&plan);
    let (first_screen, _) = text.split_once("| DaemonSet").unwrap();
    insta::assert_snapshot!(first_screen, @"
    **Cluster `prod-eu`: merging `4f2c9e1` updates 2 DaemonSets and touches no pod.** Blocked by 2 guards.

    About 41m (from 1,236 pod starts seen in this cluster).

    **Blocked by 2 guards**

    - 2 DaemonSets (`logging/a`, `logging/b`): it takes fields of kubectl. **Forces conflicts**. To allow it, pass `--force-conflicts=kubectl`.
    ");
}

/// A DaemonSet whose pods are replaced on `nodes` nodes of four zones, some for odd reasons.
#[test]
fn deletions_are_shown_in_the_first_line_and_in_the_table() {
    let gone = |cascade| {
        let mut gone = quiet("logging", "old");
        gone.change = Change::Delete;
        gone.cascade = Some(cascade);
        shown(&plan(vec![gone, updated("agent", vec![new_image()])]))
    };
    for (cascade, line, cell) in [
        (Cascade::Background, "deletes 1 DaemonSet with all pods.**", "| deleted |"),
        (
            Cascade::Orphan,
            "deletes 1 DaemonSet and keeps the pods.**",
            "| deleted, its pods are kept |",
        ),
    ] {
        let shown = gone(cascade);
        let first = shown.lines().next().unwrap();
        assert!(first.contains(line) && first.contains("updates 1 DaemonSet"), "{first}");
        assert!(shown.contains(cell), "{shown}");
    }
}

fn large(name: &str, nodes: u32, fields: usize) -> DaemonSetPlan {
    let changes = (0..fields).map(|n| {
        let path = format!("spec.template.spec.containers[agent].env[VARIABLE_{n}].value");
        change(&path, format!("{}-before", "x".repeat(50)), "after")
    });
    let names = |zone: &str, count: u32| -> Vec<String> {
        (0..count)
            .map(|n| format!("node-{zone}-{n:05}.with.a.name.as.long.as.clouds.make.them"))
            .collect()
    };
    let mut replaced = Vec::new();
    for zone in ["a", "b", "c", "d"] {
        for name in names(zone, nodes / 4) {
            let older = i64::try_from(replaced.len() % 9).unwrap();
            replaced.push(node(&name, Action::Replace, vec![outdated(older)]));
        }
    }
    let odd = names("e", nodes / 50).into_iter().enumerate().map(|(nth, name)| {
        let obstacle = wrong_disk(&format!("disk-{nth}"));
        node(&name, Action::Delete, vec![Reason::NotEligible { obstacle }])
    });
    let odd: Vec<NodePlan> = odd.collect();
    let mut plan = updated(name, changes.collect()).with_wave(1, "all nodes", replaced).with(odd);
    plan.revision.target.number = RevisionNumber(8);
    plan
}

fn warnings(count: usize) -> Vec<Warning> {
    let warning = |n: usize| Warning {
        code: "hostPortClash".into(),
        message: format!("port {n} of {}", "many words ".repeat(40)),
        daemon_set: Some("logging/agent".into()),
        nodes: vec!["node-a-00001".into()],
    };
    (0..count).map(warning).collect()
}

#[test]
fn no_fleet_is_too_large() {
    let many = |sets: u32, nodes: u32, fields: usize| {
        plan((0..sets).map(|n| large(&format!("agent-{n:03}"), nodes, fields)).collect())
    };
    let long = "x".repeat(200_000);
    let mut wordy = many(3, 20, 3);
    wordy.warnings = warnings(500);
    for (case, plan, verbose) in [
        ("5,000 nodes", many(1, 5_000, 3), false),
        ("5,000 nodes, each by name", many(1, 5_000, 3), true),
        ("50,000 nodes", many(1, 50_000, 3), false),
        ("200 DaemonSets", many(200, 20, 3), true),
        ("600 DaemonSets", many(600, 4, 1), false),
        ("many fields", many(1, 8, 5_000), true),
        ("many fields in many DaemonSets", many(40, 8, 100), false),
        (
            "a long value",
            plan(vec![updated("agent", vec![change("spec.a", "b", long.as_str())])]),
            true,
        ),
        ("a long path", plan(vec![updated("agent", vec![change(&long, "b", "c")])]), false),
        ("many warnings", wordy, false),
    ] {
        let text = plan_markdown(&plan, &MarkdownOptions { verbose, ..options(&plan) });
        assert!(text.len() <= MARKDOWN_LIMIT, "{case}: {}", text.len());
        assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
        // Left-out nodes are counted: the totals of all nodes are always shown.
        let replaced = grouped(plan.totals.actions.replace);
        let total = format!(" replaces {replaced}");
        assert!(plan.totals.actions.replace == 0 || text.contains(&total), "{case}: {text}");
    }
}

#[test]
fn left_out_details_are_grouped_by_reason_zone_and_wave() {
    let sets = (0..200).map(|n| large(&format!("agent-{n:03}"), 60, 3));
    let mut plan = plan(sets.collect());
    let text = shown(&plan);
    let sums = |text: &str| {
        let (_, rest) = text.split_once("Details left out for length").unwrap();
        let sums = rest.lines().skip(2).take_while(|line| *line != "</details>");
        sums.collect::<Vec<_>>().join("\n").trim_end().to_owned()
    };
    insta::assert_snapshot!(sums(&text), @"
    `logging/agent-044`, `logging/agent-045`, `logging/agent-046`, `logging/agent-047`, `logging/agent-048` and 151 more

    - nodes: 156 deleted, 9,360 replaced
    - by reason: notEligible 156, outdated 9,360
    - by zone: a 2,340, b 2,340, c 2,340, d 2,340, e 156
    ");
    let (_, rest) = text.split_once("\n\nand ").unwrap();
    insta::assert_snapshot!(rest.lines().next().unwrap(), @"47 more DaemonSets: 47 updated; nodes: 47 deleted, 2,820 replaced.");
    for daemon_set in &mut plan.daemon_sets {
        let first = daemon_set.waves[0].clone();
        daemon_set.waves.push(Wave { index: 2, nodes: vec![first.nodes[0].clone()], ..first });
        daemon_set.nodes[0].wave = Some(2);
    }
    let sums = sums(&shown(&plan));
    assert!(sums.ends_with("\n- by wave: at once 164, wave 1 9,676, wave 2 164"), "{sums}");
}

#[test]
fn where_room_is_short_nodes_are_counted() {
    let sets = (0..45).map(|n| large(&format!("agent-{n:03}"), 40, 300)).collect();
    let text = shown(&plan(sets));
    let (_, block) = text.rsplit_once("<details>").unwrap();
    let (block, _) = block.split_once("</details>").unwrap();
    insta::assert_snapshot!(block);
}

#[test]
fn verbose_lists_every_node_while_there_is_room() {
    let plan = rollout();
    let text = plan_markdown(&plan, &MarkdownOptions { verbose: true, ..options(&plan) });
    assert!(
        text.contains("\n-/+ edge-b-07   pod agent-b-07x deleted: runs revision 7\n"),
        "{text}"
    );
}
