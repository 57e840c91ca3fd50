//! Regular, damaged and forged commits.

use std::fs;
use std::path::PathBuf;

use git2::{ObjectType, Oid};

use super::*;
use crate::fixture::{Fixture, WANTED, names, paths, revision};
use crate::tree::SEARCH_LIMIT;
use crate::{FILE_LIMIT, Request, Warning};

fn error(result: Result<Read, Error>) -> String {
    result.unwrap_err().to_string()
}

/// Like [`error`], without this test's own folder.
fn error_in(fixture: &Fixture, result: Result<Read, Error>) -> String {
    error(result).replace(fixture.path("").to_str().unwrap(), "/")
}

/// Commits a tree of raw entries `(mode, name, object)` on a branch and returns nothing else.
fn forge(fixture: &Fixture, entries: &[(&str, &[u8], Oid)]) {
    let repository = Repository::open(fixture.path("work")).unwrap();
    let mut bytes = Vec::new();
    for (mode, name, id) in entries {
        bytes.extend([mode.as_bytes(), b" ", *name, b"\0", id.as_bytes()].concat());
    }
    let tree = repository.odb().unwrap().write(ObjectType::Tree, &bytes).unwrap();
    let author = git2::Signature::now("Test", "test@example.com").unwrap();
    let tree = repository.find_tree(tree).unwrap();
    repository.commit(Some("refs/heads/forged"), &author, &author, "forged", &tree, &[]).unwrap();
}

fn blob(fixture: &Fixture) -> Oid {
    let repository = Repository::open(fixture.path("work")).unwrap();
    repository.blob(WANTED.as_bytes()).unwrap()
}

#[test]
fn a_commit_is_read_as_it_is() {
    let fixture = Fixture::with_repository();
    let id = fixture.commit(&["b.yaml", "deploy/a.yml", "README.md"], "Add the agent\n\nBody.");
    let read = fixture.read_head().unwrap();
    assert_eq!(names(&read), ["b.yaml", "deploy/a.yml"]);
    assert!(read.files.iter().all(|file| file.bytes == WANTED.as_bytes()));
    assert_eq!(read.warnings, []);
    let commit = Commit { id, subject: "Add the agent".into() };
    let repository = Some(fixture.path("work").to_str().unwrap().to_owned());
    assert_eq!(read.origin, Origin { repository, commit: Some(commit), paths: Vec::new() });
}

#[test]
fn the_working_tree_does_not_matter() {
    let fixture = Fixture::with_commit(&["a.yaml", "b.yaml"]);
    fixture.write("work/a.yaml", "changed");
    fs::remove_file(fixture.path("work/b.yaml")).unwrap();
    let read = fixture.read_head().unwrap();
    assert_eq!(names(&read), ["a.yaml", "b.yaml"]);
    assert_eq!(read.files[0].bytes, WANTED.as_bytes());
}

#[test]
fn a_repository_is_found_as_git_finds_it() {
    let fixture = Fixture::with_commit(&["a.yaml", "deploy/b.yaml"]);
    fixture.git("", &["clone", "--quiet", "--bare", "work", "bare.git"]);
    fixture.git("work", &["worktree", "add", "--quiet", "--detach", "../linked"]);
    fixture.git("", &["init", "--quiet", "--separate-git-dir=apart.git", "separate"]);
    let work = format!("file://{}", fixture.path("work").display());
    for (case, folder, repository) in [
        ("around", "work", None),
        ("around a sub-folder", "work/deploy", None),
        ("around the folder of git", "work/.git", None),
        ("a linked working tree", "linked", None),
        ("around a bare one", "bare.git/refs", None),
        ("named", "home", Some("../work")),
        ("a sub-folder named", "home", Some("../work/deploy")),
        ("bare", "home", Some("../bare.git")),
        ("a file URL", "home", Some(work.as_str())),
    ] {
        let repository = repository.map(Into::into);
        let request = Request::Git(GitRequest { repository, ..GitRequest::default() });
        let read = fixture.read_in(folder, &request).unwrap();
        assert_eq!(names(&read), ["a.yaml", "deploy/b.yaml"], "{case}");
    }
    let empty = fixture.read_in("separate", &Request::Git(GitRequest::default()));
    assert_eq!(error_in(&fixture, empty), "the git repository `/separate` has no commit");
}

#[test]
fn the_origin_remote_is_the_origin() {
    let fixture = Fixture::with_commit(&["a.yaml"]);
    fixture.git("work", &["remote", "add", "origin", "https://me:pw@example.com/fleet.git"]);
    let origin = fixture.read_head().unwrap().origin;
    assert_eq!(origin.repository.as_deref(), Some("https://***@example.com/fleet.git"));
}

#[test]
fn missing_and_invalid_repositories_are_errors() {
    let fixture = Fixture::new();
    fixture.git("", &["init", "--quiet", "--object-format=sha256", "sha256"]);
    fixture.git("", &["init", "--quiet", "future"]);
    fixture.git("future", &["config", "core.repositoryFormatVersion", "1"]);
    fixture.git("future", &["config", "extensions.futureFormat", "x"]);
    fixture.write("file", "");
    for (repository, expected, source) in [
        (None, "no git repository at `/work` or above it", None),
        (Some("../missing"), "`/work/../missing` does not exist", None),
        (Some("../file"), "`/work/../file` is a file, not a repository", None),
        (Some(""), "an empty path was given", None),
        (
            Some("../future"),
            "cannot open the git repository at `/work/../future`",
            Some("unsupported extension name extensions.futureformat"),
        ),
        (
            Some("../sha256"),
            "cannot open the git repository at `/work/../sha256`",
            Some("unknown object format 'sha256'"),
        ),
    ] {
        let repository = repository.map(Into::into);
        let request = Request::Git(GitRequest { repository, ..GitRequest::default() });
        let error = fixture.read_in("work", &request).unwrap_err();
        let message = error.to_string().replace(fixture.path("").to_str().unwrap(), "/");
        assert_eq!(message, expected);
        let reason = std::error::Error::source(&error).map(ToString::to_string);
        assert_eq!(reason.is_some(), source.is_some(), "{reason:?}");
        let reason = reason.unwrap_or_default();
        assert!(reason.contains(source.unwrap_or_default()), "{source:?}");
        assert!(!reason.contains("class="), "libgit2's own numbers: {reason}");
    }
}

#[test]
fn a_repository_is_named_by_its_top() {
    let fixture = Fixture::with_commit(&["x/a.yaml"]);
    let read = fixture.read_in("work/x", &paths(&[".."])).unwrap();
    assert_eq!(read.origin.repository.as_deref(), fixture.path("work").to_str());
    assert_eq!(read.origin.paths, ["."]);
}

#[cfg(unix)]
#[test]
fn an_absolute_path_may_lead_to_the_repository_through_a_link() {
    let fixture = Fixture::with_commit(&["x/a.yaml"]);
    std::os::unix::fs::symlink("work", fixture.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink("x", fixture.path("work/link")).unwrap();
    let read = |path: &str| {
        let path = fixture.path("").join(path);
        fixture.read_in("work", &paths(&[path.to_str().unwrap()]))
    };
    assert_eq!(names(&read("elsewhere/x").unwrap()), ["x/a.yaml"]);
    assert_eq!(error(read("elsewhere/link")), "path `link` is not in revision `HEAD`");
}

#[test]
fn paths_narrow_what_is_read() {
    let fixture =
        Fixture::with_commit(&["a.yaml", "x/b.yaml", "x/y/c.yaml", "x/notes", "z/d.yaml"]);
    let absolute = fixture.path("work/z");
    for (folder, given, expected) in [
        ("work", &["x"][..], &["x/b.yaml", "x/y/c.yaml"][..]),
        ("work", &["x/"], &["x/b.yaml", "x/y/c.yaml"]),
        ("work", &["./x/y/../b.yaml"], &["x/b.yaml"]),
        ("work", &["x/notes"], &["x/notes"]),
        ("work", &["z", "x/y", "z/d.yaml", "x"], &["x/b.yaml", "x/y/c.yaml", "z/d.yaml"]),
        ("work", &["."], &["a.yaml", "x/b.yaml", "x/y/c.yaml", "z/d.yaml"]),
        ("work/x", &["y"], &["x/y/c.yaml"]),
        ("work/x", &["../z"], &["z/d.yaml"]),
        ("work/x", &["."], &["x/b.yaml", "x/y/c.yaml"]),
        ("work/.git", &["x/y"], &["x/y/c.yaml"]),
        ("work/x", &[absolute.to_str().unwrap()], &["z/d.yaml"]),
    ] {
        let read = fixture.read_in(folder, &paths(given)).unwrap();
        assert_eq!(names(&read), expected, "{given:?} in {folder}");
    }
    let read = fixture.read_in("work/x", &paths(&["y", "."])).unwrap();
    assert_eq!(read.origin.paths, ["x/y", "x"]);
}

#[test]
fn missing_and_invalid_paths_are_errors() {
    let fixture = Fixture::with_commit(&["a.yaml", "x/b.yaml"]);
    std::os::unix::fs::symlink("a.yaml", fixture.path("work/link.yaml")).unwrap();
    std::os::unix::fs::symlink("/etc", fixture.path("work/x/etc")).unwrap();
    let id = fixture.git("work", &["rev-parse", "HEAD"]);
    let module = format!("160000,{id},x/module");
    fixture.git("work", &["add", "--all"]);
    fixture.git("work", &["update-index", "--add", "--cacheinfo", &module]);
    fixture.git("work", &["commit", "--quiet", "--message", "links"]);
    for (folder, path, expected) in [
        ("work", "c.yaml", "path `c.yaml` is not in revision `HEAD`"),
        ("work", "A.yaml", "path `A.yaml` is not in revision `HEAD`"),
        ("work", "a.yaml/b", "path `a.yaml/b` is not in revision `HEAD`"),
        ("work", ".git", "path `.git` is not in revision `HEAD`"),
        ("work", "\u{1b}[2J", "path `\\u{1b}[2J` is not in revision `HEAD`"),
        ("work", "a\0.yaml", "path `a\\u{0}.yaml` is not in revision `HEAD`"),
        ("work", "", "an empty path was given"),
        ("work", "..", "path `..` is outside the repository"),
        ("work", "x/../../work", "path `x/../../work` is outside the repository"),
        ("work", "/etc/passwd", "path `/etc/passwd` is outside the repository"),
        ("work", "link.yaml", "path `link.yaml` is a symbolic link"),
        ("work", "x/etc/passwd", "path `x/etc` is a symbolic link"),
        ("work", "x/module", "path `x/module` is a submodule"),
        ("work", "x/module/a.yaml", "path `x/module` is a submodule"),
    ] {
        assert_eq!(error(fixture.read_in(folder, &paths(&[path]))), expected);
    }
    let missed = fixture.read_in("work/x", &paths(&["x/b.yaml"])).unwrap_err();
    let Error::PathNotInRevision { path, from_top, .. } = missed else { panic!("{missed}") };
    assert_eq!((path.as_str(), from_top.as_deref()), ("x/x/b.yaml", Some("x/b.yaml")));

    let read = fixture.read_head().unwrap();
    assert_eq!(names(&read), ["a.yaml", "x/b.yaml"]);
    let expected = [
        Warning::Symlink { path: "link.yaml".into() },
        Warning::Submodule { path: "x/module".into() },
    ];
    assert_eq!(read.warnings, expected);
}

/// What a link to a folder contains is not read, so a source with one is not read completely.
#[test]
fn a_link_to_a_folder_of_the_commit_is_warned_about() {
    let link = |fixture: &Fixture, target: &str, name: &str| {
        std::os::unix::fs::symlink(target, fixture.path(&format!("work/deploy/{name}"))).unwrap();
    };
    for (target, warned) in [
        ("../common/agents", true),
        (".././common//agents/", true),
        ("..", true),
        ("../../..", false),
        ("../common/to-agents", true),
        // What is behind another link is not looked up.
        ("../common/to-agents/deeper", true),
        ("../common/to-file", false),
        ("../common/agents/c.yaml", false),
        ("../common/nowhere", false),
        ("../../work/common/agents", false),
        ("/common/agents", false),
        ("link", false),
    ] {
        let fixture = Fixture::with_commit(&["deploy/a.yaml", "common/agents/deeper/b.yaml"]);
        fixture.write("work/common/agents/c.yaml", "");
        for (target, name) in [("agents", "to-agents"), ("agents/c.yaml", "to-file")] {
            let name = fixture.path(&format!("work/common/{name}"));
            std::os::unix::fs::symlink(target, name).unwrap();
        }
        link(&fixture, target, "link");
        fixture.git("work", &["add", "--all"]);
        fixture.git("work", &["commit", "--quiet", "--message", "links"]);
        let read = fixture.read_in("work", &paths(&["deploy"])).unwrap();
        assert_eq!(names(&read), ["deploy/a.yaml"]);
        let warning = warned.then(|| Warning::Symlink { path: "deploy/link".into() });
        assert_eq!(read.warnings, Vec::from_iter(warning), "{target}");
    }
}

#[test]
fn paths_of_a_bare_repository_begin_at_its_top() {
    let fixture = Fixture::with_commit(&["x/b.yaml"]);
    fixture.git("", &["clone", "--quiet", "--bare", "work", "bare.git"]);
    let read = fixture.read_in("bare.git/objects", &paths(&["x"])).unwrap();
    assert_eq!(names(&read), ["x/b.yaml"]);
    let absolute = fixture.path("work/x");
    let result = fixture.read_in("bare.git", &paths(&[absolute.to_str().unwrap()]));
    assert!(error(result).ends_with("is outside the repository"));
}

#[test]
fn names_that_git_would_not_check_out() {
    let fixture = Fixture::with_commit(&["a.yaml"]);
    let file = blob(&fixture);
    let folder = Oid::from_str(&fixture.git("work", &["rev-parse", "HEAD^{tree}"])).unwrap();
    for (mode, name, shown) in [
        ("100644", &b".."[..], ".."),
        ("40000", b"..", ".."),
        ("40000", b".", "."),
        ("40000", b".git", ".git"),
        ("40000", b".GiT", ".GiT"),
        ("100644", b"/etc/cron.yaml", "/etc/cron.yaml"),
        ("100644", b"x/../../b.yaml", "x/../../b.yaml"),
    ] {
        let id = if mode == "40000" { folder } else { file };
        forge(&fixture, &[("100644", b"good.yaml", file), (mode, name, id)]);
        let expected = format!("the commit contains an entry with the forbidden name `{shown}`");
        let result = fixture.read_in("work", &revision(".", "forged"));
        assert_eq!(error(result), expected);
        fixture.git("work", &["update-ref", "-d", "refs/heads/forged"]);
    }
}

#[test]
fn odd_names_are_escaped() {
    let fixture = Fixture::with_commit(&["a.yaml"]);
    let file = blob(&fixture);
    forge(
        &fixture,
        &[
            ("100644", b"\x1b[2K\n.yaml", file),
            ("100644", "\u{202e}lmay.yaml".as_bytes(), file),
            ("100755", b"\xff.yaml", file),
        ],
    );
    let read = fixture.read_in("work", &revision(".", "forged")).unwrap();
    let expected = ["\\u{1b}[2K\\u{a}.yaml", "\\u{202e}lmay.yaml", "\\xff.yaml"];
    assert_eq!(names(&read), expected);
}

#[test]
fn an_object_of_the_wrong_kind_is_refused() {
    let fixture = Fixture::with_commit(&["a.yaml"]);
    let folder = Oid::from_str(&fixture.git("work", &["rev-parse", "HEAD^{tree}"])).unwrap();
    forge(&fixture, &[("100644", b"b.yaml", folder)]);
    let result = fixture.read_in("work", &revision(".", "forged"));
    assert_eq!(error(result), "cannot read `b.yaml` from the repository");
    forge_again(&fixture, &[("40000", b"b", blob(&fixture))]);
    let result = fixture.read_in("work", &revision(".", "forged"));
    assert_eq!(error(result), "the content of `b` is missing from the repository");
}

fn forge_again(fixture: &Fixture, entries: &[(&str, &[u8], Oid)]) {
    fixture.git("work", &["update-ref", "-d", "refs/heads/forged"]);
    forge(fixture, entries);
}

#[test]
fn a_tree_of_billions_of_files_is_refused() {
    let fixture = Fixture::with_commit(&["a.yaml"]);
    let repository = Repository::open(fixture.path("work")).unwrap();
    let odb = repository.odb().unwrap();
    let (mut mode, mut id) = ("100644", blob(&fixture));
    for _ in 0..10 {
        let names = ["a.yaml", "b.yaml", "c.yaml", "d.yaml", "e.yaml", "f.yaml", "g.yaml"];
        let entry =
            |name: &str| [mode.as_bytes(), b" ", name.as_bytes(), b"\0", id.as_bytes()].concat();
        let bytes: Vec<u8> = names.iter().flat_map(|name| entry(name)).collect();
        id = odb.write(ObjectType::Tree, &bytes).unwrap();
        mode = "40000";
    }
    forge(&fixture, &[("40000", b"bomb", id)]);
    let result = fixture.read_in("work", &revision(".", "forged"));
    assert_eq!(error(result), "more than 100000 manifest files");
}

fn loose(fixture: &Fixture, expression: &str) -> PathBuf {
    let id = fixture.git("work", &["rev-parse", expression]);
    fixture.path(&format!("work/.git/objects/{}/{}", &id[..2], &id[2..]))
}

#[test]
fn missing_and_damaged_objects() {
    for (case, expression, damaged, expected) in [
        (
            "a file is gone",
            "HEAD:x/a.yaml",
            false,
            "the content of `x/a.yaml` is missing from the repository",
        ),
        ("a folder is gone", "HEAD:x", false, "the content of `x` is missing from the repository"),
        ("a file is damaged", "HEAD:x/a.yaml", true, "cannot read `x/a.yaml` from the repository"),
        ("a folder is damaged", "HEAD:x", true, "cannot read `x` from the repository"),
        ("the commit is gone", "HEAD", false, "revision `HEAD` not found in `/work`"),
        ("the commit is damaged", "HEAD", true, "cannot look up `HEAD` in `/work`"),
    ] {
        let fixture = Fixture::with_commit(&["x/a.yaml"]);
        let object = loose(&fixture, expression);
        fs::remove_file(&object).unwrap();
        if damaged {
            fs::write(&object, "not what git writes").unwrap();
        }
        assert_eq!(error_in(&fixture, fixture.read_head()), expected, "{case}");
    }
}

#[test]
fn objects_missing_from_a_partial_clone_are_errors() {
    let fixture = Fixture::with_commit(&["a.yaml"]);
    fixture.git("work", &["config", "uploadpack.allowFilter", "true"]);
    let work = format!("file://{}", fixture.path("work").display());
    let clone = ["clone", "--quiet", "--no-checkout", "--filter=blob:none", &work, "partial"];
    fixture.git("", &clone);
    let result = fixture.read_in("partial", &Request::Git(GitRequest::default()));
    let expected =
        "the content of `a.yaml` is missing from the repository, which is a partial clone";
    assert_eq!(error(result), expected);
}

#[test]
fn programs_of_a_repository_are_never_run() {
    let fixture = Fixture::with_commit(&["a.yaml"]);
    let trap = fixture.path("trap.sh");
    let sprung = fixture.path("sprung");
    let script = format!("#!/bin/sh\ntouch {}\ncat\n", sprung.display());
    fixture.write("trap.sh", &script);
    fs::set_permissions(&trap, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let trap = trap.to_str().unwrap();
    fixture.write(
        "work/.gitattributes",
        "*.yaml filter=trap diff=trap working-tree-encoding=UTF-16\n",
    );
    fixture.git("work", &["add", ".gitattributes"]);
    fixture.git("work", &["commit", "--quiet", "--message", "trap"]);
    for setting in
        ["filter.trap.smudge", "filter.trap.clean", "diff.trap.textconv", "core.fsmonitor"]
    {
        fixture.git("work", &["config", setting, trap]);
    }
    for hook in ["post-checkout", "reference-transaction", "post-index-change"] {
        fs::create_dir_all(fixture.path("work/.git/hooks")).unwrap();
        fs::copy(trap, fixture.path(&format!("work/.git/hooks/{hook}"))).unwrap();
    }
    let _ = fs::remove_file(&sprung);
    fixture.write("work/a.yaml", "wanted: no \n");
    let read = fixture.read_head().unwrap();
    assert_eq!(read.files[0].bytes, WANTED.as_bytes());
    assert!(matches!(read.warnings[..], [Warning::WorkingTreeDiffers { count: 1, .. }]));
    assert!(!sprung.exists(), "a program of the repository was run");
}

#[test]
fn a_folder_to_render_is_skipped_even_when_named() {
    let fixture = Fixture::with_commit(&["chart/Chart.yaml", "chart/templates/a.yaml", "b.yaml"]);
    let read = fixture.read_head().unwrap();
    assert_eq!(names(&read), ["b.yaml"]);
    assert_eq!(read.unrendered[0].path.as_ref(), "chart");
    let read = fixture.read_in("work", &paths(&["chart"])).unwrap();
    assert_eq!((names(&read).len(), read.unrendered[0].files.len()), (0, 2));
    // A path inside of the folder is read.
    let read = fixture.read_in("work", &paths(&["chart/templates"])).unwrap();
    assert_eq!(names(&read), ["chart/templates/a.yaml"]);
}

#[test]
fn a_commit_without_manifests() {
    let fixture = Fixture::with_commit(&["README.md"]);
    let expected = "no .yaml, .yml or .json file in revision `HEAD`";
    assert_eq!(error(fixture.read_head()), expected);
}

#[test]
fn large_files_matter_only_if_wanted() {
    let fixture = Fixture::with_commit(&["a.yaml"]);
    fixture.write("work/lock.json", &"x".repeat(FILE_LIMIT + 1));
    fixture.commit(&[], "lock");
    assert_eq!(fixture.read_head().unwrap().unwanted, 1);
    fixture.write("work/b.json", &"wanted".repeat(FILE_LIMIT / 6 + 1));
    fixture.commit(&[], "large");
    assert_eq!(error(fixture.read_head()), "`b.json` is larger than 3 MiB");
    fixture.write("work/b.json", &"x".repeat(SEARCH_LIMIT + 1));
    fixture.commit(&[], "huge");
    assert_eq!(error(fixture.read_head()), "`b.json` is larger than 3 MiB");
}
