//! What must be agreed to before anything is written: the plan, its guards, and a person's yes.

use std::borrow::Cow;
use std::io::{self, BufRead as _};

use jiff::Timestamp;

use super::flags::{AllowFlags, CommonFlags};
use super::session::Session;
use super::told::Format;
use super::turn::Turn;
use super::turns;
use super::way_back;
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::shell::Shell;
use crate::cli::warnings;
use crate::model::{DesiredDaemonSet, Snapshot};
use crate::plan::{self, Binding, Guard, Plan, Prune, SourceInfo, Warning};
use crate::render;
use crate::source::FilesVersion;

/// A plan that is to be carried out.
pub(super) struct Asking<'a> {
    /// How it is carried out.
    pub args: &'a CommonFlags,
    /// The plan.
    pub agreed: &'a Plan,
    /// Which version the manifests are when they are of no commit.
    pub version: Option<&'a FilesVersion>,
    /// How much of it binds.
    pub binding: Binding,
}

impl Asking<'_> {
    /// Shows the plan and asks, unless it was agreed to before; whether there is anything to do.
    ///
    /// # Errors
    /// A guard refuses it, or nobody agrees.
    pub(super) fn agree(&self, shell: &Shell, before: bool) -> Result<bool, Error> {
        show(self.agreed, None, self.args, shell)?;
        let refusals = refusals(self.agreed, self.args.allow);
        if !refusals.is_empty() {
            return Err(Error::Refused(refusals));
        }
        if !self.agreed.has_changes() {
            return Ok(false);
        }
        if !self.args.yes && !before {
            ask(shell)?;
        }
        Ok(true)
    }

    /// Carries out one DaemonSet after the other. The first that is held stops the rest, unless
    /// told otherwise.
    ///
    /// # Errors
    /// One of them cannot be carried out.
    pub(super) async fn each(
        &self,
        desired: &[&DesiredDaemonSet],
        session: &mut Session,
    ) -> Result<Exit, Error> {
        let Self { args, agreed, version, binding } = *self;
        let each = desired
            .iter()
            .map(|&desired| Turn { args, agreed, version, binding, desired })
            .collect();
        turns::take(each, args.keep_going, session).await
    }
}

/// What is asked for.
pub(super) struct Asked<'a> {
    /// The DaemonSets.
    pub desired: &'a [DesiredDaemonSet],
    /// Where they came from.
    pub source: SourceInfo,
    /// What was noticed while reading them.
    pub warnings: Vec<Warning>,
    /// What is deleted besides.
    pub prune: Option<Prune<'a>>,
}

impl<'a> Asked<'a> {
    /// Those, and nothing else.
    pub(super) fn only(desired: &'a [DesiredDaemonSet], source: SourceInfo) -> Self {
        Self { desired, source, warnings: Vec::new(), prune: None }
    }
}

/// The plan of what is asked for, on this snapshot; where a way back is still to be finished, of
/// that.
pub(super) fn planned(
    snapshot: &Snapshot,
    wanted: Asked<'_>,
    args: &CommonFlags,
    created_at: Timestamp,
) -> Plan {
    let Asked { desired, source, warnings, prune } = wanted;
    let mut desired = Cow::Borrowed(desired);
    for at in 0..desired.len() {
        if let Some(goal) = way_back::unfinished(snapshot, &desired[at], args) {
            desired.to_mut()[at] = goal;
        }
    }
    plan::plan(plan::Input {
        take_over: &args.ownership.names(),
        prune,
        source,
        warnings,
        created_at,
        ..plan::Input::of(snapshot, &desired)
    })
}

/// Shows a plan, under a heading if there is one. A guard that is allowed is a warning.
pub(super) fn show(
    plan: &Plan,
    heading: Option<&str>,
    args: &CommonFlags,
    shell: &Shell,
) -> Result<(), Error> {
    let guards = refusals(plan, args.allow);
    let allowed = plan.guards.iter().filter(|guard| args.allow.passes(guard.code));
    warnings::print(&plan.warnings, shell.printer);
    warnings::print(&allowed.map(as_warning).collect::<Vec<_>>(), shell.printer);
    match args.output {
        Format::Text | Format::Html => {
            let plan = Plan { warnings: Vec::new(), guards, ..plan.clone() };
            let text = render::plan_text(&plan, &shell.text_options(false));
            let heading = heading.map(|words| format!("{words}\n")).unwrap_or_default();
            shell.printer.out(format!("{heading}{text}")).map_err(Error::Output)
        }
        // One event a line; the plan is `ds-plan -o json`'s affair.
        Format::Json => Ok(()),
    }
}

/// What the command line allows.
fn as_warning(guard: &Guard) -> Warning {
    let Guard { code: _, message, allow_flag: _, daemon_set, nodes } = guard;
    Warning {
        code: "allowed".to_owned(),
        message: format!("{message} (allowed)"),
        daemon_set: daemon_set.clone(),
        nodes: nodes.clone(),
    }
}

/// Whether a plan that was made again is still what was agreed to.
///
/// # Errors
/// It is not, or a guard has come up since.
pub(super) fn still_agreed(
    agreed: &Plan,
    now: &Plan,
    binding: Binding,
    allow: AllowFlags,
) -> Result<(), Error> {
    let stale = plan::stale(agreed, now, binding);
    if !stale.is_empty() {
        return Err(Error::Stale(stale));
    }
    let refusals = refusals(now, allow);
    if refusals.is_empty() { Ok(()) } else { Err(Error::Refused(refusals)) }
}

/// The guards of the plan that nobody has allowed.
fn refusals(plan: &Plan, allow: AllowFlags) -> Vec<Guard> {
    plan.guards.iter().filter(|guard| !allow.passes(guard.code)).cloned().collect()
}

/// Asks whether to go on; `yes` is the only answer that does.
pub(super) fn ask(shell: &Shell) -> Result<(), Error> {
    if !shell.terminal {
        return Err(Error::NobodyToAsk);
    }
    shell.printer.err("Carry this out? Only `yes` goes on: ");
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(Error::Answer)?;
    if answer.trim() == "yes" { Ok(()) } else { Err(Error::Declined) }
}
