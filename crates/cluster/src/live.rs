//! The live cluster: the lists of a snapshot, and which of them are optional.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

use futures::stream::{self, StreamExt};
use jiff::{SignedDuration, Timestamp};
use serde::Deserialize;

use super::decode::{Encoded, KUBE_SYSTEM, SnapshotBuilder};
use super::failure::{Failure, Plugin, Refusal};
use super::list::{self, List, Narrowed, Sink};
use super::request::{Accept, Call, Decoding, Requests};
use super::{Error, Kind, RequestCounts, Resource};
use daemonset::model::{
    ClusterInfo, Coverage, DesiredDaemonSet, ManagedBy, NamespaceName, Pod, Snapshot,
};

/// The objects per page.
const PAGE_SIZE: u32 = 500;

/// The name of a server without an address, for messages.
const EMBEDDED: &str = "the embedded cluster";

/// The number of lists read concurrently; `Requests` limits their pages.
pub(super) const AT_ONCE: NonZeroUsize = NonZeroUsize::new(8).unwrap();

/// The namespaces whose objects are read.
///
/// Each namespace is listed separately, however many there are: a user may be permitted only some
/// namespaces, and a list of the whole cluster would include the pods of all others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All namespaces.
    All,
    /// Only these namespaces.
    Namespaces(BTreeSet<NamespaceName>),
}

impl Scope {
    /// The lists to read, without Namespaces, which may be forbidden. Nodes and pods come after
    /// DaemonSets and revisions: how fast those are answered decides whether pages are compressed.
    pub(super) fn lists(&self) -> Vec<List> {
        let mut lists = Vec::new();
        let is_wanted = |kind: &Kind| {
            kind.is_namespaced() && !matches!(kind, Kind::DaemonSetRecord | Kind::Event)
        };
        for kind in Kind::ALL.into_iter().filter(is_wanted) {
            if kind == Kind::Pod {
                lists.push(List::all(Kind::Node, None));
            }
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

    /// The lists of records.
    fn records(&self) -> Vec<List> {
        match self {
            Self::All => vec![List::records(None)],
            Self::Namespaces(names) => names.iter().cloned().map(Some).map(List::records).collect(),
        }
    }

    /// The lists of warning events about pods. A plan does not read them by default: a server
    /// stores many events and scans all of them for each list.
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

    /// The namespaces; `None` is all of them.
    pub(super) fn namespaces(&self) -> Option<BTreeSet<NamespaceName>> {
        match self {
            Self::All => None,
            Self::Namespaces(names) => Some(names.clone()),
        }
    }

    /// The namespaces to read one by one when they cannot be listed.
    fn names(&self) -> BTreeSet<NamespaceName> {
        let mut names = self.namespaces().unwrap_or_default();
        names.insert(KUBE_SYSTEM.into());
        names
    }
}

/// All leases except those of kubelets: they are many, change every few seconds and are never
/// locks.
fn leases_but_those_of_nodes() -> List {
    let fields = "metadata.namespace!=kube-node-lease".to_owned();
    let narrowed = Narrowed { labels: String::new(), fields };
    List { kind: Kind::Lease, namespace: None, narrowed }
}

/// A client that reads a live cluster. Clones share its connections.
#[derive(Clone)]
pub struct LiveCluster {
    pub(super) requests: Arc<Requests>,
    name: Option<String>,
    default_namespace: NamespaceName,
    pub(super) page_size: u32,
}

/// Whether records are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Records {
    /// If a revision is owned by one, and the user may list them.
    WhereSeen,
    /// Always; an error if the user may not list them.
    All,
}

/// The results of several lists, each with its own sink.
pub(super) struct Lists<S> {
    pub(super) read: Vec<(List, S)>,
    /// Whether all namespaces were read.
    pub(super) namespaces: bool,
    /// The optional kinds that the user may not list.
    unread: BTreeSet<Kind>,
    /// Whether the records were read, or there are none.
    pub(super) records: bool,
    /// The API server's `gitVersion`.
    pub(super) version: Option<String>,
}

impl<S> Lists<S> {
    /// Whether all objects of a kind were read.
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

    /// The embedded cluster, accessed by its client.
    pub fn embedded(
        client: kube::Client,
        name: Option<String>,
        default_namespace: NamespaceName,
    ) -> Self {
        let requests = Requests::new(client, Plugin::none(), EMBEDDED.into());
        let requests = requests.decoding(Decoding::InPlace).with_concurrency(AT_ONCE);
        Self::new(requests, name, default_namespace)
    }

    /// Sets the number of objects per page, 500 by default; 0 is no limit.
    #[must_use]
    pub fn with_page_size(mut self, objects: u32) -> Self {
        self.page_size = objects;
        self
    }

    /// The number of requests sent so far.
    pub fn request_counts(&self) -> RequestCounts {
        self.requests.counts()
    }

    /// The server's time now, estimated from its answers: at most about a second behind. Where
    /// several API servers disagree, the earlier time. `None` before the first answer.
    pub fn server_time(&self) -> Option<Timestamp> {
        self.requests.server_time()
    }

    /// The difference between the clocks of the API servers, if it is more than some seconds.
    pub fn clocks_differ(&self) -> Option<SignedDuration> {
        self.requests.clocks_differ()
    }

    /// The namespace of the kubeconfig's context or of the service account, else `default`.
    pub fn default_namespace(&self) -> &NamespaceName {
        &self.default_namespace
    }

    /// The cluster's name in the kubeconfig; `None` with a service account.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Reads the cluster. `now` is the local time, for a server that sends no `Date`. Records are
    /// read only if a revision is owned by one and the user may list them: most clusters have none.
    ///
    /// # Errors
    /// The server cannot be reached or trusted, does not answer in time, or refuses. All missing
    /// permissions are in one error.
    pub async fn snapshot(&self, scope: &Scope, now: Timestamp) -> Result<Snapshot, Error> {
        self.read(scope, Records::WhereSeen, now).await
    }

    /// As [`snapshot`](Self::snapshot), for a plan of these DaemonSets. Always reads the records if
    /// one of the DaemonSets is managed by `ds-apply`, and looks up the PriorityClasses that they
    /// name.
    ///
    /// # Errors
    /// As [`snapshot`](Self::snapshot), or the user may not list ConfigMaps.
    pub async fn snapshot_for(
        &self,
        desired: &[DesiredDaemonSet],
        scope: &Scope,
        now: Timestamp,
    ) -> Result<Snapshot, Error> {
        let any = desired.iter().any(|one| one.managed_by == ManagedBy::DsApply);
        let records = if any { Records::All } else { Records::WhereSeen };
        let mut snapshot = self.read(scope, records, now).await?;
        let named = desired.iter().filter_map(|one| one.spec.template.needed_priority_class());
        snapshot.priority_classes =
            self.priority_classes(named.map(str::to_owned).collect()).await?;
        Ok(snapshot)
    }

    /// Adds the last warning event to each pod that is not Ready and `wanted`. Best effort: without
    /// permission to list events, or on an error, nothing is added.
    pub async fn report_warnings(&self, pods: &mut [Pod], wanted: impl Fn(&Pod) -> bool) {
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
                    decoder.snapshot_builder.report_warnings(pods);
                }
            }
            Err(error) => tracing::debug!(%error, "cannot list the warning events of pods"),
        }
    }

    async fn read(
        &self,
        scope: &Scope,
        records: Records,
        now: Timestamp,
    ) -> Result<Snapshot, Error> {
        let lists = self.lists(scope, records, || Decoder::new(&self.requests.server)).await?;
        let coverage = Coverage {
            scope: scope.namespaces(),
            managed_fields: true,
            namespaces: lists.namespaces,
            services: lists.has_all(Kind::Service),
            leases: lists.has_all(Kind::Lease),
            records: lists.records,
            masked: None,
        };
        let mut snapshot_builder = SnapshotBuilder::default();
        for (_, decoder) in lists.read {
            snapshot_builder.merge(decoder.snapshot_builder);
        }
        let cluster = ClusterInfo {
            name: self.name.clone(),
            uid: snapshot_builder.kube_system.clone(),
            version: lists.version,
            file: None,
        };
        let observed_at = self.requests.server_clock().unwrap_or(now);
        snapshot_builder.into_snapshot(cluster, observed_at, coverage).map_err(|(kind, name)| {
            Error::Duplicate { origin: self.requests.server.clone(), kind, name }
        })
    }

    /// Reads all lists of `scope` concurrently, each into its own `sink()`.
    pub(super) async fn lists<S: Sink>(
        &self,
        scope: &Scope,
        records: Records,
        sink: impl Fn() -> S + Sync,
    ) -> Result<Lists<S>, Error> {
        let mut wanted = scope.lists();
        if records == Records::All {
            wanted.extend(scope.records());
        }
        let (version, (of_namespaces, namespaces), mut read) = futures::try_join!(
            self.version(),
            self.namespaces(scope, &sink),
            self.read_all(wanted.clone(), &sink),
        )?;
        let is_read = |wanted: &List| read.iter().any(|(list, _)| list == wanted);
        let unread = wanted.iter().filter(|list| !is_read(list)).map(|list| list.kind).collect();
        let mut known = true;
        if records == Records::WhereSeen && read.iter().any(|(_, sink)| sink.has_seen_record()) {
            match self.read_all(scope.records(), &sink).await {
                Ok(found) => read.extend(found),
                Err(Error::Forbidden { .. }) => known = false,
                Err(error) => return Err(error),
            }
        }
        read.push(of_namespaces);
        read.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(Lists { read, namespaces, unread, records: known, version })
    }

    /// Reads lists concurrently, and reports all forbidden ones in one error. Forbidden lists of
    /// optional kinds are left out.
    pub(super) async fn read_all<S: Sink>(
        &self,
        lists: Vec<List>,
        sink: &(impl Fn() -> S + Sync),
    ) -> Result<Vec<(List, S)>, Error> {
        let mut results = stream::iter(lists)
            .map(|list| async {
                match list::read(&self.requests, &list, self.page_size, sink).await {
                    Ok(sink) => Ok(Some((list, sink))),
                    Err(Error::Forbidden { .. }) if list.kind.is_optional() => Ok(None),
                    Err(error) => Err(error),
                }
            })
            .buffer_unordered(AT_ONCE.get());
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

    /// Lists the namespaces; if that is forbidden, reads those of `scope` one by one, as far as
    /// permitted. Returns whether all were read.
    async fn namespaces<S: Sink>(
        &self,
        scope: &Scope,
        sink: &(impl Fn() -> S + Sync),
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
                    sink.object(Kind::Namespace, index, Encoded::Json(&json))?;
                }
                // Forbidden as well, or does not exist.
                Err(Failure::Status(Refusal { code: 403 | 404, .. })) => {}
                Err(failure) => return Err(self.requests.error(failure, &call)),
            }
        }
        Ok(((list, sink), false))
    }

    /// The server's `gitVersion`; `None` if the user may not read it.
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

/// A sink that decodes each object at once.
pub(super) struct Decoder {
    server: Arc<str>,
    pub(super) snapshot_builder: SnapshotBuilder,
    /// The resource version of the list.
    pub(super) version: Option<String>,
}

impl Decoder {
    pub(super) fn new(server: &Arc<str>) -> Self {
        Self {
            server: Arc::clone(server),
            snapshot_builder: SnapshotBuilder::default(),
            version: None,
        }
    }
}

impl Sink for Decoder {
    fn accepts(kind: Kind) -> Accept {
        Accept::of(kind)
    }

    fn object(&mut self, kind: Kind, index: usize, object: Encoded<'_>) -> Result<(), Error> {
        let added = self.snapshot_builder.add_encoded(kind, index, object);
        added.map_err(|object| Error::Object { origin: self.server.clone(), object })
    }

    fn append(&mut self, page: Self) {
        self.snapshot_builder.merge(page.snapshot_builder);
    }

    fn version(&mut self, version: &str) {
        self.version = Some(version.to_owned());
    }

    fn has_seen_record(&self) -> bool {
        self.snapshot_builder.has_seen_record()
    }
}
