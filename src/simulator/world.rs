//! A whole cluster on virtual time: the objects of a snapshot behind HTTP, with everybody who acts
//! on them from inside.

use std::time::Duration;

use super::controllers::Controllers;
use super::faults::FaultyApi;
use super::{Server, Store, Timings, UnreadableObject, VirtualClock, load};
use crate::cluster::LiveCluster;
use crate::model::{Faults, NamespaceName, Snapshot};

/// How long everybody inside waits at the beginning: who looks at once sees the snapshot as it was.
const HEAD_START: Duration = Duration::from_millis(100);

/// What a cluster is rehearsed with.
#[derive(Clone, Debug, Default)]
pub struct Rehearsal {
    /// How long things take.
    pub timings: Timings,
    /// What goes wrong.
    pub faults: Faults,
    /// Where all chance comes from.
    pub seed: u64,
}

/// An embedded cluster that lives as long as this.
#[derive(Debug)]
pub struct World {
    server: Server,
    clock: VirtualClock,
    name: Option<String>,
    controllers: tokio::task::JoinHandle<()>,
}

impl World {
    /// The cluster of a snapshot, at its moment. To be called on virtual time
    /// ([`super::on_virtual_time`]).
    ///
    /// # Errors
    /// The snapshot holds what no server would serve.
    pub fn begin(snapshot: &Snapshot, rehearsal: Rehearsal) -> Result<Self, UnreadableObject> {
        let Rehearsal { timings, faults, seed } = rehearsal;
        let clock = VirtualClock::starting_at(snapshot.observed_at);
        let mut store = Store::new(seed);
        for (kind, object) in load::objects(snapshot) {
            store.load(kind, object)?;
        }
        let hook = FaultyApi::new(faults.api.clone(), seed, move || clock.elapsed());
        let controllers = Controllers::begin(&mut store, timings, faults, seed, clock.now());
        let server = Server::new(store, move || clock.now());
        server.set_hook(Some(Box::new(hook)));
        let inside = controllers.run(server.clone(), clock);
        let controllers = tokio::spawn(async move {
            tokio::time::sleep(HEAD_START).await;
            inside.await;
        });
        Ok(Self { server, clock, name: snapshot.cluster.name.clone(), controllers })
    }

    /// The cluster as anybody reads one.
    pub fn cluster(&self) -> LiveCluster {
        self.through(&self.server)
    }

    /// The cluster as one user reads it, who is told apart from others by hooks and denials.
    pub fn cluster_of(&self, user: &str) -> LiveCluster {
        self.through(&self.server.as_user(user))
    }

    fn through(&self, server: &Server) -> LiveCluster {
        let namespace = NamespaceName::from("default");
        LiveCluster::embedded(server.client(), self.name.clone(), namespace)
    }

    /// Its API.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Its clock.
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
