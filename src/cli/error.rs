//! Why a run failed, and how that is said: what failed, where, and what to do now.
//!
//! The words of the failure are the library's own; the advice is in `hints`. Not here: the number
//! that the process ends with (`exit`).

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::PathBuf;

use anstyle::{AnsiColor, Style};

use super::exit::Exit;
use super::file_digest::FileDigest;
use super::hints;
use crate::apply::PreflightError;
use crate::apply::permissions::Need;
use crate::cluster::{LockError, WriteError};
use crate::merge::ManagedFieldsError;
use crate::model::{DaemonSetKey, NodeName, RevisionName, Uid};
use crate::plan::{FieldOwner, Guard, Hold, HoldError, LockStanding, NoSuchRevision, Stale};
use crate::render::neutral;
use crate::simulator::UnreadableObject;
use crate::{cluster, manifest, source};

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The manifests' bytes could not be had.
    #[error(transparent)]
    Source(#[from] source::Error),
    /// The manifests are wrong.
    #[error("{}", manifest_errors(_0))]
    Manifest(manifest::Errors),
    /// No file so much as mentions a DaemonSet.
    #[error("no DaemonSet found: {}", none_mentions(*files))]
    NoDaemonSet {
        /// How many were looked at.
        files: usize,
    },
    /// The cluster, live or recorded, could not be read.
    #[error(transparent)]
    Cluster(#[from] cluster::Error),
    /// `-n`, `-l` and the names leave nothing over.
    #[error("no DaemonSet in the {place} is left by -n, -l and the names given")]
    NothingSelected {
        /// What is there, sorted.
        known: Vec<DaemonSetKey>,
        /// Where it is.
        place: Place,
    },
    /// DaemonSets that were named and are not there.
    #[error("DaemonSet {} not found in the {place}", listed(missing))]
    NotFound {
        /// Those that are missing.
        missing: Vec<DaemonSetKey>,
        /// Where they were looked for.
        place: Place,
        /// What is there instead, sorted.
        known: Vec<DaemonSetKey>,
    },
    /// A node that was named and is not there.
    #[error("node {node} not found in the cluster")]
    NoSuchNode {
        /// As named.
        node: NodeName,
        /// A node of almost that name.
        similar: Option<NodeName>,
    },
    /// A revision that was asked for and is not there.
    #[error(transparent)]
    NoSuchRevision(#[from] NoSuchRevision),
    /// A command that has no manual page.
    #[error("there is no command {command}")]
    NoSuchPage {
        /// As named.
        command: String,
        /// The commands that there are.
        known: Vec<String>,
    },
    /// A manual page cannot be written.
    #[error("cannot write {}", path.display())]
    Page {
        /// Where to.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The commit where a pull request branched off cannot be read.
    #[error("the merge base with `{revision}` cannot be read\n{errors}")]
    Base {
        /// The revision that `--base` names.
        revision: String,
        /// What is wrong there.
        errors: manifest::Errors,
    },
    /// A saved plan could not be written.
    #[error("cannot write {}", file.display())]
    Save {
        /// The file.
        file: PathBuf,
        /// What stood in the way.
        source: io::Error,
    },
    /// `--comment` without `-o markdown`.
    #[error("--comment names a comment in Markdown")]
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
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A file of faults says something else.
    #[error("{} is no document of faults: {reason}", file.display())]
    Faults {
        /// The file.
        file: PathBuf,
        /// What is wrong, and where.
        reason: String,
    },
    /// The embedded cluster cannot be loaded.
    #[error("the cluster cannot be rehearsed on")]
    Rehearsal(#[source] UnreadableObject),
    /// `ds-apply` together with `--snapshot`.
    #[error("a recorded cluster cannot be changed; only a rehearsal reads --snapshot")]
    WritingToRecording,
    /// `release --rehearse`.
    #[error("a release cannot be rehearsed: it ends when the controller takes over")]
    ReleaseRehearsed,
    /// `--prune` of a part of the source.
    #[error("--prune is for a whole source: names, --selector and -n leave a part of it")]
    PruneNarrowed,
    /// `--prune` of a source of which something was passed over.
    #[error("--prune is for a whole source, and a part of it was not read\n{}", _0.join("\n"))]
    PruneUnread(Vec<String>),
    /// A DaemonSet that was to be deleted is still there.
    #[error("cannot delete DaemonSet {daemon_set}")]
    Remove {
        /// Which one.
        daemon_set: DaemonSetKey,
        /// What the server says.
        source: Box<WriteError>,
    },
    /// A file where the name of a DaemonSet is expected.
    #[error("`{0}` is a file, and no DaemonSet of the manifests")]
    FileAsName(String),
    /// A saved plan cannot be opened.
    #[error("cannot read the plan {}", file.display())]
    OpenPlan {
        /// The file.
        file: PathBuf,
        /// What stood in the way.
        source: io::Error,
    },
    /// A file that is no saved plan.
    #[error("{} is no saved plan", file.display())]
    PlanFile {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// Another file than the one that was approved.
    #[error("{} is not the plan that was approved: it has {found}, not {approved}", file.display())]
    PlanDigest {
        /// The file.
        file: PathBuf,
        /// What `--sha256` says.
        approved: FileDigest,
        /// What the file has.
        found: FileDigest,
    },
    /// A signature is demanded of something that has none: a live cluster, standard input.
    #[error("--require-signature is for a file: --snapshot FILE, or --plan FILE")]
    NothingSigned,
    /// The verifier is not there.
    #[error("cosign was not found on PATH, and only it can check --require-signature")]
    NoCosign,
    /// A file that is not signed as it has to be.
    #[error("{} is not signed by {identity}\n{said}", file.display())]
    NotSigned {
        /// The file.
        file: PathBuf,
        /// Who had to.
        identity: String,
        /// What cosign says.
        said: String,
    },
    /// Whether a file is signed cannot be found out.
    #[error("the signature of {} cannot be checked", file.display())]
    SignatureUnchecked {
        /// The file.
        file: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A saved plan that names its commit by something that changes.
    #[error("{} has no full commit id: `{commit}`", file.display())]
    PlanCommit {
        /// The file.
        file: PathBuf,
        /// What it has.
        commit: String,
    },
    /// A saved plan of no commit, and no files to read.
    #[error("{} is a plan of files, not of a commit", file.display())]
    PlanOfFiles {
        /// The file.
        file: PathBuf,
    },
    /// A saved plan that was made for another cluster, or for nobody knows which.
    #[error("{} is of another cluster: {}; nothing was changed", file.display(), uids(planned.as_ref(), found.as_ref()))]
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
    /// `--timeout`, before its turn began.
    #[error("{0} was not begun: the time of the run is over")]
    TimeIsOver(DaemonSetKey),
    /// A rollout that `ds-apply` holds is not rolled by another way.
    #[error("{daemon_set} is {hold}")]
    HeldByApply {
        /// Which one.
        daemon_set: DaemonSetKey,
        /// The hold.
        hold: Box<Hold>,
    },
    /// The controller replaces the pods.
    #[error("{0} does not declare OnDelete: the controller replaces its pods")]
    NotOnDelete(DaemonSetKey),
    /// The plan has no such wave.
    #[error("there is no wave {index}, the plan has {waves}")]
    NoSuchWave {
        /// As asked for.
        index: u32,
        /// How many there are.
        waves: usize,
    },
    /// There is no revision before the live one.
    #[error("{0} has no earlier revision to go back to")]
    NothingBefore(DaemonSetKey),
    /// No revision was applied from that commit.
    #[error("no revision of {daemon_set} was applied from commit {commit}")]
    NoRevisionOf {
        /// Of which DaemonSet.
        daemon_set: DaemonSetKey,
        /// As asked for.
        commit: String,
    },
    /// The template in a revision cannot be read.
    #[error("the template of revision {revision} cannot be read")]
    RevisionUnreadable {
        /// Which one.
        revision: RevisionName,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// Going back would leave fields that others own.
    #[error("{daemon_set} would not be as it was: {}", stay(fields))]
    FieldsStay {
        /// Which one.
        daemon_set: DaemonSetKey,
        /// What stays.
        fields: Vec<FieldOwner>,
    },
    /// Who owns the fields of the live object cannot be read.
    #[error(transparent)]
    Ownership(#[from] ManagedFieldsError),
    /// The memory of a hold cannot be read.
    #[error("what {daemon_set} is held for cannot be read")]
    Hold {
        /// Which one.
        daemon_set: DaemonSetKey,
        /// What is wrong with it.
        source: HoldError,
    },
    /// Nobody has agreed, and nobody can be asked.
    #[error("nothing was changed: nobody can be asked here")]
    NobodyToAsk,
    /// The answer was not `yes`.
    #[error("nothing was changed: not agreed to")]
    Declined,
    /// The answer cannot be read.
    #[error("the answer cannot be read")]
    Answer(#[source] io::Error),
    /// Guards that nobody has allowed.
    #[error("{}", refused(_0))]
    Refused(Vec<Guard>),
    /// The cluster is no longer the one that was planned for.
    #[error("the plan no longer fits the cluster; nothing was changed\n{}", lines(_0))]
    Stale(Vec<Stale>),
    /// Admission changes the template.
    #[error("the server changes the pod template of {0}: an admission webhook or policy does")]
    Mutated(DaemonSetKey),
    /// The strategy cannot be read.
    #[error("spec.updateStrategy cannot be read")]
    Declared(#[source] serde_json::Error),
    /// What a run needs, and this user may not do.
    #[error("not permitted; nothing was changed\n{}", needed(missing, held))]
    NotPermitted {
        /// What is missing.
        missing: Vec<Need>,
        /// What earlier runs have left held.
        held: Vec<DaemonSetKey>,
    },
    /// A rollout that an earlier run has begun cannot be gone on with.
    #[error("{daemon_set} stays held: its update strategy is OnDelete")]
    StaysHeld {
        /// Which one.
        daemon_set: DaemonSetKey,
        /// What is not permitted.
        source: Box<Error>,
    },
    /// The lock was not to be had.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A lock is to be taken away from a run that is under way.
    #[error("{daemon_set} stays locked by {}, which is under way", lock.holder)]
    HolderIsLive {
        /// Whose lock.
        daemon_set: DaemonSetKey,
        /// How it stands.
        lock: LockStanding,
    },
    /// The server does not accept what is to come.
    #[error(transparent)]
    Preflight(#[from] PreflightError),
    /// It was carried out, and yet something is to be done.
    #[error("{daemon_set} was carried out, and still differs: {}", paths.join(", "))]
    NotSettled {
        /// Which one.
        daemon_set: DaemonSetKey,
        /// The fields that differ.
        paths: Vec<String>,
    },
    /// The system has no random numbers.
    #[error("no random numbers to be had")]
    Random(#[source] getrandom::Error),
    /// The document could not be put into words.
    #[error(transparent)]
    Render(#[from] crate::render::Error),
    /// Standard output does not take what is written.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
    /// The folder that the process was started in is gone, or may not be entered.
    #[error("the current folder cannot be found")]
    CurrentFolder(#[source] io::Error),
    /// The process's surroundings are not as they should be.
    #[error("cannot start")]
    Process(#[source] io::Error),
}

/// Where DaemonSets are looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In what was read from git, files or standard input.
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

impl Error {
    /// Whether the server says that this user may not.
    pub(super) fn is_forbidden(&self) -> bool {
        let by_write = |error: &WriteError| {
            matches!(
                error,
                WriteError::Forbidden { .. }
                    | WriteError::Cluster(cluster::Error::Forbidden { .. })
            )
        };
        match self {
            Self::Cluster(error) | Self::Preflight(PreflightError::Cluster(error)) => {
                matches!(error, cluster::Error::Forbidden { .. })
            }
            Self::Preflight(
                PreflightError::DaemonSet(error)
                | PreflightError::Pod(error)
                | PreflightError::TakeOver(error),
            ) => by_write(error),
            Self::Preflight(PreflightError::MayNotCreate { .. }) => true,
            _others => false,
        }
    }

    /// Whether it says something about one DaemonSet alone, and of what stands in its namespace: the
    /// others have their turns.
    pub(super) fn is_about_one(&self) -> bool {
        match self {
            Self::Refused(_)
            | Self::Stale(_)
            | Self::Mutated(_)
            | Self::NotSettled { .. }
            | Self::HeldByApply { .. }
            | Self::FieldsStay { .. }
            | Self::Hold { .. }
            | Self::Ownership(_)
            | Self::HolderIsLive { .. }
            | Self::Lock(LockError::Held { .. })
            | Self::Preflight(
                PreflightError::DaemonSet(_)
                | PreflightError::Pod(_)
                | PreflightError::Ledger(_)
                | PreflightError::Ownership(_)
                | PreflightError::TakeOver(_),
            ) => !self.is_forbidden(),
            Self::Cluster(cluster::Error::Object { .. }) => true,
            _others => false,
        }
    }

    /// How a run that failed with this ends.
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::Source(_)
            | Self::Manifest(_)
            | Self::NoDaemonSet { .. }
            | Self::Cluster(_)
            | Self::NothingSelected { .. }
            | Self::Base { .. }
            | Self::Save { .. }
            | Self::NotFound { .. }
            | Self::NoSuchNode { .. }
            | Self::NoSuchRevision(_)
            | Self::Page { .. }
            | Self::Render(_)
            | Self::Output(_)
            | Self::Random(_)
            | Self::CurrentFolder(_)
            | Self::OpenPlan { .. }
            | Self::NotOnDelete(_)
            | Self::NoSuchWave { .. }
            | Self::NothingBefore(_)
            | Self::NoRevisionOf { .. }
            | Self::RevisionUnreadable { .. }
            | Self::Ownership(_)
            | Self::Hold { .. }
            | Self::PlanFile { .. }
            | Self::PlanDigest { .. }
            | Self::NoCosign
            | Self::NotSigned { .. }
            | Self::SignatureUnchecked { .. }
            | Self::PlanCommit { .. }
            | Self::FileAsName(_)
            | Self::NobodyToAsk
            | Self::Declined
            | Self::Answer(_)
            | Self::Declared(_)
            | Self::Lock(LockError::Read(_) | LockError::Write { .. })
            | Self::Preflight(_)
            | Self::OpenFaults { .. }
            | Self::Faults { .. }
            | Self::Rehearsal(_)
            | Self::Remove { .. }
            | Self::Process(_) => Exit::Failed,
            Self::Stale(_)
            | Self::OtherCluster { .. }
            | Self::Mutated(_)
            | Self::NotSettled { .. } => Exit::Stale,
            Self::NotPermitted { missing: _, held } if held.is_empty() => Exit::Failed,
            Self::TimeIsOver(_) | Self::NotPermitted { .. } | Self::StaysHeld { .. } => Exit::Held,
            Self::Interrupted => Exit::Interrupted,
            Self::HeldByApply { .. } | Self::FieldsStay { .. } | Self::Refused(_) => Exit::Refused,
            Self::Lock(LockError::Held { .. } | LockError::Lost { .. })
            | Self::HolderIsLive { .. } => Exit::Locked,
            Self::CommentUnread
            | Self::StandardInputTwice
            | Self::RecordingOfRecording
            | Self::WritingToRecording
            | Self::ReleaseRehearsed
            | Self::PruneNarrowed
            | Self::PruneUnread(_)
            | Self::PlanOfFiles { .. }
            | Self::NothingSigned
            | Self::NoSuchPage { .. } => Exit::Usage,
        }
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
        format!("{path} stays, owned by {}", manager.as_deref().unwrap_or("nobody"))
    });
    words.collect::<Vec<_>>().join("; ")
}

fn uids(planned: Option<&Uid>, found: Option<&Uid>) -> String {
    let shown = |uid: Option<&Uid>| uid.map_or_else(|| "not known".to_owned(), ToString::to_string);
    format!("the uid in it is {}, the cluster's is {}", shown(planned), shown(found))
}

fn lines(all: &[Stale]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// A line each.
fn needed(missing: &[Need], held: &[DaemonSetKey]) -> String {
    let missing = missing.iter().map(ToString::to_string);
    let held = held.iter().map(|key| format!("{key} stays held: its update strategy is OnDelete"));
    missing.chain(held).collect::<Vec<_>>().join("\n")
}

/// Each guard with the flag that allows it, a line each.
fn refused(guards: &[Guard]) -> String {
    let words = guards.iter().map(|guard| {
        let about = guard.daemon_set.as_deref().map(|key| format!("{key}: ")).unwrap_or_default();
        let flag = guard.allow_flag.as_ref().map(|flag| format!(" (allowed by {flag})"));
        format!("{about}{}{}", guard.message, flag.unwrap_or_default())
    });
    let words: Vec<String> = words.collect();
    format!("refused; nothing was changed\n{}", words.join("\n"))
}

fn none_mentions(files: usize) -> String {
    match files {
        0 => "there are no manifest files".to_owned(),
        1 => "the one manifest file mentions none".to_owned(),
        files => format!("none of the {files} manifest files mentions one"),
    }
}

/// One error stands for itself; several get a heading.
fn manifest_errors(errors: &manifest::Errors) -> String {
    match errors.len() {
        1 => errors.to_string(),
        count => format!("{count} errors in the manifests\n{errors}"),
    }
}

const ERROR: Style = AnsiColor::Red.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();
pub(super) const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// An error as people read it: message, causes, advice; harmless whatever the input said.
pub(super) struct Report<'a>(pub(super) &'a Error);

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        paragraph(f, "", ("error", ERROR), &self.0.to_string())?;
        let mut cause = std::error::Error::source(self.0);
        while let Some(error) = cause {
            paragraph(f, "  ", ("caused by", Style::new()), &error.to_string())?;
            cause = error.source();
        }
        for hint in hints::hints(self.0) {
            paragraph(f, "", ("hint", HINT), &hint)?;
        }
        Ok(())
    }
}

/// `label: text`, further lines indented by two more.
pub(super) fn paragraph(
    f: &mut fmt::Formatter<'_>,
    indent: &str,
    (label, style): (&str, Style),
    text: &str,
) -> fmt::Result {
    let mut lines = text.lines().map(shortened);
    let first = lines.next().unwrap_or_default();
    let first = neutral::line(&first);
    writeln!(f, "{indent}{style}{label}{style:#}: {first}")?;
    for line in lines {
        writeln!(f, "{indent}  {}", neutral::line(&line))?;
    }
    Ok(())
}

/// The longest line of a message, in characters: what it quotes may be as long as the input.
const LONGEST_LINE: usize = 8_000;

fn shortened(line: &str) -> Cow<'_, str> {
    match line.char_indices().nth(LONGEST_LINE) {
        None => line.into(),
        Some((end, _)) => format!("{}… ({} bytes more)", &line[..end], line.len() - end).into(),
    }
}
