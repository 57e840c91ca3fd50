// Clippy's exception for tests (clippy.toml) covers only functions marked as tests, not helpers.
#![allow(clippy::unwrap_used, reason = "a failed test panics")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use jiff::Timestamp;
use tempfile::TempDir;

use super::*;
use crate::Scope;

const TOKEN: &str = "s3cr3t-t0k3n";

/// A kubeconfig with one context per name, each with a cluster and a namespace of that name.
fn kubeconfig(current: &str, names: &[&str], server: &str, user: &str) -> String {
    use std::fmt::Write as _;
    let mut text = format!("apiVersion: v1\nkind: Config\ncurrent-context: \"{current}\"\n");
    text.push_str("clusters:\n");
    for name in names {
        writeln!(text, "- {{name: cluster-{name}, cluster: {{server: \"{server}\"}}}}").unwrap();
    }
    text.push_str("contexts:\n");
    for name in names {
        let context = format!("{{cluster: cluster-{name}, user: me, namespace: ns-{name}}}");
        writeln!(text, "- {{name: {name}, context: {context}}}").unwrap();
    }
    writeln!(text, "users:\n- {{name: me, user: {user}}}").unwrap();
    text
}

fn plain(current: &str, names: &[&str]) -> String {
    kubeconfig(current, names, "http://127.0.0.1:1", "{}")
}

/// A directory with these files.
fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

async fn connected(options: &ConnectOptions) -> Result<(Option<String>, String), Error> {
    let cluster = connect(options).await?;
    Ok((cluster.name().map(str::to_owned), cluster.default_namespace().to_string()))
}

fn explicit(folder: &TempDir, context: Option<&str>) -> ConnectOptions {
    ConnectOptions {
        kubeconfig: Some(folder.path().join("config")),
        context: context.map(str::to_owned),
        ..ConnectOptions::default()
    }
}

#[tokio::test]
async fn the_context_names_the_cluster_and_the_namespace() {
    let no_namespace = plain("a", &["a"]).replace(", namespace: ns-a", "");
    let empty_namespace = plain("a", &["a"]).replace("ns-a", "\"\"");
    for (text, context, want) in [
        (plain("a", &["a", "b"]), None, ("cluster-a", "ns-a")),
        (plain("a", &["a", "b"]), Some("b"), ("cluster-b", "ns-b")),
        (plain("", &["a", "b"]), Some("b"), ("cluster-b", "ns-b")),
        (no_namespace, None, ("cluster-a", "default")),
        (empty_namespace, None, ("cluster-a", "default")),
    ] {
        let folder = folder(&[("config", &text)]);
        let found = connected(&explicit(&folder, context)).await.unwrap();
        assert_eq!(found, (Some(want.0.to_owned()), want.1.to_owned()), "{text}");
    }
}

#[tokio::test]
async fn kubeconfig_files_are_found_like_kubectl_does() {
    let home = folder(&[(".kube/config", &plain("home", &["home"]))]);
    let listed = folder(&[
        ("no-current", &plain("", &["x"])),
        ("one", &plain("one", &["one", "shared"])),
        ("two", &plain("two", &["two", "shared"]).replace("ns-shared", "from-two")),
    ]);
    let env = |names: &[&str]| {
        let paths = names.iter().map(|name| match *name {
            "" => PathBuf::new(),
            name => listed.path().join(name),
        });
        Some(env::join_paths(paths).unwrap())
    };
    for (case, kubeconfig_env, context, want) in [
        ("home", None, None, "ns-home"),
        ("an empty variable", Some(OsString::new()), None, "ns-home"),
        ("variable before home", env(&["one"]), None, "ns-one"),
        ("first current context", env(&["two", "one"]), None, "ns-two"),
        ("an empty current context is ignored", env(&["no-current", "one"]), None, "ns-one"),
        ("missing files are skipped", env(&["missing", "", "one"]), None, "ns-one"),
        ("contexts are merged", env(&["one", "two"]), Some("two"), "ns-two"),
        ("the first file wins", env(&["one", "two"]), Some("shared"), "ns-shared"),
    ] {
        let options = ConnectOptions {
            kubeconfig: None,
            kubeconfig_env,
            home: Some(home.path().to_owned()),
            context: context.map(str::to_owned),
            ..ConnectOptions::default()
        };
        assert_eq!(connected(&options).await.unwrap().1, want, "{case}");
    }
}

#[tokio::test]
async fn unusable_kubeconfigs_are_reported() {
    let cut = "apiVersion: v1\nusers:\n- name: me\n  user: {token: s3cr3t-t0k3n\n";
    let not_text = format!("users: [{{name: me, user: {{token: [{TOKEN}]}}}}]\n");
    for (text, context, want) in [
        (plain("a", &["a"]), Some("z"), "the kubeconfig PATH has no context `z`"),
        (plain("z", &["a"]), None, "the kubeconfig PATH has no context `z`"),
        (plain("", &["a"]), None, "the kubeconfig PATH has no current context"),
        (
            cut.to_owned(),
            None,
            "the kubeconfig PATH cannot be read: not a valid kubeconfig at line ",
        ),
        (not_text, None, "the kubeconfig PATH cannot be read: not a valid kubeconfig"),
        (
            plain("a", &["a"]).replace("name: cluster-a", "name: other"),
            None,
            "the context `a` of the kubeconfig cannot be used: failed to load the cluster of context: cluster-a",
        ),
        (
            kubeconfig(
                "a",
                &["a"],
                "https://127.0.0.1:1",
                "{exec: {apiVersion: v1, command: no-such-plugin-here}}",
            ),
            None,
            "the credential plugin `no-such-plugin-here` cannot be started",
        ),
        (
            kubeconfig(
                "a",
                &["a"],
                "https://127.0.0.1:1",
                "{exec: {apiVersion: v1, command: sh, interactiveMode: Never, args: [-c, 'echo s3cr3t-t0k3n; echo log in first >&2; exit 3'], env: [{name: X, value: s3cr3t-t0k3n}]}}",
            ),
            None,
            "the credential plugin `sh` failed (exit status: 3): log in first",
        ),
        (
            kubeconfig(
                "a",
                &["a"],
                "https://127.0.0.1:1",
                "{exec: {apiVersion: v1, command: sh, interactiveMode: Never, args: [-c, 'echo s3cr3t-t0k3n']}}",
            ),
            None,
            "the credential plugin `sh` did not print credentials",
        ),
    ] {
        let folder = folder(&[("config", &text)]);
        let error = connected(&explicit(&folder, context)).await.unwrap_err();
        let path = folder.path().join("config").display().to_string();
        let found = error.to_string().replace(&path, "PATH");
        assert!(found.starts_with(want), "{text}\n got {found}\nwant {want}");
        assert!(!format!("{error} {error:?}").contains(TOKEN), "{error:?}");
    }
    let missing =
        ConnectOptions { kubeconfig: Some("no/such/config".into()), ..ConnectOptions::default() };
    let error = connected(&missing).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "the kubeconfig no/such/config cannot be read: No such file or directory (os error 2)"
    );
}

#[test]
fn a_missing_kubeconfig_is_not_an_error_of_load() {
    let home = tempfile::tempdir().unwrap();
    let options = ConnectOptions { home: Some(home.path().into()), ..ConnectOptions::default() };
    assert!(load(&options).unwrap().is_none());
    assert_eq!(candidates(&options), [home.path().join(".kube/config")]);
    assert!(candidates(&ConnectOptions::default()).is_empty());
}

/// Even in a pod: its service account may be that of another cluster.
#[tokio::test]
async fn a_named_context_is_never_the_service_account() {
    let home = tempfile::tempdir().unwrap();
    let missing = home.path().join("missing");
    for (kubeconfig_env, tried) in [
        (None, home.path().join(".kube/config")),
        (Some(missing.clone().into_os_string()), missing),
    ] {
        let options = ConnectOptions {
            kubeconfig_env,
            home: Some(home.path().to_owned()),
            context: Some("prod".to_owned()),
            ..ConnectOptions::default()
        };
        let error = connected(&options).await.unwrap_err().to_string();
        let tried = tried.display();
        assert_eq!(error, format!("no kubeconfig has the context `prod` ({tried} does not exist)"));
    }
    let nowhere = ConnectOptions { context: Some("prod".to_owned()), ..ConnectOptions::default() };
    let error = connected(&nowhere).await.unwrap_err().to_string();
    assert_eq!(error, "no kubeconfig has the context `prod`");
    // As in kubectl, an empty name is none.
    let folder = folder(&[("config", &plain("a", &["a"]))]);
    assert_eq!(connected(&explicit(&folder, Some(""))).await.unwrap().1, "ns-a");
}

#[tokio::test]
async fn unreachable_and_untrusted_servers_are_reported() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let plain = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = plain.local_addr().unwrap();
    // A server without TLS, until the test ends.
    std::thread::spawn(move || {
        for stream in plain.incoming().flatten() {
            let mut stream = stream;
            let _read = stream.read(&mut [0; 64]);
            let _written = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        }
    });
    for (server, want) in [
        (
            format!("https://u:{TOKEN}@{free}"),
            format!("cannot reach the API server https://{free}: Connection refused"),
        ),
        (
            format!("https://{address}"),
            format!(
                "no trusted connection to the API server https://{address}: received corrupt message"
            ),
        ),
        (
            "https://no-such-host.invalid".to_owned(),
            "cannot reach the API server https://no-such-host.invalid: ".to_owned(),
        ),
    ] {
        let text = kubeconfig("a", &["a"], &server, &format!("{{token: {TOKEN}}}"));
        let folder = folder(&[("config", &text)]);
        let cluster = connect(&explicit(&folder, None)).await.unwrap();
        let error = cluster.snapshot(&Scope::All, Timestamp::UNIX_EPOCH).await.unwrap_err();
        assert!(error.to_string().starts_with(&want), "{error}\nwant {want}");
        assert!(!format!("{error:?}").contains(TOKEN), "{error:?}");
    }
}
