//! Whether the manifests on disk are those of the commit that is read: what a person sees in the
//! editor is not what is planned otherwise.
//!
//! Git's index answers for files that were not touched; only the others are hashed. Files that git
//! ignores do not count, new ones do. Nothing is written, not even the index.

use std::path::PathBuf;

use git2::{Delta, DiffDelta, DiffOptions, Oid, Repository};

use super::gather::is_manifest_name;
use super::{Warning, shown};

/// How many files a warning names.
const NAMED: usize = 3;

/// Compares the manifests below `paths` (none: all) in the working tree with the folder `top`.
pub(super) fn difference(repository: &Repository, top: Oid, paths: &[PathBuf]) -> Option<Warning> {
    repository.workdir()?;
    match differing(repository, top, paths) {
        Ok(files) if files.is_empty() => None,
        Ok(mut files) => {
            files.sort();
            let count = files.len();
            files.truncate(NAMED);
            Some(Warning::WorkingTreeDiffers { count, first: files })
        }
        // A planner must not fail because a later git wrote an index that we cannot read.
        Err(error) => {
            let reason = shown::line(error.message().as_bytes());
            Some(Warning::WorkingTreeUnknown { reason })
        }
    }
}

fn differing(
    repository: &Repository,
    top: Oid,
    paths: &[PathBuf],
) -> Result<Vec<String>, git2::Error> {
    let tree = repository.find_tree(top)?;
    let mut options = DiffOptions::new();
    options
        .include_untracked(true)
        .recurse_untracked_dirs(true)
        .include_typechange(true)
        .ignore_submodules(true)
        .ignore_filemode(true)
        .skip_binary_check(true);
    if paths.iter().any(|path| path.as_os_str().is_empty()) || paths.is_empty() {
        for pattern in ["*.yaml", "*.yml", "*.json"] {
            options.pathspec(pattern);
        }
    } else {
        options.disable_pathspec_match(true);
        for path in paths {
            options.pathspec(path);
        }
    }
    let diff = repository.diff_tree_to_workdir_with_index(Some(&tree), Some(&mut options))?;
    let named: Vec<_> = paths.iter().map(|path| shown::path(path)).collect();
    let files = diff.deltas().filter(is_difference).filter_map(|delta| {
        let path = delta.new_file().path_bytes().or_else(|| delta.old_file().path_bytes())?;
        let path = shown::name(path);
        (is_manifest_name(&path) || named.contains(&path)).then_some(path)
    });
    Ok(files.collect())
}

fn is_difference(delta: &DiffDelta<'_>) -> bool {
    match delta.status() {
        Delta::Unmodified | Delta::Ignored => false,
        Delta::Added
        | Delta::Deleted
        | Delta::Modified
        | Delta::Renamed
        | Delta::Copied
        | Delta::Untracked
        | Delta::Typechange
        | Delta::Unreadable
        | Delta::Conflicted => true,
    }
}
