//! The source and the cluster that were compared.

use super::markup::{code, few};
use crate::view::Origin;
use daemonset::model::short_commit;
use planner::words::count;

/// Maximum number of paths; the others are counted.
const MOST_PATHS: usize = 5;

/// `` Cluster `prod-eu` ``; the number of nodes if it has no name.
pub(super) fn cluster(origin: &Origin<'_>) -> String {
    match origin.cluster {
        Some(name) => format!("Cluster {}", code(name)),
        None => format!("Cluster of {}", count(origin.nodes, "node")),
    }
}

/// `` `4f2c9e1` in `deploy/prod`; cluster `prod-eu` `v1.36.3`, 412 nodes at `…`. ``
pub(super) fn compared(origin: &Origin<'_>) -> String {
    let shortened = |id| code(short_commit(id));
    let commit = origin.commit.map_or("Plain files".to_owned(), shortened);
    let base = origin.base.map(|id| format!(", since {}", shortened(id)));
    let paths = match origin.paths {
        [] => String::new(),
        paths => format!(" in {}", few(paths.iter(), MOST_PATHS)),
    };
    let names = [origin.cluster, origin.version].into_iter().flatten();
    let names = names.map(|text| format!(" {}", code(text)));
    let recorded = origin.snapshot.map(|file| format!(", as recorded in {}", code(file)));
    format!(
        "{commit}{paths}{}; cluster{}, {}{} at {}.",
        base.unwrap_or_default(),
        names.collect::<String>(),
        count(origin.nodes, "node"),
        recorded.unwrap_or_default(),
        code(origin.observed_at)
    )
}
