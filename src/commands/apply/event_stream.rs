//! The events of a run: as lines of JSON (`-o json`), of which the first one is the plan and the last
//! one the end of the run; and as notifications. Their types are in `planner`.

use jiff::Timestamp;

use crate::error::Error;
use crate::exit::Exit;
use crate::notifications::Notifications;
use crate::output::Format;
use crate::printer::Printer;
use crate::shell::Shell;
use crate::warnings;
use daemonset::model::DaemonSetKey;
use planner::plan::{ApiVersion, Plan};
use planner::rollout::{RunEvent, RunEventData, RunEventKind, Secrets};
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

/// Prints events, and notifies of them.
pub(super) struct EventStream {
    /// None if the output is for people.
    printer: Option<Printer>,
    notifications: Option<Notifications>,
    /// What notifications must not have in them.
    secrets: Secrets,
    rehearsal: bool,
}

impl EventStream {
    pub(super) fn of(shell: &Shell, output: Format) -> Self {
        Self {
            printer: (output == Format::Json).then_some(shell.printer),
            notifications: shell.notifications.clone(),
            secrets: Secrets::default(),
            rehearsal: shell.rehearsal,
        }
    }

    /// The same stream, whose notifications do not contain these.
    pub(super) fn without(self, secrets: Secrets) -> Self {
        Self { secrets, ..self }
    }

    /// Prints one event, if the output is JSON. `of` is its DaemonSet.
    pub(super) fn print(
        &self,
        time: Timestamp,
        of: Option<&DaemonSetKey>,
        message: String,
        event: RunEventData,
    ) {
        if let Some(printer) = self.printer {
            let event = self.document(time, of, message, event);
            if let Ok(line) = render::json_line(&event) {
                warnings::print_in_rollout(line, printer);
            }
        }
    }

    /// Notifies of one event, if it is one of those that are posted.
    pub(super) fn notify(
        &self,
        time: Timestamp,
        of: Option<&DaemonSetKey>,
        message: String,
        event: RunEventData,
    ) {
        if let Some(notifications) = &self.notifications {
            notifications.post(self.document(time, of, message, event), &self.secrets);
        }
    }

    fn document(
        &self,
        time: Timestamp,
        of: Option<&DaemonSetKey>,
        message: String,
        event: RunEventData,
    ) -> RunEvent {
        RunEvent {
            api_version: ApiVersion::V1Alpha1,
            kind: RunEventKind::RunEvent,
            time,
            rehearsal: self.rehearsal,
            cluster: None,
            daemon_set: of.map(ToString::to_string),
            message,
            event,
        }
    }

    /// Prints the plan of the run.
    pub(super) fn plan(&self, plan: Plan) {
        let message = format!("plan of {}", count(plan.daemon_sets.len(), "DaemonSet"));
        let time = plan.cluster.observed_at;
        self.print(time, None, message, RunEventData::Plan { plan: Box::new(plan) });
    }

    /// Prints the end of the run, and notifies of it unless there was nothing to do. Notifications
    /// have no words of an error, which may quote anything.
    pub(super) fn run_ended(&self, finished: &Finished) {
        let Finished { done, at, acted } = finished;
        let (exit, message) = match done {
            Ok(Exit::Done) if !acted => (Exit::Done, "nothing to do".to_owned()),
            Ok(exit) => (*exit, words(*exit).to_owned()),
            Err(error) => (error.exit(), error.to_string()),
        };
        let event = RunEventData::RunEnded { exit_code: exit.code() };
        self.print(*at, None, message, event.clone());
        if *acted || exit != Exit::Done {
            self.notify(*at, None, words(exit).to_owned(), event);
        }
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
        Exit::Blocked => "blocked by a guard",
        Exit::Locked => "locked by another run",
        Exit::Usage => "invalid command line",
        Exit::Interrupted => "interrupted",
        Exit::Terminated => "terminated",
    }
}
