//! The other pods that the checks of a policy look at: one list and one watch of the whole cluster for
//! each selector, never one for each node. Of a page, only the pods that are wanted are kept.

use crate::decode::{Encoded, read_neighbour};
use crate::list::{self, List, Narrowed};
use crate::request::{Accept, Requests};
use crate::watch::Change;
use crate::{Error, Kind, LiveCluster};
use daemonset::model::{Interner, Neighbour, NeighbourQuery, Neighbours};

use super::feeds::label_selector;
use super::picked::{Pick, PickedPods};

/// Pods that have ended are of no interest, and there may be many of them.
const NOT_ENDED: &str = "status.phase!=Succeeded,status.phase!=Failed";

/// The list of a query.
pub(super) fn list_of(query: &NeighbourQuery) -> List {
    let narrowed =
        Narrowed { labels: label_selector(&query.selector), fields: NOT_ENDED.to_owned() };
    List { kind: Kind::Pod, namespace: None, narrowed }
}

/// Keeps the pods that a query wants.
struct Wanted {
    query: NeighbourQuery,
    interner: Interner,
}

impl Pick for Wanted {
    type Pod = Neighbour;

    const ACCEPTS: Accept = Accept::Protobuf;

    fn pick(&mut self, pod: Encoded<'_>) -> Result<Option<Neighbour>, String> {
        let (pod, is_wanted) = read_neighbour(pod, &self.query, &mut self.interner)?;
        Ok(is_wanted.then_some(pod))
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
        let requests = &self.requests;
        read(requests, &list_of(query), self.page_size, query).await
    }
}

/// Reads the list of a query; returns its pods, and the version where a watch continues.
pub(super) async fn read(
    requests: &Requests,
    list: &List,
    page_size: u32,
    query: &NeighbourQuery,
) -> Result<(Neighbours, Option<String>), Error> {
    let wanted = || Wanted { query: query.clone(), interner: Interner::default() };
    let sink = || PickedPods::new(&requests.server, wanted());
    let (pods, version) = list::read(requests, list, page_size, &sink).await?.finish();
    Ok((Neighbours::of(query.clone(), pods), version))
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
        pod: Encoded<'_>,
    ) -> Result<impl FnOnce(&mut Neighbours) -> bool + use<>, String> {
        let (pod, is_wanted) = read_neighbour(pod, &self.query, &mut self.interner)?;
        Ok(move |known: &mut Neighbours| match (change, is_wanted) {
            (Change::Put, true) => known.put(pod),
            (Change::Put, false) | (Change::Gone, _) => known.remove(&pod),
        })
    }
}
