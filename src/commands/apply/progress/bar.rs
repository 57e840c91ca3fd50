//! The progress bar of a rollout on a terminal. Events that the bar counts get no line.
//!
//! Its text is a pure function of the numbers and the server's time. Not here: detecting a terminal
//! (`Shell`), and lines.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;

use daemonset::model::DaemonSetKey;
use planner::plan::Age;
use planner::rollout::{Progress, Report};

/// The layout: the bar, then the numbers; text that does not fit is cut off.
const TEMPLATE: &str = "{prefix}  [{bar:24}] {pos} of {len} updated, {wide_msg}";

/// Seconds before the pace is shown.
const SHORTEST: i64 = 5;

/// One bar on standard error.
pub(super) struct Bar {
    drawn: ProgressBar,
    gauge: Gauge,
}

impl Bar {
    /// A bar that is hidden until the first numbers.
    pub(super) fn new(key: &DaemonSetKey) -> Self {
        let drawn = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        // An invalid template would be a bug; the default style is used then.
        if let Ok(style) = ProgressStyle::with_template(TEMPLATE) {
            drawn.set_style(style.progress_chars("=> "));
        }
        drawn.set_prefix(key.to_string());
        Self { drawn, gauge: Gauge::default() }
    }

    /// Updates the bar with an event; returns whether the event needs no line.
    pub(super) fn takes(&mut self, report: &Report, now: Timestamp) -> bool {
        match report {
            Report::Progress(progress) => {
                self.show(progress, now);
                true
            }
            // Too frequent for lines; the bar counts them.
            Report::Deleting(_) | Report::Recovered { .. } => true,
            Report::Writing(_)
            | Report::Revision(_)
            | Report::LostReady { .. }
            | Report::Failed { .. } => false,
        }
    }

    fn show(&mut self, progress: &Progress, now: Timestamp) {
        if self.drawn.is_hidden() {
            self.drawn.set_draw_target(ProgressDrawTarget::stderr());
        }
        // Each call draws. The message is set first, so that the first frame has it.
        self.drawn.set_message(self.gauge.words(progress, now));
        self.drawn.set_length(progress.desired.into());
        self.drawn.set_position(progress.updated.into());
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

/// Measures the pace, from the first numbers on.
#[derive(Debug, Default)]
struct Gauge {
    began: Option<(Timestamp, u32)>,
}

impl Gauge {
    /// The text after the bar: `59 available, 40 waiting, wave 2, 4.0 nodes a minute, about 10m
    /// left`.
    fn words(&mut self, progress: &Progress, now: Timestamp) -> String {
        let Progress {
            desired,
            updated,
            available,
            unavailable: _,
            allowed: _,
            recovering: _,
            outdated,
            skipped,
            wave,
        } = *progress;
        let (since, before) = *self.began.get_or_insert((now, updated));
        let mut words = vec![format!("{available} available"), format!("{outdated} waiting")];
        if skipped > 0 {
            words.push(format!("{skipped} skipped"));
        }
        words.extend(wave.map(|wave| format!("wave {wave}")));
        let done = updated.saturating_sub(before);
        let elapsed = now.duration_since(since).as_secs();
        if done > 0 && elapsed >= SHORTEST {
            let pace = f64::from(done) * 60.0 / seconds(elapsed);
            words.push(format!("{pace:.1} nodes a minute"));
            let left = desired.saturating_sub(updated).saturating_sub(skipped);
            if left > 0 {
                let left = i64::from(left) * elapsed / i64::from(done);
                words.push(format!("about {} left", Age(left)));
            }
        }
        words.join(", ")
    }
}

/// The seconds of a run as a float, without loss of precision.
fn seconds(elapsed: i64) -> f64 {
    f64::from(u32::try_from(elapsed).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_the_bar() {
        let at = |second: i64| Timestamp::from_second(1_000_000 + second).unwrap();
        let mut gauge = Gauge::default();
        for (second, updated, outdated, skipped, wave, want) in [
            (0, 12, 48, 0, Some(1), "59 available, 48 waiting, wave 1"),
            (4, 14, 46, 0, Some(1), "59 available, 46 waiting, wave 1"),
            (
                30,
                14,
                45,
                0,
                Some(1),
                "59 available, 45 waiting, wave 1, 4.0 nodes a minute, about 11m left",
            ),
            (
                60,
                24,
                36,
                2,
                Some(2),
                "59 available, 36 waiting, 2 skipped, wave 2, 12.0 nodes a minute, about 2m50s left",
            ),
            (120, 60, 0, 0, None, "59 available, 0 waiting, 24.0 nodes a minute"),
        ] {
            let progress = Progress {
                desired: 60,
                updated,
                available: 59,
                unavailable: 1,
                allowed: 1,
                recovering: 1,
                outdated,
                skipped,
                wave,
            };
            assert_eq!(gauge.words(&progress, at(second)), want);
        }
    }

    #[test]
    fn the_template_is_valid() {
        assert!(ProgressStyle::with_template(TEMPLATE).is_ok());
    }
}
