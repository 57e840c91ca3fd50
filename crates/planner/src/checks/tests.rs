//! Answers and what they mean, as tables.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::*;
use daemonset::model::{
    Check, CheckQuestion, CheckResponse, CheckSeries, DaemonSetKey, Series, Soak, Unanswered,
};

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

fn check(kind: &Value) -> Check {
    let mut check = json!({"name": "c", "interval": "10s"});
    check.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
    serde_json::from_value(check).unwrap()
}

/// From 0 to 90: ten points.
fn question(check: &Check) -> CheckQuestion {
    CheckQuestion {
        name: check.name.clone(),
        endpoint: check.endpoint(),
        daemon_set: DaemonSetKey::new("logging", "agent"),
        nodes: vec!["a".into()],
        others: vec![],
        from: at(0),
        until: at(90),
        interval: Soak(10),
    }
}

/// The points of one series, every ten seconds; `-` for none.
fn series(name: &str, points: &str) -> Series {
    let points = points.split_whitespace().zip(0_i64..).filter(|(point, _)| *point != "-");
    Series {
        labels: vec![format!("node={name}")],
        points: points.map(|(point, n)| (at(n * 10), point.parse().unwrap())).collect(),
    }
}

fn of(series: Vec<Series>) -> CheckResponse {
    CheckResponse::Series(CheckSeries { step: 10, series, warnings: vec![] })
}

/// `pass`, or the kind of the answer and its sentence.
fn said(check: &Check, response: &CheckResponse, failed_before: u32) -> String {
    match judge(check, &question(check), response, failed_before) {
        CheckAnswer::Pass => "pass".to_owned(),
        CheckAnswer::Fail(reason) => format!("fail: {reason}"),
        CheckAnswer::Unknown(reason) => format!("unknown: {reason}"),
    }
}

fn prometheus(fields: &Value, allow: u32) -> Check {
    let mut prometheus = json!({"address": "https://a", "query": "x"});
    prometheus.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    check(&json!({"allow": allow, "prometheus": prometheus}))
}

#[test]
fn each_point_of_each_series_must_be_within_the_bounds() {
    let max = || json!({"max": 2});
    let good = "1 1 1 1 1 1 1 1 1 1";
    for (fields, allow, points, want) in [
        (max(), 0, good, "pass"),
        (max(), 0, "2 2 2 2 2 2 2 2 2 2", "pass"),
        (
            max(),
            0,
            "1 1 1 1 1 1 1 1 2.5 1",
            "fail: 2.5 at 1970-01-01T00:01:20Z, at most 2 allowed, of {node=a} (1 of 10 samples \
             failed, 0 may)",
        ),
        (max(), 1, "1 1 1 1 1 1 1 1 2.5 1", "pass"),
        (
            max(),
            1,
            "3 1 1 1 1 1 1 1 2.5 1",
            "fail: 2.5 at 1970-01-01T00:01:20Z, at most 2 allowed, of {node=a} (2 of 10 samples \
             failed, 1 may)",
        ),
        (
            json!({"min": 1}),
            0,
            "1 1 1 1 1 1 1 1 1 0.5",
            "fail: 0.5 at 1970-01-01T00:01:30Z, at least 1 allowed, of {node=a} (1 of 10 samples \
             failed, 0 may)",
        ),
        (
            json!({"min": 1, "max": 2}),
            0,
            "1 2 1 1 1 1 1 1 1 -inf",
            "fail: -Inf at 1970-01-01T00:01:30Z, from 1 to 2 allowed, of {node=a} (1 of 10 \
             samples failed, 0 may)",
        ),
        (json!({"min": 1}), 0, "1 1 1 1 1 1 1 1 1 inf", "pass"),
        (
            max(),
            0,
            "1 NaN 1 1 1 1 1 1 1 1",
            "unknown: not a number at 1970-01-01T00:00:10Z, of {node=a}",
        ),
        // A failure is proven, whatever else is in doubt.
        (
            max(),
            0,
            "3 NaN - - - - - - - -",
            "fail: 3 at 1970-01-01T00:00:00Z, at most 2 allowed, of {node=a} (1 of 2 samples \
             failed, 0 may)",
        ),
        (max(), 0, "1 1 1 1 - 1 1 1 1 1", "pass"),
        (max(), 0, "1 1 1 1 - - 1 1 1 1", "unknown: 2 of 10 samples missing, of {node=a}"),
        (max(), 0, "1 1 1 1 1 1 1 1 - -", "unknown: 2 of 10 samples missing, of {node=a}"),
        (max(), 0, "- 1 1 1 1 1 1 1 1 1", "pass"),
        (max(), 0, "- - 1 1 1 1 1 1 1 1", "unknown: 2 of 10 samples missing"),
        (max(), 0, "- 1 1 1 1 1 1 1 1 -", "unknown: 2 of 10 samples missing, of {node=a}"),
        (max(), 0, "", "unknown: the query has no series"),
        (json!({"max": 2, "empty": "pass"}), 0, "", "pass"),
        (json!({"max": 2, "empty": "fail"}), 0, "", "fail: the query has no series"),
    ] {
        let check = prometheus(&fields, allow);
        assert_eq!(said(&check, &of(vec![series("a", points)]), 0), want, "{points}");
    }
}

#[test]
fn one_bad_series_among_good_ones_fails_and_a_late_one_is_no_gap() {
    let (good, bad) = ("1 1 1 1 1 1 1 1 1 1", "1 1 1 1 1 1 1 1 1 9");
    let worse = "9 1 1 1 1 1 1 1 1 9";
    let check = prometheus(&json!({"max": 2}), 0);
    for (all, want) in [
        (vec![good, good], "pass"),
        (
            vec![good, bad],
            "fail: 9 at 1970-01-01T00:01:30Z, at most 2 allowed, of {node=1} (1 of 10 samples \
             failed, 0 may)",
        ),
        (
            vec![bad, worse, good],
            "fail: 9 at 1970-01-01T00:01:30Z, at most 2 allowed, of {node=1} (2 of 10 samples \
             failed, 0 may; 1 series more like it)",
        ),
        (vec![good, "- - - - - 1 1 1 1 1"], "pass"),
        (vec![good, "1 1 1 1 1 - - - - -"], "unknown: 5 of 10 samples missing, of {node=1}"),
        (vec![good, "- - - - - 1 - 1 1 1"], "unknown: 1 of 5 samples missing, of {node=1}"),
        (vec!["", ""], "unknown: the query has no series"),
    ] {
        let all = all.iter().enumerate().map(|(n, points)| series(&n.to_string(), points));
        assert_eq!(said(&check, &of(all.collect()), 0), want);
    }
}

#[test]
fn what_cannot_be_relied_on_is_unknown() {
    let check = prometheus(&json!({"max": 2, "empty": "pass"}), 0);
    let unanswered =
        |message: &str| CheckResponse::Unanswered(Unanswered { message: message.to_owned() });
    let warned = |series: Vec<Series>| {
        let warnings = vec!["a store is down".to_owned(), "b".to_owned()];
        CheckResponse::Series(CheckSeries { step: 10, series, warnings })
    };
    let text = "unknown: the answer may be incomplete: a store is down and 1 more warning";
    for (response, want) in [
        (unanswered("https://a does not answer"), "unknown: https://a does not answer".to_owned()),
        (unanswered(&"x".repeat(400)), format!("unknown: {}…", "x".repeat(300))),
        (warned(vec![series("a", "9 9 9")]), text.to_owned()),
        (warned(vec![]), text.to_owned()),
        (
            CheckResponse::Sample { at: at(0), is_expected: true, detail: String::new() },
            "unknown: an answer of another kind".to_owned(),
        ),
    ] {
        assert_eq!(said(&check, &response, 0), want);
    }
}

#[test]
fn samples_may_fail_as_often_as_allowed() {
    let sample = |is_expected| CheckResponse::Sample {
        at: at(90),
        is_expected,
        detail: "status 503".to_owned(),
    };
    for (allow, before, is_expected, want) in [
        (0, 0, true, "pass"),
        (0, 0, false, "fail: status 503 at 1970-01-01T00:01:30Z (1 sample failed, 0 may)"),
        (2, 1, false, "pass"),
        (2, 2, false, "fail: status 503 at 1970-01-01T00:01:30Z (3 samples failed, 2 may)"),
        (2, 2, true, "pass"),
    ] {
        let check = check(&json!({"allow": allow, "http": {"url": "https://a"}}));
        assert_eq!(said(&check, &sample(is_expected), before), want, "{allow} {before}");
    }
}

#[test]
fn a_reason_survives_its_json() {
    for value in [0.25, f64::INFINITY, f64::NEG_INFINITY, f64::NAN] {
        let reason = CheckReason::OutOfBounds {
            series: "node=a".into(),
            value: SampleValue(value),
            at: at(0),
            min: None,
            max: serde_json::from_value(json!(2)).unwrap(),
            failed: 1,
            samples: 10,
            allowed: 0,
            others: 0,
        };
        let text = serde_json::to_string(&reason).unwrap();
        assert_eq!(serde_json::from_str::<CheckReason>(&text).unwrap(), reason, "{text}");
    }
}
