//! One sync as a list of requests, in upstream's order (`syncDaemonSet`, `syncNodes`).
//!
//! Pure: converts the effects of `controller::sync` into batches of requests. The in-process
//! controller and the embedded cluster send them.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::Value;

use super::Owner;
use super::history::{self, Current, NewRevision};
use super::pod::PodMaker;
use super::reasons::{Creation, DeleteReason, Deletion, WaitReason, Waiting};
use super::sync::{Changes, Effects, Rolling};
use super::updated::CurrentTemplate;
use crate::model::{
    DaemonSetKey, DaemonSetStatus, NodeName, Pod, PodName, Revision, RevisionHash, RevisionName,
    RevisionNumber, Uid,
};

/// Maximum number of creations, and of deletions, of one sync; the rest waits for later syncs
/// (upstream: `BurstReplicas`).
const BURST: usize = 250;

/// The requests of a sync that have not been sent.
#[derive(Debug)]
pub struct SyncRequests {
    /// The DaemonSet that is synced.
    pub key: DaemonSetKey,
    /// Its uid.
    pub uid: Uid,
    /// The owner reference of created and adopted objects.
    pub reference: Value,
    /// The batches that are left, in order.
    pub batches: VecDeque<Batch>,
    /// Makes the pods of [`Request::CreatePod`].
    pub pods: PodMaker,
    /// Whether the sync has failed.
    pub failed: bool,
    /// Delays after its end at which further syncs are needed.
    pub again: Vec<Duration>,
    /// Whether all requests have been sent and only responses are outstanding.
    pub ending: bool,
}

/// Requests that are sent concurrently before the next batch.
#[derive(Debug)]
pub struct Batch {
    /// Decides what a failure means for later batches.
    pub stage: Stage,
    /// Sent concurrently, started in this order.
    pub requests: VecDeque<Request>,
}

/// The stage of a batch, which determines the effect of a failure on later batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Revisions. After a failure nothing else is sent, not even the status.
    History,
    /// Adoption and release of pods. After a failure no pod is created or deleted.
    Claims,
    /// Creation of pods. After a failure no more pods are created.
    Create,
    /// Deletion of pods.
    Delete,
    /// Deletion of old revisions; skipped after a failure.
    Prune,
    /// The status, which is always written.
    Status,
}

/// One request, or an expectation, which is recorded in the same order.
#[derive(Debug)]
#[expect(missing_docs, reason = "the fields are those of the API: name, uid, node")]
pub enum Request {
    /// Sets the owner of an orphaned revision.
    AdoptRevision { name: RevisionName, uid: Uid },
    /// Removes the owner of a revision that does not match any more.
    ReleaseRevision { name: RevisionName, uid: Uid },
    /// Adds the hash label to a revision that lacks it.
    LabelRevision { name: RevisionName, uid: Uid },
    /// Makes an old revision the current one: `to` is one more than the largest number.
    RenumberRevision { name: RevisionName, uid: Uid, to: RevisionNumber },
    /// Deletes a duplicate, or a revision beyond `revisionHistoryLimit`.
    DeleteRevision { name: RevisionName, uid: Uid },
    /// Records a template that no revision has.
    CreateRevision(Box<NewRevision>),
    /// Sets the hash label of a pod.
    RelabelPod { name: PodName, uid: Uid, hash: RevisionHash },
    /// Sets the owner of an orphaned pod.
    AdoptPod { name: PodName, uid: Uid },
    /// Removes the owner of a pod that does not match any more.
    ReleasePod { name: PodName, uid: Uid },
    /// Not a request: the number of pods that the next requests create and delete.
    Expect { creates: usize, deletes: usize },
    /// Creates the pod of a node.
    CreatePod(NodeName),
    /// Deletes a pod; `failed` if because it has failed.
    DeletePod { name: PodName, uid: Uid, node: NodeName, failed: bool },
    /// Counts a collision of revision names in the status.
    CountCollision(u32),
    /// Writes the status.
    WriteStatus(DaemonSetStatus),
}

/// A write of a pod whose effect is expected, or whose failure is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodWrite {
    /// A create.
    Create,
    /// A delete.
    Delete,
}

impl Request {
    /// Whether the request creates or deletes a pod.
    pub fn pod_write(&self) -> Option<PodWrite> {
        match self {
            Self::CreatePod(_) => Some(PodWrite::Create),
            Self::DeletePod { .. } => Some(PodWrite::Delete),
            Self::AdoptRevision { .. }
            | Self::ReleaseRevision { .. }
            | Self::LabelRevision { .. }
            | Self::RenumberRevision { .. }
            | Self::DeleteRevision { .. }
            | Self::CreateRevision(_)
            | Self::RelabelPod { .. }
            | Self::AdoptPod { .. }
            | Self::ReleasePod { .. }
            | Self::Expect { .. }
            | Self::CountCollision(_)
            | Self::WriteStatus(_) => None,
        }
    }
}

impl SyncRequests {
    /// The requests of a sync of `owner` with these effects.
    pub fn of(owner: &Owner<'_>, uid: &Uid, effects: &Effects<'_>) -> Self {
        let current =
            CurrentTemplate::new(effects.history.current.hash(), owner.template_generation);
        let mut program = Self::empty(owner, uid, &current);
        program.write_history(effects);
        if let Some(changes) = &effects.changes {
            program.claim_pods(effects);
            program.take_changes(changes);
        }
        if let Some(status) = effects.status {
            program.one(Stage::Status, Request::WriteStatus(status));
        }
        program.ask_for_more(owner, effects);
        program
    }

    /// A sync without requests.
    fn empty(owner: &Owner<'_>, uid: &Uid, current: &CurrentTemplate) -> Self {
        Self {
            key: owner.key.clone(),
            uid: uid.clone(),
            reference: owner.reference().unwrap_or_default(),
            batches: VecDeque::new(),
            pods: PodMaker::new(owner, current),
            failed: false,
            again: Vec::new(),
            ending: false,
        }
    }

    /// The name of the new revision exists: the collision count is written, and the sync fails.
    pub fn of_collision(owner: &Owner<'_>, uid: &Uid, error: &history::Error) -> Self {
        let history::Error::NameTaken { name: _, collision_count } = error;
        let current = CurrentTemplate::new(RevisionHash::from(""), None);
        let mut program = Self::empty(owner, uid, &current);
        program.failed = true;
        program.one(Stage::History, Request::CountCollision(*collision_count));
        program
    }

    /// Writes revisions (upstream: `constructHistory`).
    fn write_history(&mut self, effects: &Effects<'_>) {
        let history = &effects.history;
        for revision in &effects.revisions.adopted {
            let Revision { name, uid, .. } = (*revision).clone();
            self.one(Stage::History, Request::AdoptRevision { name, uid });
        }
        for revision in &effects.revisions.released {
            let Revision { name, uid, .. } = (*revision).clone();
            self.one(Stage::History, Request::ReleaseRevision { name, uid });
        }
        for revision in &history.label {
            let Revision { name, uid, .. } = (*revision).clone();
            self.one(Stage::History, Request::LabelRevision { name, uid });
        }
        let hash = history.current.hash();
        for pod in &history.relabel {
            let (name, uid) = (pod.name.clone(), pod.uid.clone());
            let request = Request::RelabelPod { name, uid, hash: hash.clone() };
            self.one(Stage::History, request);
        }
        for revision in &history.duplicates {
            self.one(Stage::History, delete(revision));
        }
        match &history.current {
            Current::New(new) => {
                self.one(Stage::History, Request::CreateRevision(Box::new(new.clone())));
            }
            Current::Reused { revision, to } => {
                let Revision { name, uid, .. } = (*revision).clone();
                let request = Request::RenumberRevision { name, uid, to: *to };
                self.one(Stage::History, request);
            }
            Current::Found { revision: _ } | Current::Unchanged { revision: _ } => {}
        }
    }

    fn claim_pods(&mut self, effects: &Effects<'_>) {
        let named = |pod: &Pod| (pod.name.clone(), pod.uid.clone());
        for (name, uid) in effects.pods.adopted.iter().map(|pod| named(pod)) {
            self.one(Stage::Claims, Request::AdoptPod { name, uid });
        }
        for (name, uid) in effects.pods.released.iter().map(|pod| named(pod)) {
            self.one(Stage::Claims, Request::ReleasePod { name, uid });
        }
    }

    fn take_changes(&mut self, changes: &Changes<'_>) {
        let Changes { manage, rolling, prune } = changes;
        self.change_pods(&manage.create, &manage.delete);
        match rolling {
            Rolling::Update(update) => self.change_pods(&update.create, &update.delete),
            Rolling::Failed(_) => self.failed = true,
            Rolling::OnDelete | Rolling::AfterManage => {}
        }
        for revision in prune {
            self.one(Stage::Prune, delete(revision));
        }
    }

    /// Creates and deletes pods (upstream: `syncNodes`), at most [`BURST`] of each; the rest waits
    /// for later syncs.
    fn change_pods(&mut self, create: &[Creation<'_>], delete: &[Deletion<'_>]) {
        if create.is_empty() && delete.is_empty() {
            return;
        }
        let (creates, deletes) = (create.len().min(BURST), delete.len().min(BURST));
        self.one(Stage::Create, Request::Expect { creates, deletes });
        let mut nodes = create.iter().map(|creation| creation.node.clone());
        for portion in slow_start(creates) {
            let requests = nodes.by_ref().take(portion).map(Request::CreatePod).collect();
            self.batches.push_back(Batch { stage: Stage::Create, requests });
        }
        let requests = delete.iter().take(deletes).map(|deletion| Request::DeletePod {
            name: deletion.pod.name.clone(),
            uid: deletion.pod.uid.clone(),
            node: deletion.node.clone(),
            failed: matches!(deletion.reason, DeleteReason::Failed),
        });
        self.batches.push_back(Batch { stage: Stage::Delete, requests: requests.collect() });
    }

    /// Schedules syncs that no event triggers: at the end of a back-off, and when a pod becomes
    /// available after `minReadySeconds`.
    fn ask_for_more(&mut self, owner: &Owner<'_>, effects: &Effects<'_>) {
        let waiting = effects.changes.iter().flat_map(|changes| &changes.manage.waiting);
        let back_off = waiting.filter_map(|Waiting { reason, .. }| match reason {
            WaitReason::BackOff { seconds } => Some(Duration::from_secs(*seconds)),
            WaitReason::Terminating
            | WaitReason::NewNotAvailable { .. }
            | WaitReason::StillNeeded { .. }
            | WaitReason::SurgeTaken { .. }
            | WaitReason::MaxUnavailableReached { .. } => None,
        });
        self.again.extend(back_off.min());
        let status = effects.status.unwrap_or(owner.status);
        let min_ready = owner.spec.min_ready_seconds;
        if min_ready > 0 && status.number_ready != status.number_available {
            self.again.push(Duration::from_secs(min_ready.into()));
        }
    }

    fn one(&mut self, stage: Stage, request: Request) {
        self.batches.push_back(Batch { stage, requests: [request].into() });
    }

    /// Removes the requests that are skipped after a failure at that stage, and returns the number
    /// of removed creations.
    pub fn fail(&mut self, stage: Stage) -> usize {
        self.failed = true;
        let keeps = |other: Stage| match stage {
            Stage::History => false,
            Stage::Claims => other == Stage::Status,
            Stage::Create => matches!(other, Stage::Delete | Stage::Status),
            Stage::Delete => matches!(other, Stage::Delete | Stage::Status),
            Stage::Prune | Stage::Status => true,
        };
        let is_creation = |request: &&Request| matches!(request, Request::CreatePod(_));
        let skipped = self.batches.iter().filter(|batch| !keeps(batch.stage));
        let skipped = skipped.flat_map(|batch| &batch.requests).filter(is_creation).count();
        self.batches.retain(|batch| keeps(batch.stage));
        skipped
    }
}

fn delete(revision: &Revision) -> Request {
    let Revision { name, uid, .. } = revision.clone();
    Request::DeleteRevision { name, uid }
}

/// The sizes of the batches in which `count` pods are created: 1, 2, 4, 8 and so on, at most
/// [`BURST`] in total. After a batch with an error the following ones are skipped, so that equal
/// failures on all nodes cost few requests (upstream: `SlowStartInitialBatchSize`).
fn slow_start(count: usize) -> impl Iterator<Item = usize> {
    let mut left = count.min(BURST);
    let mut portion = 1;
    std::iter::from_fn(move || {
        let size = portion.min(left);
        left -= size;
        portion *= 2;
        (size > 0).then_some(size)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::test_cluster::{Cluster, OURS};

    /// The requests of a sync of the cluster: stages, and the number of requests of each batch.
    fn portions(program: &SyncRequests) -> Vec<(Stage, usize)> {
        program.batches.iter().map(|batch| (batch.stage, batch.requests.len())).collect()
    }

    fn program(cluster: &Cluster) -> SyncRequests {
        cluster.with_effects(|effects| {
            let owner = Owner::from(&cluster.daemon_set);
            SyncRequests::of(&owner, &cluster.daemon_set.uid, &effects)
        })
    }

    #[test]
    fn pods_are_created_in_batches_after_the_revision_and_before_the_status() {
        let want = [
            (Stage::History, 1),
            (Stage::Create, 1), // the expectation
            (Stage::Create, 1),
            (Stage::Create, 2),
            (Stage::Create, 4),
            (Stage::Create, 3),
            (Stage::Delete, 0),
            (Stage::Status, 1),
        ];
        assert_eq!(portions(&program(&Cluster::of(10))), want);
    }

    #[test]
    fn no_more_than_250_at_once() {
        let mut cluster = Cluster::of(300);
        let created = |program: &SyncRequests| {
            let requests = program.batches.iter().flat_map(|batch| &batch.requests);
            requests.filter(|request| matches!(request, Request::CreatePod(_))).count()
        };
        assert_eq!(created(&program(&cluster)), 250);
        for node in 0..300 {
            cluster.add_pods(&format!("node-{node}"), OURS, 2);
        }
        let program = program(&cluster);
        let deletes = program.batches.iter().find(|batch| batch.stage == Stage::Delete);
        assert_eq!(deletes.unwrap().requests.len(), 250);
        let expects = program.batches.iter().flat_map(|batch| &batch.requests);
        let expects = expects.filter_map(|request| match request {
            Request::Expect { creates, deletes } => Some((*creates, *deletes)),
            _other => None,
        });
        assert_eq!(expects.collect::<Vec<_>>(), [(0, 250)]);
    }

    #[test]
    fn a_failure_skips_later_stages() {
        for (stage, skipped, left) in [
            (Stage::History, 10, vec![]),
            (Stage::Claims, 10, vec![Stage::Status]),
            (Stage::Create, 10, vec![Stage::Delete, Stage::Status]),
            (Stage::Delete, 10, vec![Stage::Delete, Stage::Status]),
        ] {
            let mut program = program(&Cluster::of(10));
            assert_eq!(program.fail(stage), skipped, "{stage:?}");
            let stages: Vec<Stage> = program.batches.iter().map(|batch| batch.stage).collect();
            assert_eq!(stages, left, "{stage:?}");
            assert!(program.failed);
        }
    }

    #[test]
    fn batches_double_up_to_the_burst() {
        for (count, want) in [
            (0, vec![]),
            (1, vec![1]),
            (10, vec![1, 2, 4, 3]),
            (1000, vec![1, 2, 4, 8, 16, 32, 64, 123]),
        ] {
            assert_eq!(slow_start(count).collect::<Vec<_>>(), want, "{count}");
        }
    }

    #[test]
    fn a_quota_of_ten_costs_fifteen_calls() {
        // TestSimpleDaemonSetPodCreateErrors: 100 nodes, the eleventh creation fails.
        let mut created = 0;
        let calls: usize = slow_start(100)
            .take_while(|portion| {
                let going = created < 10;
                created += portion;
                going
            })
            .sum();
        assert_eq!(calls, 15);
    }
}
