//! The desired nodes as they are at one moment.

use daemonset::controller::placement::judge;
use daemonset::model::{DaemonSet, Node, Pod};
use embedded::{Kind, Store};
use jiff::{SignedDuration, Timestamp};

use crate::rules::ZONE;

/// One desired node, as it is.
pub(super) struct Here<'a> {
    pub(super) node: &'a Node,
    /// Whether the program must know that it is Ready.
    pub(super) is_ready: bool,
    pub(super) zone: &'a str,
    /// Its pod that neither goes nor was sent a delete.
    pub(super) pod: Option<&'a Pod>,
    /// The image of that pod.
    pub(super) image: Option<u32>,
    pub(super) is_updated: bool,
}

impl Here<'_> {
    pub(super) fn is_up(&self) -> bool {
        self.pod.is_some_and(Pod::is_ready)
    }

    pub(super) fn has_new(&self) -> bool {
        self.is_updated && self.is_up()
    }

    pub(super) fn is_outdated(&self) -> bool {
        self.pod.is_some() && !self.is_updated
    }

    /// The time for which its pod has been up.
    pub(super) fn up_for(&self, now: Timestamp) -> SignedDuration {
        let since = self.pod.and_then(Pod::up_since);
        since.map_or(SignedDuration::MIN, |since| since.duration_until(now))
    }
}

/// The desired nodes, for as long as the store.
pub(super) fn desired_nodes_of<'s>(live: &DaemonSet, store: &'s Store) -> Vec<&'s Node> {
    let all = store.objects(Kind::Node, None).filter_map(|it| it.node());
    all.filter(|node| judge(&live.spec.template.placement, node).may_start).collect()
}

pub(super) fn zone_of(node: &Node) -> &str {
    node.labels.get(ZONE).unwrap_or_default()
}
