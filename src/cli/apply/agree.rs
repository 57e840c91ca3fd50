//! What must be agreed to before anything is written: the plan, its guards, and a person's yes.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, BufRead as _};

use jiff::Timestamp;

use super::flags::{AllowFlags, CommonFlags};
use super::permitted;
use super::session::Session;
use super::told::Format;
use super::turn::Turn;
use super::turns::{self, InTurn};
use super::way_back;
use crate::apply::permissions::Errand;
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::cli::report;
use crate::cli::shell::Shell;
use crate::cli::warnings;
use crate::model::{DaemonSetKey, DesiredDaemonSet, ManagedBy, Snapshot};
use crate::plan::{self, Binding, DaemonSetPlan, Guard, Plan, Prune, SourceInfo, Warning};
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
    /// Shows the plan as it is made `now` and asks; what there is to do. `errands` is what carrying
    /// it out does. What was agreed to before is asked for again where somebody can be asked.
    ///
    /// A guard about one DaemonSet refuses that one, and the others are carried out.
    ///
    /// # Errors
    /// A guard refuses all of it, it is not permitted, or nobody agrees.
    pub(super) async fn agree(
        &self,
        now: &Plan,
        errands: &[Errand],
        before: bool,
        session: &mut Session,
    ) -> Result<Agreed, Error> {
        show(now, None, self.args, &session.shell)?;
        let refusals = refusals(now, self.args.allow);
        let refused = refused_alone(now, &refusals);
        if !refusals.is_empty() {
            let error = Error::Refused(refusals);
            if refused.is_empty() {
                return Err(error);
            }
            report(&error, session.shell.printer);
        }
        let open = now.daemon_sets.iter().filter(|one| !refused.contains(&one.key()));
        if !open.clone().any(DaemonSetPlan::has_changes) {
            return Ok(Agreed { any: false, refused });
        }
        let is_open = |errand: &&Errand| !refused.iter().any(|key| errand.is_of(key));
        let errands: Vec<Errand> = errands.iter().filter(is_open).cloned().collect();
        permitted::check(&errands, permitted::held(now), session).await?;
        if !self.args.yes && (session.shell.terminal || !before) {
            ask(&session.shell)?;
        }
        Ok(Agreed { any: true, refused })
    }

    /// Carries out one DaemonSet after the other, but for those that were refused. The first that is
    /// held stops the rest, unless told otherwise.
    ///
    /// # Errors
    /// One of them cannot be carried out.
    pub(super) async fn each(
        &self,
        desired: &[&DesiredDaemonSet],
        refused: &BTreeSet<DaemonSetKey>,
        session: &mut Session,
    ) -> Result<Exit, Error> {
        let Self { args, agreed, version, binding } = *self;
        let turn = |&desired| Turn { args, agreed, version, binding, desired };
        let (not, each): (Vec<Turn<'_>>, Vec<Turn<'_>>) =
            desired.iter().map(turn).partition(|turn| refused.contains(&turn.desired.key));
        let first = not.iter().map(InTurn::order).min();
        let exit = turns::take_but(each, first, args.keep_going, session).await?;
        Ok(if refused.is_empty() { exit } else { exit.or_graver(Exit::Refused) })
    }
}

/// What there is to do.
pub(super) struct Agreed {
    /// Whether there is anything.
    pub any: bool,
    /// The DaemonSets that a guard refuses.
    pub refused: BTreeSet<DaemonSetKey>,
}

/// The DaemonSets that guards refuse, each by itself; empty when they refuse all there is to do.
fn refused_alone(plan: &Plan, refusals: &[Guard]) -> BTreeSet<DaemonSetKey> {
    let about: Option<BTreeSet<&str>> =
        refusals.iter().map(|guard| guard.daemon_set.as_deref()).collect();
    // One is about the source as a whole.
    let Some(about) = about else { return BTreeSet::new() };
    let is_refused = |one: &&DaemonSetPlan| about.contains(one.key().to_string().as_str());
    let (refused, open): (Vec<_>, Vec<_>) = plan.daemon_sets.iter().partition(is_refused);
    let acts = |one: &&DaemonSetPlan| one.has_changes() || one.managed_by == ManagedBy::DsApply;
    if !open.iter().any(acts) {
        return BTreeSet::new();
    }
    refused.into_iter().map(DaemonSetPlan::key).collect()
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
    not_refused(now, allow)
}

/// Whether no guard stands in the way of a plan.
///
/// # Errors
/// Those that nobody has allowed.
pub(super) fn not_refused(plan: &Plan, allow: AllowFlags) -> Result<(), Error> {
    let refusals = refusals(plan, allow);
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
