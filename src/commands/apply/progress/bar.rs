//! The progress bar of a rollout on a terminal. Events that the bar counts get no line.
//!
//! Its text is a pure function of the numbers, the server's time and the width. Not here: detecting
//! a terminal (`Shell`), and lines.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;

use daemonset::model::DaemonSetKey;
use planner::plan::Age;
use planner::rollout::{Progress, Report};

/// The layout: a sign of life, then the text. If the terminal becomes narrower during the run, the
/// text is cut off.
const TEMPLATE: &str = "{spinner} {wide_msg}";

/// Columns of the spinner, and of a margin.
const AROUND: usize = 3;

/// The width of a terminal that does not tell its own.
const USUAL_WIDTH: usize = 80;

/// The terminals on which the bar has its full length.
const WIDE: usize = 100;

/// The period of the spinner, which moves while pods start.
const TICK: Duration = Duration::from_millis(200);

/// Seconds before the pace is shown.
const SHORTEST: i64 = 5;

/// One bar on standard error.
pub(super) struct Bar {
    drawn: ProgressBar,
    gauge: Gauge,
}

impl Bar {
    /// A bar that is hidden until the first numbers, for a terminal of this width.
    pub(super) fn new(key: &DaemonSetKey, width: Option<usize>) -> Self {
        let drawn = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        // An invalid template would be a bug; the default style is used then.
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            drawn.set_style(style);
        }
        let width = width.unwrap_or(USUAL_WIDTH).saturating_sub(AROUND);
        Self { drawn, gauge: Gauge { name: key.to_string(), width, began: None } }
    }

    /// Updates the bar with an event; returns whether the event needs no line.
    pub(super) fn takes(&mut self, report: &Report, now: Timestamp) -> bool {
        match report {
            Report::Progress(progress) => {
                self.show(progress, now);
                true
            }
            // Too frequent for lines; the bar counts them.
            Report::Deleting(_)
            | Report::Recovered { .. }
            | Report::Arrived { .. }
            | Report::Pulling { .. }
            | Report::Pulled { .. } => true,
            Report::Writing(_)
            | Report::Revision(_)
            | Report::Stopping { .. }
            | Report::LostReady { .. }
            | Report::NotObserved { .. }
            | Report::NotPulled { .. }
            | Report::RemovingPullers { .. }
            | Report::WaitingFor(_)
            | Report::Failed { .. } => false,
        }
    }

    fn show(&mut self, progress: &Progress, now: Timestamp) {
        // Each call draws. The message is set first, so that the first frame has it.
        self.drawn.set_message(self.gauge.line(progress, now));
        if self.drawn.is_hidden() {
            self.drawn.set_draw_target(ProgressDrawTarget::stderr());
            self.drawn.enable_steady_tick(TICK);
        }
    }

    /// Prints lines above it.
    pub(super) fn above(&self, print: impl FnOnce()) {
        self.drawn.suspend(print);
    }

    /// Removes the bar from the terminal.
    pub(super) fn clear(&self) {
        self.drawn.finish_and_clear();
    }
}

/// Makes the text, and measures the pace from the first numbers on.
#[derive(Debug)]
struct Gauge {
    /// `NAMESPACE/NAME`.
    name: String,
    /// Columns for the text.
    width: usize,
    began: Option<(Timestamp, u32)>,
}

impl Gauge {
    /// `logging/agent  [=====>    ]  about 10m left, 24 of 60 updated, 2 in flight, 36 waiting, 4.0
    /// nodes a minute`. The least important parts are left out where there is no room.
    fn line(&mut self, progress: &Progress, now: Timestamp) -> String {
        let Progress {
            desired,
            updated,
            available: _,
            unavailable: _,
            awaiting_first_pod: _,
            allowed: _,
            recovering,
            surging: _,
            may_surge: _,
            outdated,
            skipped,
            wave: _,
        } = *progress;
        let (pace, left) = self.pace(progress, now);
        let left = left.map(|left| format!("about {} left", Age(left)));
        let number = |number: u32, what: &str| (number > 0).then(|| format!("{number} {what}"));
        let parts = [
            left,
            Some(format!("{updated} of {desired} updated")),
            number(recovering, "in flight"),
            number(outdated, "waiting"),
            number(skipped, "skipped"),
            pace.map(|pace| format!("{pace:.1} nodes a minute")),
        ];
        let cells = if self.width + AROUND < WIDE { 12 } else { 24 };
        let bar = bar(progress, cells);
        let name = elided(&self.name, self.width / 3);
        let mut line = format!("{name}  [{bar}]  ");
        for (at, part) in parts.into_iter().flatten().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            if line.chars().count() + separator.len() + part.len() > self.width {
                break;
            }
            line.push_str(separator);
            line.push_str(&part);
        }
        line
    }

    /// The pace in nodes a minute, and the seconds that are left at this pace.
    fn pace(&mut self, progress: &Progress, now: Timestamp) -> (Option<f64>, Option<i64>) {
        let Progress { desired, updated, skipped, .. } = *progress;
        let (since, before) = *self.began.get_or_insert((now, updated));
        let done = updated.saturating_sub(before);
        let elapsed = now.duration_since(since).as_secs();
        if done == 0 || elapsed < SHORTEST {
            return (None, None);
        }
        let pace = f64::from(done) * 60.0 / seconds(elapsed);
        let nodes = i64::from(desired.saturating_sub(updated).saturating_sub(skipped));
        let left = (nodes > 0).then(|| nodes * elapsed / i64::from(done));
        (Some(pace), left)
    }
}

/// `=====>>    `: updated nodes, those in flight, and the others.
fn bar(progress: &Progress, cells: u32) -> String {
    let Progress { desired, updated, recovering, .. } = *progress;
    let of = |nodes: u32| (nodes * cells).checked_div(desired).unwrap_or(cells).min(cells);
    // A node in flight has a cell, unless all are taken.
    let flying = if recovering > 0 { of(recovering).max(1) } else { 0 };
    let done = of(updated).min(cells - flying);
    let empty = cells - done - flying;
    [("=", done), (">", flying), (" ", empty)]
        .map(|(cell, number)| cell.repeat(usize::try_from(number).unwrap_or_default()))
        .concat()
}

/// The end of a name that is too long, which is the more telling part.
fn elided(name: &str, most: usize) -> String {
    let length = name.chars().count();
    if length <= most {
        return name.to_owned();
    }
    let kept: String = name.chars().skip(length + 1 - most.max(1)).collect();
    format!("…{kept}")
}

/// The seconds of a run as a float, without loss of precision.
fn seconds(elapsed: i64) -> f64 {
    f64::from(u32::try_from(elapsed).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn gauge(name: &str, columns: usize) -> Gauge {
        Gauge { name: name.to_owned(), width: columns - AROUND, began: None }
    }

    fn progress(updated: u32, recovering: u32, skipped: u32) -> Progress {
        let outdated = 60 - updated;
        Progress { desired: 60, updated, outdated, recovering, skipped, ..Progress::default() }
    }

    #[test]
    fn the_time_that_is_left_comes_first() {
        let mut gauge = gauge("logging/agent", 120);
        for (second, progress, want) in [
            (0, progress(12, 0, 0), "[====                    ]  12 of 60 updated, 48 waiting"),
            (
                4,
                progress(12, 1, 0),
                "[====>                   ]  12 of 60 updated, 1 in flight, 48 waiting",
            ),
            (
                30,
                progress(14, 1, 0),
                "[=====>                  ]  about 11m left, 14 of 60 updated, 1 in flight, \
                 46 waiting",
            ),
            (
                60,
                progress(24, 8, 2),
                "[=========>>>            ]  about 2m50s left, 24 of 60 updated, 8 in flight, \
                 36 waiting",
            ),
            (
                120,
                progress(60, 0, 0),
                "[========================]  60 of 60 updated, 24.0 nodes a minute",
            ),
        ] {
            let line = gauge.line(&progress, at(second));
            assert!(line.starts_with(&format!("logging/agent  {want}")), "{line}");
        }
    }

    #[test]
    fn the_text_fits_into_every_terminal() {
        let long = "a-namespace-with-a-long-name/a-daemon-set-with-an-even-longer-name-than-that";
        for name in ["a/b", "logging/fluent-bit", long] {
            for columns in [20, 40, 80, 100, 120, 200] {
                let mut gauge = gauge(name, columns);
                for (second, updated) in [(0, 0), (600, 7), (100_000, 59)] {
                    let line = gauge.line(&progress(updated, 12, 5), at(second));
                    let fits = line.chars().count() <= columns.max(30) - AROUND;
                    assert!(fits, "{columns}: {line}");
                    let is_whole = !line.trim_end().ends_with(',');
                    assert!(is_whole, "{columns}: {line}");
                }
                if columns >= 80 {
                    let line = gauge.line(&progress(59, 12, 0), at(100_000));
                    assert!(line.contains("59 of 60 updated"), "{columns}: {line}");
                }
            }
        }
    }

    #[test]
    fn an_empty_cluster_has_a_full_bar() {
        assert_eq!(bar(&Progress::default(), 4), "====");
    }

    #[test]
    fn the_template_is_valid() {
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
    }
}
