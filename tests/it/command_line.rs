//! kubectl's habits on recordings: names and namespaces, variables, `show`, `-q`, completion, and
//! the age of a recording.

use insta::assert_snapshot;

use testkit::fixture::{AGENT, cluster_with, sandbox};
use testkit::sandbox::Sandbox;

const STATUS: &str = "status --snapshot cluster.json";

/// The agent of the namespace `logging` runs on one of two nodes.
fn recorded() -> Sandbox {
    let sandbox = sandbox();
    sandbox.write("cluster.json", cluster_with(AGENT, &["node-1"]).to_string());
    sandbox
}

#[test]
fn a_daemon_set_is_named_as_in_kubectl() {
    let sandbox = recorded();
    for (name, code) in [
        ("logging/agent", 0),
        ("agent -n logging", 0),
        ("ds/agent -n logging", 0),
        ("daemonsets.apps/agent -n logging", 0),
        ("logging/agent -n logging", 0),
        // The default namespace of a recording.
        ("agent", 1),
        ("logging/agent -n default", 64),
        ("agent.yaml", 64),
        ("agent -A", 64),
    ] {
        let status = sandbox.ds_plan(&format!("{STATUS} -o name {name}"));
        assert_eq!(status.code, Some(code), "{name}\n{status}");
        let explain = sandbox.ds_plan(&format!("explain --snapshot cluster.json {name} node-1"));
        assert_eq!(explain.code, Some(code), "{name}\n{explain}");
    }
    for name in ["logging/agent", "ds/agent -n logging"] {
        let plan = sandbox.ds_plan(&format!("-f agent.yaml --snapshot cluster.json {name}"));
        assert_eq!(plan.code, Some(0), "{plan}");
    }
}

#[test]
fn the_namespace_is_shown_with_all_namespaces() {
    let sandbox = recorded();
    let header = |flags: &str| {
        let shown = sandbox.ds_plan(&format!("{STATUS} {flags}")).stdout;
        shown.split_whitespace().next().unwrap().to_owned()
    };
    for (flags, want) in
        [("", "NAMESPACE"), ("-A", "NAMESPACE"), ("-n logging", "NAME"), ("logging/agent", "NAME")]
    {
        assert_eq!(header(flags), want, "{flags}");
    }
    assert_eq!(header("-A -n nowhere"), "NAMESPACE", "-A has precedence, as in kubectl");
}

#[test]
fn mistyped_commands_differ_from_names() {
    assert_snapshot!(Sandbox::new().ds_plan("statsu"), @"
    exit 64
    --- stderr
    error: unrecognized subcommand 'statsu'

      tip: a similar command exists: 'status'
      tip: to name the DaemonSet: 'ds/statsu'

    For more information, try '--help'.
    ");
    assert_snapshot!(recorded().ds_plan("status --snapshot cluster.json -w"), @"
    exit 64
    --- stderr
    error: the argument '--snapshot <FILE>' cannot be used with '--watch'

    Usage: ds-plan status --snapshot <FILE> [NAME]...

    For more information, try '--help'.
    ");
    assert_snapshot!(Sandbox::new().ds_plan("schema --context a"), @"
    exit 64
    --- stderr
    error: `--context` has no effect on `ds-plan schema`

    Usage: ds-plan [OPTIONS] [NAME]... [COMMAND]

    For more information, try '--help'.
    ");
    assert_snapshot!(Sandbox::new().ds_apply("--dry-run=server"), @"
    exit 64
    --- stderr
    error: unexpected value 'server' for '--dry-run' found; no more were expected

    Usage: ds-apply --dry-run [NAME]...

    For more information, try '--help'.
    ");
}

#[test]
fn a_saved_plan_is_shown_as_it_was_printed() {
    let sandbox = recorded();
    let plan = |format: &str| {
        let line = format!("-f agent.yaml --snapshot cluster.json --out plan.json -o {format}");
        sandbox.ds_plan(&line).stdout
    };
    for format in ["text", "json", "yaml", "markdown", "name"] {
        let printed = plan(format);
        let shown = sandbox.ds_plan(&format!("show plan.json -o {format}"));
        assert_eq!((shown.code, &shown.stdout), (Some(0), &printed), "{format}");
    }
    assert!(sandbox.ds_plan("show plan.json -o html").stdout.contains("<html"));
    // The verbose text has the time of the plan, so it must be the same run.
    let verbose = plan("text -v");
    assert_eq!(sandbox.ds_plan("show plan.json -v").stdout, verbose);
    assert_snapshot!(sandbox.ds_plan("show cluster.json"), @"
    exit 1
    --- stderr
    error: cluster.json is not a saved plan
      caused by: unknown variant `v1`, expected `ds-plan.dev/v1alpha1` at line 1 column 18
    hint: create it with `ds-plan --out FILE`
    ");
    assert_snapshot!(sandbox.ds_plan("show nowhere.json"), @"
    exit 1
    --- stderr
    error: cannot read the plan nowhere.json
      caused by: No such file or directory (os error 2)
    hint: create it with `ds-plan --out FILE`
    ");
}

#[test]
fn variables_set_flags() {
    let sandbox = recorded();
    let with = |line: &str, variables: &[(&str, &str)]| {
        let mut command = sandbox.ds_plan_command(line);
        command.envs(variables.iter().copied());
        sandbox.run(command)
    };
    let all = [("DS_PLAN_SNAPSHOT", "cluster.json"), ("DS_PLAN_OUTPUT", "name")];
    assert_eq!(with("status", &all).stdout, "logging/agent\n");
    assert_eq!(with("status -n default", &all).stdout, "");
    assert_snapshot!(with("status", &[("DS_PLAN_OUTPUT", "xml")]), @"
    exit 64
    --- stderr
    error: invalid value 'xml' for '--output <FORMAT>'
      [possible values: text, json, yaml, name]

      tip: a similar value exists: 'yaml'
      tip: the value is that of DS_PLAN_OUTPUT

    For more information, try '--help'.
    ");
    let help = sandbox.ds_plan("status --help").stdout;
    assert!(help.contains("[env: DS_PLAN_OUTPUT]"), "{help}");
}

#[test]
fn a_quiet_run_prints_no_remarks() {
    let sandbox = recorded();
    let line = "-f agent.yaml --snapshot cluster.json --out plan.json -o name";
    assert!(sandbox.ds_plan(line).stderr.contains("saved plan.json"));
    let quiet = sandbox.ds_plan(&format!("{line} -q"));
    assert_eq!((quiet.stderr.as_str(), quiet.code), ("", Some(0)));
    let failed = sandbox.ds_plan("status -q --snapshot nowhere.json");
    assert!(failed.stderr.starts_with("error: "), "{failed}");
}

#[test]
fn decisions_are_logged_and_other_crates_are_not() {
    let sandbox = recorded();
    let logged = sandbox.ds_plan(&format!("{STATUS} -vv")).stderr;
    assert!(logged.contains("DEBUG cluster recorded in cluster.json"), "{logged}");
    let mut command = sandbox.ds_plan_command(STATUS);
    command.env("RUST_LOG", "=x=");
    assert_snapshot!(sandbox.run(command), @"
    exit 64
    --- stderr
    error: RUST_LOG is not a filter: `=x=`
    hint: for example: `RUST_LOG=info`, `RUST_LOG=cluster=debug`
    ");
}

#[test]
fn an_old_recording_is_reported_with_its_age() {
    let sandbox = recorded();
    for line in [
        STATUS,
        "-f agent.yaml --snapshot cluster.json",
        "diff -f agent.yaml --snapshot cluster.json",
    ] {
        // The sandbox leaves this warning out of what it returns.
        let done = sandbox.ds_plan_command(line).output().unwrap();
        let stderr = String::from_utf8(done.stderr).unwrap();
        assert!(stderr.contains("warning: the recording is "), "{line}: {stderr}");
        assert!(stderr.contains(" days old: the cluster may have changed since "), "{stderr}");
    }
}

/// What the script of bash gets for the last word of a line.
fn completed(sandbox: &Sandbox, line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let mut command = match words[0] {
        "ds-apply" => sandbox.ds_apply_command("--"),
        _ => sandbox.ds_plan_command("--"),
    };
    command.args(&words).env("DS_PLAN_COMPLETE", "bash").env("_CLAP_IFS", " ");
    command.env("_CLAP_COMPLETE_INDEX", (words.len() - 1).to_string());
    let run = sandbox.run(command);
    assert_eq!((run.code, run.stderr.as_str()), (Some(0), ""), "{line}");
    run.stdout
}

#[test]
fn a_namespace_that_does_not_exist_is_named() {
    let sandbox = recorded();
    for (namespace, words) in
        [("nowhere", "warning: namespace nowhere does not exist\n"), ("default", "")]
    {
        let run = sandbox.ds_plan(&format!("{STATUS} -n {namespace}"));
        assert_eq!((run.code, &*run.stdout), (Some(0), "No DaemonSets found.\n"), "{run}");
        assert_eq!(run.stderr, words, "{run}");
    }
}

#[test]
fn steps_to_approve_are_completed_from_the_source() {
    let sandbox = recorded();
    let policy = "\
apiVersion: ds-plan.dev/v1alpha1
kind: RolloutPolicy
metadata: {name: careful}
spec:
  selects: {names: [logging/agent]}
  steps:
  - {name: canary, nodes: 1}
  - {name: half, nodes: 50%, approve: true}
  - {name: most, nodes: 90%, approve: true}
";
    sandbox.write("policy.yaml", policy);
    let source = "-f agent.yaml --policy policy.yaml";
    for (line, want) in [
        (format!("ds-apply approve {source} logging/agent "), "half most"),
        (format!("ds-apply approve {source} -n logging ds/agent h"), "half"),
        ("ds-apply approve -f agent.yaml logging/agent ".to_owned(), ""),
        (format!("ds-apply approve {source} logging/other "), ""),
        ("ds-apply approve -f nowhere.yaml logging/agent ".to_owned(), ""),
    ] {
        let found = completed(&sandbox, &line);
        let names: Vec<&str> =
            found.split_whitespace().filter(|word| !word.starts_with('-')).collect();
        assert_eq!(names.join(" "), want, "{line}: {found}");
    }
}

#[test]
fn names_are_completed_from_the_recording() {
    let sandbox = recorded();
    for (line, want) in [
        ("ds-plan stat", "status"),
        ("ds-plan status --snapshot cluster.json log", "logging/agent"),
        ("ds-plan --snapshot cluster.json status ds/", ""),
        ("ds-plan status --snapshot=cluster.json -n logging ", "agent"),
        ("ds-plan status --snapshot cluster.json -n logging ds/", "ds/agent"),
        ("ds-plan status --snapshot cluster.json -n lo", "logging"),
        ("ds-plan explain --snapshot cluster.json logging/", "logging/agent"),
        // Without a cluster there is nothing, and no error.
        ("ds-plan status --snapshot nowhere.json log", ""),
        ("ds-plan status --kubeconfig nowhere log", ""),
    ] {
        let found = completed(&sandbox, line);
        let names: Vec<&str> = found.split(' ').filter(|word| !word.starts_with('-')).collect();
        assert_eq!(names.join(" "), want, "{line}: {found}");
    }
}
