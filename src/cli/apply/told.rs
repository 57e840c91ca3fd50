//! What a run tells while it goes on, and at its end: a line an event, or a bar on a terminal.

mod bar;
mod took;

use std::collections::BTreeMap;
use std::fmt;

use clap::ValueEnum;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use bar::Bar;

use super::evidence::Evidence;
use crate::cli::exit::Exit;
use crate::cli::printer::Printer;
use crate::cli::shell::Shell;
use crate::cluster::LockWait;
use crate::model::{DaemonSetKey, NodeName};
use crate::plan::{LockStanding, Reason};
use crate::render::neutral;
use crate::rollout::{Ending, Held, Outcome, Report, RolledBack};

/// Seconds after which a line is printed even when nothing but numbers has changed.
const HEARTBEAT: i64 = 30;

/// Nodes that are named in one message.
const NAMED: usize = 20;

/// How a run tells what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// A line an event
    Text,
    /// A JSON object a line
    Json,
    /// As text on standard error; at the end a page to look at on standard output
    Html,
}

/// Tells of one DaemonSet's rollout.
pub(super) struct Teller<'a> {
    key: &'a DaemonSetKey,
    format: Format,
    printer: Printer,
    /// On a terminal, for people.
    bar: Option<Bar>,
    last_line: Option<Timestamp>,
    /// What was said last, so that a request that is made again is not told again.
    last_words: String,
}

impl<'a> Teller<'a> {
    pub(super) fn new(key: &'a DaemonSetKey, format: Format, shell: &Shell) -> Self {
        let bar = (shell.draws && format == Format::Text).then(|| Bar::new(key));
        let printer = shell.printer;
        Self { key, format, printer, bar, last_line: None, last_words: String::new() }
    }

    /// The same without a bar, for a line or two.
    pub(super) fn plain(key: &'a DaemonSetKey, format: Format, printer: Printer) -> Self {
        Self { key, format, printer, bar: None, last_line: None, last_words: String::new() }
    }

    /// Tells of one event.
    pub(super) fn tell(&mut self, report: &Report, now: Timestamp) {
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
            Format::Text | Format::Html if words == self.last_words => {}
            Format::Text | Format::Html => self.line(now, &words),
            Format::Json => self.json(now, report.code(), &words, report.data()),
        }
        self.last_words = words;
    }

    /// Tells of something that is no part of a rollout.
    pub(super) fn say(&self, now: Timestamp, event: &str, words: &str) {
        self.say_with(now, event, words, json!({}));
    }

    /// Tells whose lock is waited for; `local` is the local clock, for a server that does not say
    /// what time it is.
    pub(super) fn waits(&self, wait: &LockWait, local: Timestamp) {
        let now = wait.now.unwrap_or(local);
        let (words, data) = waiting(wait, now);
        self.say_with(now, "waitingForLock", &words, data);
    }

    /// Tells that the API servers do not agree on what time it is.
    pub(super) fn clocks_differ(&self, apart: SignedDuration, now: Timestamp) {
        let words = format!(
            "warning: the clocks of the API servers are {apart:#} apart; the earlier time counts, \
             so new pods may take longer to be available"
        );
        self.say_with(now, "clocksDiffer", &words, json!({"seconds": apart.as_secs()}));
    }

    fn say_with(&self, now: Timestamp, event: &str, words: &str, data: Value) {
        match self.format {
            Format::Text | Format::Html => self.line(now, words),
            Format::Json => self.json(now, event, words, data),
        }
    }

    /// Tells how it ended, and what is left.
    pub(super) fn end(&self, ending: &Ending, evidence: &Evidence, now: Timestamp) {
        let Ending { outcome, interrupted: _, replaced, left } = ending;
        if let Some(bar) = &self.bar {
            bar.clear();
        }
        match self.format {
            Format::Json => {
                let data = json!({
                    "exitCode": exit(outcome).code(),
                    "replaced": replaced.len(),
                    "slowest": took::slowest(replaced).map(took::data).collect::<Vec<_>>(),
                    "evidence": evidence.data(),
                    "left": left.iter().map(|(node, why)| (node.as_str(), codes(why))).collect::<BTreeMap<_, _>>(),
                });
                self.json(now, "ended", &outcome.to_string(), data);
            }
            Format::Text | Format::Html => {
                for words in words_of(ending, evidence, self.key) {
                    self.line(now, &words);
                }
            }
        }
    }

    fn line(&self, now: Timestamp, text: &str) {
        let line = format!("{} {}  {}\n", Clock(now), self.key, neutral::line(text));
        // A reader who went away does not stop a rollout.
        let print = || drop(self.printer.out(line));
        match &self.bar {
            Some(bar) => bar.above(print),
            None => print(),
        }
    }

    fn json(&self, now: Timestamp, event: &str, message: &str, data: Value) {
        let mut line = json!({
            "time": now, "daemonSet": self.key.to_string(), "event": event, "message": message,
        });
        if let (Value::Object(line), Value::Object(data)) = (&mut line, data) {
            line.extend(data);
        }
        drop(self.printer.out(format!("{line}\n")));
    }
}

/// Whose lock is waited for, and for how long.
fn waiting(wait: &LockWait, now: Timestamp) -> (String, Value) {
    let LockWait { holder, now: _, unless_renewed, patience } = wait;
    let lock = LockStanding::of(holder, now);
    let (patience, free) = (patience.as_secs(), unless_renewed.as_secs());
    let words = format!(
        "{lock}; waiting for it {patience}s at most, and it is free in {free}s unless it is renewed"
    );
    (words, json!({"lock": lock, "waitSeconds": patience, "freeInSeconds": free}))
}

/// How it ended, node by node where something is wrong, and the ways from there.
fn words_of(ending: &Ending, evidence: &Evidence, key: &DaemonSetKey) -> Vec<String> {
    let Ending { outcome, interrupted: _, replaced, left } = ending;
    let failed = outcome.failed();
    let mut words = vec![outcome.to_string()];
    words.extend(some_of(failed.into_iter().flatten().map(|(node, it)| {
        let below = evidence.of(node).into_iter().map(|line| format!("    {line}"));
        [vec![format!("{node}: {it}")], below.collect()].concat()
    })));
    // Nodes that were told of as failed need no second line.
    let is_told = |node: &NodeName| failed.is_some_and(|failed| failed.contains_key(node));
    words.extend(some_of(left.iter().filter(|(node, _)| !is_told(node)).map(|(node, why)| {
        let why: Vec<String> = why.iter().map(ToString::to_string).collect();
        vec![format!("{node}: {}", why.join("; "))]
    })));
    words.extend(took::words(replaced));
    words.extend(ways(outcome, key));
    words
}

/// What is said of the first of many nodes, indented, and how many more there are.
fn some_of(nodes_said: impl Iterator<Item = Vec<String>>) -> Vec<String> {
    let mut all: Vec<Vec<String>> = nodes_said.collect();
    let more = all.len().saturating_sub(NAMED);
    all.truncate(NAMED);
    let mut lines: Vec<String> =
        all.into_iter().flatten().map(|line| format!("  {line}")).collect();
    if more > 0 {
        lines.push(format!("  and {} more", nodes(more)));
    }
    lines
}

fn codes(reasons: &[Reason]) -> Vec<&'static str> {
    reasons.iter().map(Reason::code).collect()
}

/// How to go on, and how to go back.
fn ways(outcome: &Outcome, key: &DaemonSetKey) -> Vec<String> {
    let on = "to go on: run it again";
    let retry = "to go on: mend what failed and run it again, with --retry for the same template";
    let back = format!("to go back: ds-apply undo {key}");
    let release = format!("to let the controller go on by itself: ds-apply release {key}");
    match outcome {
        Outcome::Parked { .. } | Outcome::Held { why: Held::Failed { .. } } => {
            vec![retry.to_owned(), back]
        }
        Outcome::Held { why: Held::Refused { .. } } => {
            let grant = format!(
                "to go on: mend what the server refuses (ds-apply can-i {key}), and run it again"
            );
            vec![grant, back, release]
        }
        Outcome::Held { .. } | Outcome::Interrupted => vec![on.to_owned(), back],
        Outcome::Stale { held: true, .. } => {
            vec!["to go on: look at the new plan, and carry that out".to_owned(), back, release]
        }
        Outcome::Done
        | Outcome::Stale { held: false, .. }
        | Outcome::Gone { .. }
        | Outcome::LockLost
        | Outcome::Failed { .. } => Vec::new(),
    }
}

fn nodes(count: usize) -> String {
    format!("{count} node{}", if count == 1 { "" } else { "s" })
}

/// How a run that ended so ends the process.
pub(super) fn exit(outcome: &Outcome) -> Exit {
    match outcome {
        Outcome::Done => Exit::Done,
        Outcome::Held { .. } | Outcome::Stale { held: true, .. } => Exit::Held,
        Outcome::Parked { rolled_back, .. } => match rolled_back {
            None | Some(RolledBack::Fully | RolledBack::Failed(_) | RolledBack::Stopped(_)) => {
                Exit::Held
            }
        },
        Outcome::Stale { held: false, .. } | Outcome::Gone { .. } => Exit::Stale,
        Outcome::Interrupted => Exit::Interrupted,
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
    use super::*;
    use crate::model::LockHolder;
    use crate::rollout::{Interference, NotParked, Replaced, Trouble};

    fn failed(nodes: usize) -> BTreeMap<NodeName, Trouble> {
        let node = |at: usize| format!("n-{at:02}").as_str().into();
        let trouble = || Trouble::Restarts { pod: "agent-x".into(), restarts: 4, allowed: 3 };
        (0..nodes).map(|at| (node(at), trouble())).collect()
    }

    fn words(outcome: Outcome) -> Vec<String> {
        let left = ["n-00", "z-99"].map(|node| (node.into(), vec![Reason::NoPod]));
        let replaced = |seconds: i64| Replaced {
            node: format!("r-{seconds}").as_str().into(),
            wave: Some(1),
            seconds,
            leaving: None,
            restarts: 0,
        };
        let (replaced, left) = ([9, 11, 10].map(replaced).into(), left.into());
        let ending = Ending { outcome, interrupted: false, replaced, left };
        words_of(&ending, &Evidence::default(), &DaemonSetKey::new("log", "agent"))
    }

    #[test]
    fn an_ending_names_the_nodes_and_the_ways_from_there() {
        let replaced = "3 nodes replaced, each in 9s to 11s";
        let [first, last] = ["  n-00: node has no pod yet", "  z-99: node has no pod yet"];
        let why = "  n-00: pod agent-x restarted 4 times, at most 3 allowed";
        let back = "to go back: ds-apply undo log/agent";
        let again =
            "to go on: mend what failed and run it again, with --retry for the same template";
        for (outcome, want) in [
            (Outcome::Done, vec!["done", first, last, replaced]),
            (
                Outcome::Parked { failed: failed(1), to: "agent-a".into(), rolled_back: None },
                vec![
                    "parked: new pods failed on 1 node; agent-a is live",
                    why,
                    last,
                    replaced,
                    again,
                    back,
                ],
            ),
            (
                Outcome::Held {
                    why: Held::Failed {
                        failed: failed(1),
                        not_parked: Some(NotParked::NothingBefore),
                    },
                },
                vec![
                    "held: new pods failed on 1 node; not parked: there is no template to go back to",
                    why,
                    last,
                    replaced,
                    again,
                    back,
                ],
            ),
            (
                Outcome::Held { why: Held::Timeout },
                vec![
                    "held: the time of the run is over",
                    first,
                    last,
                    replaced,
                    "to go on: run it again",
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
    fn whose_lock_is_waited_for() {
        let at = |text: &str| -> Timestamp { text.parse().unwrap() };
        let now = at("2026-01-01T12:00:00Z");
        let holder = LockHolder {
            name: "alice on h (process 1)".into(),
            since: Some(at("2026-01-01T11:00:00Z")),
            renewed: Some(at("2026-01-01T11:59:58Z")),
            lease_seconds: 15,
        };
        let [unless_renewed, patience] = [25, 30].map(std::time::Duration::from_secs);
        let wait = LockWait { holder, now: Some(now), unless_renewed, patience };
        let (words, data) = waiting(&wait, now);
        assert_eq!(
            words,
            "locked by alice on h (process 1) since 2026-01-01T11:00:00Z, renewed 2s ago: that run \
             is under way; waiting for it 30s at most, and it is free in 25s unless it is renewed"
        );
        assert_eq!(
            data,
            json!({
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
        let outcome =
            Outcome::Parked { failed: failed(25), to: "agent-a".into(), rolled_back: None };
        let words = words(outcome);
        assert_eq!(words[NAMED + 1], "  and 5 nodes more");
        assert_eq!(words.iter().filter(|line| line.contains("restarted")).count(), NAMED);
    }

    #[test]
    fn each_ending_has_its_exit_code() {
        let held = |why| Outcome::Held { why };
        let stale = |held| Outcome::Stale { change: Interference::Hold, held };
        for (outcome, code) in [
            (Outcome::Done, 0),
            (held(Held::Timeout), 4),
            (Outcome::Parked { failed: failed(1), to: "a".into(), rolled_back: None }, 4),
            (stale(true), 4),
            (stale(false), 5),
            (Outcome::Gone { replaced_by: None }, 5),
            (Outcome::LockLost, 7),
            (Outcome::Interrupted, 130),
        ] {
            assert_eq!(exit(&outcome).code(), code, "{outcome}");
        }
    }
}
