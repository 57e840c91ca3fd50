//! Progress of a run and its end: one line per event, or a bar on a terminal.

mod bar;
mod timing;

use std::collections::BTreeMap;
use std::fmt;

use jiff::{SignedDuration, Timestamp};

use bar::Bar;

use super::event_stream::EventStream;
use super::evidence::Evidence;
use super::predecessors::{Held, NotDone};
use crate::exit::Exit;
use crate::output::Format;
use crate::printer::Printer;
use crate::shell::Shell;
use cluster::LockWait;
use daemonset::model::{DaemonSetKey, NodeName};
use planner::plan::{LockStatus, Reason};
use planner::rollout::{
    Arrival, Ending, Interference, Outcome, PauseReason, ReplacedNode, Report, RolledBack,
    RunEventData,
};
use planner::steps::WaitsFor;
use planner::words::count;
use render::neutral;

/// Seconds after which a line is printed even if only numbers have changed.
const HEARTBEAT: i64 = 30;

/// Number of nodes that are listed in one message.
const NAMED: usize = 20;

/// Reports the rollout of one DaemonSet.
pub(super) struct ProgressReporter<'a> {
    key: &'a DaemonSetKey,
    format: Format,
    printer: Printer,
    stream: EventStream,
    /// The bar, on a terminal.
    bar: Option<Bar>,
    last_line: Option<Timestamp>,
    /// The last line, so that a retried request is not reported again.
    last_words: String,
    arrivals: Arrivals,
    suggested_undo: SuggestedUndo,
}

/// The rollback that the end of a rollout suggests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SuggestedUndo {
    /// To the previous revision.
    Previous,
    /// To an earlier one: the run was an `undo`, and the same again would end in the same way.
    Earlier,
}

/// Number of nodes that got a pod without a delete of this run.
#[derive(Debug, Default)]
struct Arrivals {
    created: usize,
    surged: usize,
    recreated: usize,
}

impl<'a> ProgressReporter<'a> {
    pub(super) fn new(key: &'a DaemonSetKey, format: Format, shell: &Shell) -> Self {
        let draws = shell.draws && format == Format::Text && !shell.printer.is_quiet();
        let bar = draws.then(|| Bar::new(key, shell.width));
        Self { bar, ..Self::plain(key, format, shell) }
    }

    /// A reporter without a bar, for single lines.
    pub(super) fn plain(key: &'a DaemonSetKey, format: Format, shell: &Shell) -> Self {
        Self {
            key,
            format,
            printer: shell.printer,
            stream: EventStream::of(shell),
            bar: None,
            last_line: None,
            last_words: String::new(),
            arrivals: Arrivals::default(),
            suggested_undo: SuggestedUndo::Previous,
        }
    }

    /// The same reporter, which suggests this rollback.
    pub(super) fn suggesting(self, suggested_undo: SuggestedUndo) -> Self {
        Self { suggested_undo, ..self }
    }

    /// Reports one event.
    pub(super) fn report(&mut self, report: &Report, now: Timestamp) {
        self.arrivals.count(report);
        if self.is_quiet() {
            return;
        }
        if self.bar.as_mut().is_some_and(|bar| bar.takes(report, now)) {
            return;
        }
        let is_number = matches!(report, Report::Progress(_));
        let silent = self.last_line.map_or(i64::MAX, |last| now.duration_since(last).as_secs());
        if is_number && self.format != Format::Json && silent < HEARTBEAT {
            return;
        }
        self.last_line = Some(now);
        let words = report.to_string();
        match self.format {
            Format::Json => self.json(now, &words, report.into()),
            _text if words == self.last_words => {}
            _text => self.line(now, &words),
        }
        self.last_words = words;
    }

    /// Reports an event that is not part of a rollout.
    pub(super) fn event(&self, now: Timestamp, event: RunEventData, words: &str) {
        match self.format {
            Format::Json => self.json(now, words, event),
            _text if self.is_quiet() => {}
            _text => self.line(now, words),
        }
    }

    /// Reports the holder of the lock that the run waits for; `local` is the local time, used if
    /// the server sends no time.
    pub(super) fn waits(&self, wait: &LockWait, local: Timestamp) {
        let now = wait.now.unwrap_or(local);
        let (words, event) = waiting(wait, now);
        self.event(now, event, &words);
    }

    /// Reports that the clocks of the API servers differ.
    pub(super) fn clocks_differ(&self, apart: SignedDuration, now: Timestamp) {
        let words = format!(
            "warning: the clocks of the API servers are {apart:#} apart; the earlier time counts, \
             so new pods may take longer to be available"
        );
        self.event(now, RunEventData::ClocksDiffer { seconds: apart.as_secs() }, &words);
    }

    /// Annotates that the rollout waits, if a CI system shows annotations.
    fn annotate(&self, words: &str, needs_person: bool) {
        if let Some(annotations) = self.printer.annotations() {
            self.printer.err(annotations.wait(self.key, words, needs_person));
        }
    }

    /// Reports that a DaemonSet does not begin, because it comes after another one.
    pub(super) fn does_not_begin(&self, held: &Held, now: Timestamp) {
        let words = format!("does not begin: {held}");
        self.annotate(&words, held.why == NotDone::WaitsForApproval);
        match self.format {
            Format::Json => self.held_event(held, &words, now),
            _text => self.printer.err(format!("{} {words}\n", self.key)),
        }
    }

    fn held_event(&self, held: &Held, words: &str, now: Timestamp) {
        let event = RunEventData::Ended {
            exit_code: Exit::Waiting.code(),
            replaced: 0,
            slowest: Vec::new(),
            evidence: BTreeMap::new(),
            waits_for: vec![WaitsFor::another(&held.predecessor)],
            left: BTreeMap::new(),
        };
        self.json(now, words, event);
    }

    /// Whether only the end is printed. Programs read all events.
    fn is_quiet(&self) -> bool {
        self.printer.is_quiet() && self.format != Format::Json
    }

    /// Reports the outcome, and the nodes that are not up to date.
    pub(super) fn end(&self, ending: &Ending, evidence: &Evidence, now: Timestamp) {
        let Ending { outcome, interrupted: _, replaced, left } = ending;
        if let Some(bar) = &self.bar {
            bar.clear();
        }
        if let Outcome::Waiting { waits_for } = outcome {
            let needs_person = waits_for.iter().any(|wait| wait.kind.needs_person());
            self.annotate(&outcome.to_string(), needs_person);
        }
        match self.format {
            Format::Json => {
                let left = left.iter().map(|(node, why)| (node.clone(), codes(why))).collect();
                let event = RunEventData::Ended {
                    exit_code: exit(outcome).code(),
                    replaced: replaced.len(),
                    slowest: timing::slowest(replaced).map(ReplacedNode::from).collect(),
                    evidence: evidence.document(),
                    waits_for: match outcome {
                        Outcome::Waiting { waits_for } => waits_for.clone(),
                        _others => Vec::new(),
                    },
                    left,
                };
                self.json(now, &ending.to_string(), event);
            }
            _text => {
                let words = words_of(ending, &self.arrivals, evidence);
                for words in words.into_iter().chain(ways(ending, self.key, self.suggested_undo)) {
                    self.line(now, &words);
                }
            }
        }
    }

    fn line(&self, now: Timestamp, text: &str) {
        let line = format!("{} {}  {}\n", Clock(now), self.key, neutral::line(text));
        // A failed write to standard output does not stop a rollout.
        let print = || drop(self.printer.out(line));
        match &self.bar {
            Some(bar) => bar.above(print),
            None => print(),
        }
    }

    fn json(&self, now: Timestamp, message: &str, event: RunEventData) {
        self.stream.print(now, Some(self.key), message.to_owned(), event);
    }
}

impl Arrivals {
    fn count(&mut self, report: &Report) {
        if let Report::Arrived { node: _, how, seconds: _ } = report {
            match how {
                Arrival::Created => self.created += 1,
                Arrival::Surged => self.surged += 1,
                Arrival::Recreated => self.recreated += 1,
            }
        }
    }

    /// A line for each number above zero.
    fn words(&self) -> Vec<String> {
        let Self { created, surged, recreated } = *self;
        [
            (surged, "got the new pod next to the old one"),
            (created, "got their first pod"),
            (recreated, "got a pod again from the controller"),
        ]
        .into_iter()
        .filter(|(nodes, _)| *nodes > 0)
        .map(|(nodes, what)| format!("{} {what}", count(nodes, "node")))
        .collect()
    }
}

/// The message and the data of waiting for a lock.
fn waiting(wait: &LockWait, now: Timestamp) -> (String, RunEventData) {
    let LockWait { holder, now: _, unless_renewed, timeout } = wait;
    let lock = LockStatus::of(holder, now);
    let (timeout, free) = (timeout.as_secs(), unless_renewed.as_secs());
    let words = format!(
        "{lock}; waiting at most {timeout}s; the lock expires in {free}s unless it is renewed"
    );
    let event = RunEventData::WaitingForLock { lock, wait_seconds: timeout, free_in_seconds: free };
    (words, event)
}

/// The lines about the end: outcome, failed and unfinished nodes, durations.
fn words_of(ending: &Ending, arrivals: &Arrivals, evidence: &Evidence) -> Vec<String> {
    let Ending { outcome, interrupted: _, replaced, left } = ending;
    let failed = outcome.failed();
    let mut words = vec![ending.to_string()];
    words.extend(some_of(failed.into_iter().flatten().map(|(node, it)| {
        let below = evidence.of(node).into_iter().map(|line| format!("    {line}"));
        [vec![format!("{node}: {it}")], below.collect()].concat()
    })));
    // Failed nodes are listed above already.
    let is_reported = |node: &NodeName| failed.is_some_and(|failed| failed.contains_key(node));
    words.extend(some_of(left.iter().filter(|(node, _)| !is_reported(node)).map(|(node, why)| {
        let why: Vec<String> = why.iter().map(ToString::to_string).collect();
        vec![format!("{node}: {}", why.join("; "))]
    })));
    words.extend(timing::words(replaced));
    words.extend(arrivals.words());
    words
}

/// The lines of the first nodes, indented, and the number of the others.
fn some_of(details: impl Iterator<Item = Vec<String>>) -> Vec<String> {
    let mut all: Vec<Vec<String>> = details.collect();
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    let mut lines: Vec<String> =
        all.into_iter().flatten().map(|line| format!("  {line}")).collect();
    if more > 0 {
        lines.push(format!("  and {} more", count(more, "node")));
    }
    lines
}

fn codes(reasons: &[Reason]) -> Vec<String> {
    reasons.iter().map(|reason| reason.code().to_owned()).collect()
}

/// The next steps: how to resume, and how to roll back.
fn ways(ending: &Ending, key: &DaemonSetKey, undo: SuggestedUndo) -> Vec<String> {
    let Ending { outcome, interrupted: _, replaced, left } = ending;
    let on = "to resume: run it again";
    let retry = "to resume: fix the cause and run it again, with --retry for the same template";
    let back = match undo {
        SuggestedUndo::Previous => format!("to roll back: ds-apply undo {key}"),
        SuggestedUndo::Earlier => format!(
            "to roll back further: ds-apply undo {key} --to-revision N (ds-plan history {key} \
             lists them)"
        ),
    };
    let release = format!("to let the controller continue by itself: ds-apply release {key}");
    match outcome {
        Outcome::Aborted { .. } | Outcome::Paused { why: PauseReason::Failed { .. } } => {
            vec![retry.to_owned(), back]
        }
        Outcome::Paused { why: PauseReason::Refused { .. } } => {
            let grant = format!(
                "to resume: fix what the server refuses (ds-apply can-i {key}) and run it again"
            );
            vec![grant, back, release]
        }
        Outcome::Paused { .. } | Outcome::Interrupted { paused: true } => {
            vec![on.to_owned(), back]
        }
        Outcome::Waiting { waits_for } => {
            let approvals = waits_for.iter().filter(|wait| wait.kind.needs_person());
            let approve = approvals.map(|wait| {
                let step = &wait.step;
                format!("to approve: ds-apply approve {key} {step}, then run it again")
            });
            let mut ways: Vec<String> = approve.collect();
            if ways.is_empty() {
                ways.push("to continue: run it again then, or let a schedule do it".to_owned());
            }
            // Nothing may have begun yet.
            if !replaced.is_empty() || !left.is_empty() {
                ways.push(back);
            }
            ways
        }
        Outcome::Interrupted { paused: false } => vec![on.to_owned()],
        Outcome::Stale { change: Interference::Template { restarted: true, .. }, held: true } => {
            vec![
                "to resume, and restart all pods: run it again".to_owned(),
                "to resume without the restart: run it again with \
                 --force-conflicts=kubectl-rollout"
                    .to_owned(),
                back,
                release,
            ]
        }
        Outcome::Stale { held: true, .. } => {
            vec!["to resume: review the new plan and apply it".to_owned(), back, release]
        }
        Outcome::Done
        | Outcome::Stale { held: false, .. }
        | Outcome::Gone { .. }
        | Outcome::LockLost
        | Outcome::Failed { .. } => Vec::new(),
    }
}

/// The outcome of the process for the outcome of a rollout.
pub(super) fn exit(outcome: &Outcome) -> Exit {
    match outcome {
        Outcome::Done => Exit::Done,
        Outcome::Paused { .. } | Outcome::Stale { held: true, .. } => Exit::Paused,
        Outcome::Waiting { waits_for } => {
            if waits_for.iter().any(|wait| wait.kind.needs_person()) {
                Exit::ApprovalNeeded
            } else {
                Exit::Waiting
            }
        }
        Outcome::Aborted { rolled_back, .. } => match rolled_back {
            None | Some(RolledBack::Fully | RolledBack::Failed(_) | RolledBack::Stopped(_)) => {
                Exit::Paused
            }
        },
        Outcome::Stale { held: false, .. } | Outcome::Gone { .. } => Exit::Stale,
        Outcome::Interrupted { paused: _ } => Exit::Interrupted,
        Outcome::LockLost => Exit::Locked,
        Outcome::Failed { .. } => Exit::Failed,
    }
}

/// A time of day, in UTC.
struct Clock(Timestamp);

impl fmt::Display for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.strftime("%H:%M:%SZ"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use daemonset::model::LockHolder;
    use planner::rollout::{NotAborted, PodFailure, Replaced};

    fn failed(nodes: usize) -> BTreeMap<NodeName, PodFailure> {
        let node = |at: usize| format!("n-{at:02}").as_str().into();
        let pod_failure =
            || PodFailure::Restarts { pod: "agent-x".into(), restarts: 4, allowed: 3 };
        (0..nodes).map(|at| (node(at), pod_failure())).collect()
    }

    fn words(outcome: Outcome) -> Vec<String> {
        let left = ["n-00", "z-99"].map(|node| (node.into(), vec![Reason::NoPod]));
        let replaced = |seconds: i64| Replaced {
            node: format!("r-{seconds}").as_str().into(),
            wave: Some(1),
            seconds,
            terminating: None,
            restarts: 0,
        };
        let (replaced, left) = ([9, 11, 10].map(replaced).into(), left.into());
        let ending = Ending { outcome, interrupted: false, replaced, left };
        let words = words_of(&ending, &Arrivals::default(), &Evidence::default());
        let ways = ways(&ending, &DaemonSetKey::new("log", "agent"), SuggestedUndo::Previous);
        words.into_iter().chain(ways).collect()
    }

    #[test]
    fn the_end_lists_nodes_and_next_steps() {
        let replaced = "3 nodes replaced, each in 9s to 11s";
        let [first, last] = ["  n-00: node has no pod yet", "  z-99: node has no pod yet"];
        let why = "  n-00: pod agent-x restarted 4 times, at most 3 allowed";
        let back = "to roll back: ds-apply undo log/agent";
        let again = "to resume: fix the cause and run it again, with --retry for the same template";
        for (outcome, want) in [
            (Outcome::Done, vec!["done", first, last, replaced]),
            (
                Outcome::Aborted {
                    failed: failed(1),
                    to: "agent-a".into(),
                    rolled_back: None,
                    overdue: None,
                },
                vec![
                    "aborted: new pods failed on 1 node; agent-a is live; 1 more node has no \
                     available pod",
                    why,
                    last,
                    replaced,
                    again,
                    back,
                ],
            ),
            (
                Outcome::Paused {
                    why: PauseReason::Failed {
                        failed: failed(1),
                        not_aborted: Some(NotAborted::NothingBefore),
                        overdue: None,
                    },
                },
                vec![
                    "paused: new pods failed on 1 node; not aborted: there is no earlier template to roll \
                     back to; 1 more node has no available pod",
                    why,
                    last,
                    replaced,
                    again,
                    back,
                ],
            ),
            (
                Outcome::Paused { why: PauseReason::Timeout },
                vec![
                    "paused: the run timed out",
                    first,
                    last,
                    replaced,
                    "to resume: run it again",
                    back,
                ],
            ),
            (
                Outcome::Stale { change: Interference::Strategy, held: false },
                vec!["stopped: the update strategy was changed", first, last, replaced],
            ),
        ] {
            assert_eq!(words(outcome), want);
        }
    }

    #[test]
    fn after_a_failed_undo_another_revision_is_suggested() {
        let outcome = Outcome::Aborted {
            failed: failed(1),
            to: "agent-a".into(),
            rolled_back: None,
            overdue: None,
        };
        let ending =
            Ending { outcome, interrupted: false, replaced: Vec::new(), left: BTreeMap::new() };
        assert_eq!(
            ways(&ending, &DaemonSetKey::new("log", "agent"), SuggestedUndo::Earlier)[1],
            "to roll back further: ds-apply undo log/agent --to-revision N (ds-plan history \
             log/agent lists them)"
        );
    }

    #[test]
    fn waiting_for_a_lock_names_its_holder() {
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        let now = at("2026-01-01T12:00:00Z");
        let holder = LockHolder {
            name: "alice on h (process 1)".into(),
            since: Some(at("2026-01-01T11:00:00Z")),
            renewed: Some(at("2026-01-01T11:59:58Z")),
            lease_seconds: 15,
        };
        let [unless_renewed, timeout] = [25, 30].map(std::time::Duration::from_secs);
        let wait = LockWait { holder, now: Some(now), unless_renewed, timeout };
        let (words, event) = waiting(&wait, now);
        assert_eq!(
            words,
            "locked by alice on h (process 1) since 2026-01-01T11:00:00Z, renewed 2s ago: the run \
             is in progress; waiting at most 30s; the lock expires in 25s unless it is renewed"
        );
        assert_eq!(
            serde_json::to_value(&event).unwrap(),
            json!({
                "event": "waitingForLock",
                "lock": {
                    "holder": "alice on h (process 1)", "since": "2026-01-01T11:00:00Z",
                    "renewedSecondsAgo": 2, "leaseSeconds": 15, "live": true,
                },
                "waitSeconds": 30, "freeInSeconds": 25,
            })
        );
    }

    #[test]
    fn many_nodes_are_counted() {
        let outcome = Outcome::Aborted {
            failed: failed(25),
            to: "agent-a".into(),
            rolled_back: None,
            overdue: None,
        };
        let words = words(outcome);
        assert_eq!(words[NAMED + 1], "  and 5 nodes more");
        assert_eq!(words.iter().filter(|line| line.contains("restarted")).count(), NAMED);
    }

    #[test]
    fn each_ending_has_its_exit_code() {
        let held = |why| Outcome::Paused { why };
        let stale = |held| Outcome::Stale { change: Interference::Pause, held };
        for (outcome, code) in [
            (Outcome::Done, 0),
            (held(PauseReason::Timeout), 4),
            (
                Outcome::Aborted {
                    failed: failed(1),
                    to: "a".into(),
                    rolled_back: None,
                    overdue: None,
                },
                4,
            ),
            (stale(true), 4),
            (stale(false), 5),
            (Outcome::Gone { replaced_by: None }, 5),
            (Outcome::LockLost, 7),
            (Outcome::Interrupted { paused: true }, 130),
        ] {
            assert_eq!(exit(&outcome).code(), code, "{outcome}");
        }
    }
}
