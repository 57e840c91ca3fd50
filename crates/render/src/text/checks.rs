//! What the checks of policies answer: a block for each DaemonSet, with a picture of each series.

use super::page::{ASIDE, GAIN, HALT, LOSS, Line, NAME, Page, TextOptions};
use planner::check_report::{
    AskedCheck, CheckPoint, CheckReport, CheckRole, CheckVerdict, DaemonSetChecks, SampleCounts,
};
use planner::checks::SampleValue;
use planner::words::{count, grouped};

const INDENT: usize = 2;
/// Columns of a picture.
const COLUMNS: usize = 40;
/// The characters of a picture, from the lowest value to the highest.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The report as text; warnings are printed elsewhere.
pub fn checks_text(report: &CheckReport, options: &TextOptions) -> String {
    let CheckReport { api_version: _, kind: _, cluster: _, daemon_sets, warnings: _ } = report;
    let mut page = Page::default();
    if daemon_sets.is_empty() {
        page.push(Line::at(0).plain("No policy of these DaemonSets has checks."));
    }
    for daemon_set in daemon_sets {
        page.gap();
        block(&mut page, daemon_set);
    }
    page.write(*options)
}

fn block(page: &mut Page, daemon_set: &DaemonSetChecks) {
    let DaemonSetChecks { namespace, name, nodes, others, is_rolling_out, checks } = daemon_set;
    let about = if *is_rolling_out {
        format!("{} of {} updated", grouped(*nodes), count(nodes + others, "node"))
    } else {
        format!("no rollout; asked about {}", count(*nodes, "node"))
    };
    page.push(
        Line::at(0).styled(NAME, format!("{namespace}/{name}")).styled(ASIDE, format!("  {about}")),
    );
    for check in checks {
        one(page, check);
    }
}

fn one(page: &mut Page, asked: &AskedCheck) {
    let AskedCheck { check, role, asks, answer, reason, series, points, over } = asked;
    let role = match role {
        CheckRole::Precondition => "precondition",
        CheckRole::Gate => "gate",
    };
    let (style, answer) = match answer {
        CheckVerdict::Pass => (GAIN, "pass"),
        CheckVerdict::Fail => (LOSS, "fail"),
        CheckVerdict::Unknown => (HALT, "unknown"),
    };
    let line = Line::at(INDENT).plain(format!("{role} {check}: ")).styled(style, answer);
    page.push(match reason {
        Some(reason) => line.plain(format!(": {reason}")),
        None => line,
    });
    page.push(Line::at(2 * INDENT).styled(ASIDE, asks));
    if let (Some(first), Some(last)) = (points.first(), points.last()) {
        let values = range(points);
        let of = if *series > 1 { format!(", worst of {series} series") } else { String::new() };
        let words = format!("  {values}, last {}{of}, since {}", last.value, first.at);
        page.push(Line::at(2 * INDENT).whole().plain(picture(points)).styled(ASIDE, words));
    }
    if let Some(over) = over {
        page.push(Line::at(2 * INDENT).plain(counted(over)));
    }
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

fn counted(over: &SampleCounts) -> String {
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
fn picture(points: &[CheckPoint]) -> String {
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
            assert_eq!(picture(&points(values)), want, "{values:?}");
        }
        let mut many = vec![0.0; 1000];
        many[517] = 1.0;
        let drawn = picture(&points(&many));
        assert_eq!((drawn.chars().count(), drawn.matches('█').count()), (COLUMNS, 1), "{drawn}");
        // A minute without a value.
        let mut gap = points(&[0.0, 1.0, 0.0]);
        gap.remove(1);
        assert_eq!(picture(&gap), "▁▁");
    }
}
