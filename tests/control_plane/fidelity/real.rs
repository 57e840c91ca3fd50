//! Scenarios on a real control plane, many at a time.
//!
//! Those in which the controller manager is stopped run last, in step with each other.

use futures::{StreamExt as _, stream};
use tokio::sync::Barrier;

use super::Transcripts;
use super::player::{Switch, play};
use super::step::Scenario;
use crate::harness::{Component, ControlPlane};

/// The number of concurrent scenarios: each one waits most of the time.
const AT_ONCE: usize = 12;

/// Runs the scenarios.
pub(super) async fn play_all(scenarios: &[Scenario]) -> Transcripts {
    let plane = ControlPlane::start();
    let client = plane.client();
    let (stopping, others): (Vec<_>, Vec<_>) = scenarios.iter().partition(|it| it.stops());
    let switch = &SharedSwitch { plane: &plane, all_there: Barrier::new(stopping.len()) };
    let client = &client;
    let play =
        async move |it: &Scenario| (it.name, play(client, it, switch, "on the real cluster").await);
    let mut played = Transcripts::new();
    for (all, at_once) in [(others, AT_ONCE), (stopping, usize::MAX)] {
        let under_way: Vec<_> = all.into_iter().map(play).collect();
        played.extend(stream::iter(under_way).buffer_unordered(at_once).collect::<Vec<_>>().await);
    }
    played
}

/// The switch of the controller manager; one of the scenarios that share it acts for all.
struct SharedSwitch<'a> {
    plane: &'a ControlPlane,
    all_there: Barrier,
}

impl SharedSwitch<'_> {
    async fn switch(&self, how: impl FnOnce(&ControlPlane)) {
        if self.all_there.wait().await.is_leader() {
            how(self.plane);
        }
        self.all_there.wait().await;
    }
}

impl Switch for SharedSwitch<'_> {
    async fn stop(&self) {
        self.switch(|plane| plane.stop_component(Component::ControllerManager)).await;
    }

    async fn start(&self) {
        self.switch(|plane| plane.start_component(Component::ControllerManager)).await;
    }
}
