use serde_json::json;

use super::*;
use daemonset::model::{CheckEndpoint, Soak};

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn question(name: &str, from: i64, until: i64) -> CheckQuestion {
    CheckQuestion {
        name: name.to_owned(),
        endpoint: CheckEndpoint::Command(Vec::new()),
        daemon_set: DaemonSetKey::new("a", "b"),
        nodes: vec![],
        others: vec![],
        from: at(from),
        until: at(until),
        interval: Soak(10),
    }
}

/// From 1,000 to 1,060, a point in twenty seconds.
fn recorded() -> CheckAnswers {
    serde_json::from_value(json!({
        "apiVersion": "ds-plan.dev/v1alpha1",
        "kind": "CheckAnswers",
        "from": at(1_000),
        "until": at(1_060),
        "answers": [{
            "daemonSet": "a/b",
            "check": "c",
            "step": 20,
            "series": [
                {"labels": ["node=x"], "points": [[1000, "0"], [1020, "1"], [1060, "NaN"]]},
                {"points": [[1040.5, "+Inf"]]},
            ],
        }],
    }))
    .unwrap()
}

#[test]
fn a_recording_is_replayed_from_the_start_of_the_rehearsal() {
    let began = at(5_000);
    let found = recorded().answer(&question("c", 5_000, 5_060), began);
    let Some(CheckResponse::Series(found)) = found else { panic!("it is recorded") };
    assert_eq!((found.step, found.series.len()), (10, 2));
    let points: Vec<String> = found.series[0]
        .points
        .iter()
        .map(|(at, value)| format!("{}={value}", at.as_second()))
        .collect();
    // A value stays until the next one is due; that of 1,040 is missing.
    assert_eq!(points, ["5000=0", "5010=0", "5020=1", "5030=1", "5060=NaN"]);
    let other: Vec<_> = found.series[1].points.iter().map(|(at, _)| at.as_second()).collect();
    assert_eq!(other, [5_050, 5_060]);
    let first = recorded().answer(&question("c", 5_000, 5_010), began);
    let Some(CheckResponse::Series(first)) = first else { panic!("it is recorded") };
    assert_eq!(first.series.len(), 1, "the other one begins later");
}

#[test]
fn after_its_end_the_answer_is_unknown() {
    let answer = |question: &CheckQuestion| recorded().answer(question, at(5_000));
    let message = "the recorded answers end after 1m".to_owned();
    let ended = Some(CheckResponse::Unanswered(Unanswered { message }));
    assert_eq!(answer(&question("c", 5_000, 5_061)), ended);
    assert_eq!(answer(&question("d", 5_000, 5_010)), None);
    let other = CheckQuestion { daemon_set: DaemonSetKey::new("a", "c"), ..question("c", 0, 0) };
    assert_eq!(answer(&other), None);
}

#[test]
fn a_recording_survives_its_json() {
    let series = CheckSeries {
        step: 30,
        series: vec![Series {
            labels: vec!["a=b".to_owned()],
            points: vec![(at(1), 0.25), (Timestamp::from_millisecond(1_500).unwrap(), f64::NAN)],
        }],
        warnings: vec!["w".to_owned()],
    };
    let answer = RecordedAnswer::of(&question("c", 0, 10), &CheckResponse::Series(series)).unwrap();
    let text = serde_json::to_string(&answer).unwrap();
    assert_eq!(
        text,
        r#"{"daemonSet":"a/b","check":"c","step":30,"series":[{"labels":["a=b"],"points":[[1,"0.25"],[1.5,"NaN"]]}],"warnings":["w"]}"#
    );
    assert_eq!(serde_json::from_str::<RecordedAnswer>(&text).unwrap(), answer);
    for point in [r#"[1e300,"1"]"#, r#"[1,"x"]"#, "[1]", "[1,1]"] {
        assert!(serde_json::from_str::<RecordedPoint>(point).is_err(), "{point}");
    }
}
