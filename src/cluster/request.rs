//! One request: its time limit, and when it is tried again (`retry`).
//!
//! kube's own retry is off: it would repeat any verb, deletes and evictions too.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{self, Either, Ready};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER};
use http::{Response, response};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;

use super::Error;
use super::answer;
use super::failure::{self, Failure, Plugin, Refusal};
use super::lock::{Clock, Fence};
use super::retry::{self, History, Repeat};
use super::server_clock::ServerClock;
use super::verb::{Counter, RequestCounts, Resource, Verb};

/// A request that is yet to be sent.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) verb: Verb,
    pub(super) resource: Resource,
    /// Path and query.
    pub(super) uri: String,
    /// Media type and bytes.
    pub(super) body: Option<(&'static str, Vec<u8>)>,
    /// Whether sending it twice is the same as sending it once.
    pub(super) repeat: Repeat,
    /// How long one attempt may take.
    pub(super) limit: Duration,
}

/// How long one attempt at anything but a list may take.
pub(super) const REQUEST_LIMIT: Duration = Duration::from_secs(10);

impl Call {
    /// One object.
    pub(super) fn get(resource: Resource, uri: impl Into<String>) -> Self {
        Self {
            verb: Verb::Get,
            resource,
            uri: uri.into(),
            body: None,
            repeat: Repeat::Harmless,
            limit: REQUEST_LIMIT,
        }
    }

    /// One page of a list.
    pub(super) fn list(resource: Resource, uri: impl Into<String>) -> Self {
        Self { verb: Verb::List, limit: Duration::from_mins(1), ..Self::get(resource, uri) }
    }

    /// The path, without the query.
    pub(super) fn path(&self) -> &str {
        self.uri.split('?').next().unwrap_or_default()
    }

    fn request(&self) -> Result<http::Request<Body>, Failure> {
        let mut request = http::Request::builder()
            .method(self.verb.method())
            .uri(&self.uri)
            .header(ACCEPT, "application/json");
        if self.verb == Verb::Watch {
            // Servers from 1.37 on compress each event by itself, and only the first would be read.
            request = request.header(ACCEPT_ENCODING, "identity");
        }
        let body = match &self.body {
            Some((media_type, bytes)) => {
                request = request.header(CONTENT_TYPE, *media_type);
                bytes.clone().into()
            }
            None => Body::empty(),
        };
        request.body(body).map_err(|error| Failure::Unreachable(error.to_string()))
    }
}

/// As messages name it: `GET /api/v1/nodes`.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb.method(), self.path())
    }
}

/// The way to one API server.
pub(super) struct Requests {
    client: Client,
    plugin: Plugin,
    /// Scheme, host and port, for messages.
    pub(super) server: Arc<str>,
    /// Whether the server has ever answered: one that has is waited for when it goes away.
    answered: AtomicBool,
    /// What time it is by the answers.
    server_clock: Mutex<ServerClock>,
    /// What time between them is measured with.
    clock: Clock,
    counter: Counter,
    decoding: Decoding,
}

/// Where pages are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoding {
    /// On another thread, while the next page is fetched.
    Beside,
    /// At once: on virtual time, where other threads would finish in another order each time.
    InPlace,
}

impl Requests {
    pub(super) fn new(client: Client, plugin: Plugin, server: Arc<str>) -> Self {
        Self {
            client,
            plugin,
            server,
            answered: AtomicBool::new(false),
            server_clock: Mutex::default(),
            clock: tokio_clock(),
            counter: Counter::default(),
            decoding: Decoding::Beside,
        }
    }

    /// The same, with time measured by that clock, and not by tokio's, which stands still while the
    /// machine sleeps.
    pub(super) fn measured_by(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// The same, with pages decoded there.
    pub(super) fn decoding(mut self, decoding: Decoding) -> Self {
        self.decoding = decoding;
        self
    }

    /// What the chance in the pauses of a watch comes from: `None` is nothing that repeats.
    pub(super) fn jitter_seed(&self, watch: usize) -> Option<u64> {
        match self.decoding {
            Decoding::Beside => None,
            Decoding::InPlace => u64::try_from(watch).ok(),
        }
    }

    /// Decodes something.
    pub(super) fn decode<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Either<JoinHandle<T>, Ready<Result<T, JoinError>>> {
        match self.decoding {
            Decoding::Beside => Either::Left(tokio::task::spawn_blocking(work)),
            Decoding::InPlace => Either::Right(future::ready(Ok(work()))),
        }
    }

    /// The server's clock when it last answered.
    pub(super) fn server_clock(&self) -> Option<Timestamp> {
        self.heard(ServerClock::last)
    }

    /// The server's clock now, as far as can be told from its answers (`server_clock`).
    pub(super) fn server_time(&self) -> Option<Timestamp> {
        self.heard(|clock| clock.now(self.clock.now()))
    }

    /// How much the clocks of the API servers differ, if that is worth a word.
    pub(super) fn clocks_differ(&self) -> Option<SignedDuration> {
        self.heard(ServerClock::disagreement)
    }

    /// Whether the API servers' time, as it was told for a while, was too late by far.
    pub(super) fn clock_went_back(&self) -> bool {
        self.heard(ServerClock::went_back)
    }

    fn heard<T>(&self, ask: impl FnOnce(&ServerClock) -> T) -> T {
        ask(&self.server_clock.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What was sent so far.
    pub(super) fn counts(&self) -> RequestCounts {
        self.counter.counts()
    }

    /// The error that `failure` is for whoever sent `call`.
    pub(super) fn error(&self, failure: Failure, call: &Call) -> Error {
        failure.into_error(&self.server, call.to_string())
    }

    /// The body of a good answer.
    pub(super) async fn send(&self, call: &Call) -> Result<Vec<u8>, Failure> {
        self.send_under(None, call).await
    }

    /// The same; each attempt only while the fence lets it pass, if there is one.
    pub(super) async fn send_under(
        &self,
        fence: Option<&Fence>,
        call: &Call,
    ) -> Result<Vec<u8>, Failure> {
        let mut history = History::new(call.repeat);
        let mut waits = retry::waits();
        loop {
            let failure = match self.attempt_under(fence, call).await {
                Ok(body) => return Ok(body),
                Err(failure) => failure,
            };
            let answered = self.answered.load(Ordering::Relaxed);
            let planned = waits.next().filter(|_| history.may_repeat(&failure, answered));
            let Some(planned) = planned else { return Err(history.outcome(failure)) };
            let wait = planned.max(retry::asked_for(&failure));
            tracing::debug!(%call, ?failure, ?wait, "trying again");
            pause(fence, wait).await;
        }
    }

    async fn attempt_under(&self, fence: Option<&Fence>, call: &Call) -> Result<Vec<u8>, Failure> {
        match fence {
            None => self.attempt(call).await,
            Some(fence) => {
                let _passage = fence.pass().await.ok_or(Failure::Unlocked)?;
                let answer = fence.unless_over(self.attempt(call)).await;
                answer.unwrap_or(Err(Failure::LockRanOut))
            }
        }
    }

    /// Sends a request once and reads the answer to its end.
    pub(super) async fn attempt(&self, call: &Call) -> Result<Vec<u8>, Failure> {
        let exchange = async { answer::read(self.open(call).await?, call.verb).await };
        let answer = tokio::time::timeout(call.limit, exchange).await;
        answer.unwrap_or(Err(Failure::Timeout(call.limit)))
    }

    /// Sends a request once; the body of a good answer is still to be read.
    pub(super) async fn open(&self, call: &Call) -> Result<Response<Body>, Failure> {
        let request = call.request()?;
        self.counter.count(call.verb, call.resource);
        let sent = self.clock.now();
        let answer = self.client.send(request).await;
        let answer = answer.map_err(|error| failure::of_request(&error, &self.plugin))?;
        self.answered.store(true, Ordering::Relaxed);
        let date = date_of(answer.headers());
        self.note(date, sent);
        if answer.status().is_success() {
            return Ok(answer);
        }
        let (head, body) = answer.into_parts();
        Err(refused(&head, date, body).await)
    }

    fn note(&self, date: Option<Timestamp>, sent: Duration) {
        let Some(date) = date else { return };
        let mut clock = self.server_clock.lock().unwrap_or_else(PoisonError::into_inner);
        clock.hear(date, sent, self.clock.now());
    }
}

/// A clock that goes by tokio's time, which is virtual in a rehearsal.
fn tokio_clock() -> Clock {
    let start = Instant::now();
    Clock::new(move || start.elapsed())
}

/// Waits before the next attempt, and not for a lock that is lost.
async fn pause(fence: Option<&Fence>, wait: Duration) {
    match fence {
        None => tokio::time::sleep(wait).await,
        Some(fence) => drop(tokio::time::timeout(wait, fence.lost()).await),
    }
}

async fn refused(head: &response::Parts, date: Option<Timestamp>, body: Body) -> Failure {
    let body = match answer::read_refusal(body).await {
        Ok(body) => body,
        Err(failure) => return failure,
    };
    let retry_after = retry_after(&head.headers, date);
    Failure::Status(Refusal::read(head.status.as_u16(), retry_after, &body))
}

fn date_of(headers: &HeaderMap) -> Option<Timestamp> {
    http_date(headers.get(DATE)?.to_str().ok()?)
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
