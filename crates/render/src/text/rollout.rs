//! Charts of rollouts, one after the other: for each DaemonSet the nodes that use its budget, over
//! time, as a line of text.

use crate::neutral;
use crate::view::{BudgetUse, RolloutView, Series, roughly};
use planner::rollout::RunHistory;
use planner::words::{count, grouped};

/// The maximum number of columns of a chart.
const COLUMNS: u32 = 60;

/// A column has a multiple of these seconds.
const STEP: u32 = 5;

/// The characters of a chart, from 0 to the maximum.
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The charts of these runs on one time axis, below a heading; empty if no number was above zero.
pub fn rollout_charts(runs: &[RunHistory]) -> String {
    let rollouts: Vec<RolloutView<'_>> = runs.iter().map(RolloutView::of).collect();
    let axis = Axis::of(&rollouts);
    let rows: Vec<[String; 4]> = rollouts.iter().flat_map(|it| rows(it, axis)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let [name_width, words_width] = [0, 1].map(|column| width(column).unwrap_or_default());
    let mut text = format!("nodes over time, {} s per column\n", axis.column);
    for [name, words, line, most] in &rows {
        let row = format!("  {name:name_width$}  {words:words_width$}  {line}  {most}");
        text.push_str(&neutral::text(&row));
        text.push('\n');
    }
    text
}

/// The time axis of all charts.
#[derive(Clone, Copy)]
struct Axis {
    /// Seconds since the epoch.
    begin: i64,
    /// Seconds of a column.
    column: u32,
    columns: u32,
}

impl Axis {
    fn of(rollouts: &[RolloutView<'_>]) -> Self {
        let spans = rollouts.iter().filter_map(|it| Some((it.began?.as_second(), it.lasted)));
        let begin = spans.clone().map(|(from, _)| from).min().unwrap_or_default();
        let end = spans.map(|(from, lasted)| from + i64::from(lasted)).max().unwrap_or(begin);
        let lasted = u32::try_from(end - begin).unwrap_or(u32::MAX).max(1);
        let column = lasted.div_ceil(COLUMNS).next_multiple_of(STEP);
        Self { begin, column, columns: lasted.div_ceil(column) }
    }

    /// The seconds of a column since the beginning of a rollout; `None` when it was not running.
    fn seconds(self, column: u32, rollout: &RolloutView<'_>) -> Option<(u32, u32)> {
        let began = rollout.began?.as_second() - self.begin;
        let from = i64::from(column * self.column) - began;
        let until = from + i64::from(self.column);
        if until <= 0 || from > i64::from(rollout.lasted) {
            return None;
        }
        Some((u32::try_from(from).unwrap_or_default(), u32::try_from(until).ok()?))
    }
}

/// A row for each number that was ever above zero: the name in the first one, what is counted, the
/// chart, and the maximum.
fn rows(rollout: &RolloutView<'_>, axis: Axis) -> Vec<[String; 4]> {
    let row = |(at, series): (usize, Series)| {
        let most = rollout.uses.iter().map(|it| series.value(it)).max().unwrap_or_default();
        let level = |column| match axis.seconds(column, rollout) {
            Some((from, until)) => level(highest(&rollout.uses, series, from, until), most),
            None => ' ',
        };
        let name = if at == 0 { rollout.key.clone() } else { String::new() };
        let line = (0..axis.columns).map(level).collect();
        [name, series.words().to_owned(), line, most_words(rollout, series, most)]
    };
    let mut rows: Vec<[String; 4]> = rollout.series().enumerate().map(row).collect();
    rows.extend(waiting(rollout, axis, rows.is_empty()));
    rows
}

/// The row of the times in which the run has waited for what its policy wants.
fn waiting(rollout: &RolloutView<'_>, axis: Axis, is_first: bool) -> Option<[String; 4]> {
    let seconds: u32 = rollout.waits.iter().map(|(from, until)| until - from).sum();
    let mark = |column| match axis.seconds(column, rollout) {
        Some((begin, end))
            if rollout.waits.iter().any(|(from, until)| *from < end && begin < *until) =>
        {
            '·'
        }
        Some(_) | None => ' ',
    };
    let name = if is_first { rollout.key.clone() } else { String::new() };
    let line: String = (0..axis.columns).map(mark).collect();
    let times = count(rollout.waits.len(), "time");
    let words = "waiting by the policy".to_owned();
    (seconds > 0)
        .then(|| [name, words, line, format!("{times}, {} in all", roughly(seconds.into()))])
}

/// `at most 4, budget 4; 1 node skipped`.
fn most_words(rollout: &RolloutView<'_>, series: Series, most: u32) -> String {
    let allowed = rollout.uses.iter().filter_map(|it| series.allowed(it)).max();
    let budget = allowed.map_or(String::new(), |allowed| format!(", budget {}", grouped(allowed)));
    let skipped = match rollout.skipped {
        skipped if skipped > 0 && series == Series::Unavailable => {
            let nodes = count(usize::try_from(skipped).unwrap_or(usize::MAX), "node");
            format!("; {nodes} skipped as NotReady")
        }
        _none => String::new(),
    };
    format!("at most {}{budget}{skipped}", grouped(most))
}

/// The highest value in these seconds. A value holds until the next one.
fn highest(uses: &[BudgetUse], series: Series, from: u32, until: u32) -> u32 {
    let before = uses.iter().rev().find(|it| it.at <= from);
    let inside = uses.iter().filter(|it| it.at > from && it.at < until);
    before.into_iter().chain(inside).map(|it| series.value(it)).max().unwrap_or_default()
}

/// The character for a value, relative to the maximum.
fn level(value: u32, most: u32) -> char {
    let steps = LEVELS.len() - 1;
    let step = (value as usize * steps).div_ceil(most.max(1) as usize);
    LEVELS[step.min(steps)]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use jiff::Timestamp;

    use super::*;
    use daemonset::model::DaemonSetKey;
    use planner::rollout::{Ending, Outcome, Progress, Report};

    fn run(name: &str, began: i64, numbers: &[(i64, Progress)]) -> RunHistory {
        let event = |(at, progress): &(i64, Progress)| {
            (Timestamp::from_second(began + at).unwrap(), Report::Progress(*progress))
        };
        let ending = Ending { outcome: Outcome::Done, replaced: Vec::new(), left: BTreeMap::new() };
        let key = DaemonSetKey::new("ns", name);
        RunHistory { key, domain_key: None, events: numbers.iter().map(event).collect(), ending }
    }

    #[test]
    fn each_chart_shows_what_its_budget_counts() {
        let of = |unavailable| Progress { unavailable, allowed: 2, ..Progress::default() };
        let first = |awaiting_first_pod| Progress { awaiting_first_pod, ..of(awaiting_first_pod) };
        let surging = |surging| Progress { surging, may_surge: 4, ..of(0) };
        let runs = [
            run("rolled", 0, &[(0, of(0)), (6, of(2)), (9, of(1)), (19, of(0))]),
            run("skips", 20, &[(0, Progress { skipped: 1, ..of(1) }), (9, of(0))]),
            run("new", 30, &[(0, first(7)), (10, first(0))]),
            run("surged", 40, &[(0, surging(4)), (5, surging(2)), (9, surging(0))]),
            run("quiet", 50, &[(0, of(0)), (5, of(0))]),
        ];
        let row = |name: &str, words: &str, line: &str, most: &str| {
            format!("  {name:9}  {words:27}  {line:11}  {most}\n")
        };
        let want = [
            "nodes over time, 5 s per column\n".to_owned(),
            row("ns/rolled", "without an available pod", " █▄▄", "at most 2, budget 2"),
            row(
                "ns/skips",
                "without an available pod",
                "    ██",
                "at most 1, budget 2; 1 node skipped as NotReady",
            ),
            row("ns/new", "waiting for their first pod", "      ██", "at most 7"),
            row("ns/surged", "with an old and a new pod", "        █▄", "at most 4, budget 4"),
        ];
        assert_eq!(rollout_charts(&runs), want.concat());
        assert_eq!(rollout_charts(&[]), "");
    }

    #[test]
    fn long_runs_have_60_columns() {
        let of = |unavailable| Progress { unavailable, allowed: 1, ..Progress::default() };
        let text = rollout_charts(&[run("long", 0, &[(0, of(0)), (1_790, of(1)), (3_600, of(0))])]);
        let line = format!("{}{}  at most 1, budget 1", " ".repeat(29), "█".repeat(31));
        assert!(text.starts_with("nodes over time, 60 s per column\n"), "{text}");
        assert!(text.contains(&line), "{text}");
    }
}
