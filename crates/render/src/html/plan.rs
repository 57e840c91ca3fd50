//! A plan as a page: what happens to each DaemonSet and when, and the action and reason of each
//! node.

use jiff::SignedDuration;

use super::charts::spell;
use super::markup::Html;
use super::page::{HtmlOptions, Page};
use super::parts::{
    Tile, code, compared, diff, folded, guards, list, quiet, section, table, tiles, warnings,
};
use super::picture::{Heads, Marker, Picture, Row, RowsOf, Shape, Tone};
use super::timeline::{LEGEND, timeline};
use crate::error::Error;
use crate::view::{
    Action, BY_RISK, BaseChange, Change, DaemonSetView, NodeRow, PlanView, StepView, WaveView,
    asked_words, done, effect, happens,
};
use daemonset::model::short_commit;
use planner::plan::{DaemonSetForecast, NewPods, Plan};
use planner::words::{count, grouped};

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
    let actions = BY_RISK.into_iter().filter(|action| *action != Action::Keep);
    let glance = tiles(actions.map(|it| Tile::of(kind(it), plan.actions.of(it))));
    let unit = "Nodes, counted once for each DaemonSet. Colours are those of the map.";
    let glance =
        [glance, Html::class("p", "note", unit), guards(&plan.guards), warnings(&plan.warnings)];
    Page {
        kind: "plan",
        headline: headline(&plan),
        about: compared(&plan.origin).chain(plan.forecast.clone()).collect(),
        glance: glance.into(),
        fleet: "Fleet".to_owned(),
        before: [each(&plan, options.verbose), course(&plan)].into(),
        after: Html::default(),
        picture: picture(&plan.daemon_sets, options),
        footer: format!("Plan {}.", plan.made()),
    }
    .write()
}

/// The effect of applying the plan.
fn headline(plan: &PlanView<'_>) -> String {
    let cluster = plan.origin.cluster_name();
    let what = plan.origin.commit.map_or("this".to_owned(), short_commit);
    match plan.changing().as_slice() {
        [] => format!("{cluster}: applying {what} changes nothing"),
        some => format!("{cluster}: applying {what} {}", effect(some)),
    }
}

/// The expected course of the apply.
fn course(plan: &PlanView<'_>) -> Html {
    section("course", "Expected course", [timelines(plan), durations(plan)].into())
}

/// The course of each rollout that a policy makes wait.
fn timelines(plan: &PlanView<'_>) -> Html {
    let drawn = plan.daemon_sets.iter().filter_map(|it| Some((&it.key, it.timeline.as_ref()?)));
    let drawn: Html = drawn.map(|(key, view)| timeline(key, view)).collect();
    if drawn.is_empty() {
        return drawn;
    }
    [Html::class("p", "note", LEGEND), drawn].into()
}

/// A bar for each DaemonSet that no policy makes wait, divided into its waves. Nothing for a single
/// wave, whose duration is in the head of the page.
fn durations(plan: &PlanView<'_>) -> Html {
    let course: Vec<&DaemonSetForecast> =
        plan.course.iter().filter(|it| it.timeline.is_empty()).collect();
    let waves: usize = course.iter().map(|it| it.waves.len().max(1)).sum();
    let end: u64 = course.iter().map(|it| it.seconds).sum();
    if waves < 2 {
        return Html::default();
    }
    // Rounded at the ends, so that the durations add up.
    let precision = if end < 7200 { 10 } else { 60 };
    let rounded = |seconds: u64| seconds.next_multiple_of(precision);
    let mut begun = 0;
    let rows = course.iter().map(|it| {
        let DaemonSetForecast { daemon_set, seconds, waves, .. } = it;
        let from = begun;
        begun += seconds;
        let several = if waves.len() > 1 {
            format!(", {}", count(waves.len(), "wave"))
        } else {
            String::new()
        };
        let (start, stop) = (rounded(from), rounded(begun));
        let when = format!("{}, from {} to {}{several}", span(stop - start), at(start), at(stop));
        Html::of("li", [code(daemon_set), Html::class("span", "aside", when), spell(it, from, end)])
    });
    let rows = Html::class("ol", "course", rows.collect::<Html>());
    let others = if course.len() < plan.course.len() { "The others: one" } else { "One" };
    let note = format!(
        "{others} DaemonSet after another, without failures. Gaps in a bar separate waves."
    );
    [Html::class("p", "note", note), rows].into()
}

/// A time since the start.
fn at(seconds: u64) -> String {
    if seconds == 0 { "the start".to_owned() } else { span(seconds) }
}

/// `6m 10s`.
fn span(seconds: u64) -> String {
    format!("{:#}", SignedDuration::from_secs(i64::try_from(seconds).unwrap_or(i64::MAX)))
}

/// What happens to each DaemonSet, the riskiest first; those without changes in one line.
fn each(plan: &PlanView<'_>, verbose: bool) -> Html {
    let (shown, others) = plan.by_risk();
    let entries: Html = shown.into_iter().map(|it| entry(it, verbose)).collect();
    let keys = others.into_iter().map(|it| it.key.clone()).collect();
    section("sets", "DaemonSets", [entries, quiet("Nothing to do for", keys, verbose)].into())
}

fn entry(daemon_set: &DaemonSetView<'_>, verbose: bool) -> Html {
    let body = [
        steps(daemon_set),
        list(facts(daemon_set)),
        new_pods(daemon_set),
        daemon_set.base.map(|it| asked(it, verbose)).unwrap_or_default(),
        under("Fields that change in the cluster", diff(daemon_set.fields.iter(), verbose)),
    ];
    let chips = happens(&daemon_set.totals).map(|(action, nodes)| {
        let Marker { words, tone, .. } = kind(action);
        let class = format!("chip {}", tone.class());
        Html::with("span", &[("class", &class)], format!("{} {words}", grouped(nodes)))
    });
    let rest = format!("{}; {}", daemon_set.title(), daemon_set.revision);
    let rest = Html::class("span", "aside", rest);
    let summary = [code(&daemon_set.key)].into_iter().chain(chips).chain([rest]);
    folded(summary.collect(), body.into())
}

/// What is waited for, the earliest end, and the steps as a table.
fn steps(daemon_set: &DaemonSetView<'_>) -> Html {
    let lines = daemon_set.waits_for.iter().chain(&daemon_set.earliest_end);
    let lines = list(lines.map(|line| Html::from(line.clone())));
    if daemon_set.steps.is_empty() {
        return lines;
    }
    let rows = daemon_set.steps.iter().map(|step| {
        let StepView { title, nodes, whereabouts, limits, .. } = step;
        let cells = [title.clone(), grouped(*nodes), whereabouts.clone(), limits.clone()];
        cells.into_iter().chain([step.takes_and_state()]).map(Html::from).collect()
    });
    let caption = format!("Steps of {}", daemon_set.key);
    let heads = ["Step", "Nodes", "Which", "Pace", "Takes"];
    [lines, table(&caption, &heads, rows)].into()
}

fn facts(daemon_set: &DaemonSetView<'_>) -> impl Iterator<Item = Html> {
    let facts = [
        Some(daemon_set.strategy.clone()),
        daemon_set.managed_by.map(str::to_owned),
        daemon_set.pause.clone(),
        daemon_set.policy.map(|name| format!("policy {name}")),
        daemon_set.after.as_ref().map(|keys| format!("after {keys}")),
        daemon_set.shared_budget.as_ref().map(|(words, keys)| format!("{words} {keys}")),
        daemon_set.pre_pull.as_ref().map(|words| format!("pre-pull: {words}")),
        daemon_set.counters.clone(),
    ];
    // Steps have a table.
    let waves = daemon_set.waves.iter().filter(|_| daemon_set.steps.is_empty()).map(wave_words);
    let owned = daemon_set.owned.iter().map(|it| it.sentence());
    let checks = daemon_set.checks.iter().cloned();
    facts.into_iter().flatten().chain(checks).chain(waves).chain(owned).map(Html::from)
}

fn wave_words(wave: &WaveView<'_>) -> String {
    let WaveView { name, nodes, pace, rounds_words, .. } = wave;
    let title = name.map(|(index, name)| format!("wave {index} ({name}): ")).unwrap_or_default();
    let rounds = rounds_words.as_ref().map(|words| format!(", {words}")).unwrap_or_default();
    format!("{title}{}{rounds}{pace}", count(*nodes, "node"))
}

/// The images of a new DaemonSet, and what its pods may do beyond other pods.
fn new_pods(daemon_set: &DaemonSetView<'_>) -> Html {
    let Some(NewPods { images, access }) = daemon_set.new_pods else { return Html::default() };
    let images = images.iter().map(|image| [Html::text("image "), code(image)].into());
    let access = access.iter().map(|access| Html::from(access.to_string()));
    under("New pods", list(images.chain(access)))
}

/// The changes of the pull request itself.
fn asked(base: &BaseChange, verbose: bool) -> Html {
    let BaseChange { change, changes } = base;
    match change {
        Change::None => Html::of("p", format!("By this pull request: {}.", asked_words(base))),
        Change::Create | Change::Recreate | Change::Update | Change::Delete => {
            under("By this pull request", diff(changes.iter(), verbose))
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
        let key = daemon_set.domain_key;
        RowsOf { set: daemon_set.key.as_str(), key, rows: rows.collect() }
    });
    let heads = Heads { kind: "Action", ..Heads::default() };
    Picture::of(options.nodes, (&BY_RISK, kind), heads, &sets.collect::<Vec<_>>())
}
