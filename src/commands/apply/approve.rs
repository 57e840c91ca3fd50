//! Approval before anything is written: the plan is shown, guards are checked, and the user is
//! asked.

use std::collections::BTreeSet;
use std::io::{self, BufRead as _};

use super::daemon_set_apply::DaemonSetApply;
use super::event_stream::EventStream;
use super::flags::CommonFlags;
use super::in_sequence;
use super::permitted;
use super::planning::blocking_guards;
use super::predecessors::Predecessors;
use super::session::Session;
use super::together::units;
use crate::error::Error;
use crate::exit::Exit;
use crate::output::Format;
use crate::shell::Shell;
use crate::warnings;
use daemonset::model::{DaemonSetKey, DesiredDaemonSet, ManagedBy};
use executor::permissions::Errand;
use planner::plan::{Binding, DaemonSetPlan, Guard, Plan, Warning};
use render::neutral;
use source::FilesVersion;

/// The remark below the plan of `--dry-run`.
pub(super) const DRY_RUN: &str = "dry run: nothing was changed\n";

/// A plan that is to be applied.
pub(super) struct Asking<'a> {
    /// The flags of the command.
    pub args: &'a CommonFlags,
    /// The plan to approve.
    pub approved: &'a Plan,
    /// The version of the manifests if they are plain files.
    pub version: Option<&'a FilesVersion>,
    /// The parts of the approved plan that must not change.
    pub binding: Binding,
    /// The DaemonSets that come before others.
    pub predecessors: &'a Predecessors,
}

impl Asking<'_> {
    /// Shows the plan made `now`, checks guards and permissions, and asks. `errands` are the writes
    /// of the plan. With `before`, a saved plan is approved already: it is asked for again only on
    /// a terminal.
    ///
    /// A guard about one DaemonSet blocks only that one; the others are applied.
    ///
    /// # Errors
    /// Guards block the whole plan, a permission is missing, or the user does not approve.
    pub(super) async fn approve(
        &self,
        now: &Plan,
        errands: &[Errand],
        before: bool,
        session: &mut Session,
    ) -> Result<Approved, Error> {
        show(now, None, self.args, &session.shell)?;
        let guards = blocking_guards(now, self.args.allow);
        let blocked = blocked_alone(now, &guards);
        if !guards.is_empty() {
            let error = Error::Blocked(guards);
            if blocked.is_empty() {
                return Err(error);
            }
            session.report(&error);
        }
        if self.args.dry_run {
            session.shell.printer.remark(DRY_RUN);
            return Ok(Approved { any: false, blocked });
        }
        let open = now.daemon_sets.iter().filter(|one| !blocked.contains(&one.key()));
        if !open.clone().any(DaemonSetPlan::has_changes) {
            return Ok(Approved { any: false, blocked });
        }
        let is_open = |errand: &&Errand| !blocked.iter().any(|key| errand.is_of(key));
        let errands: Vec<Errand> = errands.iter().filter(is_open).cloned().collect();
        permitted::check(&errands, permitted::paused(now), session).await?;
        if !self.args.yes && (session.shell.terminal || !before) {
            ask(&session.shell)?;
        }
        Ok(Approved { any: true, blocked })
    }

    /// Applies one DaemonSet after the other, except for those that guards block, and those that
    /// share a budget at the same time. The first that is
    /// paused stops the rest, unless `--keep-going` is given.
    ///
    /// # Errors
    /// One of them cannot be applied.
    pub(super) async fn each(
        &self,
        desired: &[&DesiredDaemonSet],
        blocked: &BTreeSet<DaemonSetKey>,
        session: &mut Session,
    ) -> Result<Exit, Error> {
        let Self { args, approved, version, binding, predecessors } = *self;
        for key in blocked {
            session.set_exit(key, Exit::Blocked);
        }
        let open = desired.iter().filter(|one| !blocked.contains(&one.key));
        let turn =
            |&desired| DaemonSetApply { args, approved, version, binding, predecessors, desired };
        let exit = in_sequence::take(units(open.map(turn)), args.keep_going, session).await?;
        Ok(if blocked.is_empty() { exit } else { exit.or_more_severe(Exit::Blocked) })
    }
}

/// The result of an approval.
pub(super) struct Approved {
    /// Whether there are changes to apply.
    pub any: bool,
    /// The DaemonSets that a guard blocks.
    pub blocked: BTreeSet<DaemonSetKey>,
}

/// The DaemonSets that guards block individually; empty if nothing else is to be done, or if a
/// guard is about the whole source.
fn blocked_alone(plan: &Plan, guards: &[Guard]) -> BTreeSet<DaemonSetKey> {
    let about: Option<BTreeSet<&str>> =
        guards.iter().map(|guard| guard.daemon_set.as_deref()).collect();
    // A guard without a DaemonSet is about the whole source.
    let Some(about) = about else { return BTreeSet::new() };
    let is_blocked = |one: &&DaemonSetPlan| about.contains(one.key().to_string().as_str());
    let (blocked, open): (Vec<_>, Vec<_>) = plan.daemon_sets.iter().partition(is_blocked);
    let acts = |one: &&DaemonSetPlan| one.has_changes() || one.managed_by == ManagedBy::DsApply;
    if !open.iter().any(acts) {
        return BTreeSet::new();
    }
    blocked.into_iter().map(DaemonSetPlan::key).collect()
}

/// Prints a plan below an optional heading. Allowed guards are printed as warnings.
pub(super) fn show(
    plan: &Plan,
    heading: Option<&str>,
    args: &CommonFlags,
    shell: &Shell,
) -> Result<(), Error> {
    let guards = blocking_guards(plan, args.allow);
    let allowed = plan.guards.iter().filter(|guard| args.allow.passes(guard.code));
    warnings::print(&plan.warnings, shell.printer);
    warnings::print(&allowed.map(as_warning).collect::<Vec<_>>(), shell.printer);
    let plan = Plan { rehearsal: shell.rehearsal, ..plan.clone() };
    if args.output == Format::Json {
        EventStream::of(shell, args.output).plan(plan);
        return Ok(());
    }
    if shell.printer.is_quiet() && args.yes {
        return Ok(());
    }
    let plan = Plan { warnings: Vec::new(), guards, ..plan };
    let text = render::plan_text(&plan, &shell.text_options(false));
    let heading = heading.map(|words| format!("{words}\n")).unwrap_or_default();
    shell.printer.out(format!("{heading}{text}")).map_err(Error::Output)
}

/// The warning for a guard that the command line allows.
fn as_warning(guard: &Guard) -> Warning {
    let Guard { code: _, message, allow_flag: _, daemon_set, nodes } = guard;
    Warning {
        code: "allowed".to_owned(),
        message: format!("{message} (allowed)"),
        daemon_set: daemon_set.clone(),
        nodes: nodes.clone(),
    }
}

/// Asks the user to continue; only `yes` is accepted.
pub(super) fn ask(shell: &Shell) -> Result<(), Error> {
    ask_whether("Continue?", shell)
}

/// Asks the user a question; only `yes` is accepted.
pub(super) fn ask_whether(question: &str, shell: &Shell) -> Result<(), Error> {
    if !shell.terminal {
        return Err(Error::NoTerminal);
    }
    shell.printer.err(format!("{} Only `yes` is accepted: ", neutral::line(question)));
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer).map_err(Error::Answer)?;
    if answer.trim() == "yes" { Ok(()) } else { Err(Error::Declined) }
}
