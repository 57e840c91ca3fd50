//! What is shown of a plan, and in which words, for text, Markdown and HTML.

use jiff::Timestamp;
use rayon::prelude::*;

use super::daemon_set::DaemonSetView;
use super::duration::roughly;
use super::notice::Notice;
use super::origin::Origin;
use super::steps::Times;
use planner::plan::{
    ActionTotals, DaemonSetForecast, DaemonSetPlan, Forecast, Plan, RevisionTotals, Totals,
};
use planner::words::count;

/// A plan.
#[derive(Debug)]
pub(crate) struct PlanView<'a> {
    /// Whether it is of a rehearsal.
    pub rehearsal: bool,
    pub origin: Origin<'a>,
    /// In the order of the plan.
    pub daemon_sets: Vec<DaemonSetView<'a>>,
    /// Number of nodes with each action.
    pub actions: ActionTotals,
    /// The line that begins with `Plan:`.
    pub totals: String,
    /// `About 41m (…).`
    pub forecast: Option<String>,
    /// The parts of the forecast, in the order in which the DaemonSets are applied.
    pub course: &'a [DaemonSetForecast],
    pub guards: Vec<Notice<'a>>,
    pub warnings: Vec<Notice<'a>>,
    pub digest: &'a str,
    pub tool_version: &'a str,
    pub created_at: Timestamp,
}

impl<'a> PlanView<'a> {
    pub(crate) fn of(plan: &'a Plan) -> Self {
        let Plan {
            api_version: _,
            kind: _,
            created_at,
            rehearsal,
            tool_version,
            digest,
            source,
            cluster,
            daemon_sets,
            totals,
            forecast,
            guards,
            warnings,
        } = plan;
        let zones = &cluster.zones;
        let course = forecast.as_ref().map_or(&[][..], |it| &it.daemon_sets);
        let of_one = |plan: &'a DaemonSetPlan| {
            let key = plan.key().to_string();
            let course = course.iter().find(|it| it.daemon_set == key);
            DaemonSetView::of(plan, zones, course, cluster.observed_at)
        };
        Self {
            rehearsal: *rehearsal,
            origin: Origin::of(source, cluster, daemon_sets.len()),
            daemon_sets: daemon_sets.par_iter().map(of_one).collect(),
            actions: totals.actions,
            totals: format!("{}{}", totals_words(totals), pauses_words(daemon_sets)),
            forecast: forecast.as_ref().map(|it| forecast_words(it, cluster.observed_at)),
            course,
            guards: Notice::of_guards(guards, zones),
            warnings: Notice::of_warnings(warnings, zones),
            digest,
            tool_version,
            created_at: *created_at,
        }
    }

    /// The DaemonSets that change, or whose pods do.
    pub(crate) fn changing(&self) -> Vec<&DaemonSetView<'a>> {
        self.daemon_sets.iter().filter(|it| it.changes).collect()
    }

    /// The DaemonSets with something to show, and the others. Those with steps come first: their
    /// rollouts take the longest.
    pub(crate) fn shown(&self) -> (Vec<&DaemonSetView<'a>>, Vec<&DaemonSetView<'a>>) {
        let (mut shown, quiet): (Vec<_>, Vec<_>) =
            self.daemon_sets.iter().partition(|it| it.changes || !it.nodes.is_empty());
        shown.sort_by_key(|it| it.steps.is_empty());
        (shown, quiet)
    }

    /// As [`Self::shown`], those with something to show by risk.
    pub(crate) fn by_risk(&self) -> (Vec<&DaemonSetView<'a>>, Vec<&DaemonSetView<'a>>) {
        let (mut shown, quiet) = self.shown();
        // Of the same risk, those with steps stay first.
        shown.sort_by_key(|it| it.risk);
        (shown, quiet)
    }

    /// The digest, the program and the time of the plan.
    pub(crate) fn made(&self) -> String {
        let Self { digest, tool_version, created_at, .. } = self;
        format!("{digest}, made by ds-plan {tool_version} at {created_at}")
    }
}

/// The form of this line is for scripts too.
fn totals_words(totals: &Totals) -> String {
    let Totals { actions, deleted_pods, revisions } = totals;
    let ActionTotals { create, delete, replace, surge, wait, keep: _ } = actions;
    let RevisionTotals { new, reused, unchanged: _ } = revisions;
    // Surplus and ended pods are deleted besides those that the actions name.
    let pods = (*deleted_pods > delete + replace + surge)
        .then(|| format!(" ({} deleted)", count(*deleted_pods, "pod")));
    let pods = pods.unwrap_or_default();
    format!(
        "Plan: {create} to create, {delete} to delete, {replace} to replace, {surge} to surge, \
         {wait} waiting{pods}. Revisions: {new} new, {reused} reused."
    )
}

/// ` Pauses: 1 to end.`; empty without a rollout of which only the pause is left.
fn pauses_words(daemon_sets: &[DaemonSetPlan]) -> String {
    match daemon_sets.iter().filter(|it| it.only_ends_pause()).count() {
        0 => String::new(),
        pauses => format!(" Pauses: {pauses} to end."),
    }
}

/// `About 41m (from 1236 pod starts seen in this cluster).`
fn forecast_words(forecast: &Forecast, now: Timestamp) -> String {
    let Forecast { seconds, starts_seen, default_start_seconds, earliest_end, daemon_sets } =
        forecast;
    let seen = (*starts_seen > 0)
        .then(|| format!("from {} seen in this cluster", count(*starts_seen, "pod start")));
    let assumed = default_start_seconds.map(|start| match seen {
        None => format!("assuming that pods start in {start}s"),
        Some(_) => format!("assuming {start}s for the others"),
    });
    let why: Vec<String> = seen.into_iter().chain(assumed).collect();
    let about = match seconds {
        0 => "Nothing to do but to wait".to_owned(),
        seconds => format!("About {} ({})", roughly(*seconds), why.join("; ")),
    };
    let end = earliest_end.map(|end| {
        let zones = daemon_sets.iter().map(|one| one.time_zone.as_ref());
        format!(", earliest end {}", Times::of_zones(zones, now).moment(end))
    });
    format!("{about}{}.", end.unwrap_or_default())
}
