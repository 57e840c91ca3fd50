//! What kube's errors mean: which of them may pass by themselves, and what to call them.
//!
//! kube's own messages repeat their sources, and those about credential plugins hold the plugin's
//! environment and output. So causes are told apart here, by type, and said in our own words.

use std::error::Error as StdError;
use std::fmt;
use std::io;
use std::time::Duration;

use hyper_util::client::legacy;
use kube::Config;
use kube::client::AuthError;
use serde::Deserialize;

use super::Error;
use super::connect::CONNECT_TIMEOUT;

/// The program that fetches credentials, as the kubeconfig names it.
#[derive(Clone, Debug)]
pub(super) struct Plugin(Option<String>);

impl Plugin {
    /// Credentials come from no plugin.
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

/// Why one attempt at a request did not bring an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// No connection.
    Unreachable(String),
    /// A connection, but not one that can be trusted.
    Tls(String),
    /// The connection ended before the answer did.
    BrokenOff(String),
    /// No complete answer within this time.
    Timeout(Duration),
    /// An answer of more than so many bytes, of which the rest was not read.
    TooLarge(usize),
    /// No credentials.
    Credentials { command: String, outcome: String },
    /// An answer that is none of 2xx.
    Status(Refusal),
    /// Nothing was sent: the lock was not confirmed recently enough.
    Unlocked,
    /// Given up, because the lock was lost before the answer came.
    LockRanOut,
}

/// An answer that is none of 2xx (upstream: `metav1.Status`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Refusal {
    /// HTTP status code.
    pub(super) code: u16,
    /// The server's words.
    pub(super) message: String,
    /// One word for it, such as `Conflict`; empty when what was answered is no `Status`.
    pub(super) reason: String,
    /// What exactly, field by field.
    pub(super) causes: Vec<StatusCause>,
    /// What the server asks for in `Retry-After`.
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
    /// Reads a `Status`; of anything else, the beginning is the message.
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
}

impl Failure {
    /// The error that this is for whoever sent `request`, such as `GET /version`.
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
            // Nothing that is read needs the lock.
            Self::Unlocked | Self::LockRanOut => {
                Error::BrokenOff { server, reason: "the lock was lost".to_owned() }
            }
        }
    }
}

/// Why a request could not be sent, or no answer came.
pub(super) fn of_request(error: &kube::Error, plugin: &Plugin) -> Failure {
    if let Some(auth) = chain(error).find_map(|cause| cause.downcast_ref::<AuthError>()) {
        let outcome = plugin_outcome(auth);
        return Failure::Credentials { command: plugin.to_string(), outcome };
    }
    let root = root(error);
    let client = chain(error).find_map(|cause| cause.downcast_ref::<legacy::Error>());
    if client.is_some_and(|client| !client.is_connect()) {
        // There was a connection, so the server may have the request.
        return Failure::BrokenOff(root);
    }
    // The innermost one knows best.
    let io = chain(error).filter_map(|cause| cause.downcast_ref::<io::Error>()).last();
    match io.map(io::Error::kind) {
        // How rustls reports what it cannot trust or understand.
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

/// Why the client could not be made ready.
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

/// How a credential plugin ended, without anything that may be a credential.
fn plugin_outcome(error: &AuthError) -> String {
    match error {
        AuthError::AuthExecStart(source) => format!("cannot be started: {source}"),
        AuthError::AuthExecRun { out, .. } => {
            let said = String::from_utf8_lossy(&out.stderr);
            match said.lines().map(str::trim).find(|line| !line.is_empty()) {
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
            "gave credentials that no header can carry".to_owned()
        }
        other => format!("cannot be used: {other}"),
    }
}

/// The cause of all causes, in its own words.
pub(super) fn root(error: &kube::Error) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}

/// An error and all its causes.
fn chain<'e>(
    error: &'e (dyn StdError + 'static),
) -> impl Iterator<Item = &'e (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |error| match error.downcast_ref::<io::Error>() {
        // Its `source` would pass over what it holds.
        Some(io) => io.get_ref().map(|held| held as &(dyn StdError + 'static)),
        None => (*error).source(),
    })
}
