//! The steps of a rollout, its waits, and its earliest end.

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use super::duration::roughly;
use super::nodes::{NodeGroup, Whereabouts, groups, runs_current, whereabouts, zones_of};
use crate::neutral;
use daemonset::model::{Soak, TimeZoneName};
use planner::plan::{
    Approved, DaemonSetForecast, DaemonSetPlan, StepForecast, StepPlan, StepState, Wave, Zones,
};
use planner::steps::{WaitKind, WaitsFor};
use planner::words::count;

/// Maximum number of domains whose names are shown.
const MOST_DOMAINS: usize = 4;

/// Within this time, a weekday has only one meaning.
const NEAR: SignedDuration = SignedDuration::from_hours(6 * 24);

/// One step of a rollout.
#[derive(Clone, Debug)]
pub(crate) struct StepView<'a> {
    /// `step 1 canary`, or `all nodes` without steps.
    pub title: String,
    /// Number of nodes that it adds to those of the earlier steps.
    pub nodes: u32,
    /// Its nodes that are still to be updated: their names, their domains, or their zones.
    pub whereabouts: String,
    /// `2 at a time, 1 domain at once`; empty if nothing is left to update.
    pub limits: String,
    /// `about 1h 10m, soak 3 x 15m`; empty for a step that is done.
    pub takes: String,
    /// `done`, `soaking until Wed 04:40 UTC`, `1 of 3 updated`, and its approval.
    pub state: String,
    /// The indices of its waves.
    pub waves: Vec<u32>,
    /// Its nodes by action and reason.
    pub groups: Vec<NodeGroup<'a>>,
    /// Whether all of them have one reason: they run the current revision.
    pub is_plain: bool,
}

impl<'a> StepView<'a> {
    /// The steps of a plan; if its policy has only domains, one for all nodes.
    pub(super) fn all(
        plan: &'a DaemonSetPlan,
        course: Option<&DaemonSetForecast>,
        times: &Times,
        zones: &Zones,
    ) -> Vec<Self> {
        let parts = course.map_or(&[][..], |course| &course.steps);
        let mut before: Option<&StepPlan> = None;
        let step = |(number, step): (usize, &'a StepPlan)| {
            let waves = plan.waves.iter().filter(|wave| wave.step.as_ref() == Some(&step.name));
            let waves: Vec<&Wave> = waves.collect();
            let part = parts.iter().find(|part| part.name == step.name);
            let until = plan.waits_for.iter().find(|wait| wait.step == step.name);
            let until = until.filter(|it| it.kind == WaitKind::Soak).and_then(|it| it.until);
            let before = before.replace(step);
            let added = |of: fn(&StepPlan) -> u32| of(step).saturating_sub(before.map_or(0, of));
            let (nodes, updated) = (added(|it| it.nodes), added(|it| it.updated));
            Self {
                title: format!("step {number} {}", neutral::line(&step.name)),
                nodes,
                takes: takes(
                    step.state,
                    part,
                    step.soak_seconds,
                    &waves,
                    number == plan.steps.len(),
                ),
                state: state_words(step, (nodes, updated), until, times),
                ..Self::of_waves(plan, &waves, zones)
            }
        };
        if !plan.steps.is_empty() {
            let mut steps: Vec<Self> = (1..).zip(&plan.steps).map(step).collect();
            // The implied last step may have no nodes of its own.
            if steps.len() > 1 {
                steps.pop_if(|last| last.nodes == 0 && last.waves.is_empty());
            }
            return steps;
        }
        let waves: Vec<&Wave> = plan.waves.iter().filter(|it| it.domain.is_some()).collect();
        if waves.is_empty() {
            return Vec::new();
        }
        let whole = course.map(|course| StepForecast {
            name: String::new(),
            seconds: course.seconds,
            soak_seconds: course.soak_seconds,
            begins: times.now,
            ends: times.now,
        });
        let takes = takes(StepState::InProgress, whole.as_ref(), 0, &waves, true);
        vec![Self { takes, ..Self::of_waves(plan, &waves, zones) }]
    }

    /// What its waves tell.
    fn of_waves(plan: &'a DaemonSetPlan, waves: &[&Wave], zones: &Zones) -> Self {
        let indices: Vec<u32> = waves.iter().map(|wave| wave.index).collect();
        let planned =
            plan.nodes.iter().filter(|it| it.wave.is_some_and(|at| indices.contains(&at)));
        let planned = planned.map(|it| (it.action, it.name.as_ref(), it.reasons.as_slice()));
        let groups = groups(planned, zones);
        let nodes: Vec<&str> =
            waves.iter().flat_map(|wave| &wave.nodes).map(AsRef::as_ref).collect();
        Self {
            title: "all nodes".to_owned(),
            nodes: u32::try_from(nodes.len()).unwrap_or(u32::MAX),
            whereabouts: where_words(waves, &nodes, zones),
            limits: limits(waves, nodes.len()),
            takes: String::new(),
            state: String::new(),
            waves: indices,
            is_plain: runs_current(&groups, &plan.revision),
            groups,
        }
    }

    /// What it takes, and how far it is, separated by `; `.
    pub(crate) fn takes_and_state(&self) -> String {
        let Self { takes, state, .. } = self;
        match (takes.is_empty(), state.is_empty()) {
            (false, false) => format!("{takes}; {state}"),
            (true, _) | (_, true) => format!("{takes}{state}"),
        }
    }
}

/// `a-04, b-11, c-02`, `domains a, b, c`, or `in 3 zones`.
fn where_words(waves: &[&Wave], nodes: &[&str], zones: &Zones) -> String {
    let domains: Vec<&str> = waves.iter().filter_map(|wave| wave.domain.as_deref()).collect();
    let of_domains = || match domains.len() {
        0 => None,
        1..=MOST_DOMAINS => {
            let names = domains.iter().map(|name| match *name {
                "" => "(none)".into(),
                name => neutral::line(name),
            });
            let word = if domains.len() == 1 { "domain" } else { "domains" };
            Some(format!("{word} {}", names.collect::<Vec<_>>().join(", ")))
        }
        several => Some(count(several, "domain")),
    };
    let line = |names: String| neutral::line(&names).into_owned();
    match whereabouts(nodes, zones_of(nodes, zones)) {
        Whereabouts::Each(names) => line(names),
        Whereabouts::Ranges(names) => of_domains().unwrap_or_else(|| line(names)),
        Whereabouts::Zones(zones) => of_domains().unwrap_or(zones),
        Whereabouts::Unclear => of_domains().unwrap_or_default(),
    }
}

/// `2 at a time, 1 domain at once`.
fn limits(waves: &[&Wave], nodes: usize) -> String {
    let Some(total) = waves.iter().map(|wave| wave.max_unavailable.max(wave.max_surge)).max()
    else {
        return String::new();
    };
    if nodes < 2 {
        return String::new();
    }
    let at_once = waves.iter().find_map(|wave| wave.domains_at_once);
    let together = usize::try_from(at_once.unwrap_or(1)).unwrap_or(usize::MAX);
    let mut of_domains: Vec<u32> = waves
        .iter()
        .map(|wave| wave.at_a_time().min(u32::try_from(wave.nodes.len()).unwrap_or(u32::MAX)))
        .collect();
    of_domains.sort_unstable_by(|a, b| b.cmp(a));
    let sum = of_domains.into_iter().take(together).fold(0, u32::saturating_add);
    let at_a_time = format!("{} at a time", sum.min(total).max(1));
    match at_once {
        Some(at_once) if waves.len() > 1 => {
            let at_once = usize::try_from(at_once).unwrap_or(usize::MAX);
            format!("{at_a_time}, {} at once", count(at_once, "domain"))
        }
        Some(_) | None => at_a_time,
    }
}

/// `about 1h 10m, soak 3 x 15m`.
fn takes(
    state: StepState,
    part: Option<&StepForecast>,
    soak: u32,
    waves: &[&Wave],
    is_last: bool,
) -> String {
    match state {
        StepState::Done | StepState::Soaking => return String::new(),
        StepState::InProgress | StepState::Pending => {}
    }
    let about = part.filter(|part| part.seconds > 0);
    let about = about.map(|part| format!("about {}", roughly(part.seconds)));
    let of_step = (soak > 0).then(|| Soak(soak).to_string());
    // After its last domain, the soak of the step counts, and only the last step has none.
    let counted = if is_last { waves.len() } else { waves.len().saturating_sub(1) };
    let soaking = waves.iter().take(counted).filter(|wave| wave.soak_seconds > 0);
    let times = soaking.clone().count();
    let of_domains = soaking.clone().next().map(|wave| match times {
        1 => Soak(wave.soak_seconds).to_string(),
        times => format!("{times} x {}", Soak(wave.soak_seconds)),
    });
    let soaks: Vec<String> = of_domains.into_iter().chain(of_step).collect();
    let soaks = (!soaks.is_empty()).then(|| format!("soak {}", soaks.join(" and ")));
    about.into_iter().chain(soaks).collect::<Vec<_>>().join(", ")
}

/// How far a step is, and its approval; empty for one that has not begun and needs none.
fn state_words(
    step: &StepPlan,
    (nodes, updated): (u32, u32),
    until: Option<Timestamp>,
    times: &Times,
) -> String {
    let state = match step.state {
        StepState::Done => Some("done".to_owned()),
        StepState::Soaking => Some(match until {
            Some(until) => format!("soaking until {}", times.moment(until)),
            None => "soaking".to_owned(),
        }),
        StepState::InProgress | StepState::Pending => {
            (updated > 0).then(|| format!("{updated} of {nodes} updated"))
        }
    };
    let approval = match (&step.approved, step.approve, step.state) {
        (Some(Approved { by, at }), ..) => {
            Some(format!("approved by {} at {}", neutral::line(by), times.moment(*at)))
        }
        (None, true, StepState::InProgress | StepState::Pending) => {
            Some("needs approval".to_owned())
        }
        (None, true, StepState::Soaking | StepState::Done) | (None, false, _) => None,
    };
    state.into_iter().chain(approval).collect::<Vec<_>>().join(", ")
}

/// `step canary soaks until Wed 04:40 UTC: run ds-apply again then`.
pub(super) fn wait_words(wait: &WaitsFor, plan: &DaemonSetPlan, times: &Times) -> String {
    let WaitsFor { kind, daemon_set, step, domain, until, check } = wait;
    let whose = match domain.as_deref() {
        None if plan.steps.is_empty() => String::new(),
        None => format!("step {} ", neutral::line(step)),
        Some("") => "nodes without a domain: ".to_owned(),
        Some(domain) => format!("domain {} ", neutral::line(domain)),
    };
    let at = until.map(|until| times.moment(until));
    match (kind, at) {
        (WaitKind::Approval, _) => {
            let (key, step) = (plan.key(), neutral::line(step));
            format!("{whose}is not approved: ds-apply approve {key} {step}")
        }
        (WaitKind::Soak, Some(at)) => format!("{whose}soaks until {at}: run ds-apply again then"),
        (WaitKind::Soak, None) => format!("{whose}soaks: run ds-apply again later"),
        (WaitKind::Window, Some(at)) => {
            format!("{whose}waits for the window that opens {at}: run ds-apply again then")
        }
        (WaitKind::Window, None) => {
            format!("{whose}waits for a window, and none opens within 400 days: change the policy")
        }
        (WaitKind::ReadyNode, _) => {
            format!("{whose}has no Ready node: run ds-apply again when one is Ready")
        }
        (WaitKind::Order, _) => {
            let first = neutral::line(daemon_set.as_deref().unwrap_or("another DaemonSet"));
            format!("comes after {first}: run ds-apply again when that is done")
        }
        // A plan does not decide it; a run that waits for it says so.
        (WaitKind::SharedBudget, _) => {
            format!("{whose}waits for nodes of the shared budget: run ds-apply again later")
        }
        // Only a run asks checks.
        (WaitKind::Precondition | WaitKind::Gate | WaitKind::Unknown, at) => {
            let finding = check.as_ref().map(|finding| {
                let said = finding.to_string();
                format!(" ({}, since {})", neutral::line(&said), times.moment(finding.since))
            });
            let what = match kind {
                WaitKind::Precondition => "waits for a precondition",
                WaitKind::Unknown => "waits for a check that is unknown",
                WaitKind::Gate
                | WaitKind::Soak
                | WaitKind::Approval
                | WaitKind::Window
                | WaitKind::ReadyNode
                | WaitKind::Order
                | WaitKind::SharedBudget => "waits for its gates",
            };
            let until = at.map(|at| format!(" until {at}")).unwrap_or_default();
            format!("{whose}{what}{until}{}: run ds-apply again later", finding.unwrap_or_default())
        }
    }
}

/// `Earliest end Wed 04:40 CEST: work 1h 12m, soak 1h 15m, window opens Tue 02:00.` If a step needs an
/// approval, whose time is unknown, that is said, too.
pub(super) fn earliest_end(
    plan: &DaemonSetPlan,
    course: &DaemonSetForecast,
    times: &Times,
) -> Option<String> {
    let DaemonSetForecast { seconds, soak_seconds, window_opens, earliest_end, .. } = course;
    let end = times.moment((*earliest_end)?);
    let part =
        |word: &str, seconds: u64| (seconds > 0).then(|| format!("{word} {}", roughly(seconds)));
    let opens = window_opens.map(|opens| format!("window opens {}", times.clock(opens)));
    let is_unapproved =
        |step: &StepPlan| step.approve && step.approved.is_none() && step.updated < step.nodes;
    let approval = plan.steps.iter().any(is_unapproved).then(|| "approved at once".to_owned());
    let parts = [part("work", *seconds), part("soak", *soak_seconds), opens, approval];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    Some(format!("Earliest end {end}: {}.", parts.join(", ")))
}

/// How times are shown: in the zone of the windows, or UTC.
#[derive(Clone, Debug)]
pub(crate) struct Times {
    zone: TimeZone,
    now: Timestamp,
}

impl Times {
    /// For one DaemonSet.
    pub(super) fn of(course: Option<&DaemonSetForecast>, now: Timestamp) -> Self {
        Self::of_zones(course.map(|course| course.time_zone.as_ref()), now)
    }

    /// In their zone, if it is the same in all.
    pub(super) fn of_zones<'a>(
        zones: impl IntoIterator<Item = Option<&'a TimeZoneName>>,
        now: Timestamp,
    ) -> Self {
        let mut zones = zones.into_iter();
        let first = zones.next().flatten();
        let same = first.filter(|first| zones.all(|zone| zone == Some(first)));
        Self { zone: same.map_or(TimeZone::UTC, |zone| zone.zone().clone()), now }
    }

    /// `Wed 04:40 CEST`; with the date if it is not near.
    pub(crate) fn moment(&self, at: Timestamp) -> String {
        let zoned = at.to_zoned(self.zone.clone());
        format!("{} {}", self.clock(at), zoned.strftime("%Z"))
    }

    /// `Wed 04:40`.
    pub(crate) fn clock(&self, at: Timestamp) -> String {
        let is_near = at.duration_since(self.now).abs() < NEAR;
        let format = if is_near { "%a %H:%M" } else { "%a %Y-%m-%d %H:%M" };
        at.to_zoned(self.zone.clone()).strftime(format).to_string()
    }
}
