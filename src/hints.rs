//! The hints below error messages; the only place where they are written.
//!
//! Every kind of error is listed, so that a hint is considered for each, even when there is none.

mod cluster_hints;
mod source_hints;

use std::collections::BTreeSet;
use std::io;

use super::error::{ApprovalError, Error, Place, PolicyError, RehearsalError, SavedPlanError};
use cluster::{LockError, WriteError};
use daemonset::model::{DaemonSetKey, NodeName};
use executor::PreflightError;
use executor::permissions::Need;
use planner::annotations::ROLLOUT_ANNOTATION;
use planner::approval::NotToApprove;
use planner::live_object::LiveObjectError;
use planner::plan::NoSuchRevision;
use planner::roll::{RollError, WaveError};
use planner::rollback::RollbackError;

/// Hint when nobody can approve a plan.
const NO_TERMINAL: &str = "or apply a saved plan: `ds-apply --plan FILE`";

/// Hint when admission changes the template.
const ALLOW_MUTATION: &str =
    "to accept the template as the server changes it, use `--allow-mutation`";

/// Hint when admission changes a template of which steps are approved.
const MUTATION_INTO_SOURCE: &str =
    "put the changes into the manifest: `--allow-mutation` does not fit approvals";

/// Hint when the holder of a lock is a run in progress.
const LIVE_HOLDER: &str = "wait for that run, or interrupt it; to take its lock anyway: `--force`";

/// Hint when a name and `-n` have different namespaces.
const OTHER_NAMESPACE: &str = "leave out -n, or the namespace in the name";

/// Hint when waiting for a rollout has taken too long.
const STILL_IN_PROGRESS: &str = "see what blocks each node: `ds-plan status`";

/// Hint when the user has no permission to approve.
const APPROVER: &str = "bind the roles of `deploy/approver.yaml`";

/// Hint when the arguments of `explain` are in the other order.
const DAEMON_SET_FIRST: &str = "the DaemonSet comes first: `ds-plan explain NAMESPACE/NAME NODE`";

/// Hint when the secret of notifications cannot be read.
const NOTIFY_SECRET: &str =
    "create one: `openssl rand -hex 32 > FILE`, and share it with the receiver";

/// Hint when a run ended before it was done.
const RESUME: &str = "to resume: run it again";

const LOG_FILTER: &str = "for example: `RUST_LOG=info`, `RUST_LOG=cluster=debug`";

const PRUNE_NARROWED: &str = "leave out --prune, or the flags that narrow the source";

const PRUNE_UNREAD: &str = "render the whole source and pipe it in: `-f -`, or name the folder \
     with the DaemonSets: `--path`";

/// The hints for `error`, the most useful one first.
pub(super) fn hints(error: &Error) -> Vec<String> {
    match error {
        Error::Source(error) => source_hints::hint(error).into_iter().collect(),
        Error::Manifest(errors) => manifest_hints(errors),
        Error::Policy(error) => vec![policy_hint(error).into()],
        Error::CheckToken { .. } => vec!["put the token alone into the file".into()],
        Error::NotifySecret { .. } => vec![NOTIFY_SECRET.into()],
        Error::Notify(_) => vec!["set it by DS_APPLY_NOTIFY if it is a secret".into()],
        Error::Save { .. } => vec!["name a file in a writable folder".into()],
        Error::NoDaemonSet { .. } => vec![source_hints::WHERE_MANIFESTS_ARE.into()],
        Error::Cluster(error) => cluster_hints::hint(error).into_iter().collect(),
        Error::NothingSelected { known, place } | Error::NotFound { missing: _, known, place } => {
            known_hints(known, *place)
        }
        Error::OtherNamespace { .. } => vec![OTHER_NAMESPACE.into()],
        Error::StillInProgress { .. } => vec![STILL_IN_PROGRESS.into()],
        Error::NoSuchNode { node: _, similar } => vec![node_hint(similar.as_ref())],
        Error::NodeFirst(_) => vec![DAEMON_SET_FIRST.into()],
        Error::NoSuchRevision(error) => revision_hints(error),
        Error::NoSuchPage { known, .. } => vec![format!("commands: {}", known.join(", "))],
        Error::Page { path: _, source } => page_hint(source).into_iter().collect(),
        Error::LogFilter(_) => vec![LOG_FILTER.into()],
        Error::CommentUnread => vec!["add `-o markdown`".into()],
        Error::StandardInputTwice => vec!["put one of the two into a file".into()],
        Error::CurrentFolder(_) => vec!["change to a folder that exists".into()],
        Error::Rehearsal(error) => rehearsal_hints(error),
        Error::Approval(error) => approval_hints(error),
        Error::SavedPlan(error) => saved_plan_hints(error),
        Error::Rollback(error) => rollback_hints(error),
        Error::Roll(error) => roll_hints(error),
        Error::Wave(error) => wave_hints(error),
        Error::LiveObject(error) => live_object_hints(error),
        Error::NoTerminal => vec![NO_TERMINAL.into()],
        Error::Stale(_) => vec!["plan again, review the plan, and apply it".into()],
        Error::Mutated(_) => vec![ALLOW_MUTATION.into()],
        Error::MutatedUnderApprovals { .. } => vec![MUTATION_INTO_SOURCE.into()],
        Error::PruneNarrowed => vec![PRUNE_NARROWED.into()],
        Error::PruneUnread(_) => vec![PRUNE_UNREAD.into()],
        Error::TimeIsOver(_)
        | Error::Interrupted
        | Error::NotReconciled { .. }
        | Error::Remove { .. } => vec![RESUME.into()],
        Error::StillDiffers { .. } => vec!["see what differs: `ds-plan diff`".into()],
        Error::NotPermitted { missing, paused: _ } => permission_hints(missing),
        Error::StaysPaused { daemon_set, source } => stays_paused_hints(daemon_set, source),
        Error::Lock(error) => lock_hint(error).into_iter().collect(),
        Error::HolderIsLive { .. } => vec![LIVE_HOLDER.into()],
        Error::Preflight(error) => preflight_hint(error).into_iter().collect(),
        Error::Declined
        | Error::NamespaceMissing { .. }
        | Error::Ownership(_)
        | Error::Answer(_)
        | Error::Blocked(_)
        | Error::Declared(_)
        | Error::Random(_)
        | Error::Render(_)
        | Error::Output(_)
        | Error::Process(_) => vec![],
    }
}

fn page_hint(error: &io::Error) -> Option<String> {
    let is_missing = error.kind() == io::ErrorKind::NotFound;
    is_missing.then(|| "the folder must exist: `mkdir -p DIR`".to_owned())
}

fn policy_hint(error: &PolicyError) -> &'static str {
    match error {
        PolicyError::NoneIn { .. } => {
            "one begins with `apiVersion: ds-plan.dev/v1alpha1` and `kind: RolloutPolicy`; if none \
             is meant, leave out --policy"
        }
        PolicyError::NotIn { .. } => {
            "commit it there, or name a file outside of the repository, which is read from disk"
        }
        PolicyError::NoneAt { .. } => {
            "policies are read in the same `--path` there; name their file with `--policy`"
        }
        PolicyError::InvalidAt { .. } => {
            "correct them there, and rebase the branch; a plan without `--base` has the policies of \
             the branch"
        }
    }
}

/// The DaemonSets that exist where others were searched.
fn known_hints(known: &[DaemonSetKey], place: Place) -> Vec<String> {
    match place {
        Place::Manifests | Place::Cluster => {
            vec![format!("DaemonSets in the {place}: {}", some_of(known))]
        }
        Place::Namespace => vec![
            format!("DaemonSets in this namespace: {}", some_of(known)),
            "list those of all namespaces: `ds-plan status -A`".to_owned(),
        ],
    }
}

fn node_hint(similar: Option<&NodeName>) -> String {
    match similar {
        Some(similar) => format!("a similar node exists: {similar}"),
        None => "use the `metadata.name` of the node: `kubectl get nodes`".to_owned(),
    }
}

fn approval_hints(error: &ApprovalError) -> Vec<String> {
    match error {
        ApprovalError::NotToApprove {
            why: NotToApprove::Unknown { needed } | NotToApprove::NotAsked { needed },
            ..
        } => match &needed[..] {
            [] => vec!["none of its steps needs an approval".into()],
            needed => vec![format!("steps that need an approval: {}", needed.join(", "))],
        },
        ApprovalError::NotToApprove { why: NotToApprove::NoSteps, .. } => {
            vec!["does the policy select it? See its name and labels in the policy".into()]
        }
        ApprovalError::NotDone { .. } => {
            vec!["run `ds-apply` again: it notes when a step is done".into()]
        }
        ApprovalError::NoteLost(_) => {
            vec!["run `ds-apply` first: it notes that, and asks for the approval".into()]
        }
        ApprovalError::ProgressUnknown(_) => vec![APPROVER.into()],
        ApprovalError::Write { source, .. } => match &**source {
            WriteError::Forbidden { .. } => vec![APPROVER.into()],
            error if error.is_outcome_unknown() => vec!["run it again".into()],
            _other => vec![],
        },
        ApprovalError::RolledOut(_)
        | ApprovalError::RollingBack(_)
        | ApprovalError::NameTaken { .. } => vec![],
    }
}

fn rehearsal_hints(error: &RehearsalError) -> Vec<String> {
    match error {
        RehearsalError::RecordingOfRecording => vec!["leave out one of the two".into()],
        RehearsalError::LiveOnly { .. } => vec!["leave out --snapshot".into()],
        RehearsalError::WritingToRecording => vec![
            "see what would happen: `ds-plan --snapshot FILE`".into(),
            "or rehearse it: `ds-apply --rehearse --snapshot FILE`".into(),
        ],
        RehearsalError::ReleaseRehearsed => {
            vec!["run it without --rehearse: it shows what the controller will do, and asks".into()]
        }
        RehearsalError::Faults { .. } => vec!["see its schema: `ds-plan schema faults`".into()],
        RehearsalError::Answers { .. } => {
            vec!["record them: `ds-plan checks --over 6h --record FILE`".into()]
        }
        RehearsalError::OpenFaults { .. }
        | RehearsalError::OpenAnswers { .. }
        | RehearsalError::Load(_) => vec![],
    }
}

fn saved_plan_hints(error: &SavedPlanError) -> Vec<String> {
    let hint = match error {
        SavedPlanError::FileAsName(file) => {
            format!("to apply a saved plan: `ds-apply --plan {file}`")
        }
        SavedPlanError::NotAPlan { .. } | SavedPlanError::Open { .. } => {
            "create it with `ds-plan --out FILE`".into()
        }
        SavedPlanError::OtherDigest { .. } => {
            "use the file of the run that printed the approved plan".into()
        }
        SavedPlanError::NoCosign => "install it: https://docs.sigstore.dev".into(),
        SavedPlanError::NotSigned { .. } => {
            "use the file of the signing workflow, with its FILE.sigstore.json".into()
        }
        SavedPlanError::NoFullCommit { .. } => {
            "plan again: `ds-plan --out FILE` writes the full id".into()
        }
        SavedPlanError::OfFiles { file, paths } => {
            let file = file.display().to_string();
            let flags = paths.iter().flat_map(|path| ["-f", path]);
            let words = ["ds-apply", "--plan", &file].into_iter().chain(flags);
            let command = shlex::try_join(words).unwrap_or("ds-apply --plan FILE -f DIR".into());
            format!("pass them too: `{command}`")
        }
        SavedPlanError::NoRepository { file, .. } => {
            let file = file.display().to_string();
            let words = ["ds-apply", "--plan", &file, "--repo", "DIR"];
            let command =
                shlex::try_join(words).unwrap_or("ds-apply --plan FILE --repo DIR".into());
            format!("name it: `{command}`")
        }
        SavedPlanError::OtherCluster { .. } => {
            "plan on this cluster, or select the other: `--context`, `--kubeconfig`".into()
        }
        SavedPlanError::NothingSigned | SavedPlanError::SignatureUnchecked { .. } => return vec![],
    };
    vec![hint]
}

fn rollback_hints(error: &RollbackError) -> Vec<String> {
    match error {
        RollbackError::NoSuchRevision(error) => revision_hints(error),
        RollbackError::NothingBefore(_)
        | RollbackError::NoRevisionOf { .. }
        | RollbackError::Unreadable { .. } => {
            vec!["list the revisions: `ds-plan history`".into()]
        }
        RollbackError::AmbiguousCommit { .. } => {
            vec!["give more characters of the one that is meant".into()]
        }
        RollbackError::FieldsStay { .. } => {
            vec!["remove those fields too: `--force-conflicts=MANAGER`".into()]
        }
        RollbackError::LiveObject(error) => live_object_hints(error),
    }
}

fn revision_hints(NoSuchRevision { known, .. }: &NoSuchRevision) -> Vec<String> {
    let known: Vec<String> = known.iter().map(ToString::to_string).collect();
    vec![format!("its revisions: {}", listed_or_none(&known))]
}

fn roll_hints(error: &RollError) -> Vec<String> {
    match error {
        RollError::PausedByApply { .. } => vec![
            "resume with `ds-apply apply`, roll back with `ds-apply undo`, or restore the \
             strategy with `ds-apply release`"
                .into(),
        ],
        RollError::NotOnDelete(_) => vec!["use `ds-apply apply` to change it in waves".into()],
        RollError::LiveObject(error) => live_object_hints(error),
    }
}

fn wave_hints(error: &WaveError) -> Vec<String> {
    match error {
        WaveError::NotLeft { left, .. } => {
            vec![format!("waves that are left: {}", listed_or_none(left))]
        }
        WaveError::NotNext { .. } => vec!["replace that one first".into()],
        WaveError::Renumbered { .. } | WaveError::OtherNodes { .. } => {
            vec!["look at the waves again: `ds-apply roll --dry-run`".into()]
        }
    }
}

fn live_object_hints(error: &LiveObjectError) -> Vec<String> {
    match error {
        LiveObjectError::Pause { .. } => vec![format!(
            "correct its annotation {ROLLOUT_ANNOTATION}, or remove it and set the update strategy \
             by hand"
        )],
        LiveObjectError::Ownership(_) | LiveObjectError::Strategy(_) => vec![],
    }
}

fn stays_paused_hints(daemon_set: &DaemonSetKey, source: &Error) -> Vec<String> {
    let mut all = hints(source);
    all.push(format!("see what is not permitted: `ds-apply can-i {daemon_set}`"));
    all.push(format!("to roll back: `ds-apply undo {daemon_set}`"));
    all
}

fn lock_hint(error: &LockError) -> Option<String> {
    match error {
        LockError::Held { .. } => Some(
            "wait longer with `--lock-timeout`; the lock of a run that is gone expires by itself"
                .into(),
        ),
        LockError::Lost { .. } => {
            Some("see the lock holder: `ds-plan status`; then run this again".into())
        }
        LockError::Read(error) => cluster_hints::hint(error),
        LockError::Write { .. } => None,
    }
}

fn preflight_hint(error: &PreflightError) -> Option<String> {
    match error {
        PreflightError::Cluster(error) => cluster_hints::hint(error),
        PreflightError::MayNotCreate { .. } => {
            Some("grant what `deploy/managed-by-ds-apply.yaml` lists".to_owned())
        }
        PreflightError::DaemonSet(_)
        | PreflightError::DaemonSetRecord(_)
        | PreflightError::Pod(_)
        | PreflightError::Ownership(_)
        | PreflightError::ForceConflicts(_) => None,
    }
}

/// The roles to bind, and the command that lists all needed permissions.
fn permission_hints(missing: &[Need]) -> Vec<String> {
    let roles: BTreeSet<_> = missing.iter().map(|need| need.role).collect();
    let files = roles.iter().map(|role| format!("ClusterRole {} ({})", role.name(), role.file()));
    let files: Vec<String> = files.collect();
    vec![
        format!("bind {}", files.join(", ")),
        "list all permissions that are needed: `ds-apply can-i NAMESPACE/NAME`".to_owned(),
    ]
}

fn listed_or_none(texts: &[String]) -> String {
    if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
}

/// The first few DaemonSets, and the number of the others.
fn some_of(keys: &[DaemonSetKey]) -> String {
    const SHOWN: usize = 5;
    // One more takes no more room than its number.
    let listed = if keys.len() == SHOWN + 1 { keys.len() } else { SHOWN };
    let shown: Vec<String> = keys.iter().take(listed).map(ToString::to_string).collect();
    let more = keys.len() - shown.len();
    match (shown.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (false, 0) => shown.join(", "),
        (false, more) => format!("{} and {more} more", shown.join(", ")),
    }
}

/// The hints for errors of manifests, each only once.
fn manifest_hints(errors: &manifest::Errors) -> Vec<String> {
    let mut hints = Vec::new();
    for error in errors {
        let hint = match error {
            manifest::Error::UnknownField { field, .. }
                if field.hint == Some(manifest::FieldHint::PatchDirective) =>
            {
                "render the kustomization first: `kubectl kustomize DIR | ds-plan -f -`"
            }
            manifest::Error::UnknownField { .. } => {
                "the API drops unknown fields; to do the same, use `--validate=warn`"
            }
            manifest::Error::Duplicate { .. } => {
                "remove one of the two, or read fewer files with `--path` or `-f`"
            }
            manifest::Error::TwoPolicies { .. } => "make one of the two select fewer DaemonSets",
            manifest::Error::AfterItself { .. } => "remove one of them from `after`",
            manifest::Error::NoDaemonSet { .. } => source_hints::WHERE_MANIFESTS_ARE,
            manifest::Error::Encoding { .. }
            | manifest::Error::Limit { .. }
            | manifest::Error::Syntax { .. }
            | manifest::Error::OldVersion { .. }
            | manifest::Error::KindCase { .. }
            | manifest::Error::UnknownKind { .. }
            | manifest::Error::Incomplete { .. }
            | manifest::Error::NotAnObject { .. }
            | manifest::Error::List { .. }
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
