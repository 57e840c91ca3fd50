//! `status --watch`: a row for each change, as `kubectl get --watch`; with `--exit`, until the
//! rollouts have ended.
//!
//! The cluster is read again and again, at intervals that grow with the time that reading takes: a
//! status depends on nodes, pods, revisions and leases, and watching all of them costs the server
//! more than a list now and then. Not here: when a rollout is complete (`planner`).

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::{self, Instant};

use super::{Args, Listed, read_and_decide};
use crate::error::{Error, Place};
use crate::exit::Exit;
use crate::flags::GlobalFlags;
use crate::shell::Shell;
use planner::plan::{Completion, DaemonSetStatusReport, StatusReport};
use render::{StatusRows, TextOptions};

/// The shortest time between two reads.
const INTERVAL: Duration = Duration::from_secs(2);

/// The interval is at least this many times as long as the last read took.
const SHARE: u32 = 5;

/// Prints changes until the rollouts have ended, or without end.
pub(super) async fn run(args: &Args, global: &GlobalFlags, shell: &Shell) -> Result<Exit, Error> {
    let watching = watch(args, global, shell);
    match args.timeout {
        None => watching.await,
        Some(limit) => match time::timeout(limit, watching).await {
            Ok(ended) => ended,
            Err(_) => Err(Error::StillInProgress { seconds: limit.as_secs() }),
        },
    }
}

async fn watch(args: &Args, global: &GlobalFlags, shell: &Shell) -> Result<Exit, Error> {
    let mut printed = Printed::default();
    let mut before = None;
    loop {
        let begun = Instant::now();
        let Listed { status, options } = read_and_decide(args, global, shell).await?;
        if args.exit && status.daemon_sets.is_empty() {
            return Err(Error::NothingSelected { known: Vec::new(), place: Place::Cluster });
        }
        let text = printed.changes(&status, options);
        shell.printer.out(text).map_err(Error::Output)?;
        let ended = args.exit.then(|| ended(&status)).flatten();
        if let Some(exit) = ended
            && before == ended
        {
            shell.printer.out(summary(&status)).map_err(Error::Output)?;
            return Ok(exit);
        }
        // The objects of one read are not of one moment: only what two reads say is an end.
        before = ended;
        time::sleep(INTERVAL.max(begun.elapsed() * SHARE)).await;
    }
}

/// The outcome, if no rollout is in progress; the most severe one.
fn ended(status: &StatusReport) -> Option<Exit> {
    let each = status.daemon_sets.iter().map(|one| match Completion::of(one) {
        Completion::Complete { .. } => Some(Exit::Done),
        Completion::InProgress { .. } => None,
        Completion::Waiting { for_approval: true } => Some(Exit::ApprovalNeeded),
        Completion::Waiting { for_approval: false } => Some(Exit::Waiting),
        Completion::Paused | Completion::Aborted | Completion::OnDelete { .. } => {
            Some(Exit::Paused)
        }
    });
    each.reduce(|one, other| Some(one?.or_more_severe(other?))).flatten()
}

/// One line for each DaemonSet.
fn summary(status: &StatusReport) -> String {
    let line = |one: &DaemonSetStatusReport| {
        format!("{}/{} {}\n", one.namespace, one.name, Completion::of(one))
    };
    status.daemon_sets.iter().map(line).collect()
}

/// What was printed.
#[derive(Default)]
struct Printed {
    rows: BTreeMap<String, String>,
    layout: Option<StatusRows>,
}

impl Printed {
    /// The rows that differ from those printed before; the header and all rows at first.
    fn changes(&mut self, status: &StatusReport, options: TextOptions) -> String {
        let begins = self.layout.is_none();
        let layout = self.layout.get_or_insert_with(|| StatusRows::of(status, options.namespaces));
        let mut text = if begins { layout.header() } else { String::new() };
        let mut rows = BTreeMap::new();
        for one in &status.daemon_sets {
            let key = format!("{}/{}", one.namespace, one.name);
            let row = layout.row(one);
            // The age alone is no change.
            let compared = layout.row(&DaemonSetStatusReport { age_seconds: None, ..one.clone() });
            if self.rows.get(&key) != Some(&compared) {
                text.push_str(&row);
            }
            rows.insert(key, compared);
        }
        self.rows = rows;
        text
    }
}
