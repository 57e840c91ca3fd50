//! The course of a rollout by steps as a picture: a bar for each wave on one axis of time, with soaks,
//! closed windows and waits for approval.
//!
//! Bars are stretched to the width of the page; all words are text beside them.

use std::fmt::Write as _;

use super::markup::Html;
use super::parts::code;
use crate::view::{Bar, SpanKind, TimelineRow, TimelineView};

/// Length of the axis, in units that the page stretches.
const LENGTH: u64 = 10_000;
/// Minimum length of a bar: a minute of work within days stays visible.
const SHORTEST: u64 = 50;
/// Length of the mark of a wait for approval.
const MARK: u64 = 110;

/// The note about what the bars mean.
pub(super) const LEGEND: &str = "Filled: nodes are updated. Thin: new pods soak. Shaded: no window \
    is open for long enough. Wedge: a person has to approve; nobody knows how long that takes, so \
    it is not counted.";

/// The course of the rollout of a DaemonSet.
pub(super) fn timeline(key: &str, view: &TimelineView) -> Html {
    let TimelineView { begins, ends, lasts, rows, closed } = view;
    let x = |seconds: u64| seconds.saturating_mul(LENGTH) / lasts.max(&1);
    let shade =
        path("closed", closed.iter().map(|bar| rectangle(x(bar.from), x(bar.until), 0, 12)));
    let rows = rows.iter().map(|TimelineRow { title, when, bars }| {
        let of = |kind| bars.iter().filter(move |bar: &&Bar| bar.kind == kind);
        let long = |bar: &Bar| (x(bar.from), x(bar.until).max(x(bar.from) + SHORTEST));
        let update =
            of(SpanKind::Update).map(long).map(|(from, until)| rectangle(from, until, 0, 12));
        let soak = of(SpanKind::Soak).map(long).map(|(from, until)| rectangle(from, until, 4, 8));
        let approval = of(SpanKind::Approval).map(|bar| {
            let tip = x(bar.from).max(MARK);
            format!("M{} 0L{tip} 6L{} 12z", tip - MARK, tip - MARK)
        });
        let drawn: Html =
            [shade.clone(), path("soak", soak), path("fill", update), path("wait", approval)]
                .into();
        let view = format!("0 0 {LENGTH} 12");
        let attributes = [
            ("class", "spell"),
            ("viewBox", view.as_str()),
            ("preserveAspectRatio", "none"),
            ("aria-hidden", "true"),
        ];
        let words = [Html::of("span", title.as_str()), Html::class("span", "aside", when.as_str())];
        Html::of("li", [words.into(), Html::with("svg", &attributes, drawn)])
    });
    let rows = Html::class("ol", "course", rows.collect::<Html>());
    let ends = [begins, ends].map(|moment| Html::of("span", moment.as_str()));
    let caption = Html::of("figcaption", [code(key)]);
    Html::class("figure", "timeline", [caption, Html::class("p", "axis", ends), rows])
}

fn rectangle(from: u64, until: u64, top: u64, bottom: u64) -> String {
    format!("M{from} {top}H{until}V{bottom}H{from}z")
}

fn path(class: &str, parts: impl Iterator<Item = String>) -> Html {
    let mut d = String::new();
    for part in parts {
        // Writing to a String cannot fail.
        let _ = write!(d, "{part}");
    }
    if d.is_empty() {
        return Html::default();
    }
    Html::with("path", &[("class", class), ("d", &d)], Html::default())
}
