//! The runs of a story: one after the other, as by a schedule, with commits, approvals and lost
//! notes between and during them.

use std::sync::Arc;
use std::time::Duration;

use daemonset::model::{Approval, DaemonSet, Pod, STEPS_ANNOTATION, approvals_name, lease_name};
use ds_plan::{Exit, Outside, ds_apply_at, ds_apply_within};
use embedded::Kind;
use executor::{Ask, Interrupt};
use jiff::SignedDuration;
use planner::approval::step_digest;
use planner::digest::template_digest;
use planner::plan::PausedRollout;
use planner::steps::{WaitKind, WaitsFor};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::{Trial, locked};
use crate::asking::Answers;
use crate::budget::owns;
use crate::cluster::{self, NAMESPACE};
use crate::external_actors::{EXTERNAL_USER, say_broken, send};
use crate::objects::{is_updated, live, pods};
use crate::rules::{Rules, StepRule};
use crate::scenario::{Fate, NodeSpec, PodSpec, Scenario};
use crate::step_laws::Approvals;
use crate::story::{Given, Story, Turn};

/// The number of runs that have to end alike after the last event of a story that may be stuck.
const ALIKE: usize = 4;

/// The user who approves steps by the command.
const APPROVER: &str = "approver";

/// A commit: what the next run reads.
#[derive(Clone, Debug)]
struct Commit {
    image: u32,
    rules: Rules,
}

impl Trial<'_> {
    /// All runs of the story. Returns the number of requests of each.
    pub(super) async fn visits(&self, story: &Story) -> Vec<usize> {
        let commit = std::sync::Mutex::new(Commit { image: 2, rules: story.rules.clone() });
        let current = || commit.lock().expect("a commit").clone();
        let events = async {
            for (at, turn) in &story.events {
                let clock = self.world.clock();
                clock.reach(clock.start() + Duration::from_secs(*at)).await;
                match turn {
                    Turn::Commit(image) => commit.lock().expect("a commit").image = *image,
                    Turn::EditStep(step) => {
                        let rules = &mut commit.lock().expect("a commit").rules;
                        rules.steps.get_mut(*step).into_iter().for_each(|step| step.soak += 1);
                    }
                    Turn::Approve(step, given) => {
                        for agent in &self.scenario.agents {
                            self.write_approval(agent.name, &current(), *step, *given).await;
                        }
                    }
                    Turn::LoseNote => {
                        for agent in &self.scenario.agents {
                            self.lose_note(agent.name).await;
                        }
                    }
                }
            }
        };
        let last = story.events.iter().map(|(at, _)| *at).max().unwrap_or_default();
        let runs = async {
            let mut requests = Vec::new();
            let mut left = story.most_runs;
            for number in 0.. {
                requests.push(self.visit(number, story, &current()).await);
                let is_over = self.world.clock().elapsed() >= Duration::from_secs(last);
                if is_over && self.is_stuck_or_done() {
                    return requests;
                }
                left -= usize::from(is_over);
                if left == 0 {
                    break;
                }
                self.between(story, &current()).await;
            }
            self.judge_benign(story);
            requests
        };
        let all = async { tokio::join!(events, runs).1 };
        tokio::select! {
            biased;
            () = self.conditions(story) => Vec::new(),
            requests = all => requests,
        }
    }

    /// The conditions of nodes that change, until all runs have ended. That of a node that joins is
    /// only reported if all checks have to pass; else it stays unknown.
    async fn conditions(&self, story: &Story) {
        let mut reports = Vec::new();
        if let Some(checks) = &story.rules.checks {
            reports.extend(checks.conditions.iter().cloned());
            if checks.always_pass() && checks.looks_at_nodes() {
                let joining = self.scenario.joining();
                reports.extend(joining.map(|(at, name)| (at + 1, name.to_owned(), Some(false))));
            }
        }
        reports.sort_by_key(|(at, ..)| *at);
        for (at, node, is_broken) in reports {
            let clock = self.world.clock();
            clock.reach(clock.start() + Duration::from_secs(at)).await;
            say_broken(&self.world, &node, is_broken).await;
        }
        std::future::pending::<()>().await;
    }

    /// One run.
    async fn visit(&self, number: usize, story: &Story, commit: &Commit) -> usize {
        let user = format!("visit-{number:02}");
        self.write_manifests(commit);
        {
            let shared = &mut *locked(&self.shared);
            let kills = story.kills.iter().filter(|kill| kill.run == number);
            let fate = |after, request| {
                if after { Fate::KilledAfter(request) } else { Fate::KilledBefore(request) }
            };
            shared.fates = kills.map(|kill| fate(kill.after, kill.request)).collect();
            (shared.user, shared.requests, shared.all_requests) = (user.clone(), 0, 0);
            let now = self.world.clock().now();
            shared.checker.run_begins(commit.image, &commit.rules, now);
        }
        let wait = story.wait.map(|seconds| format!("{seconds}s"));
        let mut line = vec!["-f", "agents.yaml", "--yes", "--lock-timeout", "10m"];
        line.extend(["--managed-by", self.scenario.managed_by().as_str()]);
        line.extend(wait.iter().flat_map(|wait| ["--wait", wait.as_str()]));
        let (world, folder) = (&self.world, self.folder.path());
        let local = world.clock().now() + SignedDuration::from_secs(story.local_clock);
        let (interrupt, interrupts) = mpsc::channel(1);
        let answers = |checks| Arc::new(Answers::of(checks, world, &self.shared));
        let ask = commit.rules.checks.as_ref().map(|checks| answers(checks) as Arc<dyn Ask>);
        let outside = Outside { local, ask };
        let run = ds_apply_within(world, &user, folder, interrupts, &line, outside);
        let interrupted = async {
            for (_, at) in story.interrupts.iter().filter(|(run, _)| *run == number) {
                sleep(Duration::from_secs(*at)).await;
                locked(&self.shared).checker.interrupt(&user);
                let _ = interrupt.send(Interrupt).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            biased;
            () = self.death.notified() => {}
            () = interrupted => {}
            () = self.ends(&user, run) => {
                let exit = self.ended().last().map(|(_, ended)| ended.exit);
                let (objects, now) = (self.world.server().store(), self.world.clock().now());
                let checker = &mut locked(&self.shared).checker;
                if let Some(exit) = exit {
                    checker.run_ended(exit, &objects, now);
                }
            }
        }
        locked(&self.shared).requests
    }

    fn write_manifests(&self, commit: &Commit) {
        let text = cluster::manifests_of(commit.image, &commit.rules, self.scenario);
        std::fs::write(self.folder.path().join("agents.yaml"), text).expect("a folder");
    }

    /// Whether more runs would change nothing.
    fn is_stuck_or_done(&self) -> bool {
        let ended = self.ended();
        let exits: Vec<Exit> = ended.iter().rev().take(ALIKE).map(|(_, it)| it.exit).collect();
        match exits.first() {
            Some(Exit::Done) => {
                let shared = locked(&self.shared);
                !shared.killed.contains(&shared.user)
            }
            Some(Exit::Waiting) | None => false,
            Some(first) => exits.len() == ALIKE && exits.iter().all(|exit| exit == first),
        }
    }

    /// The time between two runs, in which a person may approve.
    async fn between(&self, story: &Story, commit: &Commit) {
        let asks = self.ended().last().is_some_and(|(_, it)| it.exit == Exit::ApprovalNeeded);
        if let Some(after) = story.approves_after.filter(|_| asks) {
            sleep(Duration::from_secs(after)).await;
            for agent in &self.scenario.agents {
                for step in commit.rules.steps.iter().filter(|step| step.approve) {
                    self.approve(agent.name, step, commit).await;
                }
            }
        }
        sleep(Duration::from_secs(story.interval)).await;
        // Nothing happens before the next event.
        let is_done = self.ended().last().is_some_and(|(_, it)| it.exit == Exit::Done);
        let now = self.world.clock().elapsed();
        let times = story.events.iter().map(|(at, _)| Duration::from_secs(*at));
        if let Some(next) = times.filter(|at| *at > now).min().filter(|_| is_done) {
            sleep(next.saturating_sub(now) + Duration::from_secs(1)).await;
        }
    }

    /// Approves a step by the command, which refuses if it is not the step's turn.
    async fn approve(&self, agent: &str, step: &StepRule, commit: &Commit) {
        self.write_manifests(commit);
        locked(&self.shared).checker.approvals(agent, |all| all.give(step, commit.image));
        let before = self.approval(agent, step);
        let name = format!("{NAMESPACE}/{agent}");
        let line = ["approve", &name, &step.name, "-f", "agents.yaml", "--yes"];
        let (world, folder) = (&self.world, self.folder.path());
        let ended = ds_apply_at(world, APPROVER, folder, mpsc::channel(1).1, &line).await;
        // It may be written although all answers were lost (found by seed 434236).
        if ended.exit != Exit::Done && self.approval(agent, step) == before {
            locked(&self.shared).checker.approvals(agent, Approvals::retract);
        }
    }

    /// The approval of a step that is in the cluster; null if there is none.
    fn approval(&self, agent: &str, step: &StepRule) -> Value {
        let server = self.world.server();
        let store = server.store();
        let found = store.get(Kind::ConfigMap, NAMESPACE, &approvals_name(&agent.into()));
        found.map_or(Value::Null, |it| it.value()["data"][&*step.name].clone())
    }

    /// Writes the ConfigMap of approvals as any client may.
    async fn write_approval(&self, agent: &str, commit: &Commit, step: usize, given: Given) {
        let Some(rule) = commit.rules.steps.get(step).filter(|step| step.approve) else { return };
        let (uid, mut template, now) = {
            let server = self.world.server();
            let store = server.store();
            let Some(live) = live(agent, &store) else { return };
            (live.uid.clone(), live.spec.template.raw().clone(), self.world.clock().now())
        };
        let mut rule = rule.clone();
        let mut image = commit.image;
        match given {
            Given::Right | Given::OtherUid => {}
            Given::Image(other) => image = other,
            Given::OtherStep => rule.soak += 7,
        }
        let text = format!("registry.example/agent:{image}");
        template["spec"]["containers"][0]["image"] = text.into();
        let step = serde_json::from_value(rule.json()).expect("a step");
        let approval = Approval {
            uid: if given == Given::OtherUid { "uid-other".into() } else { uid },
            template: template_digest(&template),
            step: step_digest(&step),
            by: "somebody".into(),
            at: now,
        };
        if given != Given::OtherUid {
            locked(&self.shared).checker.approvals(agent, |all| all.give(&rule, image));
        }
        let data = json!({"data": {rule.name.as_str(): approval.text()}});
        self.write_config_map(&approvals_name(&agent.into()), data).await;
    }

    async fn write_config_map(&self, name: &str, mut object: Value) {
        let server = || self.world.server().as_user(EXTERNAL_USER);
        let all = format!("/api/v1/namespaces/{NAMESPACE}/configmaps");
        let is_there = self.world.server().store().get(Kind::ConfigMap, NAMESPACE, name).is_some();
        if is_there {
            return send(server(), "PATCH", &format!("{all}/{name}"), &object).await;
        }
        object["apiVersion"] = "v1".into();
        object["kind"] = "ConfigMap".into();
        object["metadata"] = json!({"name": name});
        send(server(), "POST", &all, &object).await;
    }

    /// Removes the note from the lease, unless a run is active: that one would write it again.
    async fn lose_note(&self, agent: &str) {
        let name = lease_name(agent);
        let is_free = {
            let server = self.world.server();
            let store = server.store();
            let lease = store.get(Kind::Lease, NAMESPACE, &name).map(|it| it.value());
            lease.is_some_and(|it| it["spec"]["holderIdentity"].as_str().is_none_or(str::is_empty))
        };
        if !is_free {
            return;
        }
        locked(&self.shared).checker.forget_steps(agent, self.world.clock().now());
        let path = format!("/apis/coordination.k8s.io/v1/namespaces/{NAMESPACE}/leases/{name}");
        let gone = json!({"metadata": {"annotations": {STEPS_ANNOTATION: null}}});
        send(self.world.server().as_user(EXTERNAL_USER), "PATCH", &path, &gone).await;
    }

    /// Whether a rollout waits for a shared budget that is used up by pods which were broken before, and
    /// which it does not replace: those of a later step, or of a DaemonSet that does not change. A guard
    /// refuses to begin so, but a controller can create a pod with the old template after the plan counted
    /// on a new one, and a sibling can be blocked first.
    fn waits_for_repair(&self, rules: &Rules) -> bool {
        let Scenario { nodes, agents, .. } = self.scenario;
        let server = self.world.server();
        let store = server.store();
        let live: Vec<_> = agents.iter().filter_map(|agent| live(agent.name, &store)).collect();
        let pause = |live: &DaemonSet| PausedRollout::of(live).ok().flatten();
        let waits = live.iter().filter_map(|live| pause(live)).flat_map(|pause| pause.waits_for);
        let waits: Vec<_> = waits.filter(|wait| wait.kind == WaitKind::SharedBudget).collect();
        let is_of_step = |wait: &WaitsFor| rules.steps.iter().any(|it| it.name == *wait.step);
        let has_later_step = waits.iter().any(is_of_step);
        let stays = |pod: &Pod| {
            let owner = live.iter().find(|live| owns(live, pod));
            let is_done = |live: &DaemonSet| pause(live).is_none() && is_updated(pod, live, &store);
            !pod.is_ready() && (has_later_step || owner.is_some_and(|live| is_done(live)))
        };
        let is_broken = |node: &&NodeSpec| {
            let mut here =
                pods(&store).filter(|pod| pod.node().is_some_and(|it| *it == *node.name));
            node.pod == PodSpec::Unready && here.any(stays)
        };
        let broken = nodes.iter().filter(is_broken).count() as u64;
        let limit = locked(&self.shared).checker.shared_limit(rules);
        !waits.is_empty() && limit.is_some_and(|limit| limit <= broken)
    }

    /// Nothing fails and somebody approves: the story must come to its end.
    fn judge_benign(&self, story: &Story) {
        let scenario = self.scenario;
        let is_left_alone = scenario.faults.is_empty() && scenario.external_actors.is_empty();
        let well = scenario.nodes.iter().all(|node| node.ready);
        let last = self.ended().last().map(|(_, ended)| ended.clone());
        let waits =
            last.as_ref().is_some_and(|it| matches!(it.exit, Exit::Waiting | Exit::ApprovalNeeded));
        let must_end = is_left_alone && well && story.is_benign() && story.most_runs > 1;
        if must_end && waits && !self.waits_for_repair(&story.rules) {
            let text = format!("{} runs do not end it: {last:?}", story.most_runs);
            locked(&self.shared).checker.broken.push(text);
        }
    }
}
