//! From a kubeconfig, or the service account of a pod, to a connection; after kubectl's rules
//! (upstream: `ClientConfigLoadingRules`, `DeferredLoadingClientConfig`).
//!
//! `--kubeconfig` is the one file and must exist. Else the files of `$KUBECONFIG` are merged, the
//! first to say something wins, and missing ones are passed over. Else `~/.kube/config`. Without
//! any of them, the pod's service account. kube itself reads `HTTPS_PROXY`, `NO_PROXY` and the
//! address of the API server that pods have in their environment.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kube::config::{InClusterError, KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};

use super::failure::Plugin;
use super::live::LiveCluster;
use super::request::Requests;
use super::{Error, failure};

/// How long to wait for a TCP and TLS connection.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);

/// Where to look for the cluster.
#[derive(Clone, Debug, Default)]
pub struct ConnectOptions {
    /// `--kubeconfig`.
    pub kubeconfig: Option<PathBuf>,
    /// The environment variable `KUBECONFIG`.
    pub kubeconfig_env: Option<OsString>,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// `--context`; without it, the current one.
    pub context: Option<String>,
}

/// Makes ready to speak to the cluster. Nothing is sent yet, but a credential plugin may run, and
/// may ask the user something.
///
/// # Errors
/// There is no kubeconfig, or it cannot be used; or the credential plugin fails.
pub async fn connect(options: &ConnectOptions) -> Result<LiveCluster, Error> {
    let Found { mut config, cluster } = find(options).await?;
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_TIMEOUT);
    let default_namespace = config.default_namespace.as_str().into();
    let requests = requests(config).await?;
    Ok(LiveCluster::new(requests, cluster, default_namespace))
}

/// A way to a cluster, and the cluster's name in the kubeconfig.
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

/// The merged kubeconfig and the first file that it came from; `None` when there is no file.
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

/// The files that are looked for without `--kubeconfig`.
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
    // To kubectl an empty name is none, and the next file may give one.
    kubeconfig.current_context = kubeconfig.current_context.filter(|name| !name.is_empty());
    Ok(kubeconfig)
}

fn unreadable(path: &Path, error: &KubeconfigError) -> Error {
    let reason = match error {
        KubeconfigError::ReadConfig(source, _) => source.to_string(),
        // The parser's own words show the lines around the error, and those may be a token.
        KubeconfigError::Parse(error) => match error.location() {
            Some(place) => {
                format!("it is no kubeconfig at line {}, column {}", place.line(), place.column())
            }
            None => "it is no kubeconfig".to_owned(),
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
        // An empty kubeconfig is none.
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
        // The variables that every pod has.
        Err(InClusterError::ReadEnvironmentVariable(_)) => {
            Err(Error::NoKubeconfig { tried: candidates(options) })
        }
        Err(error) => Err(Error::ServiceAccount { reason: error.to_string() }),
    }
}

/// Scheme, host and port, as messages name the server; never the user information of a URL.
fn server_of(config: &Config) -> String {
    let uri = &config.cluster_url;
    let host = uri.host().unwrap_or_default();
    match uri.port() {
        Some(port) => format!("{}://{host}:{port}", uri.scheme_str().unwrap_or("http")),
        None => format!("{}://{host}", uri.scheme_str().unwrap_or("http")),
    }
}

/// Builds the client on a thread where a credential plugin may take its time.
async fn requests(config: Config) -> Result<Requests, Error> {
    let plugin = Plugin::of(&config);
    let server = server_of(&config);
    let built = tokio::task::spawn_blocking(move || Client::try_from(config)).await;
    match built {
        Ok(Ok(client)) => Ok(Requests::new(client, plugin, server.into())),
        Ok(Err(error)) => Err(failure::of_client(&error, &plugin, &server)),
        Err(panic) => Err(Error::PluginFailed {
            command: plugin.to_string(),
            outcome: format!("could not be waited for: {panic}"),
        }),
    }
}
