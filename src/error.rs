//! The errors of a run and their messages.
//!
//! The messages of the library's errors are its own. Not here: the hints (`hints`), the exit code
//! (`outcome`) and the printed form (`report`).

mod approval;
mod outcome;
mod policy;
mod rehearsal;
mod report;
mod saved_plan;

pub(super) use approval::ApprovalError;
pub(super) use policy::PolicyError;
pub(super) use rehearsal::RehearsalError;
pub(super) use report::{Report, WARNING, paragraph, report};
pub(super) use saved_plan::SavedPlanError;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::path::PathBuf;

use checks::NotAWebhook;
use cluster::{LockError, WriteError};
use daemonset::model::{DaemonSetKey, NamespaceName, NodeName};
use executor::permissions::Need;
use executor::{PreflightError, Unreconciled};
use planner::live_object::LiveObjectError;
use planner::plan::{Guard, LockStatus, NoSuchRevision, Stale};
use planner::roll::{RollError, WaveError};
use planner::rollback::RollbackError;
use ssa::ManagedFieldsError;

/// The reason why a run failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The files of the manifests cannot be read.
    #[error(transparent)]
    Source(#[from] source::Error),
    /// The manifests are invalid.
    #[error("{}", manifest_errors(_0))]
    Manifest(manifest::Errors),
    /// There is no policy where the command line says that there is one.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// No file contains the word DaemonSet.
    #[error("no DaemonSet found{}{}", none_mentions(*files, only.as_deref()), has(*files, kinds))]
    NoDaemonSet {
        /// Number of files that were read.
        files: usize,
        /// The path of the only one, if it is known.
        only: Option<String>,
        /// Number of other objects in them, by kind.
        kinds: BTreeMap<String, usize>,
    },
    /// The cluster, live or recorded, could not be read.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// No DaemonSet matches `-n`, `-l` and the names.
    #[error("no DaemonSet in the {place} matches -n, -l and the names given")]
    NothingSelected {
        /// The DaemonSets that exist there, sorted.
        known: Vec<DaemonSetKey>,
        /// Where they were searched.
        place: Place,
    },
    /// DaemonSets that were named do not exist.
    #[error("DaemonSet {} not found in the {place}", listed(missing))]
    NotFound {
        /// The missing DaemonSets.
        missing: Vec<DaemonSetKey>,
        /// Where they were searched.
        place: Place,
        /// The DaemonSets that exist there, sorted.
        known: Vec<DaemonSetKey>,
    },
    /// A DaemonSet was named with another namespace than that of `-n`.
    #[error("{name} is not in the namespace of -n: {namespace}")]
    OtherNamespace {
        /// The name that was given.
        name: DaemonSetKey,
        /// The namespace of `-n`.
        namespace: NamespaceName,
    },
    /// `status --watch --exit --timeout`: the rollouts have not ended in time.
    #[error("still in progress after {seconds} s")]
    StillInProgress {
        /// `--timeout`.
        seconds: u64,
    },
    /// A node that was named does not exist.
    #[error("node {node} not found in the cluster")]
    NoSuchNode {
        /// The name that was given.
        node: NodeName,
        /// A node with a similar name.
        similar: Option<NodeName>,
    },
    /// `explain` with the node in place of the DaemonSet.
    #[error("{0} is a node, not a DaemonSet")]
    NodeFirst(NodeName),
    /// A revision that was requested does not exist.
    #[error(transparent)]
    NoSuchRevision(#[from] NoSuchRevision),
    /// The command has no manual page.
    #[error("there is no command {command}")]
    NoSuchPage {
        /// The name that was given.
        command: String,
        /// The names of all commands.
        known: Vec<String>,
    },
    /// A manual page cannot be written.
    #[error("cannot write {}", path.display())]
    Page {
        /// The file of the page.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A saved plan could not be written.
    #[error("cannot write {}", file.display())]
    Save {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A token of `--check-token` cannot be read.
    #[error("cannot read the token in {}", file.display())]
    CheckToken {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The secret of `--notify-secret-file` cannot be read.
    #[error("cannot read the secret in {}", file.display())]
    NotifySecret {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// An address of `--notify` cannot be used.
    #[error("--notify cannot be used: {0}")]
    Notify(#[from] NotAWebhook),
    /// `RUST_LOG` is not a filter for the log.
    #[error("RUST_LOG is not a filter: `{0}`")]
    LogFilter(String),
    /// `--comment` without `-o markdown`.
    #[error("--comment requires `-o markdown`")]
    CommentUnread,
    /// `-f -` together with `--snapshot -`.
    #[error("standard input cannot be both the manifests and the recording")]
    StandardInputTwice,
    /// `--prune` together with flags that select a part of the source.
    #[error("--prune needs the whole source: leave out names, --selector and -n")]
    PruneNarrowed,
    /// `--prune` of a source of which a part was skipped.
    #[error("--prune needs the whole source, but a part of it was not read\n{}", _0.join("\n"))]
    PruneUnread(Vec<String>),
    /// A DaemonSet could not be deleted.
    #[error("cannot delete DaemonSet {daemon_set}")]
    Remove {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// The error of the server.
        source: Box<WriteError>,
    },
    /// Ctrl-C or SIGTERM, before any pod was touched.
    #[error("interrupted before any pod was touched")]
    Interrupted,
    /// `--timeout` was reached before the apply of this DaemonSet started.
    #[error("{0} was not started: the run timed out")]
    TimeIsOver(DaemonSetKey),
    /// The namespace of a DaemonSet does not exist.
    #[error("cannot apply {daemon_set}: {message}")]
    NamespaceMissing {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// The plan's warning about it, which names the file if the namespace is in the source.
        message: String,
    },
    /// A saved plan, or a signed file, is not accepted.
    #[error(transparent)]
    SavedPlan(#[from] SavedPlanError),
    /// A recorded cluster cannot be used this way, or cannot be rehearsed on.
    #[error(transparent)]
    Rehearsal(#[from] RehearsalError),
    /// A step cannot be approved, or needs no approval.
    #[error(transparent)]
    Approval(#[from] ApprovalError),
    /// A DaemonSet cannot be rolled back.
    #[error(transparent)]
    Rollback(#[from] RollbackError),
    /// A DaemonSet cannot be rolled.
    #[error(transparent)]
    Roll(#[from] RollError),
    /// `step --wave` does not replace the pods of a wave.
    #[error(transparent)]
    Wave(#[from] WaveError),
    /// A live DaemonSet cannot be made into a manifest.
    #[error(transparent)]
    LiveObject(#[from] LiveObjectError),
    /// `metadata.managedFields` of the live object cannot be read.
    #[error(transparent)]
    Ownership(#[from] ManagedFieldsError),
    /// The plan is not approved, and there is no terminal to ask on.
    #[error("nothing was changed: no terminal; pass `--yes`")]
    NoTerminal,
    /// The user did not answer `yes`.
    #[error("nothing was changed: cancelled")]
    Declined,
    /// The answer cannot be read.
    #[error("cannot read the answer")]
    Answer(#[source] io::Error),
    /// Guards block the plan, and no flag allows them.
    #[error("{}", blocked(_0))]
    Blocked(Vec<Guard>),
    /// The cluster or the source has changed since the plan was made.
    #[error("the plan no longer matches the cluster; nothing was changed\n{}", lines(_0))]
    Stale(Vec<Stale>),
    /// Admission changes the pod template.
    #[error("an admission webhook or policy changes the pod template of {0}")]
    Mutated(DaemonSetKey),
    /// Admission changes the pod template, and steps of it are approved.
    #[error(
        "an admission webhook or policy changes the pod template of {daemon_set}, but step {step} \
         of its policy needs an approval, which is of the template in the source"
    )]
    MutatedUnderApprovals {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// The first step with `approve`.
        step: String,
    },
    /// The update strategy of the manifest cannot be parsed.
    #[error("spec.updateStrategy cannot be read")]
    Declared(#[source] serde_json::Error),
    /// The user does not have permissions that the run needs.
    #[error("not permitted; nothing was changed\n{}", needed(missing, paused))]
    NotPermitted {
        /// The missing permissions.
        missing: Vec<Need>,
        /// The DaemonSets that earlier runs have left paused.
        paused: Vec<DaemonSetKey>,
    },
    /// A rollout that an earlier run has paused cannot be resumed.
    #[error("{daemon_set} stays paused: its update strategy is OnDelete")]
    StaysPaused {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// The request that is forbidden.
        source: Box<Error>,
    },
    /// The lock could not be taken, or was lost.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// `unlock` without `--force`, and the holder of the lock is a run in progress.
    #[error("{daemon_set} stays locked by {}: the run is in progress", lock.holder)]
    HolderIsLive {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// The lock, with its holder and age.
        lock: LockStatus,
    },
    /// The dry run failed.
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    /// The in-process controller could not adopt, create or delete the pods of an empty plan.
    #[error("the pods of {daemon_set} could not be reconciled within 30 s")]
    NotReconciled {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// What kept it from being done.
        source: Unreconciled,
    },
    /// The DaemonSet was applied, but a new plan still has changes.
    #[error("{daemon_set} was applied, but still differs: {}", paths.join(", "))]
    StillDiffers {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// The fields that differ.
        paths: Vec<String>,
    },
    /// The system has no random numbers.
    #[error("cannot get random numbers from the system")]
    Random(#[source] getrandom::Error),
    /// The output cannot be rendered.
    #[error(transparent)]
    Render(#[from] render::Error),
    /// Writing to standard output failed.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
    /// The current folder does not exist or is not accessible.
    #[error("the current folder cannot be found")]
    CurrentFolder(#[source] io::Error),
    /// The runtime or its signal handlers cannot be started.
    #[error("cannot start")]
    Process(#[source] io::Error),
}

/// Where DaemonSets are searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the manifests from git, files or standard input.
    Manifests,
    /// In the cluster.
    Cluster,
    /// In the cluster, of which only one namespace was read.
    Namespace,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Manifests => "manifests",
            Self::Cluster | Self::Namespace => "cluster",
        })
    }
}

impl From<manifest::Errors> for Error {
    fn from(errors: manifest::Errors) -> Self {
        Self::Manifest(errors)
    }
}

fn listed(keys: &[DaemonSetKey]) -> String {
    keys.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn lines(all: &[Stale]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Missing permissions and paused DaemonSets, one per line.
fn needed(missing: &[Need], paused: &[DaemonSetKey]) -> String {
    let missing = missing.iter().map(ToString::to_string);
    let paused =
        paused.iter().map(|key| format!("{key} stays paused: its update strategy is OnDelete"));
    missing.chain(paused).collect::<Vec<_>>().join("\n")
}

/// The guards with the flags that allow them, one per line.
fn blocked(guards: &[Guard]) -> String {
    let words = guards.iter().map(|guard| {
        let about = guard.daemon_set.as_deref().map(|key| format!("{key}: ")).unwrap_or_default();
        let flag = guard.allow_flag.as_ref().map(|flag| format!(" (allow with {flag})"));
        format!("{about}{}{}", guard.message, flag.unwrap_or_default())
    });
    let words: Vec<String> = words.collect();
    // A guard about one DaemonSet blocks only that one; others may have been applied.
    let about_one = guards.iter().all(|guard| guard.daemon_set.is_some());
    let unchanged =
        if about_one { "these DaemonSets were not changed" } else { "nothing was changed" };
    format!("blocked by guards; {unchanged}\n{}", words.join("\n"))
}

fn none_mentions(files: usize, only: Option<&str>) -> String {
    match (files, only) {
        (_, Some(path)) => format!(" in `{path}`"),
        (0, None) => ": there are no manifest files".to_owned(),
        (1, None) => ": the only manifest file has none".to_owned(),
        (files, None) => format!(": none of the {files} manifest files has one"),
    }
}

/// What the files have instead.
fn has(files: usize, kinds: &BTreeMap<String, usize>) -> String {
    let kinds: Vec<_> = kinds.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    match (kinds.is_empty(), files) {
        (true, _) | (false, 0) => String::new(),
        (false, 1) => format!("; it has {}", kinds.join(", ")),
        (false, _) => format!("; they have {}", kinds.join(", ")),
    }
}

/// A single error is printed alone, several below a heading.
fn manifest_errors(errors: &manifest::Errors) -> String {
    match errors.len() {
        1 => errors.to_string(),
        count => format!("{count} errors in the manifests\n{errors}"),
    }
}
