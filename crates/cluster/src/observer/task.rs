//! The task of one watch: reads it, reopens it when it ends, and lists again when necessary.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::failed_create::FailedCreate;
use super::neighbours::{self, NeighbourWatch};
use super::pullers;
use super::shared::Shared;
use crate::decode::{Encoded, SnapshotBuilder};
use crate::list::{self, List};
use crate::live::Decoder;
use crate::request::Requests;
use crate::watch::{self, Change, Delays, Feed, Listener, Opened};
use crate::{Error, Kind};
use daemonset::model::{ClusterInfo, Coverage};

/// The task of one watch, which never ends.
pub(super) struct Task {
    pub(super) requests: Arc<Requests>,
    pub(super) feed: Feed,
    /// The list to read again when changes were missed; without it, the watch starts with all
    /// objects.
    pub(super) list: Option<List>,
    pub(super) page_size: u32,
    /// The version where the next watch continues; `None` to start with all objects.
    pub(super) version: Option<String>,
    pub(super) handler: WatchHandler,
}

/// The time without an event after which a watch is reopened. Servers send bookmarks every minute.
pub(super) const SILENCE: Duration = Duration::from_secs(75);

/// The time after which a watch counts as successful.
const GOOD_LIFE: Duration = Duration::from_secs(1);

/// The time after which a watch that is open again has shown what was missed. A server sends the head of its
/// answer before the first event, and an expired version as an event.
const CATCHING_UP: Duration = Duration::from_secs(1);

impl Task {
    /// Runs for ever. `opened` is a watch that is already open.
    pub(super) async fn run(mut self, mut opened: Option<Opened>) {
        let seed = self.requests.jitter_seed(self.handler.number);
        let mut delays = Delays::new(seed);
        loop {
            let begun = self.handler.shared.clock.now();
            let end = match self.open(opened.take()).await {
                Ok(opened) => self.follow(opened).await,
                Err(end) => end,
            };
            self.handler.shared.closed(self.handler.number);
            let lived = self.handler.shared.last_life(self.handler.number).saturating_sub(begun)
                >= GOOD_LIFE;
            if lived {
                delays = Delays::new(seed);
            }
            let next = watch::next(end, lived);
            if let Some(failure) = next.failure {
                self.handler.shared.record_failure(self.handler.number, failure);
            }
            if let Some(asked_for) = next.delay {
                tokio::time::sleep(delays.delay(asked_for)).await;
            }
            if next.list {
                self.version = None;
                self.list_again(&mut delays).await;
            }
        }
    }

    async fn open(&self, opened: Option<Opened>) -> Result<Opened, watch::End> {
        match opened {
            Some(opened) => Ok(opened),
            None => watch::open(&self.requests, &self.feed, self.version.as_deref()).await,
        }
    }

    /// Follows a watch to its end. One that was closed counts as open once it has shown what was missed.
    /// That of events does at once: nothing is decided by their absence.
    async fn follow(&mut self, opened: Opened) -> watch::End {
        let (shared, number) = (Arc::clone(&self.handler.shared), self.handler.number);
        let catching_up = self.handler.kind.map_or(Duration::ZERO, |_| CATCHING_UP);
        let is_open = async {
            tokio::time::sleep(catching_up).await;
            shared.opened(number);
            std::future::pending().await
        };
        tokio::select! {
            biased;
            end = watch::follow(opened, &mut self.version, SILENCE, &mut self.handler) => end,
            end = is_open => end,
        }
    }

    /// Lists again, with retries until it succeeds.
    async fn list_again(&mut self, delays: &mut Delays) {
        let Some(list) = self.list.clone() else {
            // Events are watched from the beginning.
            return;
        };
        loop {
            match self.read_again(&list).await {
                Ok(version) => {
                    self.version = version;
                    return;
                }
                Err(error) => {
                    self.handler.shared.record_failure(self.handler.number, error.to_string());
                }
            }
            tokio::time::sleep(delays.delay(Duration::ZERO)).await;
        }
    }

    /// Reads a list again; returns the version where the watch continues.
    async fn read_again(&self, list: &List) -> Result<Option<String>, Error> {
        if let Some(NeighbourWatch { at, query, .. }) = &self.handler.neighbours {
            let read = neighbours::read(&self.requests, list, self.page_size, query);
            let (listed, version) = read.await?;
            self.handler.shared.life(self.handler.number);
            self.handler.shared.change(|view| {
                view.change_neighbours(*at, |known| {
                    let changed = *known != listed;
                    *known = listed;
                    changed
                })
            });
            return Ok(version);
        }
        if let Some(lease) = &self.handler.pullers_of {
            let read = pullers::list(&self.requests, list, self.page_size, lease);
            let (pullers, version) = read.await?;
            self.handler.shared.life(self.handler.number);
            self.handler.shared.change(|view| {
                let before = std::mem::replace(&mut view.pullers, pullers);
                before != view.pullers
            });
            return Ok(version);
        }
        let sink = || Decoder::new(&self.requests.server);
        let decoder = list::read(&self.requests, list, self.page_size, &sink).await?;
        self.handler.replace(list.kind, decoder)
    }
}

/// Decodes the events of one watch, and applies them to the view.
pub(super) struct WatchHandler {
    pub(super) shared: Arc<Shared>,
    /// The index of the watch.
    pub(super) number: usize,
    pub(super) server: Arc<str>,
    /// The kind of the objects; `None` for events.
    pub(super) kind: Option<Kind>,
    /// The Lease that owns the pods, if they are pullers.
    pub(super) pullers_of: Option<String>,
    /// The query, if they are other pods that checks look at.
    pub(super) neighbours: Option<NeighbourWatch>,
    pub(super) snapshot_builder: SnapshotBuilder,
}

impl WatchHandler {
    /// Replaces all objects of a kind in the view, and returns the version where the watch
    /// continues.
    pub(super) fn replace(&self, kind: Kind, decoder: Decoder) -> Result<Option<String>, Error> {
        let Decoder { mut snapshot_builder, version, .. } = decoder;
        if let Some(object) = snapshot_builder.unreadable_record() {
            return Err(Error::Object { origin: Arc::clone(&self.server), object });
        }
        let coverage = Coverage {
            scope: None,
            managed_fields: true,
            namespaces: false,
            services: false,
            leases: false,
            records: false,
            masked: None,
        };
        let listed = snapshot_builder
            .into_snapshot(ClusterInfo::default(), Timestamp::UNIX_EPOCH, coverage)
            .map_err(|(kind, name)| Error::Duplicate {
                origin: Arc::clone(&self.server),
                kind,
                name,
            })?;
        self.shared.life(self.number);
        self.shared.change(|view| view.replace(kind, listed));
        Ok(version)
    }
}

impl WatchHandler {
    fn change_puller(&self, change: Change, json: &str, lease: &str) -> Result<(), String> {
        let read = pullers::read(json, lease).map_err(|error| error.to_string())?;
        if let Some(puller) = read {
            self.shared.change(|view| match change {
                Change::Put => view.put_puller(puller),
                Change::Gone => view.remove_puller(&puller),
            });
        }
        Ok(())
    }
}

impl Listener for WatchHandler {
    fn life(&mut self) {
        self.shared.life(self.number);
    }

    fn silent(&self) -> Duration {
        self.shared.clock.now().saturating_sub(self.shared.last_life(self.number))
    }

    fn change(&mut self, change: Change, object: Encoded<'_>) -> Result<(), String> {
        if let Some(lease) = &self.pullers_of {
            return self.change_puller(change, object.json()?, lease);
        }
        if let Some(watch) = &mut self.neighbours {
            let (at, change) = (watch.at, watch.change(change, object)?);
            self.shared.change(|view| view.change_neighbours(at, change));
            return Ok(());
        }
        let Some(kind) = self.kind else {
            // The server deletes old events; their warnings stay valid.
            if change == Change::Put {
                let failed_create = FailedCreate::read(object.json()?);
                let failed_create = failed_create.map_err(|error| error.to_string())?;
                self.shared.change(|view| view.report_failed_create(failed_create));
            }
            return Ok(());
        };
        let added = self.snapshot_builder.add_encoded(kind, 0, object);
        added.map_err(|error| error.to_string())?;
        if let Some(error) = self.snapshot_builder.unreadable_record() {
            return Err(error.to_string());
        }
        if let Some(object) = self.snapshot_builder.take_last(kind) {
            self.shared.change(|view| match change {
                Change::Put => view.put(object),
                Change::Gone => view.remove(&object),
            });
        }
        Ok(())
    }
}
