//! Node.js programs for the tests, with one JSON value per line: their npm packages are installed
//! into the target folder on first use, as pinned in `tests/web`.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A program that answers each line with a line.
pub(crate) struct Program {
    node: Child,
    answers: BufReader<ChildStdout>,
}

impl Program {
    /// Starts a script of `tests/web`.
    pub(crate) fn start(script: &str) -> Self {
        let folder = installed();
        let scratch = folder.join("tmp");
        fs::create_dir_all(&scratch).unwrap();
        // Next to the packages, where it finds them; written atomically, because another run may be
        // reading it.
        let copy = folder.join(script);
        let fresh = tempfile::NamedTempFile::new_in(&folder).unwrap();
        fs::copy(source().join(script), fresh.path()).unwrap();
        fresh.persist(&copy).unwrap();
        let mut node = Command::new("node")
            .arg(copy)
            .current_dir(&folder)
            .env("TMPDIR", scratch)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("these tests need Node.js 20 or later: {error}"));
        let answers = BufReader::new(node.stdout.take().unwrap());
        Self { node, answers }
    }

    /// Sends a question; returns the answer.
    pub(crate) fn ask<T: DeserializeOwned>(&mut self, question: &(impl Serialize + ?Sized)) -> T {
        let line = serde_json::to_string(question).unwrap();
        writeln!(self.node.stdin.as_mut().unwrap(), "{line}").expect("the program has ended");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap();
        serde_json::from_str(&answer)
            .unwrap_or_else(|error| panic!("{error}: {answer:?}; its standard error is above"))
    }
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/web")
}

/// The folder with the packages. Its name contains a hash of the pinned versions.
pub(crate) fn installed() -> PathBuf {
    let files = ["package.json", "package-lock.json"];
    let mut hash = DefaultHasher::new();
    for file in files {
        fs::read(source().join(file)).unwrap().hash(&mut hash);
    }
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let folder = tmp.join(format!("web-{:016x}", hash.finish()));
    if !folder.exists() {
        let fresh = tempfile::tempdir_in(tmp).unwrap();
        for file in files {
            fs::copy(source().join(file), fresh.path().join(file)).unwrap();
        }
        let done = Command::new("npm")
            .args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"])
            .current_dir(fresh.path())
            .output()
            .unwrap_or_else(|error| {
                panic!("these tests need npm, which comes with Node.js: {error}")
            });
        let message = String::from_utf8_lossy(&done.stderr);
        assert!(
            done.status.success(),
            "npm could not install the packages of tests/web: {message}"
        );
        // Another run may have been faster; its folder is equivalent.
        let _ = fs::rename(fresh.path(), &folder);
    }
    folder
}
