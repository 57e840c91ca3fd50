//! The other pods that the checks of a policy look at: one list and one watch of the whole cluster for
//! each selector, never one for each node. Of a page, only the pods that are wanted are kept.

use std::sync::Arc;

use crate::decode::{ObjectError, read_neighbour};
use crate::list::{self, Encoded, List, Narrowed, Sink};
use crate::request::Accept;
use crate::watch::Change;
use crate::{Error, Kind, LiveCluster};
use daemonset::model::{Interner, Neighbour, NeighbourQuery, Neighbours};

use super::feeds::label_selector;

/// Pods that have ended are of no interest, and there may be many of them.
const NOT_ENDED: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// The list of a query.
pub(super) fn list_of(query: &NeighbourQuery) -> List {
    let narrowed =
        Narrowed { labels: label_selector(&query.selector), fields: NOT_ENDED.to_owned() };
    List { kind: Kind::Pod, namespace: None, narrowed }
}

/// Receives the pods of one list.
pub(super) struct NeighbourSink {
    server: Arc<str>,
    query: NeighbourQuery,
    interner: Interner,
    pods: Vec<Neighbour>,
    version: Option<String>,
}

impl NeighbourSink {
    pub(super) fn new(server: &Arc<str>, query: &NeighbourQuery) -> Self {
        Self {
            server: Arc::clone(server),
            query: query.clone(),
            interner: Interner::default(),
            pods: Vec::new(),
            version: None,
        }
    }

    /// The pods, and the version where a watch continues.
    pub(super) fn finish(self) -> (Neighbours, Option<String>) {
        (Neighbours::of(self.query, self.pods), self.version)
    }
}

impl Sink for NeighbourSink {
    /// Always JSON, as the watch that follows.
    fn accepts(_kind: Kind) -> Accept {
        Accept::Json
    }

    fn object(&mut self, kind: Kind, index: usize, object: Encoded<'_>) -> Result<(), Error> {
        let read = match object {
            Encoded::Json(json) => read_neighbour(json, &self.query, &mut self.interner),
            Encoded::Protobuf(_) => Err("is protobuf instead of JSON".to_owned()),
        };
        let (pod, is_wanted) = read.map_err(|reason| Error::Object {
            origin: Arc::clone(&self.server),
            object: ObjectError { kind, index, name: None, path: String::new(), reason },
        })?;
        self.pods.extend(is_wanted.then_some(pod));
        Ok(())
    }

    /// Only pages of protobuf are decoded apart, of which this keeps no objects.
    fn append(&mut self, page: Self) {
        debug_assert!(page.pods.is_empty(), "an object of protobuf is an error");
    }

    fn has_seen_record(&self) -> bool {
        false
    }

    fn version(&mut self, version: &str) {
        self.version = Some(version.to_owned());
    }
}

impl LiveCluster {
    /// The pods of the whole cluster that checks look at, as they are now.
    ///
    /// # Errors
    /// They cannot be listed: among others, without permission for the whole cluster.
    pub async fn neighbours(&self, queries: &[NeighbourQuery]) -> Result<Vec<Neighbours>, Error> {
        let mut all = Vec::with_capacity(queries.len());
        for query in queries {
            all.push(self.neighbours_of(query).await?.0);
        }
        Ok(all)
    }

    pub(super) async fn neighbours_of(
        &self,
        query: &NeighbourQuery,
    ) -> Result<(Neighbours, Option<String>), Error> {
        let sink = || NeighbourSink::new(&self.requests.server, query);
        let read = list::read(&self.requests, &list_of(query), self.page_size, &sink).await?;
        Ok(read.finish())
    }
}

/// The watch of a query: where its pods are in the view.
pub(super) struct NeighbourWatch {
    pub(super) at: usize,
    pub(super) query: NeighbourQuery,
    interner: Interner,
}

impl NeighbourWatch {
    pub(super) fn new(at: usize, query: NeighbourQuery) -> Self {
        Self { at, query, interner: Interner::default() }
    }

    /// Applies one event; returns whether that changed anything.
    pub(super) fn change(
        &mut self,
        change: Change,
        json: &str,
    ) -> Result<impl FnOnce(&mut Neighbours) -> bool + use<>, String> {
        let (pod, is_wanted) = read_neighbour(json, &self.query, &mut self.interner)?;
        Ok(move |known: &mut Neighbours| match (change, is_wanted) {
            (Change::Put, true) => known.put(pod),
            (Change::Put, false) | (Change::Gone, _) => known.remove(&pod),
        })
    }
}
