//! Plans as text: each kind of plan once.

mod field_changes;

use crate::examples::past::pause;
use crate::examples::{
    WithNodes as _, guarded, new_image, node, outdated, plan, quiet, rollout, stepped, updated,
    wrong_disk, zone,
};
use crate::{
    HtmlOptions, MarkdownOptions, TextOptions, plan_html, plan_markdown, plan_name, plan_text,
};
use daemonset::model::RevisionNumber;
use planner::plan::{
    Action, Change, DaemonSetPlan, NodePlan, PauseState, Plan, Reason, RevisionKind, Strategy,
};

fn text(plan: &Plan) -> String {
    plan_text(plan, &TextOptions::default())
}

fn verbose(plan: &Plan) -> String {
    plan_text(plan, &TextOptions { verbose: true, ..TextOptions::default() })
}

#[test]
fn a_rollout() {
    insta::assert_snapshot!(text(&rollout()), @"
    ds-plan  3 DaemonSets at 4f2c9e1 in deploy/prod; cluster prod-eu v1.36.3, 412 nodes
    Symbols: ~ changed, + created, - deleted, -/+ replaced, ! waiting

    ~ DaemonSet logging/fluent-bit   revision 7 -> 8 (new)   RollingUpdate, at most 42 of 412 unavailable
        ~ spec.template.spec.containers[fluent-bit].image
            - cr.example/fluent-bit:3.1
            + cr.example/fluent-bit:3.2
        409 nodes   -/+ edge-a-01 … edge-a-137 (137), edge-b-01 … edge-b-274 (272), first edge-a-01 alone, then 2, 4 and so on, at most 42 at a time; the first new pod must stay up for 10s
        + edge-c-77   node has no pod yet
        - edge-b-13   nodeSelector disk=ssd does not match (node has disk=hdd)
        ! edge-b-19   node NotReady for 3h3m: skipped; its pod is replaced when the node is Ready again

    Nothing to do for 2 other DaemonSets: kube-system/kube-proxy, monitoring/node-exporter

    Plan: 1 to create, 1 to delete, 409 to replace, 0 to surge, 1 waiting. Revisions: 1 new, 0 reused.
    About 41m (from 1,236 pod starts seen in this cluster).
    ");
}

#[test]
fn a_rollout_by_steps() {
    insta::assert_snapshot!(text(&stepped()));
    let verbose = verbose(&stepped());
    assert!(verbose.contains("wave 2 rest, zone-b"), "{verbose}");
    assert!(!text(&stepped()).contains("wave 2"), "only with --verbose");
}

/// `ip-10-0-0-1 … ip-10-0-19-20` would suggest thousands of nodes.
#[test]
fn zones_are_counted_where_ranges_of_names_would_mislead() {
    let addresses = |action: Action, reason: &Reason| -> Vec<NodePlan> {
        let names = (0..60).map(|n| format!("ip-10-0-{}-{}", n % 20, n / 3 + 1));
        names.map(|name| node(&name, action, vec![reason.clone()])).collect()
    };
    let in_wave = updated("agent", vec![new_image()]).with_wave(
        1,
        "all nodes",
        addresses(Action::Replace, &outdated(7)),
    );
    let at_once = updated("other", vec![]).with(addresses(Action::Create, &Reason::NoPod));
    let mut plan = plan(vec![in_wave, at_once]);
    let lines = |plan: &Plan| -> String {
        let text = text(plan);
        text.lines().filter(|line| line.contains("60 nodes")).collect::<Vec<_>>().join("\n")
    };
    let unknown = lines(&plan);
    let nodes = plan.daemon_sets[0].nodes.iter().map(|node| node.name.clone());
    let zone = |nth: usize| ["a", "b", "c"][nth % 3].into();
    plan.cluster.zones = nodes.enumerate().map(|(nth, node)| (node, zone(nth))).collect();
    insta::assert_snapshot!(format!("{unknown}\n{}", lines(&plan)), @"
    60 nodes   -/+, first ip-10-0-0-1 alone, then 2, 4 and so on, at most 29 at a time; the first new pod must stay up for 10s
    + 60 nodes   node has no pod yet
    60 nodes   -/+ in 3 zones, first ip-10-0-0-1 alone, then 2, 4 and so on, at most 29 at a time; the first new pod must stay up for 10s
    + 60 nodes in 3 zones   node has no pod yet
    ");
}

#[test]
fn nothing_to_do_is_one_line() {
    let none = plan(vec![quiet("logging", "fluent-bit"), quiet("kube-system", "kube-proxy")]);
    insta::assert_snapshot!(text(&none), @r"
        Plan: nothing to do. 2 DaemonSets at 4f2c9e1 in deploy/prod; cluster prod-eu v1.36.3, 412 nodes
        ");
    assert_eq!(text(&none).lines().count(), 1);
    assert_eq!(plan_name(&none), "");
}

/// All pods were replaced, and the run was killed before it restored the strategy.
#[test]
fn a_pause_that_only_has_to_end_is_not_nothing_to_do() {
    let mut paused = quiet("logging", "fluent-bit");
    paused.pause = Some(pause(PauseState::Paused));
    assert!(paused.has_changes());
    let mut plan = plan(vec![paused]);
    plan.forecast = None;
    insta::assert_snapshot!(text(&plan), @"
    ds-plan  1 DaemonSet at 4f2c9e1 in deploy/prod; cluster prod-eu v1.36.3, 412 nodes

      DaemonSet logging/fluent-bit (unchanged)   revision 7   RollingUpdate, at most 42 of 412 unavailable
        paused by ci@runner-7 since 2026-08-01T11:00:00Z, commit 4f2c9e1, from revision 7; all pods are up to date: `ds-apply` only restores the update strategy

    Plan: 0 to create, 0 to delete, 0 to replace, 0 to surge, 0 waiting. Revisions: 0 new, 0 reused. Pauses: 1 to end.
    ");
}

#[test]
fn surplus_pods_are_counted_as_well() {
    let mut rollout = rollout();
    rollout.totals.deleted_pods = 412;
    let totals = text(&rollout).lines().rev().nth(1).unwrap().to_owned();
    insta::assert_snapshot!(totals, @"Plan: 1 to create, 1 to delete, 409 to replace, 0 to surge, 1 waiting (412 pods deleted). Revisions: 1 new, 0 reused.");
}

#[test]
fn warnings_are_below_nothing_to_do() {
    let mut none = plan(vec![quiet("logging", "fluent-bit")]);
    none.warnings = guarded().warnings;
    insta::assert_snapshot!(text(&none), @r"
        Plan: nothing to do. 1 DaemonSet at 4f2c9e1 in deploy/prod; cluster prod-eu v1.36.3, 412 nodes

        Warning: the snapshot has no managed fields: leftovers and conflicts are undecided
        ");
}

#[test]
fn guards_name_the_flag_to_pass() {
    insta::assert_snapshot!(text(&guarded()), @"
    ds-plan  1 DaemonSet at 4f2c9e1 in deploy/prod; cluster prod-eu v1.36.3, 412 nodes
    Symbols: ~ changed

    ! DaemonSet logging/agent (must be deleted and recreated)   revision 7 -> 8 (new)   RollingUpdate, at most 42 of 412 unavailable
        ~ spec.selector.matchLabels.app
            - agent
            + agent-v2

    Blocked: logging/agent: spec.selector is immutable. No flag allows it.
    Blocked: logging/agent: 3 pods would be evicted at once (3 nodes: edge-a-01 … edge-a-03). To allow it, pass --allow-mass-eviction.
    Warning: the snapshot has no managed fields: leftovers and conflicts are undecided

    Plan: 0 to create, 0 to delete, 0 to replace, 0 to surge, 0 waiting. Revisions: 1 new, 0 reused.
    About 41m (from 1,236 pod starts seen in this cluster).
    ");
}

#[test]
fn a_new_daemon_set() {
    let mut new = quiet("monitoring", "gpu-exporter").with(
        ["gpu-1", "gpu-2", "gpu-3"].map(|name| node(name, Action::Create, vec![Reason::NoPod])),
    );
    (new.change, new.status) = (Change::Create, None);
    new.strategy = Strategy::RollingUpdate { max_unavailable: 1, max_surge: 0, desired: 3 };
    (new.revision.current, new.revision.kind) = (None, RevisionKind::New);
    new.revision.target.number = RevisionNumber(1);
    insta::assert_snapshot!(text(&plan(vec![new])), @"
    ds-plan  1 DaemonSet at 4f2c9e1 in deploy/prod; cluster prod-eu v1.36.3, 412 nodes
    Symbols: + created

    + DaemonSet monitoring/gpu-exporter   revision 1 (new)   RollingUpdate, at most 1 of 3 unavailable
        + 3 nodes: gpu-1 … gpu-3   node has no pod yet

    Plan: 3 to create, 0 to delete, 0 to replace, 0 to surge, 0 waiting. Revisions: 1 new, 0 reused.
    About 41m (from 1,236 pod starts seen in this cluster).
    ");
}

#[test]
fn a_wave_of_different_pods_groups_them() {
    let mixed = updated("agent", vec![new_image()]).with_wave(
        1,
        "all nodes",
        [
            zone("a", 40, &[], Action::Replace, &outdated(7)),
            zone("b", 12, &[], Action::Replace, &outdated(6)),
            zone(
                "c",
                1,
                &[],
                Action::Delete,
                &Reason::DeletedNotRecreated { obstacle: wrong_disk("hdd") },
            ),
        ]
        .concat(),
    );
    insta::assert_snapshot!(text(&plan(vec![mixed])), @"
    ds-plan  1 DaemonSet at 4f2c9e1 in deploy/prod; cluster prod-eu v1.36.3, 412 nodes
    Symbols: ~ changed, - deleted, -/+ replaced

    ~ DaemonSet logging/agent   revision 7 -> 8 (new)   RollingUpdate, at most 42 of 412 unavailable
        ~ spec.template.spec.containers[fluent-bit].image
            - cr.example/fluent-bit:3.1
            + cr.example/fluent-bit:3.2
        53 nodes, first edge-a-01 alone, then 2, 4 and so on, at most 22 at a time; the first new pod must stay up for 10s
            -   edge-c-01                         deleted, not recreated: nodeSelector disk=ssd does not match (node has disk=hdd)
            -/+ 40 nodes: edge-a-01 … edge-a-40   runs revision 7
            -/+ 12 nodes: edge-b-01 … edge-b-12   runs revision 6

    Plan: 0 to create, 1 to delete, 52 to replace, 0 to surge, 0 waiting. Revisions: 1 new, 0 reused.
    About 41m (from 1,236 pod starts seen in this cluster).
    ");
}

#[test]
fn a_wave_of_deletes_has_no_new_pods() {
    let reason = Reason::DeletedNotRecreated { obstacle: wrong_disk("hdd") };
    let gone = zone("c", 2, &[], Action::Delete, &reason);
    let gone = updated("agent", vec![new_image()]).with_wave(1, "all nodes", gone);
    let text = text(&plan(vec![gone]));
    assert!(text.contains("    2 nodes, at most 1 at a time\n"), "{text}");
}

#[test]
fn waves_with_names() {
    let mut surging = updated("agent", vec![new_image()]);
    surging.strategy = Strategy::RollingUpdate { max_unavailable: 0, max_surge: 5, desired: 412 };
    surging.revision.kind = RevisionKind::Reused;
    let surging = surging
        .with_wave(1, "canary", zone("a", 1, &[], Action::Surge, &outdated(7)))
        .with_wave(2, "rest", zone("b", 40, &[], Action::Surge, &outdated(7)));
    insta::assert_snapshot!(text(&plan(vec![surging])), @"
    ds-plan  1 DaemonSet at 4f2c9e1 in deploy/prod; cluster prod-eu v1.36.3, 412 nodes
    Symbols: ~ changed, +/- surged (new pod before old)

    ~ DaemonSet logging/agent   revision 7 -> 8 (reused)   RollingUpdate, new pod before old on at most 5 of 412 at a time
        ~ spec.template.spec.containers[fluent-bit].image
            - cr.example/fluent-bit:3.1
            + cr.example/fluent-bit:3.2
        wave 1 canary   1 node     +/- edge-a-01; its new pod must stay up for 10s
        wave 2 rest     40 nodes   +/- edge-b-01 … edge-b-40, at most 5 at a time; the first new pod must stay up for 10s

    Plan: 0 to create, 0 to delete, 0 to replace, 41 to surge, 0 waiting. Revisions: 0 new, 1 reused.
    About 41m (from 1,236 pod starts seen in this cluster).
    ");
}

/// No output for people names the only wave.
#[test]
fn a_single_wave_is_not_mentioned() {
    let waves = |count: usize| {
        let members = |wave| zone(["a", "b"][wave], 3, &[], Action::Replace, &outdated(7));
        let named = |daemon_set: DaemonSetPlan, wave: usize| {
            daemon_set.with_wave(u32::try_from(wave).unwrap() + 1, "zone", members(wave))
        };
        let create = [node("edge-c-77", Action::Create, vec![Reason::NoPod])];
        plan(vec![(0..count).fold(updated("agent", vec![]), named).with(create)])
    };
    let outputs = |plan: &Plan| {
        let html = plan_html(plan, &HtmlOptions::default()).unwrap();
        let (html, _scripts) = html.split_once("<script>").unwrap();
        let data = html.replace("\"wave\"", "");
        [text(plan), verbose(plan), plan_markdown(plan, &MarkdownOptions::default()), data]
    };
    for (count, mentioned) in [(0, false), (1, false), (2, true)] {
        for output in outputs(&waves(count)) {
            assert_eq!(output.to_lowercase().contains("wave"), mentioned, "{count}: {output}");
        }
    }
}

#[test]
fn immediate_changes_of_the_controller_to_an_unchanged_daemon_set() {
    let failed = vec![Reason::Failed, Reason::MayBeDelayed];
    let surplus =
        |name: &str| vec![Reason::Surplus { kept: format!("agent-{name}").as_str().into() }];
    let mut recovering = quiet("logging", "agent")
        .with(zone("a", 3, &[], Action::Replace, &Reason::Succeeded))
        .with([node("edge-b-07", Action::Replace, failed)])
        .with((1..=9).map(|n| {
            let name = format!("edge-c-{n}");
            node(&name, Action::Delete, surplus(&name))
        }));
    recovering.strategy = Strategy::OnDelete;
    insta::assert_snapshot!(text(&plan(vec![recovering])), @"
    ds-plan  1 DaemonSet at 4f2c9e1 in deploy/prod; cluster prod-eu v1.36.3, 412 nodes
    Symbols: - deleted, -/+ replaced

      DaemonSet logging/agent (unchanged)   revision 7   OnDelete, a pod is replaced by `ds-apply roll`, or after it is deleted
        -   9 nodes: edge-c-1 … edge-c-9     surplus pod: agent-edge-c-1 is older and is kept (8 with other details, -v shows them)
        -/+ 3 nodes: edge-a-01 … edge-a-03   pod completed (phase Succeeded)
        -/+ edge-b-07                        pod failed; may be delayed: the controller backs off after each failure

    Plan: 0 to create, 9 to delete, 4 to replace, 0 to surge, 0 waiting. Revisions: 0 new, 0 reused.
    About 41m (from 1,236 pod starts seen in this cluster).
    ");
}

#[test]
fn on_delete_waits() {
    let mut waiting = updated("agent", vec![new_image()]).with(zone(
        "a",
        30,
        &[],
        Action::Wait,
        &Reason::OnDelete,
    ));
    waiting.strategy = Strategy::OnDelete;
    insta::assert_snapshot!(text(&plan(vec![waiting])), @"
    ds-plan  1 DaemonSet at 4f2c9e1 in deploy/prod; cluster prod-eu v1.36.3, 412 nodes
    Symbols: ~ changed, ! waiting

    ~ DaemonSet logging/agent   revision 7 -> 8 (new)   OnDelete, a pod is replaced by `ds-apply roll`, or after it is deleted
        ~ spec.template.spec.containers[fluent-bit].image
            - cr.example/fluent-bit:3.1
            + cr.example/fluent-bit:3.2
        ! 30 nodes: edge-a-01 … edge-a-30   strategy OnDelete: replaced by `ds-apply roll`, or after it is deleted

    Plan: 0 to create, 0 to delete, 0 to replace, 0 to surge, 30 waiting. Revisions: 1 new, 0 reused.
    About 41m (from 1,236 pod starts seen in this cluster).
    ");
}

#[test]
fn verbose_lists_every_node() {
    let small = updated("agent", vec![new_image()])
        .with_wave(1, "all nodes", zone("a", 3, &[], Action::Replace, &outdated(7)))
        .with([node("edge-c-77", Action::Create, vec![Reason::NoPod])]);
    insta::assert_snapshot!(verbose(&plan(vec![small, quiet("kube-system", "kube-proxy")])), @"
    ds-plan  2 DaemonSets at 4f2c9e1d0a5b6c7d8e9f00112233445566778899 in deploy/prod of https://git.example/fleet; cluster prod-eu v1.36.3, 412 nodes
    plan sha256:6fd1, made by ds-plan 0.1.0 at 2026-08-01T12:00:00Z
    Symbols: ~ changed, + created, -/+ replaced

    ~ DaemonSet logging/agent   revision 7 -> 8 (new)   RollingUpdate, at most 42 of 412 unavailable
        ControllerRevision from agent-5f6d
        now 412 desired, 411 current, 410 ready, 411 up to date, 410 available, 2 unavailable, 1 misscheduled
        ~ spec.template.spec.containers[fluent-bit].image
            - cr.example/fluent-bit:3.1
            + cr.example/fluent-bit:3.2
        3 nodes, first edge-a-01 alone, then 2; the first new pod must stay up for 10s
            -/+ 3 nodes: edge-a-01 … edge-a-03   runs revision 7
                edge-a-01   pod agent-a-01x deleted: runs revision 7
                edge-a-02   pod agent-a-02x deleted: runs revision 7
                edge-a-03   pod agent-a-03x deleted: runs revision 7
        + edge-c-77   node has no pod yet
            edge-c-77

    Nothing to do for 1 other DaemonSet: kube-system/kube-proxy

    Plan: 1 to create, 0 to delete, 3 to replace, 0 to surge, 0 waiting. Revisions: 1 new, 0 reused.
    About 41m (from 1,236 pod starts seen in this cluster).
    ");
}

#[test]
fn a_narrow_terminal_breaks_words_not_values() {
    let narrow = TextOptions { width: Some(72), ..TextOptions::default() };
    insta::assert_snapshot!(plan_text(&rollout(), &narrow), @"
    ds-plan  3 DaemonSets at 4f2c9e1 in deploy/prod; cluster prod-eu
          v1.36.3, 412 nodes
    Symbols: ~ changed, + created, - deleted, -/+ replaced, ! waiting

    ~ DaemonSet logging/fluent-bit   revision 7 -> 8 (new)   RollingUpdate,
          at most 42 of 412 unavailable
        ~ spec.template.spec.containers[fluent-bit].image
            - cr.example/fluent-bit:3.1
            + cr.example/fluent-bit:3.2
        409 nodes   -/+ edge-a-01 … edge-a-137 (137), edge-b-01 … edge-b-274
              (272), first edge-a-01 alone, then 2, 4 and so on, at most 42
              at a time; the first new pod must stay up for 10s
        + edge-c-77   node has no pod yet
        - edge-b-13   nodeSelector disk=ssd does not match (node has
              disk=hdd)
        ! edge-b-19   node NotReady for 3h3m: skipped; its pod is replaced
              when the node is Ready again

    Nothing to do for 2 other DaemonSets: kube-system/kube-proxy,
          monitoring/node-exporter

    Plan: 1 to create, 1 to delete, 409 to replace, 0 to surge, 1 waiting. Revisions: 1 new, 0 reused.
    About 41m (from 1,236 pod starts seen in this cluster).
    ");
}

#[test]
fn colour_adds_nothing_but_colour() {
    for plan in [rollout(), guarded()] {
        let colored = plan_text(&plan, &TextOptions { color: true, ..TextOptions::default() });
        assert!(
            colored.contains("\u{1b}[32m+\u{1b}[0m") || colored.contains("\u{1b}[33m~\u{1b}[0m")
        );
        assert_eq!(anstream::adapter::strip_str(&colored).to_string(), text(&plan));
    }
}

#[test]
fn names_are_those_that_change() {
    assert_eq!(plan_name(&rollout()), "logging/fluent-bit\n");
    let waits = node("edge-a-01", Action::Wait, vec![Reason::OnDelete]);
    assert_eq!(plan_name(&plan(vec![quiet("gpu", "plugin").with(vec![waits])])), "");
}

#[test]
fn nodes_that_keep_their_pods_are_shown_if_requested() {
    let all = plan(vec![quiet("logging", "agent").with(zone(
        "a",
        412,
        &[],
        Action::Keep,
        &Reason::UpToDate,
    ))]);
    insta::assert_snapshot!(text(&all), @"
    Plan: nothing to do. 1 DaemonSet at 4f2c9e1 in deploy/prod; cluster prod-eu v1.36.3, 412 nodes

      DaemonSet logging/agent (unchanged)   revision 7   RollingUpdate, at most 42 of 412 unavailable
        412 nodes: edge-a-01 … edge-a-412   runs the target revision
    ");
    assert_eq!(plan_name(&all), "");
}

#[test]
fn what_comes_before_is_said_in_every_format() {
    let mut plan = rollout();
    for (after, names) in [
        (vec![], None),
        (vec!["net/cni"], Some("net/cni")),
        (vec!["net/cni", "net/proxy"], Some("net/cni, net/proxy")),
    ] {
        plan.daemon_sets.iter_mut().for_each(|one| one.after.clear());
        let changed = plan.daemon_sets.iter_mut().find(|one| one.has_changes()).unwrap();
        changed.after = after.iter().map(ToString::to_string).collect();
        let html = plan_html(&plan, &HtmlOptions { nodes: &[], verbose: false }).unwrap();
        let markdown = plan_markdown(&plan, &MarkdownOptions::default());
        for (page, before, end) in [
            (text(&plan), "    After ", ".\n"),
            (markdown, "after `", "`\n"),
            (html, "<li>after ", "</li>"),
        ] {
            let said = page.split_once(before).and_then(|(_, rest)| rest.split_once(end));
            assert_eq!(said.map(|(names, _)| names), names, "{page}");
        }
    }
}
