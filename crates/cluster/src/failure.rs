//! Maps kube's errors to [`Failure`]s, which can be retried or reported.
//!
//! kube's own messages repeat their sources, and those about credential plugins contain the
//! plugin's environment and output. So errors are classified here by type, with our own messages.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::time::Duration;

use hyper_util::client::legacy;
use kube::Config;
use kube::client::AuthError;
use serde::Deserialize;

use super::Error;
use super::decode::protobuf::envelope;

/// The timeout of a TCP and TLS connection.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(8);

/// The command of the credential plugin in the kubeconfig.
#[derive(Clone, Debug)]
pub(super) struct Plugin(Option<String>);

impl Plugin {
    /// The kubeconfig does not use a plugin.
    pub(super) fn none() -> Self {
        Self(None)
    }

    pub(super) fn of(config: &Config) -> Self {
        let auth = &config.auth_info;
        let exec = auth.exec.as_ref().and_then(|exec| exec.command.clone());
        let provider = || auth.auth_provider.as_ref().map(|provider| provider.name.clone());
        Self(exec.or_else(provider))
    }
}

impl fmt::Display for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or("(none)"))
    }
}

/// Why one attempt at a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The connection could not be made.
    Unreachable(String),
    /// The connection is not trusted.
    Tls(String),
    /// The connection was lost before the answer was complete.
    BrokenOff(String),
    /// The answer was not complete within this time.
    Timeout(Duration),
    /// The answer has more than this many bytes; the rest was not read.
    TooLarge(usize),
    /// The credential plugin did not provide credentials.
    Credentials { command: String, outcome: String },
    /// The status of the answer is not 2xx.
    Status(Refusal),
    /// Nothing was sent: the lock was not renewed recently enough.
    Unlocked,
    /// Cancelled: the lock was lost before the answer came.
    LockRanOut,
}

/// An answer whose status is not 2xx (upstream: `metav1.Status`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Refusal {
    /// HTTP status code.
    pub(super) code: u16,
    /// The server's message.
    pub(super) message: String,
    /// The reason, such as `Conflict`; empty when the body is not a `Status`.
    pub(super) reason: String,
    /// The causes, one per field.
    pub(super) causes: Vec<StatusCause>,
    /// The value of `Retry-After`.
    pub(super) retry_after: Option<Duration>,
}

/// One of several causes (upstream: `metav1.StatusCause`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(super) struct StatusCause {
    pub(super) reason: String,
    pub(super) message: String,
    pub(super) field: String,
}

impl Refusal {
    /// Reads a `Status`. For any other body, the message is the beginning of the body.
    pub(super) fn read(code: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        #[derive(Deserialize)]
        struct Status {
            message: String,
            #[serde(default)]
            reason: String,
            #[serde(default)]
            details: Option<Details>,
        }
        #[derive(Deserialize)]
        struct Details {
            #[serde(default)]
            causes: Vec<StatusCause>,
        }
        if let Ok(Status { message, reason, details }) = serde_json::from_slice(body) {
            let causes = details.map(|details| details.causes).unwrap_or_default();
            return Self { code, message, reason, causes, retry_after };
        }
        let message = String::from_utf8_lossy(body).trim().chars().take(200).collect();
        Self { code, message, retry_after, ..Self::default() }
    }

    /// Reads a `Status` that is encoded as protobuf, without its causes: lists have none.
    pub(super) fn read_protobuf(code: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let (message, reason) = envelope::status(body).unwrap_or_default();
        Self { code, message, reason, retry_after, ..Self::default() }
    }
}

impl Failure {
    /// The error for the sender of `request`, such as `GET /version`.
    pub(super) fn into_error(self, server: &str, request: String) -> Error {
        let server = server.to_owned();
        match self {
            Self::Unreachable(reason) => Error::Unreachable { server, reason },
            Self::Tls(reason) => Error::Tls { server, reason },
            Self::BrokenOff(reason) => Error::BrokenOff { server, reason },
            Self::Timeout(limit) => Error::Timeout { server, request, limit },
            Self::TooLarge(limit) => Error::AnswerTooLarge { server, request, limit },
            Self::Credentials { command, outcome } => Error::PluginFailed { command, outcome },
            Self::Status(Refusal { code: 401, .. }) => Error::Unauthorized { server },
            Self::Status(Refusal { code, message, .. }) => {
                Error::Refused { server, request, status: code, message }
            }
            // Reads do not need the lock.
            Self::Unlocked | Self::LockRanOut => {
                Error::BrokenOff { server, reason: "the lock was lost".to_owned() }
            }
        }
    }
}

/// Classifies an error of sending a request or receiving its answer.
pub(super) fn of_request(error: &kube::Error, plugin: &Plugin) -> Failure {
    if let Some(auth) = chain(error).find_map(|cause| cause.downcast_ref::<AuthError>()) {
        let outcome = plugin_outcome(auth);
        return Failure::Credentials { command: plugin.to_string(), outcome };
    }
    let root = root(error);
    let client = chain(error).find_map(|cause| cause.downcast_ref::<legacy::Error>());
    if client.is_some_and(|client| !client.is_connect()) {
        // There was a connection, so the server may have received the request.
        return Failure::BrokenOff(root);
    }
    // The innermost error is the most specific.
    let io = chain(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).last();
    match io.map(io::Error::kind) {
        // rustls reports untrusted certificates and protocol errors this way.
        Some(io::ErrorKind::InvalidData) => Failure::Tls(root),
        Some(io::ErrorKind::TimedOut) => {
            Failure::Unreachable(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs()))
        }
        Some(
            io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof,
        ) => Failure::BrokenOff(root),
        Some(_) | None => Failure::Unreachable(root),
    }
}

/// Classifies an error of creating the client.
pub(super) fn of_client(error: &kube::Error, plugin: &Plugin, server: &str) -> Error {
    match error {
        kube::Error::Auth(AuthError::AuthExecStart(source)) => Error::PluginMissing {
            command: plugin.to_string(),
            source: io::Error::new(source.kind(), source.to_string()),
        },
        kube::Error::Auth(auth) => {
            Error::PluginFailed { command: plugin.to_string(), outcome: plugin_outcome(auth) }
        }
        other => Error::Tls { server: server.to_owned(), reason: root(other) },
    }
}

/// The outcome of a credential plugin, without anything that may be a credential.
fn plugin_outcome(error: &AuthError) -> String {
    match error {
        AuthError::AuthExecStart(source) => format!("cannot be started: {source}"),
        AuthError::AuthExecRun { out, .. } => {
            let message = String::from_utf8_lossy(&out.stderr);
            match message.lines().map(str::trim).find(|line| !line.is_empty()) {
                Some(line) => format!("failed ({}): {line}", out.status),
                None => format!("failed ({})", out.status),
            }
        }
        AuthError::AuthExecParse(_) | AuthError::ParseTokenKey(_) => {
            "did not print credentials".to_owned()
        }
        AuthError::ExecPluginFailed | AuthError::UnrefreshableTokenResponse => {
            "printed no token".to_owned()
        }
        AuthError::InvalidBasicAuth(_) | AuthError::InvalidBearerToken(_) => {
            "returned credentials that are not valid in an HTTP header".to_owned()
        }
        other => format!("cannot be used: {other}"),
    }
}

/// The message of the innermost cause.
pub(super) fn root(error: &kube::Error) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}

/// An error and all its causes.
fn chain<'e>(
    error: &'e (dyn StdError + 'static),
) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| match error.downcast_ref::<io::Error>() {
        // Its `source` would skip the error that it wraps.
        Some(io) => io.get_ref().map(|held| held as &(dyn StdError + 'static)),
        None => (*error).source(),
    })
}
