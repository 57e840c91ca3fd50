//! One GET: its time limit, and when it is tried again.
//!
//! Only reads are here, so every passing failure may be tried again. kube's own retry is off: it
//! would repeat any verb, deletes and evictions too.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use backon::{ExponentialBuilder, Retryable};
use http::header::{ACCEPT, DATE, HeaderMap, RETRY_AFTER};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use serde::Deserialize;

use super::Error;
use super::failure::{self, Failure, Plugin, Refusal};

/// What is read, and so how long one attempt may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    /// One object.
    Get,
    /// One page of a list.
    List,
}

impl Verb {
    fn limit(self) -> Duration {
        match self {
            Self::Get => Duration::from_secs(10),
            Self::List => Duration::from_mins(1),
        }
    }
}

/// The longest wait that a server may ask for with `Retry-After`.
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Waits 0.5 s, 1 s, 2 s and 4 s: five attempts.
fn backoff() -> ExponentialBuilder {
    ExponentialBuilder::default()
        .with_min_delay(Duration::from_millis(500))
        .with_max_delay(Duration::from_secs(8))
        .with_max_times(4)
}

/// The way to one API server.
pub(super) struct Requests {
    client: Client,
    plugin: Plugin,
    /// Scheme, host and port, for messages.
    pub(super) server: Arc<str>,
    /// Whether the server has ever answered: one that has is waited for when it goes away.
    answered: AtomicBool,
    /// The newest `Date` of all answers.
    clock: Mutex<Option<Timestamp>>,
}

impl Requests {
    pub(super) fn new(client: Client, plugin: Plugin, server: Arc<str>) -> Self {
        Self { client, plugin, server, answered: AtomicBool::new(false), clock: Mutex::new(None) }
    }

    /// The server's clock when it last answered.
    pub(super) fn server_clock(&self) -> Option<Timestamp> {
        *self.clock.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The error that `failure` is for whoever asked for `path`.
    pub(super) fn error(&self, failure: Failure, path: &str) -> Error {
        failure.into_error(&self.server, path)
    }

    /// The body of a good answer to a GET of `uri` (path and query).
    pub(super) async fn get(&self, verb: Verb, uri: &str) -> Result<Vec<u8>, Failure> {
        let mut timeouts = 0;
        (|| self.attempt(verb, uri))
            .retry(backoff())
            .when(|failure| self.may_pass(failure, &mut timeouts))
            .adjust(|failure, planned| Some(planned?.max(asked_for(failure))))
            .notify(|failure, wait| tracing::debug!(uri, ?failure, ?wait, "trying again"))
            .await
    }

    async fn attempt(&self, verb: Verb, uri: &str) -> Result<Vec<u8>, Failure> {
        tokio::time::timeout(verb.limit(), self.exchange(uri))
            .await
            .unwrap_or(Err(Failure::Timeout(verb.limit())))
    }

    async fn exchange(&self, uri: &str) -> Result<Vec<u8>, Failure> {
        let request = http::Request::get(uri)
            .header(ACCEPT, "application/json")
            .body(Body::empty())
            .map_err(|error| Failure::Unreachable(error.to_string()))?;
        let answer = self.client.send(request).await;
        let answer = answer.map_err(|error| failure::of_request(&error, &self.plugin))?;
        self.answered.store(true, Ordering::Relaxed);
        let (head, body) = answer.into_parts();
        let date = head.headers.get(DATE).and_then(|date| http_date(date.to_str().ok()?));
        self.note(date);
        let body = body.collect_bytes().await;
        let body = body.map_err(|error| Failure::BrokenOff(failure::root(&error)))?;
        if head.status.is_success() {
            return Ok(body.into());
        }
        Err(Failure::Status(Refusal {
            code: head.status.as_u16(),
            message: status_message(&body),
            retry_after: retry_after(&head.headers, date),
        }))
    }

    fn note(&self, date: Option<Timestamp>) {
        let mut clock = self.clock.lock().unwrap_or_else(PoisonError::into_inner);
        *clock = (*clock).max(date);
    }

    /// Whether a failure may pass by itself. A server that never answered is not waited for:
    /// its address is more likely wrong. What hung once may hang again, and took long.
    fn may_pass(&self, failure: &Failure, timeouts: &mut u32) -> bool {
        match failure {
            Failure::Status(refusal) => matches!(refusal.code, 429 | 500 | 502 | 503 | 504),
            Failure::BrokenOff(_) => true,
            Failure::Unreachable(_) => self.answered.load(Ordering::Relaxed),
            Failure::Timeout(_) => {
                *timeouts += 1;
                *timeouts < 2
            }
            Failure::Tls(_) | Failure::Credentials { .. } => false,
        }
    }
}

fn asked_for(failure: &Failure) -> Duration {
    match failure {
        Failure::Status(refusal) => refusal.retry_after.unwrap_or_default().min(LONGEST_WAIT),
        Failure::Unreachable(_)
        | Failure::Tls(_)
        | Failure::BrokenOff(_)
        | Failure::Timeout(_)
        | Failure::Credentials { .. } => Duration::ZERO,
    }
}

/// `Retry-After`: seconds, or a date, which is compared with the answer's own `Date`.
fn retry_after(headers: &HeaderMap, now: Option<Timestamp>) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let wait: SignedDuration = http_date(value)?.duration_since(now?);
    Some(wait.try_into().unwrap_or_default())
}

/// An HTTP date, which is what mail calls a date with the zone `GMT`.
fn http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}

/// The message of a `Status`, or the beginning of whatever else was answered.
fn status_message(body: &[u8]) -> String {
    #[derive(Deserialize)]
    struct Status {
        message: String,
    }
    match serde_json::from_slice::<Status>(body) {
        Ok(status) => status.message,
        Err(_) => String::from_utf8_lossy(body).trim().chars().take(200).collect(),
    }
}
