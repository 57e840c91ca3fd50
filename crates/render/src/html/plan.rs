//! A plan as a page: the action and reason of each node, the waves, the fields that change.

use super::charts::rounds;
use super::markup::Html;
use super::picture::{Gathering, Heads, Kind, Picture, Row, Shape, Tone};
use super::words::{about, code, diff, folded, list, section, seen, table, tiles, warnings};
use super::{HtmlOptions, Page};
use crate::daemon_set_text::{counters_words, managed_words, revision_words, strategy_words};
use crate::markdown::{effect, node_words, object_words};
use crate::nodes::sentence;
use crate::pace::{pace, rounds as rounds_words, stays_up};
use crate::page::count;
use crate::plan_text::{changes, forecast_words, key, source_words};
use crate::{Error, TextOptions};
use daemonset::model::short_commit;
use planner::plan::{
    Action, BaseChange, Change, DaemonSetPlan, FieldOwner, Guard, NodePlan, Plan, Strategy, Wave,
};

/// Actions, most severe first: of a node with several, the map shows the first.
const ACTIONS: [Action; 6] =
    [Action::Delete, Action::Wait, Action::Create, Action::Surge, Action::Replace, Action::Keep];

fn kind(action: Action) -> Kind {
    let (words, shape, tone) = match action {
        Action::Create => ("created", Shape::Plus, Tone::Green),
        Action::Delete => ("deleted", Shape::Cross, Tone::Red),
        Action::Replace => ("replaced", Shape::Square, Tone::Blue),
        Action::Surge => ("surged", Shape::Diamond, Tone::Sky),
        Action::Wait => ("waiting", Shape::Frame, Tone::Amber),
        Action::Keep => ("nothing to do", Shape::Dot, Tone::Grey),
    };
    Kind { words, symbol: action.symbol(), shape, tone }
}

/// The plan as one HTML page.
///
/// # Errors
/// Never in practice: the data are plain numbers and texts.
pub fn plan_html(plan: &Plan, options: &HtmlOptions<'_>) -> Result<String, Error> {
    let Plan {
        api_version: _,
        kind: _,
        created_at,
        tool_version,
        digest,
        source,
        cluster,
        daemon_sets,
        totals,
        forecast,
        guards,
        warnings: warned,
    } = plan;
    let actions = ACTIONS.iter().filter(|action| **action != Action::Keep);
    let glance = actions.map(|action| {
        let Kind { words, symbol, .. } = kind(*action);
        (symbol, totals.actions.of(*action).into(), words)
    });
    let glance = [tiles(glance), refused(guards), warnings(warned)];
    let compared = format!("{}{}", count(daemon_sets.len(), "DaemonSet"), {
        source_words(source, TextOptions::default())
    });
    Page {
        kind: "plan",
        headline: headline(plan),
        about: [compared]
            .into_iter()
            .chain(seen(cluster))
            .chain(forecast.map(forecast_words))
            .collect(),
        glance: glance.into(),
        before: [each(daemon_sets, options.verbose), waves_of(daemon_sets)].into(),
        after: Html::default(),
        picture: picture(daemon_sets, options),
        footer: format!("Plan {digest}, made by ds-plan {tool_version} at {created_at}."),
    }
    .write()
}

/// The effect of applying the plan.
fn headline(plan: &Plan) -> String {
    let Plan { source, daemon_sets, .. } = plan;
    let what = source.commit.as_deref().map_or("this".to_owned(), short_commit);
    let changing: Vec<&DaemonSetPlan> = daemon_sets.iter().filter(|it| changes(it)).collect();
    match changing.as_slice() {
        [] => format!("Applying {what} changes nothing"),
        some => format!("Applying {what} {}", effect(some)),
    }
}

fn refused(guards: &[Guard]) -> Html {
    let items = guards.iter().map(|guard| {
        let Guard { code: _, message, allow_flag, daemon_set, nodes } = guard;
        let reported = about(daemon_set.as_deref(), message, nodes);
        let flag = allow_flag.as_ref().map(|flag| {
            Html::class("span", "aside", [Html::of("span", "to allow it, pass"), code(flag)])
        });
        [reported].into_iter().chain(flag).collect::<Html>()
    });
    if guards.is_empty() {
        return Html::default();
    }
    let heading = format!("Blocked by {}", count(guards.len(), "guard"));
    Html::class("aside", "callout refused", [Html::of("h2", heading), list(items)])
}

/// Each DaemonSet's waves, round by round.
fn waves_of(daemon_sets: &[DaemonSetPlan]) -> Html {
    let figures = daemon_sets.iter().filter(|it| !it.waves.is_empty()).map(|daemon_set| {
        let reported: Vec<String> = daemon_set.waves.iter().map(wave_words).collect();
        let waves: Vec<Vec<u32>> =
            daemon_set.waves.iter().map(|wave| wave.rounds().collect()).collect();
        let name = format!("{}: nodes being replaced, by round", key(daemon_set));
        let caption = Html::of(
            "figcaption",
            [code(key(daemon_set)), Html::class("span", "aside", reported.join("; "))],
        );
        Html::of("figure", [caption, rounds(&name, &waves)])
    });
    let figures: Html = figures.collect();
    if figures.is_empty() {
        return figures;
    }
    let note = "Each bar is one round: the nodes whose pods are replaced at the same time, as many \
    as the budget allows. A round takes as long as its new pods take to become available.";
    section("waves", "Waves", [Html::class("p", "note", note), figures].into())
}

fn wave_words(wave: &Wave) -> String {
    let Wave { index, name, nodes, .. } = wave;
    let rounds = rounds_words(wave).map(|words| format!(", {words}")).unwrap_or_default();
    let (pace, up) = (pace(wave), stays_up(wave));
    format!("wave {index} ({name}): {}{rounds}{pace}{up}", count(nodes.len(), "node"))
}

/// A row for each DaemonSet, and the details of those that have some.
fn each(daemon_sets: &[DaemonSetPlan], verbose: bool) -> Html {
    let rows = daemon_sets.iter().map(|it| {
        let nodes = node_words(&it.totals);
        vec![
            code(key(it)),
            object_words(it).into(),
            revision_words(&it.revision).into(),
            if nodes.is_empty() { "none".into() } else { nodes.into() },
            strategy_words(it.strategy).into(),
        ]
    });
    let heads = ["DaemonSet", "Object", "Revision", "Nodes", "Pace"];
    let all = table("DaemonSets", &heads, rows);
    let details: Html = daemon_sets.iter().map(|it| details(it, verbose)).collect();
    section("sets", "DaemonSets", [all, details].into())
}

fn details(daemon_set: &DaemonSetPlan, verbose: bool) -> Html {
    let DaemonSetPlan {
        namespace: _,
        name: _,
        uid: _,
        generation: _,
        change,
        cascade: _,
        managed_by,
        policy,
        strategy,
        pause,
        live_template: _,
        target_template: _,
        revision: _,
        changes,
        base,
        leftovers,
        conflicts,
        forced_conflicts: _,
        waves: _,
        nodes: _,
        totals: _,
        status,
    } = daemon_set;
    let mut facts: Vec<String> =
        managed_words(*managed_by).map(str::to_owned).into_iter().collect();
    facts.extend(pause.iter().map(ToString::to_string));
    facts.extend(policy.iter().map(|name| format!("policy {name}")));
    facts.extend(status.as_ref().map(counters_words));
    facts.extend(match strategy {
        Strategy::OnDelete => Some("nodes wait until their pods are deleted manually".to_owned()),
        Strategy::RollingUpdate { .. } => None,
    });
    let owned = |FieldOwner { path, manager }: &FieldOwner, words: &str| {
        format!("{path} {words} {}", manager.as_deref().unwrap_or("no manager"))
    };
    facts.extend(conflicts.iter().map(|it| owned(it, "conflicts with")));
    facts.extend(leftovers.iter().map(|it| owned(it, "kept; not in git; owned by")));
    let body = [
        list(facts.into_iter().map(Html::from)),
        base.as_ref().map(|it| asked(it, verbose)).unwrap_or_default(),
        under("Fields that change in the cluster", diff(changes.iter(), verbose)),
    ];
    let reported = match change {
        Change::Create => "new".to_owned(),
        Change::Delete | Change::None => object_words(daemon_set).to_owned(),
        Change::Update | Change::Recreate => count(changes.len(), "field"),
    };
    let summary = [code(key(daemon_set)), Html::class("span", "aside", reported)];
    folded(summary.into(), body.into())
}

/// The changes of the pull request itself.
fn asked(base: &BaseChange, verbose: bool) -> Html {
    let BaseChange { change, changes } = base;
    match change {
        Change::None => {
            Html::of("p", "By this change itself: nothing; the differences are existing drift.")
        }
        Change::Create | Change::Update | Change::Recreate | Change::Delete => {
            under("By this change itself", diff(changes.iter(), verbose))
        }
    }
}

fn under(heading: &str, content: Html) -> Html {
    if content.is_empty() { content } else { [Html::of("h3", heading), content].into() }
}

fn picture(daemon_sets: &[DaemonSetPlan], options: &HtmlOptions<'_>) -> Picture {
    let planned = daemon_sets.iter().flat_map(|it| &it.nodes).map(|node| &node.name);
    let heads = Heads { kind: "Action", wave: "Wave", seconds: "" };
    let mut gathering = Gathering::of(options.nodes, planned, &ACTIONS.map(kind), heads);
    for daemon_set in daemon_sets {
        let rows = daemon_set.nodes.iter().filter(|node| node.action != Action::Keep).map(|node| {
            let NodePlan { name, action, wave, pods: _, reasons } = node;
            let kind = ACTIONS.iter().position(|it| it == action).unwrap_or_default();
            Row { node: name, kind, wave: *wave, seconds: None, why: sentence(reasons) }
        });
        gathering.add(key(daemon_set), rows);
    }
    gathering.whole()
}
