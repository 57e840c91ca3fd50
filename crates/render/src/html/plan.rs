//! A plan as a page: the action and reason of each node, the rounds, the fields that change.

use super::charts::rounds;
use super::markup::Html;
use super::page::{HtmlOptions, Page};
use super::parts::{code, compared, diff, folded, guards, list, section, table, tiles, warnings};
use super::picture::{Heads, Marker, Picture, Row, Shape, Tone};
use crate::error::Error;
use crate::view::{
    Action, BaseChange, Change, DaemonSetView, NodeRow, PlanView, WaveView, done, effect,
    node_words,
};
use daemonset::model::short_commit;
use planner::plan::Plan;
use planner::words::count;

/// Actions, most severe first: of a node with several, the map shows the first.
const ACTIONS: [Action; 6] =
    [Action::Delete, Action::Wait, Action::Create, Action::Surge, Action::Replace, Action::Keep];

fn kind(action: Action) -> Marker {
    let (shape, tone) = match action {
        Action::Create => (Shape::Plus, Tone::Green),
        Action::Delete => (Shape::Cross, Tone::Red),
        Action::Replace => (Shape::Square, Tone::Blue),
        Action::Surge => (Shape::Diamond, Tone::Sky),
        Action::Wait => (Shape::Frame, Tone::Amber),
        Action::Keep => (Shape::Dot, Tone::Grey),
    };
    Marker { words: done(action), symbol: action.symbol(), shape, tone }
}

/// The plan as one HTML page.
///
/// # Errors
/// Never in practice: the data are plain numbers and texts.
pub fn plan_html(plan: &Plan, options: &HtmlOptions<'_>) -> Result<String, Error> {
    let plan = PlanView::of(plan);
    let actions = ACTIONS.iter().filter(|action| **action != Action::Keep);
    let glance = actions.map(|it| (it.symbol(), u64::from(plan.actions.of(*it)), done(*it)));
    let glance = [tiles(glance), guards(&plan.guards), warnings(&plan.warnings)];
    Page {
        kind: "plan",
        headline: headline(&plan),
        about: compared(&plan.origin).chain(plan.forecast.clone()).collect(),
        glance: glance.into(),
        fleet: "Fleet".to_owned(),
        before: [each(&plan.daemon_sets, options.verbose), rounds_of(&plan.daemon_sets)].into(),
        after: Html::default(),
        picture: picture(&plan.daemon_sets, options),
        footer: format!("Plan {}.", plan.made()),
    }
    .write()
}

/// The effect of applying the plan.
fn headline(plan: &PlanView<'_>) -> String {
    let what = plan.origin.commit.map_or("this".to_owned(), short_commit);
    match plan.changing().as_slice() {
        [] => format!("Applying {what} changes nothing"),
        some => format!("Applying {what} {}", effect(some)),
    }
}

/// The rounds of each DaemonSet, wave by wave.
fn rounds_of(daemon_sets: &[DaemonSetView<'_>]) -> Html {
    let figures = daemon_sets.iter().filter(|it| !it.waves.is_empty()).map(|daemon_set| {
        let reported: Vec<String> = daemon_set.waves.iter().map(wave_words).collect();
        let waves: Vec<&[u32]> = daemon_set.waves.iter().map(|it| it.rounds.as_slice()).collect();
        let key = &daemon_set.key;
        let caption = [code(key), Html::class("span", "aside", reported.join("; "))];
        let name = format!("{key}: nodes being replaced, by round");
        Html::of("figure", [Html::of("figcaption", caption), rounds(&name, &waves)])
    });
    let figures: Html = figures.collect();
    if figures.is_empty() {
        return figures;
    }
    let note = "Each bar is one round: the nodes whose pods are replaced at the same time, as many \
    as the budget allows. A round takes as long as its new pods take to become available.";
    section("rounds", "Rounds", [Html::class("p", "note", note), figures].into())
}

fn wave_words(wave: &WaveView<'_>) -> String {
    let WaveView { name, nodes, pace, rounds_words, .. } = wave;
    let title = name.map(|(index, name)| format!("wave {index} ({name}): ")).unwrap_or_default();
    let rounds = rounds_words.as_ref().map(|words| format!(", {words}")).unwrap_or_default();
    format!("{title}{}{rounds}{pace}", count(*nodes, "node"))
}

/// A row for each DaemonSet, and the details of those that have some.
fn each(daemon_sets: &[DaemonSetView<'_>], verbose: bool) -> Html {
    let rows = daemon_sets.iter().map(|it| {
        let nodes = node_words(&it.totals);
        vec![
            code(&it.key),
            it.object().into(),
            it.revision.as_str().into(),
            if nodes.is_empty() { "none".into() } else { nodes.into() },
            it.strategy.as_str().into(),
        ]
    });
    let heads = ["DaemonSet", "Object", "Revision", "Nodes", "Pace"];
    let all = table("DaemonSets", &heads, rows);
    let details: Html = daemon_sets.iter().map(|it| details(it, verbose)).collect();
    section("sets", "DaemonSets", [all, details].into())
}

fn details(daemon_set: &DaemonSetView<'_>, verbose: bool) -> Html {
    let on_delete = "nodes wait until their pods are deleted manually";
    let facts = [
        daemon_set.managed_by.map(str::to_owned),
        daemon_set.pause.clone(),
        daemon_set.policy.map(|name| format!("policy {name}")),
        daemon_set.counters.clone(),
        daemon_set.on_delete.then(|| on_delete.to_owned()),
    ];
    let owned = daemon_set.owned.iter().map(|it| it.sentence());
    let facts = facts.into_iter().flatten().chain(owned);
    let body = [
        list(facts.map(Html::from)),
        daemon_set.base.map(|it| asked(it, verbose)).unwrap_or_default(),
        under("Fields that change in the cluster", diff(daemon_set.fields.iter(), verbose)),
    ];
    let reported = match daemon_set.change {
        Change::Create => "new".to_owned(),
        Change::Delete | Change::None => daemon_set.object().to_owned(),
        Change::Update | Change::Recreate => count(daemon_set.fields.len(), "field"),
    };
    let summary = [code(&daemon_set.key), Html::class("span", "aside", reported)];
    folded(summary.into(), body.into())
}

/// The changes of the pull request itself.
fn asked(base: &BaseChange, verbose: bool) -> Html {
    let BaseChange { change, changes } = base;
    match change {
        Change::None => {
            Html::of("p", "By this change itself: nothing; the differences are existing drift.")
        }
        Change::Create | Change::Recreate | Change::Update | Change::Delete => {
            under("By this change itself", diff(changes.iter(), verbose))
        }
    }
}

fn under(heading: &str, content: Html) -> Html {
    if content.is_empty() { content } else { [Html::of("h3", heading), content].into() }
}

fn picture(daemon_sets: &[DaemonSetView<'_>], options: &HtmlOptions<'_>) -> Picture {
    let sets = daemon_sets.iter().map(|daemon_set| {
        let rows = daemon_set.nodes.iter().map(|node| {
            let NodeRow { name, action, wave, .. } = *node;
            Row { node: name, state: action, wave, seconds: None, why: node.why() }
        });
        (daemon_set.key.as_str(), rows.collect())
    });
    let heads = Heads { kind: "Action", ..Heads::default() };
    Picture::of(options.nodes, (&ACTIONS, kind), heads, &sets.collect::<Vec<_>>())
}
