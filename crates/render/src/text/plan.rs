//! A plan as text: the source and the cluster, then a block for each DaemonSet, then the totals.

use super::daemon_set;
use super::notices::{compared, guards, warnings};
use super::page::{ASIDE, Line, NAME, Page, TextOptions};
use std::collections::BTreeSet;

use crate::view::{Action, Change, DaemonSetView, PlanView, done, some_of};
use planner::plan::{DaemonSetPlan, Plan};
use planner::words::count;

/// The plan as text. The line that begins with `Plan:` keeps its form, for scripts.
pub fn plan_text(plan: &Plan, options: &TextOptions) -> String {
    let plan = PlanView::of(plan);
    let mut page = Page::default();
    let (shown, quiet) = plan.shown();
    let nothing_to_do = plan.changing().is_empty();
    let title = match (plan.rehearsal, nothing_to_do) {
        (false, true) => "Plan: nothing to do. ",
        (false, false) => "ds-plan  ",
        (true, true) => "REHEARSAL  Plan: nothing to do. ",
        (true, false) => "REHEARSAL  ds-plan  ",
    };
    page.push(compared(title, &plan.origin, *options));
    if options.verbose {
        page.push(Line::at(0).styled(ASIDE, format!("plan {}", plan.made())));
    }
    if let Some(legend) = legend(&shown) {
        page.push(Line::at(0).styled(ASIDE, legend));
    }
    for daemon_set in &shown {
        page.gap();
        daemon_set::block(&mut page, daemon_set, *options);
    }
    if !shown.is_empty() && !quiet.is_empty() {
        page.gap();
        page.push(Line::at(0).styled(ASIDE, quiet_words(&quiet, *options)));
    }
    page.gap();
    guards(&mut page, &plan.guards);
    warnings(&mut page, &plan.warnings);
    if !nothing_to_do {
        page.gap();
        page.push(Line::at(0).whole().styled(NAME, plan.totals));
        if let Some(forecast) = plan.forecast {
            page.push(Line::at(0).plain(forecast));
        }
    }
    page.write(*options)
}

/// The meaning of the symbols that occur, as terraform prints it.
fn legend(shown: &[&DaemonSetView<'_>]) -> Option<String> {
    let changed = shown.iter().any(|it| !it.fields.is_empty());
    let changed = changed.then(|| "~ changed".to_owned());
    let nodes = shown.iter().flat_map(|it| &it.nodes).map(|node| node.action);
    let mut actions: BTreeSet<Action> = nodes.filter(|action| *action != Action::Keep).collect();
    let objects = shown.iter().filter_map(|it| match it.change {
        Change::Create => Some(Action::Create),
        Change::Delete => Some(Action::Delete),
        Change::Update | Change::Recreate | Change::None => None,
    });
    actions.extend(objects);
    let words = actions.into_iter().map(|action| match action {
        Action::Surge => format!("{} surged (new pod before old)", action.symbol()),
        Action::Create | Action::Delete | Action::Replace | Action::Wait | Action::Keep => {
            format!("{} {}", action.symbol(), done(action))
        }
    });
    let words: Vec<String> = changed.into_iter().chain(words).collect();
    (!words.is_empty()).then(|| format!("Symbols: {}", words.join(", ")))
}

/// `NAMESPACE/NAME` of each DaemonSet that changes, one per line.
pub fn plan_name(plan: &Plan) -> String {
    let changing = plan.daemon_sets.iter().filter(|it| it.has_changes());
    Page::of_names(changing.map(DaemonSetPlan::key))
}

fn quiet_words(quiet: &[&DaemonSetView<'_>], options: TextOptions) -> String {
    let keys = quiet.iter().map(|it| it.key.clone()).collect();
    let others = count(quiet.len(), "other DaemonSet");
    format!("Nothing to do for {others}: {}", some_of(keys, options.verbose))
}
