//! The embedded cluster as an HTTP service: what a real `kube::Client` sends its requests to.
//!
//! Bytes come in and go out here; what they mean is decided in `verbs`. Every request goes through
//! [`Server::answer`], the one place where faults come in ([`Hook`]) and requests are counted.

mod answer;
mod discovery;
mod faults;
mod request;
mod route;
mod watch;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use http::{Request, Response};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use tower_service::Service;

pub use self::answer::AnswerBody;
pub use self::faults::{Fault, Hook, Seen};
pub use self::route::{Discovery, Objects, Query, Route};
pub use self::watch::Watching;

use self::answer::{Answer, Content};
use self::request::Incoming;
use super::rules::{Denial, Rules};
use super::{Status, Store};

/// An embedded cluster behind HTTP, as one user sees it. Clones are the same cluster.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
    user: Arc<str>,
}

/// What all connections share.
pub(super) struct Shared {
    state: Mutex<State>,
    clock: Box<dyn Fn() -> Timestamp + Send + Sync>,
}

/// What changes.
struct State {
    store: Store,
    rules: Rules,
    hook: Option<Box<dyn Hook>>,
    /// How many requests came.
    requests: u64,
    /// How often all watches were cut.
    cuts: u64,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // A test that panicked in a hook has changed nothing half.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an embedded cluster, as {} sees it", self.user)
    }
}

/// The store while nobody else has it; controllers write through it.
pub struct StoreGuard<'s>(MutexGuard<'s, State>);

impl std::ops::Deref for StoreGuard<'_> {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.0.store
    }
}

impl std::ops::DerefMut for StoreGuard<'_> {
    fn deref_mut(&mut self) -> &mut Store {
        &mut self.0.store
    }
}

impl Server {
    /// Serves a store. `clock` says what time it is in the cluster.
    pub fn new(store: Store, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        let state = State { store, rules: Rules::default(), hook: None, requests: 0, cuts: 0 };
        let shared = Shared { state: Mutex::new(state), clock: Box::new(clock) };
        Self { shared: Arc::new(shared), user: "admin".into() }
    }

    /// The same cluster, as another user sees it.
    #[must_use]
    pub fn as_user(&self, user: &str) -> Self {
        Self { shared: Arc::clone(&self.shared), user: user.into() }
    }

    /// A client of it. Needs a tokio runtime.
    pub fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    /// What time it is in the cluster.
    pub fn now(&self) -> Timestamp {
        (self.shared.clock)()
    }

    /// The store, to be read and written past HTTP; nobody else has it meanwhile. Not to be held
    /// across an `await`.
    pub fn store(&self) -> StoreGuard<'_> {
        StoreGuard(self.shared.state())
    }

    /// Denies what these rules say, and nothing else.
    pub fn deny(&self, denials: Vec<Denial>) {
        self.shared.state().rules = Rules(denials);
    }

    /// Has every request go through a hook, in place of the one before.
    pub fn set_hook(&self, hook: Option<Box<dyn Hook>>) {
        self.shared.state().hook = hook;
    }

    /// Takes the hook out, for one that is to stand around it.
    pub fn take_hook(&self) -> Option<Box<dyn Hook>> {
        self.shared.state().hook.take()
    }

    /// Breaks off all watches that run.
    pub fn cut_watches(&self) {
        let mut state = self.shared.state();
        state.cuts += 1;
        state.store.wake_all();
    }

    /// Answers one request, with what goes wrong before and after it.
    async fn answer(self, request: Request<Body>) -> io::Result<Response<AnswerBody>> {
        let (head, body) = request.into_parts();
        let body = body.collect_bytes().await.map_err(io::Error::other)?;
        let incoming = match Incoming::read(&head, body.into(), &self.user) {
            Ok(incoming) => incoming,
            Err(status) => return Ok(Answer::from(status).into_response(self.now())),
        };
        let (seen, faults) = self.before(&incoming);
        let mut way = Way::default();
        for fault in faults {
            if let Some(answer) = self.suffer(fault, &mut way).await? {
                return Ok(answer.into_response(way.date(self.now())));
            }
        }
        let (mut answer, faults) = self.carry_out(&incoming, &seen);
        for fault in faults {
            if let Some(other) = self.suffer(fault, &mut way).await? {
                answer = other;
            }
        }
        if let (Content::Stream(watching), Some(time)) = (&mut answer.body, way.cut) {
            watching.cut_after(time);
        }
        Ok(answer.into_response(way.date(self.now())))
    }

    fn before(&self, incoming: &Incoming) -> (Seen, Vec<Fault>) {
        let mut state = self.shared.state();
        let number = state.requests;
        state.requests += 1;
        let seen = Seen {
            number,
            verb: incoming.verb,
            route: incoming.route.clone(),
            dry_run: incoming.is_dry_run(),
            user: self.user.to_string(),
            body: incoming.body.clone(),
        };
        let State { store, hook, .. } = &mut *state;
        let faults = hook.as_mut().map(|hook| hook.before(&seen, store)).unwrap_or_default();
        (seen, faults)
    }

    fn carry_out(&self, incoming: &Incoming, seen: &Seen) -> (Answer, Vec<Fault>) {
        let now = self.now();
        let mut state = self.shared.state();
        let answer = incoming.answer(&self.shared, &mut state, now);
        let answer = answer.unwrap_or_else(Answer::from);
        let State { store, hook, .. } = &mut *state;
        let after = |hook: &mut Box<dyn Hook>| hook.after(seen, answer.code, store);
        let faults = hook.as_mut().map(after).unwrap_or_default();
        (answer, faults)
    }

    /// Lets one thing go wrong; what is answered instead, if anything is.
    async fn suffer(&self, fault: Fault, way: &mut Way) -> io::Result<Option<Answer>> {
        match fault {
            Fault::Answer(status) => Ok(Some(status.into())),
            Fault::Delay(time) => {
                tokio::time::sleep(time).await;
                Ok(None)
            }
            Fault::Break => {
                let why = "the connection was broken";
                Err(io::Error::new(io::ErrorKind::ConnectionReset, why))
            }
            Fault::Silence => match std::future::pending::<Infallible>().await {},
            Fault::CutAfter(time) => {
                way.cut = Some(time);
                Ok(None)
            }
            Fault::Clock(off) => {
                way.off = off;
                Ok(None)
            }
        }
    }
}

impl Service<Request<Body>> for Server {
    type Response = Response<AnswerBody>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(self.clone().answer(request))
    }
}

/// What a request has met on its way, and its answer is to show.
#[derive(Default)]
struct Way {
    /// After which time a watch breaks off.
    cut: Option<std::time::Duration>,
    /// How far the server's clock is off.
    off: SignedDuration,
}

impl Way {
    /// What the server's clock shows.
    fn date(&self, now: Timestamp) -> Timestamp {
        now.saturating_add(self.off).unwrap_or(now)
    }
}

/// What is answered to a method that a resource does not have.
fn method_not_allowed() -> Status {
    let why = "the server does not allow this method on the requested resource";
    Status::new(super::Reason::MethodNotAllowed, why)
}
