//! What is waited for though nothing moves, and for how long.

use jiff::SignedDuration;

use super::decide::{Flow, Pause, Step};
use super::effect::Purpose;
use super::outcome::{ControllerStep, Held, Outcome};
use super::progress::Report;
use super::sight::Sight;
use super::state::Standstill;
use super::world::{is_older, resource_version};
use crate::model::DaemonSet;

impl Step<'_, '_> {
    /// Whether what is seen is as new as the last write.
    pub(super) fn appeared(&mut self, live: &DaemonSet) -> Flow<()> {
        match &self.state.writing.version {
            Some(written) if is_older(resource_version(live), &written.resource_version) => {
                Err(self.stand_for(ControllerStep::Appear))
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn is_done(&self, purpose: Purpose) -> bool {
        self.state.writing.done.contains(&purpose)
    }

    /// Whether the controller has seen the live object and made its one revision. Pods that are
    /// deleted before might come back with the template before.
    pub(super) fn settled(&mut self, sight: &Sight<'_>) -> Flow<()> {
        let generation = sight.live.generation;
        let observed = sight.live.status.observed_generation;
        let step = match sight.revisions.as_slice() {
            _ if observed < generation => ControllerStep::Observe { generation, observed },
            [] => ControllerStep::MakeRevision,
            [revision] => {
                if self.state.told.revision.as_ref() != Some(&revision.name) {
                    self.state.told.revision = Some(revision.name.clone());
                    self.report(Report::Revision(revision.name.clone()));
                }
                return Ok(());
            }
            several => ControllerStep::DropDuplicates { revisions: several.len() },
        };
        Err(self.stand_for(step))
    }

    pub(super) fn patience(&self) -> SignedDuration {
        SignedDuration::from_secs(self.task.pace.progress_deadline.0.into())
    }

    /// Notes that nothing moves; for how many seconds it has not, once that is too long.
    pub(super) fn stand(&mut self, what: Standstill) -> Option<i64> {
        self.stands = true;
        let since = match self.state.standstill {
            Some((since, before)) if before == what => since,
            Some(_) | None => self.now,
        };
        self.state.standstill = Some((since, what));
        let waited = self.now.duration_since(since);
        if waited >= self.patience() {
            return Some(waited.as_secs());
        }
        self.wake_at(Some(since + self.patience()));
        None
    }

    /// Waits for the controller, but not for ever.
    pub(super) fn stand_for(&mut self, step: ControllerStep) -> Pause {
        match self.stand(Standstill::Controller(step)) {
            Some(seconds) => {
                Pause::End(Outcome::Held { why: Held::ControllerStands { step, seconds } })
            }
            None => Pause::Wait,
        }
    }
}
