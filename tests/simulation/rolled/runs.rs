//! The runs of a roll, and what users do between them.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ds_plan::{Exit, Outside, ds_apply_within};
use embedded::World;
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::laws::{Answers, Laws, RUN, Rollout};
use super::pace::{BAD, step_name};
use crate::cluster::{self, NAMESPACE};
use crate::dice::Dice;
use crate::external_actors::{EXTERNAL_USER, send};
use crate::scenario::Scenario;

/// The runs after a failure, until a user does something.
const IGNORED: usize = 2;

/// The policy in the folder of the runs.
const POLICY: &str = "policy.yaml";

/// The manifest and the policy in that folder: what approvals are given for.
const SOURCE: &str = "source.yaml";

/// The world of a seed.
pub(super) struct Runs<'a> {
    pub(super) world: &'a World,
    pub(super) folder: &'a Path,
    pub(super) fleet: &'a Scenario,
    pub(super) dice: Dice,
    pub(super) laws: Arc<Mutex<Laws>>,
    /// How each run has ended; `None`: it was killed.
    pub(super) exits: Vec<Option<Exit>>,
    /// The runs since a failure.
    pub(super) ignored: usize,
    /// The image of the live template.
    pub(super) image: u64,
    /// Whether runs are killed.
    pub(super) kills: bool,
    /// Whether users replace some pods by `ds-apply step`.
    pub(super) steps: bool,
    /// Whether the template that has failed is tried again.
    pub(super) retries: bool,
}

impl Runs<'_> {
    pub(super) fn laws(&self) -> MutexGuard<'_, Laws> {
        self.laws.lock().unwrap()
    }

    /// Another client applies an image.
    pub(super) async fn sync(&mut self, image: u64) {
        self.image = image;
        self.retries = false;
        self.laws().rollout = Rollout::default();
        let manifest = cluster::manifest_of(image, &self.fleet.agents[0]);
        let object = format!("/apis/apps/v1/namespaces/{NAMESPACE}/daemonsets/agent");
        let patch = json!({"spec": {"template": manifest["spec"]["template"]}});
        send(self.world.server().as_user(EXTERNAL_USER), "PATCH", &object, &patch).await;
        let policy = self.laws().pace.json();
        std::fs::write(self.folder.join(POLICY), policy.to_string()).unwrap();
        std::fs::write(self.folder.join(SOURCE), format!("{manifest}\n---\n{policy}\n")).unwrap();
    }

    async fn ds_apply(&self, user: &str, line: &[&str]) -> Exit {
        let (local, ask) = (self.world.clock().now(), Answers(Arc::clone(&self.laws)));
        let outside = Outside { local, ask: Some(Arc::new(ask)) };
        let interrupts = mpsc::channel(1).1;
        ds_apply_within(self.world, user, self.folder, interrupts, line, outside).await.exit
    }

    /// A person approves the step that waits for it.
    async fn approve(&self) {
        let name = format!("{NAMESPACE}/agent");
        let steps = self.laws().pace.steps.clone();
        for (at, _) in steps.iter().enumerate().filter(|(_, step)| step.approve) {
            let line = ["approve", &name, &step_name(at), "--yes", "-f", SOURCE];
            if self.ds_apply("approver", &line).await == Exit::Done {
                self.laws().rollout.approved.insert(at);
            }
        }
    }

    /// Whether the rollout is done after one more run.
    pub(super) async fn once(&mut self) -> bool {
        let count = self.dice.between(1, 3);
        let step = (self.steps && self.dice.one_in(3)).then_some(count);
        if self.retries {
            self.laws().retried();
        }
        let user = format!("{RUN}{:02}", self.exits.len());
        let is_killed = self.kills && self.dice.one_in(3);
        let limit = if is_killed { self.dice.between(1, 60) } else { 100_000 };
        let begun = self.laws().rollout.begun.len();
        let line = self.line(step);
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        let exit = timeout(Duration::from_secs(limit), self.ds_apply(&user, &line)).await.ok();
        let is_done = exit == Some(Exit::Done) && step.is_none();
        let mut laws = self.laws.lock().unwrap();
        if exit.is_none() {
            laws.killed.insert(user.clone());
        }
        let mut found = Vec::new();
        found.extend(exit.and_then(|exit| laws.judge_exit(exit, self.retries, self.image)));
        if is_done {
            found.extend(laws.judge_end(&self.world.server().store()));
        }
        let replaced = (laws.rollout.begun.len() - begun) as u64;
        if step.is_some_and(|count| replaced > count) {
            found.push(format!("{replaced} nodes instead of {count} are replaced"));
        }
        laws.broken.extend(found.iter().map(|law| format!("{user}: {law}")));
        laws.ended(exit, self.image);
        self.exits.push(exit);
        is_done
    }

    /// The arguments of a `roll`, or of a `step` of this many pods.
    fn line(&self, step: Option<u64>) -> Vec<String> {
        let name = format!("{NAMESPACE}/agent");
        let laws = self.laws();
        let budget = laws.pace.max_unavailable;
        let what = step.map_or_else(|| "roll".to_owned(), |count| format!("step --count {count}"));
        let pace = if laws.rollout.is_unpaced {
            format!("--max-unavailable {budget}")
        } else {
            format!("--policy {POLICY}")
        };
        let retry = if self.retries { "--retry" } else { "" };
        let line = format!("{what} {name} --yes {pace} --lock-timeout 5m {retry}");
        line.split_whitespace().map(str::to_owned).collect()
    }

    /// What users do before the next run.
    pub(super) async fn before_next(&mut self) {
        if self.exits.last() == Some(&Some(Exit::ApprovalNeeded)) && self.dice.one_in(2) {
            self.approve().await;
        }
        let Rollout { has_failed, is_deadlocked, .. } = self.laws().rollout;
        if !has_failed && !is_deadlocked {
            self.ignored = 0;
            return;
        }
        self.ignored += 1;
        if self.ignored <= IGNORED {
            return;
        }
        self.ignored = 0;
        if is_deadlocked && self.image > BAD {
            self.laws().rollout.is_unpaced = true;
        } else if has_failed && self.dice.one_in(2) {
            self.retries = true;
        } else {
            self.sync(self.image + 1).await;
        }
    }
}
