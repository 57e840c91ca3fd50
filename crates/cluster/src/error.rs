//! The errors of reading a cluster or a recording of one. Each variant carries the values that a
//! hint needs; none carries a token, a password or the output of a credential plugin.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::decode::ObjectError;
use super::{Kind, Resource, Verb};
use daemonset::model::NamespaceName;

/// A permission that the user needs and does not have in the cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// The RBAC verb.
    pub verb: Verb,
    /// The RBAC resource.
    pub resource: Resource,
    /// The namespace; `None` is the whole cluster.
    pub namespace: Option<NamespaceName>,
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb, self.resource)?;
        match &self.namespace {
            Some(namespace) => write!(f, " in namespace {namespace}"),
            None => Ok(()),
        }
    }
}

/// A file that was tried as a kubeconfig.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoKubeconfig {
    /// It does not exist.
    #[error("{} does not exist", _0.display())]
    Absent(PathBuf),
    /// It has neither contexts nor clusters.
    #[error("{} has no context", _0.display())]
    Empty(PathBuf),
}

/// Why each file is no kubeconfig, in parentheses.
fn reasons(tried: &[NoKubeconfig]) -> String {
    let all: Vec<String> = tried.iter().map(ToString::to_string).collect();
    if all.is_empty() { String::new() } else { format!(" ({})", all.join(", ")) }
}

fn listed(missing: &[Permission]) -> String {
    missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// An error of reading a cluster or a recording of one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither a kubeconfig nor a service account was found.
    #[error(
        "no kubeconfig found{}, and not running in a pod with a service account",
        reasons(tried)
    )]
    NoKubeconfig {
        /// The files that were tried.
        tried: Vec<NoKubeconfig>,
    },
    /// A kubeconfig could not be read or parsed.
    #[error("the kubeconfig {} cannot be read: {reason}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// The cause.
        reason: String,
    },
    /// No context was given, and the kubeconfig has no `current-context`.
    #[error("the kubeconfig {} has no current context", path.display())]
    NoContext {
        /// The kubeconfig, or the first of several.
        path: PathBuf,
        /// The names of its contexts.
        known: Vec<String>,
    },
    /// The kubeconfig does not have the context.
    #[error("the kubeconfig {} has no context `{name}`", path.display())]
    UnknownContext {
        /// The kubeconfig, or the first of several.
        path: PathBuf,
        /// The context given by the user, or the current one.
        name: String,
        /// The names of its contexts.
        known: Vec<String>,
    },
    /// A context was named, and there is no kubeconfig that could have it.
    #[error("no kubeconfig has the context `{name}`{}", reasons(tried))]
    NoSuchContext {
        /// The context given by the user.
        name: String,
        /// The files that were tried.
        tried: Vec<NoKubeconfig>,
    },
    /// The context cannot be used, for example because of its cluster or its certificates.
    #[error("the context `{context}` of the kubeconfig cannot be used: {reason}")]
    Context {
        /// Name of the context.
        context: String,
        /// The cause.
        reason: String,
    },
    /// The service account of the pod that this program runs in cannot be used.
    #[error("the service account of this pod cannot be used: {reason}")]
    ServiceAccount {
        /// The cause.
        reason: String,
    },
    /// The credential plugin is not installed.
    #[error("the credential plugin `{command}` cannot be started")]
    PluginMissing {
        /// The plugin's command in the kubeconfig.
        command: String,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// The credential plugin failed, or did not print credentials.
    #[error("the credential plugin `{command}` {outcome}")]
    PluginFailed {
        /// The plugin's command in the kubeconfig.
        command: String,
        /// Its exit status and error; never its standard output.
        outcome: String,
    },

    /// The server cannot be reached.
    #[error("cannot reach the API server {server}: {reason}")]
    Unreachable {
        /// Scheme, host and port.
        server: String,
        /// The error of the operating system.
        reason: String,
    },
    /// The server cannot be trusted, or does not speak TLS.
    #[error("no trusted connection to the API server {server}: {reason}")]
    Tls {
        /// Scheme, host and port.
        server: String,
        /// The TLS error.
        reason: String,
    },
    /// The connection was lost during the answer, in every attempt.
    #[error("lost the connection to the API server {server}: {reason}")]
    BrokenOff {
        /// Scheme, host and port.
        server: String,
        /// The error of the operating system.
        reason: String,
    },
    /// The server did not answer in time, in every attempt.
    #[error("the API server {server} did not answer {request} within {} s", limit.as_secs())]
    Timeout {
        /// Scheme, host and port.
        server: String,
        /// Method and path.
        request: String,
        /// The time limit of each attempt.
        limit: Duration,
    },
    /// An answer is larger than the limit.
    #[error("the API server {server} answered {request} with more than {} MiB", limit >> 20)]
    AnswerTooLarge {
        /// Scheme, host and port.
        server: String,
        /// Method and path.
        request: String,
        /// The limit in bytes.
        limit: usize,
    },
    /// The server does not accept the credentials (401).
    #[error("the API server {server} does not accept the credentials")]
    Unauthorized {
        /// Scheme, host and port.
        server: String,
    },
    /// The user is not permitted to read something that is needed (403). Has all missing
    /// permissions.
    #[error("not permitted: {}", listed(missing))]
    Forbidden {
        /// The missing permissions.
        missing: Vec<Permission>,
        /// The server's message for the first one.
        message: String,
    },
    /// The server refused the request for any other reason.
    #[error("the API server {server} answered {request} with {status}: {message}")]
    Refused {
        /// Scheme, host and port.
        server: String,
        /// Method and path.
        request: String,
        /// HTTP status code.
        status: u16,
        /// The server's message.
        message: String,
    },
    /// A list expired while its pages were read (410), in every attempt.
    #[error("the list of {} expired while it was read, {attempts} times", kind.resource())]
    Expired {
        /// The kind of the listed objects.
        kind: Kind,
        /// The number of attempts.
        attempts: u32,
    },
    /// The server returned the same `continue` token twice.
    #[error(
        "the API server's list of {} does not end: the server repeated a `continue` token",
        kind.resource()
    )]
    EndlessList {
        /// The kind of the listed objects.
        kind: Kind,
    },
    /// The server's answer does not match the API.
    #[error("the API server's answer to {request} cannot be read: {reason}")]
    NotAnAnswer {
        /// Method and path.
        request: String,
        /// The cause.
        reason: String,
    },

    /// A recording cannot be opened.
    #[error("cannot open the snapshot {file}")]
    Open {
        /// The file as named by the user.
        file: Arc<str>,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// A recording cannot be read.
    #[error("cannot read the snapshot {file}")]
    Read {
        /// The file as named by the user.
        file: Arc<str>,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// A recording has no content.
    #[error("the snapshot {file} is empty")]
    Empty {
        /// The file as named by the user.
        file: Arc<str>,
    },
    /// A recording is incomplete.
    #[error("the snapshot {file} is cut off{}", after(*at))]
    CutOff {
        /// The file as named by the user.
        file: Arc<str>,
        /// The line and column where it ends; `None` when the gzip stream is incomplete.
        at: Option<(usize, usize)>,
    },
    /// The bytes of a recording are damaged: the gzip stream, or the text.
    #[error("the snapshot {file} is damaged: {reason}")]
    Damaged {
        /// The file as named by the user.
        file: Arc<str>,
        /// The cause.
        reason: String,
    },
    /// A recording is in an encoding other than UTF-8.
    #[error("the snapshot {file} is {encoding}, not UTF-8")]
    Encoding {
        /// The file as named by the user.
        file: Arc<str>,
        /// The detected encoding.
        encoding: &'static str,
    },
    /// A recording is neither JSON nor YAML.
    #[error("the snapshot {file} is not {format}: {reason}")]
    Syntax {
        /// The file as named by the user.
        file: Arc<str>,
        /// `JSON` or `YAML`, by its first character.
        format: &'static str,
        /// The cause, with line and column.
        reason: String,
    },
    /// A recording does not have the format of `kubectl get -o json`.
    #[error("the snapshot {file} is not a List of objects: {reason}")]
    NotAList {
        /// The file as named by the user.
        file: Arc<str>,
        /// The difference.
        reason: String,
    },
    /// A recording has objects of an unsupported API version.
    #[error(
        "{file}: {kind} (item {} of its list) has apiVersion {found}; only {wanted} is supported",
        index + 1
    )]
    Version {
        /// The file as named by the user.
        file: Arc<str>,
        /// The object's index in its list, from 0.
        index: usize,
        /// The object's kind.
        kind: Kind,
        /// The object's `apiVersion`.
        found: String,
        /// The supported `apiVersion`.
        wanted: &'static str,
    },
    /// A recording has no nodes: nothing can be planned on it.
    #[error("the snapshot {file} has no nodes{}", instead(found))]
    NoNodes {
        /// The file as named by the user.
        file: Arc<str>,
        /// Its objects, such as `12 Pod, 3 Deployment`; empty when it has none.
        found: String,
    },
    /// A recording does not have objects of a kind that its other objects refer to.
    #[error("the snapshot {file} has no {}, but its other objects refer to some", kind.resource())]
    Incomplete {
        /// The file as named by the user.
        file: Arc<str>,
        /// The missing kind.
        kind: Kind,
    },
    /// A recording has no timestamps, so its time is unknown.
    #[error("the snapshot {file} has no timestamps")]
    NoMoment {
        /// The file as named by the user.
        file: Arc<str>,
    },
    /// An object is invalid.
    #[error("{origin}: {object}")]
    Object {
        /// The server or the file.
        origin: Arc<str>,
        /// The object and the cause.
        object: ObjectError,
    },
    /// An object appears twice.
    #[error("{origin}: {kind} `{name}` appears twice")]
    Duplicate {
        /// The server or the file.
        origin: Arc<str>,
        /// The object's kind.
        kind: Kind,
        /// The object's name, with its namespace.
        name: String,
    },
    /// A recording cannot be written.
    #[error("cannot write the snapshot")]
    Write(#[source] io::Error),
}

impl Error {
    /// The same error, in a list with this many more objects before it.
    pub(super) fn further_by(self, objects: usize) -> Self {
        match self {
            Self::Object { origin, mut object } => {
                object.index += objects;
                Self::Object { origin, object }
            }
            other => other,
        }
    }
}

fn after(place: Option<(usize, usize)>) -> String {
    place.map(|(line, column)| format!(" at line {line}, column {column}")).unwrap_or_default()
}

fn instead(found: &str) -> String {
    if found.is_empty() { String::new() } else { format!(", only {found}") }
}
