//! Warnings of reading a source.

use std::fmt;

/// A file or folder that was skipped, or that differs from the commit.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Warning {
    /// A symbolic link with a manifest's name; links are not followed.
    Symlink {
        /// The link.
        path: String,
    },
    /// A submodule; its files belong to another repository.
    Submodule {
        /// Path of the submodule.
        path: String,
    },
    /// A folder in one that is not read recursively.
    SubFolder {
        /// Its path.
        path: String,
    },
    /// A pipe, socket or device with a manifest's name, found in a folder.
    Special {
        /// Its path.
        path: String,
    },
    /// A manifest in Git LFS; the repository contains only a pointer to it.
    LfsPointer {
        /// The file.
        path: String,
    },
    /// Manifest files on disk are not those of the commit that was read.
    WorkingTreeDiffers {
        /// Number of files that differ, are new, or are missing.
        count: usize,
        /// Paths of the first few.
        first: Vec<String>,
    },
    /// The working tree could not be compared with the commit that was read.
    WorkingTreeUnknown {
        /// The cause.
        reason: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Symlink { path } => write!(f, "`{path}` is a symbolic link and was not read"),
            Self::Submodule { path } => write!(f, "`{path}` is a submodule and was not read"),
            Self::SubFolder { path } => write!(f, "the sub-folder `{path}` was not read"),
            Self::Special { path } => write!(f, "`{path}` is not a regular file and was not read"),
            Self::LfsPointer { path } => {
                write!(f, "`{path}` is a Git LFS pointer; its content was not read")
            }
            Self::WorkingTreeDiffers { count, first } => {
                let more = if *count > first.len() { ", …" } else { "" };
                let files = if *count == 1 { "file differs" } else { "files differ" };
                let names = first.join("`, `");
                write!(f, "{count} {files} in the working tree: `{names}`{more}")
            }
            Self::WorkingTreeUnknown { reason } => {
                write!(f, "the working tree could not be compared: {reason}")
            }
        }
    }
}
