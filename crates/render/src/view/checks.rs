//! What reports about checks show, in words and as a line of characters.

use planner::check_report::{CheckPoint, CheckReport, CheckRole, CheckVerdict, SampleCounts};
use planner::checks::SampleValue;
use planner::words::{count, grouped};

/// Columns of a picture.
const COLUMNS: usize = 40;
/// The characters of a picture, from the lowest value to the highest.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The role of a check.
pub(crate) fn role_words(role: CheckRole) -> &'static str {
    match role {
        CheckRole::Precondition => "precondition",
        CheckRole::Gate => "gate",
    }
}

/// An answer without its reason.
pub(crate) fn verdict_words(verdict: CheckVerdict) -> &'static str {
    match verdict {
        CheckVerdict::Pass => "pass",
        CheckVerdict::Fail => "fail",
        CheckVerdict::Unknown => "unknown",
    }
}

/// `3 checks: fail`.
pub(crate) fn checks_headline(report: &CheckReport) -> String {
    match report.daemon_sets.iter().map(|it| it.checks.len()).sum() {
        0 => "No policy of these DaemonSets has checks".to_owned(),
        some => format!("{}: {}", count(some, "check"), verdict_words(report.verdict())),
    }
}

/// `12 of 409 nodes updated`.
pub(crate) fn asked_about(nodes: usize, others: usize, is_rolling_out: bool) -> String {
    if is_rolling_out {
        format!("{} of {} updated", grouped(nodes), count(nodes + others, "node"))
    } else {
        format!("no rollout; asked about {}", count(nodes, "node"))
    }
}

/// `0 to 0.25, last 0.25, worst of 12 series, since …`; none without points.
pub(crate) fn values(points: &[CheckPoint], series: usize) -> Option<String> {
    let (first, last) = (points.first()?, points.last()?);
    let of = if series > 1 { format!(", worst of {series} series") } else { String::new() };
    Some(format!("{}, last {}{of}, since {}", range(points), last.value, first.at))
}

/// `0.1 to 0.4`, of the values that are numbers.
fn range(points: &[CheckPoint]) -> String {
    let values = || points.iter().map(|point| point.value.0).filter(|value| !value.is_nan());
    let lowest = values().fold(f64::INFINITY, f64::min);
    let highest = values().fold(f64::NEG_INFINITY, f64::max);
    if values().next().is_none() {
        return "no number".to_owned();
    }
    format!("{} to {}", SampleValue(lowest), SampleValue(highest))
}

pub(crate) fn counted(over: &SampleCounts) -> String {
    let SampleCounts { from, until, samples, passed, failed, unknown } = over;
    let each = [passed, failed, unknown].map(|number| grouped(*number));
    let [passed, failed, unknown] = each;
    let samples = count(*samples, "sample");
    format!(
        "of {samples} from {from} to {until}, {passed} would have passed, {failed} failed, {unknown} \
         been unknown"
    )
}

/// The values over time, at most 40 columns. A column with several values shows the highest and, if
/// any is not a number, a question mark; one without a value is blank.
pub(crate) fn sparkline(points: &[CheckPoint]) -> String {
    let (Some(first), Some(last)) = (points.first(), points.last()) else { return String::new() };
    let (begin, end) = (first.at.as_second(), last.at.as_second());
    let columns = points.len().min(COLUMNS);
    let mut values: Vec<Option<f64>> = vec![None; columns];
    for CheckPoint { at, value } in points {
        let part = i128::from(at.as_second() - begin) * columns as i128;
        let column = part / i128::from(end - begin + 1);
        let Some(slot) = usize::try_from(column).ok().and_then(|at| values.get_mut(at)) else {
            continue;
        };
        let higher = slot.is_none_or(|old| value.0.is_nan() || (!old.is_nan() && value.0 > old));
        if higher {
            *slot = Some(value.0);
        }
    }
    let finite = || values.iter().flatten().copied().filter(|value| value.is_finite());
    let lowest = finite().fold(f64::INFINITY, f64::min);
    let highest = finite().fold(f64::NEG_INFINITY, f64::max);
    values.iter().map(|value| value.map_or(' ', |value| level(value, lowest, highest))).collect()
}

fn level(value: f64, lowest: f64, highest: f64) -> char {
    let [bottom, .., top] = LEVELS;
    if value.is_nan() {
        return '?';
    }
    if value <= lowest || value == f64::NEG_INFINITY {
        return bottom;
    }
    // Halved first: the difference of two numbers may be infinite.
    let part = (value / 2.0 - lowest / 2.0) / (highest / 2.0 - lowest / 2.0);
    let above = (1_u8..).zip(&LEVELS[1..]).find(|(at, _)| part * 7.0 <= f64::from(*at));
    above.map_or(top, |(_, level)| *level)
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::*;

    fn points(values: &[f64]) -> Vec<CheckPoint> {
        let at =
            |n: usize| Timestamp::UNIX_EPOCH + SignedDuration::from_mins(n.try_into().unwrap());
        let points =
            values.iter().enumerate().filter(|(_, value)| **value >= -1e9 || value.is_nan());
        points.map(|(n, value)| CheckPoint { at: at(n), value: SampleValue(*value) }).collect()
    }

    #[test]
    fn a_picture_hides_no_spike() {
        for (values, want) in [
            (&[][..], ""),
            (&[1.0], "▁"),
            (&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], "▁▂▃▄▅▆▇█"),
            (&[0.0, f64::NAN, f64::INFINITY, 1.0], "▁?██"),
            (&[f64::MAX, -1e9], "█▁"),
            (&[5.0, 5.0, 5.0], "▁▁▁"),
        ] {
            assert_eq!(sparkline(&points(values)), want, "{values:?}");
        }
        let mut many = vec![0.0; 1000];
        many[517] = 1.0;
        let drawn = sparkline(&points(&many));
        assert_eq!((drawn.chars().count(), drawn.matches('█').count()), (COLUMNS, 1), "{drawn}");
        // A minute without a value.
        let mut gap = points(&[0.0, 1.0, 0.0]);
        gap.remove(1);
        assert_eq!(sparkline(&gap), "▁▁");
    }
}
