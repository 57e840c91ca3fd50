//! One watch: the events of a kind (upstream: `cacheWatcher`).

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::{Instant, Sleep, sleep_until};

use super::route::{Objects, Query};
use super::shared::Shared;
use crate::verbs::{too_old, unparsable_version};
use crate::{Change, Event, Kind, Object, Selector, Status, Store};

/// Default duration of a watch (upstream: `--min-request-timeout`, randomly between half an hour
/// and an hour).
const LASTS: Duration = Duration::from_mins(45);

/// Period of bookmarks (upstream: `defaultBookmarkFrequency`).
const BOOKMARKS: Duration = Duration::from_mins(1);

/// A watch and its position.
pub struct Watching {
    shared: Arc<Shared>,
    kind: Kind,
    namespace: Option<String>,
    selector: Selector,
    /// Events up to this version were sent.
    version: u64,
    /// Text that is sent first.
    first: Option<String>,
    bookmarks: bool,
    ends: Pin<Box<Sleep>>,
    /// Time at which the watch is cut, if any.
    cut: Option<Pin<Box<Sleep>>>,
    next_bookmark: Pin<Box<Sleep>>,
    /// Number of cuts of all watches when this one began.
    cuts: u64,
    done: bool,
}

impl fmt::Debug for Watching {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a watch of {} after {}", self.kind, self.version)
    }
}

impl Watching {
    /// Starts a watch with the options of its query.
    pub(super) fn begin(
        shared: &Arc<Shared>,
        store: &Store,
        objects: &Objects,
        query: &Query,
        cuts: u64,
    ) -> Result<Self, Status> {
        let mut fields = query.get("fieldSelector").to_owned();
        if !objects.name.is_empty() {
            let own = format!("metadata.name={}", objects.name);
            fields = if fields.is_empty() { own } else { format!("{fields},{own}") };
        }
        let selector = Selector::parse(objects.kind, query.get("labelSelector"), &fields)?;
        if !query.get("sendInitialEvents").is_empty() {
            return Err(Status::not_implemented("watches with `sendInitialEvents`"));
        }
        let asked = query.get("timeoutSeconds").parse().ok().filter(|seconds| *seconds > 0);
        let lasts = asked.map_or(LASTS, Duration::from_secs);
        let namespace = (!objects.namespace.is_empty()).then(|| objects.namespace.clone());
        let mut watching = Self {
            shared: Arc::clone(shared),
            kind: objects.kind,
            namespace,
            selector,
            version: store.version(),
            first: None,
            bookmarks: query.is("allowWatchBookmarks"),
            ends: sleeping(lasts),
            cut: None,
            next_bookmark: sleeping(BOOKMARKS),
            cuts,
            done: false,
        };
        match query.get("resourceVersion") {
            "" | "0" => {
                let all = store.objects(watching.kind, watching.namespace.as_deref());
                let all = all.filter(|object| watching.selector.selects(object));
                watching.first = Some(all.map(|object| line("ADDED", &object.json())).collect());
            }
            version => {
                watching.version = version.parse().map_err(|_| unparsable_version(version))?;
            }
        }
        Ok(watching)
    }

    /// Cuts the watch after this time.
    pub(super) fn cut_after(&mut self, time: Duration) {
        self.cut = Some(sleeping(time));
    }

    /// Polls for the next lines.
    pub(super) fn poll_text(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<String>>> {
        if self.done {
            return Poll::Ready(None);
        }
        if let Some(first) = self.first.take().filter(|first| !first.is_empty()) {
            return Poll::Ready(Some(Ok(first)));
        }
        let cut = self.cut.as_mut().is_some_and(|cut| cut.as_mut().poll_is_over(context));
        let shared = Arc::clone(&self.shared);
        let mut state = shared.state();
        if cut || state.cuts != self.cuts {
            self.done = true;
            let broken = io::Error::new(io::ErrorKind::ConnectionReset, "the watch was cut");
            return Poll::Ready(Some(Err(broken)));
        }
        let text = self.news(&state.store);
        if !text.is_empty() {
            return Poll::Ready(Some(Ok(text)));
        }
        state.store.wake_on(self.kind, context.waker());
        drop(state);
        if self.ends.as_mut().poll_is_over(context) {
            self.done = true;
            return Poll::Ready(self.bookmarks.then(|| Ok(self.bookmark())));
        }
        if self.bookmarks && self.next_bookmark.as_mut().poll_is_over(context) {
            self.next_bookmark.as_mut().reset(Instant::now() + BOOKMARKS);
            return Poll::Ready(Some(Ok(self.bookmark())));
        }
        Poll::Pending
    }

    /// The lines for events since the last call.
    fn news(&mut self, store: &Store) -> String {
        let mut text = String::new();
        match store.events_after(self.kind, self.version) {
            Ok(events) => {
                for event in events {
                    self.write_event(event, &mut text);
                }
                self.version = self.version.max(store.version());
            }
            Err(expired) => {
                let status = too_old(expired.wanted, expired.oldest);
                text = line("ERROR", &status.to_value().to_string());
                self.done = true;
            }
        }
        text
    }

    /// Converts an event for this watch's selection (upstream: `convertToWatchEvent`): an object
    /// that enters the selection is added, and one that leaves it is deleted.
    fn write_event(&self, event: &Event, text: &mut String) {
        let Event { change, object, previous } = event;
        let is_here = |object: &Object| {
            self.namespace.as_ref().is_none_or(|namespace| object.key().namespace() == namespace)
        };
        if !is_here(object) {
            return;
        }
        let was = previous.as_ref().is_some_and(|previous| self.selector.selects(previous));
        let is = *change != Change::Deleted && self.selector.selects(object);
        let reported = match (was, is) {
            (false, false) => return,
            (false, true) => line("ADDED", &object.json()),
            (true, true) => line("MODIFIED", &object.json()),
            (true, false) => {
                let last = match (change, previous) {
                    (Change::Modified, Some(previous)) => {
                        let mut last = previous.value();
                        last["metadata"]["resourceVersion"] = event.version().to_string().into();
                        last.to_string()
                    }
                    (Change::Added | Change::Deleted | Change::Modified, _) => object.json(),
                };
                line("DELETED", &last)
            }
        };
        text.push_str(&reported);
    }

    fn bookmark(&self) -> String {
        let object: Value = json!({
            "kind": self.kind.as_str(),
            "apiVersion": self.kind.api_version(),
            "metadata": {"resourceVersion": self.version.to_string()},
        });
        line("BOOKMARK", &object.to_string())
    }
}

fn line(kind: &str, object: &str) -> String {
    format!("{{\"type\":\"{kind}\",\"object\":{object}}}\n")
}

fn sleeping(time: Duration) -> Pin<Box<Sleep>> {
    Box::pin(sleep_until(Instant::now() + time))
}

/// Checks if a time has come; wakes the task when it does.
trait IsOver {
    fn poll_is_over(self, context: &mut Context<'_>) -> bool;
}

impl IsOver for Pin<&mut Sleep> {
    fn poll_is_over(self, context: &mut Context<'_>) -> bool {
        self.poll(context).is_ready()
    }
}
