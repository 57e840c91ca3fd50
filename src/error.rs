//! The errors of a run and their messages.
//!
//! The messages of the library's errors are its own. Not here: the hints (`hints`), the exit code
//! (`outcome`) and the printed form (`report`).

mod outcome;
mod report;

pub(super) use report::{Report, WARNING, paragraph};

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::file_digest::FileDigest;
use cluster::{LockError, WriteError};
use daemonset::model::{DaemonSetKey, NodeName, RevisionName, Uid};
use embedded::UnreadableObject;
use executor::PreflightError;
use executor::permissions::Need;
use planner::plan::{
    FieldOwner, Guard, LockStanding, NoSuchRevision, PausedRollout, PausedRolloutError, Stale,
};
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
    /// No file contains the word DaemonSet.
    #[error("no DaemonSet found: {}", none_mentions(*files))]
    NoDaemonSet {
        /// Number of files that were read.
        files: usize,
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
    /// A node that was named does not exist.
    #[error("node {node} not found in the cluster")]
    NoSuchNode {
        /// The name that was given.
        node: NodeName,
        /// A node with a similar name.
        similar: Option<NodeName>,
    },
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
    /// The commit where a pull request branched off cannot be read.
    #[error("the merge base with `{revision}` cannot be read\n{errors}")]
    Base {
        /// The revision that `--base` names.
        revision: String,
        /// The errors of its manifests.
        errors: manifest::Errors,
    },
    /// A saved plan could not be written.
    #[error("cannot write {}", file.display())]
    Save {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// `--comment` without `-o markdown`.
    #[error("--comment requires `-o markdown`")]
    CommentUnread,
    /// `-f -` together with `--snapshot -`.
    #[error("standard input cannot be both the manifests and the snapshot")]
    StandardInputTwice,
    /// `ds-plan snapshot` together with `--snapshot`.
    #[error("`ds-plan snapshot` records a live cluster; it does not read --snapshot")]
    RecordingOfRecording,
    /// A file of faults cannot be read.
    #[error("cannot read the faults {}", file.display())]
    OpenFaults {
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file of faults is not a Faults document.
    #[error("{} is not a Faults document: {reason}", file.display())]
    Faults {
        /// The file.
        file: PathBuf,
        /// The parse error, with its position.
        reason: String,
    },
    /// The snapshot cannot be loaded into the embedded cluster.
    #[error("cannot rehearse on this cluster")]
    Rehearsal(#[source] UnreadableObject),
    /// `ds-apply` together with `--snapshot`.
    #[error("a recorded cluster cannot be changed; --snapshot requires --rehearse")]
    WritingToRecording,
    /// `release --rehearse`.
    #[error("a release cannot be rehearsed: it ends when the controller resumes")]
    ReleaseRehearsed,
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
    /// A file where the name of a DaemonSet is expected.
    #[error("`{0}` is a file, not a DaemonSet of the manifests")]
    FileAsName(String),
    /// A saved plan cannot be opened.
    #[error("cannot read the plan {}", file.display())]
    OpenPlan {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file that is not a saved plan.
    #[error("{} is not a saved plan", file.display())]
    PlanFile {
        /// The file.
        file: PathBuf,
        /// The parse error.
        source: serde_json::Error,
    },
    /// The digest of the file is not that of the approved plan.
    #[error("{} is not the approved plan: its digest is {found}, not {approved}", file.display())]
    PlanDigest {
        /// The file.
        file: PathBuf,
        /// The digest in `--sha256`.
        approved: FileDigest,
        /// The digest of the file.
        found: FileDigest,
    },
    /// A signature is required, but a live cluster or standard input has none.
    #[error("--require-signature requires a file: --snapshot FILE, or --plan FILE")]
    NothingSigned,
    /// The verifier, cosign, is not installed.
    #[error("--require-signature needs cosign, which was not found on PATH")]
    NoCosign,
    /// A file is not signed by the required identity.
    #[error("{} is not signed by {identity}\n{said}", file.display())]
    NotSigned {
        /// The file.
        file: PathBuf,
        /// The required identity.
        identity: String,
        /// The output of cosign.
        said: String,
    },
    /// The signature of a file cannot be checked.
    #[error("cannot check the signature of {}", file.display())]
    SignatureUnchecked {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A saved plan names its commit by a branch or an abbreviated id, which can change.
    #[error("{} has no full commit id: `{commit}`", file.display())]
    PlanCommit {
        /// The file.
        file: PathBuf,
        /// The commit as it is written in the plan.
        commit: String,
    },
    /// A saved plan of plain files, without `-f`.
    #[error("{} is a plan of files, not of a commit", file.display())]
    PlanOfFiles {
        /// The file.
        file: PathBuf,
    },
    /// A saved plan was made for another or an unknown cluster.
    #[error(
        "{} is for another cluster: {}; nothing was changed",
        file.display(),
        uids(planned.as_ref(), found.as_ref())
    )]
    OtherCluster {
        /// The file.
        file: PathBuf,
        /// The uid in the plan.
        planned: Option<Uid>,
        /// The cluster's uid.
        found: Option<Uid>,
    },
    /// Ctrl-C or SIGTERM, before any pod was touched.
    #[error("interrupted before any pod was touched")]
    Interrupted,
    /// `--timeout` was reached before the apply of this DaemonSet started.
    #[error("{0} was not started: the run timed out")]
    TimeIsOver(DaemonSetKey),
    /// `ds-apply roll` does not continue a rollout that `ds-apply apply` has paused.
    #[error("{daemon_set} is {pause}")]
    PausedByApply {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// The paused rollout.
        pause: Box<PausedRollout>,
    },
    /// The update strategy is not `OnDelete`, so the controller replaces the pods.
    #[error("{0} does not declare OnDelete: the controller replaces its pods")]
    NotOnDelete(DaemonSetKey),
    /// The plan has no such wave.
    #[error("there is no wave {index}, the plan has {waves}")]
    NoSuchWave {
        /// The index that was requested.
        index: u32,
        /// Number of waves in the plan.
        waves: usize,
    },
    /// There is no revision before the live one.
    #[error("{0} has no earlier revision to roll back to")]
    NothingBefore(DaemonSetKey),
    /// No revision was applied from that commit.
    #[error("no revision of {daemon_set} was applied from commit {commit}")]
    NoRevisionOf {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// The commit that was requested.
        commit: String,
    },
    /// The template in a revision cannot be read.
    #[error("the template of revision {revision} cannot be read")]
    RevisionUnreadable {
        /// The revision.
        revision: RevisionName,
        /// The parse error.
        source: serde_json::Error,
    },
    /// Rolling back would keep fields that other field managers own.
    #[error("{daemon_set} cannot be restored exactly: {}", stay(fields))]
    FieldsStay {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// The fields that are kept, with their owners.
        fields: Vec<FieldOwner>,
    },
    /// `metadata.managedFields` of the live object cannot be read.
    #[error(transparent)]
    Ownership(#[from] ManagedFieldsError),
    /// The annotation of a paused rollout cannot be read.
    #[error("cannot read why {daemon_set} is paused")]
    PausedRollout {
        /// The DaemonSet.
        daemon_set: DaemonSetKey,
        /// The parse error.
        source: PausedRolloutError,
    },
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
    #[error("{}", refused(_0))]
    Refused(Vec<Guard>),
    /// The cluster or the source has changed since the plan was made.
    #[error("the plan no longer matches the cluster; nothing was changed\n{}", lines(_0))]
    Stale(Vec<Stale>),
    /// Admission changes the pod template.
    #[error("an admission webhook or policy changes the pod template of {0}")]
    Mutated(DaemonSetKey),
    /// The update strategy of the manifest cannot be parsed.
    #[error("spec.updateStrategy cannot be read")]
    Declared(#[source] serde_json::Error),
    /// The user does not have permissions that the run needs.
    #[error("not permitted; nothing was changed\n{}", needed(missing, held))]
    NotPermitted {
        /// The missing permissions.
        missing: Vec<Need>,
        /// The DaemonSets that earlier runs have left paused.
        held: Vec<DaemonSetKey>,
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
        lock: LockStanding,
    },
    /// The dry run failed.
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    /// The DaemonSet was applied, but a new plan still has changes.
    #[error("{daemon_set} was applied, but still differs: {}", paths.join(", "))]
    NotSettled {
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
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Manifests => "manifests",
            Self::Cluster => "cluster",
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

fn stay(fields: &[FieldOwner]) -> String {
    let words = fields.iter().map(|FieldOwner { path, manager }| {
        format!("{path} is kept, owned by {}", manager.as_deref().unwrap_or("no field manager"))
    });
    words.collect::<Vec<_>>().join("; ")
}

fn uids(planned: Option<&Uid>, found: Option<&Uid>) -> String {
    let shown = |uid: Option<&Uid>| uid.map_or_else(|| "unknown".to_owned(), ToString::to_string);
    format!("the plan has uid {}, this cluster has {}", shown(planned), shown(found))
}

fn lines(all: &[Stale]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// Missing permissions and paused DaemonSets, one per line.
fn needed(missing: &[Need], held: &[DaemonSetKey]) -> String {
    let missing = missing.iter().map(ToString::to_string);
    let held =
        held.iter().map(|key| format!("{key} stays paused: its update strategy is OnDelete"));
    missing.chain(held).collect::<Vec<_>>().join("\n")
}

/// The guards with the flags that allow them, one per line.
fn refused(guards: &[Guard]) -> String {
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

fn none_mentions(files: usize) -> String {
    match files {
        0 => "there are no manifest files".to_owned(),
        1 => "the only manifest file has none".to_owned(),
        files => format!("none of the {files} manifest files has one"),
    }
}

/// A single error is printed alone, several below a heading.
fn manifest_errors(errors: &manifest::Errors) -> String {
    match errors.len() {
        1 => errors.to_string(),
        count => format!("{count} errors in the manifests\n{errors}"),
    }
}
