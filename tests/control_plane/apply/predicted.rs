//! A rehearsal of a cluster, and then the real run on it: both behave the same.

use std::time::Duration;

use jiff::Timestamp;

use super::*;

/// The course of a run, according to its own output.
#[derive(Debug)]
struct Course {
    /// Nodes in the order in which their pods were deleted.
    deleted: Vec<String>,
    /// The exit code.
    exit: i64,
    /// The duration from the first delete until the last node had an available pod again.
    took: Duration,
}

impl Course {
    /// Reads the output of `-o json`.
    fn of(output: &Output) -> Self {
        let text = stdout(output);
        let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let events: Vec<Value> = events.collect();
        let of = |kind: &'static str| events.iter().filter(move |event| event["event"] == kind);
        let time = |event: &Value| event["time"].as_str().unwrap().parse::<Timestamp>().unwrap();
        let (began, ended) = (of("deleting").map(time).min(), of("recovered").map(time).max());
        Self {
            deleted: of("deleting").map(|it| it["node"].as_str().unwrap().to_owned()).collect(),
            exit: of("ended").next().unwrap()["exitCode"].as_i64().unwrap(),
            took: ended.unwrap().duration_since(began.unwrap()).try_into().unwrap(),
        }
    }

    /// The nodes of each round of `budget` deletes, as sets.
    fn rounds(&self, budget: usize) -> Vec<BTreeSet<&str>> {
        let rounds = self.deleted.chunks(budget);
        rounds.map(|round| round.iter().map(String::as_str).collect()).collect()
    }
}

/// Timestamps have a resolution of one second, so pods take 8 s to keep the error small.
#[test]
fn a_rehearsal_predicts_the_rollout() {
    let plane = ControlPlane::start();
    plane.create_nodes(three_zones(12));
    let version =
        |image: &str| slowly(&manifest("predicted", image, &at_most("3"))).replace("500ms", "8s");
    let fleet = Fleet::new(&plane, "predicted", 12, &version("v1"));
    let rehearsal = fleet.apply(&version("v2"), &["--rehearse", "-o", "json"]);
    assert_eq!(rehearsal.status.code(), Some(0), "{}", output_text(&rehearsal));
    assert_eq!(fleet.images(), ["v1".to_owned()].into(), "a rehearsal changes nothing");
    let real = fleet.apply(&version("v2"), &["-o", "json"]);
    assert_eq!(real.status.code(), Some(0), "{}", output_text(&real));

    let (message, done) = (Course::of(&rehearsal), Course::of(&real));
    println!("rehearsal {message:?}\nreal run {done:?}");
    assert_eq!(message.rounds(3), done.rounds(3), "the same nodes, in the same order of rounds");
    assert_eq!(message.exit, done.exit);
    let ratio = message.took.as_secs_f64() / done.took.as_secs_f64();
    assert!((0.75..=1.25).contains(&ratio), "predicted {:?}, took {:?}", message.took, done.took);
}
