//! Both programs are one executable, which is called by two names.

use std::os::unix::fs::symlink;
use std::process::Command;
use std::{fs, str};

use assert_cmd::cargo::cargo_bin;

use testkit::sandbox::Sandbox;

/// The usage line of a program at this path.
fn usage(program: &std::path::Path) -> String {
    let done = Command::new(program).arg("--help").env_clear().output().unwrap();
    let help = str::from_utf8(&done.stdout).unwrap();
    let line = help.lines().find(|line| line.starts_with("Usage: ")).unwrap_or_default();
    line.to_owned()
}

#[test]
fn each_name_is_its_own_program() {
    let sandbox = Sandbox::new();
    for (name, to, want) in [
        ("kubectl-ds_apply", "ds-apply", "Usage: kubectl ds-apply [OPTIONS]"),
        ("kubectl-ds_plan", "ds-plan", "Usage: kubectl ds-plan [OPTIONS]"),
        ("ds-apply", "ds-plan", "Usage: ds-apply [OPTIONS]"),
        ("ds-apply-0.1", "ds-apply", "Usage: ds-apply [OPTIONS]"),
    ] {
        let program = match to {
            "ds-plan" => cargo_bin!("ds-plan"),
            _ => cargo_bin!("ds-apply"),
        };
        symlink(program, sandbox.path(name)).unwrap();
        let usage = usage(&sandbox.path(name));
        assert!(usage.starts_with(want), "{name} -> {to}: {usage}");
    }
}

#[test]
fn ds_apply_alone_says_what_it_needs() {
    let sandbox = Sandbox::new();
    let alone = sandbox.path("ds-apply");
    fs::copy(cargo_bin!("ds-apply"), &alone).unwrap();
    let done = Command::new(&alone).arg("--yes").env_clear().output().unwrap();
    assert_eq!(done.status.code(), Some(1));
    assert!(done.stdout.is_empty());
    let error = String::from_utf8(done.stderr).unwrap();
    let folder = alone.parent().unwrap().canonicalize().unwrap();
    assert_eq!(
        error,
        format!(
            "error: cannot start {}/ds-plan: No such file or directory (os error 2)\n  \
             ds-apply needs the file ds-plan in its own folder: install both\n",
            folder.display()
        )
    );
}

#[test]
fn ds_apply_is_small() {
    let size = |program: &std::path::Path| fs::metadata(program).unwrap().len();
    let (plan, apply) = (size(cargo_bin!("ds-plan")), size(cargo_bin!("ds-apply")));
    assert!(apply * 4 < plan, "the code is linked twice: {plan} and {apply} bytes");
}
