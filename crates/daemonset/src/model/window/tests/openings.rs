//! Openings, by example.

use jiff::Timestamp;

use super::super::{Calendar, Opening, TimeZoneName, WindowState};
use super::{at, calendar, exclusion, window};

/// `2026-10-25 00:30 to 2026-10-25 01:30`, in UTC.
fn show(opening: Opening) -> String {
    let show = |at: Timestamp| at.strftime("%F %H:%M").to_string();
    let closes = opening.closes.map_or("never".to_owned(), show);
    format!("{} to {closes}", show(opening.opens))
}

fn first_two(calendar: &Calendar, from: &str) -> Vec<String> {
    calendar.openings(at(from)).take(2).map(show).collect()
}

/// What it shows; schedule, duration and zone; the instant from which on; the first two openings.
type Row<'a> = (&'a str, (&'a str, &'a str, &'a str), &'a str, &'a str, &'a str);

fn check(rows: &[Row<'_>]) {
    for (what, (schedule, duration, zone), from, first, second) in rows {
        let found = first_two(&calendar(schedule, duration, zone), from);
        let want: Vec<&str> = [*first, *second].into_iter().filter(|it| !it.is_empty()).collect();
        assert_eq!(found, want, "{what}");
    }
}

#[test]
fn a_window_opens_on_its_schedule_and_stays_open_for_its_duration() {
    check(&[
        (
            "over midnight",
            ("0 22 * * 5", "6h", "UTC"),
            "2027-01-04 00:00",
            "2027-01-08 22:00 to 2027-01-09 04:00",
            "2027-01-15 22:00 to 2027-01-16 04:00",
        ),
        (
            "one that touches the next one",
            ("0 2,3,4 * * *", "1h", "UTC"),
            "2027-01-04 00:00",
            "2027-01-04 02:00 to 2027-01-04 05:00",
            "2027-01-05 02:00 to 2027-01-05 05:00",
        ),
        (
            "all week",
            ("0 0 * * MON", "168h", "UTC"),
            "2027-01-06 12:00",
            "2027-01-06 12:00 to never",
            "",
        ),
        (
            "opened seven days ago",
            ("59 23 1 * *", "168h", "Pacific/Kiritimati"),
            "2027-01-08 09:58",
            "2027-01-08 09:58 to 2027-01-08 09:59",
            "2027-02-01 09:59 to 2027-02-08 09:59",
        ),
        (
            "opened eight dates ago, as a day had 23 hours",
            ("59 23 21 * *", "168h", "Europe/Berlin"),
            "2027-03-28 22:30",
            "2027-03-28 22:30 to 2027-03-28 22:59",
            "2027-04-21 21:59 to 2027-04-28 21:59",
        ),
    ]);
}

#[test]
fn a_window_opens_once_and_for_its_duration_when_the_clocks_change() {
    let berlin = "Europe/Berlin";
    check(&[
        (
            "a time that is skipped opens when the clocks have changed",
            ("30 2 * * SUN", "1h", berlin),
            "2027-03-27 12:00",
            "2027-03-28 01:00 to 2027-03-28 02:00",
            "2027-04-04 00:30 to 2027-04-04 01:30",
        ),
        (
            "the first skipped time, too",
            ("0 2 * * SUN", "1h", berlin),
            "2027-03-27 12:00",
            "2027-03-28 01:00 to 2027-03-28 02:00",
            "2027-04-04 00:00 to 2027-04-04 01:00",
        ),
        (
            "a time that is repeated opens once",
            ("30 2 * * SUN", "30m", berlin),
            "2026-10-24 12:00",
            "2026-10-25 00:30 to 2026-10-25 01:00",
            "2026-11-01 01:30 to 2026-11-01 02:00",
        ),
        (
            "elapsed time in a night of 23 hours",
            ("0 1 * * SUN", "4h", berlin),
            "2027-03-27 12:00",
            "2027-03-28 00:00 to 2027-03-28 04:00",
            "2027-04-03 23:00 to 2027-04-04 03:00",
        ),
        (
            "elapsed time in a night of 25 hours",
            ("0 1 * * SUN", "4h", berlin),
            "2026-10-24 12:00",
            "2026-10-24 23:00 to 2026-10-25 03:00",
            "2026-11-01 00:00 to 2026-11-01 04:00",
        ),
        (
            "several times are skipped, and one is not",
            ("0,15,45 2,3 * * *", "5m", berlin),
            "2027-03-28 00:00",
            "2027-03-28 01:00 to 2027-03-28 01:05",
            "2027-03-28 01:15 to 2027-03-28 01:20",
        ),
        (
            "it is closed while an hour is repeated",
            ("*/30 * * * *", "30m", berlin),
            "2026-10-24 12:00",
            "2026-10-24 12:00 to 2026-10-25 01:00",
            "2026-10-25 02:00 to 2027-10-31 01:00",
        ),
    ]);
}

#[test]
fn clocks_of_other_zones_change_in_other_ways() {
    let (york, howe) = ("America/New_York", "Australia/Lord_Howe");
    check(&[
        (
            "New York, skipped",
            ("30 2 14 * *", "1h", york),
            "2027-03-01 00:00",
            "2027-03-14 07:00 to 2027-03-14 08:00",
            "2027-04-14 06:30 to 2027-04-14 07:30",
        ),
        (
            "New York, repeated",
            ("30 1 1 * *", "3h", york),
            "2026-10-31 00:00",
            "2026-11-01 05:30 to 2026-11-01 08:30",
            "2026-12-01 06:30 to 2026-12-01 09:30",
        ),
        (
            "half an hour is skipped",
            ("15 2 * * SUN", "1h", howe),
            "2026-10-03 00:00",
            "2026-10-03 15:30 to 2026-10-03 16:30",
            "2026-10-10 15:15 to 2026-10-10 16:15",
        ),
        (
            "half an hour is repeated",
            ("45 1 * * SUN", "1h", howe),
            "2027-04-03 00:00",
            "2027-04-03 14:45 to 2027-04-03 15:45",
            "2027-04-10 15:15 to 2027-04-10 16:15",
        ),
        (
            "Samoa had no Friday",
            ("0 2 * * FRI", "3h", "Pacific/Apia"),
            "2011-12-29 00:00",
            "2011-12-30 10:00 to 2011-12-30 13:00",
            "2012-01-05 12:00 to 2012-01-05 15:00",
        ),
        (
            "and its Saturday began when its Thursday ended",
            ("0 20 * * THU", "12h", "Pacific/Apia"),
            "2011-12-29 00:00",
            "2011-12-30 06:00 to 2011-12-30 18:00",
            "2012-01-05 06:00 to 2012-01-05 18:00",
        ),
    ]);
}

#[test]
fn windows_are_joined_and_exclusions_cut_them() {
    let night = || window("0 22 * * *", "6h", "UTC");
    let cases = [
        (
            "overlapping windows are one opening",
            vec![night(), window("0 3 * * *", "2h", "UTC")],
            vec![],
            ["2027-01-04 22:00 to 2027-01-05 05:00", "2027-01-05 22:00 to 2027-01-06 05:00"],
        ),
        (
            "and so are touching ones of other time zones",
            vec![night(), window("0 5 * * *", "2h", "Europe/Berlin")],
            vec![],
            ["2027-01-04 22:00 to 2027-01-05 06:00", "2027-01-05 22:00 to 2027-01-06 06:00"],
        ),
        (
            "a window in another one changes nothing",
            vec![night(), window("0 23 * * *", "1m", "UTC")],
            vec![],
            ["2027-01-04 22:00 to 2027-01-05 04:00", "2027-01-05 22:00 to 2027-01-06 04:00"],
        ),
        (
            "an exclusion cuts a window in two",
            vec![night()],
            vec![exclusion("2027-01-05 00:00", "2027-01-05 01:00", "backup")],
            ["2027-01-04 22:00 to 2027-01-05 00:00", "2027-01-05 01:00 to 2027-01-05 04:00"],
        ),
        (
            "the begin is cut off, then a whole opening",
            vec![night()],
            vec![
                exclusion("2027-01-05 20:00", "2027-01-06 04:00", "day off"),
                exclusion("2027-01-04 21:00", "2027-01-05 01:00", "backup"),
            ],
            ["2027-01-05 01:00 to 2027-01-05 04:00", "2027-01-06 22:00 to 2027-01-07 04:00"],
        ),
        (
            "exclusions may overlap, contain each other and touch",
            vec![night()],
            vec![
                exclusion("2027-01-04 23:00", "2027-01-05 02:00", "long"),
                exclusion("2027-01-05 00:00", "2027-01-05 01:00", "within"),
                exclusion("2027-01-05 01:30", "2027-01-05 02:30", "overlaps"),
                exclusion("2027-01-05 02:30", "2027-01-05 03:00", "touches"),
            ],
            ["2027-01-04 22:00 to 2027-01-04 23:00", "2027-01-05 03:00 to 2027-01-05 04:00"],
        ),
        (
            "without windows, it is open but for exclusions",
            vec![],
            vec![exclusion("2027-01-05 00:00", "2027-01-06 00:00", "freeze")],
            ["2027-01-04 12:00 to 2027-01-05 00:00", "2027-01-06 00:00 to never"],
        ),
        (
            "a window that never closes is as open after an exclusion",
            vec![window("0 0 * * *", "24h", "UTC")],
            vec![exclusion("2027-01-05 00:00", "2027-01-06 00:00", "freeze")],
            ["2027-01-04 12:00 to 2027-01-05 00:00", "2027-01-06 00:00 to never"],
        ),
    ];
    for (what, windows, exclusions, want) in cases {
        let calendar = Calendar::of(&windows, &exclusions);
        assert_eq!(first_two(&calendar, "2027-01-04 12:00"), want, "{what}");
    }
}

#[test]
fn it_is_open_or_closed_with_the_next_moment_and_the_reason() {
    let friday = window("0 22 * * FRI", "6h", "UTC");
    let freeze = exclusion("2026-12-18 00:00", "2027-01-04 00:00", "freeze");
    let longer = exclusion("2026-12-24 00:00", "2027-01-07 00:00", "holidays");
    let for_ever = exclusion("2027-06-01 00:00", "9999-12-30 00:00", "end of life");
    let calendar = Calendar::of(&[friday], &[freeze, longer, for_ever]);
    let open = |closes: &str| WindowState::Open { closes: Some(at(closes)) };
    let closed = |opens: Option<&str>, reason: Option<&str>| WindowState::Closed {
        opens: opens.map(at),
        reason: reason.map(str::to_owned),
    };
    for (what, now, want) in [
        ("Friday's night lasts to Saturday", "2027-01-09 03:00", open("2027-01-09 04:00")),
        ("the first moment is in it", "2027-01-08 22:00", open("2027-01-09 04:00")),
        ("the last one is not", "2027-01-09 04:00", closed(Some("2027-01-15 22:00"), None)),
        ("an exclusion", "2026-12-18 00:00", closed(Some("2027-01-08 22:00"), Some("freeze"))),
        ("two of them", "2026-12-25 23:00", closed(Some("2027-01-08 22:00"), Some("holidays"))),
        ("only the second", "2027-01-05 00:00", closed(Some("2027-01-08 22:00"), Some("holidays"))),
        ("it ended", "2027-01-07 00:00", closed(Some("2027-01-08 22:00"), None)),
        ("never again", "2027-06-01 00:00", closed(None, Some("end of life"))),
        ("soon never again", "2027-05-29 12:00", closed(None, None)),
    ] {
        assert_eq!(calendar.at(at(now)), want, "{what}");
    }
    let always = Calendar::of(&[], &[]);
    assert_eq!(always.at(at("2027-01-01 00:00")), WindowState::Open { closes: None });
}

#[test]
fn what_is_farther_away_than_400_days_is_never() {
    let now = "2027-01-04 00:00";
    let (in_400_days, later) = ("2028-02-08 00:00", "2028-02-08 00:01");
    for (from, to, want) in [
        (now, in_400_days, WindowState::Closed { opens: Some(at(in_400_days)), reason: None }),
        (now, later, WindowState::Closed { opens: None, reason: None }),
        (in_400_days, later, WindowState::Open { closes: Some(at(in_400_days)) }),
        (later, "9999-01-01 00:00", WindowState::Open { closes: None }),
    ] {
        let freeze = exclusion(from, to, "freeze");
        for windows in [vec![], vec![window("0 0 * * *", "24h", "UTC")]] {
            let calendar = Calendar::of(&windows, std::slice::from_ref(&freeze));
            let found = match calendar.at(at(now)) {
                WindowState::Closed { opens, reason: _ } => {
                    WindowState::Closed { opens, reason: None }
                }
                open @ WindowState::Open { .. } => open,
            };
            assert_eq!(found, want, "{freeze}");
        }
    }
}

#[test]
fn what_takes_longer_waits_for_a_longer_opening() {
    let short = window("0 2 * * *", "10m", "UTC");
    let long = window("0 2 * * SUN", "3h", "UTC");
    let calendar = Calendar::of(&[short, long], &[]);
    for (now, seconds, want) in [
        ("2027-01-04 00:00", 0, Some("2027-01-04 02:00")),
        ("2027-01-04 00:00", 600, Some("2027-01-04 02:00")),
        ("2027-01-04 00:00", 601, Some("2027-01-10 02:00")),
        ("2027-01-04 02:03", 420, Some("2027-01-04 02:03")),
        ("2027-01-04 02:03", 421, Some("2027-01-05 02:00")),
        ("2027-01-04 02:10", 0, Some("2027-01-05 02:00")),
        ("2027-01-04 00:00", 3 * 3600, Some("2027-01-10 02:00")),
        ("2027-01-04 00:00", 3 * 3600 + 1, None),
        ("2027-01-04 00:00", u64::MAX, None),
    ] {
        let want = want.map(at);
        assert_eq!(calendar.next_start(at(now), seconds), want, "{now} {seconds}");
        assert_eq!(calendar.fits(at(now), seconds), want == Some(at(now)), "{now} {seconds}");
    }
    assert!(Calendar::of(&[], &[]).fits(at("2027-01-04 00:00"), u64::MAX));
}

#[test]
fn an_opening_has_a_text() {
    let zone = |name: &str| TimeZoneName::try_from(name.to_owned()).unwrap();
    for (opens, closes, now, want) in [
        ("2027-01-05 01:00", Some("2027-01-05 04:00"), "2027-01-04 00:00", "Tue 02:00 to 05:00"),
        (
            "2027-01-08 21:00",
            Some("2027-01-09 03:00"),
            "2027-01-04 00:00",
            "Fri 22:00 to Sat 04:00",
        ),
        ("2027-01-05 01:00", None, "2027-01-05 01:00", "from Tue 02:00"),
        (
            "2027-01-12 22:00",
            Some("2027-01-13 01:00"),
            "2027-01-04 00:00",
            "Tue 2027-01-12 23:00 to Wed 2027-01-13 02:00",
        ),
        (
            "2027-01-12 01:00",
            Some("2027-01-12 04:00"),
            "2027-01-04 00:00",
            "Tue 2027-01-12 02:00 to 05:00",
        ),
        (
            "2027-01-05 01:00",
            Some("2027-01-12 04:00"),
            "2027-01-04 00:00",
            "Tue 02:00 to Tue 2027-01-12 05:00",
        ),
    ] {
        let opening = Opening { opens: at(opens), closes: closes.map(at) };
        let text = opening.text(&zone("Europe/Berlin"), at(now)).to_string();
        assert_eq!(text, format!("{want} Europe/Berlin"));
    }
}

#[test]
fn times_are_shown_in_the_time_zone_of_all_windows() {
    let berlin = || window("0 2 * * *", "1h", "Europe/Berlin");
    for (windows, want) in [
        (vec![], "UTC"),
        (vec![berlin(), berlin()], "Europe/Berlin"),
        (vec![berlin(), window("0 2 * * *", "1h", "Europe/Paris")], "UTC"),
    ] {
        assert_eq!(Calendar::of(&windows, &[]).time_zone().to_string(), want);
    }
}
