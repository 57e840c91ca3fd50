//! Progress of a run: one line per event, or a bar on a terminal. Not here: what is said about its
//! end (`ending`).

mod bar;
mod ending;
mod timing;

use std::collections::BTreeMap;
use std::fmt;

use jiff::{SignedDuration, Timestamp};

use bar::Bar;
use ending::{Arrivals, codes, ways, words_of};
pub(super) use ending::{SuggestedUndo, exit};

use super::event_stream::EventStream;
use super::evidence::Evidence;
use super::unmet_predecessor::{NotDone, UnmetPredecessor};
use crate::exit::Exit;
use crate::output::Format;
use crate::printer::Printer;
use crate::shell::Shell;
use crate::warnings;
use cluster::LockWait;
use daemonset::model::DaemonSetKey;
use planner::plan::LockStatus;
use planner::rollout::{Ending, Outcome, ReplacedNode, Report, RunEventData, Secrets, Task};
use planner::steps::WaitsFor;
use render::neutral;

/// Seconds after which a line is printed even if only numbers have changed.
const HEARTBEAT: i64 = 30;
/// The message of the first event of a rollout.
const STARTED: &str = "rollout started";

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
    /// The last failure or wait that was notified of.
    notified: Option<Notified>,
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
            stream: EventStream::of(shell, format),
            bar: None,
            last_line: None,
            last_words: String::new(),
            arrivals: Arrivals::default(),
            suggested_undo: SuggestedUndo::Previous,
            notified: None,
        }
    }

    /// The same reporter, which suggests this rollback.
    pub(super) fn suggesting(self, suggested_undo: SuggestedUndo) -> Self {
        Self { suggested_undo, ..self }
    }

    /// The same reporter, whose notifications do not contain these.
    pub(super) fn without(self, secrets: Secrets) -> Self {
        Self { stream: self.stream.without(secrets), ..self }
    }

    /// Reports that the rollout begins: to programs only, people have just seen the plan.
    pub(super) fn started(&self, task: &Task, now: Timestamp) {
        let event = RunEventData::from(task);
        self.notify(now, STARTED, event.clone());
        self.json(now, STARTED, event);
    }

    /// Reports one event.
    pub(super) fn report(&mut self, report: &Report, now: Timestamp) {
        self.arrivals.count(report);
        self.notify_once(report, now);
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

    /// Notifies of the first failed pod, and of each new wait.
    fn notify_once(&mut self, report: &Report, now: Timestamp) {
        let news = match report {
            Report::Failed { .. } => Notified::Failure,
            Report::WaitingFor(_) => Notified::Wait(report.to_string()),
            _other => return,
        };
        // What fails stays failed, whatever is waited for then.
        if self.notified.as_ref().is_none_or(|last| *last != Notified::Failure && *last != news) {
            self.notify(now, &report.to_string(), report.into());
            self.notified = Some(news);
        }
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
    pub(super) fn does_not_begin(&self, unmet: &UnmetPredecessor, now: Timestamp) {
        let words = format!("does not begin: {unmet}");
        self.annotate(&words, unmet.why == NotDone::WaitsForApproval);
        let event = not_begun_event(unmet);
        self.notify(now, &words, event.clone());
        match self.format {
            Format::Json => self.json(now, &words, event),
            _text => self.printer.err(format!("{} {words}\n", self.key)),
        }
    }

    /// Whether only the end is printed. Programs read all events.
    fn is_quiet(&self) -> bool {
        self.printer.is_quiet() && self.format != Format::Json
    }

    /// Reports the outcome, and the nodes that are not up to date.
    pub(super) fn end(&self, ending: &Ending, evidence: &Evidence, now: Timestamp) {
        let outcome = &ending.outcome;
        if let Some(bar) = &self.bar {
            bar.clear();
        }
        if let Outcome::Waiting { waits_for } = outcome {
            let needs_person = waits_for.iter().any(|wait| wait.kind.needs_person());
            self.annotate(&outcome.to_string(), needs_person);
        }
        let (message, event) = (ending.to_string(), ended(ending, evidence));
        self.notify(now, &message, event.clone());
        match self.format {
            Format::Json => self.json(now, &message, event),
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
        let print = || warnings::print_in_rollout(line, self.printer);
        match &self.bar {
            Some(bar) => bar.above(print),
            None => print(),
        }
    }

    fn json(&self, now: Timestamp, message: &str, event: RunEventData) {
        self.stream.print(now, Some(self.key), message.to_owned(), event);
    }

    fn notify(&self, now: Timestamp, message: &str, event: RunEventData) {
        self.stream.notify(now, Some(self.key), message.to_owned(), event);
    }
}

/// The end of a rollout as an event.
fn ended(ending: &Ending, evidence: &Evidence) -> RunEventData {
    let Ending { outcome, replaced, left } = ending;
    RunEventData::Ended {
        exit_code: exit(outcome).code(),
        replaced: replaced.len(),
        slowest: timing::slowest(replaced).map(ReplacedNode::from).collect(),
        evidence: evidence.document(),
        waits_for: match outcome {
            Outcome::Waiting { waits_for } => waits_for.clone(),
            _others => Vec::new(),
        },
        failed_gate: outcome.failed_gate().cloned().map(Box::new),
        unknown_check: outcome.unknown_check().cloned().map(Box::new),
        left: left.iter().map(|(node, why)| (node.clone(), codes(why))).collect(),
    }
}

/// The same of a DaemonSet that does not begin.
fn not_begun_event(unmet: &UnmetPredecessor) -> RunEventData {
    RunEventData::Ended {
        exit_code: Exit::Waiting.code(),
        replaced: 0,
        slowest: Vec::new(),
        evidence: BTreeMap::new(),
        waits_for: vec![WaitsFor::another(&unmet.predecessor)],
        failed_gate: None,
        unknown_check: None,
        left: BTreeMap::new(),
    }
}

/// What was notified of during a rollout.
#[derive(Debug, PartialEq, Eq)]
enum Notified {
    /// The first failed pod.
    Failure,
    /// A wait, in words.
    Wait(String),
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
}
