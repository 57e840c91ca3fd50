//! The output streams, colours, readers that close the pipe, and signals.

use std::io::Read;
use std::net::TcpListener;
use std::process::Stdio;

use testkit::fixture::{AGENT, sandbox};
use testkit::sandbox::without_age;

const PLAN: &str = "-f agent.yaml --snapshot cluster.json";
const ESCAPE: char = '\u{1b}';

#[test]
fn colours_are_used_only_on_terminals_and_on_request() {
    let sandbox = sandbox();
    for (flags, variable, want) in [
        ("", None, false),
        ("--color never", Some("CLICOLOR_FORCE"), false),
        ("--color always", None, true),
        ("--color always", Some("NO_COLOR"), true),
        ("", Some("CLICOLOR_FORCE"), true),
        ("", Some("NO_COLOR"), false),
    ] {
        let mut command = sandbox.ds_plan_command(&format!("{PLAN} {flags}"));
        if let Some(variable) = variable {
            command.env(variable, "1");
        }
        let run = sandbox.run(command);
        assert_eq!(run.stdout.contains(ESCAPE), want, "{flags} {variable:?}\n{run}");
    }
}

#[test]
fn output_without_colours_has_the_same_text() {
    let sandbox = sandbox();
    let plain = sandbox.ds_plan(PLAN).stdout;
    let coloured = sandbox.ds_plan(&format!("{PLAN} --color always")).stdout;
    assert_eq!(anstream::adapter::strip_str(&coloured).to_string(), plain);
}

#[test]
fn warnings_are_in_the_document_or_on_standard_error() {
    let sandbox = sandbox();
    sandbox.write("agent.yaml", format!("{AGENT}kind: DaemonSet\n"));
    for (format, in_document) in [("text", false), ("name", false), ("json", true), ("yaml", true)]
    {
        let run = sandbox.ds_plan(&format!("{PLAN} -o {format}"));
        let says = |stream: &str| stream.contains("key `kind` is already on line 2");
        assert_eq!((says(&run.stdout), says(&run.stderr)), (in_document, !in_document), "{run}");
    }
}

#[test]
fn a_closed_pipe_is_not_a_failure() {
    let sandbox = sandbox();
    for line in [PLAN, "schema", "completions zsh", "--help"] {
        let mut command = sandbox.ds_plan_command(line);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        let stderr = without_age(&stderr);
        assert_eq!(child.wait().unwrap().code(), Some(0), "{line}: {stderr}");
        assert_eq!(stderr, expected_stderr(line), "{line}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let sandbox = sandbox();
    for line in [PLAN, "schema", "completions zsh", "--help", "--version"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = sandbox.ds_plan_command(line);
        let done = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap().wait_with_output();
        let done = done.unwrap();
        let stderr = without_age(&String::from_utf8(done.stderr).unwrap());
        let error = stderr.strip_prefix(expected_stderr(line)).unwrap_or(&stderr);
        assert!(error.starts_with("error: cannot write to standard output\n"), "{line}: {stderr}");
        assert_eq!(done.status.code(), Some(1), "{line}");
    }
}

/// The cluster is not left in the middle of a rollout.
#[cfg(target_os = "linux")]
#[test]
fn events_that_cannot_be_written_are_one_warning() {
    let sandbox = sandbox();
    let line = format!("--rehearse {PLAN} -o json");
    let written = sandbox.ds_apply(&line);
    let words = "warning: cannot write to standard output: ";
    assert!(written.stdout.lines().count() > 2 && !written.stderr.contains(words), "{written}");
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = sandbox.ds_apply_command(&line);
    let done = command.stdout(full).stderr(Stdio::piped()).spawn().unwrap().wait_with_output();
    let done = done.unwrap();
    let stderr = String::from_utf8(done.stderr).unwrap();
    assert_eq!(stderr.matches(words).count(), 1, "{stderr}");
    assert_eq!(done.status.code(), written.code, "{stderr}");
}

#[test]
fn a_plan_on_a_snapshot_makes_no_network_call() {
    let sandbox = sandbox();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    let address = server.local_addr().unwrap();
    sandbox.write("home/.kube/config", kubeconfig(&format!("https://{address}")));
    let mut command = sandbox.ds_plan_command(PLAN);
    command.env("HTTPS_PROXY", format!("http://{address}"));
    let run = sandbox.run(command);
    assert_eq!(run.code, Some(0), "{run}");
    assert!(server.accept().is_err(), "unexpected connection");
}

#[cfg(unix)]
#[test]
fn an_interrupted_run_ends_with_its_own_code() {
    let sandbox = sandbox();
    for (signal, want) in [("INT", 130), ("TERM", 143)] {
        // A server that accepts connections and never answers: the run waits until it is
        // interrupted.
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        sandbox.write("kubeconfig", kubeconfig(&format!("http://{address}")));
        let mut command = sandbox.ds_plan_command("-f agent.yaml --kubeconfig kubeconfig");
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let connection = server.accept().unwrap();
        let kill = format!("kill -{signal} {}", child.id());
        assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), Some(want), "SIG{signal}");
        drop(connection);
    }
}

fn kubeconfig(server: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: test\n\
         contexts: [{{name: test, context: {{cluster: test, user: test}}}}]\n\
         clusters: [{{name: test, cluster: {{server: '{server}'}}}}]\n\
         users: [{{name: test, user: {{}}}}]\n"
    )
}

/// The line on standard error before the other output.
fn expected_stderr(line: &str) -> &'static str {
    if line == PLAN {
        "warning: logging/agent: 2 pods are created at once: the DaemonSet controller creates pods without a limit\n"
    } else {
        ""
    }
}
