//! Pictures of numbers over time, as SVG: the course of an apply, the use of the budget, a bar a
//! node.
//!
//! Only geometry: callers write the captions. Each chart has a full accessible name, and its data
//! is in a table as well.

use std::fmt::Write as _;

use super::markup::Html;
use crate::view::{BudgetUse, Series};
use planner::plan::DaemonSetForecast;
use planner::words::grouped;

/// Width of a chart, in SVG units; the page stretches it.
const WIDTH: f64 = 960.0;
/// Margin at the left, for the scale.
const LEFT: f64 = 44.0;
/// Margin at the bottom, for the time axis.
const BELOW: f64 = 22.0;
/// Margin at the top, for the label of the highest line.
const ABOVE: f64 = 16.0;
/// Height of the plot area.
const HEIGHT: f64 = 104.0;
/// Maximum height of the row of a node.
const TALLEST_ROW: f64 = 9.0;
/// Height of a label where the chart is narrow.
const LABEL: f64 = 28.0;
/// Length of the bar of a whole apply, in units that the page stretches.
const LENGTH: u64 = 10_000;
/// Gap between the waves in such a bar.
const GAP: u64 = 30;
/// Approximate height of all rows together.
const ROWS: f64 = 320.0;

/// The time of one DaemonSet within an apply that ends after `end` seconds: a bar from its start,
/// a gap between its waves. The caller says the same in words.
pub(super) fn spell(forecast: &DaemonSetForecast, start: u64, end: u64) -> Html {
    let DaemonSetForecast { seconds, waves, .. } = forecast;
    let x = |seconds: u64| seconds.saturating_mul(LENGTH) / end.max(1);
    // Pods outside of waves may take longer than the waves.
    let lasts = waves.iter().sum::<u64>().max(*seconds);
    let parts = waves.iter().copied().filter(|_| waves.len() > 1);
    let mut ends: Vec<u64> = parts
        .scan(0, |at, wave| {
            *at += wave;
            Some(*at)
        })
        .collect();
    ends.pop();
    ends.push(lasts);
    let (mut bars, mut from) = (String::new(), x(start));
    for (nth, until) in ends.iter().enumerate() {
        let until = x(start + until);
        let gap = if nth + 1 < ends.len() { GAP } else { 0 };
        let right = until.saturating_sub(gap).max(from + 1);
        let _ = write!(bars, "M{from} 0H{right}V8H{from}z");
        from = until;
    }
    let view = format!("0 0 {LENGTH} 8");
    let attributes = [
        ("class", "spell"),
        ("viewBox", view.as_str()),
        ("preserveAspectRatio", "none"),
        ("aria-hidden", "true"),
    ];
    Html::with("svg", &attributes, path("fill", &bars))
}

/// A chart of one number over time until `end`, in seconds, and of its budget if it has one. The
/// times in `waits` are shaded.
pub(super) fn usage(
    name: &str,
    uses: &[BudgetUse],
    waits: &[(u32, u32)],
    series: Series,
    end: u32,
) -> Html {
    let allowed = uses.iter().filter_map(|it| series.allowed(it)).max();
    let most = uses.iter().map(|it| series.value(it)).max().unwrap_or_default();
    let top = most.max(allowed.unwrap_or_default()).max(1);
    let scale = Scale { most_x: f64::from(end.max(1)), most_y: f64::from(top) };
    let value = |it: &BudgetUse| series.value(it);
    let area = scale.steps(&thinned(uses, series, end), value, end);
    let under = format!("{area}L{WIDTH} {:.1}L{LEFT} {:.1}Z", scale.y(0.0), scale.y(0.0));
    let mut labels: Vec<Html> = times(scale, HEIGHT, end).into_iter().collect();
    let mut drawn = vec![scale.shade(waits), path("area", &under), path("line", &area)];
    if let Some(allowed) = allowed {
        let budget = scale.steps(uses, |it| series.allowed(it).unwrap_or_default(), end);
        drawn.push(path("budget", &budget));
        labels.push(label(WIDTH, scale.y(f64::from(allowed)) - 5.0, "end", "budget"));
    }
    let mut taken: Vec<f64> = Vec::new();
    for value in allowed.into_iter().chain([0, most.max(1)]) {
        let y = scale.y(f64::from(value));
        if taken.iter().all(|other| (other - y).abs() > LABEL) {
            labels.push(label(LEFT - 6.0, y + 4.0, "end", &grouped(value)));
            taken.push(y);
        }
    }
    drawn.push(scale.frame());
    svg(name, HEIGHT, drawn.into_iter().chain(waves(scale, uses)).chain(labels).collect())
}

/// Marks at the start of each wave except the first.
fn waves(scale: Scale, uses: &[BudgetUse]) -> Vec<Html> {
    let begun = uses.windows(2).filter_map(|pair| {
        let [before, now] = pair else { return None };
        now.wave.filter(|wave| before.wave.is_some_and(|before| before < *wave)).zip(Some(now.at))
    });
    let marks = begun.flat_map(|(wave, at)| {
        let x = scale.x(f64::from(at));
        let line = path("mark", &format!("M{x:.1} {ABOVE}V{:.1}", ABOVE + HEIGHT));
        [line, label(x + 3.0, ABOVE + HEIGHT - 5.0, "start", &format!("wave {wave}"))]
    });
    marks.collect()
}

/// The values that pass.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bounds {
    pub min: Option<f64>,
    pub max: Option<f64>,
}

/// A line through values, each with its time in seconds, and the bounds that they must keep. Infinite
/// values are at the edge; what is not a number is a gap. Empty if nothing can be drawn.
pub(super) fn samples(name: &str, values: &[(i64, f64)], bounds: Bounds) -> Html {
    let Some((begin, end)) = values.first().zip(values.last()).map(|(a, b)| (a.0, b.0)) else {
        return Html::default();
    };
    let Bounds { min, max } = bounds;
    let shown = values.iter().map(|(_, value)| *value).chain(min).chain(max);
    let finite: Vec<f64> = shown.filter(|value| value.is_finite()).collect();
    if finite.is_empty() {
        return Html::default();
    }
    let lowest = finite.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let length = u32::try_from(end - begin).unwrap_or(u32::MAX);
    let scale = Scale { most_x: f64::from(length.max(1)), most_y: 1.0 };
    // Halved first: the difference of two numbers may be infinite.
    let half = highest / 2.0 - lowest / 2.0;
    let y = |value: f64| {
        let part = if half > 0.0 { (value / 2.0 - lowest / 2.0) / half } else { 0.5 };
        scale.y(part.clamp(0.0, 1.0))
    };
    let (mut line, mut is_down) = (String::new(), false);
    for (at, value) in values {
        if value.is_nan() {
            is_down = false;
            continue;
        }
        let x = scale.x(f64::from(u32::try_from(at - begin).unwrap_or(u32::MAX)));
        let (step, y) = (if is_down { 'L' } else { 'M' }, y(*value));
        // A point alone is a line of no length, which round ends make visible.
        let _ = write!(line, "{step}{x:.1} {y:.1}{}", if is_down { "" } else { "h0" });
        is_down = true;
    }
    let bound = |bound: Option<f64>, words: &str| {
        let bound = bound.filter(|bound| bound.is_finite())?;
        let y = y(bound);
        let line = path("budget", &format!("M{LEFT} {y:.1}H{WIDTH}"));
        Some([line, label(WIDTH, y - 5.0, "end", &format!("{words} {bound}"))])
    };
    let bounds = [bound(max, "at most"), bound(min, "at least")].into_iter().flatten().flatten();
    let mut ends = vec![label(LEFT - 6.0, y(highest) + 4.0, "end", &short(highest))];
    if highest > lowest {
        ends.push(label(LEFT - 6.0, y(lowest) + 4.0, "end", &short(lowest)));
    }
    let drawn = [scale.frame(), path("line", &line)].into_iter().chain(bounds).chain(ends);
    svg(name, HEIGHT, drawn.chain(times(scale, HEIGHT, length)).collect())
}

/// A number that fits into the margin.
fn short(value: f64) -> String {
    let plain = format!("{value}");
    if plain.len() <= 6 { plain } else { format!("{value:.1e}") }
}

/// At most one value per pixel: the highest.
fn thinned(uses: &[BudgetUse], series: Series, end: u32) -> Vec<BudgetUse> {
    const PIXELS: u64 = 1_800;
    let pixel = |it: &BudgetUse| u64::from(it.at) * PIXELS / u64::from(end.max(1));
    let pixels = uses.chunk_by(|a, b| pixel(a) == pixel(b));
    let shown = pixels.flat_map(|some| {
        let highest = some.iter().copied().max_by_key(|it| series.value(it));
        let last = some.last().copied().filter(|last| Some(*last) != highest);
        highest.into_iter().chain(last)
    });
    shown.collect()
}

/// The time during which a node was changed, in seconds since the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub from: u32,
    pub until: u32,
    /// Whether the node did not recover.
    pub failed: bool,
}

/// A bar for each node, in the order of their beginnings.
pub(super) fn spans(name: &str, spans: &[Span], end: u32) -> Html {
    let bars = u32::try_from(spans.len()).unwrap_or(u32::MAX).max(1);
    let row = (ROWS / f64::from(bars)).min(TALLEST_ROW);
    let height = row * f64::from(bars);
    let scale = Scale { most_x: f64::from(end.max(1)), most_y: 1.0 };
    let thickness = if row > 3.0 { row - 1.0 } else { row };
    let (mut well, mut failed) = (String::new(), String::new());
    for (nth, span) in (0_u32..).zip(spans) {
        let (from, until) = (scale.x(f64::from(span.from)), scale.x(f64::from(span.until)));
        let (y, width) = (ABOVE + row * f64::from(nth), (until - from).max(1.0));
        let bars = if span.failed { &mut failed } else { &mut well };
        let _ = write!(bars, "M{from:.1} {y:.2}h{width:.1}v{thickness:.2}h-{width:.1}z");
    }
    let labels = [
        label(LEFT - 6.0, ABOVE + 9.0, "end", "1"),
        label(LEFT - 6.0, ABOVE + height, "end", &grouped(spans.len())),
    ];
    let labels = labels.into_iter().filter(|_| height - 9.0 > LABEL);
    let drawn = [path("fill", &well), path("bad", &failed)];
    let labels = labels.chain(times(scale, height, end));
    svg(name, height, drawn.into_iter().chain(labels).collect())
}

/// Converts values to coordinates in a chart.
#[derive(Clone, Copy)]
struct Scale {
    most_x: f64,
    most_y: f64,
}

impl Scale {
    fn x(self, value: f64) -> f64 {
        LEFT + (WIDTH - LEFT) * value / self.most_x
    }

    fn y(self, value: f64) -> f64 {
        ABOVE + HEIGHT * (1.0 - value / self.most_y)
    }

    /// A line that keeps each value until the next.
    fn steps(self, uses: &[BudgetUse], value: impl Fn(&BudgetUse) -> u32, end: u32) -> String {
        let first = uses.first().map_or(0, &value);
        let mut line = format!("M{LEFT} {:.1}", self.y(f64::from(first)));
        for it in uses {
            let (x, y) = (self.x(f64::from(it.at)), self.y(f64::from(value(it))));
            let _ = write!(line, "H{x:.1}V{y:.1}");
        }
        let _ = write!(line, "H{:.1}", self.x(f64::from(end)));
        line
    }

    /// These times, in the whole height.
    fn shade(self, times: &[(u32, u32)]) -> Html {
        let rectangle = |(from, until): &(u32, u32)| {
            let (from, until) = (self.x(f64::from(*from)), self.x(f64::from(*until)));
            format!("M{from:.1} {ABOVE}H{until:.1}V{:.1}H{from:.1}z", ABOVE + HEIGHT)
        };
        path("closed", &times.iter().map(rectangle).collect::<String>())
    }

    /// The horizontal axis.
    fn frame(self) -> Html {
        let y = self.y(0.0);
        path("axis", &format!("M{LEFT} {y:.1}H{WIDTH}"))
    }
}

/// Labels of the time axis, at even steps.
fn times(scale: Scale, height: f64, end: u32) -> Vec<Html> {
    const STEPS: [u32; 14] =
        [1, 2, 5, 10, 30, 60, 120, 300, 600, 1_800, 3_600, 7_200, 21_600, 86_400];
    let step = STEPS.into_iter().find(|step| end / step <= 8).unwrap_or(end.max(1));
    let multiples = (0..=end / step).map(|nth| nth * step);
    let shown = multiples.map(|at| {
        let x = scale.x(f64::from(at));
        let anchor = if x > WIDTH - 24.0 { "end" } else { "middle" };
        // Every other label is left out where the chart is narrow.
        let class = if at / step % 2 == 1 { "time odd" } else { "time" };
        let (x, y) = (format!("{x:.1}"), format!("{:.1}", ABOVE + height + 16.0));
        let attributes = [("class", class), ("x", &x), ("y", &y), ("text-anchor", anchor)];
        Html::with("text", &attributes, clock(at))
    });
    shown.collect()
}

/// `45s`, `3m`, `3m30s`, `2h`, `2h5m`.
pub(super) fn clock(seconds: u32) -> String {
    let (hours, minutes, rest) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    let parts = [(hours, 'h'), (minutes, 'm'), (rest, 's')];
    let mut shown = String::new();
    for (number, unit) in parts.into_iter().filter(|(number, _)| *number > 0).take(2) {
        let _ = write!(shown, "{number}{unit}");
    }
    if shown.is_empty() { "0".to_owned() } else { shown }
}

fn path(class: &str, d: &str) -> Html {
    if d.is_empty() {
        return Html::default();
    }
    Html::with("path", &[("class", class), ("d", d)], Html::default())
}

fn label(x: f64, y: f64, anchor: &str, text: &str) -> Html {
    let (x, y) = (format!("{x:.1}"), format!("{y:.1}"));
    Html::with("text", &[("x", &x), ("y", &y), ("text-anchor", anchor)], text)
}

fn svg(name: &str, height: f64, content: Html) -> Html {
    let view = format!("0 0 {WIDTH} {:.0}", ABOVE + height + BELOW);
    let attributes =
        [("class", "chart"), ("viewBox", view.as_str()), ("role", "img"), ("aria-label", name)];
    Html::with("svg", &attributes, content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_time_are_short() {
        for (seconds, want) in
            [(0, "0"), (45, "45s"), (180, "3m"), (210, "3m30s"), (7_200, "2h"), (7_503, "2h5m")]
        {
            assert_eq!(clock(seconds), want);
        }
    }

    #[test]
    fn the_highest_value_of_a_pixel_is_kept() {
        let at =
            |at, unavailable| BudgetUse { at, unavailable, allowed: 9, ..BudgetUse::default() };
        let uses = [at(0, 1), at(1, 7), at(2, 3), at(40_000, 2)];
        assert_eq!(
            thinned(&uses, Series::Unavailable, 90_000),
            [at(1, 7), at(2, 3), at(40_000, 2)]
        );
    }

    #[test]
    fn the_bar_of_a_daemon_set_has_a_part_for_each_wave() {
        let forecast = |seconds, waves: &[u64]| DaemonSetForecast {
            daemon_set: "a/b".into(),
            seconds,
            waves: waves.to_vec(),
            ..DaemonSetForecast::default()
        };
        for (forecast, want) in [
            (forecast(50, &[]), "M5000 0H10000V8H5000z"),
            (forecast(50, &[50]), "M5000 0H10000V8H5000z"),
            (forecast(50, &[25, 25]), "M5000 0H7470V8H5000zM7500 0H10000V8H7500z"),
            (forecast(50, &[25, 5]), "M5000 0H7470V8H5000zM7500 0H10000V8H7500z"),
        ] {
            let drawn = spell(&forecast, 50, 100);
            assert!(drawn.as_str().contains(&format!("d=\"{want}\"")), "{drawn:?}");
        }
    }

    #[test]
    fn values_are_a_line_between_their_bounds() {
        let drawn = |values: &[(i64, f64)], max| {
            let bounds = Bounds { min: None, max };
            samples("s", values, bounds).as_str().to_owned()
        };
        let line = |drawn: &str| -> String {
            let rest = drawn.split("class=\"line\" d=\"").nth(1).unwrap();
            rest.split('"').next().unwrap().to_owned()
        };
        let some = drawn(&[(0, 0.0), (10, 1.0), (20, 0.5)], Some(2.0));
        assert_eq!(line(&some), "M44.0 120.0h0L502.0 68.0L960.0 94.0");
        assert!(some.contains("class=\"budget\" d=\"M44 16.0H960\""), "{some}");
        assert!(some.contains("at most 2<"), "{some}");
        let gap = drawn(&[(0, 0.0), (10, f64::NAN), (20, f64::INFINITY)], Some(1.0));
        assert_eq!(line(&gap), "M44.0 120.0h0M960.0 16.0h0");
        let huge = drawn(&[(0, f64::MIN), (9, f64::MAX)], None);
        assert_eq!(line(&huge), "M44.0 120.0h0L960.0 16.0");
        for nothing in [&[][..], &[(0, f64::NAN)]] {
            assert_eq!(drawn(nothing, None), "");
        }
    }

    #[test]
    fn each_node_has_its_bar() {
        let span = |failed| Span { from: 0, until: 9, failed };
        let drawn = spans("s", &[span(false), span(true), span(false)], 10);
        let bars: Vec<usize> =
            drawn.as_str().split("<path").skip(1).map(|it| it.matches('z').count()).collect();
        assert_eq!(bars, [2, 1]);
    }
}
