//! Files, folders and streams, including careless and hostile input.

use std::fs;
use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;

use super::*;
use crate::fixture::{Fixture, WANTED, files, names};
use crate::{Request, Streams, Warning};

fn with(written: &[&str]) -> Fixture {
    let fixture = Fixture::new();
    for name in written {
        fixture.write(&format!("work/{name}"), WANTED);
    }
    fixture
}

fn error(fixture: &Fixture, given: &[&str]) -> String {
    fixture.read_in("work", &files(given, true)).unwrap_err().to_string()
}

fn mkfifo(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn names_are_read_as_kubectl_reads_them() {
    let fixture = with(&["a.yaml", "notes", "x/b.yml", "x/notes", "x/y.yaml/c.json", "z/d.yaml"]);
    let absolute = fixture.path("work/z");
    let absolute = absolute.to_str().unwrap();
    let absolute_file = format!("{absolute}/d.yaml");
    for (given, recursive, expected) in [
        (&["a.yaml"][..], false, &["a.yaml"][..]),
        (&["notes"], false, &["notes"]),
        (&["x"], false, &["x/b.yml"]),
        (&["x/"], true, &["x/b.yml", "x/y.yaml/c.json"]),
        (&["."], false, &["a.yaml"]),
        (&["./x"], false, &["./x/b.yml"]),
        (&["z", "a.yaml"], false, &["z/d.yaml", "a.yaml"]),
        (&[absolute], false, &[absolute_file.as_str()]),
        (&["../work/z"], false, &["../work/z/d.yaml"]),
        (&["z/d.yaml", "z", "./z/../z/d.yaml", "z/d.yaml"], true, &["z/d.yaml"]),
    ] {
        let read = fixture.read_in("work", &files(given, recursive)).unwrap();
        assert_eq!(names(&read), expected, "{given:?} {recursive}");
        assert!(read.files.iter().all(|file| file.bytes == WANTED.as_bytes()));
        assert_eq!(read.origin.paths, given);
        assert_eq!((read.origin.commit, read.origin.repository), (None, None));
    }
}

#[test]
fn standard_input_is_read_once() {
    let fixture = with(&["a.yaml"]);
    let mut stdin = WANTED.as_bytes();
    let read = fixture.read_with("work", &files(&["a.yaml", "-"], false), &mut stdin).unwrap();
    assert_eq!(names(&read), ["a.yaml", "<stdin>"]);
    assert_eq!(read.origin.paths, ["a.yaml", "-"]);
    assert_eq!(error(&fixture, &["-", "-"]), "standard input cannot be read twice");
}

/// A rehearsal reads its source twice, and a policy is read for each DaemonSet.
#[test]
fn what_can_be_read_only_once_is_kept_for_the_command() {
    let fixture = Fixture::new();
    let (reader, mut writer) = io::pipe().unwrap();
    writer.write_all(WANTED.as_bytes()).unwrap();
    drop(writer);
    let pipe = format!("/dev/fd/{}", reader.as_raw_fd());
    let (mut stdin, streams) = (WANTED.as_bytes(), Streams::default());
    for _ in 0..2 {
        let names = files(&["-", &pipe], false);
        let read = fixture.read_of_command("work", &names, (&mut stdin, &streams)).unwrap();
        assert_eq!(read.files.len(), 2);
    }
    let other = fixture.read_with("work", &files(&["-"], false), &mut stdin).unwrap();
    assert!(other.files.is_empty(), "another command reads what is left of it");
}

#[test]
fn standard_input_is_bounded_and_may_fail() {
    struct Broken;
    impl io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::ConnectionReset.into())
        }
    }
    let fixture = Fixture::new();
    let mut endless = io::repeat(b'x');
    let result = fixture.read_with("work", &files(&["-"], false), &mut endless);
    assert_eq!(result.unwrap_err().to_string(), "`<stdin>` is larger than 3 MiB");
    let result = fixture.read_with("work", &files(&["-"], false), &mut Broken);
    assert_eq!(result.unwrap_err().to_string(), "cannot read `<stdin>`");
}

#[test]
fn a_link_is_followed_only_by_name() {
    let fixture = with(&["x/a.yaml", "y/b.yaml"]);
    fixture.write("secret.yaml", WANTED);
    symlink("../../secret.yaml", fixture.path("work/x/link.yaml")).unwrap();
    symlink("../y", fixture.path("work/x/folder")).unwrap();
    symlink("..", fixture.path("work/x/loop")).unwrap();
    // Neither has the name of a manifest, and neither leads to a folder.
    symlink("../y/b.yaml", fixture.path("work/x/file")).unwrap();
    symlink("nowhere", fixture.path("work/x/dangling")).unwrap();
    symlink("x", fixture.path("work/by-name")).unwrap();
    let read = fixture.read_in("work", &files(&["by-name"], true)).unwrap();
    assert_eq!(names(&read), ["by-name/a.yaml"]);
    let links = ["by-name/folder", "by-name/link.yaml", "by-name/loop"];
    assert_eq!(read.warnings, links.map(|path| Warning::Symlink { path: path.into() }));
    let read = fixture.read_in("work", &files(&["x/link.yaml", "x/a.yaml"], false)).unwrap();
    assert_eq!(names(&read), ["x/link.yaml", "x/a.yaml"]);
    // The same file by two ways is one file.
    let read = fixture.read_in("work", &files(&["by-name/a.yaml", "x"], false)).unwrap();
    assert_eq!(names(&read), ["by-name/a.yaml"]);
}

#[test]
fn names_that_cannot_be_read() {
    let fixture = with(&["a.yaml", "empty/notes", "links/notes"]);
    symlink("loop.yaml", fixture.path("work/loop.yaml")).unwrap();
    symlink("nowhere", fixture.path("work/dangling.yaml")).unwrap();
    symlink("../a.yaml", fixture.path("work/links/a.yaml")).unwrap();
    for (given, expected) in [
        ("", "an empty path was given"),
        ("b.yaml", "`b.yaml` does not exist"),
        ("a.yaml/b", "`a.yaml/b` does not exist"),
        ("\u{1b}[2J", "`\\u{1b}[2J` does not exist"),
        ("dangling.yaml", "`dangling.yaml` does not exist"),
        ("loop.yaml", "cannot read `loop.yaml`"),
        ("https://me:pw@host/a.yaml", "`https://***@host/a.yaml` is a URL, not a file"),
        ("empty", "no .yaml, .yml or .json file in `empty`"),
        ("links", "no .yaml, .yml or .json file in `links`; symbolic links were not followed"),
    ] {
        assert_eq!(error(&fixture, &[given]), expected);
    }
    let none = fixture.read_in("work", &files(&["empty", "links"], true)).unwrap_err().to_string();
    assert!(none.starts_with("no .yaml, .yml or .json file in `empty`, `links`"), "{none}");
}

#[test]
fn unreadable_files_are_reported_with_a_reason() {
    let fixture = with(&[]);
    let reason = |error: &Error| std::error::Error::source(error).unwrap().to_string();
    symlink("loop.yaml", fixture.path("work/loop.yaml")).unwrap();
    let error = fixture.read_in("work", &files(&["loop.yaml"], false)).unwrap_err();
    assert!(reason(&error).contains("symbolic links"), "{}", reason(&error));
    // Also without permission: what the root user may do differs, so the file just goes away.
    let error = Disk.load(&fixture.path("work/gone.yaml"), "gone.yaml").unwrap_err();
    assert_eq!(error.to_string(), "cannot read `gone.yaml`");
    assert!(reason(&error).contains("No such file"), "{}", reason(&error));
    let error = Disk.list(&fixture.path("work/gone"), "").err().unwrap();
    assert_eq!(error.to_string(), "cannot read `.`");
}

#[test]
fn nothing_that_blocks_is_opened() {
    let fixture = with(&["x/a.yaml"]);
    mkfifo(&fixture.path("work/x/pipe.yaml"));
    let _socket = UnixListener::bind(fixture.path("work/x/socket.yaml")).unwrap();
    for given in ["x/pipe.yaml", "x/socket.yaml", "/dev/null"] {
        let expected = format!("`{given}` is neither a file nor a folder");
        assert_eq!(error(&fixture, &[given]), expected);
    }
    let read = fixture.read_in("work", &files(&["x"], true)).unwrap();
    assert_eq!(names(&read), ["x/a.yaml"]);
    let expected =
        ["x/pipe.yaml", "x/socket.yaml"].map(|path| Warning::Special { path: path.into() });
    assert_eq!(read.warnings, expected);
}

#[test]
fn a_pipe_from_the_shell_is_read() {
    let fixture = Fixture::new();
    let (reader, mut writer) = io::pipe().unwrap();
    writer.write_all(WANTED.as_bytes()).unwrap();
    drop(writer);
    let given = format!("/dev/fd/{}", reader.as_raw_fd());
    let read = fixture.read_in("work", &files(&[&given], false)).unwrap();
    assert_eq!(names(&read), [given.as_str()]);
    assert_eq!(read.files[0].bytes, WANTED.as_bytes());
}

#[test]
fn a_name_need_not_be_text() {
    let fixture = with(&[]);
    let name = std::ffi::OsString::from_vec(b"x\xff.yaml".to_vec());
    fs::write(fixture.path("work").join(&name), WANTED).unwrap();
    let named = Request::Files { names: vec![name.into()], recursive: false };
    for request in [files(&["."], false), named] {
        let read = fixture.read_in("work", &request).unwrap();
        assert_eq!(names(&read), ["x\\xff.yaml"]);
    }
}

#[test]
fn a_folder_to_render_is_skipped_with_its_sub_folders() {
    let fixture = with(&["k/kustomization.yaml", "k/a.yaml", "k/patches/b.yaml", "c.yaml"]);
    let read = fixture.read_in("work", &files(&["."], true)).unwrap();
    assert_eq!(names(&read), ["c.yaml"]);
    assert_eq!(read.unrendered[0].to_string(), "`k` is a kustomization and was not read");
    assert_eq!(read.unrendered[0].render_command(), "kubectl kustomize ./k");
    let read = fixture.read_in("work", &files(&["k"], false)).unwrap();
    assert_eq!((read.files.len(), read.unrendered[0].files.len()), (0, 3));
}

#[test]
fn large_files_matter_only_if_wanted() {
    let fixture = with(&["a.yaml"]);
    fixture.write("work/lock.json", &"x".repeat(FILE_LIMIT + 1));
    assert_eq!(fixture.read_in("work", &files(&["."], false)).unwrap().unwanted, 1);
    fixture.write("work/b.json", &"wanted".repeat(FILE_LIMIT / 6 + 1));
    assert_eq!(error(&fixture, &["."]), "`b.json` is larger than 3 MiB");
}

#[test]
fn unwanted_content_is_kept_if_it_was_named() {
    let fixture = with(&["a.yaml"]);
    fixture.write("work/x/b.yaml", "other: yes\n");
    fixture.write("work/lock.json", &"x".repeat(FILE_LIMIT + 1));
    for (given, named) in [
        (&["a.yaml", "x/b.yaml"][..], &["x/b.yaml"][..]),
        (&["a.yaml", "x"], &[]),
        (&["a.yaml", "-"], &["<stdin>"]),
        (&["a.yaml", "lock.json"], &[]),
    ] {
        let mut stdin = &b"other: yes\n"[..];
        let read = fixture.read_with("work", &files(given, true), &mut stdin).unwrap();
        assert_eq!(names(&read), ["a.yaml"], "{given:?}");
        assert_eq!(read.unwanted, 1, "{given:?}");
        let kept: Vec<&str> = read.named.iter().map(|file| &*file.path).collect();
        assert_eq!(kept, named, "{given:?}");
    }
}
