//! Tests of steps, domains, soaks and waits, as tables on small clusters.

mod approvals;
mod empty;

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::*;
use daemonset::controller::test_cluster::{at, node};
use daemonset::model::{Labels, NodeReadiness, StepNote};

/// The state of one node in a test.
#[derive(Clone, Copy)]
enum Is {
    /// Outdated, of the last good template.
    Old,
    /// Outdated, of an intermediate version.
    Intermediate,
    /// The same, and not available.
    Broken,
    /// In progress.
    Going,
    /// Updated, available since this second.
    New(i64),
    /// The same, on a node that is not Ready, but counted.
    Counted(i64),
    /// Outdated, on a node that is skipped.
    Skipped,
}

use Is::{Broken, Counted, Going, Intermediate, New, Old, Skipped};

/// A cluster: names with their zones and states.
struct World {
    nodes: Vec<(Node, Is)>,
    policy: PolicySpec,
    note: Option<StepsNote>,
    gates_passed: BTreeMap<String, Timestamp>,
    approved: BTreeSet<String>,
    is_target_live: bool,
    now: i64,
    /// The fraction of the second.
    millis: i64,
}

/// Nodes named after their zone: `a-0`, `a-1`, `b-0`.
fn world(policy: Value, zones: &[(&str, &[Is])]) -> World {
    let mut nodes = Vec::new();
    for (zone, states) in zones {
        for (number, is) in states.iter().enumerate() {
            let mut node = node(&format!("{zone}-{number}"), &[], &[]);
            node.labels =
                [("zone", *zone), ("number", &number.to_string())].into_iter().collect::<Labels>();
            if matches!(is, Skipped) {
                node.readiness = NodeReadiness::Unknown { since: None };
            }
            nodes.push((node, *is));
        }
    }
    let mut policy = policy;
    policy["selects"] = json!({"names": ["a/b"]});
    let policy = serde_json::from_value(policy).unwrap();
    World {
        nodes,
        policy,
        note: None,
        gates_passed: BTreeMap::new(),
        approved: BTreeSet::new(),
        is_target_live: true,
        now: 1_000,
        millis: 0,
    }
}

impl World {
    fn evaluated<T>(&self, look: impl FnOnce(&Evaluation<'_>, &[StepNode<'_>]) -> T) -> T {
        let nodes: Vec<StepNode<'_>> = self
            .nodes
            .iter()
            .map(|(node, is)| StepNode {
                shared: NodeRank::default(),
                node,
                is_desired: true,
                standing: match is {
                    Skipped => NodeStanding::Skipped,
                    Counted(_) => NodeStanding::Counted,
                    Old | Intermediate | Broken | Going | New(_) => NodeStanding::Ready,
                },
                is_unavailable: matches!(is, Going | Broken),
                update: match is {
                    Old | Skipped => NodeUpdate::Outdated { is_intermediate: false },
                    Intermediate | Broken => NodeUpdate::Outdated { is_intermediate: true },
                    Going => NodeUpdate::InProgress,
                    New(since) | Counted(since) => {
                        NodeUpdate::Updated { since: Some(at(*since).into()) }
                    }
                },
                restarts: 0,
                pod_created: None,
                lacks_images: false,
            })
            .collect();
        let calendar = Calendar::of(&self.policy.windows, &self.policy.exclusions);
        let input = StepsInput {
            nodes: &nodes,
            calendar: &calendar,
            policy: &self.policy,
            template: "t",
            note: self.note.as_ref(),
            approved: &self.approved,
            is_target_live: self.is_target_live,
            gates_passed: &self.gates_passed,
            now: at(self.now) + SignedDuration::from_millis(self.millis),
            node_seconds: 60,
        };
        look(&evaluate(&input), &nodes)
    }

    /// The nodes that may begin, and what is waited for.
    fn next(&self) -> String {
        self.evaluated(|evaluation, nodes| {
            let may = (0..nodes.len()).filter(|at| evaluation.may_begin(*at));
            let names = may.map(|at| nodes[at].node.name.to_string());
            let waits = evaluation.waits_for.iter().map(ToString::to_string);
            names.chain(waits).collect::<Vec<_>>().join(" ")
        })
    }

    /// Notes what the evaluation says.
    fn noted(&mut self) -> &mut Self {
        self.note = Some(self.evaluated(|evaluation, _| evaluation.note.clone()));
        self
    }

    fn set(&mut self, name: &str, is: Is) {
        let node = self.nodes.iter_mut().find(|(node, _)| node.name == name).unwrap();
        node.1 = is;
    }

    /// The nodes of a step, with those of earlier ones.
    fn waves(&self) -> Vec<String> {
        self.evaluated(|evaluation, nodes| {
            let mut waves: Vec<(WaveId, &str)> = Vec::new();
            for (at, wave) in evaluation.waves.iter().enumerate() {
                waves.extend(wave.map(|wave| (wave, nodes[at].node.name.as_str())));
            }
            waves.sort();
            let names = |wave: &WaveId| {
                let domain = evaluation.domains[wave.domain].name.name().unwrap_or("all");
                format!("{}/{domain}", evaluation.steps[wave.step].name())
            };
            waves.iter().map(|(wave, node)| format!("{} {node}", names(wave))).collect()
        })
    }
}

fn time(second: i64) -> Timestamp {
    at(second)
}

#[test]
fn without_steps_and_domains_all_nodes_may_begin() {
    let world = world(json!({}), &[("a", &[Old, New(0), Going, Skipped])]);
    assert_eq!(world.next(), "a-0 a-3");
    assert!(!needs_note(&world.policy));
}

#[test]
fn steps_come_one_after_the_other_and_soak() {
    let steps = json!({"steps": [
        {"name": "canary", "nodes": {"names": ["a-1"]}, "soak": "60s"},
        {"name": "half", "nodes": "50%"},
    ]});
    let mut world = world(steps, &[("a", &[Old, Old, Old, Old])]);
    assert_eq!(world.next(), "a-1");
    world.set("a-1", Going);
    assert_eq!(world.next(), "", "the other nodes wait for the canary");
    world.set("a-1", New(990));
    let soaks = "step canary soaks until 1970-01-01T00:17:40Z";
    assert_eq!(world.next(), soaks, "since it was seen complete, at second 1000");
    world.noted().now = 1_059;
    assert_eq!(world.next(), soaks);
    world.now = 1_060;
    let half = world.next();
    assert_eq!(half.split(' ').count(), 1, "{half}");
    world.noted().set(&half, New(1_060));
    // `half` has no soak: it is done at once.
    assert_eq!(world.next().split(' ').count(), 2);
}

#[test]
fn a_pod_that_restarts_begins_its_soak_again() {
    let steps = json!({"steps": [{"name": "canary", "nodes": 1, "soak": "60s"}]});
    let mut world = world(steps, &[("a", &[New(900), Old])]);
    world.noted().now = 1_059;
    world.set("a-0", New(1_030));
    assert_eq!(world.next(), "step canary soaks until 1970-01-01T00:18:10Z");
    world.noted().now = 1_090;
    assert_eq!(world.next(), "a-1");
}

/// Times of pods are in whole seconds of another clock: they may be later than now.
#[test]
fn a_kubelet_whose_clock_is_ahead_holds_no_step_without_a_soak() {
    let steps = json!({"steps": [
        {"name": "first", "nodes": 1},
        {"name": "canary", "nodes": 2, "soak": "60s"},
    ]});
    let mut world = world(steps, &[("a", &[New(1_001), Old, Old])]);
    let canary = world.next();
    assert!(["a-1", "a-2"].contains(&&*canary), "{canary}");
    world.noted().set(&canary, New(1_030));
    assert_eq!(world.next(), "step canary soaks until 1970-01-01T00:17:40Z", "from now on");
    world.noted().now = 1_060;
    assert_eq!(world.next(), "step canary soaks until 1970-01-01T00:18:10Z", "by its clock");
    world.noted().now = 1_090;
    assert!(!world.next().contains("soaks"), "{}", world.next());
}

#[test]
fn a_lost_note_makes_a_soak_longer_never_shorter() {
    let steps = json!({"steps": [{"name": "canary", "nodes": 1, "soak": "60s"}]});
    let mut world = world(steps, &[("a", &[New(0), Old])]);
    assert_eq!(world.next(), "step canary soaks until 1970-01-01T00:17:40Z");
    world.noted().now = 1_050;
    world.note = None;
    assert_eq!(world.next(), "step canary soaks until 1970-01-01T00:18:30Z");
    // Another template, or an edited step, begins anew too.
    world.noted().now = 1_105;
    world.note.as_mut().unwrap().template = "other".to_owned();
    assert_eq!(world.next(), "step canary soaks until 1970-01-01T00:19:25Z");
    world.noted().policy.steps[0].max_unavailable = Some("1".parse().unwrap());
    world.now = 1_160;
    assert_eq!(world.next(), "step canary soaks until 1970-01-01T00:20:20Z");
}

#[test]
fn a_canary_that_vanishes_is_replaced_and_a_done_step_never_reopens() {
    let steps = json!({"steps": [{"name": "canary", "nodes": 2, "soak": "60s"}]});
    let mut world = world(steps, &[("a", &[New(900), New(900), Old, Old])]);
    world.noted();
    world.nodes.remove(1);
    let next = world.next();
    assert!(["a-2", "a-3"].contains(&&*next), "{next}");
    world.set(&next, New(1_010));
    world.noted().now = 1_069;
    assert!(world.next().starts_with("step canary soaks"), "{}", world.next());
    world.now = 1_070;
    world.noted();
    // Done: the loss of a canary, or its update by another client, changes nothing.
    world.set(&next, Old);
    assert_eq!(world.next().split(' ').count(), 2);
    world.set("a-0", Old);
    assert_eq!(world.waves().iter().filter(|it| it.starts_with("rest/")).count(), 3);
}

#[test]
fn counts_prefer_what_runs_the_target_then_abandoned_versions_then_ready_nodes() {
    for (states, want) in [
        (&[Old, New(9), Old][..], ""),
        (&[Old, Going, Old], ""),
        (&[Old, Skipped, Intermediate], "a-2"),
        (&[Skipped, Old, Skipped], "a-1"),
        (&[Skipped, Skipped, Skipped], "step canary has no Ready node"),
    ] {
        let steps = json!({"steps": [{"name": "canary", "nodes": 1, "soak": "1h"}]});
        let next = world(steps, &[("a", states)]).next();
        let next = if next.contains("soaks") { "" } else { &next };
        assert_eq!(next, want);
    }
}

/// Found by the laws of steps: the target was written, and the node of a later step got it at once.
#[test]
fn a_node_of_a_later_step_without_a_pod_lets_no_step_begin() {
    let stuck = "step canary has no Ready node";
    for (names, is_target_live, want) in [
        (json!(["a-0"]), false, stuck),
        // It has the new pod soon.
        (json!(["a-0"]), true, "a-0"),
        (json!(["a-0", "a-1"]), false, "a-0"),
    ] {
        let steps = json!({"steps": [{"name": "canary", "nodes": {"names": names}}]});
        let mut world = world(steps, &[("a", &[Skipped, Going])]);
        world.is_target_live = is_target_live;
        assert_eq!(world.next(), want);
    }
}

#[test]
fn a_member_by_label_that_is_skipped_counts_for_no_number() {
    let steps = json!({"steps": [
        {"name": "zone-a", "nodes": {"matchLabels": {"zone": "a"}}},
        {"name": "two", "nodes": 2},
    ]});
    let mut world = world(steps, &[("a", &[New(0), Skipped]), ("b", &[Old; 3])]);
    let first = world.noted().next();
    assert_eq!(first.split(' ').count(), 1, "{first}");
    world.set(&first, New(1_000));
    // A skipped node proves nothing.
    world.set("a-0", Skipped);
    let second = world.next();
    assert!(second != first && second.split(' ').count() == 1, "{second}");
}

#[test]
fn a_count_is_spread_evenly() {
    let steps =
        |count: usize| json!({"steps": [{"name": "canary", "nodes": count, "spread": "zone"}]});
    let zones: &[(&str, &[Is])] = &[("a", &[Old; 5]), ("b", &[Old; 2]), ("c", &[Old; 1])];
    for (count, want) in [(1, [1, 0, 0]), (3, [1, 1, 1]), (4, [2, 1, 1]), (6, [3, 2, 1])] {
        let next = world(steps(count), zones).next();
        let of = |zone: &str| next.split(' ').filter(|node| node.starts_with(zone)).count();
        assert_eq!(["a", "b", "c"].map(of), want, "{count}: {next}");
    }
    // One that is updated already counts for its zone.
    let mut world = world(steps(2), zones);
    world.set("b-1", New(0));
    assert_eq!(world.next().chars().next(), Some('a'));
}

#[test]
fn the_same_nodes_are_chosen_while_the_rollout_goes_on() {
    let steps = json!({"steps": [{"name": "canary", "nodes": 3}]});
    let mut world = world(steps, &[("a", &[Old; 9])]);
    let chosen = world.next();
    for name in chosen.split(' ').collect::<Vec<_>>() {
        world.set(name, Going);
        let others: Vec<String> = world.next().split(' ').map(str::to_owned).collect();
        assert!(others.iter().all(|it| it.is_empty() || chosen.contains(&**it)), "{others:?}");
        world.set(name, New(1_000));
    }
}

#[test]
fn domains_come_one_after_the_other_in_each_step() {
    let policy = json!({
        "domains": {"key": "zone", "first": ["c"], "soak": "30s"},
        "steps": [{"name": "canary", "nodes": 2, "spread": "zone"}],
    });
    let zones: &[(&str, &[Is])] = &[("a", &[Old; 2]), ("b", &[Old; 2]), ("c", &[Old; 2])];
    let mut world = world(policy, zones);
    let steps: Vec<String> =
        world.waves().iter().map(|it| it.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(steps, ["canary/a", "canary/b", "rest/c", "rest/c", "rest/a", "rest/b"]);
    let first = world.next();
    assert!(first.starts_with('a'), "{first}");
    world.set(&first, New(1_000));
    assert_eq!(world.next(), "step canary, a, soaks until 1970-01-01T00:17:10Z");
    world.noted().now = 1_030;
    let second = world.next();
    assert!(second.starts_with('b'), "{second}");
    world.noted().set(&second, New(1_030));
    world.now = 1_060;
    world.noted();
    assert_eq!(world.next(), "c-0 c-1", "the canaries soak with their domain");
    world.set("c-0", New(1_060));
    assert_eq!(world.next(), "c-1");
}

#[test]
fn a_disturbed_domain_is_the_only_one_that_goes_on() {
    let policy = json!({"domains": {"key": "zone", "atOnce": 1}});
    let zones: &[(&str, &[Is])] = &[("a", &[Old; 2]), ("b", &[Going, Old]), ("c", &[Skipped, Old])];
    assert_eq!(world(policy.clone(), zones).next(), "b-1");
    let zones: &[(&str, &[Is])] = &[("a", &[Old; 2]), ("b", &[Old, Old]), ("c", &[Skipped, Old])];
    assert_eq!(world(policy, zones).next(), "a-0 a-1", "a skipped node disturbs nothing");
    let policy = json!({"domains": {"key": "zone", "atOnce": 2}});
    let zones: &[(&str, &[Is])] = &[("a", &[Old]), ("b", &[Going, Old]), ("c", &[Going, Old])];
    assert_eq!(world(policy.clone(), zones).next(), "b-1 c-1");
    let zones: &[(&str, &[Is])] = &[("a", &[Old]), ("b", &[Old, Old]), ("c", &[Going, Old])];
    assert_eq!(world(policy, zones).next(), "a-0 c-1");
}

/// Pods that are missing, and those of nodes that come back, get the target with the first write.
#[test]
fn no_rollout_begins_in_a_closed_window_whatever_its_nodes_are() {
    let policy = json!({"windows": [{"schedule": "10 0 * * *", "duration": "10m"}]});
    let closed =
        "step rest waits for a maintenance window, the next one opens at 1970-01-01T00:10:00Z";
    let mut world = world(policy, &[("a", &[Skipped, Skipped])]);
    world.is_target_live = false;
    world.now = 300;
    assert_eq!(world.next(), closed);
    // A surge is noted before it begins.
    let noted =
        StepsNote { template: "t".into(), started_at: Some(at(200)), ..StepsNote::default() };
    world.note = Some(noted);
    assert_eq!(world.next(), closed);
    world.set("a-0", New(250));
    assert_eq!(world.next(), "");
}

/// Found by the simulation: each run dropped what was noted about the last step, whose soak never ended.
#[test]
fn a_node_begins_only_if_it_fits_into_the_window() {
    // From 00:10 to 00:20 each day.
    let policy = json!({"windows": [{"schedule": "10 0 * * *", "duration": "10m"}]});
    let mut world = world(policy, &[("a", &[Old, Going])]);
    let closed = "step rest waits for a maintenance window, the next one opens at ";
    for (now, want) in [
        (599, format!("{closed}1970-01-01T00:10:00Z")),
        (600, "a-0".to_owned()),
        (1_140, "a-0".to_owned()),
        // A node takes 60 s.
        (1_141, format!("{closed}1970-01-02T00:10:00Z")),
    ] {
        world.now = now;
        assert_eq!(world.next(), want, "{now}");
    }
}

/// It may be replaced in any step, but not at any time.
#[test]
fn what_a_failed_version_has_broken_waits_for_a_window_too() {
    let policy = json!({
        "windows": [{"schedule": "10 0 * * *", "duration": "10m"}],
        "steps": [{"name": "canary", "nodes": {"names": ["a-0"]}}],
    });
    let mut world = world(policy, &[("a", &[Going, Broken, Old])]);
    for (now, want) in [
        (
            599,
            "step canary waits for a maintenance window, the next one opens at \
             1970-01-01T00:10:00Z",
        ),
        (600, "a-1"),
    ] {
        world.now = now;
        assert_eq!(world.next(), want, "{now}");
    }
}

#[test]
fn a_selector_that_matches_nothing_is_found() {
    let steps = json!({"steps": [
        {"name": "none", "nodes": {"matchLabels": {"zone": "x"}}},
        {"name": "some", "nodes": {"matchExpressions": [
            {"key": "number", "operator": "In", "values": ["0"]}
        ]}},
    ]});
    let world = world(steps, &[("a", &[Old, Old])]);
    let empty = world.evaluated(|evaluation, _| {
        empty_steps(evaluation).iter().map(|step| step.name.clone()).collect::<Vec<_>>()
    });
    assert_eq!(empty, ["none"]);
}

#[test]
fn the_rollout_is_over_when_every_step_and_domain_is_done() {
    let policy = json!({"domains": {"key": "zone", "soak": "30s"}});
    let mut world = world(policy, &[("a", &[New(900)]), ("b", &[New(1_000), Skipped])]);
    world.note = Some(StepsNote { template: "t".into(), ..StepsNote::default() });
    world.noted();
    assert!(world.next().contains("soaks"), "{}", world.next());
    world.now = 1_030;
    world.noted();
    let current = world.evaluated(|evaluation, _| evaluation.current);
    assert_eq!((world.next(), current), (String::new(), None));
    let done: Vec<&StepNote> = world.note.as_ref().unwrap().steps.values().collect();
    assert!(done.iter().all(|note| note.done_at == Some(time(1_030))), "{done:?}");
}

/// Questions have whole seconds: the first sample would be due only in the next one.
#[test]
fn gates_are_sampled_since_a_whole_second() {
    let gate = json!({"name": "errors", "http": {"url": "https://gate.example"}});
    let mut world = world(json!({"gates": [gate]}), &[("a", &[New(1_001), Old])]);
    world.millis = 700;
    let sampled = world.evaluated(|evaluation, _| evaluation.sampled);
    assert_eq!(sampled.map(|sampled| sampled.since), Some(at(1_000)));
}

#[test]
fn the_end_of_a_soak_is_said_though_no_node_of_the_domain_is_ready() {
    let domains = json!({"domains": {"key": "zone", "soak": "60s"}});
    let world = world(domains, &[("a", &[Counted(990)]), ("b", &[Old])]);
    assert_eq!(world.next(), "step rest, a, soaks until 1970-01-01T00:17:40Z");
}
