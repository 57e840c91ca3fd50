//! Sends one request, with a timeout and retries (`retry`).
//!
//! kube's own retry is off: it would retry any verb, deletes and evictions too.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::{self, Either, Ready};
use http::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, DATE, HeaderMap, RETRY_AFTER};
use http::{Response, response};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use tokio::sync::Semaphore;
use tokio::task::{JoinError, JoinHandle};
use tokio::time::Instant;

use super::answer::{self, Answer, Format, Receive};
use super::decode::has_protobuf;
use super::failure::{self, Failure, Plugin, Refusal};
use super::link::Link;
use super::lock::clock::Clock;
use super::lock::fence::Fence;
use super::retry::{self, History, Repeat};
use super::server_clock::ServerClock;
use super::verb::{Counter, RequestCounts, Resource, Verb};
use super::{Error, Kind};

/// A request to send.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) verb: Verb,
    pub(super) resource: Resource,
    /// The path and query.
    pub(super) uri: String,
    /// The media type and the bytes.
    pub(super) body: Option<(&'static str, Vec<u8>)>,
    /// The effect of sending it twice.
    pub(super) repeat: Repeat,
    /// The timeout of one attempt.
    pub(super) limit: Duration,
    /// The formats that are read.
    pub(super) accept: Accept,
    /// Whether the server must not compress the answer.
    pub(super) is_plain: bool,
}

/// The formats of answers that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accept {
    Json,
    /// Protobuf, or JSON from a server that does not have it.
    Protobuf,
}

impl Accept {
    /// The formats that are read for objects of a kind.
    pub(super) fn of(kind: Kind) -> Self {
        if has_protobuf(kind) { Self::Protobuf } else { Self::Json }
    }

    /// The value of the header `Accept`.
    fn header(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Protobuf => "application/vnd.kubernetes.protobuf, application/json",
        }
    }
}

/// The timeout of one attempt, except for lists.
pub(super) const REQUEST_LIMIT: Duration = Duration::from_secs(10);

/// The number of pages of lists that are in flight at a time, unless it is set.
const CONCURRENCY: usize = 4;

impl Call {
    /// A request that reads one object.
    pub(super) fn get(resource: Resource, uri: impl Into<String>) -> Self {
        Self {
            verb: Verb::Get,
            resource,
            uri: uri.into(),
            body: None,
            repeat: Repeat::Harmless,
            limit: REQUEST_LIMIT,
            accept: Accept::Json,
            is_plain: false,
        }
    }

    /// A request that reads one page of a list.
    pub(super) fn list(resource: Resource, uri: impl Into<String>) -> Self {
        Self { verb: Verb::List, limit: Duration::from_mins(1), ..Self::get(resource, uri) }
    }

    /// The path without the query.
    pub(super) fn path(&self) -> &str {
        self.uri.split('?').next().unwrap_or_default()
    }

    fn request(&self) -> Result<http::Request<Body>, Failure> {
        let mut request = http::Request::builder()
            .method(self.verb.method())
            .uri(&self.uri)
            .header(ACCEPT, self.accept.header());
        // Servers since 1.37 compress each event of a watch separately; only the first would be
        // decoded.
        if self.is_plain || self.verb == Verb::Watch {
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

/// The request as shown in messages: `GET /api/v1/nodes`.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb.method(), self.path())
    }
}

/// Sends requests to one API server.
pub(super) struct Requests {
    client: Client,
    plugin: Plugin,
    /// Scheme, host and port, for messages.
    pub(super) server: Arc<str>,
    /// Whether the server has ever answered: only then an unreachable server is waited for.
    answered: AtomicBool,
    /// The estimate of the server's time.
    server_clock: Mutex<ServerClock>,
    /// The clock that measures the time between answers.
    clock: Clock,
    counter: Counter,
    decoding: Decoding,
    /// One permit for each page that may be in flight.
    pages: Semaphore,
    concurrency: usize,
    link: Link,
    /// `--request-timeout`: replaces the timeouts of requests that have no reason for their own.
    limit: Option<Duration>,
}

/// The place where pages are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decoding {
    /// Another thread, while the next page is fetched.
    Beside,
    /// The same thread: with virtual time, other threads would make the order nondeterministic.
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
            pages: Semaphore::new(CONCURRENCY),
            concurrency: CONCURRENCY,
            link: Link::default(),
            limit: None,
        }
    }

    /// Sets the timeout of one attempt. Writes of a lock keep theirs: they must end before the lock
    /// runs out.
    pub(super) fn limited_by(mut self, limit: Option<Duration>) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the number of pages of lists that may be in flight at a time.
    pub(super) fn with_concurrency(mut self, pages: NonZeroUsize) -> Self {
        self.concurrency = pages.get();
        self.pages = Semaphore::new(pages.get());
        self
    }

    /// The number of pages of lists that may be in flight at a time.
    pub(super) fn concurrency(&self) -> usize {
        self.concurrency
    }

    /// Measures time by this clock instead of tokio's, which stops while the machine is suspended.
    pub(super) fn measured_by(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Sets the place where pages are decoded.
    pub(super) fn decoding(mut self, decoding: Decoding) -> Self {
        self.decoding = decoding;
        self
    }

    /// The seed of the jitter between the attempts of a watch; `None` is a random one.
    pub(super) fn jitter_seed(&self, watch: usize) -> Option<u64> {
        match self.decoding {
            Decoding::Beside => None,
            Decoding::InPlace => u64::try_from(watch).ok(),
        }
    }

    /// Runs `work` at the place where pages are decoded.
    pub(super) fn decode<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Either<JoinHandle<T>, Ready<Result<T, JoinError>>> {
        match self.decoding {
            Decoding::Beside => Either::Left(tokio::task::spawn_blocking(work)),
            Decoding::InPlace => Either::Right(future::ready(Ok(work()))),
        }
    }

    /// The server's time at its last answer.
    pub(super) fn server_clock(&self) -> Option<Timestamp> {
        self.with_clock(ServerClock::last)
    }

    /// The server's time now, estimated from its answers (`server_clock`).
    pub(super) fn server_time(&self) -> Option<Timestamp> {
        self.with_clock(|clock| clock.now(self.clock.now()))
    }

    /// The difference between the clocks of the API servers, if it is worth reporting.
    pub(super) fn clocks_differ(&self) -> Option<SignedDuration> {
        self.with_clock(ServerClock::disagreement)
    }

    /// Whether the estimate of the servers' time was much too late for a while.
    pub(super) fn clock_went_back(&self) -> bool {
        self.with_clock(ServerClock::went_back)
    }

    fn with_clock<T>(&self, ask: impl FnOnce(&ServerClock) -> T) -> T {
        ask(&self.server_clock.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The number of requests sent so far.
    pub(super) fn counts(&self) -> RequestCounts {
        self.counter.counts()
    }

    /// Converts the failure of `call` into an error.
    pub(super) fn error(&self, failure: Failure, call: &Call) -> Error {
        failure.into_error(&self.server, call.to_string())
    }

    /// Sends a request with retries, and returns the body of a 2xx answer.
    pub(super) async fn send(&self, call: &Call) -> Result<Vec<u8>, Failure> {
        self.send_under(None, call).await
    }

    /// As [`send`](Self::send), for one page of a list: with a limit of concurrent requests, and a
    /// `receiver` for each attempt, which takes the page while it arrives.
    pub(super) async fn send_page<P: Receive>(
        &self,
        call: &Call,
        receiver: &(dyn Fn() -> P + Sync),
    ) -> Result<Answer<P>, Failure> {
        // Never closed, so always acquired.
        let _permit = self.pages.acquire().await.ok();
        let call = Call { is_plain: self.link.is_fast(), ..call.clone() };
        self.repeat_under(None, &call, receiver).await
    }

    /// As [`send`](Self::send). With a fence, each attempt is sent only while the lock is fresh.
    pub(super) async fn send_under(
        &self,
        fence: Option<&Fence>,
        call: &Call,
    ) -> Result<Vec<u8>, Failure> {
        self.repeat_under(fence, call, &Vec::new).await.map(Answer::into_bytes)
    }

    async fn repeat_under<P: Receive>(
        &self,
        fence: Option<&Fence>,
        call: &Call,
        receiver: &(dyn Fn() -> P + Sync),
    ) -> Result<Answer<P>, Failure> {
        let mut history = History::new(call.repeat);
        let mut waits = retry::waits();
        loop {
            let failure = match self.attempt_under(fence, call, receiver).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let answered = self.answered.load(Ordering::Relaxed);
            let planned = waits.next().filter(|_| history.may_repeat(&failure, answered));
            let Some(planned) = planned else { return Err(history.outcome(failure)) };
            let wait = planned.max(retry::asked_for(&failure));
            tracing::debug!(%call, ?failure, ?wait, "retrying");
            delay(fence, wait).await;
        }
    }

    async fn attempt_under<P: Receive>(
        &self,
        fence: Option<&Fence>,
        call: &Call,
        receiver: &(dyn Fn() -> P + Sync),
    ) -> Result<Answer<P>, Failure> {
        match fence {
            None => self.attempt_for_answer(call, receiver).await,
            Some(fence) => {
                let _passage = fence.pass().await.ok_or(Failure::Unlocked)?;
                let answer = fence.unless_over(self.attempt_for_answer(call, receiver)).await;
                answer.unwrap_or(Err(Failure::LockRanOut))
            }
        }
    }

    /// Sends a request once and reads the whole answer.
    pub(super) async fn attempt(&self, call: &Call) -> Result<Vec<u8>, Failure> {
        self.attempt_for_answer(call, &Vec::new).await.map(Answer::into_bytes)
    }

    async fn attempt_for_answer<P: Receive>(
        &self,
        call: &Call,
        receiver: &(dyn Fn() -> P + Sync),
    ) -> Result<Answer<P>, Failure> {
        let exchange = async {
            let sent = self.clock.now();
            let answer = self.open(call).await?;
            let begun = self.clock.now();
            self.link.answered(begun.saturating_sub(sent));
            let (answer, size) = answer::read(answer, call.verb, receiver).await?;
            let took = self.clock.now().saturating_sub(begun);
            self.link.observe(size, took, call.is_plain);
            Ok(answer)
        };
        let limit = self.limit_of(call);
        let answer = tokio::time::timeout(limit, exchange).await;
        answer.unwrap_or_else(|_| {
            tracing::info!("{call}: no answer within {} s", limit.as_secs());
            Err(Failure::Timeout(limit))
        })
    }

    fn limit_of(&self, call: &Call) -> Duration {
        let own = call.resource == Resource::Of(Kind::Lease) && call.verb != Verb::List;
        self.limit.filter(|_| !own).unwrap_or(call.limit)
    }

    /// Sends a request once. The caller reads the body of the 2xx answer.
    pub(super) async fn open(&self, call: &Call) -> Result<Response<Body>, Failure> {
        let request = call.request()?;
        self.counter.count(call.verb, call.resource);
        let sent = self.clock.now();
        let answer = self.client.send(request).await;
        let answer = answer.map_err(|error| failure::of_request(&error, &self.plugin));
        self.log(call, sent, &answer);
        let answer = answer?;
        self.answered.store(true, Ordering::Relaxed);
        let date = date_of(answer.headers());
        self.note(date, sent);
        if answer.status().is_success() {
            return Ok(answer);
        }
        let (head, body) = answer.into_parts();
        Err(refused(&head, date, body).await)
    }

    /// Logs a request with its path and query, which hold no secrets; never headers or bodies.
    fn log(&self, call: &Call, sent: Duration, answer: &Result<Response<Body>, Failure>) {
        let took = self.clock.now().saturating_sub(sent).as_millis();
        let (verb, uri) = (call.verb.method(), &call.uri);
        let outcome = match answer {
            Ok(answer) => answer.status().as_u16().to_string(),
            Err(_) => "without an answer".to_owned(),
        };
        tracing::info!("{verb} {uri} {outcome} in {took} ms");
    }

    fn note(&self, date: Option<Timestamp>, sent: Duration) {
        let Some(date) = date else { return };
        let mut clock = self.server_clock.lock().unwrap_or_else(PoisonError::into_inner);
        clock.observe(date, sent, self.clock.now());
    }
}

/// A clock of tokio's time, which is virtual in a rehearsal.
fn tokio_clock() -> Clock {
    let start = Instant::now();
    Clock::new(move || start.elapsed())
}

/// Waits before the next attempt, and stops waiting when the lock is lost.
async fn delay(fence: Option<&Fence>, wait: Duration) {
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
    let (code, retry_after) = (head.status.as_u16(), retry_after(&head.headers, date));
    Failure::Status(match Format::of(&head.headers) {
        Format::Json => Refusal::read(code, retry_after, &body),
        Format::Protobuf => Refusal::read_protobuf(code, retry_after, &body),
    })
}

fn date_of(headers: &HeaderMap) -> Option<Timestamp> {
    http_date(headers.get(DATE)?.to_str().ok()?)
}

/// Parses `Retry-After`: seconds, or a date, which is compared with the answer's `Date`.
fn retry_after(headers: &HeaderMap, now: Option<Timestamp>) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let wait: SignedDuration = http_date(value)?.duration_since(now?);
    Some(wait.try_into().unwrap_or_default())
}

/// Parses an HTTP date, which has the RFC 2822 format with the zone `GMT`.
fn http_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}
