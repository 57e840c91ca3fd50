// Clippy's exception for tests (clippy.toml) covers only functions marked as tests, not helpers.
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use daemonset::model::{CheckEndpoint, DaemonSetKey, NodeName, Soak};
use proptest::prelude::*;
use proptest::sample::Index;

use super::*;

fn question(seconds: i64) -> CheckQuestion {
    let from = Timestamp::from_second(1_000).unwrap();
    CheckQuestion {
        name: "errors".to_owned(),
        endpoint: CheckEndpoint::Command(Vec::new()),
        daemon_set: DaemonSetKey::new("kube-system", "agent"),
        nodes: vec![NodeName::from("a-1"), NodeName::from("a-2.b")],
        others: Vec::new(),
        from,
        until: Timestamp::from_second(1_000 + seconds).unwrap(),
        interval: Soak(60),
    }
}

fn answered(body: &str) -> Result<CheckSeries, String> {
    let from = Address::read("https://prom.example").unwrap();
    read(body.as_bytes(), &question(120), &from).map_err(|problem| problem.to_string())
}

fn matrix(result: &str) -> String {
    format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":{result}}}}}"#)
}

#[test]
fn a_matrix_becomes_series() {
    let body = matrix(
        r#"[{"metric":{"node":"a","__name__":"up"},
             "values":[[1000,"1"],[1060.5,"NaN"],[1120,"+Inf"]]},
            {"metric":{},"values":[[1000,"-2.5e-3"]]}]"#,
    );
    let CheckSeries { step, series, warnings } = answered(&body).unwrap();
    assert_eq!((step, warnings.len()), (60, 0));
    assert_eq!(series[0].labels, ["__name__=up", "node=a"]);
    let points = series[0].points.iter().map(|(at, value)| (at.as_millisecond(), *value));
    let points: Vec<_> = points.collect();
    assert_eq!(points[0], (1_000_000, 1.0));
    assert!(points[1].0 == 1_060_500 && points[1].1.is_nan());
    assert_eq!(points[2], (1_120_000, f64::INFINITY));
    assert!((series[1].points[0].1 + 0.0025).abs() < f64::EPSILON);
    assert_eq!(answered(&matrix("[]")).unwrap().series, []);
}

#[test]
fn warnings_are_kept_and_made_harmless() {
    let body = r#"{"status":"success","data":{"resultType":"matrix","result":[]},
        "infos":["i"],"warnings":["one store\u001b[2J\nis missing"]}"#;
    assert_eq!(answered(body).unwrap().warnings, ["one store\\u{1b}[2J is missing"]);
}

#[test]
fn whatever_else_comes_is_one_line() {
    let row = |values: &str| matrix(&format!(r#"[{{"metric":{{}},"values":[{values}]}}]"#));
    let many = vec![r#"{"metric":{}}"#; MOST_SERIES + 1].join(",");
    let deep = "[".repeat(1 << 20);
    for (case, body, want) in [
        ("empty", String::new(), "EOF while parsing"),
        ("HTML", "\n<!DOCTYPE html>".to_owned(), "a page (HTML)"),
        ("another JSON", "[]".to_owned(), "invalid"),
        ("another document", r#"{"kind":"Status"}"#.to_owned(), "missing field `status`"),
        (
            "an error",
            r#"{"status":"error","errorType":"t","error":"no\nstore"}"#.to_owned(),
            "with an error (t): no store",
        ),
        ("no data", r#"{"status":"success"}"#.to_owned(), "no data"),
        (
            "a scalar",
            r#"{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}"#.to_owned(),
            "a scalar, not a matrix",
        ),
        ("a vector in a matrix", matrix(r#"[{"metric":{},"value":[1,"1"]}, 3]"#), "invalid type"),
        ("a number that is not in quotes", row("[1000,1]"), "invalid type"),
        ("no number", row(r#"[1000,"a\u001bb"]"#), "`a\\u{1b}b` is not a number"),
        ("backwards", row(r#"[1060,"1"],[1000,"1"]"#), "not in order"),
        ("twice", row(r#"[1060,"1"],[1060,"1"]"#), "not in order"),
        ("before the range", row(r#"[998,"1"]"#), "outside of the range"),
        ("after the range", row(r#"[1122,"1"]"#), "outside of the range"),
        ("no time", row(r#"[1e300,"1"]"#), "outside of the range"),
        ("a huge number", row(r#"[1e999,"1"]"#), "out of range"),
        ("histograms", matrix(r#"[{"metric":{},"histograms":[[1,{}]]}]"#), "native histogram"),
        ("too many series", matrix(&format!("[{many}]")), "5001 series, more than 5000"),
        ("deep", deep.clone(), "invalid"),
        ("deep inside", matrix(&deep), "expected value"),
        ("deep where nobody looks", format!(r#"{{"x":{deep}"#), "EOF"),
        ("a long name", format!(r#"{{"status":"{}"}}"#, "x".repeat(1 << 20)), "with an error"),
    ] {
        let message = answered(&body).unwrap_err();
        assert!(message.contains(want), "{case}: {message}");
        assert!(message.starts_with("https://prom.example "), "{case}: {message}");
        assert!(message.len() < 600 && !message.contains(char::is_control), "{case}: {message}");
    }
    let from = Address::read("https://prom.example").unwrap();
    let message = read(b"{\"status\":\"\xff\"}", &question(1), &from).unwrap_err().to_string();
    assert!(message.contains("not UTF-8"), "{message}");
}

#[test]
fn an_error_status_tells_its_reason() {
    let from = Address::read("https://prom.example").unwrap();
    let parse = br#"{"status":"error","errorType":"bad_data","error":"1:5: parse error"}"#;
    for (status, body, want) in [
        (400, &parse[..], "answered with an error (bad_data): 1:5: parse error"),
        (503, b"<html>", "answered with status 503"),
        (200, b"", "answered with status 200"),
        (401, parse, "status 401; --check-token prom.example=FILE names a token"),
    ] {
        let message = refusal(status, body, &from).to_string();
        assert!(message.ends_with(want), "{message}");
    }
}

#[test]
fn the_request_is_a_form() {
    let request = request("up{a=\"&\"} > 1", &question(120));
    assert_eq!(request.method(), "POST");
    assert_eq!(
        request.body(),
        "query=up%7Ba%3D%22%26%22%7D%20%3E%201&start=1970%2D01%2D01T00%3A16%3A40Z\
         &end=1970%2D01%2D01T00%3A18%3A40Z&step=60"
    );
}

/// Answers to damage: two that are read, one that says why there is none.
fn answers() -> Vec<String> {
    let rows = r#"[{"metric":{"node":"a"},"values":[[1000,"1"],[1060.5,"NaN"],[1120,"+Inf"]]},
        {"metric":{},"values":[[1000,"-2.5e-3"],[1060,"1"]]}]"#;
    let warned = r#","warnings":["one store is missing"],"infos":["i"]}"#;
    let matrix = matrix(rows);
    let with_warnings = format!("{}{warned}", matrix.strip_suffix('}').unwrap());
    let error = r#"{"status":"error","errorType":"bad_data","error":"1:5: parse error"}"#;
    vec![matrix, with_warnings, error.to_owned()]
}

/// What is difficult for a reader of an answer.
const PIECES: [&[u8]; 20] = [
    b"",
    b"[",
    b"]",
    b"{",
    b"}",
    b",",
    b":",
    b"\"",
    b"\\",
    b"null",
    b"1e999",
    b"-1",
    b"999,\"1\"],[",
    b"1060",
    b"\"-Inf\"",
    b"\"warnings\":[\"\\u001b\"],",
    b"\\ud800",
    b"\x1b[2J\n",
    b"\xff",
    b"<html>",
];

/// A place, how many bytes are replaced there, by which piece, and how often that is written.
type Damage = (Index, usize, usize, usize);

fn damages() -> impl Strategy<Value = Vec<Damage>> {
    prop::collection::vec((any::<Index>(), 0..20_usize, 0..PIECES.len(), 0..4_usize), 1..6)
}

fn damaged(answer: &str, damages: &[Damage]) -> Vec<u8> {
    let mut bytes = answer.as_bytes().to_vec();
    for (at, length, piece, times) in damages {
        let at = at.index(bytes.len() + 1);
        let end = (at + length).min(bytes.len());
        bytes.splice(at..end, PIECES[*piece].repeat(*times));
    }
    bytes
}

proptest! {
    /// An answer is read, and keeps to the question; or it is refused with one line that is safe to
    /// show.
    #[test]
    fn a_damaged_answer_is_read_or_refused(
        answer in prop::sample::select(answers()),
        damages in damages(),
    ) {
        let bytes = damaged(&answer, &damages);
        let (from, question) = (Address::read("https://prom.example").unwrap(), question(120));
        let mut messages = vec![refusal(503, &bytes, &from).to_string()];
        match read(&bytes, &question, &from) {
            Ok(CheckSeries { step, series, warnings }) => {
                prop_assert_eq!(step, 60);
                let (first, last) = (1_000_000 - TOLERANCE, 1_120_000 + TOLERANCE);
                for Series { labels: _, points } in series {
                    let times = points.iter().map(|(at, _)| at.as_millisecond());
                    let times: Vec<i64> = times.collect();
                    prop_assert!(times.iter().all(|at| (first..=last).contains(at)), "{:?}", times);
                    prop_assert!(times.is_sorted_by(|one, next| one < next), "{:?}", times);
                }
                prop_assert!(warnings.len() <= MOST_WARNINGS, "{:?}", warnings);
                prop_assert!(!warnings.concat().contains(char::is_control), "{:?}", warnings);
            }
            Err(problem) => messages.push(problem.to_string()),
        }
        for message in messages {
            prop_assert!(message.starts_with("https://prom.example "), "{}", message);
            prop_assert!(!message.contains(char::is_control), "{}", message);
            // A character of an answer may be spelled out.
            prop_assert!(message.len() < 5_000, "{}", message);
        }
    }
}
