//! Notifications about a run (`--notify`): delivered next to it, in order, one queue for each URL.
//!
//! They never hold up a run: an event is put into a queue, and what is still there at the end is
//! waited for briefly. Not here: which events are posted (`planner`), and the request (`checks`).

use std::mem;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use clap::{Args, ValueHint};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout_at};

use super::error::Error;
use super::printer::Printer;
use super::warnings;
use checks::{SigningKey, TIME_LIMIT, Webhook};
use planner::rollout::{RunEvent, Secrets, notification};

/// Heading of these flags.
const NOTIFICATIONS: &str = "Notifications";
/// Documents that wait for an endpoint at most; the rest is not delivered.
const MOST_QUEUED: usize = 1_000;
/// Time at the end of a run for what is not delivered yet.
const DRAIN: Duration = Duration::from_secs(15);

/// Where a run is notified of.
#[derive(Args, Clone, Debug, Default)]
pub(super) struct NotifyFlags {
    /// Post a signed JSON document to this URL at the start, a wait, a failure and the end;
    /// repeatable
    ///
    /// The URL begins with https, or with http for this machine and for names of the cluster (*.svc).
    /// Redirects are not followed. An endpoint that fails changes neither the run nor its exit code.
    /// A URL that is a secret is better set by the variable. `ds-plan schema run-event` prints the
    /// schema of the documents.
    #[arg(long, value_name = "URL", value_hint = ValueHint::Url, help_heading = NOTIFICATIONS)]
    #[arg(requires = "notify_secret_file")]
    notify: Vec<String>,

    /// The file with the shared secret that signs notifications, at least 16 characters
    ///
    /// The header X-Ds-Plan-Signature-256 has the HMAC-SHA256 of the body: `sha256=` and 64
    /// hexadecimal digits.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(help_heading = NOTIFICATIONS)]
    notify_secret_file: Option<PathBuf>,
}

impl NotifyFlags {
    /// Begins to deliver; `None` without `--notify`.
    ///
    /// # Errors
    /// The secret cannot be read, or an address cannot be used.
    pub(super) fn begin(&self) -> Result<Option<(Notifications, Deliveries)>, Error> {
        let Self { notify, notify_secret_file } = self;
        let Some(file) = notify_secret_file.as_ref().filter(|_| !notify.is_empty()) else {
            return Ok(None);
        };
        let key = SigningKey::read(file)
            .map_err(|source| Error::NotifySecret { file: file.clone(), source })?;
        let webhooks = notify.iter().map(|url| Webhook::new(url, key.clone(), TIME_LIMIT));
        let webhooks: Vec<Webhook> = webhooks.collect::<Result<_, _>>()?;
        let (queues, deliveries) = webhooks.into_iter().map(deliver).unzip();
        let notifications = Notifications { queues: Arc::new(queues), cluster: Arc::default() };
        Ok(Some((notifications, Deliveries(deliveries))))
    }
}

/// The queues of a run.
#[derive(Clone, Debug)]
pub(super) struct Notifications {
    queues: Arc<Vec<Queue>>,
    /// The name of the cluster, once it is known.
    cluster: Arc<OnceLock<String>>,
}

/// The queue of an endpoint; `None` ends it.
#[derive(Clone, Debug)]
struct Queue {
    sender: mpsc::Sender<Option<Arc<str>>>,
    counts: Arc<Counts>,
}

/// What became of the documents for an endpoint.
#[derive(Debug, Default)]
struct Counts {
    /// Documents that should be delivered.
    posted: AtomicUsize,
    /// Those that are.
    delivered: AtomicUsize,
    /// Why the last one that failed was not delivered.
    problem: Mutex<Option<String>>,
}

impl Notifications {
    /// Sets the name of the cluster, for all notifications from now on.
    pub(super) fn name_cluster(&self, name: Option<&str>) {
        if let Some(name) = name {
            // Named once is enough: a run has one cluster.
            let _ = self.cluster.set(name.to_owned());
        }
    }

    /// Puts an event into the queues, if it is one to be notified of.
    pub(super) fn post(&self, event: RunEvent, secrets: &Secrets) {
        let event = RunEvent { cluster: self.cluster.get().cloned(), ..event };
        let Some(line) = notification(event, secrets).and_then(|document| line(&document)) else {
            return;
        };
        let line: Arc<str> = line.into();
        for Queue { sender, counts } in &*self.queues {
            counts.posted.fetch_add(1, Ordering::Relaxed);
            // What a full queue does not take counts as not delivered.
            let _ = sender.try_send(Some(Arc::clone(&line)));
        }
    }
}

fn line(document: &Value) -> Option<String> {
    let mut line = render::json_line(document).ok()?;
    line.truncate(line.trim_end().len());
    Some(line)
}

/// Starts the delivery to an endpoint.
fn deliver(webhook: Webhook) -> (Queue, Delivery) {
    let (sender, mut documents) = mpsc::channel::<Option<Arc<str>>>(MOST_QUEUED);
    let counts = Arc::new(Counts::default());
    let queue = Queue { sender, counts: Arc::clone(&counts) };
    let delivery = Delivery {
        endpoint: webhook.to_string(),
        queue: queue.clone(),
        work: tokio::spawn(async move {
            while let Some(Some(document)) = documents.recv().await {
                match webhook.post(&document).await {
                    Ok(()) => drop(counts.delivered.fetch_add(1, Ordering::Relaxed)),
                    Err(failed) => counts.fail(failed.to_string()),
                }
            }
        }),
    };
    (queue, delivery)
}

impl Counts {
    fn fail(&self, why: String) {
        *self.problem.lock().unwrap_or_else(PoisonError::into_inner) = Some(why);
    }
}

/// The deliveries of a run.
#[derive(Debug)]
pub(super) struct Deliveries(Vec<Delivery>);

#[derive(Debug)]
struct Delivery {
    /// Scheme and host.
    endpoint: String,
    queue: Queue,
    work: JoinHandle<()>,
}

impl Deliveries {
    /// Waits for what is not delivered yet, 15 s at most, and warns about what is not.
    pub(super) async fn finish(self, printer: Printer) {
        let until = Instant::now() + DRAIN;
        // All of them deliver meanwhile, whichever is waited for.
        for delivery in self.0 {
            delivery.finish(until, printer).await;
        }
    }
}

impl Delivery {
    async fn finish(mut self, until: Instant, printer: Printer) {
        let Queue { sender, counts } = &self.queue;
        let rest = async {
            // No more documents come. It fails only if the delivery has ended.
            let _ = sender.send(None).await;
            let _ = (&mut self.work).await;
        };
        if timeout_at(until, rest).await.is_err() {
            self.work.abort();
        }
        let posted = counts.posted.load(Ordering::Relaxed);
        let left = posted - counts.delivered.load(Ordering::Relaxed);
        if left > 0 {
            let problem =
                mem::take(&mut *counts.problem.lock().unwrap_or_else(PoisonError::into_inner));
            let problem =
                problem.unwrap_or_else(|| format!("{} did not answer in time", self.endpoint));
            warnings::print_undelivered(left, posted, &problem, printer);
        }
    }
}
