//! A rollout that has ended, or a rehearsal of one, as a page: the use of the budget over time, a
//! bar for each node that was replaced, and the state of each node at the end.

use super::charts::{Span, clock, spans, usage};
use super::markup::Html;
use super::page::{HtmlOptions, Page};
use super::parts::{Tile, code, folded, list, section, table, tiles};
use super::picture::{Heads, Marker, Picture, Row, RowsOf, Shape, Tone};
use crate::error::Error;
use crate::view::{RolloutNode, RolloutState, RolloutView, Series};
use planner::rollout::RunHistory;
use planner::words::{count, grouped};

/// The runs that the page reports, and how they were made.
#[derive(Clone, Debug)]
pub struct RolloutReport<'a> {
    /// Whether it was a rehearsal on an embedded copy of the cluster.
    pub rehearsed: bool,
    /// The history of each DaemonSet that was applied, in order.
    pub runs: &'a [RunHistory],
    /// Version of ds-apply.
    pub tool_version: &'a str,
}

/// States, most severe first.
const STATES: [RolloutState; 7] = [
    RolloutState::Failed,
    RolloutState::Underway,
    RolloutState::Left,
    RolloutState::Replaced,
    RolloutState::Surged,
    RolloutState::Created,
    RolloutState::Untouched,
];

fn kind(state: RolloutState) -> Marker {
    let (words, symbol, shape, tone) = match state {
        RolloutState::Failed => ("failed", "x", Shape::Cross, Tone::Red),
        RolloutState::Underway => ("in progress", "…", Shape::Diamond, Tone::Purple),
        RolloutState::Left => ("needs attention", "!", Shape::Frame, Tone::Amber),
        RolloutState::Replaced => ("replaced", "-/+", Shape::Square, Tone::Blue),
        RolloutState::Surged => ("surged", "+/-", Shape::Diamond, Tone::Sky),
        RolloutState::Created => ("created", "+", Shape::Plus, Tone::Green),
        RolloutState::Untouched => ("not touched", "", Shape::Dot, Tone::Grey),
    };
    Marker { words, symbol, shape, tone }
}

/// The rollout as one HTML page.
///
/// # Errors
/// Never in practice: the data are plain numbers and texts.
pub fn rollout_html(
    report: &RolloutReport<'_>,
    options: &HtmlOptions<'_>,
) -> Result<String, Error> {
    let RolloutReport { rehearsed, runs, tool_version } = report;
    let rollouts: Vec<RolloutView<'_>> = runs.iter().map(RolloutView::of).collect();
    let glance = STATES.iter().filter(|state| **state != RolloutState::Untouched).map(|state| {
        let nodes: usize = rollouts.iter().map(|rollout| rollout.count(*state)).sum();
        Tile::of(kind(*state), u64::try_from(nodes).unwrap_or(u64::MAX))
    });
    let (what, embedded) = if *rehearsed {
        (
            "REHEARSAL",
            "on an embedded copy of the cluster, in virtual time; no changes were made to the \
             cluster",
        )
    } else {
        ("rollout", "on the cluster")
    };
    let began = rollouts.iter().filter_map(|rollout| rollout.began).min();
    let about = [
        Some(embedded.to_owned()),
        Some(count(options.nodes.len(), "node")),
        began.map(|at| format!("started at {at}")),
    ];
    Page {
        kind: what,
        headline: heading(*rehearsed, headline(&rollouts)),
        about: about.into_iter().flatten().collect(),
        glance: tiles(glance),
        before: outcomes(&rollouts, *rehearsed),
        fleet: heading(*rehearsed, "Fleet"),
        after: section(
            "sets",
            &heading(*rehearsed, "Events"),
            rollouts.iter().map(events).collect(),
        ),
        picture: picture(&rollouts, options),
        footer: format!("Made by ds-apply {tool_version}."),
    }
    .write()
}

/// A heading, which says whether it is about a rehearsal.
fn heading(rehearsed: bool, words: impl Into<String>) -> String {
    let words = words.into();
    if rehearsed { format!("REHEARSAL: {words}") } else { words }
}

fn headline(rollouts: &[RolloutView<'_>]) -> String {
    let all = count(rollouts.len(), "DaemonSet");
    let done = rollouts.iter().filter(|rollout| rollout.is_done).count();
    match rollouts {
        [] => "Nothing to do".to_owned(),
        [only] => format!("{}: {}", only.key, only.outcome),
        _ if done == rollouts.len() => format!("{all} done"),
        _ => format!("{done} of {all} done"),
    }
}

/// A row for each run, and its charts.
fn outcomes(rollouts: &[RolloutView<'_>], rehearsed: bool) -> Html {
    let rows = rollouts.iter().map(|rollout| {
        let RolloutView {
            key, outcome, replaced, surged, created, left, durations, lasted, ..
        } = rollout;
        let span = |seconds: Option<&i64>| {
            seconds.map_or(String::new(), |it| clock(u32::try_from(*it).unwrap_or_default()))
        };
        vec![
            code(key),
            outcome.as_str().into(),
            grouped(*replaced).into(),
            grouped(*surged).into(),
            grouped(*created).into(),
            grouped(rollout.count(RolloutState::Failed)).into(),
            grouped(*left).into(),
            span(durations.get(durations.len() / 2)).into(),
            span(durations.last()).into(),
            clock(*lasted).into(),
        ]
    });
    let heads = [
        "DaemonSet",
        "Outcome",
        "Replaced",
        "Surged",
        "Created",
        "Failed",
        "Left",
        "Median",
        "Slowest",
        "Duration",
    ];
    let all = table("Outcome of each DaemonSet", &heads, rows);
    let figures: Html = rollouts.iter().map(figures).collect();
    section("time", &heading(rehearsed, "Over time"), [all, figures].into())
}

/// The use of the budget, and a bar for each node.
fn figures(rollout: &RolloutView<'_>) -> Html {
    let RolloutView { key, nodes, uses, skipped, waits, lasted, .. } = rollout;
    let bars = nodes.values().filter_map(|node| {
        let (from, until) = node.span?;
        Some(Span { from, until, failed: !node.state.is_well() })
    });
    let mut bars: Vec<Span> = bars.collect();
    bars.sort_by_key(|span| (span.from, span.until));
    let figure = |title: &str, drawn: Html| {
        let caption = [code(key), Html::class("span", "aside", title)];
        Html::of("figure", [Html::of("figcaption", caption), drawn])
    };
    let used = rollout.series().map(|series| {
        let what = series.words();
        let name = format!("{key}: nodes {what} over time, and the budget if there is one");
        let aside = if *skipped > 0 && series == Series::Unavailable {
            format!(
                "nodes {what}, without {} skipped as NotReady",
                count(usize::try_from(*skipped).unwrap_or(usize::MAX), "node")
            )
        } else {
            format!("nodes {what}")
        };
        let waited = if waits.is_empty() { "" } else { "; shaded: the run waits, by its policy" };
        let aside = format!("{aside}{waited}");
        figure(&aside, usage(&name, uses, waits, series, *lasted))
    });
    let bars = (!bars.is_empty()).then(|| {
        let name = format!("{key}: until the new pod was available, one bar per node");
        let nodes = count(bars.len(), "node");
        let title = format!("one bar per node, until its new pod was available; {nodes}");
        figure(&title, spans(&name, &bars, *lasted))
    });
    used.chain(bars).collect()
}

/// The events that the charts do not show, and the outcome.
fn events(rollout: &RolloutView<'_>) -> Html {
    let RolloutView { key, outcome, lasted, events, .. } = rollout;
    let events = events.iter().map(|(at, event)| (*at, event)).chain([(*lasted, outcome)]);
    let items = events.map(|(at, words)| {
        [Html::class("span", "tag", clock(at)), Html::of("span", words.as_str())].into()
    });
    let summary = [code(key), Html::class("span", "aside", outcome.as_str())];
    folded(summary.into(), list(items))
}

fn picture(rollouts: &[RolloutView<'_>], options: &HtmlOptions<'_>) -> Picture {
    let sets = rollouts.iter().map(|rollout| {
        let rows = rollout.nodes.iter().map(|(name, node)| {
            let RolloutNode { state, wave, seconds, .. } = *node;
            Row { node: name, state, wave, seconds, why: node.why() }
        });
        let key = rollout.domain_key;
        RowsOf { set: rollout.key.as_str(), key, rows: rows.collect() }
    });
    let heads = Heads { kind: "State", seconds: "Duration", ..Heads::default() };
    Picture::of(options.nodes, (&STATES, kind), heads, &sets.collect::<Vec<_>>())
}
