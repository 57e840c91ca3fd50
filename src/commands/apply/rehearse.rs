//! `ds-apply --rehearse`: the same run on an embedded copy of the cluster, on virtual time.
//!
//! Below this, the code is that of a real rollout; only the client and the clock differ. Not here:
//! the embedded cluster (`embedded`).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::mpsc;

use super::asking::{CheckSource, RehearsedChecks};
use super::cli::Command;
use super::dispatch::in_session;
use super::event_stream::Finished;
use super::identity;
use super::session::Session;
use crate::connection;
use crate::error::{Error, RehearsalError};
use crate::exit::Exit;
use crate::flags::{GlobalFlags, name};
use crate::output::Format;
use crate::printer::Printer;
use crate::shell::Shell;
use cluster::{Holder, Scope};
use daemonset::model::mask::Salt;
use daemonset::model::{Faults, NamespaceName, Snapshot, Span};
use embedded::{Rehearsal, Timings, World, on_virtual_time};
use executor::Interrupt;
use planner::check_answers::CheckAnswers;
use planner::plan::ClusterSummary;
use planner::words::count;

/// The first line of the output, and the beginning of each heading.
const REHEARSAL: &str = "REHEARSAL";

pub(super) async fn run(
    command: Command,
    global: GlobalFlags,
    shell: Shell,
    interrupts: mpsc::Receiver<Interrupt>,
) -> Finished {
    let now = shell.now;
    let failed = |error| Finished { done: Err(error), at: now, acted: false };
    on_copy(command, global, shell, interrupts).await.unwrap_or_else(failed)
}

/// Runs the command on a copy of the cluster.
async fn on_copy(
    command: Command,
    global: GlobalFlags,
    shell: Shell,
    interrupts: mpsc::Receiver<Interrupt>,
) -> Result<Finished, Error> {
    if matches!(command, Command::Release(_)) {
        return Err(RehearsalError::ReleaseRehearsed.into());
    }
    let flags = command.common().map(|common| common.rehearsal.clone()).unwrap_or_default();
    let connection = connection::open(&global, &shell).await?;
    let scope = scope(&command, &global, &connection.default_namespace())?;
    let snapshot = connection.snapshot(&scope, &shell).await?;
    let faults = flags.fault.as_deref().map(read_faults).transpose()?;
    let recorded = flags.check_answers.as_deref().map(read_answers).transpose()?.map(Arc::new);
    if let Some(notifications) = &shell.notifications {
        notifications.name_cluster(ClusterSummary::from(&snapshot).name.as_deref());
    }
    let rehearsal = Rehearsal {
        timings: Timings::seen_in(&snapshot),
        faults: faults.unwrap_or_default(),
        seed: flags.seed,
    };
    // Virtual time needs a thread with its own runtime.
    let work = move || {
        let on_it = OnIt { command, global, shell, save: flags.save, recorded };
        on_virtual_time(on_it.run(snapshot, rehearsal, interrupts))
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done.map_err(Error::Process)?,
        Err(failed) => std::panic::resume_unwind(failed.into_panic()),
    }
}

/// The namespaces to read. No other request is sent, so any user who may plan may rehearse.
fn scope(command: &Command, global: &GlobalFlags, default: &NamespaceName) -> Result<Scope, Error> {
    Ok(match (command.names(), &global.namespace) {
        (Some(names), flag) => {
            let keys = name::keys(names, flag.as_ref(), default)?;
            Scope::Namespaces(keys.into_iter().map(|key| key.namespace).collect())
        }
        (None, Some(one)) => Scope::Namespaces([one.clone()].into()),
        (None, None) => Scope::All,
    })
}

/// The rehearsed run, on virtual time.
struct OnIt {
    command: Command,
    global: GlobalFlags,
    shell: Shell,
    save: Option<PathBuf>,
    /// The recorded answers of checks.
    recorded: Option<Arc<CheckAnswers>>,
}

impl OnIt {
    async fn run(
        self,
        snapshot: Snapshot,
        rehearsal: Rehearsal,
        interrupts: mpsc::Receiver<Interrupt>,
    ) -> Result<Finished, Error> {
        let Self { command, global, mut shell, save, recorded } = self;
        let seed = rehearsal.seed;
        let start = snapshot.observed_at;
        let approvals = rehearsal.faults.approvals.iter().map(|approval| {
            let after = approval.at.map_or(Duration::ZERO, |Span(after)| after);
            (approval.clone(), start.saturating_add(after).unwrap_or(start))
        });
        let approvals = approvals.collect();
        let answers = rehearsal.faults.checks.clone();
        let world = World::begin(&snapshot, rehearsal).map_err(RehearsalError::Load)?;
        let (nodes, masked) = (snapshot.nodes.len(), snapshot.coverage.masked);
        shell.now = snapshot.observed_at;
        drop(snapshot);
        // Everything is deterministic, including the identity of the lock holder.
        let holder = Holder { id: format!("{seed:016x}"), ..identity::holder(&shell)? };
        let again = planned_again(&command);
        let (output, printer) = (command.output(), shell.printer);
        let report = command.common().and_then(|common| common.report.clone());
        let about = "on an embedded copy of the cluster; the cluster itself is not changed";
        title(about, output, printer)?;
        let on = session_on(&shell, &world, holder.clone(), masked, interrupts);
        let mut on = on.with_output(output, report);
        on.rehearsed_approvals = approvals;
        on.checks = CheckSource::Rehearsed(RehearsedChecks { answers, recorded, start });
        let done = in_session(command.approved(), &global, &mut on).await;
        let took = world.clock().now();
        let mut done = on.reported(done, printer);
        let acted = on.has_acted();
        let is_done = matches!(done, Ok(Exit::Done)) && acted;
        if let Some(again) = again.filter(|_| is_done) {
            // Run it again: the plan shows what is left.
            let (_nobody, quiet) = mpsc::channel(1);
            shell.now = took;
            if !printer.is_quiet() {
                title("what is left afterwards", output, printer)?;
            }
            let on = session_on(&shell, &world, holder, masked, quiet);
            let mut on = on.with_output(output, None);
            done = in_session(again, &global, &mut on).await;
        }
        if let Some(file) = save {
            let recorded = world.cluster().record(&Scope::All, None, world.clock().now()).await?;
            recorded.masked_before(masked).save(&file)?;
        }
        let charts = render::rollout_charts(on.runs());
        if !charts.is_empty() {
            printer.remark(format!("{REHEARSAL}  {charts}"));
        }
        if acted {
            printer.remark(summary(nodes, world.clock().start(), took));
        }
        Ok(Finished { done, at: took, acted: on.has_acted() })
    }
}

/// Prints a heading. Events have a field instead.
fn title(words: &str, output: Format, printer: Printer) -> Result<(), Error> {
    let printer = match output {
        Format::Json => return Ok(()),
        // Standard output has only the page.
        Format::Html => printer.on_stderr(),
        Format::Text | Format::Yaml | Format::Markdown | Format::Name => printer,
    };
    printer.out(format!("{REHEARSAL}  {words}\n")).map_err(Error::Output)
}

/// A new session on the embedded cluster; `masked` is the salt if its values are masked.
fn session_on(
    shell: &Shell,
    world: &World,
    holder: Holder,
    masked: Option<Salt>,
    interrupts: mpsc::Receiver<Interrupt>,
) -> Session {
    let cluster = world.cluster().writable();
    let mut on = Session::on(cluster, shell, holder, world.clock().for_leases(), interrupts);
    on.masked = masked;
    on
}

/// The command for a second run, if it plans from a source and so can show that nothing is left.
fn planned_again(command: &Command) -> Option<Command> {
    let Command::Apply(args) = command else { return None };
    let approved = || Command::Apply(args.clone()).approved();
    args.plans_again().then(approved)
}

fn read_faults(file: &Path) -> Result<Faults, Error> {
    let text = fs::read_to_string(file)
        .map_err(|source| RehearsalError::OpenFaults { file: file.to_owned(), source })?;
    let faults = serde_saphyr::from_str(&text).map_err(|error| RehearsalError::Faults {
        file: file.to_owned(),
        reason: error.to_string(),
    })?;
    Ok(faults)
}

fn read_answers(file: &Path) -> Result<CheckAnswers, Error> {
    let text = fs::read_to_string(file)
        .map_err(|source| RehearsalError::OpenAnswers { file: file.to_owned(), source })?;
    let answers = serde_json::from_str(&text).map_err(|error| RehearsalError::Answers {
        file: file.to_owned(),
        reason: error.to_string(),
    })?;
    Ok(answers)
}

/// The duration of the run, by the clock of the cluster.
fn summary(nodes: usize, began: Timestamp, ended: Timestamp) -> String {
    let took = SignedDuration::from_secs(ended.duration_since(began).as_secs());
    format!(
        "{REHEARSAL}  {}: {took:#} of the cluster's time; no changes were made to the cluster\n",
        count(nodes, "node"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_has_the_duration() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let text = summary(1_412, at(0), at(3_725));
        assert_eq!(
            text,
            "REHEARSAL  1,412 nodes: 1h 2m 5s of the cluster's time; no changes were made to the \
             cluster\n"
        );
    }
}
