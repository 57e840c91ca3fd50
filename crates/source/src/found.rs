//! What was read, and where it came from.

use daemonset::model::ManifestFile;

use super::unrendered::Unrendered;
use super::warning::Warning;

/// Size limit of one wanted file, in bytes; a larger file is an error.
pub const FILE_LIMIT: usize = 3 << 20;

/// The result of [`read`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Read {
    /// The wanted files: from git sorted by path, otherwise in the order of the request.
    pub files: Vec<ManifestFile>,
    /// Number of manifest files that were searched and not wanted.
    pub unwanted: usize,
    /// Those of them that the request names, and standard input, unless they are too large: kubectl
    /// reads them whatever they contain.
    pub named: Vec<ManifestFile>,
    /// Folders that must be rendered first, and were not read.
    pub unrendered: Vec<Unrendered>,
    /// The origin of the files, for provenance.
    pub origin: Origin,
    /// Warnings, for example about files that were skipped.
    pub warnings: Vec<Warning>,
}

/// The origin of manifests, for provenance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The repository without credentials: the URL it was fetched from, else the `origin` remote
    /// of a local one, else its folder. `None` for plain files.
    pub repository: Option<String>,
    /// The commit that was read. `None` for plain files.
    pub commit: Option<Commit>,
    /// The paths that were read, from the top of the repository (empty: all of it), or the names
    /// given.
    pub paths: Vec<String>,
}

/// A commit, for provenance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Commit {
    /// Full object name, 40 hexadecimal digits.
    pub id: String,
    /// First line of its message.
    pub subject: String,
}
