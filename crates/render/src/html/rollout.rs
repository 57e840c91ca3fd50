//! A rollout that has ended, or a rehearsal of one, as a page: the use of the budget over time, a
//! bar for each node that was replaced, and the state of each node at the end.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::charts::{Span, Use, clock, spans, usage};
use super::markup::Html;
use super::picture::{Gathering, Heads, Kind, Picture, Row, Shape, Tone};
use super::words::{code, folded, list, section, table, tiles};
use super::{HtmlOptions, Page};
use crate::Error;
use crate::nodes::sentence;
use crate::page::count;
use daemonset::model::NodeName;
use planner::plan::{Coded, Reason};
use planner::rollout::{
    Delete, Ending, Outcome, PauseReason, PodFailure, Progress, Record, Report, RolledBack,
};

/// The runs that the page reports, and how they were made.
#[derive(Clone, Debug)]
pub struct RolloutReport<'a> {
    /// Whether it was a rehearsal on an embedded copy of the cluster.
    pub rehearsed: bool,
    /// One record for each DaemonSet that was applied, in order.
    pub records: &'a [Record],
    /// Version of ds-apply.
    pub tool_version: &'a str,
}

/// The state of a node at the end, most severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Case {
    Failed,
    Underway,
    Left,
    Replaced,
    Untouched,
}

const CASES: [Case; 5] =
    [Case::Failed, Case::Underway, Case::Left, Case::Replaced, Case::Untouched];

fn kind(case: Case) -> Kind {
    let (words, symbol, shape, tone) = match case {
        Case::Failed => ("failed", "x", Shape::Cross, Tone::Red),
        Case::Underway => ("in progress", "…", Shape::Diamond, Tone::Purple),
        Case::Left => ("needs attention", "!", Shape::Frame, Tone::Amber),
        Case::Replaced => ("replaced", "-/+", Shape::Square, Tone::Blue),
        Case::Untouched => ("not touched", "", Shape::Dot, Tone::Grey),
    };
    Kind { words, symbol, shape, tone }
}

/// The rollout as one HTML page.
///
/// # Errors
/// Never in practice: the data are plain numbers and texts.
pub fn rollout_html(
    report: &RolloutReport<'_>,
    options: &HtmlOptions<'_>,
) -> Result<String, Error> {
    let RolloutReport { rehearsed, records, tool_version } = report;
    let stories: Vec<Story<'_>> = records.iter().map(Story::of).collect();
    let glance = CASES.iter().filter(|case| **case != Case::Untouched).map(|case| {
        let Kind { words, symbol, .. } = kind(*case);
        let nodes = stories.iter().flat_map(|story| story.nodes.values());
        let of_case = nodes.filter(|fate| fate.case == *case).count();
        (symbol, u64::try_from(of_case).unwrap_or(u64::MAX), words)
    });
    let (what, embedded) = if *rehearsed {
        (
            "rehearsal",
            "on an embedded copy of the cluster, in virtual time; no changes were made to the \
             cluster",
        )
    } else {
        ("rollout", "on the cluster")
    };
    let began = stories.iter().filter_map(|story| story.began).min();
    let about = [
        Some(embedded.to_owned()),
        Some(count(options.nodes.len(), "node")),
        began.map(|at| format!("started at {at}")),
    ];
    Page {
        kind: what,
        headline: headline(&stories),
        about: about.into_iter().flatten().collect(),
        glance: tiles(glance),
        before: outcomes(&stories),
        after: section("sets", "Events", stories.iter().map(Story::reported).collect()),
        picture: picture(&stories, options),
        footer: format!("Made by ds-apply {tool_version}."),
    }
    .write()
}

fn headline(stories: &[Story<'_>]) -> String {
    let all = count(stories.len(), "DaemonSet");
    let done = stories.iter().filter(|story| story.ending.outcome == Outcome::Done).count();
    match stories {
        [] => "Nothing to do".to_owned(),
        [only] => format!("{}: {}", only.record.key, only.ending.outcome),
        _ if done == stories.len() => format!("{all} done"),
        _ => format!("{done} of {all} done"),
    }
}

/// One run, with its events sorted by node.
struct Story<'a> {
    record: &'a Record,
    ending: &'a Ending,
    began: Option<Timestamp>,
    /// Seconds from the first event to the last.
    lasted: u32,
    nodes: BTreeMap<&'a NodeName, Fate<'a>>,
    uses: Vec<Use>,
}

/// What happened on one node.
struct Fate<'a> {
    case: Case,
    /// From the delete of its pod to its next available pod, in seconds since the beginning.
    span: Option<(u32, u32)>,
    seconds: Option<i64>,
    wave: Option<u32>,
    reason: Option<&'a Reason>,
    pod_failure: Option<String>,
}

impl<'a> Story<'a> {
    fn of(record: &'a Record) -> Self {
        let Record { key: _, events, ending } = record;
        let began = events.first().map(|(at, _)| *at);
        let since = |at: Timestamp| {
            let seconds = began.map_or(0, |began| at.duration_since(began).as_secs());
            u32::try_from(seconds).unwrap_or_default()
        };
        let lasted = events.last().map_or(0, |(at, _)| since(*at));
        let mut story =
            Self { record, ending, began, lasted, nodes: BTreeMap::new(), uses: Vec::new() };
        let mut wave = None;
        for (at, report) in events {
            story.takes_in(since(*at), report, &mut wave);
        }
        story.ends();
        story
    }

    fn takes_in(&mut self, at: u32, report: &'a Report, current: &mut Option<u32>) {
        match report {
            Report::Deleting(Delete { pod: _, uid: _, node, reason, cost: _ }) => {
                let span = Some((at, self.lasted));
                let (wave, reason) = (*current, Some(reason));
                let fate = Fate {
                    case: Case::Underway,
                    span,
                    seconds: None,
                    wave,
                    reason,
                    pod_failure: None,
                };
                self.nodes.insert(node, fate);
            }
            Report::Recovered { node, seconds } => {
                if let Some(fate) = self.nodes.get_mut(node) {
                    fate.case = Case::Replaced;
                    fate.seconds = Some(*seconds);
                    fate.span = fate.span.map(|(from, _)| (from, at));
                }
            }
            Report::Failed { node, pod_failure } => self.failed(node, pod_failure),
            Report::Progress(Progress { unavailable, allowed, wave, .. }) => {
                *current = *wave;
                let (unavailable, allowed, wave) = (*unavailable, *allowed, *wave);
                self.uses.push(Use { at, unavailable, allowed, wave });
            }
            Report::Writing(_) | Report::Revision(_) | Report::LostReady { .. } => {}
        }
    }

    fn failed(&mut self, node: &'a NodeName, pod_failure: &PodFailure) {
        let fate = self.nodes.entry(node).or_insert(Fate::of(Case::Failed));
        fate.case = Case::Failed;
        fate.pod_failure = Some(pod_failure.to_string());
    }

    /// Adds the nodes that failed or were not finished, from the outcome of the run.
    fn ends(&mut self) {
        for (node, pod_failure) in failures(&self.ending.outcome).into_iter().flatten() {
            self.failed(node, pod_failure);
        }
        for (node, reasons) in &self.ending.left {
            let fate = self.nodes.entry(node).or_insert(Fate::of(Case::Left));
            // A node that was replaced and now needs attention for another reason.
            if fate.case == Case::Replaced {
                fate.case = Case::Left;
            }
            let coded: Vec<Coded<Reason>> = reasons.iter().cloned().map(Coded::from).collect();
            fate.pod_failure.get_or_insert_with(|| sentence(&coded));
        }
    }

    fn count(&self, case: Case) -> usize {
        self.nodes.values().filter(|fate| fate.case == case).count()
    }

    /// The use of the budget, and a bar for each node.
    fn pictures(&self) -> Html {
        let key = &self.record.key;
        let mut spans_of: Vec<Span> = self
            .nodes
            .values()
            .filter_map(|fate| {
                let (from, until) = fate.span?;
                Some(Span { from, until, failed: fate.case != Case::Replaced })
            })
            .collect();
        spans_of.sort_by_key(|span| (span.from, span.until));
        let figure = |title: &str, drawn: Html| {
            let caption = [code(key), Html::class("span", "aside", title)];
            Html::of("figure", [Html::of("figcaption", caption), drawn])
        };
        let used = (!self.uses.is_empty()).then(|| {
            let name = format!("{key}: nodes without an available pod over time, and the budget");
            figure("nodes without an available pod", usage(&name, &self.uses, self.lasted))
        });
        let bars = (!spans_of.is_empty()).then(|| {
            let name = format!("{key}: from the delete to the available pod, one bar per node");
            let title = format!(
                "one bar per node, from the delete to the available pod; {}",
                count(spans_of.len(), "node")
            );
            figure(&title, spans(&name, &spans_of, self.lasted))
        });
        used.into_iter().chain(bars).collect()
    }

    /// The events that the charts do not show.
    fn reported(&self) -> Html {
        let clock_of = |at: &Timestamp| {
            let seconds = self.began.map_or(0, |began| at.duration_since(began).as_secs());
            clock(u32::try_from(seconds).unwrap_or_default())
        };
        let events = self.record.events.iter().filter(|(_, report)| match report {
            Report::Writing(_)
            | Report::Revision(_)
            | Report::LostReady { .. }
            | Report::Failed { .. } => true,
            Report::Deleting(_) | Report::Recovered { .. } | Report::Progress(_) => false,
        });
        let items = events.map(|(at, report)| {
            [Html::class("span", "tag", clock_of(at)), Html::of("span", report.to_string())].into()
        });
        let ended = [
            Html::class("span", "tag", clock(self.lasted)),
            Html::of("span", self.ending.outcome.to_string()),
        ];
        let summary =
            [code(&self.record.key), Html::class("span", "aside", self.ending.outcome.to_string())];
        folded(summary.into(), list(items.chain([ended.into()])))
    }
}

impl Fate<'_> {
    fn of(case: Case) -> Self {
        Self { case, span: None, seconds: None, wave: None, reason: None, pod_failure: None }
    }
}

/// The failed nodes of an outcome, if it has any.
fn failures(outcome: &Outcome) -> Option<&BTreeMap<NodeName, PodFailure>> {
    match outcome {
        Outcome::Aborted { failed: _, to: _, rolled_back: Some(RolledBack::Failed(failed)) }
        | Outcome::Aborted { failed, to: _, rolled_back: None | Some(RolledBack::Stopped(_)) }
        | Outcome::Paused { why: PauseReason::Failed { failed, not_aborted: _ } } => Some(failed),
        Outcome::Aborted { failed: _, to: _, rolled_back: Some(RolledBack::Fully) }
        | Outcome::Done
        | Outcome::Paused { .. }
        | Outcome::Stale { .. }
        | Outcome::Gone { .. }
        | Outcome::Interrupted
        | Outcome::LockLost
        | Outcome::Failed { .. } => None,
    }
}

/// A row for each run, and its charts.
fn outcomes(stories: &[Story<'_>]) -> Html {
    let rows = stories.iter().map(|story| {
        let mut seconds: Vec<i64> =
            story.ending.replaced.iter().map(|replaced| replaced.seconds).collect();
        seconds.sort_unstable();
        let span = |seconds: Option<&i64>| {
            seconds.map_or(String::new(), |it| clock(u32::try_from(*it).unwrap_or_default()))
        };
        vec![
            code(&story.record.key),
            story.ending.outcome.to_string().into(),
            Html::text(story.ending.replaced.len()),
            Html::text(story.count(Case::Failed)),
            Html::text(story.ending.left.len()),
            span(seconds.get(seconds.len() / 2)).into(),
            span(seconds.last()).into(),
            clock(story.lasted).into(),
        ]
    });
    let heads =
        ["DaemonSet", "Outcome", "Replaced", "Failed", "Left", "Median", "Slowest", "Duration"];
    let all = table("Outcome of each DaemonSet", &heads, rows);
    let figures: Html = stories.iter().map(Story::pictures).collect();
    section("time", "Over time", [all, figures].into())
}

fn picture(stories: &[Story<'_>], options: &HtmlOptions<'_>) -> Picture {
    let named = stories.iter().flat_map(|story| story.nodes.keys()).copied();
    let heads = Heads { kind: "State", wave: "Wave", seconds: "Duration" };
    let mut gathering = Gathering::of(options.nodes, named, &CASES.map(kind), heads);
    for story in stories {
        let rows = story.nodes.iter().map(|(node, fate)| {
            let Fate { case, span: _, seconds, wave, reason, pod_failure } = fate;
            let kind = CASES.iter().position(|it| it == case).unwrap_or_default();
            let why = pod_failure.clone().or_else(|| reason.map(ToString::to_string));
            let (wave, seconds) = (*wave, *seconds);
            Row { node, kind, wave, seconds, why: why.unwrap_or_default() }
        });
        gathering.add(&story.record.key, rows);
    }
    gathering.whole()
}
