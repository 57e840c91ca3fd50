//! A drift report as a page: the nodes that deviate, and the deviations of each DaemonSet.

use super::markup::Html;
use super::picture::{Gathering, Heads, Kind, Picture, Row, Shape, Tone};
use super::words::{code, diff, folded, list, section, seen, table, tiles, warnings};
use super::{HtmlOptions, Page};
use crate::drift::{key, writer_words};
use crate::nodes::sentence;
use crate::page::count;
use crate::plan_text::source_words;
use crate::{Error, TextOptions};
use daemonset::model::NodeName;
use planner::plan::{
    Classified, DaemonSetDrift, Deviation, Drift, DriftClass, DriftTotals, FieldChange, NodeDrift,
};

/// The deviations of a node, most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Missing,
    Ended,
    Misplaced,
    Surplus,
    Outdated,
    Doubtful,
    Fine,
}

const CASES: [Case; 7] = [
    Case::Missing,
    Case::Ended,
    Case::Misplaced,
    Case::Surplus,
    Case::Outdated,
    Case::Doubtful,
    Case::Fine,
];

fn kind(case: Case) -> Kind {
    let (words, symbol, shape, tone) = match case {
        Case::Missing => ("without a pod", "+", Shape::Plus, Tone::Green),
        Case::Ended => ("failed or completed pod", "x", Shape::Cross, Tone::Red),
        Case::Misplaced => ("pod may not run here", "-", Shape::Diamond, Tone::Purple),
        Case::Surplus => ("more than one pod", "2", Shape::Diamond, Tone::Sky),
        Case::Outdated => ("outdated pod", "~", Shape::Square, Tone::Blue),
        Case::Doubtful => ("unclear", "?", Shape::Frame, Tone::Amber),
        Case::Fine => ("no drift", "", Shape::Dot, Tone::Grey),
    };
    Kind { words, symbol, shape, tone }
}

/// The report as one HTML page.
///
/// # Errors
/// Never in practice: the data are plain numbers and texts.
pub fn drift_html(drift: &Drift, options: &HtmlOptions<'_>) -> Result<String, Error> {
    let Drift { api_version: _, kind: _, source, cluster, daemon_sets, totals, warnings: warned } =
        drift;
    let all = count(daemon_sets.len(), "DaemonSet");
    let deviating = daemon_sets.iter().filter(|it| !it.deviations.is_empty()).count();
    let DriftTotals { spec, pod, rollout, history, eligibility } = *totals;
    let glance = [
        (spec, DriftClass::Spec),
        (pod, DriftClass::Pod),
        (rollout, DriftClass::Rollout),
        (history, DriftClass::History),
        (eligibility, DriftClass::Eligibility),
    ];
    let classes = glance.map(|(number, class)| (number, class.to_string()));
    let at_a_glance = [
        tiles(classes.iter().map(|(number, class)| ("", u64::from(*number), class.as_str()))),
        warnings(warned),
    ];
    Page {
        kind: "drift",
        headline: match deviating {
            0 => format!("No drift: {all} checked"),
            some => format!("Drift in {some} of {all}"),
        },
        about: [format!("{all}{}", source_words(source, TextOptions::default()))]
            .into_iter()
            .chain(seen(cluster))
            .collect(),
        glance: at_a_glance.into(),
        before: each(daemon_sets, options.verbose),
        after: Html::default(),
        picture: picture(daemon_sets, options),
        footer: "Made by ds-plan drift.".to_owned(),
    }
    .write()
}

const CLASSES: [DriftClass; 5] = [
    DriftClass::Spec,
    DriftClass::Pod,
    DriftClass::Rollout,
    DriftClass::History,
    DriftClass::Eligibility,
];

fn each(daemon_sets: &[DaemonSetDrift], verbose: bool) -> Html {
    let classes = CLASSES.map(|class| class.to_string());
    let heads: Vec<&str> =
        ["DaemonSet"].into_iter().chain(classes.iter().map(String::as_str)).collect();
    let rows = daemon_sets.iter().map(|it| {
        let numbers = CLASSES.map(|class| {
            let number = it.deviations.iter().filter(|it| it.class == class).count();
            Html::text(number)
        });
        [code(key(it))].into_iter().chain(numbers).collect()
    });
    let all = table("Deviations of each DaemonSet, by class", &heads, rows);
    let deviating = daemon_sets.iter().filter(|it| !it.deviations.is_empty());
    let details: Html = deviating.map(|it| details(it, verbose)).collect();
    section("sets", "DaemonSets", [all, details].into())
}

fn details(daemon_set: &DaemonSetDrift, verbose: bool) -> Html {
    let fields: Vec<&FieldChange> =
        daemon_set.deviations.iter().filter_map(|it| field(&it.deviation.reason)).collect();
    let written = daemon_set.deviations.iter().flat_map(|it| written(&it.deviation.reason));
    let others = CLASSES.iter().flat_map(|class| {
        let of_class = daemon_set.deviations.iter().filter(|it| it.class == *class);
        of_class.filter(|it| field(&it.deviation.reason).is_none()).map(
            |Classified { class, deviation }| {
                [
                    Html::class("span", "tag", class.to_string()),
                    Html::of("span", deviation.to_string()),
                ]
                .into()
            },
        )
    });
    let body = [
        list(others),
        if fields.is_empty() {
            Html::default()
        } else {
            Html::of("h3", "Fields: - live, + source")
        },
        diff(fields.into_iter(), verbose),
        list(written),
    ];
    let found = count(daemon_set.deviations.len(), "deviation");
    let summary = [code(key(daemon_set)), Html::class("span", "aside", found)];
    folded(summary.into(), body.into())
}

fn field(deviation: &Deviation) -> Option<&FieldChange> {
    let Deviation::FieldDiffers { change, writers: _ } = deviation else { return None };
    Some(change)
}

/// The field managers that wrote a field that differs.
fn written(deviation: &Deviation) -> Vec<Html> {
    let Deviation::FieldDiffers { change, writers } = deviation else { return Vec::new() };
    let items = writers
        .iter()
        .map(|writer| [code(&change.path), Html::of("span", writer_words(writer))].into());
    items.collect()
}

/// Nodes with all their reasons.
fn reported(nodes: &[NodeDrift]) -> Vec<(&NodeName, String)> {
    let reported =
        nodes.iter().map(|NodeDrift { node, pods: _, reasons }| (node, sentence(reasons)));
    reported.collect()
}

/// The nodes of a deviation with their state and the reason.
fn nodes(deviation: &Deviation) -> (Case, Vec<(&NodeName, String)>) {
    match deviation {
        Deviation::PodMissing { nodes } => (Case::Missing, reported(nodes)),
        Deviation::PodSurplus { nodes } => (Case::Surplus, reported(nodes)),
        Deviation::PodOutdated { nodes } => (Case::Outdated, reported(nodes)),
        Deviation::PodFailed { nodes } => (Case::Ended, reported(nodes)),
        Deviation::PodMisscheduled { nodes } | Deviation::RunsWhereNoneMayStart { nodes } => {
            (Case::Misplaced, reported(nodes))
        }
        Deviation::StatusDisagrees { nodes } => (Case::Doubtful, reported(nodes)),
        Deviation::NamespaceNodeSelector { annotation: _, selector: _, nodes } => {
            let why = deviation.to_string();
            (Case::Doubtful, nodes.iter().map(|node| (node, why.clone())).collect())
        }
        Deviation::FieldDiffers { .. }
        | Deviation::ObjectMissing
        | Deviation::ObjectTerminating
        | Deviation::Paused { .. }
        | Deviation::Aborted { .. }
        | Deviation::PauseUnreadable { .. }
        | Deviation::PauseLeftOver { .. }
        | Deviation::NotObserved { .. }
        | Deviation::Unfinished { .. }
        | Deviation::RevisionMissing
        | Deviation::RevisionDuplicate { .. }
        | Deviation::RevisionNumberTwice { .. }
        | Deviation::RevisionOrphaned { .. }
        | Deviation::RevisionMixed { .. } => (Case::Fine, Vec::new()),
    }
}

fn picture(daemon_sets: &[DaemonSetDrift], options: &HtmlOptions<'_>) -> Picture {
    let all: Vec<Vec<_>> = daemon_sets
        .iter()
        .map(|it| it.deviations.iter().map(|it| nodes(&it.deviation.reason)).collect())
        .collect();
    let named = all.iter().flatten().flat_map(|(_, nodes)| nodes).map(|(node, _)| *node);
    let heads = Heads { kind: "State", ..Heads::default() };
    let mut gathering = Gathering::of(options.nodes, named, &CASES.map(kind), heads);
    for (daemon_set, deviations) in daemon_sets.iter().zip(&all) {
        let rows = deviations.iter().flat_map(|(case, nodes)| {
            let kind = CASES.iter().position(|it| it == case).unwrap_or_default();
            nodes.iter().map(move |(node, why)| Row {
                node,
                kind,
                wave: None,
                seconds: None,
                why: why.clone(),
            })
        });
        gathering.add(key(daemon_set), rows);
    }
    gathering.whole()
}
