//! A drift report as a page: the nodes that deviate, and the deviations of each DaemonSet.

use super::markup::Html;
use super::page::{HtmlOptions, Page};
use super::parts::{Tile, code, compared, diff, folded, list, quiet, section, tiles, warnings};
use super::picture::{Heads, Marker, Picture, Row, RowsOf, Shape, Tone};
use crate::error::Error;
use crate::view::{CLASSES, DaemonSetDriftView, DriftView, NodeState};
use planner::plan::Drift;
use planner::words::{count, grouped};

/// States, most severe first: of a node with several, the map shows the first.
const STATES: [NodeState; 7] = [
    NodeState::Missing,
    NodeState::Ended,
    NodeState::Misplaced,
    NodeState::Surplus,
    NodeState::Outdated,
    NodeState::Doubtful,
    NodeState::Fine,
];

fn kind(state: NodeState) -> Marker {
    let (words, symbol, shape, tone) = match state {
        NodeState::Missing => ("without a pod", "+", Shape::Plus, Tone::Green),
        NodeState::Ended => ("failed or completed pod", "x", Shape::Cross, Tone::Red),
        NodeState::Misplaced => ("pod may not run here", "-", Shape::Diamond, Tone::Purple),
        NodeState::Surplus => ("more than one pod", "2", Shape::Diamond, Tone::Sky),
        NodeState::Outdated => ("outdated pod", "~", Shape::Square, Tone::Blue),
        NodeState::Doubtful => ("unclear", "?", Shape::Frame, Tone::Amber),
        NodeState::Fine => ("no drift", "", Shape::Dot, Tone::Grey),
    };
    Marker { words, symbol, shape, tone }
}

/// The report as one HTML page.
///
/// # Errors
/// Never in practice: the data are plain numbers and texts.
pub fn drift_html(drift: &Drift, options: &HtmlOptions<'_>) -> Result<String, Error> {
    let drift = DriftView::of(drift);
    let all = count(drift.daemon_sets.len(), "DaemonSet");
    let cluster = drift.origin.cluster_name();
    let waits = drift.waits_words(", ");
    let glance = CLASSES.into_iter().zip(drift.totals).map(|(class, number)| Tile {
        number: number.into(),
        words: class.to_string(),
        symbol: "",
        tone: None,
    });
    Page {
        kind: "drift",
        headline: match drift.deviating().len() {
            0 => format!("{cluster}: no drift, {all} checked{waits}"),
            some => format!("{cluster}: drift in {some} of {all}{waits}"),
        },
        about: compared(&drift.origin).collect(),
        glance: [tiles(glance), warnings(&drift.warnings)].into(),
        fleet: "Fleet".to_owned(),
        before: each(&drift, options.verbose),
        after: Html::default(),
        picture: picture(&drift.daemon_sets, options),
        footer: "Made by ds-plan drift.".to_owned(),
    }
    .write()
}

fn each(drift: &DriftView<'_>, verbose: bool) -> Html {
    let (deviating, others): (Vec<_>, Vec<_>) =
        drift.daemon_sets.iter().partition(|it| !it.deviations.is_empty());
    let details: Html = deviating.into_iter().map(|it| details(it, verbose)).collect();
    let keys = others.iter().map(|it| it.key.clone()).collect();
    section("sets", "DaemonSets", [details, quiet("No drift in", keys, verbose)].into())
}

fn details(daemon_set: &DaemonSetDriftView<'_>, verbose: bool) -> Html {
    let others = daemon_set.others().map(|it| {
        let class = Html::class("span", "tag", it.class.to_string());
        [class, Html::of("span", it.sentence.as_str())].into()
    });
    let fields = daemon_set.fields();
    let written = fields.iter().flat_map(|field| {
        let path = &field.change.path;
        field.writers.iter().map(move |it| [code(path), Html::of("span", it.as_str())].into())
    });
    let heading = (!fields.is_empty()).then(|| Html::of("h3", "Fields: - live, + source"));
    let body = [
        list(others),
        heading.unwrap_or_default(),
        diff(fields.iter().map(|field| field.change), verbose),
        list(written),
    ];
    let found = CLASSES.into_iter().zip(daemon_set.totals).filter(|(_, number)| *number > 0);
    let found = found.map(|(class, number)| format!("{} {class}", grouped(number)));
    let found = found.collect::<Vec<_>>().join(", ");
    let summary = [code(&daemon_set.key), Html::class("span", "aside", found)];
    folded(summary.into(), body.into())
}

fn picture(daemon_sets: &[DaemonSetDriftView<'_>], options: &HtmlOptions<'_>) -> Picture {
    let sets = daemon_sets.iter().map(|daemon_set| {
        let rows = daemon_set.deviations.iter().flat_map(|deviation| {
            deviation.nodes.iter().map(|node| {
                let (state, why) = (deviation.state, deviation.why(node));
                Row { node: node.name, state, wave: None, seconds: None, why }
            })
        });
        RowsOf { set: daemon_set.key.as_str(), key: None, rows: rows.collect() }
    });
    let heads = Heads { kind: "State", ..Heads::default() };
    Picture::of(options.nodes, (&STATES, kind), heads, &sets.collect::<Vec<_>>())
}
