//! One sync of one DaemonSet, in upstream's order (`syncDaemonSet`, `updateDaemonSet`).
//!
//! Everything is decided on what was seen when it began. Not here: performing the effects, their
//! errors, the read-own-writes gate, queues and events.

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

/// What a sync starts from.
#[derive(Clone, Copy, Debug)]
pub struct Input<'v, 'a> {
    /// The DaemonSet.
    pub owner: Owner<'v>,
    /// All nodes.
    pub fleet: &'v Fleet<'a>,
    /// What its template says about each of them, in their order.
    pub placements: &'v [Placement],
    /// The pods of its namespace.
    pub pods: &'v OwnerIndex<'a, Pod>,
    /// The revisions of its namespace, sorted by name.
    pub revisions: &'a [Revision],
    /// How revisions are recognised.
    pub matching: Matching,
    /// Whether the effects of earlier syncs have all been seen.
    pub expectations: Expectations,
    /// The back-off of failed pods.
    pub failed_pods: FailedPods<'v>,
    /// The moment of the sync.
    pub now: Timestamp,
}

/// Whether the effects of earlier syncs have all been seen (upstream: `SatisfiedExpectations`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectations {
    /// All of them, or it has been too long.
    Satisfied,
    /// Some are outstanding: only the status is brought up to date.
    Outstanding,
}

/// What a sync does.
#[derive(Clone, Debug)]
pub enum Outcome<'a> {
    /// Nothing at all, not even to the status.
    Untouched(Untouched),
    /// The name of the new revision is taken: the collision count is written, and the sync fails.
    NameTaken(history::Error),
    /// These effects.
    Synced(Box<Effects<'a>>),
}

/// Why a DaemonSet is left alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Untouched {
    /// Its selector is empty and would select every pod; validation forbids it.
    SelectsAll,
    /// It is being deleted.
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
    /// What happens to pods and old revisions; `None` while effects of earlier syncs are
    /// outstanding.
    pub steps: Option<Steps<'a>>,
    /// The status to write, if any.
    pub status: Option<DaemonSetStatus>,
}

/// What happens to pods and old revisions.
#[derive(Clone, Debug)]
pub struct Steps<'a> {
    /// What each node needs at once.
    pub manage: Manage<'a>,
    /// How far rolling came.
    pub rolling: Rolling<'a>,
    /// Old revisions to delete.
    pub prune: Vec<&'a Revision>,
}

impl Effects<'_> {
    /// Leaves outdated pods alone, as under `OnDelete`: somebody else paces.
    pub(crate) fn leave_outdated(&mut self) {
        if let Some(steps) = &mut self.steps {
            steps.rolling = Rolling::OnDelete;
        }
    }

    /// Creates no pod but on nodes that may have one.
    pub(crate) fn create_only(&mut self, may: impl Fn(&NodeName) -> bool) {
        if let Some(steps) = &mut self.steps {
            steps.manage.create.retain(|creation| may(creation.node));
        }
    }

    /// Deletes no pod.
    pub(crate) fn leave_pods(&mut self) {
        if let Some(steps) = &mut self.steps {
            steps.manage.delete.clear();
        }
    }
}

/// How far rolling came in a sync.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rolling<'a> {
    /// The strategy is `OnDelete`.
    OnDelete,
    /// `manage` had something to do, whose effects have to be seen first.
    AfterManage,
    /// A step, maybe an empty one.
    Step(RollingUpdate<'a>),
    /// The step failed, and old revisions are not pruned.
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
    let (steps, status) = match input.expectations {
        Expectations::Satisfied => {
            let steps = steps(&view, input.failed_pods, &history, &pods);
            (Some(steps), status::status(&view))
        }
        Expectations::Outstanding => (None, status::counters(&view)),
    };
    let status = status::needs_write(&owner.status, &status, owner.generation).then_some(status);
    Outcome::Synced(Box::new(Effects { revisions, pods, history, steps, status }))
}

fn steps<'a>(
    view: &View<'_, 'a>,
    failed_pods: FailedPods<'_>,
    history: &History<'a>,
    pods: &Claims<'a, Pod>,
) -> Steps<'a> {
    let manage = manage(view, failed_pods);
    let rolling = roll(view, &manage);
    let prune = match &rolling {
        Rolling::Failed(_) => Vec::new(),
        Rolling::OnDelete | Rolling::AfterManage | Rolling::Step(_) => {
            let all = NodePods::group(view.fleet, &pods.claimed, EndedPods::Counted);
            history::prune(&view.owner, &history.old, &all)
        }
    };
    Steps { manage, rolling, prune }
}

fn roll<'a>(view: &View<'_, 'a>, manage: &Manage<'a>) -> Rolling<'a> {
    if !manage.is_idle() {
        return Rolling::AfterManage;
    }
    match rolling_update(view) {
        Ok(Some(step)) => Rolling::Step(step),
        Ok(None) => Rolling::OnDelete,
        Err(error) => Rolling::Failed(error),
    }
}

#[cfg(test)]
mod tests;
