//! The points of a range query.

use daemonset::model::CheckQuestion;

/// Points of a series at most. Prometheus itself allows 11,000.
const MOST_POINTS: u32 = 1_000;

/// Seconds between two points: the interval, or the smallest multiple of it with which the range has
/// at most 1,000 points.
pub fn step(question: &CheckQuestion) -> u32 {
    let interval = question.interval.0.max(1);
    let length = question.until.as_second() - question.from.as_second();
    let length = u32::try_from(length.max(0)).unwrap_or(u32::MAX);
    // The first point is at the start.
    let multiple = length.div_ceil(interval.saturating_mul(MOST_POINTS - 1)).max(1);
    interval.saturating_mul(multiple)
}

#[cfg(test)]
mod tests {
    use daemonset::model::{CheckEndpoint, DaemonSetKey, Soak};
    use jiff::Timestamp;
    use proptest::prelude::*;

    use super::*;

    fn question(length: i64, interval: u32) -> CheckQuestion {
        CheckQuestion {
            name: String::new(),
            endpoint: CheckEndpoint::Command(Vec::new()),
            daemon_set: DaemonSetKey::new("a", "b"),
            nodes: Vec::new(),
            others: Vec::new(),
            from: Timestamp::UNIX_EPOCH,
            until: Timestamp::from_second(length).unwrap(),
            interval: Soak(interval),
        }
    }

    #[test]
    fn long_ranges_are_coarser() {
        for (length, interval, want) in [
            (0, 60, 60),
            (-5, 60, 60),
            (60, 0, 1),
            (999, 1, 1),
            (1_000, 1, 2),
            (7 * 86_400, 60, 660),
            (i64::from(u32::MAX), 1, 4_299_267),
            (253_402_207_200, u32::MAX, u32::MAX),
        ] {
            assert_eq!(step(&question(length, interval)), want, "{length} by {interval}");
        }
    }

    proptest! {
        #[test]
        fn never_more_than_a_thousand_points(length in 0..i64::from(u32::MAX), interval in 1..100_000u32) {
            let step = step(&question(length, interval));
            prop_assert_eq!(step % interval, 0);
            prop_assert!(length / i64::from(step) < i64::from(MOST_POINTS));
            // And not coarser than that needs.
            let finer = i64::from(step - interval);
            prop_assert!(finer == 0 || length > finer * i64::from(MOST_POINTS - 1));
        }
    }
}
