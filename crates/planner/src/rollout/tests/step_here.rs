//! A node in the eyes of the observer of steps.

use jiff::Timestamp;

use daemonset::model::{Node, Pod, PodReadiness};

/// One node, as it was observed.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own about the node")]
pub(super) struct Here<'a> {
    pub node: &'a Node,
    pub is_ready: bool,
    /// Whether it is one of the NotReady nodes that do not count.
    pub is_skipped: bool,
    pub zone: &'a str,
    /// Its pod that neither goes nor was sent a delete.
    pub pod: Option<&'a Pod>,
    /// Whether that pod has the target's image.
    pub is_updated: bool,
    /// Whether its image is neither that of the target nor the last good one.
    pub is_intermediate: bool,
}

impl Here<'_> {
    pub(super) fn is_up(&self) -> bool {
        self.pod.is_some_and(Pod::is_ready)
    }

    /// Whether it counts as down, whatever the cause.
    pub(super) fn is_down(&self) -> bool {
        if self.is_ready { !self.is_up() } else { !self.is_skipped }
    }

    /// Whether the run may count it as down: also if it has just deleted a pod of a NotReady node, or
    /// if the new pod has not been up for so many seconds.
    pub(super) fn may_be_down(&self, min_ready: i64, now: Timestamp) -> bool {
        let is_deleted = !self.is_ready && self.pod.is_none();
        let is_young = self.is_updated && self.up_for(now) < min_ready;
        self.is_down() || is_deleted || is_young
    }

    pub(super) fn has_new(&self) -> bool {
        self.is_updated && self.is_up()
    }

    pub(super) fn is_outdated(&self) -> bool {
        self.pod.is_some() && !self.is_updated
    }

    /// Whether it has an unavailable pod that is neither of the target nor of the last good template:
    /// that may be replaced in any step, and counts for none.
    pub(super) fn is_broken(&self) -> bool {
        self.is_intermediate && !self.is_up()
    }

    /// Seconds for which its pod has been Ready without a restart.
    pub(super) fn up_for(&self, now: Timestamp) -> i64 {
        let Some(pod) = self.pod else { return -1 };
        match pod.readiness {
            PodReadiness::Ready { since: Some(since) } => {
                let changed = pod.containers_changed.unwrap_or(since);
                now.duration_since(since.max(changed).into()).as_secs()
            }
            PodReadiness::Ready { since: None } | PodReadiness::NotReady { .. } => -1,
        }
    }
}
