//! `ds-apply undo`: an earlier template again, paced like any other change.

use super::agree::{Asking, planned};
use super::flags::CommonFlags;
use super::on_live::{Wanted, find, hold, with_template};
use super::session::Session;
use super::turns::Turns;
use crate::cli::error::Error;
use crate::cli::exit::Exit;
use crate::controller::revision_data::{Matching, matches, template_of};
use crate::model::{
    CHANGE_CAUSE_ANNOTATION, DaemonSet, DaemonSetKey, DesiredDaemonSet, PodTemplate, Revision,
    RevisionNumber, Snapshot,
};
use crate::plan::{
    Binding, COMMIT_ANNOTATION, Hold, HoldState, NoSuchRevision, Plan, SourceInfo, template_digest,
};
use crate::source::FilesVersion;

/// Go back to an earlier revision, in waves
///
/// Without a revision: to the one before; of a parked rollout, all the way back to the template
/// that is live again. Git still asks for what was undone, so the commit to revert is printed.
#[derive(clap::Args, Clone, Debug)]
pub(in crate::cli) struct Args {
    /// Which DaemonSets
    #[arg(value_name = "NAMESPACE/NAME", required = true)]
    names: Vec<DaemonSetKey>,

    /// To the revision with this number; `ds-plan history` lists them
    #[arg(long, value_name = "N", conflicts_with = "to_commit")]
    to_revision: Option<i64>,

    /// To the latest revision of this commit
    #[arg(long, value_name = "SHA", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    to_commit: Option<String>,

    #[command(flatten)]
    common: CommonFlags,
}

pub(super) async fn run(args: &Args, session: &mut Session) -> Result<Exit, Error> {
    let mut turns = Turns::new(args.common.keep_going, session.shell.printer);
    for key in &args.names {
        if !turns.goes_on(one(args, key, session).await)? {
            break;
        }
    }
    Ok(turns.exit())
}

async fn one(args: &Args, key: &DaemonSetKey, session: &mut Session) -> Result<Exit, Error> {
    let snapshot = session.snapshot(key).await?;
    let live = find(&snapshot, key)?;
    let hold = hold(live)?;
    let (template, revision) = target(args, &snapshot, live, hold.as_ref())?;
    let mut desired = with_template(live, hold.as_ref(), &template)?;
    record_cause(&mut desired, revision);
    args.common.pace.put_over(&mut desired);
    let undone = undone(live, hold.as_ref());
    let version = last_commit(revision).map(|id| FilesVersion { id, subject: None });
    let commit = version.as_ref().map(|it| it.id.clone()).filter(|id| !id.contains(':'));
    let source = SourceInfo { commit, ..SourceInfo::default() };
    let plan = planned(
        &snapshot,
        std::slice::from_ref(&desired),
        source,
        Vec::new(),
        &args.common,
        session.shell.now,
    );
    exactly(&plan, &template, key)?;
    let binding = Binding::Reasons;
    let asking = Asking { args: &args.common, agreed: &plan, version: version.as_ref(), binding };
    if !asking.agree(&session.shell, false)? {
        return Ok(Exit::Done);
    }
    let exit = asking.each(&[&desired], session).await?;
    if let Some(commit) = undone.filter(|_| exit == Exit::Done) {
        let words =
            format!("git still asks for what was undone: `git revert {commit}` makes it last\n");
        session.shell.printer.out(words).map_err(Error::Output)?;
    }
    Ok(exit)
}

/// The commit that git still asks for: the one that was applied last, whether or not it failed.
fn undone(live: &DaemonSet, hold: Option<&Hold>) -> Option<String> {
    let failed = hold.and_then(|hold| hold.commit.clone());
    failed.or_else(|| live.annotations.get(COMMIT_ANNOTATION).map(str::to_owned))
}

/// The template to go back to, and its revision.
fn target<'s>(
    args: &Args,
    snapshot: &'s Snapshot,
    live: &DaemonSet,
    hold: Option<&Hold>,
) -> Result<(PodTemplate, Option<&'s Revision>), Error> {
    let wanted = match (&args.to_revision, &args.to_commit) {
        (Some(number), _) => Wanted::Number(RevisionNumber(*number)),
        (None, Some(commit)) => Wanted::Commit(commit.clone()),
        (None, None) => Wanted::Before,
    };
    let mut own: Vec<&Revision> = snapshot
        .revisions_in(&live.key.namespace)
        .iter()
        .filter(|it| it.controller.as_ref().is_some_and(|owner| owner.uid == live.uid))
        .collect();
    own.sort_by_key(|revision| revision.number);
    let is_live = |it: &Revision| matches(live.spec.template.raw(), &it.data, Matching::Tolerant);
    let parked = hold.is_some_and(|hold| hold.state == HoldState::Parked);
    let found = match &wanted {
        // Never forward to the template that failed.
        Wanted::Before if parked => own.iter().rfind(|it| is_live(it)),
        Wanted::Before => own.iter().rfind(|it| !is_live(it)),
        Wanted::Number(number) => own.iter().find(|it| it.number == *number),
        Wanted::Commit(commit) => own.iter().rfind(|it| is_of(it, commit)),
    };
    let Some(&revision) = found else {
        let known = own.iter().map(|it| it.number).collect();
        return Err(match wanted {
            Wanted::Number(number) => {
                NoSuchRevision { daemon_set: live.key.clone(), number, known }.into()
            }
            Wanted::Before => Error::NothingBefore(live.key.clone()),
            Wanted::Commit(commit) => Error::NoRevisionOf { daemon_set: live.key.clone(), commit },
        });
    };
    let template = template_of(&revision.data).unwrap_or_default();
    let template = serde_json::from_value(template)
        .map_err(|source| Error::RevisionUnreadable { revision: revision.name.clone(), source })?;
    Ok((template, Some(revision)))
}

/// Whether a revision was applied from this commit.
fn is_of(revision: &Revision, commit: &str) -> bool {
    let commits = revision.annotations.get(COMMIT_ANNOTATION).unwrap_or_default();
    commits.split(',').any(|one| one.starts_with(commit))
}

fn last_commit(revision: Option<&Revision>) -> Option<String> {
    let commits = revision?.annotations.get(COMMIT_ANNOTATION)?;
    commits.rsplit(',').next().map(str::to_owned)
}

/// The change-cause goes back with the template, as `kubectl rollout undo` has it.
fn record_cause(desired: &mut DesiredDaemonSet, revision: Option<&Revision>) {
    let cause = revision.and_then(|it| it.annotations.get(CHANGE_CAUSE_ANNOTATION));
    let others = desired.annotations.iter().filter(|(key, _)| *key != CHANGE_CAUSE_ANNOTATION);
    desired.annotations =
        others.chain(cause.map(|cause| (CHANGE_CAUSE_ANNOTATION, cause))).collect();
}

/// Going back halfway is another revision. Fields that others own would stay.
fn exactly(plan: &Plan, template: &PodTemplate, key: &DaemonSetKey) -> Result<(), Error> {
    let wanted = template_digest(template.raw());
    match plan.daemon_sets.iter().find(|one| one.target_template != wanted) {
        None => Ok(()),
        Some(one) => {
            Err(Error::FieldsStay { daemon_set: key.clone(), fields: one.leftovers.clone() })
        }
    }
}
