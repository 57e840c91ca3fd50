//! The task behind one watch: follows it, begins it anew when it ends, lists again when it must.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::client::Body;

use super::shared::Shared;
use super::{Complaint, SILENCE};
use crate::cluster::decode::Gathered;
use crate::cluster::list::{self, List};
use crate::cluster::live::Decoder;
use crate::cluster::request::Requests;
use crate::cluster::watch::{self, Change, Feed, Listener, Pauses};
use crate::cluster::{Error, Kind};
use crate::model::{ClusterInfo, Coverage};

/// What one watch needs to go on for ever.
pub(super) struct Task {
    pub(super) requests: Arc<Requests>,
    pub(super) feed: Feed,
    /// How to see everything anew; without it, the watch itself begins with everything.
    pub(super) list: Option<List>,
    pub(super) page_size: u32,
    /// Where the next watch begins; `None` when everything has to be seen anew.
    pub(super) version: Option<String>,
    pub(super) ear: Ear,
}

/// How long a watch must have stood to have been a good one.
const GOOD_LIFE: Duration = Duration::from_secs(1);

impl Task {
    /// Never ends. `opened` is a watch that has begun already.
    pub(super) async fn run(mut self, mut opened: Option<Body>) {
        let seed = self.requests.jitter_seed(self.ear.number);
        let mut pauses = Pauses::new(seed);
        loop {
            let begun = self.ear.shared.clock.now();
            let end = match self.open(opened.take()).await {
                Ok(body) => {
                    self.ear.shared.recovered(self.ear.number);
                    watch::follow(body, &mut self.version, SILENCE, &mut self.ear).await
                }
                Err(end) => end,
            };
            let lived =
                self.ear.shared.last_life(self.ear.number).saturating_sub(begun) >= GOOD_LIFE;
            if lived {
                pauses = Pauses::new(seed);
            }
            let next = watch::next(end, lived);
            if let Some(trouble) = next.trouble {
                self.ear.shared.troubled(self.ear.number, trouble);
            }
            if let Some(asked_for) = next.pause {
                tokio::time::sleep(pauses.pause(asked_for)).await;
            }
            if next.list {
                self.version = None;
                self.list_again(&mut pauses).await;
            }
        }
    }

    async fn open(&self, opened: Option<Body>) -> Result<Body, watch::End> {
        match opened {
            Some(body) => Ok(body),
            None => watch::open(&self.requests, &self.feed, self.version.as_deref()).await,
        }
    }

    /// Lists until it works.
    async fn list_again(&mut self, pauses: &mut Pauses) {
        let Some(list) = self.list.clone() else { return };
        loop {
            let sink = || Decoder::new(&self.requests.server);
            match list::read(&self.requests, &list, self.page_size, &sink).await {
                Ok(decoder) => match self.ear.replace(list.kind, decoder) {
                    Ok(version) => {
                        self.version = version;
                        return;
                    }
                    Err(error) => self.ear.shared.troubled(self.ear.number, error.to_string()),
                },
                Err(error) => self.ear.shared.troubled(self.ear.number, error.to_string()),
            }
            tokio::time::sleep(pauses.pause(Duration::ZERO)).await;
        }
    }
}

/// Decodes what one watch tells, and puts it into the view.
pub(super) struct Ear {
    pub(super) shared: Arc<Shared>,
    /// Which of the watches this is.
    pub(super) number: usize,
    pub(super) server: Arc<str>,
    /// `None` is a watch of events.
    pub(super) kind: Option<Kind>,
    pub(super) gathered: Gathered,
}

impl Ear {
    /// Puts a whole list into the view, and says where the watch after it begins.
    pub(super) fn replace(&self, kind: Kind, decoder: Decoder) -> Result<Option<String>, Error> {
        let Decoder { mut gathered, version, .. } = decoder;
        if let Some(object) = gathered.unreadable_record() {
            return Err(Error::Object { origin: Arc::clone(&self.server), object });
        }
        let coverage = Coverage {
            scope: None,
            managed_fields: true,
            namespaces: false,
            services: false,
            leases: false,
            ledgers: false,
            masked: None,
        };
        let listed = gathered
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

impl Listener for Ear {
    fn life(&mut self) {
        self.shared.life(self.number);
    }

    fn silent(&self) -> Duration {
        self.shared.clock.now().saturating_sub(self.shared.last_life(self.number))
    }

    fn change(&mut self, change: Change, json: &str) -> Result<(), String> {
        let Some(kind) = self.kind else {
            // Events go when they are old; what they say stays true.
            if change == Change::Put {
                let complaint = Complaint::read(json).map_err(|error| error.to_string())?;
                self.shared.change(|view| view.complain(complaint));
            }
            return Ok(());
        };
        self.gathered.add(kind, 0, json).map_err(|error| error.to_string())?;
        if let Some(error) = self.gathered.unreadable_record() {
            return Err(error.to_string());
        }
        if let Some(object) = self.gathered.take_last(kind) {
            self.shared.change(|view| match change {
                Change::Put => view.put(object),
                Change::Gone => view.remove(&object),
            });
        }
        Ok(())
    }
}
