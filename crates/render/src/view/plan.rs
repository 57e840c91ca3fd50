//! A plan, ready to be laid out.

use jiff::{SignedDuration, Timestamp};

use super::daemon_set::DaemonSetView;
use super::origin::Origin;
use daemonset::model::NodeName;
use planner::plan::{
    ActionTotals, Forecast, Guard, GuardCode, Plan, RevisionTotals, Totals, Warning,
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
    pub guards: Vec<Notice<'a>>,
    pub warnings: Vec<Notice<'a>>,
    pub digest: &'a str,
    pub tool_version: &'a str,
    pub created_at: Timestamp,
}

/// A guard or a warning.
#[derive(Debug)]
pub(crate) struct Notice<'a> {
    /// Its kind: a few words for a guard, the code of a warning.
    pub kind: &'a str,
    /// `NAMESPACE/NAME`.
    pub daemon_set: Option<&'a str>,
    pub message: &'a str,
    pub nodes: Vec<&'a str>,
    /// The flag that allows what a guard blocks.
    pub allow_flag: Option<&'a str>,
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
        Self {
            rehearsal: *rehearsal,
            origin: Origin::of(source, cluster, daemon_sets.len()),
            daemon_sets: daemon_sets.iter().map(DaemonSetView::of).collect(),
            actions: totals.actions,
            totals: totals_words(totals),
            forecast: forecast.map(forecast_words),
            guards: guards.iter().map(Notice::of_guard).collect(),
            warnings: Notice::of_warnings(warnings),
            digest,
            tool_version,
            created_at: *created_at,
        }
    }

    /// The DaemonSets that change, or whose pods do.
    pub(crate) fn changing(&self) -> Vec<&DaemonSetView<'a>> {
        self.daemon_sets.iter().filter(|it| it.changes).collect()
    }

    /// The DaemonSets with something to show, and the others.
    pub(crate) fn shown(&self) -> (Vec<&DaemonSetView<'a>>, Vec<&DaemonSetView<'a>>) {
        self.daemon_sets.iter().partition(|it| it.changes || !it.nodes.is_empty())
    }

    /// The digest, the program and the time of the plan.
    pub(crate) fn made(&self) -> String {
        let Self { digest, tool_version, created_at, .. } = self;
        format!("{digest}, made by ds-plan {tool_version} at {created_at}")
    }
}

impl<'a> Notice<'a> {
    fn of_guard(guard: &'a Guard) -> Self {
        let Guard { code, message, allow_flag, daemon_set, nodes } = guard;
        let notice = Self::of(guard_words(*code), message, daemon_set.as_deref(), nodes);
        Self { allow_flag: allow_flag.as_deref(), ..notice }
    }

    pub(crate) fn of_warnings(warnings: &'a [Warning]) -> Vec<Self> {
        let notice = |Warning { code, message, daemon_set, nodes }: &'a Warning| {
            Self::of(code, message, daemon_set.as_deref(), nodes)
        };
        warnings.iter().map(notice).collect()
    }

    fn of(
        kind: &'a str,
        message: &'a str,
        daemon_set: Option<&'a str>,
        nodes: &'a [NodeName],
    ) -> Self {
        let nodes = nodes.iter().map(AsRef::as_ref).collect();
        Self { kind, daemon_set, message, nodes, allow_flag: None }
    }
}

fn guard_words(code: GuardCode) -> &'static str {
    match code {
        GuardCode::SelectorChange => "another selector",
        GuardCode::MassEviction => "evicts too many at once",
        GuardCode::ForceConflicts => "forces conflicts",
        GuardCode::GitOps => "applied by a GitOps controller",
        GuardCode::FailedTemplate => "failed before",
        GuardCode::Deadlock => "cannot finish",
        GuardCode::MassDeletion => "deletes more than half of the source",
        GuardCode::ManagedBy => "managed by another controller",
        GuardCode::OtherSource => "was applied from another source",
        GuardCode::PolicyChange => "loosens its policy",
    }
}

/// The form of this line is for scripts too.
fn totals_words(totals: &Totals) -> String {
    let Totals { actions, revisions } = totals;
    let ActionTotals { create, delete, replace, surge, wait, keep: _ } = actions;
    let RevisionTotals { new, reused, unchanged: _ } = revisions;
    format!(
        "Plan: {create} to create, {delete} to delete, {replace} to replace, {surge} to surge, \
         {wait} waiting. Revisions: {new} new, {reused} reused."
    )
}

/// `About 41m (from 1236 pod starts seen in this cluster).`
fn forecast_words(forecast: Forecast) -> String {
    let Forecast { seconds, starts_seen, default_start_seconds } = forecast;
    let seen = (starts_seen > 0)
        .then(|| format!("from {} seen in this cluster", count(starts_seen, "pod start")));
    let assumed = default_start_seconds.map(|start| match seen {
        None => format!("assuming that pods start in {start}s"),
        Some(_) => format!("assuming {start}s for the others"),
    });
    let why: Vec<String> = seen.into_iter().chain(assumed).collect();
    format!("About {} ({}).", roughly(seconds), why.join("; "))
}

/// A duration, rounded to its precision.
fn roughly(seconds: u64) -> String {
    let rounded = match seconds {
        0..=59 => seconds,
        60..=599 => seconds.next_multiple_of(10),
        600..=7199 => seconds.next_multiple_of(60),
        _ => seconds.next_multiple_of(600),
    };
    let span = SignedDuration::from_secs(i64::try_from(rounded).unwrap_or(i64::MAX));
    format!("{span:#}")
}
