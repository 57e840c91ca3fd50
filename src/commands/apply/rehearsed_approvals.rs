//! The approvals of a rehearsal (`approvals` of `--fault`): what people will approve meanwhile.

use super::session::Session;
use crate::error::{ApprovalError, Error};
use cluster::WriteError;
use daemonset::model::{DaemonSetKey, PolicySpec, Snapshot};
use planner::approval::ApprovalCheck;

/// The rollout that is approved.
pub(super) struct Rehearsed<'a> {
    /// The DaemonSet.
    pub key: &'a DaemonSetKey,
    /// Its policy.
    pub policy: &'a PolicySpec,
    /// Digest of the target template.
    pub template: &'a str,
}

impl Rehearsed<'_> {
    /// Writes the approvals. One from the future does not count before its time.
    ///
    /// # Errors
    /// The embedded cluster does not accept one.
    pub(super) async fn write(
        &self,
        snapshot: &mut Snapshot,
        session: &mut Session,
    ) -> Result<(), Error> {
        let Self { key, policy, template } = *self;
        let Some(uid) = snapshot.daemon_set(key).map(|live| live.uid.clone()) else {
            return Ok(());
        };
        let all = session.rehearsed_approvals.clone().into_iter();
        let of_it = all.filter(|(it, _)| it.daemon_set.as_ref().is_none_or(|one| one == key));
        for (approval, at) in of_it {
            let Some(step) = policy.steps.iter().find(|step| step.name == approval.step) else {
                continue;
            };
            let (uid, note, is_note_lost) = (&uid, None, false);
            let check = ApprovalCheck { uid, template, step, note, is_note_lost, now: at };
            let approval = check.approve("the rehearsal".to_owned());
            let failed = |source: WriteError| {
                let source = Box::new(source);
                Error::from(ApprovalError::Write { daemon_set: key.clone(), source })
            };
            session.cluster.approve_step(key, &step.name, &approval).await.map_err(failed)?;
            let by_step = snapshot.approvals.entry(key.clone()).or_default();
            by_step.insert(step.name.clone(), approval);
        }
        Ok(())
    }
}
