//! What can go wrong between here and a cluster, or a recording of one. Each variant carries the
//! values that a hint needs; none carries a token, a password or the output of a credential plugin.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::decode::ObjectError;
use super::{Kind, Resource, Verb};
use crate::model::NamespaceName;

/// Something that the user may not do in the cluster, and needs to.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permission {
    /// What to do.
    pub verb: Verb,
    /// To what.
    pub resource: Resource,
    /// Where; `None` is the whole cluster.
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

fn listed(missing: &[Permission]) -> String {
    missing.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// What went wrong between here and a cluster, or a recording of one.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Neither a kubeconfig nor a service account was found.
    #[error("no kubeconfig was found, and this is no pod with a service account")]
    NoKubeconfig {
        /// Where one was looked for.
        tried: Vec<PathBuf>,
    },
    /// A kubeconfig could not be read or parsed.
    #[error("the kubeconfig {} cannot be read: {reason}", path.display())]
    Kubeconfig {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No context was asked for, and the kubeconfig has no current one.
    #[error("the kubeconfig {} has no current context", path.display())]
    NoContext {
        /// The kubeconfig, or the first of several.
        path: PathBuf,
        /// The contexts that it has.
        known: Vec<String>,
    },
    /// The kubeconfig has no such context.
    #[error("the kubeconfig {} has no context `{name}`", path.display())]
    UnknownContext {
        /// The kubeconfig, or the first of several.
        path: PathBuf,
        /// The context asked for, or the current one.
        name: String,
        /// The contexts that it has.
        known: Vec<String>,
    },
    /// The context cannot be used: its cluster or its certificates, say.
    #[error("the context `{context}` of the kubeconfig cannot be used: {reason}")]
    Context {
        /// Name of the context.
        context: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The service account of the pod that this runs in cannot be used.
    #[error("the service account of this pod cannot be used: {reason}")]
    ServiceAccount {
        /// What is wrong with it.
        reason: String,
    },
    /// The program that fetches credentials is not installed.
    #[error("the credential plugin `{command}` cannot be started")]
    PluginMissing {
        /// Its name, from the kubeconfig.
        command: String,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The program that fetches credentials failed, or said something else than credentials.
    #[error("the credential plugin `{command}` {outcome}")]
    PluginFailed {
        /// Its name, from the kubeconfig.
        command: String,
        /// How it ended; never what it wrote to its standard output.
        outcome: String,
    },

    /// Nothing answers at the server's address.
    #[error("cannot reach the API server {server}: {reason}")]
    Unreachable {
        /// Scheme, host and port.
        server: String,
        /// What the system says.
        reason: String,
    },
    /// The server cannot be trusted, or does not speak TLS.
    #[error("no trusted connection to the API server {server}: {reason}")]
    Tls {
        /// Scheme, host and port.
        server: String,
        /// What TLS says.
        reason: String,
    },
    /// The connection broke off while answering, again and again.
    #[error("the connection to the API server {server} broke off: {reason}")]
    BrokenOff {
        /// Scheme, host and port.
        server: String,
        /// What the system says.
        reason: String,
    },
    /// The server did not answer in time, again and again.
    #[error("the API server {server} did not answer {request} within {} s", limit.as_secs())]
    Timeout {
        /// Scheme, host and port.
        server: String,
        /// Method and path.
        request: String,
        /// How long each attempt took.
        limit: Duration,
    },
    /// An answer is larger than any that is due.
    #[error("the API server {server} answers {request} with more than {} MiB", limit >> 20)]
    AnswerTooLarge {
        /// Scheme, host and port.
        server: String,
        /// Method and path.
        request: String,
        /// In bytes.
        limit: usize,
    },
    /// The server does not accept the credentials (401).
    #[error("the API server {server} does not accept the credentials")]
    Unauthorized {
        /// Scheme, host and port.
        server: String,
    },
    /// The user may not read what is needed (403); all that is missing, at once.
    #[error("not permitted: {}", listed(missing))]
    Forbidden {
        /// What the user may not do.
        missing: Vec<Permission>,
        /// What the server says of the first one.
        message: String,
    },
    /// The server refused, for any other reason.
    #[error("the API server {server} answered {request} with {status}: {message}")]
    Refused {
        /// Scheme, host and port.
        server: String,
        /// Method and path.
        request: String,
        /// HTTP status code.
        status: u16,
        /// What it says.
        message: String,
    },
    /// A list expired again and again while its pages were read (410).
    #[error("the list of {} expired while it was read, {attempts} times", kind.resource())]
    Expired {
        /// Of what.
        kind: Kind,
        /// How often it was begun.
        attempts: u32,
    },
    /// The server gave a page token that it had given before.
    #[error("the API server's list of {} does not end: a page token came twice", kind.resource())]
    EndlessList {
        /// Of what.
        kind: Kind,
    },
    /// The server's answer is not what the API is.
    #[error("the API server's answer to {request} cannot be read: {reason}")]
    NotAnAnswer {
        /// Method and path.
        request: String,
        /// What is wrong with it.
        reason: String,
    },

    /// A recording cannot be opened.
    #[error("cannot open the snapshot {file}")]
    Open {
        /// The file as named by the user.
        file: Arc<str>,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A recording cannot be read.
    #[error("cannot read the snapshot {file}")]
    Read {
        /// The file as named by the user.
        file: Arc<str>,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A recording has no content.
    #[error("the snapshot {file} is empty")]
    Empty {
        /// The file as named by the user.
        file: Arc<str>,
    },
    /// A recording ends in the middle.
    #[error("the snapshot {file} is cut off{}", after(*at))]
    CutOff {
        /// The file as named by the user.
        file: Arc<str>,
        /// Line and column at which it ends; `None` when its compressed form does.
        at: Option<(usize, usize)>,
    },
    /// The bytes of a recording are damaged: its gzip form, or its text.
    #[error("the snapshot {file} is damaged: {reason}")]
    Damaged {
        /// The file as named by the user.
        file: Arc<str>,
        /// What is wrong with it.
        reason: String,
    },
    /// A recording is in an encoding other than UTF-8.
    #[error("the snapshot {file} is {encoding}, not UTF-8")]
    Encoding {
        /// The file as named by the user.
        file: Arc<str>,
        /// What it seems to be.
        encoding: &'static str,
    },
    /// A recording is neither JSON nor YAML.
    #[error("the snapshot {file} is not {format}: {reason}")]
    Syntax {
        /// The file as named by the user.
        file: Arc<str>,
        /// `JSON` or `YAML`, as its first character promises.
        format: &'static str,
        /// What is wrong, with line and column.
        reason: String,
    },
    /// A recording is not what `kubectl get -o json` prints.
    #[error("the snapshot {file} is no List of objects: {reason}")]
    NotAList {
        /// The file as named by the user.
        file: Arc<str>,
        /// What it is instead.
        reason: String,
    },
    /// A recording has objects of a version that is not read.
    #[error("{file}: {kind} (number {} of its list) is of {found}; only {wanted} is read", index + 1)]
    Version {
        /// The file as named by the user.
        file: Arc<str>,
        /// Its place in the list that it came in, from 0.
        index: usize,
        /// Of what kind.
        kind: Kind,
        /// Its `apiVersion`.
        found: String,
        /// The one that is read.
        wanted: &'static str,
    },
    /// A recording without a single node: nothing can be planned on it.
    #[error("the snapshot {file} has no nodes{}", instead(found))]
    NoNodes {
        /// The file as named by the user.
        file: Arc<str>,
        /// What it has, such as `12 Pod, 3 Deployment`; empty when it has nothing at all.
        found: String,
    },
    /// A recording without a kind that its other objects speak of.
    #[error("the snapshot {file} has no {}, although there were some", kind.resource())]
    Incomplete {
        /// The file as named by the user.
        file: Arc<str>,
        /// The kind that was not recorded.
        kind: Kind,
    },
    /// A recording has no moment at all: not one timestamp.
    #[error("the snapshot {file} has not a single timestamp")]
    NoMoment {
        /// The file as named by the user.
        file: Arc<str>,
    },
    /// An object is not what the API server serves.
    #[error("{origin}: {object}")]
    Object {
        /// The server, or the file.
        origin: Arc<str>,
        /// The object, and what is wrong with it.
        object: ObjectError,
    },
    /// An object is there twice.
    #[error("{origin}: {kind} `{name}` is there twice")]
    Duplicate {
        /// The server, or the file.
        origin: Arc<str>,
        /// Its kind.
        kind: Kind,
        /// Its name, with namespace.
        name: String,
    },
    /// A recording cannot be written.
    #[error("cannot write the snapshot")]
    Write(#[source] io::Error),
}

fn after(place: Option<(usize, usize)>) -> String {
    place.map(|(line, column)| format!(" at line {line}, column {column}")).unwrap_or_default()
}

fn instead(found: &str) -> String {
    if found.is_empty() { String::new() } else { format!(", only {found}") }
}
