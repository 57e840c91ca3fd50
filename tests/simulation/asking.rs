//! Who answers the checks of a story's runs: the world, after a while. The laws hear of each question
//! and of each answer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use daemonset::model::CheckQuestion;
use embedded::{Server, VirtualClock, World};
use executor::{Ask, Asked};
use tokio::time::sleep;

use crate::checks::Checks;
use crate::trial::{Shared, locked};

/// Answers the questions of one run.
pub(crate) struct Answers {
    pub(crate) checks: Checks,
    pub(crate) server: Server,
    pub(crate) clock: VirtualClock,
    pub(crate) shared: Arc<Mutex<Shared>>,
}

impl Answers {
    /// Those of a run.
    pub(crate) fn of(checks: &Checks, world: &World, shared: &Arc<Mutex<Shared>>) -> Self {
        Self {
            checks: checks.clone(),
            server: world.server().clone(),
            clock: world.clock(),
            shared: Arc::clone(shared),
        }
    }
}

impl Ask for Answers {
    fn ask<'a>(&'a self, question: &'a CheckQuestion) -> Asked<'a> {
        Box::pin(async move {
            let asked = self.clock.now();
            {
                let store = self.server.store();
                let mut shared = locked(&self.shared);
                shared.checker.asked(question, &store, asked);
                shared.tell();
            }
            let response = self.checks.response(question, asked);
            // Without a wait, the laws hear of the answer before the program does, too.
            sleep(Duration::from_secs(self.checks.latency)).await;
            let mut shared = locked(&self.shared);
            shared.checker.check_answered(question, asked, self.clock.now());
            response
        })
    }
}
