//! What is written: accepted forms, and the message for each that is refused.

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::super::{Calendar, Exclusion, TimeZoneName, Window, WindowDuration, WindowState};
use super::at;

/// The message for an invalid value.
fn refused<T: DeserializeOwned + std::fmt::Debug>(written: Value) -> String {
    serde_json::from_value::<T>(written).unwrap_err().to_string()
}

fn schedule_refused(schedule: &str) -> String {
    refused::<Window>(json!({"schedule": schedule, "duration": "1h"}))
}

#[test]
fn a_schedule_that_is_refused_has_a_message() {
    let five = "minute, hour, day of month, month, day of week";
    let days = "is not supported: write the days as numbers";
    for (schedule, want) in [
        ("", format!("`` has 0 fields: write five of them: {five}")),
        ("0 2 * *", format!("`0 2 * *` has 4 fields: write five of them: {five}")),
        ("0 0 2 * * MON", format!("`0 0 2 * * MON` has 6 fields: write five of them: {five}")),
        ("@daily", "`@daily` is not supported: write `0 0 * * *`".into()),
        ("@WEEKLY", "`@WEEKLY` is not supported: write `0 0 * * 0`".into()),
        ("@reboot", format!("`@reboot` is not supported: write five of them: {five}")),
        ("@every 1h", format!("`@every` is not supported: write five of them: {five}")),
        (
            "TZ=Europe/Berlin 0 2 * * *",
            "`TZ=Europe/Berlin` is not supported here: set `timeZone: Europe/Berlin` next to `schedule`"
                .into(),
        ),
        (
            "CRON_TZ=UTC 0 2 * * *",
            "`CRON_TZ=UTC` is not supported here: set `timeZone: UTC` next to `schedule`".into(),
        ),
        (
            "0 2 1 * MON",
            "`0 2 1 * MON` restricts day of month and day of week, and cron would open on either: write two windows"
                .into(),
        ),
        (
            "0 2 */2 * */2",
            "`0 2 */2 * */2` restricts day of month and day of week, and cron would open on either: write two windows"
                .into(),
        ),
        ("0 2 L * *", format!("`0 2 L * *`: day of month `L` {days}")),
        ("0 2 15W * *", format!("`0 2 15W * *`: day of month `15W` {days}")),
        ("0 2 LW * *", format!("`0 2 LW * *`: day of month `LW` {days}")),
        ("0 2 * * 5L", format!("`0 2 * * 5L`: day of week `5L` {days}")),
        ("0 2 * * MON#2", format!("`0 2 * * MON#2`: day of week `MON#2` {days}")),
        ("0 2 ? * MON", "`0 2 ? * MON`: day of month `?` is not supported: write `*`".into()),
    ] {
        assert_eq!(schedule_refused(schedule), want);
    }
}

#[test]
fn a_field_that_is_refused_has_a_message() {
    for (schedule, want) in [
        ("60 2 * * *", "minute `60` is not a number from 0 to 59"),
        ("H 2 * * *", "minute `H` is not a number from 0 to 59"),
        ("0 24 * * *", "hour `24` is not a number from 0 to 23"),
        ("0 +2 * * *", "hour `+2` is not a number from 0 to 23"),
        ("0 -2 * * *", "hour `-2` is not a number from 0 to 23"),
        ("0 002 * * *", "hour `002` is not a number from 0 to 23"),
        ("0 2 0 * *", "day of month `0` is not a number from 1 to 31"),
        ("0 2 * 13 *", "month `13` is not a number from 1 to 12 or JAN to DEC"),
        ("0 2 * MON *", "month `MON` is not a number from 1 to 12 or JAN to DEC"),
        ("0 2 * * 8", "day of week `8` is not a number from 0 to 7 or SUN to SAT"),
        ("0 2 * * Monday", "day of week `Monday` is not a number from 0 to 7 or SUN to SAT"),
        ("0 2 * * MON,,TUE", "day of week `` is not a number from 0 to 7 or SUN to SAT"),
        ("0 2 * * ١", "day of week `١` is not a number from 0 to 7 or SUN to SAT"),
        (
            "0 22-4 * * *",
            "hour `22-4` ends before it begins: write two ranges, such as `22-23,0-4`",
        ),
        (
            "0 2 * * 5-1",
            "day of week `5-1` ends before it begins: write two ranges, such as `5-7,0-1`",
        ),
        ("*/0 2 * * *", "minute `*/0` has a step that is not a number from 1 to 59"),
        ("*/60 2 * * *", "minute `*/60` has a step that is not a number from 1 to 59"),
        ("*/-1 2 * * *", "minute `*/-1` has a step that is not a number from 1 to 59"),
        ("*/2/2 2 * * *", "minute `*/2/2` has a step that is not a number from 1 to 59"),
        ("5/10 2 * * *", "minute `5/10` has a step but no range: write `5-59/10`"),
        ("1-2-3 2 * * *", "minute `1-2-3` is not a number from 0 to 59"),
    ] {
        assert_eq!(schedule_refused(schedule), format!("`{schedule}`: {want}"));
    }
}

#[test]
fn a_window_that_opens_rarely_is_refused_with_the_gap() {
    let gap = |from: &str, to: &str| {
        format!("does not open between {from} and {to}; it must open at least every 35 days")
    };
    for (schedule, want) in [
        ("0 2 31 * *", gap("2025-01-31", "2025-03-31")),
        ("0 2 29-31 * *", gap("2025-01-31", "2025-03-29")),
        ("0 2 1 JAN-OCT *", gap("2025-10-01", "2026-01-01")),
        ("0 2 1 6 *", gap("2025-06-01", "2026-06-01")),
        ("0 2 29 2 *", gap("2028-02-29", "2032-02-29")),
        ("0 2 * 1,3-12 SUN", gap("2032-01-25", "2032-03-07")),
        ("0 2 30 2 *", "never opens: none of its months has such a day".into()),
        ("0 2 31 4,6,9,11 *", "never opens: none of its months has such a day".into()),
    ] {
        let found = schedule_refused(schedule);
        assert_eq!(found, format!("`{schedule}` {want}"));
    }
    for schedule in ["0 2 28 * *", "0 2 28-31 * *", "0 2 1 * *", "0 2 * * MON", "0 2 */30 * *"] {
        serde_json::from_value::<Window>(json!({"schedule": schedule, "duration": "1h"})).unwrap();
    }
}

#[test]
fn what_is_not_a_schedule_is_refused_with_a_message() {
    let window = |field: &str, value: &str| {
        let mut written = json!({"schedule": "0 2 * * *", "duration": "1h"});
        written[field] = json!(value);
        refused::<Window>(written)
    };
    let example = "is not a duration such as 90s, 10m or 1h30m";
    for (field, value, want) in [
        ("duration", "", format!("`` {example}")),
        ("duration", "10", format!("`10` {example}")),
        ("duration", "7d", format!("`7d` {example}")),
        ("duration", "59s", "`59s` is not between 1m and 168h (seven days)".into()),
        ("duration", "-1h", "`-1h` is not between 1m and 168h (seven days)".into()),
        ("duration", "168h1s", "`168h1s` is not between 1m and 168h (seven days)".into()),
        ("duration", "1m0.5s", "`1m0.5s` is not a whole number of seconds".into()),
        (
            "duration",
            "999999999999999h",
            "`999999999999999h` is not between 1m and 168h (seven days)".into(),
        ),
        ("duration", "99999999999999999999h", format!("`99999999999999999999h` {example}")),
        ("timeZone", "", "the time zone is empty: leave it out for UTC".into()),
        (
            "timeZone",
            "Local",
            "`Local` depends on the machine: write the IANA name, such as Europe/Berlin".into(),
        ),
        (
            "timeZone",
            "europe/berlin",
            "`europe/berlin` is not the IANA name of a time zone: did you mean `Europe/Berlin`?"
                .into(),
        ),
        (
            "timeZone",
            "Berlin",
            "`Berlin` is not the IANA name of a time zone: did you mean `Europe/Berlin`?".into(),
        ),
        (
            "timeZone",
            "America/NewYork",
            "`America/NewYork` is not the IANA name of a time zone: did you mean `America/New_York`?"
                .into(),
        ),
        (
            "timeZone",
            "New York",
            "`New York` is not the IANA name of a time zone: did you mean `America/New_York`?".into(),
        ),
        (
            "timeZone",
            "PST",
            "`PST` is not the IANA name of a time zone such as Europe/Berlin".into(),
        ),
        (
            "timeZone",
            "Etc/Unknown",
            "`Etc/Unknown` is not the IANA name of a time zone such as Europe/Berlin".into(),
        ),
        (
            "timeZone",
            "../../etc/passwd",
            "`../../etc/passwd` is not the IANA name of a time zone such as Europe/Berlin".into(),
        ),
        (
            "zone",
            "UTC",
            "unknown field `zone`, expected one of `schedule`, `duration`, `timeZone`".into(),
        ),
    ] {
        assert_eq!(window(field, value), want);
    }
}

#[test]
fn an_exclusion_that_is_refused_has_a_message() {
    let exclusion = |from: &str, to: &str| {
        refused::<Exclusion>(json!({"from": from, "to": to, "reason": "freeze"}))
    };
    let time = "is not a time such as 2026-12-18T00:00:00Z or 2026-12-18T00:00:00+01:00";
    let (begin, end) = ("2026-12-18T00:00:00Z", "2027-01-04T00:00:00Z");
    for (from, to, want) in [
        (end, begin, format!("`from` ({end}) is not before `to` ({begin})")),
        (begin, begin, format!("`from` ({begin}) is not before `to` ({begin})")),
        ("2026-12-18", end, format!("`2026-12-18` {time}")),
        ("2026-12-18T00:00:00", end, format!("`2026-12-18T00:00:00` {time}")),
        (begin, "10000-01-01T00:00:00Z", format!("`10000-01-01T00:00:00Z` {time}")),
        (begin, "tomorrow", format!("`tomorrow` {time}")),
    ] {
        assert_eq!(exclusion(from, to), want);
    }
    for (written, want) in [
        (json!({"from": begin, "to": end}), "missing field `reason`"),
        (
            json!({"from": begin, "to": end, "reason": "", "until": end}),
            "unknown field `until`, expected one of `from`, `to`, `reason`",
        ),
    ] {
        assert_eq!(refused::<Exclusion>(written), want);
    }
}

#[test]
fn what_is_accepted_is_shown_as_written() {
    let written =
        json!({"schedule": " 0  2 * *\tfri-SUN ", "duration": "90m", "timeZone": "Asia/Kolkata"});
    let window: Window = serde_json::from_value(written).unwrap();
    assert_eq!(window.to_string(), "0 2 * * fri-SUN for 1h 30m, Asia/Kolkata");
    let again = serde_json::to_value(&window).unwrap();
    let want =
        json!({"schedule": "0 2 * * fri-SUN", "duration": "1h 30m", "timeZone": "Asia/Kolkata"});
    assert_eq!(again, want);
    assert_eq!(serde_json::from_value::<Window>(again).unwrap(), window);
    let written = json!({"schedule": "0 2 * * 7", "duration": "168h"});
    let window: Window = serde_json::from_value(written).unwrap();
    assert_eq!(window.to_string(), "0 2 * * 7 for 168h, UTC");
    let written = json!({"from": "2026-12-18T00:00:00+01:00", "to": "2027-01-04T00:00:00Z", "reason": "freeze"});
    let exclusion: Exclusion = serde_json::from_value(written).unwrap();
    assert_eq!(exclusion.to_string(), "2026-12-17T23:00:00Z to 2027-01-04T00:00:00Z: freeze");
    let again = serde_json::to_value(&exclusion).unwrap();
    assert_eq!(serde_json::from_value::<Exclusion>(again).unwrap(), exclusion);
}

#[test]
fn the_schema_has_the_documentation_of_each_field() {
    for (schema, fields) in [
        (schemars::schema_for!(Window), ["schedule", "duration", "timeZone"]),
        (schemars::schema_for!(Exclusion), ["from", "to", "reason"]),
    ] {
        assert_eq!(schema.get("additionalProperties"), Some(&json!(false)));
        for field in fields {
            let property = &schema.as_value()["properties"][field];
            assert!(property["description"].as_str().is_some_and(|it| it.len() > 20), "{property}");
        }
    }
}

#[test]
fn hostile_input_ends_in_a_message() {
    assert_eq!(
        schedule_refused(&"0 2 * * *,".repeat(1_000)),
        "a schedule of 10000 bytes: at most 256 are allowed"
    );
    assert_eq!(
        refused::<TimeZoneName>(json!("Europe/Berlin".repeat(1_000))),
        "a time zone of 13000 bytes: IANA names, such as Europe/Berlin, are shorter"
    );
    assert!(
        refused::<WindowDuration>(json!("9".repeat(10_000) + "h")).contains("is not a duration")
    );
    let many = vec![json!({"schedule": "0 2 * * *", "duration": "1h"}); 21];
    let error = Window::list(Value::Array(many[1..].to_vec())).map(|it| it.len());
    assert_eq!(error.unwrap(), 20);
    let error = Window::list(Value::Array(many)).unwrap_err().to_string();
    assert_eq!(error, "21 windows: at most 20 are allowed");
}

#[test]
fn the_ends_of_time_are_instants_too() {
    let every_minute = |zone: &str| super::window("* * * * *", "168h", zone);
    let first = jiff::Timestamp::MIN;
    let last = jiff::Timestamp::MAX;
    let exclusion = Exclusion { from: first, to: last, reason: "for ever".to_owned() };
    for zone in ["UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Europe/Berlin"] {
        let open = Calendar::of(&[every_minute(zone)], &[]);
        let closed = Calendar::of(&[every_minute(zone)], std::slice::from_ref(&exclusion));
        for now in [first, at("-009999-06-01T00:00:00Z"), at("9999-12-29 00:00"), last] {
            let never = WindowState::Closed { opens: None, reason: Some("for ever".to_owned()) };
            if now != last {
                assert_eq!(closed.at(now), never, "{zone} {now}");
            }
            assert_eq!(closed.openings(now).count(), 0, "{zone} {now}");
            assert_eq!(closed.next_start(now, 0), None, "{zone} {now}");
            assert!(open.openings(now).count() <= 2, "{zone} {now}");
        }
    }
}
