//! What comes back from a real server.

use std::time::Duration;

use checks::{Client, Settings};
use daemonset::model::{
    Check, CheckEndpoint, CheckQuestion, CheckResponse, CheckSeries, DaemonSetKey, NodeName, Soak,
    Unanswered,
};
use jiff::Timestamp;
use planner::checks::{CheckAnswer, judge};
use serde_json::json;

use super::{Exporter, Prometheus};
use crate::harness::{block_on, wait_until};

const LONG: Duration = Duration::from_secs(30);

/// A question about the time since `from`.
fn question(server: &Prometheus, query: &str, from: Timestamp) -> CheckQuestion {
    CheckQuestion {
        name: "errors".to_owned(),
        endpoint: CheckEndpoint::Prometheus { address: server.address(), query: query.to_owned() },
        daemon_set: DaemonSetKey::new("kube-system", "agent"),
        nodes: vec![NodeName::from("a-1"), NodeName::from("a-2.zone.b")],
        others: vec![NodeName::from("a-3")],
        from,
        until: Timestamp::now(),
        interval: Soak(1),
    }
}

fn ask(question: &CheckQuestion) -> CheckResponse {
    let settings = Settings { time_limit: Duration::from_secs(2), ..Settings::default() };
    let (client, question) = (Client::new(settings), question.clone());
    block_on(async move { client.ask(&question).await })
}

fn series(server: &Prometheus, query: &str, from: Timestamp) -> CheckSeries {
    match ask(&question(server, query, from)) {
        CheckResponse::Series(series) => series,
        other => panic!("{query}: {other:?}"),
    }
}

fn unanswered(server: &Prometheus, query: &str, from: Timestamp) -> String {
    match ask(&question(server, query, from)) {
        CheckResponse::Unanswered(Unanswered { message }) => message,
        other => panic!("{query}: {other:?}"),
    }
}

fn values(series: &CheckSeries) -> Vec<f64> {
    series.series.iter().flat_map(|it| &it.points).map(|(_, value)| *value).collect()
}

/// Waits until a query has a series whose last value is `want`.
pub(crate) fn scraped(server: &Prometheus, query: &str, want: f64) {
    wait_until(&format!("{query} is {want}"), LONG, || {
        let found = series(server, query, Timestamp::now());
        values(&found).last().is_some_and(|last| (last - want).abs() < 1e-9)
    });
}

#[test]
fn a_value_that_was_too_high_for_some_seconds_is_found_later() {
    let exporter = Exporter::start();
    exporter.set("agent_errors{node=\"a-1\"} 0");
    let server = Prometheus::start(&[&exporter]);
    scraped(&server, "agent_errors", 0.0);
    let from = Timestamp::now();
    exporter.set("agent_errors{node=\"a-1\"} 5");
    scraped(&server, "agent_errors", 5.0);
    exporter.set("agent_errors{node=\"a-1\"} 0");
    scraped(&server, "agent_errors", 0.0);
    // Now it is fine, and it was fine at the start.
    let query = "agent_errors{node=~\"{{nodes}}\"}";
    let found = series(&server, query, from);
    assert_eq!(found.series.len(), 1);
    assert!(found.series[0].labels.contains(&"node=a-1".to_owned()), "{found:?}");
    let found = values(&found);
    assert!(found.contains(&5.0) && found.last() == Some(&0.0), "{found:?}");
    assert_eq!(values(&series(&server, query, Timestamp::now())), [0.0]);
}

#[test]
fn a_server_that_is_away_does_not_answer_and_an_emptied_one_has_no_series() {
    let exporter = Exporter::start();
    exporter.set("agent_errors 0");
    let mut server = Prometheus::start(&[&exporter]);
    scraped(&server, "agent_errors", 0.0);
    let from = Timestamp::now();
    let known = |server: &Prometheus| values(&series(server, "agent_errors", from)).len();
    wait_until("there are some samples", LONG, || known(&server) > 3);
    server.kill();
    let message = unanswered(&server, "agent_errors", from);
    assert!(message.ends_with("cannot be reached: Connection refused (os error 111)"), "{message}");
    exporter.set("");
    server.restart();
    assert!(known(&server) > 3, "it has its data again");
    server.freeze();
    wait_until("it is frozen", LONG, || {
        matches!(ask(&question(&server, "up", from)), CheckResponse::Unanswered(_))
    });
    let message = unanswered(&server, "agent_errors", from);
    assert!(message.ends_with("did not answer within 2 s"), "{message}");
    server.resume();
    assert!(known(&server) > 3);
    server.empty();
    assert_eq!(series(&server, "agent_errors", from).series, []);
}

#[test]
fn what_the_server_says_about_a_query() {
    let (exporter, other) = (Exporter::start(), Exporter::start());
    exporter.set("agent_errors{node=\"a-1\"} 0\nagent_latency{node=\"a-1\"} NaN");
    other.set("agent_errors{node=\"a-2.zone.b\"} 0.5");
    let server = Prometheus::start(&[&exporter, &other]);
    scraped(&server, "count(agent_errors) + count(agent_latency)", 3.0);
    let now = || Timestamp::now();
    // A second series that is worse than the first one.
    let mut both = values(&series(&server, "agent_errors", now()));
    both.sort_by(f64::total_cmp);
    assert_eq!(both, [0.0, 0.5]);
    // A misspelt metric.
    assert_eq!(series(&server, "agent_erors", now()).series, []);
    // An answer that may be wrong.
    let warned = series(&server, "quantile(2, agent_errors)", now());
    assert!(warned.warnings[0].contains("quantile value should be between 0 and 1"), "{warned:?}");
    let values = |query: &str| values(&series(&server, query, now()));
    assert!(values("agent_latency")[0].is_nan());
    assert_eq!(values("1 / 0"), [f64::INFINITY]);
    assert_eq!(values("-1 / 0"), [f64::NEG_INFINITY]);
    // A query that is none.
    let message = unanswered(&server, "sum(agent_errors", now());
    assert!(
        message.contains("(bad_data): invalid parameter \"query\": 1:17: parse error"),
        "{message}"
    );
    let message = unanswered(&server, "\"text\"", now());
    assert!(message.contains("invalid expression type \"string\" for range query"), "{message}");
}

#[test]
fn nodes_are_matched_whole_in_every_kind_of_string() {
    let exporter = Exporter::start();
    let nodes = ["a-1", "a-11", "a-2.zone.b", "a-2xzonexb", "a-3", "", "-"];
    let lines =
        nodes.iter().map(|node| format!("up_to_date{{node=\"{node}\",i=\"{node}:9100\"}} 1"));
    exporter.set(&lines.collect::<Vec<_>>().join("\n"));
    let server = Prometheus::start(&[&exporter]);
    scraped(&server, "count(up_to_date)", 7.0);
    let found = |matcher: &str, nodes: &[&str]| {
        let query = format!("up_to_date{{{matcher}}}");
        let mut question = question(&server, &query, Timestamp::now());
        question.nodes = nodes.iter().map(|name| NodeName::from(*name)).collect();
        let CheckResponse::Series(found) = ask(&question) else { panic!("{matcher}") };
        let node = |labels: &[String]| {
            let node = labels.iter().find_map(|label| label.strip_prefix("node="));
            node.unwrap_or_default().to_owned()
        };
        let mut found: Vec<_> = found.series.iter().map(|it| node(&it.labels)).collect();
        found.sort();
        found
    };
    for (matcher, want) in [
        ("node=~\"{{nodes}}\"", &["a-1", "a-2.zone.b"][..]),
        ("node=~'{{nodes}}'", &["a-1", "a-2.zone.b"]),
        ("node=~`{{nodes}}`", &["a-1", "a-2.zone.b"]),
        ("i=~\"{{nodes}}:9100\"", &["a-1", "a-2.zone.b"]),
        ("i=~\"{{nodes}}:91\"", &[]),
        ("node!~\"{{nodes}}\"", &["", "-", "a-11", "a-2xzonexb", "a-3"]),
        ("node=~\"{{others}}\"", &["a-3"]),
        ("node=~\"{{nodes}}|{{others}}\"", &["a-1", "a-2.zone.b", "a-3"]),
    ] {
        assert_eq!(found(matcher, &["a-1", "a-2.zone.b"]), want, "{matcher}");
    }
    // No node: nothing matches, whatever surrounds it.
    for matcher in ["node=~\"{{nodes}}\"", "i=~\"{{nodes}}:9100\"", "i=~\"{{nodes}}.*\""] {
        assert_eq!(found(matcher, &[]), [""; 0], "{matcher}");
    }
    assert_eq!(found("node!~\"{{nodes}}\"", &[]).len(), 7);
    // A large fleet fits into a request.
    let fleet: Vec<String> =
        (0..5_000).map(|at| format!("ip-10-0-0-{at}.eu-central-1.internal")).collect();
    let mut fleet: Vec<&str> = fleet.iter().map(String::as_str).collect();
    fleet.push("a-3");
    assert_eq!(found("node=~\"{{nodes}}\"", &fleet), ["a-3"]);
}

#[test]
fn what_was_not_scraped_is_a_gap() {
    let exporter = Exporter::start();
    exporter.set("agent_errors 0");
    let server = Prometheus::start(&[&exporter]);
    scraped(&server, "agent_errors", 0.0);
    let from = Timestamp::now();
    std::thread::sleep(Duration::from_secs(4));
    exporter.set("");
    wait_until("the metric is gone", LONG, || {
        series(&server, "agent_errors", Timestamp::now()).series.is_empty()
    });
    std::thread::sleep(Duration::from_secs(3));
    exporter.set("agent_errors 0");
    scraped(&server, "agent_errors", 0.0);
    let found = series(&server, "agent_errors", from);
    let length = Timestamp::now().as_second() - from.as_second();
    let (points, asked) = (found.series[0].points.len(), usize::try_from(length).unwrap());
    assert!((4..asked - 2).contains(&points), "{points} points in {asked} s: {found:?}");
}

/// Each tenth of the samples may be missing, and no more: a query without an answer at each ninth
/// second has gaps of 11%, at each eleventh second of 9%.
#[test]
fn eleven_percent_of_gaps_are_unknown_and_nine_are_not() {
    let exporter = Exporter::start();
    let server = Prometheus::start(&[&exporter]);
    for (every, answer) in [(9, "6 of 54 samples missing"), (11, "pass")] {
        let query = format!("vector(0) and on() (vector(time()) % {every} > 0)");
        let now = Timestamp::now().as_second();
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        // Whole periods, each of which begins with a gap.
        let until = at(now - now % every - 1);
        let length = if every == 9 { 53 } else { 54 };
        let from = at(until.as_second() - length);
        let question = CheckQuestion { until, ..question(&server, &query, from) };
        let check: Check = serde_json::from_value(json!({
            "name": "errors", "interval": "1s",
            "prometheus": {"address": server.address(), "query": query, "max": 1},
        }))
        .unwrap();
        let judged = match judge(&check, &question, &ask(&question), 0) {
            CheckAnswer::Pass => "pass".to_owned(),
            CheckAnswer::Fail(reason) => format!("fail: {reason}"),
            CheckAnswer::Unknown(reason) => reason.to_string(),
        };
        assert!(judged.starts_with(answer), "{every}: {judged}");
    }
}
