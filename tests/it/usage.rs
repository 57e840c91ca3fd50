//! The command line: help, version, and rejected arguments with their messages.

use std::fs;

use insta::assert_snapshot;

use testkit::sandbox::Sandbox;

#[test]
fn help_of_each_command() {
    let sandbox = Sandbox::new();
    for command in [
        "",
        "plan",
        "diff",
        "drift",
        "checks",
        "explain",
        "status",
        "history",
        "show",
        "snapshot",
        "schema",
        "completions",
        "man",
    ] {
        let name = format!("help_{}", if command.is_empty() { "ds-plan" } else { command });
        assert_snapshot!(name, sandbox.ds_plan(&format!("{command} -h")));
    }
}

#[test]
fn the_long_help_explains_n() {
    let help = Sandbox::new().ds_plan("plan --help").stdout;
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("Unlike `kubectl apply -n`"), "{help}");
}

#[test]
fn versions() {
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(Sandbox::new().ds_plan("--version").stdout, format!("ds-plan {version}\n"));
    assert_eq!(Sandbox::new().ds_apply("--version").stdout, format!("ds-apply {version}\n"));
}

#[test]
fn help_of_each_command_of_ds_apply() {
    let sandbox = Sandbox::new();
    let all = ["", "apply", "approve", "roll", "step", "undo", "release", "unlock", "can-i"];
    for command in all {
        let of = if command.is_empty() { "" } else { "_" };
        let name = format!("help_ds-apply{of}{command}");
        assert_snapshot!(name, sandbox.ds_apply(&format!("{command} -h")));
    }
}

#[test]
fn ds_apply_reports_unsupported_arguments() {
    let sandbox = Sandbox::new();
    let run = |line: &str| sandbox.ds_apply(line);
    assert_snapshot!(run("--snapshot recorded.json"), @"
    exit 64
    --- stderr
    error: a recorded cluster cannot be changed; --snapshot requires --rehearse
    hint: see what would happen: `ds-plan --snapshot FILE`
    hint: or rehearse it: `ds-apply --rehearse --snapshot FILE`
    ");
    assert_snapshot!(run("agnet"), @"
    exit 1
    --- stderr
    error: no kubeconfig found ([dir]/home/.kube/config does not exist), and not running in a pod with a service account
    hint: set KUBECONFIG or --kubeconfig, or plan on a recording: `ds-plan --snapshot FILE`
    ");
    assert_snapshot!(run("ns/agnet"), @"
    exit 1
    --- stderr
    error: no kubeconfig found ([dir]/home/.kube/config does not exist), and not running in a pod with a service account
    hint: set KUBECONFIG or --kubeconfig, or plan on a recording: `ds-plan --snapshot FILE`
    ");
    assert_eq!(run("--nonsense").code, Some(64));
    assert_eq!(run("step x/y").code, Some(64));
    assert_eq!(run("step x/y --count 1 --nodes a").code, Some(64));
    assert_eq!(run("roll").code, Some(64));
}

#[test]
fn an_invalid_command_line_is_64() {
    let sandbox = Sandbox::new();
    assert_snapshot!(sandbox.ds_plan("--nonsense"), @"
    exit 64
    --- stderr
    error: unexpected argument '--nonsense' found

      tip: to pass '--nonsense' as a value, use '-- --nonsense'

    Usage: ds-plan [OPTIONS] [NAME]... [COMMAND]

    For more information, try '--help'.
    ");
    assert_snapshot!(sandbox.ds_plan("statsu"), @"
    exit 64
    --- stderr
    error: unrecognized subcommand 'statsu'

      tip: a similar command exists: 'status'
      tip: to name the DaemonSet: 'ds/statsu'

    For more information, try '--help'.
    ");
    assert_snapshot!(sandbox.ds_plan("-f a.yaml --rev main"), @"
    exit 64
    --- stderr
    error: the argument '--filename <FILE>' cannot be used with '--rev <REV>'

    Usage: ds-plan --filename <FILE> [NAME]...

    For more information, try '--help'.
    ");
    assert_snapshot!(sandbox.ds_plan("-f a.yaml status"), @"
    exit 64
    --- stderr
    error: `--filename` belongs after `ds-plan status`, not before

    Usage: ds-plan [OPTIONS] [NAME]... [COMMAND]

    For more information, try '--help'.
    ");
    assert_snapshot!(sandbox.ds_plan("--snapshot s.json --context prod"), @"
    exit 64
    --- stderr
    error: the argument '--snapshot <FILE>' cannot be used with '--context <NAME>'

    Usage: ds-plan --snapshot <FILE> [NAME]...

    For more information, try '--help'.
    ");
    assert_snapshot!(sandbox.ds_plan("-l a=b=c"), @"
    exit 64
    --- stderr
    error: invalid value 'a=b=c' for '--selector <SELECTOR>': expected `,` or the end, found `=`

    For more information, try '--help'.
    ");
    assert_snapshot!(sandbox.ds_plan("explain logging/agent"), @"
    exit 64
    --- stderr
    error: the following required arguments were not provided:
      <NODE>

    Usage: ds-plan explain <NAME> <NODE>

    For more information, try '--help'.
    ");
    assert_snapshot!(sandbox.ds_plan("-f - --snapshot -"), @"
    exit 64
    --- stderr
    error: standard input cannot be both the manifests and the recording
    hint: put one of the two into a file
    ");
}

#[test]
fn completions_call_the_program() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let run = Sandbox::new().ds_plan(&format!("completions {shell}"));
        assert_eq!(run.code, Some(0), "{run}");
        for word in ["DS_PLAN_COMPLETE", "ds-plan"] {
            assert!(run.stdout.contains(word), "{shell}: no {word}");
        }
    }
}

#[test]
fn manual_pages() {
    let sandbox = Sandbox::new();
    let page = sandbox.ds_plan("man");
    assert_eq!(page.code, Some(0));
    for word in [".TH ds-plan 1", "ds\\-plan\\-drift(1)", "\\-\\-snapshot"] {
        assert!(page.stdout.contains(word), "no {word} in\n{}", page.stdout);
    }
    let page = sandbox.ds_plan("man drift").stdout;
    assert!(page.contains(".TH ds-plan-drift 1") && page.contains("eligibility"), "{page}");
    assert_snapshot!(sandbox.ds_plan("man drfit"), @"
    exit 64
    --- stderr
    error: there is no command drfit
    hint: commands: plan, diff, drift, checks, explain, status, history, show, snapshot, schema, completions, man
    ");
    fs::create_dir(sandbox.path("man1")).unwrap();
    assert_eq!(sandbox.ds_plan("man --out man1").code, Some(0));
    let mut names: Vec<_> = fs::read_dir(sandbox.path("man1"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names.join(" "),
        "ds-plan-checks.1 ds-plan-completions.1 ds-plan-diff.1 ds-plan-drift.1 ds-plan-explain.1 ds-plan-history.1 \
         ds-plan-man.1 ds-plan-plan.1 ds-plan-schema.1 ds-plan-show.1 ds-plan-snapshot.1 ds-plan-status.1 ds-plan.1"
    );
    assert_snapshot!(sandbox.ds_plan("man --out nowhere"), @"
    exit 1
    --- stderr
    error: cannot write nowhere/ds-plan.1
      caused by: No such file or directory (os error 2)
    hint: the folder must exist: `mkdir -p DIR`
    ");
}
