//! The live cluster: which lists a snapshot is made of, and what may be missing of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use futures::stream::{self, StreamExt};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::decode::{Gathered, KUBE_SYSTEM};
use super::failure::{Failure, Plugin, Refusal};
use super::list::{self, List, Narrowed, Sink};
use super::request::{Call, Decoding, Requests};
use super::{Error, Kind, RequestCounts, Resource, WritableCluster};
use crate::model::{
    ClusterInfo, Coverage, DesiredDaemonSet, LEDGER_LABEL, ManagedBy, NamespaceName, Pod, Snapshot,
};

/// Objects a page.
const PAGE_SIZE: u32 = 500;

/// What messages call a server that has no address.
const EMBEDDED: &str = "the embedded cluster";

/// Lists that are read at the same time.
const AT_ONCE: usize = 8;

/// Whose pods, DaemonSets and revisions are read.
///
/// Each namespace is listed by itself, however many there are: a user may be permitted some
/// namespaces only, and a list of the whole cluster would bring the pods of all others along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of all namespaces.
    All,
    /// Those of these namespaces.
    Namespaces(BTreeSet<NamespaceName>),
}

impl Scope {
    /// Everything that is listed for it. Namespaces come apart: they can be missing.
    pub(super) fn lists(&self) -> Vec<List> {
        let mut lists = vec![List::all(Kind::Node, None)];
        let is_wanted =
            |kind: &Kind| kind.is_namespaced() && !matches!(kind, Kind::Ledger | Kind::Event);
        for kind in Kind::ALL.into_iter().filter(is_wanted) {
            match self {
                Self::All if kind == Kind::Lease => lists.push(leases_but_those_of_nodes()),
                Self::All => lists.push(List::all(kind, None)),
                Self::Namespaces(names) => {
                    lists.extend(names.iter().map(|name| List::all(kind, Some(name.clone()))));
                }
            }
        }
        lists
    }

    /// The ledgers, of all ConfigMaps.
    fn ledgers(&self) -> Vec<List> {
        let list = |namespace| {
            let labels = format!("{LEDGER_LABEL}=true");
            let narrowed = Narrowed { labels, ..Narrowed::default() };
            List { kind: Kind::Ledger, namespace, narrowed }
        };
        match self {
            Self::All => vec![list(None)],
            Self::Namespaces(names) => names.iter().cloned().map(Some).map(list).collect(),
        }
    }

    /// The warnings about pods, of all events. Not among what a plan reads: a server keeps many,
    /// and looks through all of them each time.
    pub(super) fn pod_warnings(&self) -> Vec<List> {
        let list = |namespace| {
            let fields = "involvedObject.kind=Pod,type=Warning".to_owned();
            let narrowed = Narrowed { fields, ..Narrowed::default() };
            List { kind: Kind::Event, namespace, narrowed }
        };
        match self {
            Self::All => vec![list(None)],
            Self::Namespaces(names) => names.iter().cloned().map(Some).map(list).collect(),
        }
    }

    /// The namespaces, unless it is all of them.
    pub(super) fn namespaces(&self) -> Option<BTreeSet<NamespaceName>> {
        match self {
            Self::All => None,
            Self::Namespaces(names) => Some(names.clone()),
        }
    }

    /// The namespaces to ask for one by one when they cannot be listed.
    fn names(&self) -> BTreeSet<NamespaceName> {
        let mut names = self.namespaces().unwrap_or_default();
        names.insert(KUBE_SYSTEM.into());
        names
    }
}

/// Each kubelet has a lease that it renews every few seconds; none of them is ours.
fn leases_but_those_of_nodes() -> List {
    let fields = "metadata.namespace!=kube-node-lease".to_owned();
    let narrowed = Narrowed { labels: String::new(), fields };
    List { kind: Kind::Lease, namespace: None, narrowed }
}

/// A cluster that can be asked.
pub struct LiveCluster {
    pub(super) requests: Arc<Requests>,
    name: Option<String>,
    default_namespace: NamespaceName,
    pub(super) page_size: u32,
}

/// Whether ledgers are read, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ledgers {
    /// Where something belongs to one, and they may be.
    WhereSeen,
    /// In any case.
    All,
}

/// What several lists brought, each into a sink of its own.
pub(super) struct Lists<S> {
    pub(super) read: Vec<(List, S)>,
    /// Whether all namespaces are among it.
    pub(super) namespaces: bool,
    /// Kinds that a snapshot can do without, of which something is forbidden.
    unread: BTreeSet<Kind>,
    /// Whether the ledgers are among it, or there are none.
    pub(super) ledgers: bool,
    /// The API server's `gitVersion`.
    pub(super) version: Option<String>,
}

impl<S> Lists<S> {
    /// Whether everything of a kind was read.
    pub(super) fn has_all(&self, kind: Kind) -> bool {
        !self.unread.contains(&kind)
    }
}

impl LiveCluster {
    pub(super) fn new(
        requests: Requests,
        name: Option<String>,
        default_namespace: NamespaceName,
    ) -> Self {
        Self { requests: Arc::new(requests), name, default_namespace, page_size: PAGE_SIZE }
    }

    /// The embedded cluster, behind its client.
    pub fn embedded(
        client: kube::Client,
        name: Option<String>,
        default_namespace: NamespaceName,
    ) -> Self {
        let requests = Requests::new(client, Plugin::none(), EMBEDDED.into());
        Self::new(requests.decoding(Decoding::InPlace), name, default_namespace)
    }

    /// The same cluster, read in pages of so many objects instead of 500; 0 is one page for all.
    #[must_use]
    pub fn with_page_size(mut self, objects: u32) -> Self {
        self.page_size = objects;
        self
    }

    /// The same cluster, to be written to: only `ds-apply` asks for it.
    pub fn writable(self) -> WritableCluster {
        WritableCluster::new(self)
    }

    /// How many requests were sent so far.
    pub fn request_counts(&self) -> RequestCounts {
        self.requests.counts()
    }

    /// The server's clock now, reckoned from its answers: at most a second or so behind; where
    /// several API servers disagree, the earlier one. `None` when none has told the time.
    pub fn server_time(&self) -> Option<Timestamp> {
        self.requests.server_time()
    }

    /// How much the clocks of the API servers differ, if it is more than some seconds.
    pub fn clocks_differ(&self) -> Option<SignedDuration> {
        self.requests.clocks_differ()
    }

    /// The namespace that the kubeconfig's context or the service account names, else `default`.
    pub fn default_namespace(&self) -> &NamespaceName {
        &self.default_namespace
    }

    /// The cluster's name in the kubeconfig; a service account has none for it.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Reads the cluster. `now` is the local clock, for a server that does not say what time it is.
    /// Ledgers are read where revisions belong to one, if they may be: most clusters have none.
    ///
    /// # Errors
    /// The server cannot be reached or trusted, does not answer in time, or refuses. Everything
    /// that the user may not list is in one error.
    pub async fn snapshot(&self, scope: &Scope, now: Timestamp) -> Result<Snapshot, Error> {
        self.read(scope, Ledgers::WhereSeen, now).await
    }

    /// As [`snapshot`](Self::snapshot), for a plan of these DaemonSets: with the ledgers in any
    /// case, if one of them is to have one.
    ///
    /// # Errors
    /// As there, and that ConfigMaps may not be listed.
    pub async fn snapshot_for(
        &self,
        desired: &[DesiredDaemonSet],
        scope: &Scope,
        now: Timestamp,
    ) -> Result<Snapshot, Error> {
        let any = desired.iter().any(|one| one.managed_by == ManagedBy::DsApply);
        let ledgers = if any { Ledgers::All } else { Ledgers::WhereSeen };
        self.read(scope, ledgers, now).await
    }

    /// Adds to pods that are not Ready, and of which `wanted` says so, the last warning event about
    /// each. Worth having only: whoever may not list events, or cannot, goes without.
    pub async fn tell_warnings(&self, pods: &mut [Pod], wanted: impl Fn(&Pod) -> bool) {
        let unready = |pod: &&Pod| !pod.is_ready() && !pod.terminating && wanted(pod);
        let asked = pods.iter().filter(unready);
        let namespaces: BTreeSet<_> = asked.map(|pod| pod.namespace.clone()).collect();
        if namespaces.is_empty() {
            return;
        }
        let sink = || Decoder::new(&self.requests.server);
        match self.read_all(Scope::Namespaces(namespaces).pod_warnings(), &sink).await {
            Ok(read) => {
                for (_, decoder) in read {
                    decoder.gathered.tell_warnings(pods);
                }
            }
            Err(error) => tracing::debug!(%error, "warnings about pods cannot be read"),
        }
    }

    async fn read(
        &self,
        scope: &Scope,
        ledgers: Ledgers,
        now: Timestamp,
    ) -> Result<Snapshot, Error> {
        let lists = self.lists(scope, ledgers, || Decoder::new(&self.requests.server)).await?;
        let coverage = Coverage {
            scope: scope.namespaces(),
            managed_fields: true,
            namespaces: lists.namespaces,
            services: lists.has_all(Kind::Service),
            leases: lists.has_all(Kind::Lease),
            ledgers: lists.ledgers,
            masked: None,
        };
        let mut gathered = Gathered::default();
        for (_, decoder) in lists.read {
            gathered.absorb(decoder.gathered);
        }
        let cluster = ClusterInfo {
            name: self.name.clone(),
            uid: gathered.kube_system.clone(),
            version: lists.version,
            file: None,
        };
        let observed_at = self.requests.server_clock().unwrap_or(now);
        gathered.into_snapshot(cluster, observed_at, coverage).map_err(|(kind, name)| {
            Error::Duplicate { origin: self.requests.server.clone(), kind, name }
        })
    }

    /// Reads everything of `scope`, several lists at once, each into a sink that `sink` makes.
    pub(super) async fn lists<S: Sink>(
        &self,
        scope: &Scope,
        ledgers: Ledgers,
        sink: impl Fn() -> S,
    ) -> Result<Lists<S>, Error> {
        let mut wanted = scope.lists();
        if ledgers == Ledgers::All {
            wanted.extend(scope.ledgers());
        }
        let (version, (of_namespaces, namespaces), mut read) = futures::try_join!(
            self.version(),
            self.namespaces(scope, &sink),
            self.read_all(wanted.clone(), &sink),
        )?;
        let is_read = |wanted: &List| read.iter().any(|(list, _)| list == wanted);
        let unread = wanted.iter().filter(|list| !is_read(list)).map(|list| list.kind).collect();
        let mut known = true;
        if ledgers == Ledgers::WhereSeen && read.iter().any(|(_, sink)| sink.has_seen_ledger()) {
            match self.read_all(scope.ledgers(), &sink).await {
                Ok(found) => read.extend(found),
                Err(Error::Forbidden { .. }) => known = false,
                Err(error) => return Err(error),
            }
        }
        read.push(of_namespaces);
        read.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(Lists { read, namespaces, unread, ledgers: known, version })
    }

    /// Reads lists, and says of all at once which ones are forbidden. Forbidden ones that a
    /// snapshot can do without are left out.
    pub(super) async fn read_all<S: Sink>(
        &self,
        lists: Vec<List>,
        sink: &impl Fn() -> S,
    ) -> Result<Vec<(List, S)>, Error> {
        let mut results = stream::iter(lists)
            .map(|list| async {
                match list::read(&self.requests, &list, self.page_size, sink).await {
                    Ok(sink) => Ok(Some((list, sink))),
                    Err(Error::Forbidden { .. }) if list.kind.is_optional() => Ok(None),
                    Err(error) => Err(error),
                }
            })
            .buffer_unordered(AT_ONCE);
        let mut read = Vec::new();
        let mut missing = Vec::new();
        let mut first_message = None;
        while let Some(result) = results.next().await {
            match result {
                Ok(list) => read.extend(list),
                Err(Error::Forbidden { missing: more, message }) => {
                    missing.extend(more);
                    first_message.get_or_insert(message);
                }
                Err(error) => return Err(error),
            }
        }
        missing.sort();
        match first_message {
            Some(message) => Err(Error::Forbidden { missing, message }),
            None => Ok(read),
        }
    }

    /// All namespaces; or those in question, one by one, when they cannot be listed; or none.
    async fn namespaces<S: Sink>(
        &self,
        scope: &Scope,
        sink: &impl Fn() -> S,
    ) -> Result<((List, S), bool), Error> {
        let list = List::all(Kind::Namespace, None);
        match list::read(&self.requests, &list, self.page_size, sink).await {
            Ok(sink) => return Ok(((list, sink), true)),
            Err(Error::Forbidden { .. }) => {}
            Err(error) => return Err(error),
        }
        let mut sink = sink();
        for (index, name) in scope.names().into_iter().enumerate() {
            let path = format!("{}/{name}", Kind::Namespace.path(None));
            let call = Call::get(Resource::Of(Kind::Namespace), path);
            match self.requests.send(&call).await {
                Ok(body) => {
                    let json = String::from_utf8_lossy(&body);
                    sink.object(Kind::Namespace, index, &json)?;
                }
                // Forbidden as well, or not there.
                Err(Failure::Status(Refusal { code: 403 | 404, .. })) => {}
                Err(failure) => return Err(self.requests.error(failure, &call)),
            }
        }
        Ok(((list, sink), false))
    }

    /// The server's `gitVersion`, unless it does not tell this user.
    async fn version(&self) -> Result<Option<String>, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Version {
            git_version: String,
        }
        let call = Call::get(Resource::Version, "/version");
        match self.requests.send(&call).await {
            Ok(body) => match serde_json::from_slice::<Version>(&body) {
                Ok(version) => Ok(Some(version.git_version)),
                Err(error) => {
                    Err(Error::NotAnAnswer { request: call.to_string(), reason: error.to_string() })
                }
            },
            Err(Failure::Status(Refusal { code: 403 | 404, .. })) => Ok(None),
            Err(failure) => Err(self.requests.error(failure, &call)),
        }
    }
}

/// Decodes each object as it comes.
pub(super) struct Decoder {
    server: Arc<str>,
    pub(super) gathered: Gathered,
    /// The moment of the list.
    pub(super) version: Option<String>,
}

impl Decoder {
    pub(super) fn new(server: &Arc<str>) -> Self {
        Self { server: Arc::clone(server), gathered: Gathered::default(), version: None }
    }
}

impl Sink for Decoder {
    fn object(&mut self, kind: Kind, index: usize, json: &str) -> Result<(), Error> {
        self.gathered
            .add(kind, index, json)
            .map_err(|object| Error::Object { origin: self.server.clone(), object })
    }

    fn version(&mut self, version: &str) {
        self.version = Some(version.to_owned());
    }

    fn has_seen_ledger(&self) -> bool {
        self.gathered.has_seen_ledger()
    }
}
