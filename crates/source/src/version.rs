//! The version of plain files: the commit that is checked out around them, or a digest of their
//! bytes if there is none.
//!
//! Bytes are compared with the commit's objects, so git's index does not matter. Not here: reading
//! the files (`disk`).

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::repository::{self, Found};
use super::{STANDARD_INPUT, shown};
use daemonset::model::ManifestFile;

/// Suffix of a commit id if a file differs from the commit.
const DIRTY: &str = "-dirty";

/// Prefix of a digest.
const SHA256: &str = "sha256:";

/// An identifier of the content of files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilesVersion {
    /// Full id of the commit at `HEAD`, with `-dirty` at its end when a file differs from it;
    /// `sha256:` and a digest of all files when they are not all in one working tree.
    pub id: String,
    /// First line of the commit's message.
    pub subject: Option<String>,
}

impl FilesVersion {
    /// The version of files that were read with `-f` in `current_dir`.
    pub fn of(files: &[ManifestFile], current_dir: &Path) -> Self {
        Self::of_head(files, current_dir).unwrap_or_else(|| Self::of_bytes(files))
    }

    /// The version by `HEAD`; `None` if the files are not all in one working tree, or its commit
    /// cannot be read.
    fn of_head(files: &[ManifestFile], current_dir: &Path) -> Option<Self> {
        let paths: Vec<PathBuf> =
            files.iter().map(|file| canonical(file, current_dir)).collect::<Option<_>>()?;
        let Found { repository, worktree } = repository::open(paths.first()?.parent()?).ok()?;
        let workdir = worktree.folder()?.canonicalize().ok()?;
        let commit = repository.head().ok()?.peel_to_commit().ok()?;
        let tree = commit.tree().ok()?;
        let mut same = true;
        for (file, path) in files.iter().zip(&paths) {
            let path = path.strip_prefix(&workdir).ok()?;
            let blob = tree.get_path(path).and_then(|entry| repository.find_blob(entry.id()));
            same &= blob.is_ok_and(|blob| blob.content() == file.bytes);
        }
        let dirty = if same { "" } else { DIRTY };
        Some(Self {
            id: format!("{}{dirty}", commit.id()),
            subject: Some(shown::line(commit.summary_bytes().unwrap_or_default())),
        })
    }

    /// The version by digest. Each file is hashed with its length, so that different lists of files
    /// differ. Names are not included.
    fn of_bytes(files: &[ManifestFile]) -> Self {
        let mut hash = Sha256::new();
        for file in files {
            hash.update(file.bytes.len().to_le_bytes());
            hash.update(&file.bytes);
        }
        let id = hash.finalize().iter().fold(SHA256.to_owned(), |mut id, byte| {
            // Writing to a string cannot fail.
            let _ = write!(id, "{byte:02x}");
            id
        });
        Self { id, subject: None }
    }
}

/// The path of a file with links resolved; `None` for standard input and everything that is not a
/// file.
fn canonical(file: &ManifestFile, current_dir: &Path) -> Option<PathBuf> {
    if &*file.path == STANDARD_INPUT {
        return None;
    }
    current_dir.join(&*file.path).canonicalize().ok().filter(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::Fixture;

    fn file(path: &str, text: &str) -> ManifestFile {
        ManifestFile { path: path.into(), bytes: text.into() }
    }

    #[test]
    fn files_are_compared_with_the_commit_around_them() {
        let fixture = Fixture::with_commit(&["a.yaml", "sub/b.yaml"]);
        let head = fixture.git("work", &["rev-parse", "HEAD"]);
        let (head, dirty) = (head.trim(), format!("{}-dirty", head.trim()));
        let committed = crate::fixture::WANTED;
        fixture.write("work/a.yaml", committed);
        fixture.write("work/new.yaml", committed);
        fixture.write("outside.yaml", committed);
        for (case, files, want) in [
            ("committed", vec![file("a.yaml", committed), file("sub/b.yaml", committed)], head),
            ("changed", vec![file("a.yaml", "other"), file("sub/b.yaml", committed)], &dirty),
            ("new", vec![file("new.yaml", committed)], &dirty),
            (
                "one is elsewhere",
                vec![file("a.yaml", committed), file("../outside.yaml", committed)],
                "sha256:",
            ),
            ("elsewhere", vec![file("../outside.yaml", committed)], "sha256:"),
            ("standard input", vec![file(STANDARD_INPUT, committed)], "sha256:"),
            ("gone", vec![file("gone.yaml", committed)], "sha256:"),
        ] {
            let version = FilesVersion::of(&files, &fixture.path("work"));
            if want == "sha256:" {
                assert!(version.id.starts_with(want) && version.id.len() == 7 + 64, "{case}");
                assert_eq!(version.subject, None, "{case}");
            } else {
                assert_eq!(version.id, want, "{case}");
                assert_eq!(version.subject.as_deref(), Some("first"), "{case}");
            }
        }
    }

    #[test]
    fn a_digest_is_that_of_the_bytes() {
        let of = |files: &[ManifestFile]| FilesVersion::of_bytes(files).id;
        assert_eq!(of(&[file("a", "x")]), of(&[file("b", "x")]));
        assert_ne!(of(&[file("a", "x")]), of(&[file("a", "y")]));
        assert_ne!(of(&[file("a", "xy"), file("b", "")]), of(&[file("a", "x"), file("b", "y")]));
    }
}
