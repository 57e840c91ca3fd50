//! `ds-apply undo`: rolls back to an earlier template, paced like any other change.

use super::approve::{Approved, Asking};
use super::flags::{NamedFlags, PolicyFlags};
use super::in_sequence::{self, InSequence};
use super::permitted;
use super::planning::{ApprovalRequest, planned};
use super::predecessors::Predecessors;
use super::progress::SuggestedUndo;
use super::session::{Session, find};
use crate::error::Error;
use crate::exit::Exit;
use crate::input::policies;
use crate::output::Format;
use crate::warnings;
use daemonset::model::{DaemonSetKey, RevisionNumber, is_commit_id};
use executor::permissions::Work;
use manifest::Policies;
use planner::plan::{Binding, SourceInfo};
use planner::rollback::{Rollback, WantedRevision, check_exact, rollback};
use source::FilesVersion;

/// Roll back to an earlier revision, in waves
///
/// Without a revision: to the last good one. That is the one before a rollout that is paused, waits,
/// or was aborted or interrupted; without such a rollout, the previous revision. It waits for no
/// soak, window or approval. Git still declares what was undone: the commit up to which to revert is
/// printed, if it is certain.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// Roll back to the revision with this number; `ds-plan history` lists them
    #[arg(long, value_name = "N", conflicts_with = "to_commit")]
    to_revision: Option<i64>,

    /// Roll back to the latest revision of this commit
    ///
    /// Its id, or the first characters if no other commit of a revision begins with them. Uncommitted
    /// files are of no commit: write out `ID-dirty`.
    #[arg(long, value_name = "SHA", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    to_commit: Option<String>,

    #[command(flatten)]
    policies: PolicyFlags,

    #[command(flatten)]
    pub(super) named: NamedFlags,
}

impl Args {
    fn wanted(&self) -> WantedRevision {
        match (&self.to_revision, &self.to_commit) {
            (Some(number), _) => WantedRevision::Number(RevisionNumber(*number)),
            (None, Some(commit)) => WantedRevision::Commit(commit.clone()),
            (None, None) => WantedRevision::Before,
        }
    }
}

pub(super) async fn run(
    args: &Args,
    keys: &[DaemonSetKey],
    session: &mut Session,
) -> Result<Exit, Error> {
    session.suggested_undo = SuggestedUndo::Earlier;
    // Read once, before anything is rolled back.
    let policies = &policies::of_files(&args.policies.policy, &session.shell)?;
    if !args.named.common.dry_run {
        permitted::check_named(keys, Work::Change { creates: false }, |_, errand| errand, session)
            .await?;
    }
    let each = keys.iter().map(|key| One { key, args, policies }).collect();
    Box::pin(in_sequence::take(each, args.named.common.keep_going, session)).await
}

/// The undo of one DaemonSet.
struct One<'a> {
    key: &'a DaemonSetKey,
    args: &'a Args,
    /// The policies of the command line.
    policies: &'a Policies,
}

impl InSequence for One<'_> {
    fn key(&self) -> &DaemonSetKey {
        self.key
    }

    async fn run(&self, session: &mut Session) -> Result<Exit, Error> {
        Box::pin(undo(self, session)).await
    }
}

async fn undo(one: &One<'_>, session: &mut Session) -> Result<Exit, Error> {
    let One { key, args, policies } = *one;
    let snapshot = session.snapshot(key).await?;
    let wanted = args.wanted();
    let live = find(&snapshot, key)?;
    let Rollback { mut desired, version, undone } = rollback(&snapshot, live, &wanted)?;
    // A rollback waits for nothing but budgets.
    desired.policy = policies.of(key, &[&live.labels])?.map(|policy| policy.budgets().into());
    let warnings = warnings::none_selects(policies, &desired).into_iter().collect();
    args.named.common.pace.put_over(&mut desired);
    let version = version.map(|id| FilesVersion { id, subject: None });
    let commit = version.as_ref().map(|it| it.id.clone()).filter(|id| !id.contains(':'));
    let source = SourceInfo { commit, ..SourceInfo::default() };
    let only = ApprovalRequest::only(std::slice::from_ref(&desired), source);
    let wanted = ApprovalRequest { warnings, ..only };
    let plan = planned(&snapshot, wanted, &args.named.common, session.shell.now);
    check_exact(&plan, &desired)?;
    let binding = Binding::Reasons;
    let asking = Asking {
        args: &args.named.common,
        approved: &plan,
        version: version.as_ref(),
        binding,
        // What is bad is rolled back at once.
        predecessors: &Predecessors::NONE,
    };
    let Approved { any, blocked } =
        asking.approve(&plan, &permitted::errands(&plan, &[]), false, session).await?;
    if !any {
        return Ok(Exit::Done);
    }
    let exit = asking.each(&[&desired], &blocked, session).await?;
    if exit == Exit::Done {
        let (printer, words) = (session.shell.printer, to_make_it_last(undone.as_deref()));
        match args.named.common.output {
            // Standard output has only events.
            Format::Json => printer.err(words),
            _text => printer.out(words).map_err(Error::Output)?,
        }
    }
    Ok(exit)
}

/// The next step in git, which may still declare the template that was undone. The version is that
/// which git declares, if it is certain. Its commit is the one that was applied: an earlier one may have
/// changed the manifest.
fn to_make_it_last(version: Option<&str>) -> String {
    match version {
        Some(commit) if is_commit_id(commit) => format!(
            "git still declares what was undone; revert there what changed it, up to {commit}: \
             `git revert {commit}`, with `-m 1` if it is a merge\n"
        ),
        Some(version) => {
            format!("what was undone is of no commit ({version}); the manifests still declare it\n")
        }
        None => {
            "if git still declares what was undone, revert it there; `ds-plan drift` shows it\n"
                .to_owned()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_hold_for_a_merge_and_name_no_commit_that_is_not_certain() {
        let id = "4f2c9e1d0b5a4f2c9e1d0b5a4f2c9e1d0b5a1234";
        let words = to_make_it_last(Some(id));
        assert!(words.contains(&format!("up to {id}: `git revert {id}`")), "{words}");
        assert!(words.contains("`-m 1` if it is a merge"), "{words}");
        let words = to_make_it_last(None);
        assert!(!words.contains("git revert"), "{words}");
    }

    #[test]
    fn only_full_commits_are_reverted() {
        let id = "4f2c9e1d0b5a4f2c9e1d0b5a4f2c9e1d0b5a1234";
        for (version, reverts) in
            [(id.to_owned(), true), (format!("{id}-dirty"), false), (format!("sha256:{id}"), false)]
        {
            let words = to_make_it_last(Some(&version));
            assert_eq!(words.contains("git revert"), reverts, "{words}");
            assert!(words.contains(&version), "{words}");
        }
    }
}
