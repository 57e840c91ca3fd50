//! The events of a run as lines of JSON (`-o json`). The first one is the plan, the last one the end
//! of the run. Their types are in `planner`.

use jiff::Timestamp;

use crate::error::Error;
use crate::exit::Exit;
use crate::printer::Printer;
use crate::shell::Shell;
use daemonset::model::DaemonSetKey;
use planner::plan::{ApiVersion, Plan};
use planner::rollout::{RunEvent, RunEventData, RunEventKind};
use planner::words::count;

/// The end of a run.
pub(super) struct Finished {
    /// The outcome.
    pub done: Result<Exit, Error>,
    /// Its time, by the server's clock.
    pub at: Timestamp,
    /// Whether there was anything to do.
    pub acted: bool,
}

/// Prints events.
#[derive(Clone, Copy)]
pub(super) struct EventStream {
    printer: Printer,
    rehearsal: bool,
}

impl EventStream {
    pub(super) fn of(shell: &Shell) -> Self {
        Self { printer: shell.printer, rehearsal: shell.rehearsal }
    }

    /// Prints one event. `of` is its DaemonSet.
    pub(super) fn print(
        self,
        time: Timestamp,
        of: Option<&DaemonSetKey>,
        message: String,
        event: RunEventData,
    ) {
        let event = RunEvent {
            api_version: ApiVersion::V1Alpha1,
            kind: RunEventKind::RunEvent,
            time,
            rehearsal: self.rehearsal,
            daemon_set: of.map(ToString::to_string),
            message,
            event,
        };
        // A failed write to standard output does not stop a rollout.
        let _ = render::json_line(&event).map(|line| drop(self.printer.out(line)));
    }

    /// Prints the plan of the run.
    pub(super) fn plan(self, plan: Plan) {
        let message = format!("plan of {}", count(plan.daemon_sets.len(), "DaemonSet"));
        let time = plan.cluster.observed_at;
        self.print(time, None, message, RunEventData::Plan { plan: Box::new(plan) });
    }

    /// Prints the end of the run.
    pub(super) fn run_ended(self, finished: &Finished) {
        let Finished { done, at, acted } = finished;
        let (exit, message) = match done {
            Ok(Exit::Done) if !acted => (Exit::Done, "nothing to do".to_owned()),
            Ok(exit) => (*exit, words(*exit).to_owned()),
            Err(error) => (error.exit(), error.to_string()),
        };
        self.print(*at, None, message, RunEventData::RunEnded { exit_code: exit.code() });
    }
}

/// The outcome of the run in words. The messages of its DaemonSets have the details.
fn words(exit: Exit) -> &'static str {
    match exit {
        Exit::Done => "done",
        Exit::Failed => "failed",
        Exit::Changes => "changes",
        Exit::Drift => "drift",
        Exit::Waiting => "waits",
        Exit::ApprovalNeeded => "waits for an approval",
        Exit::Paused => "paused or aborted",
        Exit::Stale => "stale",
        Exit::Refused => "blocked by a guard",
        Exit::Locked => "locked by another run",
        Exit::Usage => "invalid command line",
        Exit::Interrupted => "interrupted",
        Exit::Terminated => "terminated",
    }
}
