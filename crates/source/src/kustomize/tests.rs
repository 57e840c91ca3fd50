//! Rejected trees, and the input and limits of the program. The program is a script here; the real
//! ones render in `tests/control_plane/kustomize.rs`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use proptest::prelude::*;

use crate::KustomizeError;
use crate::fixture::{Fixture, WANTED};
use crate::{Error, GitRequest, Read, Request};

/// A commit of these files, with `{}` in their text for a line break.
fn commit(files: &[(&str, &str)]) -> Fixture {
    let fixture = Fixture::with_repository();
    for (path, text) in files {
        fixture.write(&format!("work/{path}"), text);
    }
    fixture.commit(&[], "first");
    fixture
}

fn render_in(fixture: &Fixture, folder: &str) -> Result<Read, Error> {
    let kustomize = Some(folder.into());
    fixture.read_in("work", &Request::Git(GitRequest { kustomize, ..GitRequest::default() }))
}

/// The error of rendering `app`, before a program is searched for.
fn refused(files: &[(&str, &str)]) -> String {
    match render_in(&commit(files), "app").unwrap_err() {
        Error::Kustomize(KustomizeError::Missing) => "nothing".to_owned(),
        error => error.to_string(),
    }
}

/// With a `kustomize` that is this script.
fn with_program(fixture: &mut Fixture, script: &str) {
    let program = fixture.path("bin/kustomize");
    fixture.write("bin/kustomize", &format!("#!/bin/sh\n{script}\n"));
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    fixture.search = Some(fixture.path("bin").into());
}

/// Renders `app` with each kustomization, next to two files and a base.
#[track_caller]
fn each_is_refused(cases: &[(&str, &str, &str)]) {
    for (case, kustomization, want) in cases {
        let refused = refused(&[
            ("app/kustomization.yaml", kustomization),
            ("app/a.yaml", WANTED),
            ("base/kustomization.yaml", "resources: [b.yaml]"),
            ("base/b.yaml", WANTED),
        ]);
        let problem = refused.strip_prefix("`app/kustomization.yaml` is not rendered: ");
        assert_eq!(problem.unwrap_or(&refused), *want, "{case}");
    }
}

#[test]
fn files_of_the_commit_are_rendered() {
    each_is_refused(&[
        ("a file", "resources: [a.yaml]", "nothing"),
        ("a folder", "resources: [../base/]", "nothing"),
        ("nothing named", "namePrefix: x-", "nothing"),
        ("null", "resources:", "nothing"),
        ("key and path", "configMapGenerator: [{name: a, files: [k=a.yaml, ./a.yaml]}]", "nothing"),
        (
            "a patch",
            "patches: [{path: a.yaml}, {patch: 'a: https://x', target: {kind: A}}]",
            "nothing",
        ),
        ("old patches", "patchesStrategicMerge: [a.yaml, '{a: 1}']", "nothing"),
        ("old JSON patches", "patchesJson6902: [{target: {kind: A}, path: a.yaml}]", "nothing"),
        (
            "others",
            "openapi: {path: a.yaml}\ncrds: [a.yaml]\nreplacements: [{path: a.yaml}]",
            "nothing",
        ),
    ]);
}

#[test]
fn paths_other_than_files_of_the_commit_are_rejected() {
    each_is_refused(&[
        (
            "a URL",
            "resources: ['https://x.example/a.yaml']",
            "`https://x.example/a.yaml` in `resources` is not a relative path",
        ),
        (
            "a repository",
            "resources: [github.com/a/b]",
            "`github.com/a/b` in `resources` is not a file or folder in the commit",
        ),
        (
            "with a revision",
            "resources: ['github.com/a/b?ref=x']",
            "`github.com/a/b?ref=x` in `resources` is not a relative path",
        ),
        (
            "by ssh",
            "bases: ['git@x.example:a/b']",
            "`git@x.example:a/b` in `bases` is not a relative path",
        ),
        (
            "a component",
            "components: ['https://x.example/a']",
            "`https://x.example/a` in `components` is not a relative path",
        ),
        (
            "an absolute path",
            "resources: [/etc/passwd]",
            "`/etc/passwd` in `resources` is not a relative path",
        ),
        (
            "a home",
            "configMapGenerator: [{name: a, files: [~/.ssh/id]}]",
            "`~/.ssh/id` in `configMapGenerator.files` is not a relative path",
        ),
        (
            "up and out",
            "resources: [../../etc]",
            "`../../etc` in `resources` is outside the repository",
        ),
        (
            "up, out and in",
            "resources: [../../checkout/app/a.yaml]",
            "`../../checkout/app/a.yaml` in `resources` is outside the repository",
        ),
        (
            "a secret",
            "secretGenerator: [{name: a, envs: [../../home/.env]}]",
            "`../../home/.env` in `secretGenerator.envs` is outside the repository",
        ),
        (
            "a key and a way out",
            "configMapGenerator: [{name: a, files: ['k=/etc/passwd']}]",
            "`/etc/passwd` in `configMapGenerator.files` is not a relative path",
        ),
        (
            "a patch elsewhere",
            "patches: [{path: /etc/passwd}]",
            "`/etc/passwd` in `patches.path` is not a relative path",
        ),
        (
            "a patch that is a URL",
            "patchesStrategicMerge: ['https://x.example/a']",
            "`https://x.example/a` in `patches.path` is not a relative path",
        ),
        (
            "a schema",
            "openapi: {path: 'http://x'}",
            "`http://x` in `openapi.path` is not a relative path",
        ),
        (
            "a merge key",
            "<<: {resources: [/etc/passwd]}",
            "`/etc/passwd` in `resources` is not a relative path",
        ),
        (
            "an alias",
            "namePrefix: &a /etc/passwd\nresources: [*a]",
            "`/etc/passwd` in `resources` is not a relative path",
        ),
        ("no file", "patches: [{path: .}]", "`.` in `patches.path` is not a file in the commit"),
        (
            "no folder",
            "components: [a.yaml]",
            "`a.yaml` in `components` is not a folder in the commit",
        ),
        (
            "as a file",
            "resources: [../base, ../base/kustomization.yaml]",
            "`../base/kustomization.yaml` in `resources` is a kustomization; name its folder instead",
        ),
        (
            "gone",
            "resources: [gone.yaml]",
            "`gone.yaml` in `resources` is not a file or folder in the commit",
        ),
    ]);
}

#[test]
fn programs_and_unknown_fields_are_rejected() {
    each_is_refused(&[
        ("generators", "generators: [a.yaml]", "`generators` makes kustomize run programs"),
        ("transformers", "transformers: [a.yaml]", "`transformers` makes kustomize run programs"),
        ("validators", "validators: ['{}']", "`validators` makes kustomize run programs"),
        (
            "charts",
            "helmCharts: [{name: a, repo: https://x}]",
            "`helmCharts` makes kustomize run programs",
        ),
        (
            "charts by settings",
            "helmGlobals: {chartHome: /}",
            "`helmGlobals` makes kustomize run programs",
        ),
        (
            "another case",
            "Resources: [/etc/passwd]",
            "unknown field `Resources`; it could name files, URLs or programs",
        ),
        (
            "another case below",
            "patches: [{Path: /etc/passwd}]",
            "unknown field `patches.Path`; it could name files, URLs or programs",
        ),
        (
            "twice",
            "resources: [a.yaml]\nresources: [/etc/passwd]",
            "line 2: `resources` is given twice",
        ),
        (
            "a second document",
            "resources: [a.yaml]\n---\nresources: [/etc/passwd]",
            "line 3: a second document",
        ),
        ("another type", "resources: {a: b}", "the field `resources` has the wrong type"),
        ("numbers", "resources: [1]", "the field `resources` has the wrong type"),
        ("no mapping", "- a", "not a mapping"),
    ]);
}

#[test]
fn folders_named_indirectly_are_checked_too() {
    let app = ("app/kustomization.yaml", "resources: [../one]");
    for (case, files, want) in [
        (
            "two steps away",
            vec![
                app,
                ("one/kustomization.yml", "components: [../two]"),
                ("two/Kustomization", "resources: [/etc]"),
            ],
            "`two/Kustomization` is not rendered: `/etc` in `resources` is not a relative path",
        ),
        (
            "round and round",
            vec![app, ("one/kustomization.yaml", "resources: [../app]")],
            "`app/kustomization.yaml` is not rendered: it includes itself through `app`",
        ),
        (
            "no kustomization",
            vec![app, ("one/a.yaml", WANTED)],
            "`one` is not a folder with exactly one kustomization",
        ),
        (
            "two of them",
            vec![app, ("one/kustomization.yaml", ""), ("one/Kustomization", "")],
            "`one` is not a folder with exactly one kustomization",
        ),
        ("not in the repository", vec![("a.yaml", WANTED)], "path `app` is not in revision `HEAD`"),
    ] {
        assert_eq!(refused(&files), want, "{case}");
    }
}

/// Each folder names the next one twice, under two prefixes: 2^n times the last one.
#[test]
fn exponential_nesting_is_counted_before_rendering() {
    let tree = |levels: usize| -> Vec<(String, String)> {
        let mut files =
            vec![("app/kustomization.yaml".to_owned(), "resources: [../a0, ../b0]".to_owned())];
        for level in 0..levels {
            let next = level + 1;
            for side in ["a", "b"] {
                let text = if next == levels {
                    "resources: [x.yaml]".to_owned()
                } else {
                    format!("namePrefix: {side}\nresources: [../a{next}, ../b{next}]")
                };
                files.push((format!("{side}{level}/kustomization.yaml"), text));
                files.push((format!("{side}{level}/x.yaml"), WANTED.to_owned()));
            }
        }
        files
    };
    for (levels, want) in
        [(5, "nothing"), (12, "renders more than 1000 folders"), (40, "folders 32 deep")]
    {
        let files = tree(levels);
        let files: Vec<_> = files.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert!(refused(&files).contains(want), "{levels}: {}", refused(&files));
    }
}

#[test]
fn links_are_refused() {
    for (link, target, want) in [
        ("app/a.yaml", "/etc/passwd", "path `app/a.yaml` is a symbolic link"),
        (
            "app/kustomization.yaml",
            "../other.yaml",
            "path `app/kustomization.yaml` is a symbolic link",
        ),
        ("base", "/etc", "path `base` is a symbolic link"),
    ] {
        let fixture = commit(&[("other.yaml", "resources: [a.yaml]"), ("app/b.yaml", WANTED)]);
        if link != "app/kustomization.yaml" {
            fixture.write("work/app/kustomization.yaml", "resources: [a.yaml, ../base]");
        }
        if link == "base" {
            fixture.write("work/app/a.yaml", WANTED);
        }
        symlink(target, fixture.path(&format!("work/{link}"))).unwrap();
        fixture.commit(&[], "a link");
        assert_eq!(render_in(&fixture, "app").unwrap_err().to_string(), want, "{link}");
    }
}

#[test]
fn the_program_gets_only_the_checked_files() {
    let mut fixture = commit(&[
        (
            "app/kustomization.yaml",
            "# a comment\nresources: [./a.yaml, ../base//]\npatchesStrategicMerge: ['{x: yes}']",
        ),
        ("app/a.yaml", WANTED),
        ("app/not-named.yaml", WANTED),
        ("base/kustomization.yaml", "resources: [sub/b.yaml]"),
        ("base/sub/b.yaml", WANTED),
    ]);
    let script = "echo 'wanted: yes'; echo $*; /bin/cat kustomization.yaml; echo; (cd ../..; /usr/bin/find . -type f | /usr/bin/sort); /usr/bin/env | /usr/bin/sort; ulimit -d; ulimit -f";
    with_program(&mut fixture, script);
    let read = render_in(&fixture, "app").unwrap();
    let [file] = read.files.as_slice() else { panic!("{read:?}") };
    let text = String::from_utf8(file.bytes.clone()).unwrap();
    let world = text.lines().nth(1).unwrap().strip_prefix("build ").unwrap();
    let world = world.strip_suffix("/tree/app").unwrap();
    let shown = text.replace(world, "[world]");
    let shown: Vec<&str> = shown
        .lines()
        .filter(|line| {
            !line.starts_with("PWD=") && !line.starts_with("_=") && !line.starts_with("SHLVL=")
        })
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @r##"
    wanted: yes
    build [world]/tree/app
    {"patchesStrategicMerge":["# a patch\n{x: yes}"],"resources":["./a.yaml","./../base"]}
    ./tree/app/a.yaml
    ./tree/app/kustomization.yaml
    ./tree/base/kustomization.yaml
    ./tree/base/sub/b.yaml
    ALL_PROXY=http://127.0.0.1:9
    GIT_ALLOW_PROTOCOL=
    GOMEMLIMIT=384MiB
    HOME=[world]/home
    HTTPS_PROXY=http://127.0.0.1:9
    HTTP_PROXY=http://127.0.0.1:9
    PATH=
    TMPDIR=[world]/home
    524288
    65536
    "##);
    assert_eq!(&*file.path, "app (rendered)");
    assert_eq!(read.origin.paths, ["app"]);
    assert!(read.origin.commit.is_some());
}

#[test]
fn the_program_has_limits() {
    for (case, script, want) in [
        ("it says no", "echo one; echo 'Error: x' >&2; exit 1", "cannot render `app`: Error: x"),
        ("it is silent", "exit 3", "cannot render `app`: exit status: 3"),
        ("it hangs", "while :; do :; done", "rendering `app` took more than 0 s"),
        (
            "it prints for ever",
            "while :; do echo aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa; done",
            "rendering `app` took more than 0 s",
        ),
    ] {
        let mut fixture = commit(&[("app/kustomization.yaml", "namePrefix: a-")]);
        fixture.timeout = Duration::from_millis(300);
        with_program(&mut fixture, script);
        assert_eq!(render_in(&fixture, "app").unwrap_err().to_string(), want, "{case}");
    }
}

#[test]
fn the_output_is_limited() {
    let mut fixture = commit(&[("app/kustomization.yaml", "namePrefix: a-")]);
    with_program(&mut fixture, "exec /bin/cat /dev/zero");
    let refused = render_in(&fixture, "app").unwrap_err().to_string();
    assert_eq!(refused, "the rendered output of `app` is larger than 32 MiB");
}

#[test]
fn unwanted_documents_become_empty_lines() {
    let wanted = |bytes: &[u8]| bytes.windows(6).any(|six| six == b"wanted");
    for (given, want) in [
        ("a: 1\n---\nwanted: 1\n", "\n---\nwanted: 1\n"),
        ("wanted: 1\n---\nb: 1\nc: 2\n---\nwanted: 2\n", "wanted: 1\n---\n\n\n---\nwanted: 2\n"),
        ("wanted: 1", "wanted: 1"),
        ("", ""),
    ] {
        let kept = super::only(given.as_bytes(), &wanted);
        assert_eq!(String::from_utf8(kept).unwrap(), want);
    }
}

#[test]
fn a_folder_is_rendered_at_any_revision() {
    let mut fixture = commit(&[("app/kustomization.yaml", "namePrefix: old-")]);
    with_program(&mut fixture, "echo 'wanted: yes'; /bin/cat kustomization.yaml");
    fixture.write("work/app/kustomization.yaml", "namePrefix: new-");
    let request = |revision: &str, base: Option<&str>| {
        Request::Git(GitRequest {
            revision: Some(revision.to_owned()),
            instead: base.map(|base| crate::Instead::MergeBase(base.to_owned())),
            kustomize: Some("app".into()),
            ..GitRequest::default()
        })
    };
    let prefix = |request: &Request| {
        let read = fixture.read_in("work", request).unwrap();
        let text = String::from_utf8_lossy(&read.files[0].bytes).into_owned();
        (text.contains("new-"), read.warnings.len())
    };
    assert_eq!(prefix(&request("HEAD", None)), (false, 1), "the working tree plays no part");
    fixture.commit(&[], "second");
    assert_eq!(prefix(&request("HEAD", None)), (true, 0));
    assert!(!prefix(&request("HEAD", Some("HEAD~1"))).0, "the merge base");
}

proptest! {
    /// Paths written for kustomize lead to the checked file, and that is in the commit.
    #[test]
    fn a_path_stays_in_the_commit(
        folder in "([abc]{1,2}(/[abc]{1,2}){0,3})?",
        given in prop_oneof!["[ab./ @-]{0,16}", "((\\.\\./){0,4}|/|~)[ab./:?%]{0,8}", any::<String>()],
    ) {
        let refuse = |problem| Error::from(KustomizeError::Problem { path: "x".to_owned(), problem });
        let Ok((relative, target)) = super::resolve(&folder, &given, "resources", &refuse) else {
            return Ok(());
        };
        prop_assert!(relative == "." || relative.starts_with("./"), "{}", relative);
        let walked = relative.split('/').try_fold(
            folder.split('/').filter(|name| !name.is_empty()).collect::<Vec<_>>(),
            |mut at, name| {
                match name {
                    "." => {}
                    ".." => at.pop().map(|_| ())?,
                    name => at.push(name),
                }
                Some(at)
            },
        );
        prop_assert_eq!(walked.map(|names| names.join("/")), Some(target.clone()));
        let is_name = |name: &str| !name.is_empty() && name != "." && name != "..";
        prop_assert!(target.is_empty() || target.split('/').all(is_name), "{}", target);
    }
}
