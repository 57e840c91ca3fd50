//! Errors of rehearsals, and of recordings where a live cluster is needed.

use std::io;
use std::path::PathBuf;

use crate::exit::Exit;
use embedded::UnreadableObject;

/// A recorded cluster cannot be used this way, or cannot be rehearsed on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RehearsalError {
    /// `ds-plan snapshot` together with `--snapshot`.
    #[error("`ds-plan snapshot` records a live cluster; it does not read --snapshot")]
    RecordingOfRecording,
    /// `ds-apply` together with `--snapshot`.
    #[error("a recorded cluster cannot be changed; --snapshot requires --rehearse")]
    WritingToRecording,
    /// A command that needs a live cluster together with `--snapshot`.
    #[error("`ds-apply {command}` needs a live cluster; it does not read --snapshot")]
    LiveOnly {
        /// The command.
        command: &'static str,
    },
    /// `release --rehearse`.
    #[error("a release cannot be rehearsed: it ends when the controller resumes")]
    ReleaseRehearsed,
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
    /// A file of recorded answers of checks cannot be read.
    #[error("cannot read the answers of checks {}", file.display())]
    OpenAnswers {
        /// The file.
        file: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// A file is not what `ds-plan checks --record` writes.
    #[error("{} is not a CheckAnswers document: {reason}", file.display())]
    Answers {
        /// The file.
        file: PathBuf,
        /// The parse error, with its position.
        reason: String,
    },
    /// The snapshot cannot be loaded into the embedded cluster.
    #[error("cannot rehearse on this cluster")]
    Load(#[source] UnreadableObject),
}

impl RehearsalError {
    /// The outcome of a run that failed with this error.
    pub(super) fn exit(&self) -> Exit {
        match self {
            Self::RecordingOfRecording
            | Self::WritingToRecording
            | Self::LiveOnly { .. }
            | Self::ReleaseRehearsed => Exit::Usage,
            Self::OpenFaults { .. }
            | Self::Faults { .. }
            | Self::OpenAnswers { .. }
            | Self::Answers { .. }
            | Self::Load(_) => Exit::Failed,
        }
    }
}
