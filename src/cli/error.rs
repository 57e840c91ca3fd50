//! Why a run failed, and how that is said: what failed, where, and what to do now.
//!
//! The words of the failure are the library's own; the advice is in `hints`. Not here: the number
//! that the process ends with (`exit`).

use std::fmt;
use std::io;
use std::path::PathBuf;

use anstyle::{AnsiColor, Style};

use super::exit::Exit;
use super::hints;
use crate::model::{DaemonSetKey, NodeName};
use crate::plan::NoSuchRevision;
use crate::render::neutral;
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
    /// `-f -` together with `--snapshot -`.
    #[error("standard input cannot be both the manifests and the snapshot")]
    StandardInputTwice,
    /// `ds-plan snapshot` together with `--snapshot`.
    #[error("`ds-plan snapshot` records a live cluster; it does not read --snapshot")]
    RecordingOfRecording,
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
            | Self::Process(_) => Exit::Failed,
            Self::StandardInputTwice | Self::RecordingOfRecording | Self::NoSuchPage { .. } => {
                Exit::Usage
            }
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
    let mut lines = text.lines();
    let first = neutral::line(lines.next().unwrap_or_default());
    writeln!(f, "{indent}{style}{label}{style:#}: {first}")?;
    for line in lines {
        writeln!(f, "{indent}  {}", neutral::line(line))?;
    }
    Ok(())
}
