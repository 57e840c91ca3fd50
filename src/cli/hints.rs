//! What the reader can do now; the only place where advice is written.
//!
//! Every kind of failure is named, so that somebody has thought about it, even when there is
//! nothing to advise.

mod cluster;
mod source;

use std::io;

use super::error::Error;
use crate::apply::PreflightError;
use crate::cluster::LockError;
use crate::manifest;
use crate::model::DaemonSetKey;
use crate::plan::{NoSuchRevision, ROLLOUT_ANNOTATION};

/// For whoever looked in the wrong place.
const WHERE_MANIFESTS_ARE: &str =
    "say where the manifests are: `--path DIR` in git, or `-f FILE` (`-R` for sub-folders)";

/// What to do about `error`, the best first.
pub(super) fn hints(error: &Error) -> Vec<String> {
    match error {
        Error::Source(error) => source::hint(error).into_iter().collect(),
        Error::Manifest(errors) => manifest_hints(errors),
        Error::Base { revision: _, errors: _ } => {
            vec!["bring the branch up to date with a base that is sound".into()]
        }
        Error::Save { .. } => vec!["name a file in a folder that can be written".into()],
        Error::NoDaemonSet { .. } => vec![WHERE_MANIFESTS_ARE.into()],
        Error::Cluster(error) => cluster::hint(error).into_iter().collect(),
        Error::NothingSelected { known, place } | Error::NotFound { missing: _, known, place } => {
            vec![format!("DaemonSets in the {place}: {}", some_of(known))]
        }
        Error::NoSuchNode { node: _, similar: Some(similar) } => {
            vec![format!("a similar node exists: {similar}")]
        }
        Error::NoSuchNode { node: _, similar: None } => {
            vec!["nodes go by `metadata.name`: `kubectl get nodes`".into()]
        }
        Error::NoSuchRevision(NoSuchRevision { known, .. }) => {
            let known: Vec<String> = known.iter().map(ToString::to_string).collect();
            vec![format!("its revisions: {}", listed_or_none(&known))]
        }
        Error::NoSuchPage { command: _, known } => {
            vec![format!("commands: {}", known.join(", "))]
        }
        Error::Page { path: _, source } if source.kind() == io::ErrorKind::NotFound => {
            vec!["the folder must exist: `mkdir -p DIR`".into()]
        }
        Error::CommentUnread => vec!["add `-o markdown`".into()],
        Error::StandardInputTwice => vec!["put one of the two into a file".into()],
        Error::CurrentFolder(_) => vec!["change to a folder that exists".into()],
        Error::RecordingOfRecording => vec!["leave out one of the two".into()],
        Error::WritingToRecording => vec![
            "see what would happen: `ds-plan --snapshot FILE`".into(),
            "or rehearse it: `ds-apply --rehearse --snapshot FILE`".into(),
        ],
        Error::ReleaseRehearsed => {
            vec!["without --rehearse it shows what the controller will do, and asks".into()]
        }
        Error::Faults { .. } => {
            vec!["see its schema: `ds-plan schema faults`".into()]
        }
        Error::NeitherPlanNorName(_) => {
            vec!["save a plan with `ds-plan --out FILE`, then `ds-apply FILE`".into()]
        }
        Error::PlanFile { .. } | Error::OpenPlan { .. } => {
            vec!["make it with `ds-plan --out FILE`".into()]
        }
        Error::HeldByApply { .. } => vec![
            "go on with `ds-apply apply`, back with `ds-apply undo`, or `ds-apply release` it"
                .into(),
        ],
        Error::NotOnDelete(_) => vec!["change and pace it with `ds-apply apply`".into()],
        Error::NoRevisionOf { .. } | Error::NothingBefore(_) | Error::RevisionUnreadable { .. } => {
            vec!["see what there is: `ds-plan history`".into()]
        }
        Error::FieldsStay { .. } => {
            vec!["take those fields over: `--take-over=MANAGER`".into()]
        }
        Error::NobodyToAsk => {
            vec!["say `--yes`, or hand over a saved plan: `ds-apply FILE`".into()]
        }
        Error::Stale(_) => vec!["plan again, look at it, and carry that out".into()],
        Error::Mutated(_) => {
            vec!["to take what the server makes of it as the target, use `--allow-mutation`".into()]
        }
        Error::PruneNarrowed => vec!["leave out --prune, or what narrows the source".into()],
        Error::PruneUnread(_) => vec![
            "render the whole source and hand it over: `-f -`, or name the part with DaemonSets: \
             `--path`"
                .into(),
        ],
        Error::NoSuchWave { .. } => vec!["see the waves: `ds-plan`".into()],
        Error::Hold { .. } => vec![format!(
            "correct its annotation {ROLLOUT_ANNOTATION}, or remove it and set the update strategy \
             by hand"
        )],
        Error::TimeIsOver(_) | Error::Interrupted | Error::Remove { .. } => {
            vec!["to go on: run it again".into()]
        }
        Error::NotSettled { .. } => vec!["see what differs: `ds-plan diff`".into()],
        Error::Lock(error) => lock_hint(error).into_iter().collect(),
        Error::Preflight(error) => preflight_hint(error).into_iter().collect(),
        Error::Declined
        | Error::BesidePlan { .. }
        | Error::Ownership(_)
        | Error::Answer(_)
        | Error::Refused(_)
        | Error::Declared(_)
        | Error::Access(_)
        | Error::Random(_)
        | Error::Render(_)
        | Error::Output(_)
        | Error::Page { .. }
        | Error::OpenFaults { .. }
        | Error::Rehearsal(_)
        | Error::Process(_) => vec![],
    }
}

fn lock_hint(error: &LockError) -> Option<String> {
    match error {
        LockError::Held { .. } => Some(
            "wait longer with `--lock-timeout`; a run that is gone loses its lock by itself".into(),
        ),
        LockError::Read(error) => cluster::hint(error),
        LockError::Write { .. } => None,
    }
}

fn preflight_hint(error: &PreflightError) -> Option<String> {
    match error {
        PreflightError::Cluster(error) => cluster::hint(error),
        PreflightError::MayNotCreate { .. } => {
            Some("grant what `deploy/managed-by-ds-apply.yaml` lists".to_owned())
        }
        PreflightError::DaemonSet(_)
        | PreflightError::Ledger(_)
        | PreflightError::Pod(_)
        | PreflightError::Access(_)
        | PreflightError::Ownership(_)
        | PreflightError::TakeOver(_) => None,
    }
}

fn listed_or_none(texts: &[String]) -> String {
    if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
}

/// The first few of many.
fn some_of(keys: &[DaemonSetKey]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<String> = keys.iter().take(SHOWN).map(ToString::to_string).collect();
    let more = keys.len().saturating_sub(SHOWN);
    match (shown.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (false, 0) => shown.join(", "),
        (false, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Advice on manifests: once for each kind of error, not for each error.
fn manifest_hints(errors: &manifest::Errors) -> Vec<String> {
    let mut hints = Vec::new();
    for error in errors {
        let hint = match error {
            manifest::Error::UnknownField { field, .. }
                if field.hint == Some(manifest::FieldHint::PatchDirective) =>
            {
                "render what it patches first: `kubectl kustomize DIR | ds-plan -f -`"
            }
            manifest::Error::UnknownField { .. } => {
                "the API drops unknown fields; to do the same, use `--validate=warn`"
            }
            manifest::Error::Duplicate { .. } => {
                "remove one of the two, or read fewer files with `--path` or `-f`"
            }
            manifest::Error::TwoPolicies { .. } => "let one of the two select fewer DaemonSets",
            manifest::Error::NoDaemonSet { .. } => WHERE_MANIFESTS_ARE,
            manifest::Error::Encoding { .. }
            | manifest::Error::Limit { .. }
            | manifest::Error::Syntax { .. }
            | manifest::Error::OldVersion { .. }
            | manifest::Error::KindCase { .. }
            | manifest::Error::Incomplete { .. }
            | manifest::Error::Policy { .. }
            | manifest::Error::Field { .. }
            | manifest::Error::GeneratedName { .. }
            | manifest::Error::Unreadable { .. }
            | manifest::Error::Type { .. } => continue,
        };
        if !hints.iter().any(|known| known == hint) {
            hints.push(hint.to_owned());
        }
    }
    hints
}
