//! Connects by a kubeconfig or the service account of a pod, with kubectl's rules (upstream:
//! `ClientConfigLoadingRules`, `DeferredLoadingClientConfig`).
//!
//! The file of `--kubeconfig` must exist. Without the flag, the files of `$KUBECONFIG` are merged:
//! the first file that sets a value wins, and missing files are skipped. Without the variable,
//! `~/.kube/config`. Without any file, the pod's service account. kube itself reads `HTTPS_PROXY`,
//! `NO_PROXY` and the address of the API server from the pod's environment.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::config::{
    ExecInteractiveMode, InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError,
};
use kube::{Client, Config};

use super::error::NoKubeconfig;
use super::failure::{CONNECT_TIMEOUT, Plugin};
use super::live::LiveCluster;
use super::lock::Clock;
use super::request::Requests;
use super::{Error, failure};
use host::search_path;

/// How to find the cluster.
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    /// `--kubeconfig`.
    pub kubeconfig: Option<PathBuf>,
    /// The environment variable `KUBECONFIG`.
    pub kubeconfig_env: Option<OsString>,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// `--context`; without it, the `current-context`.
    pub context: Option<String>,
    /// `$PATH`: the directories of credential plugins. `None`: the system's lookup.
    pub search: Option<OsString>,
    /// `--as` and `--as-group`; without it, those of the kubeconfig.
    pub impersonate: Option<Impersonation>,
    /// `--request-timeout`; without it, each kind of request has its own.
    pub request_timeout: Option<Duration>,
    /// `--concurrency`: the number of pages of lists that are in flight at a time; without it, 4.
    pub concurrency: Option<NonZeroUsize>,
    /// Whether a credential plugin must not use the terminal (upstream: `interactiveMode: Never`).
    pub never_ask: bool,
}

/// The user that requests are made as (upstream: user impersonation).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impersonation {
    /// The name of the user.
    pub user: String,
    /// The groups of the user; none for those that the server adds.
    pub groups: Vec<String>,
}

/// Creates the client of a cluster. Nothing is sent yet, but a credential plugin may run and may
/// prompt the user.
///
/// # Errors
/// There is no usable kubeconfig, or the credential plugin fails.
pub async fn connect(options: &ConnectOptions) -> Result<LiveCluster, Error> {
    let Found { mut config, cluster } = find(options).await?;
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    let default_namespace = config.default_namespace.as_str().into();
    tracing::info!(
        "cluster {} at {}, namespace {}",
        cluster.as_deref().unwrap_or("of the service account"),
        server_of(&config),
        config.default_namespace
    );
    if options.never_ask
        && let Some(exec) = &mut config.auth_info.exec
    {
        exec.interactive_mode = Some(ExecInteractiveMode::Never);
    }
    let plugin = Plugin::of(&config);
    if let Some(search) = &options.search {
        pin_plugins(&mut config, search)?;
    }
    if let Some(Impersonation { user, groups }) = &options.impersonate {
        // All of it, as in kubectl: the kubeconfig's groups are those of another user.
        config.auth_info.impersonate = Some(user.clone());
        config.auth_info.impersonate_groups = (!groups.is_empty()).then(|| groups.clone());
        config.auth_info.impersonate_uid = None;
        config.auth_info.impersonate_user_extra = None;
    }
    let mut requests = requests(config, plugin).await?.limited_by(options.request_timeout);
    if let Some(pages) = options.concurrency {
        requests = requests.with_concurrency(pages);
    }
    Ok(LiveCluster::new(requests, cluster, default_namespace))
}

/// Replaces the commands of credential plugins by absolute paths, so that none is run from the
/// current directory.
///
/// # Errors
/// A command is not in any absolute directory of `search`.
fn pin_plugins(config: &mut Config, search: &OsStr) -> Result<(), Error> {
    let pinned = |command: &str| -> Result<String, Error> {
        if command.contains('/') {
            return Ok(command.to_owned());
        }
        let found = search_path::find(search, command);
        let found = found.and_then(|path| path.into_os_string().into_string().ok());
        found.ok_or_else(|| Error::PluginMissing {
            command: command.to_owned(),
            source: io::ErrorKind::NotFound.into(),
        })
    };
    if let Some(exec) = &mut config.auth_info.exec
        && let Some(command) = &mut exec.command
    {
        *command = pinned(command)?;
        let search = search_path::absolute(search).to_string_lossy().into_owned();
        let own = exec.env.get_or_insert_default();
        // First, so that a `PATH` in the kubeconfig overrides it.
        let path = [("name", "PATH".to_owned()), ("value", search)];
        own.insert(0, path.into_iter().map(|(key, value)| (key.to_owned(), value)).collect());
    }
    if let Some(provider) = &mut config.auth_info.auth_provider
        && let Some(command) = provider.config.get_mut("cmd-path")
    {
        *command = pinned(command)?;
    }
    Ok(())
}

/// The client configuration, and the cluster's name in the kubeconfig.
#[derive(Debug)]
struct Found {
    config: Config,
    cluster: Option<String>,
}

async fn find(options: &ConnectOptions) -> Result<Found, Error> {
    match load(options)? {
        Some((kubeconfig, path)) => from_kubeconfig(kubeconfig, &path, options).await,
        None => from_service_account(options),
    }
}

/// The merged kubeconfig and the first of its files; `None` when there is no file.
fn load(options: &ConnectOptions) -> Result<Option<(Kubeconfig, PathBuf)>, Error> {
    if let Some(path) = &options.kubeconfig {
        return Ok(Some((read(path)?, path.clone())));
    }
    let mut merged: Option<(Kubeconfig, PathBuf)> = None;
    for path in candidates(options).into_iter().filter(|path| path.exists()) {
        let next = read(&path)?;
        merged = Some(match merged {
            None => (next, path),
            Some((before, first)) => {
                (before.merge(next).map_err(|error| unreadable(&path, &error))?, first)
            }
        });
    }
    Ok(merged)
}

/// The files to try without `--kubeconfig`.
fn candidates(options: &ConnectOptions) -> Vec<PathBuf> {
    let listed: Vec<PathBuf> = options.kubeconfig_env.iter().flat_map(env::split_paths).collect();
    let listed: Vec<PathBuf> =
        listed.into_iter().filter(|path| !path.as_os_str().is_empty()).collect();
    if listed.is_empty() {
        return options.home.iter().map(|home| home.join(".kube").join("config")).collect();
    }
    listed
}

fn read(path: &Path) -> Result<Kubeconfig, Error> {
    let mut kubeconfig = Kubeconfig::read_from(path).map_err(|error| unreadable(path, &error))?;
    // Like kubectl, ignore an empty name, so that the next file may set it.
    kubeconfig.current_context = kubeconfig.current_context.filter(|name| !name.is_empty());
    Ok(kubeconfig)
}

fn unreadable(path: &Path, error: &KubeconfigError) -> Error {
    let reason = match error {
        KubeconfigError::ReadConfig(source, _) => source.to_string(),
        // The parser's message shows the lines around the error, which may contain a token.
        KubeconfigError::Parse(error) => match error.location() {
            Some(place) => {
                let (line, column) = (place.line(), place.column());
                format!("not a valid kubeconfig at line {line}, column {column}")
            }
            None => "not a valid kubeconfig".to_owned(),
        },
        other => other.to_string(),
    };
    Error::Kubeconfig { path: path.to_owned(), reason }
}

async fn from_kubeconfig(
    kubeconfig: Kubeconfig,
    path: &Path,
    options: &ConnectOptions,
) -> Result<Found, Error> {
    let known: Vec<String> = kubeconfig.contexts.iter().map(|c| c.name.clone()).collect();
    let name = options.context.as_ref().or(kubeconfig.current_context.as_ref()).cloned();
    let Some(name) = name else {
        // Ignore an empty kubeconfig.
        return if known.is_empty() && kubeconfig.clusters.is_empty() {
            from_service_account(options)
        } else {
            Err(Error::NoContext { path: path.to_owned(), known })
        };
    };
    let context = kubeconfig.contexts.iter().find(|context| context.name == name);
    let Some(cluster) = context.and_then(|named| named.context.as_ref()).map(|c| c.cluster.clone())
    else {
        return Err(Error::UnknownContext { path: path.to_owned(), name, known });
    };
    let choice = KubeConfigOptions { context: Some(name.clone()), ..KubeConfigOptions::default() };
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &choice)
        .await
        .map_err(|error| Error::Context { context: name, reason: error.to_string() })?;
    if config.default_namespace.is_empty() {
        "default".clone_into(&mut config.default_namespace);
    }
    Ok(Found { config, cluster: Some(cluster) })
}

fn from_service_account(options: &ConnectOptions) -> Result<Found, Error> {
    match Config::incluster() {
        Ok(config) => Ok(Found { config, cluster: None }),
        // Every pod has these variables: not in a pod.
        Err(InClusterError::ReadEnvironmentVariable(_)) => {
            let tried = candidates(options).into_iter();
            let tried = tried.map(|path| {
                let of = if path.exists() { NoKubeconfig::Empty } else { NoKubeconfig::Absent };
                of(path)
            });
            Err(Error::NoKubeconfig { tried: tried.collect() })
        }
        Err(error) => Err(Error::ServiceAccount { reason: error.to_string() }),
    }
}

/// Scheme, host and port of the server, for messages; never the user information of the URL.
fn server_of(config: &Config) -> String {
    let uri = &config.cluster_url;
    let host = uri.host().unwrap_or_default();
    match uri.port() {
        Some(port) => format!("{}://{host}:{port}", uri.scheme_str().unwrap_or("http")),
        None => format!("{}://{host}", uri.scheme_str().unwrap_or("http")),
    }
}

/// Builds the client on a blocking thread, because a credential plugin may be slow.
async fn requests(config: Config, plugin: Plugin) -> Result<Requests, Error> {
    let server = server_of(&config);
    let built = tokio::task::spawn_blocking(move || Client::try_from(config)).await;
    match built {
        Ok(Ok(client)) => {
            let requests = Requests::new(client, plugin, server.into());
            Ok(requests.measured_by(Clock::of_machine()))
        }
        Ok(Err(error)) => Err(failure::of_client(&error, &plugin, &server)),
        Err(panic) => Err(Error::PluginFailed {
            command: plugin.to_string(),
            outcome: format!("failed: {panic}"),
        }),
    }
}

#[cfg(test)]
mod tests {
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
            writeln!(text, "- {{name: cluster-{name}, cluster: {{server: \"{server}\"}}}}")
                .unwrap();
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
        let missing = ConnectOptions {
            kubeconfig: Some("no/such/config".into()),
            ..ConnectOptions::default()
        };
        let error = connected(&missing).await.unwrap_err().to_string();
        assert_eq!(
            error,
            "the kubeconfig no/such/config cannot be read: No such file or directory (os error 2)"
        );
    }

    #[test]
    fn a_missing_kubeconfig_is_not_an_error_of_load() {
        let home = tempfile::tempdir().unwrap();
        let options =
            ConnectOptions { home: Some(home.path().into()), ..ConnectOptions::default() };
        assert!(load(&options).unwrap().is_none());
        assert_eq!(candidates(&options), [home.path().join(".kube/config")]);
        assert!(candidates(&ConnectOptions::default()).is_empty());
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
}
