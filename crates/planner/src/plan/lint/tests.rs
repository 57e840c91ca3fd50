//! Every flaw is found.

use std::sync::Arc;

use super::*;
use crate::plan::document::{SharedBudget, StepPlan, StepState, Wave};
use crate::plan::tests::{after, settled};
use daemonset::controller::test_cluster::taint;
use daemonset::model::{PodPhase, RevisionNumber};

/// A new template on six nodes: one pod has failed, one node evicts, one is cordoned.
fn sound() -> Plan {
    let mut cluster = settled(6);
    cluster.pods[3].phase = PodPhase::Failed;
    cluster.nodes[4].taints = [taint("gpu=a100:NoExecute")].into();
    cluster.nodes[5].taints = [taint("gpu=a100:NoSchedule")].into();
    after(&mut cluster, |cluster| cluster.set_image("foo/bar:2"))
}

#[test]
fn the_example_is_correct_and_has_every_case() {
    let plan = sound();
    assert_eq!(lint(&plan), []);
    let actions: Vec<Action> = plan.daemon_sets[0].nodes.iter().map(|it| it.action).collect();
    let (replace, delete) = (Action::Replace, Action::Delete);
    assert_eq!(actions, [replace, replace, replace, replace, delete, delete]);
}

#[test]
fn each_flaw_is_found() {
    type Break = fn(&mut DaemonSetPlan);
    let rows: [(&str, Break, &str); 17] = [
        ("a count is off", |it| it.totals.replace += 1, "Totals, Totals"),
        ("nodes are out of order", |it| it.nodes.swap(0, 1), "Order"),
        (
            "a duplicate node",
            |it| it.nodes.insert(0, it.nodes[0].clone()),
            "Totals, Order, Totals, Wave(\"node-0\"), PodTwice(\"uid-foo-node-0-001\")",
        ),
        (
            "a node without reason",
            |it| it.nodes[0].reasons = Arc::default(),
            "Unreasoned(\"node-0\")",
        ),
        (
            "a pod is deleted without cause",
            |it| it.nodes[0].pods[0].reason = Reason::UpToDate.into(),
            "DeletedWithoutCause(\"node-0\")",
        ),
        (
            "a replaced pod stays",
            |it| it.nodes[0].pods[0].fate = Fate::Keep,
            "Totals, ActionAgainstFates(\"node-0\")",
        ),
        (
            "a kept node loses its pod",
            |it| {
                it.nodes[3].action = Action::Keep;
                it.totals.replace -= 1;
                it.totals.keep += 1;
            },
            "Totals, ActionAgainstFates(\"node-3\")",
        ),
        (
            "a node without its wave",
            |it| it.nodes[0].wave = None,
            "Wave(\"node-0\"), RolledOutsideWaves(\"node-0\")",
        ),
        (
            "a wave without its node",
            |it| it.waves[0].nodes.retain(|node| node.as_str() != "node-0"),
            "Wave(\"node-0\")",
        ),
        (
            "a wave with an unknown node",
            |it| it.waves[0].nodes.push("node-9".into()),
            "Wave(\"node-9\")",
        ),
        (
            "a node twice in a wave",
            |it| it.waves[0].nodes.push("node-1".into()),
            "Wave(\"node-1\")",
        ),
        ("too large a budget", |it| it.waves[0].max_unavailable = 9, "Budget(1)"),
        ("no budget at all", |it| it.waves[0].max_unavailable = 0, "Budget(1)"),
        (
            "a wave with a wrong number",
            |it| {
                it.waves[0].index = 0;
                for node in &mut it.nodes {
                    node.wave = node.wave.map(|_| 0);
                }
            },
            "WaveNumbers",
        ),
        ("an update of nothing", |it| it.changes.clear(), "Change"),
        ("an unguarded recreation", |it| it.change = Change::Recreate, "Change"),
        ("a lower revision number", |it| it.revision.target.number = RevisionNumber(0), "Change"),
    ];
    for (rule, break_it, want) in rows {
        let mut plan = sound();
        break_it(&mut plan.daemon_sets[0]);
        let flaws: Vec<String> =
            lint(&plan).iter().map(|note| format!("{:?}", note.flaw)).collect();
        assert_eq!(flaws.join(", "), want, "{rule}");
    }
}

#[test]
fn wrong_sums_are_found() {
    let mut plan = sound();
    plan.totals.revisions.new += 1;
    let note = Note { daemon_set: None, flaw: Flaw::Totals };
    assert_eq!(lint(&plan), [note]);
}

/// A rollout in two steps over two domains: the canary is updated on none of its two nodes.
fn stepped() -> Plan {
    let mut plan = after(&mut settled(6), |cluster| cluster.set_image("foo/bar:2"));
    let one = &mut plan.daemon_sets[0];
    let whole = one.waves[0].clone();
    let step = |name: &str, nodes| StepPlan {
        name: name.to_owned(),
        nodes,
        updated: 0,
        state: StepState::Pending,
        approve: false,
        approved: None,
        soak_seconds: 0,
    };
    one.steps = vec![step("canary", 2), step("rest", 6)];
    let parts =
        [("canary", "a", 0..1), ("canary", "b", 1..2), ("rest", "a", 2..4), ("rest", "b", 4..6)];
    let wave = |(index, (step, domain, nodes)): (u32, (&str, &str, std::ops::Range<usize>))| Wave {
        index,
        step: Some(step.to_owned()),
        domain: Some(domain.to_owned()),
        domain_max_unavailable: Some(1),
        domains_at_once: Some(1),
        soak_seconds: 60,
        nodes: whole.nodes[nodes].to_vec(),
        ..whole.clone()
    };
    one.waves = (1..).zip(parts).map(wave).collect();
    for node in &mut one.nodes {
        let wave = one.waves.iter().find(|wave| wave.nodes.contains(&node.name));
        node.wave = wave.map(|wave| wave.index);
    }
    plan
}

#[test]
fn each_flaw_of_steps_is_found() {
    type Break = fn(&mut DaemonSetPlan);
    let rows: [(&str, Break, &str); 15] = [
        ("nothing is wrong", |_| {}, ""),
        (
            "a step that the plan does not have",
            |it| it.waves[3].step = Some("last".to_owned()),
            "WaveStep(4)",
        ),
        ("no step", |it| it.waves[3].step = None, "WaveStep(4)"),
        (
            "a step that is done",
            |it| it.steps[0].state = StepState::Done,
            "WaveStep(1), WaveStep(2)",
        ),
        (
            "a wave of a later step comes first",
            |it| {
                it.waves[0].step = Some("rest".to_owned());
                it.waves[0].domain = Some("c".to_owned());
            },
            "StepOrder(2)",
        ),
        (
            "two waves of one step and domain",
            |it| it.waves[1].domain = Some("a".to_owned()),
            "StepOrder(2)",
        ),
        ("more domains at once", |it| it.waves[2].domains_at_once = Some(2), "Domains(3)"),
        ("another soak", |it| it.waves[2].soak_seconds = 0, "Domains(3)"),
        ("another limit", |it| it.waves[2].domain_max_unavailable = Some(2), "Domains(3)"),
        (
            "no limit of any domain",
            |it| it.waves[0].domains_at_once = Some(0),
            "Domains(1), Domains(2), Domains(3), Domains(4)",
        ),
        ("two domains next, one at once", |it| it.next_waves = vec![1, 2], "NextDomains(2)"),
        (
            "two domains next that are disturbed",
            |it| {
                it.next_waves = vec![1, 2];
                it.status.as_mut().unwrap().unavailable = 2;
            },
            "",
        ),
        ("too many nodes", |it| it.steps[0].nodes = 1, "StepNodes(\"canary\")"),
        ("more nodes are updated than it has", |it| it.steps[1].updated = 7, "StepNodes(\"rest\")"),
        ("a step loses nodes", |it| it.steps[0].nodes = 7, "StepNodes(\"rest\")"),
    ];
    for (rule, break_it, want) in rows {
        let mut plan = stepped();
        break_it(&mut plan.daemon_sets[0]);
        let flaws: Vec<String> =
            lint(&plan).iter().map(|note| format!("{:?}", note.flaw)).collect();
        assert_eq!(flaws.join(", "), want, "{rule}");
    }
}

#[test]
fn each_flaw_of_a_shared_budget_is_found() {
    type Break = fn(&mut DaemonSetPlan);
    let rows: [(&str, Break, &str); 6] = [
        ("nothing is wrong", |_| {}, ""),
        ("a wave without it", |it| it.waves[0].shared_budget = None, "SharedBudget(1)"),
        ("a wave with more", |it| it.waves[1].shared_budget = Some(3), "SharedBudget(2)"),
        (
            "no node at all",
            |it| {
                it.waves.iter_mut().for_each(|wave| wave.shared_budget = Some(0));
                it.shared_budget.as_mut().unwrap().nodes = 0;
            },
            "SharedBudget(0)",
        ),
        (
            "it does not share it itself",
            |it| drop(it.shared_budget.as_mut().unwrap().daemon_sets.remove(0)),
            "SharedBudget(0)",
        ),
        (
            "it is listed twice",
            |it| {
                let shared = it.shared_budget.as_mut().unwrap();
                shared.daemon_sets.push(shared.daemon_sets[0].clone());
            },
            "SharedBudget(0)",
        ),
    ];
    for (rule, break_it, want) in rows {
        let mut plan = stepped();
        let one = &mut plan.daemon_sets[0];
        let daemon_sets = vec![one.key().to_string(), "n/other".to_owned()];
        one.shared_budget = Some(SharedBudget { nodes: 2, daemon_sets });
        one.waves.iter_mut().for_each(|wave| wave.shared_budget = Some(2));
        break_it(one);
        let flaws: Vec<String> =
            lint(&plan).iter().map(|note| format!("{:?}", note.flaw)).collect();
        assert_eq!(flaws.join(", "), want, "{rule}");
    }
}

/// The linter knows only the document: a step before the surge may not surge, and the last may not
/// make nodes unavailable.
#[test]
fn flaws_of_steps_before_a_surge_are_found() {
    type Break = fn(&mut DaemonSetPlan);
    let rows: [(&str, Break, &str); 5] = [
        ("nothing is wrong", |_| {}, ""),
        ("the canary surges", |it| it.waves[0].max_surge = 1, "Budget(1)"),
        ("the canary has no budget", |it| it.waves[0].max_unavailable = 0, "Budget(1)"),
        ("the rest is unavailable", |it| it.waves[2].max_unavailable = 1, "Budget(3)"),
        ("the rest surges too far", |it| it.waves[2].max_surge = 3, "Budget(3)"),
    ];
    for (rule, break_it, want) in rows {
        let mut plan = stepped();
        let one = &mut plan.daemon_sets[0];
        one.strategy = Strategy::RollingUpdate { max_unavailable: 0, max_surge: 2, desired: 6 };
        for wave in &mut one.waves[2..] {
            (wave.max_unavailable, wave.max_surge) = (0, 2);
        }
        break_it(one);
        let flaws: Vec<String> =
            lint(&plan).iter().map(|note| format!("{:?}", note.flaw)).collect();
        assert_eq!(flaws.join(", "), want, "{rule}");
    }
}
