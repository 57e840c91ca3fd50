//! What a run tells while it goes on, and at its end.

use std::collections::BTreeMap;
use std::fmt;

use clap::ValueEnum;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::cli::exit::Exit;
use crate::cli::printer::Printer;
use crate::model::{DaemonSetKey, NodeName};
use crate::plan::Reason;
use crate::render::neutral;
use crate::rollout::{Ending, Held, Outcome, Replaced, Report, RolledBack, Trouble};

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
}

/// Tells of one DaemonSet's rollout.
pub(super) struct Teller<'a> {
    key: &'a DaemonSetKey,
    format: Format,
    printer: Printer,
    last_line: Option<Timestamp>,
    /// What was said last, so that a request that is made again is not told again.
    last_words: String,
}

impl<'a> Teller<'a> {
    pub(super) fn new(key: &'a DaemonSetKey, format: Format, printer: Printer) -> Self {
        Self { key, format, printer, last_line: None, last_words: String::new() }
    }

    /// Tells of one event.
    pub(super) fn tell(&mut self, report: &Report, now: Timestamp) {
        let is_number = matches!(report, Report::Progress(_));
        let silent = self.last_line.map_or(i64::MAX, |last| now.duration_since(last).as_secs());
        if is_number && self.format == Format::Text && silent < HEARTBEAT {
            return;
        }
        self.last_line = Some(now);
        let words = report.to_string();
        match self.format {
            Format::Text if words == self.last_words => {}
            Format::Text => self.line(now, &words),
            Format::Json => self.json(now, report.code(), &words, report.data()),
        }
        self.last_words = words;
    }

    /// Tells how it ended, and what is left.
    pub(super) fn end(&self, ending: &Ending, now: Timestamp) {
        let Ending { outcome, replaced, left } = ending;
        match self.format {
            Format::Json => {
                let data = json!({
                    "exitCode": exit(outcome).code(),
                    "replaced": replaced.len(),
                    "left": left.iter().map(|(node, why)| (node.as_str(), codes(why))).collect::<BTreeMap<_, _>>(),
                });
                self.json(now, "ended", &outcome.to_string(), data);
            }
            Format::Text => {
                self.line(now, &outcome.to_string());
                for (node, trouble) in troubles(outcome).into_iter().flatten().take(NAMED) {
                    self.line(now, &format!("  {node}: {trouble}"));
                }
                self.left(left, troubles(outcome), now);
                if let Some(words) = slowest(replaced) {
                    self.line(now, &words);
                }
                for way in ways(outcome, self.key) {
                    self.line(now, &way);
                }
            }
        }
    }

    /// Nodes that are not as they should be, but for those that were told of as failed.
    fn left(
        &self,
        left: &BTreeMap<NodeName, Vec<Reason>>,
        failed: Option<&BTreeMap<NodeName, Trouble>>,
        now: Timestamp,
    ) {
        let is_told = |node: &NodeName| failed.is_some_and(|failed| failed.contains_key(node));
        let left: Vec<_> = left.iter().filter(|(node, _)| !is_told(node)).collect();
        for (node, why) in left.iter().take(NAMED) {
            let why: Vec<String> = why.iter().map(ToString::to_string).collect();
            self.line(now, &format!("  {node}: {}", why.join("; ")));
        }
        if left.len() > NAMED {
            self.line(now, &format!("  and {} more", nodes(left.len() - NAMED)));
        }
    }

    fn line(&self, now: Timestamp, text: &str) {
        let line = format!("{} {}  {}\n", Clock(now), self.key, neutral::line(text));
        // A reader who went away does not stop a rollout.
        drop(self.printer.out(line));
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

/// Nodes that failed, of an outcome that has some.
fn troubles(outcome: &Outcome) -> Option<&BTreeMap<NodeName, Trouble>> {
    match outcome {
        Outcome::Held { why: Held::Failed { failed, not_parked: _ } }
        | Outcome::Parked { failed, .. } => Some(failed),
        Outcome::Done
        | Outcome::Held { .. }
        | Outcome::Stale { .. }
        | Outcome::Gone { .. }
        | Outcome::Interrupted
        | Outcome::LockLost
        | Outcome::Failed { .. } => None,
    }
}

fn codes(reasons: &[Reason]) -> Vec<&'static str> {
    reasons.iter().map(Reason::code).collect()
}

/// How long nodes took, if any was replaced.
fn slowest(replaced: &[Replaced]) -> Option<String> {
    let slowest = replaced.iter().max_by_key(|one| one.seconds)?;
    let mut seconds: Vec<i64> = replaced.iter().map(|one| one.seconds).collect();
    seconds.sort_unstable();
    let median = seconds[seconds.len() / 2];
    Some(format!(
        "{} replaced, the median after {median}s, {} last with {}s",
        nodes(replaced.len()),
        slowest.node,
        slowest.seconds
    ))
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
