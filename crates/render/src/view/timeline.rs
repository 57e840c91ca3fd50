//! The expected course of a rollout that waits: a row for each of its waves, with the times of
//! updates, soaks and approvals, and the times in which no window is open.

use super::steps::Times;
use crate::neutral;
use planner::plan::{DaemonSetForecast, DaemonSetPlan, ForecastSpan, SpanKind};
use planner::words::count;

/// With more waves than this, a row shows a whole step.
const MOST_ROWS: usize = 40;

/// The course of one rollout. Positions are seconds from its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimelineView {
    /// The moment of the beginning.
    pub begins: String,
    /// The moment of the end.
    pub ends: String,
    /// Seconds from one to the other.
    pub lasts: u64,
    pub rows: Vec<TimelineRow>,
    /// The waits for a window.
    pub closed: Vec<Bar>,
}

/// One wave, or one step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TimelineRow {
    /// `wave 2: rest, zone-a`.
    pub title: String,
    /// `13 nodes, needs approval, Tue 10:00 to Tue 10:08, soak until Tue 10:23`.
    pub when: String,
    pub bars: Vec<Bar>,
}

/// A part of the course.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bar {
    pub kind: SpanKind,
    pub from: u64,
    pub until: u64,
}

impl TimelineView {
    /// The course of a rollout; `None` if no policy makes it wait, or it never ends.
    pub(super) fn of(
        plan: &DaemonSetPlan,
        course: Option<&DaemonSetForecast>,
        times: &Times,
    ) -> Option<Self> {
        let course = course?;
        let end = course.earliest_end?;
        let begin = course.timeline.first()?.from;
        let seconds = |at: jiff::Timestamp| {
            u64::try_from(at.duration_since(begin).as_secs()).unwrap_or_default()
        };
        let bar = |span: &ForecastSpan| {
            let ForecastSpan { kind, step: _, wave: _, from, until } = span;
            Bar { kind: *kind, from: seconds(*from), until: seconds(*until) }
        };
        let is_closed = |span: &&ForecastSpan| span.kind == SpanKind::Closed;
        let closed = course.timeline.iter().filter(is_closed).map(bar).collect();
        let mut rows: Vec<(String, u64, Vec<&ForecastSpan>)> = Vec::new();
        let by_step = plan.waves.len() > MOST_ROWS && !plan.steps.is_empty();
        for span in course.timeline.iter().filter(|span| !is_closed(span)) {
            let (title, nodes) = title(plan, span, by_step);
            match rows.iter_mut().find(|(other, ..)| *other == title) {
                Some((_, _, spans)) => spans.push(span),
                None => rows.push((title, nodes, vec![span])),
            }
        }
        let row = |(title, nodes, spans): (String, u64, Vec<&ForecastSpan>)| TimelineRow {
            title: neutral::line(&title).into_owned(),
            when: when(nodes, &spans, times),
            bars: spans.into_iter().map(bar).collect(),
        };
        Some(Self {
            begins: times.moment(begin),
            ends: times.moment(end),
            lasts: seconds(end).max(1),
            rows: rows.into_iter().map(row).collect(),
            closed,
        })
    }
}

/// The title of the row of a span, and the number of its nodes. What is about a whole step is in the
/// row of its last wave, but a wait for an approval in that of the first.
fn title(plan: &DaemonSetPlan, span: &ForecastSpan, by_step: bool) -> (String, u64) {
    let of_step = plan.waves.iter().filter(|wave| wave.step == span.step);
    let nodes = |nodes: usize| u64::try_from(nodes).unwrap_or(u64::MAX);
    let of_wave = match span.wave {
        Some(number) => plan.waves.iter().find(|wave| wave.index == number),
        None if span.kind == SpanKind::Approval => of_step.clone().next(),
        None => of_step.clone().next_back(),
    };
    match (of_wave, &span.step) {
        (Some(_), Some(step)) if by_step => {
            (format!("step {step}"), nodes(of_step.map(|wave| wave.nodes.len()).sum()))
        }
        (Some(wave), _) => (format!("wave {}: {}", wave.index, wave.name), nodes(wave.nodes.len())),
        (None, step) => (format!("step {}", step.as_deref().unwrap_or_default()), 0),
    }
}

/// The times of the parts of a row, as words.
fn when(nodes: u64, spans: &[&ForecastSpan], times: &Times) -> String {
    let of = |kind: SpanKind| spans.iter().filter(move |span| span.kind == kind);
    let nodes = (nodes > 0).then(|| count(nodes, "node"));
    let approval = of(SpanKind::Approval).next();
    let approval = approval.map(|_| "needs approval, however long that takes".to_owned());
    let (first, last) = (of(SpanKind::Update).next(), of(SpanKind::Update).next_back());
    let update = first
        .zip(last)
        .map(|(first, last)| format!("{} to {}", times.clock(first.from), times.clock(last.until)));
    let soak = of(SpanKind::Soak).map(|span| span.until).max();
    let soak = soak.map(|until| format!("soak until {}", times.clock(until)));
    let words = nodes.into_iter().chain(approval).chain(update).chain(soak);
    words.collect::<Vec<_>>().join(", ")
}
