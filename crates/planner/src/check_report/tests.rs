use jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use daemonset::model::{PolicySpec, Series, Unanswered};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn check(prometheus: &Value) -> Check {
    let mut query = json!({"address": "https://a", "query": "x"});
    query.as_object_mut().unwrap().extend(prometheus.as_object().unwrap().clone());
    serde_json::from_value(json!({"name": "c", "interval": "10s", "prometheus": query})).unwrap()
}

/// Asks the check about the time from 0 to 90 and gets these series, one point in ten seconds; `-`
/// is none.
fn asked(check: &Check, series: &[&str]) -> AskedCheck {
    let series = series.iter().map(|points| {
        let points = points.split_whitespace().zip(0_i64..).filter(|(point, _)| *point != "-");
        let points = points.map(|(point, n)| (at(n * 10), point.parse().unwrap())).collect();
        Series { labels: vec![], points }
    });
    let found = CheckSeries { step: 10, series: series.collect(), warnings: vec![] };
    of(check).asked(Some(&CheckResponse::Series(found)), true)
}

fn of(check: &Check) -> ToAsk<'_> {
    let question = CheckQuestion {
        name: check.name.clone(),
        endpoint: check.endpoint(),
        daemon_set: DaemonSetKey::new("a", "b"),
        nodes: vec![],
        others: vec![],
        from: at(0),
        until: at(90),
        interval: check.interval,
    };
    ToAsk { role: CheckRole::Gate, check, question: Some(question) }
}

#[test]
fn the_newest_sample_answers_and_all_are_counted() {
    let max = json!({"max": 2});
    for (bounds, series, answer, counts) in [
        (&max, &["1 1 1 1 1 1 1 1 1 1"][..], CheckVerdict::Pass, (10, 0, 0)),
        (&max, &["9 1 1 1 1 1 1 1 1 1"], CheckVerdict::Pass, (9, 1, 0)),
        (&max, &["1 1 1 1 1 1 1 1 1 9"], CheckVerdict::Fail, (9, 1, 0)),
        (&max, &["1 1 1 1 1 1 1 1 1 -"], CheckVerdict::Unknown, (9, 0, 1)),
        (&max, &["NaN NaN 1 1 1 1 1 1 1 NaN"], CheckVerdict::Unknown, (7, 0, 3)),
        (&max, &["1 1 1 1 1 1 1 1 1 1", "- - - 9 9 9 - 1 1 1"], CheckVerdict::Pass, (7, 3, 0)),
        (&max, &[], CheckVerdict::Unknown, (0, 0, 10)),
        (&json!({"max": 2, "empty": "pass"}), &[], CheckVerdict::Pass, (10, 0, 0)),
    ] {
        let asked = asked(&check(bounds), series);
        let over = asked.over.unwrap();
        assert_eq!(asked.answer, answer, "{series:?}");
        assert_eq!((over.passed, over.failed, over.unknown), counts, "{series:?}");
        assert_eq!((over.samples, over.from, over.until), (10, at(0), at(90)));
        assert_eq!(asked.reason.is_none(), answer == CheckVerdict::Pass);
    }
}

#[test]
fn samples_that_may_fail_are_counted_all_the_same() {
    let check = Check { allow: 5, ..check(&json!({"max": 2})) };
    assert_eq!(asked(&check, &["9 9 1 1 1 1 1 1 1 1"]).over.unwrap().failed, 2);
}

#[test]
fn a_threshold_that_means_nothing_is_remarked() {
    let key = DaemonSetKey::new("a", "b");
    for (series, want) in [
        (
            &["3 4 5 4 3 3 3 - 3 3"][..],
            "check c (x, at most 2) never passes: of 10 samples since 1970-01-01T00:00:00Z, 9 fail and \
             1 is unknown; the worst value is 5",
        ),
        (
            &["1 1 1 1 1 2 1 1 1 1", "0 0 0 0 0 0 0 0 0 0"],
            "check c (x, at most 2) always passes: all 10 samples since 1970-01-01T00:00:00Z; the \
             worst value is 2; make sure that a bad version would fail it",
        ),
        (
            &[],
            "check c (x, at most 2) never passes: of 10 samples since 1970-01-01T00:00:00Z, 0 fail and \
             10 are unknown",
        ),
        (&["1 1 1 1 1 1 1 1 1 9"], ""),
    ] {
        let check = check(&json!({"max": 2}));
        let warning = warnings(&key, &check, &asked(&check, series));
        assert_eq!(warning.map(|it| it.message).unwrap_or_default(), want, "{series:?}");
    }
}

#[test]
fn the_worst_value_is_that_of_the_bounds() {
    for (bounds, values, want) in [
        (json!({"max": 2}), &[1.0, 3.0, -9.0][..], 3.0),
        (json!({"min": 2}), &[1.0, 3.0, -9.0], -9.0),
        (json!({"min": 0, "max": 2}), &[1.0, 3.0, -9.0], -9.0),
        (json!({"min": 0, "max": 2}), &[1.0, 30.0, -9.0], 30.0),
        (json!({"min": 0, "max": 2}), &[1.0, 1.9, 0.2], 1.9),
        (json!({"max": 2}), &[1.0, f64::INFINITY], f64::INFINITY),
    ] {
        assert_eq!(worst(&check(&bounds), values.iter().copied()), Some(want), "{values:?}");
    }
    let max = check(&json!({"max": 2}));
    assert!(worst(&max, [9.0, f64::NAN, 1.0].into_iter()).unwrap().is_nan());
    assert_eq!(worst(&max, [].into_iter()), None);
}

#[test]
fn what_has_no_series_is_asked_once() {
    let check: Check =
        serde_json::from_value(json!({"name": "c", "http": {"url": "https://a"}})).unwrap();
    let sample = |is_expected| CheckResponse::Sample {
        at: at(90),
        is_expected,
        detail: "status 503".to_owned(),
    };
    let unanswered = CheckResponse::Unanswered(Unanswered { message: "slow".to_owned() });
    for (response, want) in [
        (Some(sample(true)), (CheckVerdict::Pass, "")),
        (
            Some(sample(false)),
            (CheckVerdict::Fail, "status 503 at 1970-01-01T00:01:30Z (1 sample failed, 0 may)"),
        ),
        (Some(unanswered), (CheckVerdict::Unknown, "slow")),
        (None, (CheckVerdict::Unknown, "only known during a rollout")),
    ] {
        let asked = of(&check).asked(response.as_ref(), true);
        let reason = asked.reason.map(|it| it.to_string()).unwrap_or_default();
        assert_eq!((asked.answer, reason.as_str()), want);
        assert_eq!((asked.over, asked.points.len()), (None, 0));
    }
}

#[test]
fn preconditions_come_first_and_ranges_end_now() {
    let policy: PolicySpec = serde_json::from_value(json!({
        "selects": {"names": ["a/b"]},
        "gates": [{"name": "g", "interval": "10s", "prometheus": {"address": "https://a", "query": "x", "max": 1}}],
        "preconditions": [{"name": "p", "http": {"url": "https://a"}}],
    }))
    .unwrap();
    let key = DaemonSetKey::new("a", "b");
    let nodes = CheckedNodes { nodes: vec!["n".into()], ..CheckedNodes::default() };
    let ask = |over| {
        let all = to_ask(&policy, &key, &nodes, at(10_000), over);
        let names: Vec<_> = all.iter().map(|it| it.check.name.as_str()).collect();
        assert_eq!(names, ["p", "g"]);
        all[1].question.clone().unwrap()
    };
    let now = ask(None);
    assert_eq!((now.from, now.until, now.nodes.len()), (at(9_700), at(10_000), 1));
    assert_eq!(ask(Some(SignedDuration::from_hours(1))).from, at(6_400));
}
