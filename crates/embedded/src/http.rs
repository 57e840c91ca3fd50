//! The embedded cluster as an HTTP service for a real `kube::Client`.
//!
//! Requests are parsed and answers encoded here; their meaning is in `verbs`. Every request goes
//! through [`Server::answer`], the only place where faults are injected ([`Hook`]) and requests are
//! counted.

mod answer;
mod faults;
mod request;
mod route;
mod shared;
mod watch;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll};

use http::{Request, Response};
use jiff::{SignedDuration, Timestamp};
use kube::Client;
use kube::client::Body;
use tower_service::Service;

pub use self::answer::AnswerBody;
pub use self::faults::{Fault, Hook, Seen};
pub use self::route::{Objects, Query, Route};
pub use self::watch::Watching;

use self::answer::{Answer, Content};
use self::request::Incoming;
use self::shared::{Shared, State};
use super::Store;
use super::rules::{Denial, Rules};

/// An embedded cluster behind HTTP, for one user. Clones share the cluster.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
    user: Arc<str>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "an embedded cluster, as {} sees it", self.user)
    }
}

/// Exclusive access to the store; controllers write through it.
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
    /// Serves a store. `clock` returns the time of the cluster.
    pub fn new(store: Store, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        let state = State { store, rules: Rules::default(), hook: None, requests: 0, cuts: 0 };
        let shared = Shared { state: Mutex::new(state), clock: Box::new(clock) };
        Self { shared: Arc::new(shared), user: "admin".into() }
    }

    /// The same cluster for another user.
    #[must_use]
    pub fn as_user(&self, user: &str) -> Self {
        Self { shared: Arc::clone(&self.shared), user: user.into() }
    }

    /// A client of the cluster. Needs a tokio runtime.
    pub fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    /// The current time of the cluster.
    pub fn now(&self) -> Timestamp {
        (self.shared.clock)()
    }

    /// Locks the store, to be read and written past HTTP. Do not keep the lock across an `await`.
    pub fn store(&self) -> StoreGuard<'_> {
        StoreGuard(self.shared.state())
    }

    /// Sets the rules that deny requests; everything else is allowed.
    pub fn deny(&self, denials: Vec<Denial>) {
        self.shared.state().rules = Rules(denials);
    }

    /// Sets the hook that every request goes through, replacing the previous one.
    pub fn set_hook(&self, hook: Option<Box<dyn Hook>>) {
        self.shared.state().hook = hook;
    }

    /// Takes the hook, for example to wrap it in another one.
    pub fn take_hook(&self) -> Option<Box<dyn Hook>> {
        self.shared.state().hook.take()
    }

    /// Cuts all open watches.
    pub fn cut_watches(&self) {
        let mut state = self.shared.state();
        state.cuts += 1;
        state.store.wake_all();
    }

    /// Answers one request, with the faults before and after it.
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

    /// Applies one fault; returns the answer that replaces the real one, if any.
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

/// Faults of a request that affect its answer.
#[derive(Default)]
struct Way {
    /// Time after which a watch is cut.
    cut: Option<std::time::Duration>,
    /// Offset of the server's clock.
    off: SignedDuration,
}

impl Way {
    /// The time of the server's clock.
    fn date(&self, now: Timestamp) -> Timestamp {
        now.saturating_add(self.off).unwrap_or(now)
    }
}
