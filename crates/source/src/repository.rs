//! Finds and opens the repository around a folder: files of a working tree are never taken for a
//! repository, and nothing is opened that could block.
//!
//! Follows git's `safe.bareRepository=explicit`: the author of a commit can add a `HEAD`, `config`,
//! `objects` and `refs` to its files, but no `.git`. Not here: reading from a repository (`git`),
//! comparing its working tree with a commit (`worktree`).

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use git2::{ErrorCode, Repository, RepositoryOpenFlags};

use super::{Error, shown};

/// Limit of the files in a repository's own folder, which is searched completely; larger than any
/// in practice.
const MOST_FILES: usize = 5_000_000;
/// Limit of nested folders: the names of branches are folders.
const DEEPEST: usize = 64;

/// An open repository.
pub(super) struct Found {
    pub(super) repository: Repository,
    pub(super) worktree: Worktree,
}

/// The files that a repository has checked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Worktree {
    /// A bare repository.
    None,
    /// This folder, which contains the `.git`.
    At(PathBuf),
    /// `core.worktree` names another folder than this one, which contains the `.git`. The other
    /// folder is not read.
    Elsewhere(PathBuf),
}

impl Worktree {
    /// The folder to which paths are relative.
    pub(super) fn folder(&self) -> Option<&Path> {
        match self {
            Self::None => None,
            Self::At(folder) | Self::Elsewhere(folder) => Some(folder),
        }
    }
}

/// Opens the repository around `start`, searched for upward as git does.
///
/// # Errors
/// There is no repository, it is a bare one inside of a working tree, it belongs to another user,
/// or it cannot be opened.
pub(super) fn open(start: &Path) -> Result<Found, Error> {
    let none: [&OsStr; 0] = [];
    let git_dir = Repository::discover_path(start, none).map_err(|e| not_opened(start, e))?;
    let git_dir = canonical(&git_dir)?;
    let holder = holder(&canonical(start)?, &git_dir);
    if holder.is_none()
        && let Some(around) = working_tree_around(&git_dir)
    {
        let (folder, around) = (shown::path(&git_dir), shown::path(&around));
        return Err(Error::EmbeddedRepository { folder, around });
    }
    refuse_what_blocks(&git_dir, 0, &mut 0)?;
    if let Some(common) = common_dir(&git_dir) {
        refuse_what_blocks(&common, 0, &mut 0)?;
    }
    let repository = Repository::open_ext(start, RepositoryOpenFlags::empty(), none)
        .map_err(|source| not_opened(start, source))?;
    let worktree = match (repository.workdir(), holder) {
        (None, _) | (_, None) => Worktree::None,
        (Some(named), Some(holder)) => {
            let same = named.canonicalize().is_ok_and(|named| named == holder);
            if same { Worktree::At(holder) } else { Worktree::Elsewhere(holder) }
        }
    };
    Ok(Found { repository, worktree })
}

fn canonical(path: &Path) -> Result<PathBuf, Error> {
    let not_read = |source| Error::Unreadable { path: shown::path(path), source };
    path.canonicalize().map_err(not_read)
}

/// The folder with the `.git` (a folder, or a file that names another one) through which the
/// repository was found from `start`. `None` if it was found as a bare repository.
fn holder(start: &Path, git_dir: &Path) -> Option<PathBuf> {
    if git_dir.file_name() == Some(OsStr::new(".git")) {
        return git_dir.parent().map(Path::to_path_buf);
    }
    if start.starts_with(git_dir) {
        return None;
    }
    start.ancestors().find(|folder| has_git(folder)).map(Path::to_path_buf)
}

/// The folder with a `.git` whose working tree contains `git_dir`.
fn working_tree_around(git_dir: &Path) -> Option<PathBuf> {
    // Repositories below a `.git` are git's own: of submodules and linked working trees.
    if git_dir.components().any(|part| part.as_os_str() == ".git") {
        return None;
    }
    git_dir.ancestors().skip(1).find(|folder| has_git(folder)).map(Path::to_path_buf)
}

fn has_git(folder: &Path) -> bool {
    fs::symlink_metadata(folder.join(".git")).is_ok()
}

/// The common folder of a linked working tree's repository.
fn common_dir(git_dir: &Path) -> Option<PathBuf> {
    let named = fs::read_to_string(git_dir.join("commondir")).ok()?;
    git_dir.join(named.trim_end()).canonicalize().ok()
}

/// Rejects a repository that contains a pipe or a device: git would wait for it.
fn refuse_what_blocks(folder: &Path, depth: usize, seen: &mut usize) -> Result<(), Error> {
    let not_read = |source| Error::Unreadable { path: shown::path(folder), source };
    if depth > DEEPEST {
        return Err(Error::TooDeep { path: shown::path(folder), limit: DEEPEST });
    }
    for entry in fs::read_dir(folder).map_err(not_read)? {
        *seen += 1;
        if *seen > MOST_FILES {
            return Err(Error::TooManyEntries { limit: MOST_FILES });
        }
        let entry = entry.map_err(not_read)?;
        let mut kind = entry.file_type().map_err(not_read)?;
        let is_link = kind.is_symlink();
        if is_link {
            // A dangling link does not block.
            let Ok(target) = fs::metadata(entry.path()) else { continue };
            kind = target.file_type();
        }
        if blocks(kind) {
            return Err(Error::Special { path: shown::path(&entry.path()) });
        }
        // Links between folders may form cycles; git creates none below the first level.
        if kind.is_dir() && (!is_link || depth == 0) {
            refuse_what_blocks(&entry.path(), depth + 1, seen)?;
        }
    }
    Ok(())
}

/// `true` if opening or reading such a file may block or never end.
#[cfg(unix)]
fn blocks(kind: fs::FileType) -> bool {
    use std::os::unix::fs::FileTypeExt as _;
    kind.is_fifo() || kind.is_char_device() || kind.is_block_device()
}

#[cfg(not(unix))]
fn blocks(_kind: fs::FileType) -> bool {
    false
}

fn not_opened(start: &Path, source: git2::Error) -> Error {
    let folder = shown::path(start);
    match source.code() {
        ErrorCode::NotFound => Error::NoRepository { folder },
        ErrorCode::Owner => {
            Error::ForeignRepository { folder: shown::path(&safe_directory(start)) }
        }
        _ => Error::OpenRepository { folder, source: source.into() },
    }
}

/// The folder that `safe.directory` has to name: the working tree's, or a bare repository's own.
fn safe_directory(start: &Path) -> PathBuf {
    let Ok(found) = Repository::discover_path(start, std::iter::empty::<&OsStr>()) else {
        return start.to_path_buf();
    };
    match found.parent() {
        Some(workdir) if found.ends_with(".git") => workdir.to_path_buf(),
        Some(_) | None => found.components().collect(),
    }
}

#[cfg(test)]
mod tests {
    use git2::ErrorClass;

    use super::*;
    use crate::fixture::Fixture;

    #[test]
    fn a_repository_of_another_user_is_refused() {
        let refused = git2::Error::new(ErrorCode::Owner, ErrorClass::Config, "not owned");
        let error = not_opened(Path::new("/srv/fleet"), refused);
        assert_eq!(error.to_string(), "the git repository at `/srv/fleet` belongs to another user");
    }

    #[test]
    fn the_folder_to_be_trusted_is_the_top_of_the_repository() {
        let fixture = Fixture::with_commit(&["x/a.yaml"]);
        fixture.git("", &["clone", "--quiet", "--bare", "work", "bare.git"]);
        for (start, expected) in [
            ("work", "work"),
            ("work/x", "work"),
            ("bare.git", "bare.git"),
            ("bare.git/objects", "bare.git"),
            ("home", "home"),
        ] {
            assert_eq!(safe_directory(&fixture.path(start)), fixture.path(expected), "{start}");
        }
    }

    #[test]
    fn the_folder_around_is_the_one_with_the_git_folder_or_file() {
        let fixture = Fixture::with_commit(&["x/a.yaml"]);
        fixture.git("", &["clone", "--quiet", "--bare", "work", "bare.git"]);
        fixture.git("work", &["worktree", "add", "--quiet", "../linked"]);
        fixture.git("", &["clone", "--quiet", "--separate-git-dir", "apart", "work", "parted"]);
        fixture.git("work", &["submodule", "--quiet", "add", "../bare.git", "sub"]);
        let at = |name: &str| Worktree::At(fixture.path(name));
        for (start, expected) in [
            ("work", at("work")),
            ("work/x", at("work")),
            ("work/.git", at("work")),
            ("work/.git/refs", at("work")),
            ("bare.git", Worktree::None),
            ("bare.git/refs", Worktree::None),
            ("linked/x", at("linked")),
            ("parted/x", at("parted")),
            ("apart", Worktree::None),
            ("work/sub/x", at("work/sub")),
            ("work/.git/modules/sub", Worktree::None),
        ] {
            let found = open(&fixture.path(start)).map_err(|error| error.to_string());
            assert_eq!(found.map(|found| found.worktree), Ok(expected), "{start}");
        }
    }
}
