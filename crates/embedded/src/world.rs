//! A complete cluster on virtual time: the objects of a snapshot behind HTTP, with all actors
//! inside.

use std::time::Duration;

use jiff::Timestamp;

use super::controllers::Controllers;
use super::faults::FaultyApi;
use super::{Server, Store, Timings, UnreadableObject, VirtualClock, load};
use cluster::LiveCluster;
use daemonset::model::{Faults, NamespaceName, Snapshot};

/// Time that the actors inside wait at the start: a client that reads at once sees the snapshot
/// unchanged.
const HEAD_START: Duration = Duration::from_millis(100);

/// The parameters of a rehearsal.
#[derive(Clone, Debug, Default)]
pub struct Rehearsal {
    /// Durations in the cluster.
    pub timings: Timings,
    /// Faults that are injected.
    pub faults: Faults,
    /// Random seed.
    pub seed: u64,
}

/// An embedded cluster that runs until this is dropped.
#[derive(Debug)]
pub struct World {
    server: Server,
    clock: VirtualClock,
    name: Option<String>,
    controllers: tokio::task::JoinHandle<()>,
}

impl World {
    /// Starts the cluster of a snapshot, at its time. Call it on virtual time
    /// ([`super::on_virtual_time`]).
    ///
    /// # Errors
    /// The snapshot contains an object that no server would serve.
    pub fn begin(snapshot: &Snapshot, rehearsal: Rehearsal) -> Result<Self, UnreadableObject> {
        let mut store = Store::new(rehearsal.seed).with_any_priority_class();
        for (kind, object) in load::objects(snapshot) {
            store.load(kind, object)?;
        }
        let mut world = Self::of_store(store, snapshot.observed_at, rehearsal);
        world.name.clone_from(&snapshot.cluster.name);
        Ok(world)
    }

    /// Starts the cluster of these objects, at this time. Call it on virtual time
    /// ([`super::on_virtual_time`]).
    pub fn of_store(mut store: Store, start: Timestamp, rehearsal: Rehearsal) -> Self {
        let Rehearsal { timings, faults, seed } = rehearsal;
        let clock = VirtualClock::starting_at(start);
        let hook = FaultyApi::new(faults.api.clone(), seed, move || clock.elapsed());
        let controllers = Controllers::begin(&mut store, timings, faults, seed, clock.now());
        let server = Server::new(store, move || clock.now());
        server.set_hook(Some(Box::new(hook)));
        let inside = controllers.run(server.clone(), clock);
        let controllers = tokio::spawn(async move {
            tokio::time::sleep(HEAD_START).await;
            inside.await;
        });
        Self { server, clock, name: None, controllers }
    }

    /// A reader of the cluster.
    pub fn cluster(&self) -> LiveCluster {
        self.through(&self.server)
    }

    /// A reader of the cluster as one user, whom hooks and denials can distinguish from others.
    pub fn cluster_of(&self, user: &str) -> LiveCluster {
        self.through(&self.server.as_user(user))
    }

    fn through(&self, server: &Server) -> LiveCluster {
        let namespace = NamespaceName::from("default");
        LiveCluster::embedded(server.client(), self.name.clone(), namespace)
    }

    /// The API server of the cluster.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// The clock of the cluster.
    pub fn clock(&self) -> VirtualClock {
        self.clock
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.controllers.abort();
    }
}

#[cfg(test)]
mod tests;
