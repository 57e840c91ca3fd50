//! No output of ds-plan executes or forwards commands from a manifest or a cluster.

use std::sync::LazyLock;

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::Value;

use crate::examples::checks::checks;
use crate::examples::past::{diff, drift, history};
use crate::examples::{change, explanation, guarded, plan, rollout, status, stepped, updated};
use crate::{
    HtmlOptions, MARKDOWN_LIMIT, MarkdownOptions, RolloutReport, TextOptions, checks_html,
    checks_markdown, checks_text, diff_markdown, diff_text, drift_html, drift_markdown, drift_name,
    drift_text, explain_text, history_text, json, neutral, plan_html, plan_markdown, plan_name,
    plan_text, rollout_html, status_name, status_text, yaml,
};
use daemonset::model::{DaemonSetKey, NodeName};
use planner::check_report::CheckReport;
use planner::plan::{
    Access, DaemonSetForecast, Diff, Drift, Explanation, History, NewPods, Plan, Reason,
    StatusReport,
};
use planner::rollout::{
    Cost, Delete, Ending, Outcome, PodFailure, Progress, Replaced, Report, RunHistory,
};
use testkit::hostile_text::{self, HostilePlan};

static PLANS: LazyLock<[HostilePlan<Plan>; 3]> = LazyLock::new(|| {
    let mut small = rollout();
    small.daemon_sets[1].nodes.truncate(8);
    small.daemon_sets[1].waves[0].nodes.truncate(8);
    let changes = vec![
        change("a", "b", "c"),
        change("d", Value::Null, "e"),
        change("f", vec!["g"], vec!["h"]),
    ];
    let mut other = plan(vec![updated("agent", changes)]);
    (other.guards, other.warnings) = (guarded().guards, guarded().warnings);
    other.cluster.snapshot = Some("fleet.json".into());
    let names = vec!["BPF".to_owned()];
    let access = vec![
        Access::Capabilities { container: "agent".into(), names },
        Access::HostPath { path: "/run".into(), read_only: false },
        Access::ServiceAccount { name: "agent".into() },
    ];
    other.daemon_sets[0].new_pods = Some(NewPods { images: vec!["agent:1".into()], access });
    let course = |seconds| DaemonSetForecast {
        daemon_set: "logging/agent".into(),
        seconds,
        waves: vec![seconds],
        ..DaemonSetForecast::default()
    };
    if let Some(forecast) = &mut other.forecast {
        forecast.daemon_sets = vec![course(1), course(2)];
    }
    let mut by_steps = stepped();
    for wave in &mut by_steps.daemon_sets[0].waves {
        wave.nodes.truncate(8);
    }
    by_steps.daemon_sets[0].nodes.truncate(8);
    [HostilePlan::of(&small), HostilePlan::of(&other), HostilePlan::of(&by_steps)]
});
static STATUS: LazyLock<HostilePlan<StatusReport>> = LazyLock::new(|| HostilePlan::of(&status()));
static EXPLANATION: LazyLock<HostilePlan<Explanation>> =
    LazyLock::new(|| HostilePlan::of(&explanation()));
static HISTORY: LazyLock<HostilePlan<History>> = LazyLock::new(|| HostilePlan::of(&history()));
static CHECKS: LazyLock<HostilePlan<CheckReport>> = LazyLock::new(|| HostilePlan::of(&checks()));
static DIFF: LazyLock<HostilePlan<Diff>> = LazyLock::new(|| HostilePlan::of(&diff()));
static DRIFT: LazyLock<HostilePlan<Drift>> = LazyLock::new(|| HostilePlan::of(&drift()));

/// `text` has nothing but visible characters in lines, and no line is a command to a CI system.
fn harmless(text: &str) -> Result<(), TestCaseError> {
    // Independent of the tested code: the most important ranges, by code point.
    let never = |c: char| {
        matches!(u32::from(c),
            0..=9 | 11..=0x1f | 0x7f..=0x9f | 0xad | 0x61c | 0x200b..=0x200f | 0x2028..=0x202e
            | 0x2060..=0x206f | 0xfeff | 0xe0000..=0xe0fff)
    };
    for line in text.lines() {
        prop_assert!(!line.chars().any(|c| never(c) || !neutral::is_visible(c)), "{:?}", line);
        prop_assert!(!line.trim_start().starts_with("::"), "{:?}", line);
        prop_assert!(!line.contains("##[") && !line.contains("##vso["), "{:?}", line);
    }
    Ok(())
}

fn markdown(verbose: bool) -> MarkdownOptions {
    MarkdownOptions { verbose, ..MarkdownOptions::default() }
}

/// `text` is harmless in a log, short enough, and has one marker, at its end.
fn one_comment(text: &str) -> Result<(), TestCaseError> {
    harmless(text)?;
    prop_assert!(text.len() <= MARKDOWN_LIMIT);
    prop_assert_eq!(text.matches("<!--").count(), 1, "{}", text);
    prop_assert!(text.ends_with("<!-- ds-plan:default -->\n"), "{}", text);
    Ok(())
}

fn html(verbose: bool) -> HtmlOptions<'static> {
    HtmlOptions { nodes: &[], verbose }
}

/// `text` is harmless in a log, and has as many scripts as the page of a harmless plan.
fn one_page(text: &str) -> Result<(), TestCaseError> {
    harmless(text)?;
    prop_assert_eq!(text.matches("<script").count(), 6);
    prop_assert_eq!(text.matches("</script").count(), 6);
    prop_assert_eq!(text.matches("<img").count() + text.matches("<!--").count(), 0, "{}", text);
    Ok(())
}

/// The events of a rollout that failed, with these texts.
fn story(seeds: &[String]) -> Vec<RunHistory> {
    let mut words = seeds.iter().cycle().map(String::as_str);
    let mut word = || words.next().unwrap_or_default();
    let node = NodeName::from(word());
    let pod_failure = PodFailure::NoPod { seconds: 9, message: Some(word().to_owned()) };
    let delete = Delete {
        pod: word().into(),
        uid: word().into(),
        node: node.clone(),
        reason: Reason::Surplus { kept: word().into() },
        cost: Cost::Nothing,
    };
    let events = [
        Report::Revision(word().into()),
        Report::Deleting(delete),
        Report::Recovered { node: node.clone(), seconds: 3 },
        Report::Failed { node: word().into(), pod_failure: pod_failure.clone() },
        Report::Progress(Progress { unavailable: 2, allowed: 1, ..Progress::default() }),
    ];
    let at = |second| Timestamp::from_second(second).unwrap();
    let outcome = Outcome::Aborted {
        failed: [(word().into(), pod_failure)].into(),
        to: word().into(),
        rolled_back: None,
        cause: None,
    };
    let left = [(word().into(), vec![Reason::NoPod])].into();
    let replaced =
        vec![Replaced { node, wave: Some(1), seconds: 3, terminating: None, restarts: 0 }];
    let ending = Ending { outcome, replaced, left };
    let key = DaemonSetKey::new(word(), word());
    vec![RunHistory { key, domain_key: None, events: (0..).map(at).zip(events).collect(), ending }]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn nothing_hostile_gets_through(
        seeds in prop::collection::vec(hostile_text::seed(), 1..12),
        verbose: bool,
        width in prop::option::of(40..100_usize),
    ) {
        let options = TextOptions { verbose, width, ..TextOptions::default() };
        for hostile_text in &*PLANS {
            let plan = hostile_text.sown(&seeds);
            harmless(&plan_text(&plan, &options))?;
            harmless(&plan_name(&plan))?;
            one_comment(&plan_markdown(&plan, &markdown(verbose)))?;
            one_page(&plan_html(&plan, &html(verbose)).unwrap())?;
            let (as_json, as_yaml) = (json(&plan).unwrap(), yaml(&plan).unwrap());
            harmless(&as_json)?;
            harmless(&as_yaml)?;
            let read: Value = serde_json::from_str(&as_json).unwrap();
            prop_assert_eq!(&read, &serde_json::to_value(&plan).unwrap());
            prop_assert_eq!(&read, &serde_yaml::from_str::<Value>(&as_yaml).unwrap());
            let colored = plan_text(&plan, &TextOptions { color: true, ..options });
            prop_assert_eq!(
                anstream::adapter::strip_str(&colored).to_string(), plan_text(&plan, &options)
            );
        }
        let status = STATUS.sown(&seeds);
        harmless(&status_text(&status, &options))?;
        harmless(&status_name(&status))?;
        harmless(&json(&status).unwrap())?;
        harmless(&yaml(&status).unwrap())?;
        let explanation = EXPLANATION.sown(&seeds);
        harmless(&explain_text(&explanation, &options))?;
        harmless(&json(&explanation).unwrap())?;
        harmless(&yaml(&explanation).unwrap())?;
    }

    #[test]
    fn nothing_hostile_gets_through_a_rollout(
        seeds in prop::collection::vec(hostile_text::seed(), 1..12),
    ) {
        let runs = story(&seeds);
        let report = RolloutReport { rehearsed: false, runs: &runs, tool_version: "1" };
        one_page(&rollout_html(&report, &html(false)).unwrap())?;
    }

    #[test]
    fn nothing_hostile_gets_through_what_was_found(
        seeds in prop::collection::vec(hostile_text::seed(), 1..12),
        verbose: bool,
        width in prop::option::of(40..100_usize),
    ) {
        let options = TextOptions { verbose, width, ..TextOptions::default() };
        let (history, diff, drift) = (HISTORY.sown(&seeds), DIFF.sown(&seeds), DRIFT.sown(&seeds));
        let checks = CHECKS.sown(&seeds);
        one_comment(&checks_markdown(&checks, &markdown(verbose)))?;
        let page = checks_html(&checks);
        prop_assert_eq!(page.matches("<script").count() + page.matches("<img").count(), 0);
        for text in [page, checks_text(&checks, &options), json(&checks).unwrap()] {
            harmless(&text)?;
        }
        one_comment(&drift_markdown(&drift, &markdown(verbose)))?;
        one_page(&drift_html(&drift, &html(verbose)).unwrap())?;
        one_comment(&diff_markdown(&diff, &markdown(verbose)))?;
        for text in [
            history_text(&history, &options),
            json(&history).unwrap(),
            yaml(&history).unwrap(),
            diff_text(&diff, &options),
            json(&diff).unwrap(),
            yaml(&diff).unwrap(),
            drift_text(&drift, &options),
            drift_name(&drift),
            json(&drift).unwrap(),
            yaml(&drift).unwrap(),
        ] {
            harmless(&text)?;
        }
    }
}

#[test]
fn hostile_text_is_in_nearly_every_field() {
    let spots: usize = PLANS.iter().map(|hostile_text| hostile_text.spots.len()).sum();
    assert!(spots > 60, "only {spots}");
    assert!(PLANS[1].spots.iter().any(|spot| spot == "/daemonSets/0/changes/2/after/0"));
}
