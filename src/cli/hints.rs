//! What the reader can do now; the only place where advice is written.
//!
//! Every kind of failure is named, so that somebody has thought about it, even when there is
//! nothing to advise.

mod cluster;
mod source;

use std::collections::BTreeSet;
use std::io;

use super::error::Error;
use crate::apply::PreflightError;
use crate::apply::permissions::Need;
use crate::cluster::LockError;
use crate::manifest;
use crate::model::DaemonSetKey;
use crate::plan::{NoSuchRevision, ROLLOUT_ANNOTATION};

/// For whoever looked in the wrong place.
const WHERE_MANIFESTS_ARE: &str =
    "say where the manifests are: `--path DIR` in git, or `-f FILE` (`-R` for sub-folders)";

/// For whoever would take the lock away from a run that is under way.
const LIVE_HOLDER: &str =
    "wait for that run, or interrupt it; to take its lock away all the same: `--force`";

const PRUNE_UNREAD: &str = "render the whole source and hand it over: `-f -`, or name the part with \
     DaemonSets: `--path`";

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
        Error::WritingToRecording | Error::ReleaseRehearsed | Error::Faults { .. } => {
            rehearsal_hints(error)
        }
        Error::FileAsName(_)
        | Error::PlanDigest { .. }
        | Error::NoCosign
        | Error::NotSigned { .. }
        | Error::PlanCommit { .. }
        | Error::PlanOfFiles { .. }
        | Error::OtherCluster { .. } => saved_plan_hints(error),
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
            vec!["say `--yes`, or hand over a saved plan: `ds-apply --plan FILE`".into()]
        }
        Error::Stale(_) => vec!["plan again, look at it, and carry that out".into()],
        Error::Mutated(_) => {
            vec!["to take what the server makes of it as the target, use `--allow-mutation`".into()]
        }
        Error::PruneNarrowed => vec!["leave out --prune, or what narrows the source".into()],
        Error::PruneUnread(_) => vec![PRUNE_UNREAD.into()],
        Error::NoSuchWave { .. } => vec!["see the waves: `ds-plan`".into()],
        Error::Hold { .. } => vec![format!(
            "correct its annotation {ROLLOUT_ANNOTATION}, or remove it and set the update strategy \
             by hand"
        )],
        Error::TimeIsOver(_) | Error::Interrupted | Error::Remove { .. } => {
            vec!["to go on: run it again".into()]
        }
        Error::NotSettled { .. } => vec!["see what differs: `ds-plan diff`".into()],
        Error::NotPermitted { missing, held: _ } => permission_hints(missing),
        Error::StaysHeld { daemon_set, source } => stays_held_hints(daemon_set, source),
        Error::Lock(error) => lock_hint(error).into_iter().collect(),
        Error::HolderIsLive { .. } => vec![LIVE_HOLDER.into()],
        Error::Preflight(error) => preflight_hint(error).into_iter().collect(),
        Error::Declined
        | Error::NothingSigned
        | Error::SignatureUnchecked { .. }
        | Error::Ownership(_)
        | Error::Answer(_)
        | Error::Refused(_)
        | Error::Declared(_)
        | Error::Random(_)
        | Error::Render(_)
        | Error::Output(_)
        | Error::Page { .. }
        | Error::OpenFaults { .. }
        | Error::Rehearsal(_)
        | Error::Process(_) => vec![],
    }
}

/// What to do about a rehearsal.
fn rehearsal_hints(error: &Error) -> Vec<String> {
    match error {
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
        _others => vec![],
    }
}

/// What to do about a saved plan, or a file that has to be signed.
fn saved_plan_hints(error: &Error) -> Vec<String> {
    match error {
        Error::FileAsName(file) => {
            vec![format!("a saved plan is carried out with `ds-apply --plan {file}`")]
        }
        Error::PlanDigest { .. } => {
            vec!["take the file that the run made in which the plan was shown".into()]
        }
        Error::NoCosign => vec!["install it: https://docs.sigstore.dev".into()],
        Error::NotSigned { .. } => {
            vec!["take the file of the workflow that signs, with its FILE.sigstore.json".into()]
        }
        Error::PlanCommit { .. } => {
            vec!["plan again: `ds-plan --out FILE` writes the full id".into()]
        }
        Error::PlanOfFiles { .. } => {
            vec!["give the files that it was made of: `ds-apply --plan FILE -f DIR`".into()]
        }
        Error::OtherCluster { .. } => {
            vec!["plan on this cluster, or name the other: `--context`, `--kubeconfig`".into()]
        }
        _others => vec![],
    }
}

fn stays_held_hints(daemon_set: &DaemonSetKey, source: &Error) -> Vec<String> {
    let mut all = hints(source);
    all.push(format!("see what is not permitted: `ds-apply can-i {daemon_set}`"));
    all.push(format!("to go back: `ds-apply undo {daemon_set}`"));
    all
}

fn lock_hint(error: &LockError) -> Option<String> {
    match error {
        LockError::Held { .. } => Some(
            "wait longer with `--lock-timeout`; a run that is gone loses its lock by itself".into(),
        ),
        LockError::Lost { .. } => {
            Some("see who has it: `ds-plan status`; then run this again".into())
        }
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
        | PreflightError::Ownership(_)
        | PreflightError::TakeOver(_) => None,
    }
}

/// Which roles to bind, and how to see all that is needed.
fn permission_hints(missing: &[Need]) -> Vec<String> {
    let roles: BTreeSet<_> = missing.iter().map(|need| need.role).collect();
    let files = roles.iter().map(|role| format!("ClusterRole {} ({})", role.name(), role.file()));
    let files: Vec<String> = files.collect();
    vec![
        format!("bind what has it: {}", files.join(", ")),
        "see all that is needed: `ds-apply can-i NAMESPACE/NAME`".to_owned(),
    ]
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
