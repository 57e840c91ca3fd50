//! Goals that put no target in place: pods go to the live template, or the declared strategy is
//! given back.

use std::sync::Arc;

use serde_json::Value;

use super::decide::{Flow, Pause, Step};
use super::effect::{Purpose, Write};
use super::outcome::{Held, Interference, Outcome};
use super::pace::Paced;
use super::request::unchanged;
use super::state::Course;
use super::task::Extent;
use super::waves::Hands;
use crate::model::{DaemonSet, UpdateStrategy};
use crate::plan::Hold;

impl<'w> Step<'_, 'w> {
    /// Pods go to the live template, which somebody else wrote, and nobody writes here.
    pub(super) fn roll(&mut self, extent: &Extent, live: Option<&'w DaemonSet>) -> Flow<Pause> {
        let Some(live) = live else {
            return Ok(Pause::End(Outcome::Gone { replaced_by: None }));
        };
        let held = Hold::of(live).is_ok_and(|hold| hold.is_some());
        let stale = |change| Ok(Pause::End(Outcome::Stale { change, held }));
        if live.spec.update_strategy != UpdateStrategy::OnDelete {
            return stale(Interference::Strategy);
        }
        let template = live.spec.template.raw();
        let began = self.state.template.get_or_insert_with(|| Arc::new(template.clone()));
        if **began != *template {
            return stale(self.another_template(live));
        }
        let sight = self.look(live);
        self.settled(&sight)?;
        Ok(match self.pace(&sight, Hands::Ours(extent)) {
            Paced::Wait => Pause::Wait,
            Paced::Clean => Pause::End(Outcome::Done),
            Paced::Stands(why) => Pause::End(Outcome::Held { why }),
            Paced::Failed(failed) => {
                self.state.course = Course::Failed(failed.clone());
                Pause::End(Outcome::Held { why: Held::Failed { failed, not_parked: None } })
            }
        })
    }

    /// The declared strategy, whatever the controller then does.
    pub(super) fn release(
        &mut self,
        written: &Arc<Value>,
        live: Option<&'w DaemonSet>,
    ) -> Flow<Pause> {
        let Some(live) = live else {
            return Ok(Pause::End(Outcome::Gone { replaced_by: None }));
        };
        self.appeared(live)?;
        match Hold::of(live) {
            Ok(None) => Ok(Pause::End(Outcome::Done)),
            Err(_) => {
                let change = Interference::Hold;
                Ok(Pause::End(Outcome::Stale { change, held: true }))
            }
            Ok(Some(hold)) => Ok(self.send(Write {
                precondition: unchanged(live),
                live: Some(Arc::clone(&live.raw)),
                keeps_template: true,
                purpose: Purpose::GiveBack,
                written: Arc::clone(written),
                template: None,
                strategy: hold.declared,
                hold: None,
                provenance: None,
            })),
        }
    }
}
