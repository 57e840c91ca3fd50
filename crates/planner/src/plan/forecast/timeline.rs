//! The course of one rollout over time: its waves, the soaks after them, and the windows in which
//! nodes may begin.
//!
//! It goes round by round: the nodes that are updated together, of all domains that may be at once.
//! Runs come as soon as they can continue, and approvals are given at once. After a wait, another run
//! continues, and its ramp begins anew.

use std::collections::VecDeque;

use jiff::Timestamp;

use crate::plan::document::{
    DaemonSetPlan, ForecastSpan, SpanKind, StepForecast, StepPlan, StepState, Wave,
};
use crate::steps::WaitKind;
use crate::time::later;
use daemonset::model::{Calendar, Opening};

/// What the duration of a round is made of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace<'a> {
    /// Windows and exclusions.
    pub calendar: &'a Calendar,
    /// Seconds for which a window must stay open for a node to begin.
    pub fits: u64,
    /// Seconds from the start of a pod to Ready.
    pub start: u64,
    /// Seconds in which an old pod stops.
    pub stop: u64,
}

/// The course of a rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Timeline {
    /// Seconds in which nodes are updated.
    pub work: u64,
    /// The part of them before the first wait.
    pub first_run: u64,
    /// Seconds in which only soaks pass.
    pub soak: u64,
    /// Each step that is not done.
    pub steps: Vec<StepForecast>,
    /// All parts, in order of their beginnings.
    pub spans: Vec<ForecastSpan>,
    /// The first opening that is waited for.
    pub window_opens: Option<Timestamp>,
    /// The end; none if no window opens.
    pub end: Option<Timestamp>,
}

/// The course of a rollout that begins `from` then.
pub(super) fn timeline(plan: &DaemonSetPlan, pace: Pace<'_>, from: Timestamp) -> Timeline {
    let mut clock = Clock {
        pace,
        now: from,
        work: 0,
        soak: 0,
        first_run: None,
        updated_in_run: 0,
        opening: None,
        window_opens: None,
        step: None,
        spans: Vec::new(),
    };
    let mut steps = Vec::new();
    let went_through = clock.steps(plan, &mut steps);
    let Clock { now, work, soak, first_run, window_opens, mut spans, .. } = clock;
    let first_run = first_run.unwrap_or(work);
    spans.sort_by_key(|span| span.from);
    Timeline { work, first_run, soak, steps, spans, window_opens, end: went_through.map(|()| now) }
}

/// The state at a moment of the rollout.
struct Clock<'a> {
    pace: Pace<'a>,
    now: Timestamp,
    work: u64,
    soak: u64,
    first_run: Option<u64>,
    /// Nodes that the current run has updated.
    updated_in_run: usize,
    /// The opening in which the clock is.
    opening: Option<Opening>,
    window_opens: Option<Timestamp>,
    /// The step in progress.
    step: Option<String>,
    spans: Vec<ForecastSpan>,
}

impl Clock<'_> {
    /// Goes through all steps. `None` if no window opens.
    fn steps(&mut self, plan: &DaemonSetPlan, done: &mut Vec<StepForecast>) -> Option<()> {
        // A soak that is in progress.
        let soaks = plan.waits_for.iter().filter(|wait| wait.kind == WaitKind::Soak);
        let domains: Vec<Timestamp> =
            soaks.clone().filter(|wait| wait.domain.is_some()).filter_map(|it| it.until).collect();
        if plan.steps.is_empty() {
            let waves: Vec<&Wave> = plan.waves.iter().collect();
            return self.waves(&waves, domains, true);
        }
        let mut domains = Some(domains);
        for (at, step) in plan.steps.iter().enumerate() {
            let (begins, work, soak) = (self.now, self.work, self.soak);
            self.step = Some(step.name.clone());
            match step.state {
                StepState::Done => continue,
                StepState::Soaking => {
                    let until =
                        soaks.clone().find(|it| it.domain.is_none()).and_then(|it| it.until);
                    let until = until.unwrap_or_else(|| self.later(step.soak_seconds.into()));
                    self.span(SpanKind::Soak, None, until);
                    self.soak_until(until);
                }
                StepState::InProgress | StepState::Pending => {
                    let waves: Vec<&Wave> = plan
                        .waves
                        .iter()
                        .filter(|it| it.step.as_ref() == Some(&step.name))
                        .collect();
                    let is_last = at + 1 == plan.steps.len();
                    if needs_approval(step) {
                        self.span(SpanKind::Approval, None, self.now);
                    }
                    self.waves(&waves, domains.take().unwrap_or_default(), is_last)?;
                    let until = self.later(step.soak_seconds.into());
                    self.span(SpanKind::Soak, None, until);
                    self.soak_until(until);
                }
            }
            done.push(StepForecast {
                name: step.name.clone(),
                seconds: self.work - work,
                soak_seconds: self.soak - soak,
                begins,
                ends: self.now,
            });
        }
        Some(())
    }

    /// Goes through the waves of one step, while the soaks of other domains last `soaking`. Only in
    /// the last step, nothing comes after the soak of the last domain that would wait for it.
    fn waves(&mut self, waves: &[&Wave], soaking: Vec<Timestamp>, is_last: bool) -> Option<()> {
        let at_once = waves.iter().find_map(|wave| wave.domains_at_once).unwrap_or(1);
        let at_once = usize::try_from(at_once).unwrap_or(usize::MAX);
        let mut soaking = soaking;
        let mut later: VecDeque<Part<'_>> = waves.iter().map(|wave| Part::of(wave)).collect();
        let mut open: Vec<Part<'_>> = Vec::new();
        loop {
            soaking.retain(|until| *until > self.now);
            while open.len() + soaking.len() < at_once
                && let Some(next) = later.pop_front()
            {
                open.push(next);
            }
            if open.is_empty() {
                match soaking.iter().min() {
                    Some(until) if is_last || !later.is_empty() => self.soak_until(*until),
                    Some(_) | None => return Some(()),
                }
            } else if !self.waits_for_window()? {
                self.round(&mut open);
                for part in open.extract_if(.., |part| part.left == 0) {
                    let soak = part.wave.soak_seconds;
                    let until = self.later(soak.into());
                    // After the last domain of all steps but the last, the soak of the step counts.
                    let is_counted = is_last || !later.is_empty();
                    if soak > 0 && is_counted {
                        self.span(SpanKind::Soak, Some(part.wave.index), until);
                    }
                    if soak > 0 {
                        soaking.push(until);
                    }
                }
            }
        }
    }

    /// Updates as many nodes of these waves together as the limits allow.
    fn round(&mut self, open: &mut [Part<'_>]) {
        let Some(Part { wave: first, .. }) = open.first() else { return };
        let (is_first, min_ready) = (self.updated_in_run == 0, first.min_ready_seconds);
        let stop = if first.max_surge > 0 { 0 } else { self.pace.stop };
        let budget = first.max_unavailable.max(first.max_surge).max(1);
        let mut room = first.ramp.window(self.updated_in_run, budget).max(1);
        let mut nodes = 0;
        let mut updated = Vec::new();
        for part in open {
            let of_domain = part.wave.domain_max_unavailable.unwrap_or(u32::MAX).max(1);
            let taken = part.left.min(of_domain).min(room);
            part.left -= taken;
            updated.extend((taken > 0).then_some(part.wave.index));
            room -= taken;
            nodes += taken;
        }
        self.updated_in_run += usize::try_from(nodes).unwrap_or(usize::MAX);
        let creating = u64::from(nodes / super::CREATES_A_SECOND);
        let up = if is_first { min_ready.first } else { min_ready.others };
        let takes = stop + creating.max(self.pace.start) + u64::from(up);
        self.work += takes;
        let until = self.later(takes);
        for wave in updated {
            self.span(SpanKind::Update, Some(wave), until);
        }
        self.now = until;
    }

    /// Waits until a node may begin; returns whether that took any time. `None` if no window opens.
    fn waits_for_window(&mut self) -> Option<bool> {
        let fits = |opening: &Opening| {
            let from = Opening { opens: self.now, ..*opening };
            opening.opens <= self.now && from.lasts(self.pace.fits)
        };
        if self.opening.as_ref().is_some_and(fits) {
            return Some(false);
        }
        let mut openings = self.pace.calendar.openings(self.now);
        let next = openings.find(|opening| opening.lasts(self.pace.fits))?;
        self.opening = Some(next);
        if next.opens <= self.now {
            return Some(false);
        }
        self.window_opens.get_or_insert(next.opens);
        self.span(SpanKind::Closed, None, next.opens);
        self.goes_on_at(next.opens);
        Some(true)
    }

    fn soak_until(&mut self, until: Timestamp) {
        let lasts = until.duration_since(self.now).as_secs();
        if let Ok(seconds @ 1..) = u64::try_from(lasts) {
            self.soak += seconds;
            self.goes_on_at(until);
        }
    }

    /// Adds a part that begins now. Rounds of one wave that follow one another are one part.
    fn span(&mut self, kind: SpanKind, wave: Option<u32>, until: Timestamp) {
        let (step, from) = (self.step.clone(), self.now);
        if until == from && kind != SpanKind::Approval {
            return;
        }
        let continued = self.spans.iter_mut().rev().find(|span| {
            span.kind == kind && span.wave == wave && span.step == step && span.until == from
        });
        match continued {
            Some(span) if kind == SpanKind::Update => span.until = until,
            Some(_) | None => self.spans.push(ForecastSpan { kind, step, wave, from, until }),
        }
    }

    /// Another run continues then.
    fn goes_on_at(&mut self, then: Timestamp) {
        self.first_run.get_or_insert(self.work);
        self.updated_in_run = 0;
        self.now = then;
    }

    fn later(&self, seconds: u64) -> Timestamp {
        later(self.now, seconds)
    }
}

/// Whether a person has to approve the step first.
fn needs_approval(step: &StepPlan) -> bool {
    step.approve && step.approved.is_none() && step.updated < step.nodes
}

/// The part of a wave that is not updated yet.
struct Part<'a> {
    wave: &'a Wave,
    /// Number of its nodes.
    left: u32,
}

impl<'a> Part<'a> {
    fn of(wave: &'a Wave) -> Self {
        Self { wave, left: u32::try_from(wave.nodes.len()).unwrap_or(u32::MAX) }
    }
}

#[cfg(test)]
mod tests;
