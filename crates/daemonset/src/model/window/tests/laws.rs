//! Laws for random windows: compared with clocks that are read minute by minute, and with another
//! reader of cron expressions.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use proptest::prelude::*;

use super::super::{Calendar, Exclusion, Opening, Window, WindowState};
use super::{at, window};

/// A field as written, and its values.
type AnyField = (String, BTreeSet<i8>);

/// A random cron expression.
#[derive(Clone, Debug)]
struct Cron {
    /// Minute, hour, day of month, month, day of week.
    fields: [AnyField; 5],
}

impl Cron {
    fn text(&self) -> String {
        self.fields.each_ref().map(|(text, _)| text.as_str()).join(" ")
    }

    fn opens_on(&self, date: Date) -> bool {
        let [_, _, (_, days), (_, months), (_, weekdays)] = &self.fields;
        let weekday = date.weekday().to_sunday_zero_offset();
        let weekday = weekdays.contains(&weekday) || (weekday == 0 && weekdays.contains(&7));
        days.contains(&date.day()) && months.contains(&date.month()) && weekday
    }

    fn opens_at(&self, clock: DateTime) -> bool {
        let [(_, minutes), (_, hours), ..] = &self.fields;
        let time = minutes.contains(&clock.minute()) && hours.contains(&clock.hour());
        time && self.opens_on(clock.date())
    }
}

/// A value as written: some months and weekdays by name.
fn written(value: i8, names: &[&str], by_name: bool) -> String {
    match names.get(usize::try_from(value).unwrap()) {
        Some(name) if by_name && !name.is_empty() => (*name).to_owned(),
        Some(_) | None => value.to_string(),
    }
}

fn any_part(
    values: RangeInclusive<i8>,
    names: &'static [&'static str],
) -> impl Strategy<Value = AnyField> {
    let max = *values.end();
    let bounds = (values.clone(), values.clone(), 1..=max, 0..5, any::<bool>());
    bounds.prop_map(move |(one, other, step, form, by_name)| {
        let (low, high) = (one.min(other), one.max(other));
        let stepped = |from: i8, to: i8| (from..=to).step_by(usize::try_from(step).unwrap());
        let text = |value| written(value, names, by_name);
        // Only Sunday has two numbers, and its name is the lower one.
        let range = if high == 7 && names.len() == 7 {
            format!("{low}-7")
        } else {
            format!("{}-{}", text(low), text(high))
        };
        match form {
            0 | 1 => (text(one), [one].into()),
            2 => (range, (low..=high).collect()),
            3 => (format!("{range}/{step}"), stepped(low, high).collect()),
            _ => (format!("*/{step}"), stepped(*values.start(), max).collect()),
        }
    })
}

fn any_field(
    values: RangeInclusive<i8>,
    names: &'static [&'static str],
) -> impl Strategy<Value = AnyField> {
    prop::collection::vec(any_part(values, names), 1..4).prop_map(|parts| {
        let texts: Vec<&str> = parts.iter().map(|(text, _)| text.as_str()).collect();
        (texts.join(","), parts.iter().flat_map(|(_, values)| values).copied().collect())
    })
}

fn all(values: RangeInclusive<i8>) -> impl Strategy<Value = AnyField> + Clone {
    Just(("*".to_owned(), values.collect()))
}

const MONTHS: &[&str] =
    &["", "JAN", "FEB", "mar", "APR", "MAY", "jun", "Jul", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: &[&str] = &["SUN", "mon", "TUE", "Wed", "THU", "FRI", "SAT"];

/// Any expression that can be read, however rarely it opens.
fn any_cron() -> impl Strategy<Value = Cron> {
    let day = prop_oneof![
        1 => (all(1..=31), all(0..=7)),
        2 => (any_field(1..=31, &[]), all(0..=7)),
        2 => (all(1..=31), any_field(0..=7, WEEKDAYS)),
    ];
    let minute = prop_oneof![1 => all(0..=59), 3 => any_field(0..=59, &[])];
    // Clocks change at night.
    let night = (0..4_i8, 0..3_i8).prop_map(|(first, more)| {
        (format!("{first}-{}", first + more), (first..=first + more).collect::<BTreeSet<i8>>())
    });
    let hour = prop_oneof![1 => all(0..=23), 1 => any_field(0..=23, &[]), 2 => night];
    let month = prop_oneof![3 => all(1..=12), 1 => any_field(1..=12, MONTHS)];
    (minute, hour, day, month).prop_map(|(minute, hour, (day, weekday), month)| Cron {
        fields: [minute, hour, day, month, weekday],
    })
}

/// A window in this time zone, and what its schedule was made of.
fn any_window(zone: &'static str) -> impl Strategy<Value = (Cron, Window)> {
    let minutes = prop_oneof![4 => 1..90_u32, 2 => 90..1_500_u32, 1 => 1_500..=10_080_u32];
    (any_cron(), minutes).prop_filter_map("opens too rarely", move |(cron, minutes)| {
        let written = serde_json::json!({
            "schedule": cron.text(), "duration": format!("{minutes}m"), "timeZone": zone,
        });
        serde_json::from_value(written).ok().map(|window| (cron, window))
    })
}

/// Moments at which clocks change, or not.
const CHANGES: [(&str, &str); 14] = [
    ("Europe/Berlin", "2026-10-25 01:00"),
    ("Europe/Berlin", "2027-03-28 01:00"),
    ("America/New_York", "2026-11-01 06:00"),
    ("America/New_York", "2027-03-14 07:00"),
    ("Australia/Lord_Howe", "2026-10-03 15:30"),
    ("Australia/Lord_Howe", "2027-04-03 15:00"),
    ("Pacific/Apia", "2011-12-30 10:00"),
    ("America/Santiago", "2026-09-06 04:00"),
    ("America/Santiago", "2027-04-04 03:00"),
    ("Atlantic/Azores", "2026-10-25 01:00"),
    ("Atlantic/Azores", "2027-03-28 01:00"),
    ("Africa/Casablanca", "2026-03-22 02:00"),
    ("Asia/Kathmandu", "2027-02-28 00:00"),
    ("UTC", "2050-06-15 12:00"),
];

/// Exclusions of up to three days near an instant.
fn any_exclusions(near: Timestamp) -> impl Strategy<Value = Vec<Exclusion>> {
    let one = (-1_000_i64..6_000, 1_i64..2_000).prop_map(move |(begins, lasts)| {
        let from = near + SignedDuration::from_mins(begins);
        Exclusion { from, to: from + SignedDuration::from_mins(lasts), reason: lasts.to_string() }
    });
    prop::collection::vec(one, 0..4)
}

type Case = (Vec<(Cron, Window)>, Vec<Exclusion>, Timestamp);

/// Windows, most of them in a time zone whose clocks will soon change.
fn any_case() -> impl Strategy<Value = Case> {
    let cases = (0..CHANGES.len(), 0..CHANGES.len(), -200_i64..3_000, 1..3_usize, 0..2_usize);
    cases.prop_flat_map(|(here, there, minutes, windows, others)| {
        let (zone, change) = CHANGES[here];
        let now = at(change) - SignedDuration::from_mins(minutes);
        let windows = prop::collection::vec(any_window(zone), windows);
        let others = prop::collection::vec(any_window(CHANGES[there].0), others);
        let windows = (windows, others).prop_map(|(windows, others)| [windows, others].concat());
        (windows, any_exclusions(now), Just(now))
    })
}

/// Minutes that are compared.
const COMPARED: usize = 4 * 24 * 60;

/// Whether a window is open in each minute from an instant on, by a clock in its time zone that is
/// read every minute. It opens when the clock has come to a time for the first time.
fn open_minutes(cron: &Cron, window: &Window, from: Timestamp) -> Vec<bool> {
    let zone: TimeZone = window.time_zone.zone().clone();
    let duration = SignedDuration::from_secs(window.duration.seconds().into());
    // What opened before it was seen has closed; and the clock has come to a time before.
    let warm_up = duration.as_mins() + 3 * 24 * 60;
    let mut now = from - SignedDuration::from_mins(warm_up);
    let mut latest = zone.to_datetime(now);
    let mut closes = now;
    let mut open = Vec::new();
    for minute in -warm_up + 1..i64::try_from(COMPARED).unwrap() {
        now = from + SignedDuration::from_mins(minute);
        let clock = zone.to_datetime(now);
        while latest < clock {
            latest = latest.checked_add(1.minute()).unwrap();
            if cron.opens_at(latest) {
                closes = now + duration;
            }
        }
        if minute >= 0 {
            open.push(now < closes);
        }
    }
    open
}

/// The same for windows and exclusions.
fn all_open_minutes(
    windows: &[(Cron, Window)],
    exclusions: &[Exclusion],
    from: Timestamp,
) -> Vec<bool> {
    let each: Vec<Vec<bool>> =
        windows.iter().map(|(cron, window)| open_minutes(cron, window, from)).collect();
    let open = (0..COMPARED).map(|minute| {
        let now = minute_after(from, minute);
        let excluded = exclusions.iter().any(|it| it.from <= now && now < it.to);
        !excluded && each.iter().any(|open| open[minute])
    });
    open.collect()
}

fn minute_after(from: Timestamp, minute: usize) -> Timestamp {
    from + SignedDuration::from_mins(minute.try_into().unwrap())
}

fn calendar((windows, exclusions, _): &Case) -> Calendar {
    let windows: Vec<Window> = windows.iter().map(|(_, window)| window.clone()).collect();
    Calendar::of(&windows, exclusions)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn openings_are_those_of_a_clock_that_is_read_every_minute(case in any_case()) {
        let (windows, exclusions, from) = &case;
        let want = all_open_minutes(windows, exclusions, *from);
        let end = minute_after(*from, COMPARED);
        let calendar = calendar(&case);
        let openings: Vec<Opening> = calendar.openings(*from).take_while(|it| it.opens < end).collect();
        let found = (0..COMPARED).map(|minute| {
            let now = minute_after(*from, minute);
            openings.iter().any(|it| it.opens <= now && it.closes.is_none_or(|closes| now < closes))
        });
        let differs = found.zip(&want).position(|(found, want)| found != *want);
        prop_assert_eq!(differs.map(|it| minute_after(*from, it)), None, "{:#?}", openings);
        for pair in openings.windows(2) {
            prop_assert!(pair[0].opens < pair[0].closes.unwrap());
            prop_assert!(pair[0].closes.unwrap() < pair[1].opens, "{:?}", pair);
        }
    }

    #[test]
    fn the_next_start_fits_and_none_is_earlier(
        case in any_case(),
        minutes in prop_oneof![0..10_usize, 10..300_usize, 300..3_000_usize],
    ) {
        let (windows, exclusions, from) = &case;
        let seconds = 60 * minutes as u64;
        let open = all_open_minutes(windows, exclusions, *from);
        let fits = |minute: usize| {
            open[minute] && open.get(minute..minute + minutes).is_some_and(|it| it.iter().all(|it| *it))
        };
        let calendar = calendar(&case);
        let found = calendar.next_start(*from, seconds);
        let want = (0..COMPARED - minutes).find(|minute| fits(*minute));
        match want.map(|minute| minute_after(*from, minute)) {
            Some(want) => prop_assert_eq!(found, Some(want)),
            None => prop_assert!(found.is_none_or(|it| it >= minute_after(*from, COMPARED - minutes))),
        }
        prop_assert!(found.is_none_or(|found| calendar.fits(found, seconds)));
        prop_assert_eq!(calendar.fits(*from, seconds), found == Some(*from));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn an_instant_is_open_or_closed_as_the_openings_tell(case in any_case(), step in 1..500_usize) {
        let (.., from) = &case;
        let calendar = calendar(&case);
        let openings: Vec<Opening> = calendar.openings(*from).take(20).collect();
        let seen = openings.last().map_or(*from, |it| it.closes.unwrap_or(it.opens));
        let instants = (0..COMPARED).step_by(step).map(|minute| minute_after(*from, minute));
        for now in instants.take_while(|now| *now < seen).take(50) {
            let next = openings.iter().find(|it| it.closes.is_none_or(|closes| now < closes));
            let next = next.unwrap();
            match calendar.at(now) {
                WindowState::Open { closes } => {
                    prop_assert!(next.opens <= now, "{now}");
                    prop_assert!(closes == next.closes || next.closes.is_none(), "{now}");
                }
                WindowState::Closed { opens, reason: _ } => prop_assert_eq!(opens, Some(next.opens)),
            }
        }
    }

    #[test]
    fn a_schedule_is_refused_if_it_has_a_long_gap(cron in any_cron()) {
        let mut waits = 0;
        let mut longest = 0;
        // The calendar repeats after 400 years.
        for date in jiff::civil::date(2000, 1, 1).series(1.day()).take(401 * 366) {
            waits += 1;
            if cron.opens_on(date) {
                (longest, waits) = (longest.max(waits), 0);
            }
        }
        let longest = longest.max(waits);
        let schedule = super::super::Schedule::try_from(cron.text());
        prop_assert_eq!(schedule.is_ok(), longest <= 35, "{:?} {}", schedule, longest);
    }

    #[test]
    fn another_reader_of_cron_expressions_agrees(
        (cron, utc) in any_window("UTC"),
        days in 0..20_000_i64,
    ) {
        let from = at("2000-01-01 00:00") + SignedDuration::from_hours(24 * days);
        let duration = window("0 0 * * *", "1m", "UTC").duration;
        let calendar = Calendar::of(&[Window { duration, ..utc }], &[]);
        let other = cronexpr::parse_crontab(&format!("{} UTC", cron.text())).unwrap();
        let mut minute = from;
        for _ in 0..50 {
            let next = other.find_next(minute).unwrap().timestamp();
            let after = minute + SignedDuration::from_mins(1);
            let found = calendar.openings(after).next().unwrap();
            prop_assert_eq!(found.opens, next);
            minute = next;
        }
    }

    #[test]
    fn no_text_panics(schedule in "[0-9*/,A-Z @#?-]{0,20}", other in any::<String>()) {
        for text in [schedule, other] {
            let _refused_or_not = super::super::Schedule::try_from(text.clone());
            let _refused_or_not = super::super::TimeZoneName::try_from(text.clone());
            let _refused_or_not = super::super::WindowDuration::try_from(text);
        }
    }
}
