//! Connects by a kubeconfig or the service account of a pod, with kubectl's rules (upstream:
//! `ClientConfigLoadingRules`, `DeferredLoadingClientConfig`).
//!
//! The file of `--kubeconfig` must exist. Without the flag, the files of `$KUBECONFIG` are merged:
//! the first file that sets a value wins, and missing files are skipped. Without the variable,
//! `~/.kube/config`. Without any file, the pod's service account, unless a context is named: it has
//! to exist. kube itself reads `HTTPS_PROXY`, `NO_PROXY` and the address of the API server from the
//! pod's environment.

mod buffered;
mod client;

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::Config;
use kube::config::{
    ExecInteractiveMode, InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError,
};

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
    match (load(options)?, context_of(options)) {
        (Some((kubeconfig, path)), _) => from_kubeconfig(kubeconfig, &path, options).await,
        // As in kubectl: a service account is not the context that the user has named.
        (None, Some(name)) => {
            Err(Error::NoSuchContext { name: name.to_owned(), tried: tried(options) })
        }
        (None, None) => from_service_account(options),
    }
}

/// The context of `--context`; an empty name is none, as in kubectl.
fn context_of(options: &ConnectOptions) -> Option<&str> {
    options.context.as_deref().filter(|name| !name.is_empty())
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
    let name = context_of(options).or(kubeconfig.current_context.as_deref()).map(str::to_owned);
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
            Err(Error::NoKubeconfig { tried: tried(options) })
        }
        Err(error) => Err(Error::ServiceAccount { reason: error.to_string() }),
    }
}

/// The files that were tried, and why each is no kubeconfig.
fn tried(options: &ConnectOptions) -> Vec<NoKubeconfig> {
    let reason = |path: PathBuf| {
        let of = if path.exists() { NoKubeconfig::Empty } else { NoKubeconfig::Absent };
        of(path)
    };
    candidates(options).into_iter().map(reason).collect()
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
    let built = tokio::task::spawn_blocking(move || client::client(config)).await;
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
mod tests;
