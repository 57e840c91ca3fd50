//! Errors of saved plans, and of files that have to be signed.

use std::io;
use std::path::PathBuf;

use crate::exit::Exit;
use crate::file_digest::FileDigest;
use daemonset::model::Uid;

/// A saved plan or a signed file is not accepted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SavedPlanError {
    /// A file where the name of a DaemonSet is expected.
    #[error("`{0}` is a file, not a DaemonSet of the manifests")]
    FileAsName(String),
    /// A saved plan cannot be opened.
    #[error("cannot read the plan {}", file.display())]
    Open {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// A file that is not a saved plan.
    #[error("{} is not a saved plan", file.display())]
    NotAPlan {
        /// The file.
        file: PathBuf,
        /// The parse error.
        source: serde_json::Error,
    },
    /// The digest of the file is not that of the approved plan.
    #[error("{} is not the approved plan: its digest is {found}, not {approved}", file.display())]
    OtherDigest {
        /// The file.
        file: PathBuf,
        /// The digest in `--sha256`.
        approved: FileDigest,
        /// The digest of the file.
        found: FileDigest,
    },
    /// A saved plan names its commit by a branch or an abbreviated id, which can change.
    #[error("{} has no full commit id: `{commit}`", file.display())]
    NoFullCommit {
        /// The file.
        file: PathBuf,
        /// The commit as it is written in the plan.
        commit: String,
    },
    /// A saved plan of plain files, without `-f`.
    #[error("{} was made from files, which are not in it: {}", file.display(), paths.join(", "))]
    OfFiles {
        /// The file.
        file: PathBuf,
        /// The files and folders that it was made from.
        paths: Vec<String>,
    },
    /// A saved plan of a repository, which is not the one of the current folder.
    #[error("no git repository at `{folder}` or above it, and {} was made from one", file.display())]
    NoRepository {
        /// The file.
        file: PathBuf,
        /// Folder in which the search began.
        folder: String,
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
    /// A signature is required, but a live cluster or standard input has none.
    #[error("--require-signature requires a file: --snapshot FILE, or --plan FILE")]
    NothingSigned,
    /// The verifier, cosign, is not installed.
    #[error("--require-signature needs cosign, which was not found on PATH")]
    NoCosign,
    /// A file is not signed by the required identity.
    #[error("{} is not signed by {identity}\n{output}", file.display())]
    NotSigned {
        /// The file.
        file: PathBuf,
        /// The required identity.
        identity: String,
        /// The output of cosign.
        output: String,
    },
    /// The signature of a file cannot be checked.
    #[error("cannot check the signature of {}", file.display())]
    SignatureUnchecked {
        /// The file.
        file: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl SavedPlanError {
    /// The outcome of a run that failed with this error.
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::OtherCluster { .. } => Exit::Stale,
            Self::OfFiles { .. } | Self::NothingSigned => Exit::Usage,
            Self::FileAsName(_)
            | Self::Open { .. }
            | Self::NotAPlan { .. }
            | Self::NoRepository { .. }
            | Self::OtherDigest { .. }
            | Self::NoFullCommit { .. }
            | Self::NoCosign
            | Self::NotSigned { .. }
            | Self::SignatureUnchecked { .. } => Exit::Failed,
        }
    }
}

fn uids(planned: Option<&Uid>, found: Option<&Uid>) -> String {
    let shown = |uid: Option<&Uid>| uid.map_or_else(|| "unknown".to_owned(), ToString::to_string);
    format!("the plan has uid {}, this cluster has {}", shown(planned), shown(found))
}
