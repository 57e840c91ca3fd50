//! Compares the manifests on disk with those of the commit that is read: if they differ, the user's
//! editor does not show what is planned.
//!
//! Files that are unchanged by git's index are not read; only the others are hashed. Ignored files
//! do not count, untracked ones do. Nothing is written, not even the index.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use git2::{Delta, DiffDelta, DiffOptions, IndexEntryExtendedFlag, Oid, Repository};

use super::file_collector::is_manifest_name;
use super::repository::Worktree;
use super::{Warning, shown};

/// Number of files that a warning names.
const NAMED: usize = 3;

/// Timeout of the comparison: it is only for a warning, and a hostile repository could contain a
/// pipe or a huge file.
const LIMIT: Duration = Duration::from_secs(20);

/// Compares the manifests below `paths` (none: all) in the working tree with the folder `top`.
pub(super) fn difference(
    repository: &Repository,
    worktree: &Worktree,
    top: Oid,
    paths: &[PathBuf],
) -> Option<Warning> {
    match worktree {
        Worktree::None => return None,
        Worktree::Elsewhere(_) => {
            let reason = "`core.worktree` names another folder than the one that holds `.git`";
            return Some(Warning::WorkingTreeUnknown { reason: reason.to_owned() });
        }
        Worktree::At(_) => {}
    }
    let (git_dir, paths) = (repository.path().to_path_buf(), paths.to_vec());
    let (sender, reported) = mpsc::channel();
    // A thread that waits for a pipe cannot be stopped; it ends with the process.
    thread::spawn(move || {
        let compared = Repository::open(git_dir);
        let compared = compared.and_then(|repository| differing(&repository, top, &paths));
        // The receiver is gone after the timeout.
        let _ = sender.send(compared);
    });
    match reported.recv_timeout(LIMIT) {
        Ok(Ok(files)) if files.is_empty() => None,
        Ok(Ok(mut files)) => {
            files.sort();
            let count = files.len();
            files.truncate(NAMED);
            Some(Warning::WorkingTreeDiffers { count, first: files })
        }
        // A plan must not fail because a newer git wrote an index that libgit2 cannot read.
        Ok(Err(error)) => {
            let reason = shown::line(error.message().as_bytes());
            Some(Warning::WorkingTreeUnknown { reason })
        }
        Err(_) => {
            let reason = format!("it took more than {} s", LIMIT.as_secs());
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
    let left_out = left_out(repository)?;
    let files = diff.deltas().filter(is_difference).filter_map(|delta| {
        let path = delta.new_file().path_bytes().or_else(|| delta.old_file().path_bytes())?;
        if delta.status() == Delta::Deleted && left_out.contains(path) {
            return None;
        }
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

/// Paths that a sparse checkout leaves out on purpose.
fn left_out(repository: &Repository) -> Result<HashSet<Vec<u8>>, git2::Error> {
    let index = repository.index()?;
    let entries = index.iter().filter(|entry| {
        let flags = IndexEntryExtendedFlag::from_bits_truncate(entry.flags_extended);
        flags.contains(IndexEntryExtendedFlag::SKIP_WORKTREE)
    });
    Ok(entries.map(|entry| entry.path).collect())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::Warning;
    use crate::fixture::{Fixture, WANTED, paths, revision};

    fn differs(count: usize, first: &[&str]) -> Vec<Warning> {
        let first = first.iter().map(|name| (*name).to_owned()).collect();
        vec![Warning::WorkingTreeDiffers { count, first }]
    }

    #[test]
    fn manifests_that_differ_are_counted_and_named() {
        let all: &[&str] = &[];
        for (case, below, change, expected) in [
            ("nothing", all, "true", vec![]),
            ("changed", all, "echo >> b.yaml", differs(1, &["b.yaml"])),
            ("changed, same size", all, "echo wanted: no. > b.yaml", differs(1, &["b.yaml"])),
            ("only touched", all, "touch -d 2020-01-01 b.yaml", vec![]),
            ("gone", all, "rm b.yaml", differs(1, &["b.yaml"])),
            ("new", all, "mkdir n; echo > n/n.json", differs(1, &["n/n.json"])),
            ("new and added", all, "echo > n.yml; git add n.yml", differs(1, &["n.yml"])),
            ("changed and added", all, "echo >> b.yaml; git add .", differs(1, &["b.yaml"])),
            ("now a link", all, "ln -sf b.yaml x/d.yaml", differs(1, &["x/d.yaml"])),
            ("many", all, "rm x/*", differs(4, &["x/c.yaml", "x/d.yaml", "x/e.yaml"])),
            ("not a manifest", all, "echo >> README.md; echo > new", vec![]),
            ("ignored", all, "echo '*.tmp.yaml' > .gitignore; echo > n.tmp.yaml", vec![]),
            ("mode only", all, "chmod +x b.yaml", vec![]),
            ("below the path", &["x"], "echo >> x/d.yaml", differs(1, &["x/d.yaml"])),
            ("beside the path", &["x"], "echo >> b.yaml; echo > xx.yaml", vec![]),
            ("a file by name", &["README.md"], "echo >> README.md", differs(1, &["README.md"])),
            ("a path like a pattern", &["[ab]"], "echo >> b.yaml", vec![]),
            ("in it", &["[ab]"], "echo >> [ab]/c.yaml", differs(1, &["[ab]/c.yaml"])),
            (
                "like a negation",
                &["!x"],
                "echo >> !x/c.yaml; rm b.yaml",
                differs(1, &["!x/c.yaml"]),
            ),
            ("the top by name", &["x", "."], "echo >> b.yaml", differs(1, &["b.yaml"])),
        ] {
            let files = [
                "b.yaml",
                "x/c.yaml",
                "x/d.yaml",
                "x/e.yaml",
                "x/f.yaml",
                "[ab]/c.yaml",
                "!x/c.yaml",
            ];
            let fixture = Fixture::with_repository();
            fixture.commit(&[&files[..], &["README.md"]].concat(), "first");
            fixture.git("work", &["config", "alias.sh", "!sh"]);
            fixture.git("work", &["sh", "-c", change]);
            let read = fixture.read_in("work", &paths(below)).unwrap();
            assert_eq!(read.warnings, expected, "{case}");
        }
    }

    #[test]
    fn another_revision_is_compared_too() {
        let fixture = Fixture::with_commit(&["a.yaml"]);
        fixture.commit(&["b.yaml"], "second");
        let read = fixture.read_in("work", &revision(".", "HEAD~1")).unwrap();
        assert_eq!(read.warnings, differs(1, &["b.yaml"]));
    }

    #[test]
    fn line_ends_that_git_converts_are_no_difference() {
        let fixture = Fixture::with_commit(&["a.yaml"]);
        fixture.git("work", &["config", "core.autocrlf", "true"]);
        fs::remove_file(fixture.path("work/a.yaml")).unwrap();
        fixture.git("work", &["checkout", "a.yaml"]);
        let expected = WANTED.replace('\n', "\r\n");
        assert_eq!(fs::read_to_string(fixture.path("work/a.yaml")).unwrap(), expected);
        // Hashed again, because its time differs.
        fixture.write("work/a.yaml", &expected);
        assert_eq!(fixture.read_head().unwrap().warnings, []);
    }

    #[test]
    fn a_sparse_checkout_is_no_difference() {
        let fixture = Fixture::with_commit(&["a.yaml", "x/b.yaml"]);
        fixture.git("work", &["sparse-checkout", "set", "--no-cone", "/a.yaml"]);
        assert!(!fixture.path("work/x/b.yaml").exists());
        assert_eq!(fixture.read_head().unwrap().warnings, []);
    }

    #[test]
    fn an_index_that_cannot_be_read_is_a_warning() {
        let fixture = Fixture::with_commit(&["a.yaml"]);
        fs::write(fixture.path("work/.git/index"), "not what git writes").unwrap();
        let warnings = fixture.read_head().unwrap().warnings;
        let [Warning::WorkingTreeUnknown { reason }] = warnings.as_slice() else {
            panic!("{warnings:?}")
        };
        assert!(reason.contains("index"), "{reason}");
        assert!(warnings[0].to_string().starts_with("the working tree could not be compared: "));
    }

    #[test]
    fn the_warning_names_the_first_few() {
        for (count, first, expected) in [
            (1, vec!["a"], "1 file differs in the working tree: `a`"),
            (2, vec!["a", "b"], "2 files differ in the working tree: `a`, `b`"),
            (9, vec!["a", "b"], "9 files differ in the working tree: `a`, `b`, …"),
        ] {
            let first = first.into_iter().map(str::to_owned).collect();
            assert_eq!(Warning::WorkingTreeDiffers { count, first }.to_string(), expected);
        }
    }
}
