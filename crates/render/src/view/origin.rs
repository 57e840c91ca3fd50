//! Where the manifests come from, and the cluster that they are compared with.

use jiff::Timestamp;

use daemonset::model::short_commit;
use planner::plan::{ClusterSummary, SourceInfo};
use planner::words::{count, grouped};

/// Maximum number of paths or names in a sentence; the others are counted.
const MOST_NAMES: usize = 5;

/// Origin of the manifests, and the observed cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin<'a> {
    /// Number of DaemonSets that were compared.
    pub daemon_sets: usize,
    /// URL of the repository.
    pub repository: Option<&'a str>,
    /// Commit of the manifests; `None` for plain files.
    pub commit: Option<&'a str>,
    /// Merge base of the pull request.
    pub base: Option<&'a str>,
    /// Paths of the manifests.
    pub paths: &'a [String],
    /// Name of the cluster.
    pub cluster: Option<&'a str>,
    /// Version of its API server.
    pub version: Option<&'a str>,
    /// Number of its nodes.
    pub nodes: u32,
    /// When it was observed.
    pub observed_at: Timestamp,
    /// The file of a recorded snapshot; `None` for a live cluster.
    pub snapshot: Option<&'a str>,
}

impl<'a> Origin<'a> {
    pub(crate) fn of(
        source: &'a SourceInfo,
        cluster: &'a ClusterSummary,
        daemon_sets: usize,
    ) -> Self {
        let SourceInfo { repository, commit, base, paths, .. } = source;
        let ClusterSummary { name, uid: _, version, observed_at, nodes, snapshot, zones: _ } =
            cluster;
        Self {
            daemon_sets,
            repository: repository.as_deref(),
            commit: commit.as_deref(),
            base: base.as_deref(),
            paths,
            cluster: name.as_deref(),
            version: version.as_deref(),
            nodes: *nodes,
            observed_at: *observed_at,
            snapshot: snapshot.as_deref(),
        }
    }

    /// `2 DaemonSets at 4f2c9e1 in deploy/prod`; whole ids and the repository if `verbose`.
    pub(crate) fn source_words(&self, verbose: bool) -> String {
        format!("{}{}", count(self.daemon_sets, "DaemonSet"), self.place_words(verbose))
    }

    /// ` at 4f2c9e1 in deploy/prod`: as [`source_words`](Self::source_words), without the number.
    pub(crate) fn place_words(&self, verbose: bool) -> String {
        let shortened = |id: &str| if verbose { id.to_owned() } else { short_commit(id) };
        let [commit, base] = [self.commit, self.base].map(|id| id.map(shortened));
        let paths = (!self.paths.is_empty()).then(|| some_of(self.paths.to_vec(), verbose));
        let repository = self.repository.filter(|_| verbose).map(str::to_owned);
        let words = [(" at ", commit), (" in ", paths), (" of ", repository), (", since ", base)];
        let words = words.into_iter().filter_map(|(word, what)| Some(format!("{word}{}", what?)));
        words.collect()
    }

    /// `Cluster prod-eu`; the number of nodes if it has no name.
    pub(crate) fn cluster_name(&self) -> String {
        let nodes = || format!("Cluster of {}", count(self.nodes, "node"));
        self.cluster.map_or_else(nodes, |name| format!("Cluster {name}"))
    }

    /// `cluster prod-eu v1.36.3, 412 nodes`.
    pub(crate) fn cluster_words(&self) -> String {
        let Self { cluster, version, nodes, observed_at, snapshot, .. } = *self;
        let words = [Some("cluster"), cluster, version].into_iter().flatten();
        let words = words.collect::<Vec<_>>().join(" ");
        let recorded = snapshot.map(|file| format!(", as recorded in {file} at {observed_at}"));
        format!("{words}, {}{}", count(nodes, "node"), recorded.unwrap_or_default())
    }
}

/// The first of `names`, and the number of the others; all of them if `verbose`.
pub(crate) fn some_of(names: Vec<String>, verbose: bool) -> String {
    let all = verbose || names.len() == MOST_NAMES + 1;
    let most = if all { names.len() } else { MOST_NAMES };
    few(names.into_iter(), most)
}

/// At most `most` of `names`, and the number of the others.
pub(crate) fn few(names: impl ExactSizeIterator<Item = String>, most: usize) -> String {
    let total = names.len();
    let shown: Vec<String> = names.take(most).collect();
    match total - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {} more", shown.join(", "), grouped(more)),
    }
}
