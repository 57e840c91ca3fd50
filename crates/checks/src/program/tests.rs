// Clippy's exception for tests (clippy.toml) covers only functions marked as tests, not helpers.
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use daemonset::model::{CheckEndpoint, DaemonSetKey, Soak, Unanswered};
use jiff::Timestamp;

use super::*;

/// One folder at a time: a program cannot start while a test that forks has it open for writing.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// A folder with a program `bin/check` and a program `check.sh`, both with this script.
struct Folder(tempfile::TempDir, #[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

impl Folder {
    fn with(script: &str) -> Self {
        let one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("bin")).unwrap();
        for file in ["bin/check", "check.sh"] {
            let path = folder.path().join(file);
            fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        Self(folder, one)
    }

    fn ask(&self, words: &[&str], limit: Duration) -> CheckResponse {
        self.ask_of(true, words, limit)
    }

    fn ask_of(&self, runs_files: bool, words: &[&str], limit: Duration) -> CheckResponse {
        let path = format!("bin::{}:/usr/bin:/bin", self.0.path().join("bin").display());
        let commands = Commands { path: path.into(), folder: self.0.path().to_owned(), runs_files };
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let question = CheckQuestion {
            name: "c".to_owned(),
            endpoint: CheckEndpoint::Command(words.clone()),
            daemon_set: DaemonSetKey::new("kube-system", "agent"),
            nodes: Vec::new(),
            others: Vec::new(),
            from: Timestamp::UNIX_EPOCH,
            until: Timestamp::UNIX_EPOCH,
            interval: Soak(1),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let asked = runtime.block_on(commands.ask(&words, &question, limit));
        asked.unwrap_or_else(CheckResponse::from)
    }
}

const LONG: Duration = Duration::from_secs(20);

fn shown(response: CheckResponse) -> String {
    match response {
        CheckResponse::Sample { is_expected, detail, .. } => format!("{is_expected}: {detail}"),
        CheckResponse::Unanswered(Unanswered { message }) => message,
        CheckResponse::Series(_) => unreachable!("programs have no series"),
    }
}

#[test]
fn the_exit_status_is_the_answer() {
    for (script, want) in [
        ("exit 0", "true: exit status 0"),
        ("echo fine; exit 0", "true: exit status 0: fine"),
        ("echo one; echo ' two '; echo err >&2; exit 1", "false: exit status 1: two"),
        ("printf 'a\\033[2J'; exit 1", "false: exit status 1: a\\u{1b}[2J"),
        (
            "echo why >&2; exit 3",
            "`check` ended with exit status: 3, neither 0 (pass) nor 1 (fail): why",
        ),
        ("kill -9 $$", "`check` ended with signal: 9 (SIGKILL), neither 0 (pass) nor 1 (fail)"),
    ] {
        assert_eq!(shown(Folder::with(script).ask(&["check"], LONG)), want, "{script}");
    }
}

#[test]
fn it_gets_its_words_and_three_variables() {
    let folder = Folder::with("echo \"$@\" $DAEMONSET_NAMESPACE/$DAEMONSET_NAME end");
    let text = shown(folder.ask(&["./check.sh", "$HOME", ";exit 3"], LONG));
    assert_eq!(text, "true: exit status 0: $HOME ;exit 3 kube-system/agent end");
    drop(folder);
    // `sh` sets PWD itself.
    let folder = Folder::with("env | cut -d= -f1 | grep -v -e ^PWD -e ^_ -e SHLVL | sort | xargs");
    let want = "true: exit status 0: DAEMONSET_NAME DAEMONSET_NAMESPACE PATH";
    assert_eq!(shown(folder.ask(&["check"], LONG)), want);
}

#[test]
fn only_programs_of_path_and_below_the_folder_run() {
    let folder = Folder::with("exit 0");
    let inside = folder.0.path().join("check.sh").display().to_string();
    for (words, want) in [
        (&["check"][..], "true: exit status 0"),
        (&["check.sh"], "the program `check.sh` is not in an absolute folder of PATH"),
        (&["./check.sh"], "true: exit status 0"),
        (&["bin/check"], "true: exit status 0"),
        (
            &["bin/../check.sh"],
            "`bin/../check.sh` is not the name of a program, nor a path below the current folder",
        ),
        (
            &["../check"],
            "`../check` is not the name of a program, nor a path below the current folder",
        ),
        (&["./absent"], "`./absent` cannot be started: No such file or directory (os error 2)"),
        (&[], "the program `` is not in an absolute folder of PATH"),
    ] {
        assert_eq!(shown(folder.ask(words, LONG)), want, "{words:?}");
    }
    assert_eq!(shown(folder.ask_of(false, &["check"], LONG)), "true: exit status 0");
    let message = shown(folder.ask_of(false, &["./check.sh"], LONG));
    assert!(
        message.contains("policies are not used (--repo, --rev, --policy-from or --plan)"),
        "{message}"
    );
    let message = shown(folder.ask(&[&inside], LONG));
    assert!(message.contains("nor a path below the current folder"), "{message}");
}

#[test]
fn a_slow_program_and_its_children_end() {
    let mark = tempfile::tempdir().unwrap();
    let mark = mark.path().join("late");
    let script = format!("(sleep 1; touch {}) & sleep 60", mark.display());
    let message = shown(Folder::with(&script).ask(&["check"], Duration::from_millis(300)));
    assert_eq!(message, "`check` did not end within 0.3 s");
    std::thread::sleep(Duration::from_millis(1_500));
    assert!(!mark.exists(), "the child went on");
}

#[test]
fn endless_output_and_open_pipes_do_not_hold_it_up() {
    #[expect(clippy::disallowed_methods, reason = "the time that it takes is the test")]
    let start = Instant::now();
    let run = |script: &str| shown(Folder::with(script).ask(&["check"], LONG));
    // More than a pipe holds, so the program ends only if it is read.
    let message = run("head -c 1000000 /dev/zero | tr '\\0' x; exit 1");
    assert!(message.starts_with("false: exit status 1: xxx") && message.len() < 300, "{message}");
    assert_eq!(run("sleep 60 & echo done; exit 0"), "true: exit status 0: done");
    assert!(start.elapsed() < Duration::from_secs(15));
}
