//! Windows: what has begun when one closes, and the nights in which clocks change.

use ds_plan::Exit;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::{begins, exits, fleet, ran, second, story};
use crate::rules::WindowRule;
use crate::scenario::Scenario;
use crate::story::Story;

#[test]
fn a_window_that_closes_finishes_what_began_and_the_next_one_continues() {
    let mut story = story(Vec::new());
    story.rules.window = Some(WindowRule { minute: 0, minutes: 3 });
    // Without measures, a node may take the whole deadline.
    story.rules.others = json!({"progressDeadline": "1m", "minReadySeconds": 0});
    (story.interval, story.most_runs) = (60, 90);
    let first = ran(&fleet(20, 1, Story { most_runs: 1, ..story.clone() }));
    assert_eq!(exits(&first), [Exit::Waiting]);
    let waits_for = first.pause.unwrap().waits_for;
    let untils: Vec<_> = waits_for.iter().map(|wait| wait.until).collect();
    assert_eq!(untils, ["2026-01-02T01:00:00Z".parse().ok()], "{waits_for:?}");
    // What began has its new pod, and the others keep their old one.
    let ready = first.state.matches("true").count();
    assert!(ready >= 20, "{}", first.state);
    let scenario = fleet(20, 1, story);
    let whole = ran(&scenario);
    assert_eq!(exits(&whole).last(), Some(&Exit::Done));
    let seconds: Vec<i64> = begins(&whole).iter().map(|(at, _)| second(*at, &scenario)).collect();
    let in_first = seconds.iter().filter(|at| (0..180).contains(*at)).count();
    let in_second = seconds.iter().filter(|at| (3_600..3_780).contains(*at)).count();
    assert_eq!((in_first + in_second, seconds.len()), (20, 20), "{seconds:?}");
    assert!(in_first >= 8 && in_second >= 4, "{seconds:?}");
    assert!(seconds[in_first - 1] <= 120, "nothing begins that may not end: {seconds:?}");
}

/// A window from 22:00 to 04:00 on Friday, seen by a run that starts at this time.
fn on_friday(zone: &str, day: &str, start: Timestamp) -> (Scenario, Vec<Exit>, Vec<i64>) {
    let mut story = Story { most_runs: 1, wait: Some(600), ..story(Vec::new()) };
    let window = json!({"schedule": format!("0 22 * * {day}"), "duration": "6h", "timeZone": zone});
    story.rules.others = json!({"windows": [window], "progressDeadline": "1m"});
    story.start = Some(Box::leak(start.to_string().into_boxed_str()));
    let scenario = fleet(2, 1, story);
    let outcome = ran(&scenario);
    let seconds = begins(&outcome).iter().map(|(at, _)| second(*at, &scenario)).collect();
    let exits = exits(&outcome);
    (scenario, exits, seconds)
}

/// Both weekends of summer time in 2026. Six hours are elapsed time: in the night in which the clocks
/// change, 04:00 is not the end.
#[test]
fn friday_night_opens_at_the_same_hour_of_the_day_in_summer_and_winter() {
    for (zone, day, opens) in [
        ("Europe/Berlin", "FRI", "2026-03-27T21:00:00Z"),
        ("Europe/Berlin", "SAT", "2026-03-28T21:00:00Z"),
        ("Europe/Berlin", "FRI", "2026-04-03T20:00:00Z"),
        ("Europe/Berlin", "FRI", "2026-10-23T20:00:00Z"),
        ("Europe/Berlin", "SAT", "2026-10-24T20:00:00Z"),
        ("Europe/Berlin", "FRI", "2026-10-30T21:00:00Z"),
        ("America/New_York", "FRI", "2026-03-07T03:00:00Z"),
        ("America/New_York", "SAT", "2026-03-08T03:00:00Z"),
        ("America/New_York", "FRI", "2026-03-14T02:00:00Z"),
        ("America/New_York", "SAT", "2026-11-01T02:00:00Z"),
        ("America/New_York", "FRI", "2026-11-07T03:00:00Z"),
        ("Australia/Sydney", "FRI", "2026-04-03T11:00:00Z"),
        ("Australia/Sydney", "SAT", "2026-04-04T11:00:00Z"),
        ("Australia/Sydney", "FRI", "2026-04-10T12:00:00Z"),
        ("Australia/Sydney", "SAT", "2026-10-03T12:00:00Z"),
        ("Australia/Sydney", "FRI", "2026-10-09T11:00:00Z"),
    ] {
        let opens: Timestamp = opens.parse().unwrap();
        let closes = opens + SignedDuration::from_hours(6);
        let minute = SignedDuration::from_mins(1);
        let context = format!("{zone} {day} {opens}");
        let (_, exits, begins) = on_friday(zone, day, opens - minute);
        assert_eq!((exits, begins.len()), (vec![Exit::Done], 2), "{context}");
        assert!((60..65).contains(&begins[0]), "{context}: {begins:?}");
        let (_, exits, begins) = on_friday(zone, day, closes - 5 * minute);
        assert_eq!((exits, begins.len()), (vec![Exit::Done], 2), "{context}");
        let (_, exits, begins) = on_friday(zone, day, closes + minute);
        assert_eq!((exits, begins.len()), (vec![Exit::Waiting], 0), "{context}");
    }
}
