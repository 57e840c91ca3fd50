//! Bad input results in one clear message: the error, its location, and the next step.

use insta::assert_snapshot;

use testkit::fixture::{AGENT, sandbox};
use testkit::sandbox::{Run, Sandbox};

const PLAN: &str = "--snapshot cluster.json";

/// Plans `manifest` from a file `m.yaml`.
fn plan(manifest: impl AsRef<[u8]>) -> Run {
    let sandbox = sandbox();
    sandbox.write("m.yaml", manifest);
    sandbox.ds_plan(&format!("-f m.yaml {PLAN}"))
}

/// Plans the agent on a snapshot with this content.
fn plan_on(snapshot: impl AsRef<[u8]>) -> Run {
    let sandbox = sandbox();
    sandbox.write("s.json", snapshot);
    sandbox.ds_plan("-f agent.yaml --snapshot s.json")
}

/// The agent's manifest with one part of it replaced.
fn agent_with(old: &str, new: &str) -> String {
    assert!(AGENT.contains(old), "{old}");
    AGENT.replace(old, new)
}

#[test]
fn missing_sources() {
    let sandbox = sandbox();
    let plan = |flags: &str| sandbox.ds_plan(&format!("{flags} {PLAN}"));
    assert_snapshot!(plan(""), @"
    exit 1
    --- stderr
    error: no git repository at `[dir]` or above it
    hint: name the files: `ds-plan -f DIR`
    ");
    assert_snapshot!(plan("-f none.yaml"), @"
    exit 1
    --- stderr
    error: `none.yaml` does not exist
    hint: paths start at the current folder; for paths in git use `--path`
    ");
    assert_snapshot!(plan("-f home"), @"
    exit 1
    --- stderr
    error: no .yaml, .yml or .json file in `home`
    hint: name the manifests: `--path DIR` in git, or `-f FILE` (`-R` for sub-folders)
    ");
    assert_snapshot!(plan("-f https://example.com/agent.yaml"), @"
    exit 1
    --- stderr
    error: `https://example.com/agent.yaml` is a URL, not a file
    hint: fetch it first and pipe it in: `curl -fsSL URL | ds-plan -f -`
    ");
    assert_snapshot!(plan("--repo none"), @"
    exit 1
    --- stderr
    error: `[dir]/none` does not exist
    hint: paths start at the current folder; for paths in git use `--path`
    ");
    assert_snapshot!(plan("--repo git://example.com/fleet"), @"
    exit 1
    --- stderr
    error: `git://example.com/fleet`: fetching by `git` is not supported
    hint: use https:// or ssh://, or a folder
    ");
    assert_snapshot!(plan("--repo http://example.com/fleet"), @"
    exit 1
    --- stderr
    error: `http://example.com/fleet`: plain http is allowed only for loopback addresses
    hint: use https://
    ");
}

#[cfg(target_os = "linux")]
#[test]
fn a_deleted_current_folder() {
    let sandbox = sandbox();
    let program = assert_cmd::cargo::cargo_bin!("ds-plan").display();
    let mut command = std::process::Command::new("sh");
    let script = format!("mkdir gone && cd gone && rmdir ../gone && {program} -f a --snapshot b");
    command.args(["-c", &script]).current_dir(sandbox.path(""));
    assert_snapshot!(sandbox.run(command), @"
    exit 1
    --- stderr
    error: the current folder cannot be found
      caused by: No such file or directory (os error 2)
    hint: change to a folder that exists
    ");
}

#[test]
fn missing_revisions_and_paths() {
    let sandbox = sandbox();
    sandbox.commit();
    let plan = |flags: &str| sandbox.ds_plan(&format!("{flags} {PLAN}"));
    assert_snapshot!(plan("--rev none"), @"
    exit 1
    --- stderr
    error: revision `none` not found in `[dir]`
    hint: fetch it first (`git fetch`), or name another with `--rev`
    ");
    assert_snapshot!(plan("--rev HEAD:agent.yaml"), @"
    exit 1
    --- stderr
    error: revision `HEAD:agent.yaml` is a file, not a commit
    hint: give a branch, a tag or a commit to `--rev`
    ");
    assert_snapshot!(plan("--path none"), @"
    exit 1
    --- stderr
    error: path `none` is not in revision `HEAD`
    hint: commit it first, or read plain files with `-f`
    ");
    assert_snapshot!(plan("--path *.yaml"), @"
    exit 1
    --- stderr
    error: path `*.yaml` is not in revision `HEAD`
    hint: patterns are not expanded: name a folder, or give `--path` several times
    ");
    assert_snapshot!(plan("--repo agent.yaml"), @"
    exit 1
    --- stderr
    error: `[dir]/agent.yaml` is a file, not a repository
    hint: read it with `-f`, or name the folder with `--repo` and the file with `--path`
    ");
    assert_snapshot!(plan("--path ../other"), @"
    exit 1
    --- stderr
    error: path `../other` is outside the repository
    hint: read it as a plain file with `-f`
    ");
}

#[test]
fn missing_heads_and_objects() {
    let sandbox = sandbox();
    let plan = || sandbox.ds_plan(PLAN);
    sandbox.git(&["init", "-q", "-b", "main"]);
    assert_snapshot!(plan(), @"
    exit 1
    --- stderr
    error: the git repository `[dir]` has no commit
    hint: commit first, or read plain files with `-f`
    ");
    sandbox.commit();
    sandbox.git(&["checkout", "-q", "--orphan", "new"]);
    assert_snapshot!(plan(), @"
    exit 1
    --- stderr
    error: `HEAD` of `[dir]` is a branch without a commit
    hint: commit first, or name another branch with `--rev`
    ");
    sandbox.write(".git/HEAD", "neither a branch nor a commit\n");
    assert_snapshot!(plan(), @"
    exit 1
    --- stderr
    error: cannot look up `HEAD` in `[dir]`
      caused by: corrupted loose reference file: HEAD
    hint: check the repository: `git fsck`
    ");
    sandbox.write(
        ".git/config",
        "[core]\nrepositoryFormatVersion = 1\n[extensions]\nobjectFormat = sha256\n",
    );
    assert_snapshot!(plan(), @"
    exit 1
    --- stderr
    error: cannot open the git repository at `[dir]`
      caused by: unknown object format 'sha256'
    hint: read plain files of a working tree with `-f`
    ");
}

#[test]
fn a_repository_without_a_daemon_set() {
    let sandbox = Sandbox::with(&[("deployment.yaml", "kind: Deployment\n")]);
    sandbox.write("cluster.json", testkit::fixture::cluster().to_string());
    sandbox.commit();
    assert_snapshot!(sandbox.ds_plan(&format!("--path deployment.yaml {PLAN}")), @"
    exit 1
    --- stderr
    error: no DaemonSet found: the only manifest file has none; it has 1 Deployment
    hint: name the manifests: `--path DIR` in git, or `-f FILE` (`-R` for sub-folders)
    ");
}

#[test]
fn a_chart_has_to_be_rendered() {
    let sandbox = sandbox();
    sandbox.write("chart/Chart.yaml", "name: agent\n");
    sandbox.write("chart/templates/agent.yaml", AGENT.replace("agent:1", "{{ .Values.image }}"));
    assert_snapshot!(sandbox.ds_plan(&format!("-R -f chart {PLAN}")), @"
    exit 1
    --- stderr
    warning: `chart` is a Helm chart and was not read, 1 DaemonSet in it; render it first: `helm template ./chart | ds-plan -f -`
    error: no DaemonSet found: there are no manifest files
    hint: name the manifests: `--path DIR` in git, or `-f FILE` (`-R` for sub-folders)
    ");
}

#[test]
fn manifests_that_are_not_yaml() {
    assert_snapshot!(plan(agent_with("  name: agent", "\tname: agent")), @"
    exit 1
    --- stderr
    error: m.yaml:4:2: tabs disallowed within this context (block indentation)
    ");
    assert_snapshot!(plan(format!("{{{{- if .Values.agent }}}}\n{AGENT}")), @r#"
    exit 1
    --- stderr
    error: m.yaml:1:3: "-" is only valid inside a block; is this a `{{ }}` that was not rendered?
    "#);
    assert_snapshot!(plan("# DaemonSet\n--- \njust text\n---\nkind: Service\n"), @"
    exit 1
    --- stderr
    error: 2 errors in the manifests
      m.yaml:3:1: not a Kubernetes object: a string
      m.yaml:5:1: not a Kubernetes object: apiVersion is missing
    ");
    assert_snapshot!(plan(agent_with("{tier: node}", "{tier: node")), @"
    exit 1
    --- stderr
    error: m.yaml:7:5: while parsing a flow mapping, did not find expected ',' or '}'
    ");
    assert_snapshot!(plan([AGENT.as_bytes(), b"# \xff\n"].concat()), @"
    exit 1
    --- stderr
    error: m.yaml:15:3: not valid UTF-8; save the file as UTF-8
    ");
    assert_snapshot!(plan(format!("{AGENT}...\nkind: DaemonSet\n")), @"
    exit 1
    --- stderr
    error: m.yaml:16:1: a document follows `...` without `---`; kubectl would silently drop it
    ");
}

#[test]
fn manifests_that_every_server_rejects() {
    assert_snapshot!(plan(agent_with("image:", "imagee:")), @"
    exit 1
    --- stderr
    error: 2 errors in the manifests
      m.yaml:13:11: spec.template.spec.containers[0].image: Required value
      m.yaml:14:19: unknown field `spec.template.spec.containers[0].imagee`; did you mean `image`?
    hint: the API drops unknown fields; to do the same, use `--validate=warn`
    ");
    assert_snapshot!(plan(agent_with("image:", "$patch: delete\n          image:")), @"
    exit 1
    --- stderr
    error: m.yaml:14:19: unknown field `spec.template.spec.containers[0].$patch`; it belongs in a patch, not in a complete object
    hint: render the kustomization first: `kubectl kustomize DIR | ds-plan -f -`
    ");
    assert_snapshot!(plan(agent_with("registry.example/agent:1", "1")), @"
    exit 1
    --- stderr
    error: m.yaml:14:18: spec.template.spec.containers[0].image: must be a string, not a number; put it in quotes
    ");
    assert_snapshot!(plan(agent_with("{app: agent}}\n    spec", "{app: other}}\n    spec")), @r#"
    exit 1
    --- stderr
    error: m.yaml:10:16: spec.template.metadata.labels: Invalid value: {"app":"other"}: `selector` does not match template `labels`
    "#);
    assert_snapshot!(plan(agent_with("apps/v1", "extensions/v1beta1")), @"
    exit 1
    --- stderr
    error: m.yaml:1:1: DaemonSet of extensions/v1beta1, which servers no longer support; use apps/v1
    ");
    assert_snapshot!(plan(format!("{AGENT}---\n{AGENT}")), @"
    exit 1
    --- stderr
    error: m.yaml:16:1: DaemonSet logging/agent is already defined at m.yaml:1:1
    hint: remove one of the two, or read fewer files with `--path` or `-f`
    ");
}

#[test]
fn every_error_of_every_file_at_once() {
    let sandbox = sandbox();
    sandbox.write("bad/a.yaml", agent_with("image:", "imagee:"));
    sandbox.write("bad/b.yaml", agent_with("- name: agent", "- name: Agent_1"));
    assert_snapshot!(sandbox.ds_plan(&format!("-f bad {PLAN}")), @r#"
    exit 1
    --- stderr
    error: 3 errors in the manifests
      bad/a.yaml:13:11: spec.template.spec.containers[0].image: Required value
      bad/a.yaml:14:19: unknown field `spec.template.spec.containers[0].imagee`; did you mean `image`?
      bad/b.yaml:13:17: spec.template.spec.containers[0].name: Invalid value: "Agent_1": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')
    hint: the API drops unknown fields; to do the same, use `--validate=warn`
    "#);
}

#[test]
fn files_without_a_daemon_set_are_named_by_what_they_have() {
    let others = "apiVersion: v1\nkind: Service\n---\napiVersion: v1\nkind: Secret\n---\n\
                  apiVersion: v1\nkind: Service\n";
    assert_snapshot!(plan(others), @"
    exit 1
    --- stderr
    error: no DaemonSet found in `m.yaml`; it has 1 Secret, 2 Service
    hint: name the manifests: `--path DIR` in git, or `-f FILE` (`-R` for sub-folders)
    ");
    assert_snapshot!(plan(format!("# no DaemonSet\n{others}")), @"
    exit 1
    --- stderr
    error: no DaemonSet found in 1 file; it has 1 Secret, 2 Service
    hint: name the manifests: `--path DIR` in git, or `-f FILE` (`-R` for sub-folders)
    ");
}

#[test]
fn a_plan_of_files_names_them() {
    let sandbox = sandbox();
    let saved = sandbox.ds_plan(&format!("-f agent.yaml --out plan.json {PLAN}"));
    assert_eq!(saved.code, Some(0), "{saved}");
    let apply = format!("--plan plan.json --rehearse --yes {PLAN}");
    assert_snapshot!(sandbox.ds_apply(&apply), @"
    exit 64
    --- stdout
    REHEARSAL  on an embedded copy of the cluster; the cluster itself is not changed
    --- stderr
    error: plan.json was made from files, which are not in it: agent.yaml
    hint: pass them too: `ds-apply --plan plan.json -f agent.yaml`
    ");
}

#[test]
fn documents_that_are_no_objects() {
    let sandbox = sandbox();
    sandbox.write("m.yaml", format!("{AGENT}---\non: push\n---\njust a text\n"));
    assert_snapshot!(sandbox.ds_plan(&format!("-f m.yaml {PLAN}")), @"
    exit 1
    --- stderr
    error: 2 errors in the manifests
      m.yaml:16:1: not a Kubernetes object: apiVersion and kind are missing
      m.yaml:18:1: not a Kubernetes object: a string
    ");
    sandbox.commit();
    let of_commit = sandbox.ds_plan(&format!("--path m.yaml -o name {PLAN}"));
    assert_snapshot!(of_commit, @"
    exit 0
    --- stdout
    logging/agent
    --- stderr
    warning: m.yaml:16:1: a document that is not a Kubernetes object is skipped
    warning: m.yaml:18:1: a document that is not a Kubernetes object is skipped
    warning: logging/agent: 2 pods are created at once: the DaemonSet controller creates pods without a limit
    ");
}

#[test]
fn variables_are_named_to_be_shown() {
    let env =
        "env: [{name: LOG_LEVEL, value: debug}, {name: TOKEN, value: hunter2}]\n          image:";
    let sandbox = sandbox();
    sandbox.write("m.yaml", agent_with("image:", env));
    let plan = |flags: &str| sandbox.ds_plan(&format!("{flags} -f m.yaml {PLAN}"));
    for flags in ["diff", "diff -o json"] {
        let shown = plan(&format!("{flags} --show-env LOG_LEVEL")).stdout;
        assert!(shown.contains("debug") && !shown.contains("hunter2"), "{flags}: {shown}");
        let hidden = plan(flags).stdout;
        assert!(!hidden.contains("debug") && !hidden.contains("hunter2"), "{flags}: {hidden}");
    }
    assert_snapshot!(plan("--show-env LOG_*"), @"
    exit 64
    --- stderr
    error: invalid value 'LOG_*' for '--show-env <NAME>': name each variable: patterns are not expanded

    For more information, try '--help'.
    ");
}

#[test]
fn hostile_text_is_spelled_out() {
    let hostile = agent_with("{tier: node}", "{\"a\\e[31m\\u202e::error::x\": node}");
    let run = plan(hostile);
    assert!(!run.stderr.contains(['\u{1b}', '\u{202e}']), "{run}");
    assert_snapshot!(run, @r#"
    exit 1
    --- stderr
    error: m.yaml:6:3: metadata.labels: Invalid value: "a\x1b[31m\u202e::error::x": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')
    "#);
}

#[test]
fn snapshots_that_cannot_be_read() {
    let whole = testkit::fixture::cluster().to_string();
    let (half, _) = whole.split_at(whole.len() / 2);
    assert_snapshot!(plan_on(""), @"
    exit 1
    --- stderr
    error: the snapshot s.json is empty
    hint: record it again: `ds-plan snapshot > FILE`
    ");
    assert_snapshot!(plan_on(half), @"
    exit 1
    --- stderr
    error: the snapshot s.json is cut off at line 1, column 847
    hint: record it again: `ds-plan snapshot > FILE`
    ");
    assert_snapshot!(plan_on("{\"kind\": \"Table\"}"), @"
    exit 1
    --- stderr
    error: the snapshot s.json has no nodes, only 1 Table
    hint: record one with `ds-plan snapshot`, or with `kubectl get nodes,pods,daemonsets,controllerrevisions,namespaces,services,leases -A -o json --show-managed-fields`
    ");
    assert_snapshot!(plan_on(b"\x1f\x8bno gzip"), @"
    exit 1
    --- stderr
    error: the snapshot s.json is cut off
    hint: record it again: `ds-plan snapshot > FILE`
    ");
    assert_snapshot!(plan_on("NAME     STATUS\nnode-1   Ready\n"), @"
    exit 1
    --- stderr
    error: the snapshot s.json is not a List of objects: expected mapping start at line 1, column 1
    hint: record one with `ds-plan snapshot`, or with `kubectl get nodes,pods,daemonsets,controllerrevisions,namespaces,services,leases -A -o json --show-managed-fields`
    ");
    assert_snapshot!(plan_on(whole.replace("\"Node\"", "\"Pond\"")), @"
    exit 1
    --- stderr
    error: the snapshot s.json has no nodes, only 3 Namespace, 1 Service, 1 Lease, 3 Pond
    hint: record one with `ds-plan snapshot`, or with `kubectl get nodes,pods,daemonsets,controllerrevisions,namespaces,services,leases -A -o json --show-managed-fields`
    ");
    assert_snapshot!(plan_on(whole.replace("\"node-2\"", "\"node-1\"")), @"
    exit 1
    --- stderr
    error: s.json: Node `node-1` appears twice
    ");
    assert_snapshot!(sandbox().ds_plan("-f agent.yaml --snapshot none.json"), @"
    exit 1
    --- stderr
    error: cannot open the snapshot none.json
      caused by: No such file or directory (os error 2)
    ");
}

#[test]
fn unreachable_clusters() {
    let sandbox = sandbox();
    assert_snapshot!(sandbox.ds_plan("-f agent.yaml"), @"
    exit 1
    --- stderr
    error: no kubeconfig found ([dir]/home/.kube/config does not exist), and not running in a pod with a service account
    hint: set KUBECONFIG or --kubeconfig, or plan on a recording: `ds-plan --snapshot FILE`
    ");
    assert_snapshot!(sandbox.ds_plan("-f agent.yaml --kubeconfig none"), @"
    exit 1
    --- stderr
    error: the kubeconfig none cannot be read: No such file or directory (os error 2)
    ");
    sandbox.write(
        "kubeconfig",
        "apiVersion: v1\nkind: Config\ncontexts: [{name: test, context: {cluster: c, user: u}}]\n",
    );
    assert_snapshot!(sandbox.ds_plan("-f agent.yaml --kubeconfig kubeconfig"), @"
    exit 1
    --- stderr
    error: the kubeconfig kubeconfig has no current context
    hint: choose one with --context: test
    ");
    assert_snapshot!(sandbox.ds_plan("-f agent.yaml --kubeconfig kubeconfig --context prod"), @"
    exit 1
    --- stderr
    error: the kubeconfig kubeconfig has no context `prod`
    hint: choose one with --context: test
    ");
}

#[test]
fn empty_selections() {
    let sandbox = sandbox();
    let plan = |flags: &str| sandbox.ds_plan(&format!("-f agent.yaml {PLAN} {flags}"));
    assert_snapshot!(plan("logging/other"), @"
    exit 1
    --- stderr
    error: DaemonSet logging/other not found in the manifests
    hint: DaemonSets in the manifests: logging/agent
    ");
    assert_snapshot!(plan("-n other"), @"
    exit 1
    --- stderr
    error: no DaemonSet in the manifests matches -n, -l and the names given
    hint: DaemonSets in the manifests: logging/agent
    ");
    assert_snapshot!(plan("-l tier=other"), @"
    exit 1
    --- stderr
    error: no DaemonSet in the manifests matches -n, -l and the names given
    hint: DaemonSets in the manifests: logging/agent
    ");
}
