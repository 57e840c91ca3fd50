//! `ds-apply undo`: rolls back to an earlier template, paced like any other change.

use super::approve::{ApprovalRequest, Approved, Asking, planned};
use super::flags::NamedFlags;
use super::in_sequence::{self, InSequence};
use super::live_object::{find, pause, with_template};
use super::permitted;
use super::session::Session;
use crate::error::Error;
use crate::exit::Exit;
use daemonset::controller::revision_data::{Matching, matches, template_of};
use daemonset::model::{
    CHANGE_CAUSE_ANNOTATION, DaemonSet, DaemonSetKey, DesiredDaemonSet, PodTemplate, Revision,
    RevisionNumber, Snapshot, is_commit_id,
};
use executor::permissions::Work;
use planner::plan::{
    Binding, COMMIT_ANNOTATION, NoSuchRevision, PauseState, PausedRollout, Plan, SourceInfo,
    template_digest,
};
use source::FilesVersion;

/// Roll back to an earlier revision, in waves
///
/// Without a revision: to the previous one; for an aborted rollout, to the template that is live
/// again. Git still declares what was undone, so the commit to revert is printed.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Roll back to the revision with this number; `ds-plan history` lists them
    #[arg(long, value_name = "N", conflicts_with = "to_commit")]
    to_revision: Option<i64>,

    /// Roll back to the latest revision of this commit
    #[arg(long, value_name = "SHA", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    to_commit: Option<String>,

    #[command(flatten)]
    pub(super) named: NamedFlags,
}

pub(super) async fn run(args: &Args, session: &mut Session) -> Result<Exit, Error> {
    let NamedFlags { names, common } = &args.named;
    permitted::check_named(names, Work::Change { creates: false }, session).await?;
    let each = names.iter().map(|key| One { key, args }).collect();
    in_sequence::take(each, common.keep_going, session).await
}

/// The undo of one DaemonSet.
struct One<'a> {
    key: &'a DaemonSetKey,
    args: &'a Args,
}

impl InSequence for One<'_> {
    async fn run(&self, session: &mut Session) -> Result<Exit, Error> {
        undo(self.args, self.key, session).await
    }
}

async fn undo(args: &Args, key: &DaemonSetKey, session: &mut Session) -> Result<Exit, Error> {
    let snapshot = session.snapshot(key).await?;
    let live = find(&snapshot, key)?;
    let pause = pause(live)?;
    let (template, revision) = target(args, &snapshot, live, pause.as_ref())?;
    let mut desired = with_template(live, pause.as_ref(), &template)?;
    record_cause(&mut desired, revision);
    args.named.common.pace.put_over(&mut desired);
    let undone = undone(live, pause.as_ref());
    let version = last_commit(revision).map(|id| FilesVersion { id, subject: None });
    let commit = version.as_ref().map(|it| it.id.clone()).filter(|id| !id.contains(':'));
    let source = SourceInfo { commit, ..SourceInfo::default() };
    let wanted = ApprovalRequest::only(std::slice::from_ref(&desired), source);
    let plan = planned(&snapshot, wanted, &args.named.common, session.shell.now);
    exactly(&plan, &template, key)?;
    let binding = Binding::Reasons;
    let asking =
        Asking { args: &args.named.common, approved: &plan, version: version.as_ref(), binding };
    let Approved { any, refused } =
        asking.approve(&plan, &permitted::errands(&plan), false, session).await?;
    if !any {
        return Ok(Exit::Done);
    }
    let exit = asking.each(&[&desired], &refused, session).await?;
    if let Some(version) = undone.filter(|_| exit == Exit::Done) {
        session.shell.printer.out(to_make_it_last(&version)).map_err(Error::Output)?;
    }
    Ok(exit)
}

/// The next step in git, which still declares the template that was undone.
fn to_make_it_last(version: &str) -> String {
    if is_commit_id(version) {
        format!("git still declares what was undone; to revert it there: `git revert {version}`\n")
    } else {
        format!("what was undone is of no commit ({version}); the manifests still declare it\n")
    }
}

/// The version that git still declares: the one that was applied last, even if it failed.
fn undone(live: &DaemonSet, pause: Option<&PausedRollout>) -> Option<String> {
    let failed = pause.and_then(|pause| pause.commit.clone());
    failed.or_else(|| live.annotations.get(COMMIT_ANNOTATION).map(str::to_owned))
}

/// The revision to roll back to.
#[derive(Clone, Debug)]
enum Wanted {
    /// The previous one; for an aborted rollout, the live one.
    Before,
    /// The one with this number.
    Number(RevisionNumber),
    /// The latest one of a commit whose id begins with this text.
    Commit(String),
}

/// The template to roll back to, and its revision.
fn target<'s>(
    args: &Args,
    snapshot: &'s Snapshot,
    live: &DaemonSet,
    pause: Option<&PausedRollout>,
) -> Result<(PodTemplate, &'s Revision), Error> {
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
    let aborted = pause.is_some_and(|pause| pause.state == PauseState::Aborted);
    let found = match &wanted {
        // Never forward to the template that failed.
        Wanted::Before if aborted => own.iter().rfind(|it| is_live(it)),
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
    Ok((template, revision))
}

/// Whether a revision was applied from this commit.
fn is_of(revision: &Revision, commit: &str) -> bool {
    let commits = revision.annotations.get(COMMIT_ANNOTATION).unwrap_or_default();
    commits.split(',').any(|one| one.starts_with(commit))
}

fn last_commit(revision: &Revision) -> Option<String> {
    let commits = revision.annotations.get(COMMIT_ANNOTATION)?;
    commits.rsplit(',').next().map(str::to_owned)
}

/// Restores the change-cause together with the template, as `kubectl rollout undo` does.
fn record_cause(desired: &mut DesiredDaemonSet, revision: &Revision) {
    let cause = revision.annotations.get(CHANGE_CAUSE_ANNOTATION);
    let others = desired.annotations.iter().filter(|(key, _)| *key != CHANGE_CAUSE_ANNOTATION);
    desired.annotations =
        others.chain(cause.map(|cause| (CHANGE_CAUSE_ANNOTATION, cause))).collect();
}

/// Checks that the plan restores the template exactly. Fields of other field managers would be
/// kept, and give a different revision.
fn exactly(plan: &Plan, template: &PodTemplate, key: &DaemonSetKey) -> Result<(), Error> {
    let wanted = template_digest(template.raw());
    match plan.daemon_sets.iter().find(|one| one.target_template != wanted) {
        None => Ok(()),
        Some(one) => {
            Err(Error::FieldsStay { daemon_set: key.clone(), fields: one.leftovers.clone() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_full_commits_are_reverted() {
        let id = "4f2c9e1d0b5a4f2c9e1d0b5a4f2c9e1d0b5a1234";
        for (version, reverts) in
            [(id.to_owned(), true), (format!("{id}-dirty"), false), (format!("sha256:{id}"), false)]
        {
            let words = to_make_it_last(&version);
            assert_eq!(words.contains("git revert"), reverts, "{words}");
            assert!(words.contains(&version), "{words}");
        }
    }
}
