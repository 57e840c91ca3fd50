//! Errors of a first attempt say what to type instead.

use std::path::Path;

use testkit::fixture;
use testkit::sandbox::Sandbox;

/// A line for `ds-apply` or `ds-plan` on the recording of the example fleet, and the words of its
/// error and its hints.
fn check(lines: &[(&str, &[&str])]) {
    let fleet = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/fleet/cluster.json");
    let sandbox = Sandbox::new();
    for (line, wanted) in lines {
        let line = line.replace("FLEET", fleet.to_str().unwrap());
        let run = match line.split_once(' ').unwrap() {
            ("ds-apply", rest) => sandbox.ds_apply(rest),
            (_ds_plan, rest) => sandbox.ds_plan(rest),
        };
        for words in *wanted {
            assert!(run.stderr.contains(words), "{line}: {words}: {run}");
        }
        assert!(!run.to_string().contains("0s of the cluster's time"), "{line}: {run}");
    }
}

#[test]
fn what_is_not_found_is_named_with_what_there_is() {
    check(&[
        (
            "ds-apply undo fluent-bit --rehearse --snapshot FLEET",
            &[
                "error: DaemonSet default/fluent-bit not found in the cluster",
                "hint: DaemonSets in this namespace: none",
                "hint: list those of all namespaces: `ds-plan status -A`",
            ],
        ),
        (
            "ds-plan explain worker-a-01 logging/fluent-bit --snapshot FLEET",
            &[
                "error: worker-a-01 is a node, not a DaemonSet",
                "hint: the DaemonSet comes first: `ds-plan explain NAMESPACE/NAME NODE`",
            ],
        ),
        ("ds-apply resume", &["tip: use 'ds-apply --resume'"]),
    ]);
}

#[test]
fn hints_name_only_what_the_command_accepts() {
    let recording = "or plan on a recording: `ds-plan --snapshot FILE`";
    check(&[
        ("ds-apply undo logging/fluent-bit", &[recording]),
        ("ds-plan snapshot", &[recording]),
        (
            "ds-apply unlock logging/fluent-bit --snapshot FLEET",
            &["`ds-apply unlock` needs a live cluster; it does not read --snapshot"],
        ),
        (
            "ds-apply can-i logging/fluent-bit --snapshot FLEET",
            &["`ds-apply can-i` needs a live cluster; it does not read --snapshot"],
        ),
        (
            "ds-apply release logging/fluent-bit --snapshot FLEET",
            &["`ds-apply release` needs a live cluster; it does not read --snapshot"],
        ),
    ]);
}

#[cfg(unix)]
#[test]
fn links_and_large_streams_have_another_way() {
    let sandbox = fixture::sandbox();
    std::fs::create_dir(sandbox.path("mounted")).unwrap();
    std::os::unix::fs::symlink("../agent.yaml", sandbox.path("mounted/agent.yaml")).unwrap();
    let run = sandbox.ds_plan("-f mounted --snapshot cluster.json");
    assert_eq!(run.code, Some(1), "{run}");
    let hint = "hint: name the file itself: `-f` reads it through a link\n";
    assert!(run.stderr.contains(hint), "{run}");
    let run = sandbox.ds_plan("-f mounted/agent.yaml --snapshot cluster.json");
    assert_eq!(run.code, Some(0), "{run}");
    sandbox.write("large.yaml", format!("# DaemonSet {}\n", "x".repeat(3 << 20)));
    for (file, hint) in [
        ("-", "hint: pass only the DaemonSets, and their policies\n"),
        ("large.yaml", "hint: read less: name folders or files with `--path` or `-f`\n"),
    ] {
        let mut command = sandbox.ds_plan_command(&format!("-f {file} --snapshot cluster.json"));
        command.stdin(std::fs::File::open(sandbox.path("large.yaml")).unwrap());
        let run = sandbox.run(command);
        assert_eq!(run.code, Some(1), "{run}");
        assert!(run.stderr.contains(hint), "{run}");
    }
}

/// The commit is known, but not where its repository is.
#[test]
fn a_saved_plan_asks_for_its_repository() {
    let (sandbox, elsewhere) = (fixture::sandbox(), fixture::sandbox());
    sandbox.commit();
    let run = sandbox.ds_plan("--path agent.yaml --snapshot cluster.json --out plan.json");
    assert_eq!(run.code, Some(0), "{run}");
    elsewhere.write("plan.json", std::fs::read(sandbox.path("plan.json")).unwrap());
    let run = elsewhere.ds_apply("--plan plan.json --rehearse --snapshot cluster.json");
    assert_eq!(run.code, Some(1), "{run}");
    let error = "error: no git repository at `[dir]` or above it, and plan.json was made from one\n\
                 hint: name it: `ds-apply --plan plan.json --repo DIR`\n";
    assert!(run.stderr.contains(error), "{run}");
}

#[test]
fn a_quiet_rehearsal_has_no_heading_without_content() {
    let fleet = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/fleet");
    let fleet = fleet.to_str().unwrap();
    let line = format!("--snapshot {fleet}/cluster.json -f {fleet}/manifests logging/fluent-bit");
    let run = Sandbox::new().ds_apply(&format!("-q --rehearse {line}"));
    assert_eq!(run.code, Some(0), "{run}");
    assert!(!run.stdout.contains("what is left afterwards"), "{run}");
}
