//! What a reader of manifests should know although nothing failed.

use std::fmt;

/// Something that was passed over, or is not what it seems.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Warning {
    /// A symbolic link with a manifest's name; links are not followed.
    Symlink {
        /// The link.
        path: String,
    },
    /// Another repository inside this one; its files belong to that one.
    Submodule {
        /// Where it is mounted.
        path: String,
    },
    /// A pipe, socket or device with a manifest's name, found in a folder.
    Special {
        /// Its path.
        path: String,
    },
    /// A manifest whose content is kept in Git LFS; only a pointer to it is in the repository.
    LfsPointer {
        /// The file.
        path: String,
    },
    /// Manifest files on disk are not those of the commit that was read.
    WorkingTreeDiffers {
        /// How many files differ, are new, or are gone.
        count: usize,
        /// The first few, by path.
        first: Vec<String>,
    },
    /// The working tree could not be compared with the commit that was read.
    WorkingTreeUnknown {
        /// What stood in the way.
        reason: String,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Symlink { path } => write!(f, "`{path}` is a symbolic link and was not read"),
            Self::Submodule { path } => write!(f, "`{path}` is a submodule and was not read"),
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
