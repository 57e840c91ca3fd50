//! One sync of one DaemonSet, in upstream's order (`syncDaemonSet`, `updateDaemonSet`).
//!
//! All decisions are based on the state at the beginning of the sync. Effects are performed, and
//! their errors, expectations, queues and events handled, elsewhere.

use jiff::Timestamp;

use super::Owner;
use super::backoff::FailedPods;
use super::claims::{Claims, OwnerIndex};
use super::history::{self, History};
use super::manage::{Manage, View, manage};
use super::node_pods::{EndedPods, Fleet, NodePods};
use super::placement::Placement;
use super::revision_data::Matching;
use super::rolling_update::{self, RollingUpdate, rolling_update};
use super::status;
use super::updated::CurrentTemplate;
use crate::model::{DaemonSetStatus, NodeName, Pod, Revision};

/// The input of a sync.
#[derive(Clone, Copy, Debug)]
pub struct Input<'v, 'a> {
    /// The DaemonSet.
    pub owner: Owner<'v>,
    /// All nodes.
    pub fleet: &'v Fleet<'a>,
    /// The placement of its template on each node, in their order.
    pub placements: &'v [Placement],
    /// The pods of its namespace.
    pub pods: &'v OwnerIndex<'a, Pod>,
    /// The revisions of its namespace, sorted by name.
    pub revisions: &'a [Revision],
    /// How revisions are compared with the template.
    pub matching: Matching,
    /// Whether all effects of earlier syncs have been observed.
    pub expectations: Expectations,
    /// The back-off of failed pods.
    pub failed_pods: FailedPods<'v>,
    /// The time of the sync.
    pub now: Timestamp,
}

/// Whether all effects of earlier syncs have been observed (upstream: `SatisfiedExpectations`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectations {
    /// All effects have been observed, or the expectations have expired.
    Satisfied,
    /// Some effects are outstanding: only the status is updated.
    Outstanding,
}

/// The result of a sync.
#[derive(Clone, Debug)]
pub enum Outcome<'a> {
    /// Nothing is written, not even the status.
    Untouched(Untouched),
    /// The name of the new revision exists: the collision count is written, and the sync fails.
    NameTaken(history::Error),
    /// These effects.
    Synced(Box<Effects<'a>>),
}

/// The reason why a sync writes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untouched {
    /// The selector is empty and would select every pod; validation forbids it.
    SelectsAll,
    /// The DaemonSet is being deleted.
    Terminating,
}

/// The effects of a sync, in the order in which they are performed.
#[derive(Clone, Debug)]
pub struct Effects<'a> {
    /// The revisions: adopted and released ones.
    pub revisions: Claims<'a, Revision>,
    /// The pods: adopted and released ones.
    pub pods: Claims<'a, Pod>,
    /// The history.
    pub history: History<'a>,
    /// Changes of pods and old revisions; `None` while effects of earlier syncs are outstanding.
    pub changes: Option<Changes<'a>>,
    /// The status to write, if any.
    pub status: Option<DaemonSetStatus>,
}

/// Changes of pods and old revisions.
#[derive(Clone, Debug)]
pub struct Changes<'a> {
    /// Changes that do not depend on the update strategy.
    pub manage: Manage<'a>,
    /// The rolling update.
    pub rolling: Rolling<'a>,
    /// Old revisions to delete.
    pub prune: Vec<&'a Revision>,
}

impl Effects<'_> {
    /// Keeps outdated pods, as under `OnDelete`: the rollout of `ds-apply` paces their replacement.
    pub fn leave_outdated(&mut self) {
        if let Some(changes) = &mut self.changes {
            changes.rolling = Rolling::OnDelete;
        }
    }

    /// Creates pods only on nodes for which `may` returns true.
    pub fn create_only(&mut self, may: impl Fn(&NodeName) -> bool) {
        if let Some(changes) = &mut self.changes {
            changes.manage.create.retain(|creation| may(creation.node));
        }
    }

    /// Deletes no pod.
    pub fn leave_pods(&mut self) {
        if let Some(changes) = &mut self.changes {
            changes.manage.delete.clear();
        }
    }
}

/// The rolling update of a sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rolling<'a> {
    /// The strategy is `OnDelete`.
    OnDelete,
    /// `manage` made changes, whose effects must be observed first.
    AfterManage,
    /// Changes of pods, possibly none.
    Update(RollingUpdate<'a>),
    /// It failed, and old revisions are not pruned.
    Failed(rolling_update::Error),
}

/// Decides one sync.
pub fn sync<'a>(input: &Input<'_, 'a>) -> Outcome<'a> {
    let owner = &input.owner;
    if owner.spec.selector.is_empty() {
        return Outcome::Untouched(Untouched::SelectsAll);
    }
    if owner.terminating {
        return Outcome::Untouched(Untouched::Terminating);
    }
    let revisions = Claims::of(owner, input.revisions);
    let pods = input.pods.claims(owner);
    let constructed = history::construct(
        owner,
        &revisions.claimed,
        input.revisions,
        &pods.claimed,
        input.matching,
    );
    let history = match constructed {
        Ok(history) => history,
        Err(error) => return Outcome::NameTaken(error),
    };

    let current = CurrentTemplate::new(history.current.hash(), owner.template_generation);
    let mapped = NodePods::group(input.fleet, &pods.claimed, EndedPods::Dropped);
    let view = View {
        owner: *owner,
        fleet: input.fleet,
        placements: input.placements,
        pods: &mapped,
        current: &current,
        now: input.now,
    };
    let (changes, status) = match input.expectations {
        Expectations::Satisfied => {
            let changes = changes(&view, input.failed_pods, &history, &pods);
            (Some(changes), status::status(&view))
        }
        Expectations::Outstanding => (None, status::counters(&view)),
    };
    let status = status::needs_write(&owner.status, &status, owner.generation).then_some(status);
    Outcome::Synced(Box::new(Effects { revisions, pods, history, changes, status }))
}

fn changes<'a>(
    view: &View<'_, 'a>,
    failed_pods: FailedPods<'_>,
    history: &History<'a>,
    pods: &Claims<'a, Pod>,
) -> Changes<'a> {
    let manage = manage(view, failed_pods);
    let rolling = roll(view, &manage);
    let prune = match &rolling {
        Rolling::Failed(_) => Vec::new(),
        Rolling::OnDelete | Rolling::AfterManage | Rolling::Update(_) => {
            let all = NodePods::group(view.fleet, &pods.claimed, EndedPods::Counted);
            history::prune(&view.owner, &history.old, &all)
        }
    };
    Changes { manage, rolling, prune }
}

fn roll<'a>(view: &View<'_, 'a>, manage: &Manage<'a>) -> Rolling<'a> {
    if !manage.is_idle() {
        return Rolling::AfterManage;
    }
    match rolling_update(view) {
        Ok(Some(update)) => Rolling::Update(update),
        Ok(None) => Rolling::OnDelete,
        Err(error) => Rolling::Failed(error),
    }
}

#[cfg(test)]
mod tests;
