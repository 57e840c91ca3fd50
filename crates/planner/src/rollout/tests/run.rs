//! A run on a simulated cluster, with a caller that may be slow, lose requests or be killed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};

use super::sim::{Seen, Sim};
use crate::digest::template_digest;
use crate::plan::PausedRollout;
use crate::rollout::state::Stop;
use crate::rollout::{
    AllowedActions, Answer, ClusterChecks, Cost, Declared, Delete, Effect, Ending, Event, Failure,
    Goal, NewPuller, Outcome, Provenance, Report, State, Target, Task, Write, decide,
    is_rolling_back,
};
use daemonset::model::{
    CheckQuestion, CheckResponse, OnFailure, PodTemplate, PolicySpec, Ramp, StepsNote, Uid,
};

/// A pending request.
#[derive(Clone, Debug)]
enum Request {
    Write(Box<Write>),
    Delete(Delete),
    Annotate(String),
    Remember(String),
    Forget(String),
    Note(Box<StepsNote>),
    ReadApprovals,
    Ask(CheckQuestion),
    CreatePuller(Box<NewPuller>),
    RemovePuller(Uid),
}

/// What proptest takes if `PROPTEST_CASES` is not set.
const DEFAULT_CASES: u32 = 256;

/// This random seed, or that of `PROPTEST_RNG_SEED`.
pub(super) fn seed(number: u64) -> RngSeed {
    match ProptestConfig::default().rng_seed {
        RngSeed::Random => RngSeed::Fixed(number),
        given @ RngSeed::Fixed(_) => given,
    }
}

/// The number of random cases, or as many as `PROPTEST_CASES` says.
pub(super) fn cases(number: u32) -> u32 {
    match ProptestConfig::default().cases {
        DEFAULT_CASES => number,
        asked => asked,
    }
}

/// The fate of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Post {
    /// Executed and answered.
    Delivered,
    /// Executed, but the answer is an inconclusive error.
    AnswerLost,
    /// Not executed; the answer is an inconclusive error.
    RequestLost,
    /// Executed; the answer is delayed until the next one is requested.
    AnswerDelayed,
}

/// A cluster, a run, and the observations and requests between them.
pub(super) struct Run {
    pub sim: Sim,
    pub task: Task,
    pub state: State,
    /// Observations, the newest last.
    seen: VecDeque<Seen>,
    requests: VecDeque<Request>,
    delayed: VecDeque<Answer>,
    wake: Option<Timestamp>,
    pub ended: Option<Ending>,
    pub steps: usize,
    pub deletes: Vec<Delete>,
    pub reports: Vec<Report>,
    /// The questions that were asked, and what came back.
    pub answers: Vec<(CheckQuestion, CheckResponse)>,
    /// Nodes that lost an available pod by a delete of this run, and have none yet.
    robbed: BTreeSet<String>,
    /// The maximum number of them at one moment.
    pub most_deleted_from: usize,
    /// The maximum number of nodes without an available pod when the run deleted an available one.
    pub most_unavailable: usize,
    /// What each step was decided on, and its deletes, if an observer wants to know.
    pub decisions: Option<Vec<Decision>>,
}

/// The observation and the deletes of one step.
pub(super) struct Decision {
    pub seen: Seen,
    pub now: Timestamp,
    pub deletes: Vec<Delete>,
    /// The pods whose delete was executed before, or has no answer yet.
    pub deleted: BTreeSet<Uid>,
    /// Whether it writes the declared strategy: then the controller acts by it.
    pub resumes: bool,
    /// The names of the steps that are noted as done.
    pub noted: BTreeSet<String>,
}

/// The names of the steps that a note says are done.
pub(super) fn noted_as_done(note: Option<&StepsNote>) -> BTreeSet<String> {
    let steps = note.into_iter().flat_map(|note| &note.steps);
    steps.filter(|(_, step)| step.done_at.is_some()).map(|(name, _)| name.clone()).collect()
}

/// The pace of the controller: the whole budget at once, and Ready is available.
pub(super) fn plain_pace() -> PolicySpec {
    PolicySpec { ramp: Ramp::None, min_ready_seconds: Some(0), ..PolicySpec::default() }
}

pub(super) fn task(goal: Goal) -> Task {
    Task {
        goal,
        policy: plain_pace(),
        waves: Vec::new(),
        provenance: Provenance {
            commit: Some("c0ffee".into()),
            plan_digest: "sha256:01".into(),
            change_cause: Some("c0ffee: newer".into()),
            by: Some("ci".into()),
        },
        deadline: None,
        allow_mass_eviction: false,
        failed_templates: BTreeSet::new(),
        note: None,
        approvals: BTreeMap::new(),
        node_seconds: None,
        has_pullers: false,
        cluster_checks: ClusterChecks::Observed,
        wait_until: None,
    }
}

/// The target of a plan for a manifest with this image and strategy.
pub(super) fn target(sim: &Sim, image: &str, strategy: &Value) -> Target {
    let live = &sim.cluster.daemon_set;
    let mut template = live.spec.template.raw().clone();
    template["spec"]["containers"][0]["image"] = image.into();
    let pause = PausedRollout::of(live).unwrap();
    let declared = pause.map_or_else(|| sim.strategy(), |pause| pause.declared);
    let changes = template != *live.spec.template.raw() || declared != *strategy;
    Target {
        uid: (!sim.deleted).then(|| live.uid.clone()),
        template: PodTemplate::from_json(template.clone()).unwrap(),
        declared: Declared::from_json(strategy.clone()).unwrap(),
        written: Arc::new(json!({
            "apiVersion": "apps/v1", "kind": "DaemonSet",
            "metadata": {"name": "foo", "namespace": "default"},
            "spec": {"template": template},
        })),
        changes,
    }
}

impl Run {
    pub(super) fn new(sim: Sim, task: Task) -> Self {
        let seen = VecDeque::from([sim.seen()]);
        Self {
            state: State::new(task.clone()),
            sim,
            task,
            seen,
            requests: VecDeque::new(),
            delayed: VecDeque::new(),
            wake: None,
            ended: None,
            steps: 0,
            deletes: Vec::new(),
            reports: Vec::new(),
            answers: Vec::new(),
            robbed: BTreeSet::new(),
            most_deleted_from: 0,
            most_unavailable: 0,
            decisions: None,
        }
    }

    /// `ds-apply apply` of a manifest with this image and the declared strategy.
    pub(super) fn apply(sim: Sim, image: &str) -> Self {
        let strategy = declared(&sim);
        let target = target(&sim, image, &strategy);
        let failed = sim.remembered.iter().map(|digest| digest.as_str().into()).collect();
        Self::new(sim, task(Goal::Apply(target))).with(|task| task.failed_templates = failed)
    }

    /// The same run with other settings.
    #[must_use]
    pub(super) fn with(mut self, change: impl FnOnce(&mut Task)) -> Self {
        change(&mut self.task);
        self.state = State::new(self.task.clone());
        self
    }

    /// Another run on the same cluster, after the first one has died.
    pub(super) fn again(self, image: &str) -> Self {
        let policy = self.task.policy.clone();
        Self::apply(self.sim, image).with(|task| task.policy = policy)
    }

    /// Discards the state and starts again with a fresh plan on a fresh snapshot. Pending requests
    /// are lost. A rollback is resumed; otherwise a template that is recorded as failed, on the lock or
    /// by the pause, is rejected, so such a run is not killed.
    pub(super) fn restart(&mut self, image: &str) {
        if self.ended.is_some() || self.sim.deleted {
            return;
        }
        let target = target(&self.sim, image, &declared(&self.sim));
        let digest = template_digest(target.template.raw());
        let rolls_back = self.task.policy.on_failure == OnFailure::Rollback;
        self.task.goal = if rolls_back && is_rolling_back(&self.sim.seen().observed(), &digest) {
            Goal::RollBack
        } else if self.sim.has_failed(&digest) {
            return;
        } else {
            Goal::Apply(target)
        };
        self.task.note.clone_from(&self.sim.note);
        self.requests.clear();
        self.delayed.clear();
        self.seen = VecDeque::from([self.sim.seen()]);
        self.state = State::new(self.task.clone());
    }

    pub(super) fn feed(&mut self, event: Event, age: usize) {
        let newest = self.seen.len() - 1;
        let seen = self.seen[newest.saturating_sub(age)].clone();
        let (state, effects) = decide(self.state.clone(), event, &seen.observed(), self.sim.now());
        self.state = state;
        self.steps += 1;
        self.wake = None;
        self.note_decision(seen, &effects);
        for effect in effects {
            assert!(self.ended.is_none(), "no effect after the end");
            match effect {
                Effect::Write(write) => self.requests.push_back(Request::Write(write)),
                Effect::Delete(delete) => self.requests.push_back(Request::Delete(delete)),
                Effect::Annotate { revision, uid: _ } => {
                    self.requests.push_back(Request::Annotate(revision.to_string()));
                }
                Effect::Remember { digest } => self.requests.push_back(Request::Remember(digest)),
                Effect::Forget { digest } => self.requests.push_back(Request::Forget(digest)),
                Effect::Note(note) => self.requests.push_back(Request::Note(note)),
                Effect::Ask(questions) => {
                    self.requests.extend(questions.into_iter().map(Request::Ask));
                }
                Effect::ReadApprovals => self.requests.push_back(Request::ReadApprovals),
                Effect::CreatePuller(new) => self.requests.push_back(Request::CreatePuller(new)),
                Effect::RemovePuller { pod: _, uid } => {
                    self.requests.push_back(Request::RemovePuller(uid));
                }
                Effect::Report(report) => self.reports.push(report),
                Effect::WakeAt(at) => self.wake = Some(at),
                Effect::Finish(ending) => {
                    let hurries = self.state.stop.is_some_and(Stop::leaves);
                    // Questions change nothing, so the end does not wait for their answers.
                    self.requests.retain(|request| !matches!(request, Request::Ask(_)));
                    let is_question = |answer: &Answer| matches!(answer, Answer::Checked { .. });
                    self.delayed.retain(|answer| !is_question(answer));
                    assert!(hurries || self.requests.is_empty() && self.delayed.is_empty());
                    self.ended = Some(*ending);
                }
            }
        }
    }

    /// Notes what a step was decided on, and its deletes, if an observer wants to know.
    fn note_decision(&mut self, seen: Seen, effects: &[Effect]) {
        let Some(decisions) = &mut self.decisions else { return };
        let deletes = effects.iter().filter_map(|effect| match effect {
            Effect::Delete(delete) => Some(delete.clone()),
            _ => None,
        });
        let resumes = effects.iter().any(|effect| match effect {
            Effect::Write(write) => write.pause.is_none(),
            _ => false,
        });
        let pending = self.requests.iter().filter_map(|request| match request {
            Request::Delete(delete) => Some(delete),
            _ => None,
        });
        decisions.push(Decision {
            seen,
            now: self.sim.now(),
            deletes: deletes.collect(),
            deleted: pending.chain(&self.deletes).map(|it| it.uid.clone()).collect(),
            resumes,
            noted: noted_as_done(self.state.note.as_ref()),
        });
    }

    /// The time of the next step at the latest.
    pub(super) fn wake(&self) -> Option<Timestamp> {
        self.wake
    }

    /// The actions that the in-process controller may take.
    pub(super) fn allowed_actions(&self) -> AllowedActions {
        self.state.allowed_actions()
    }

    /// Adds an observation of the current cluster.
    pub(super) fn observe(&mut self) {
        self.seen.push_back(self.sim.seen());
        if self.seen.len() > 8 {
            self.seen.pop_front();
        }
    }

    /// Observes and takes a step.
    pub(super) fn look(&mut self) {
        self.observe();
        if let Some(message) = self.sim.create_failed.clone() {
            self.feed(Event::CreateFailed { message }, 0);
        }
        self.feed(Event::Observed, 0);
    }

    /// Executes the first request.
    pub(super) fn post(&mut self, post: Post) -> bool {
        let Some(request) = self.requests.pop_front() else { return false };
        let done = post != Post::RequestLost;
        let lost = || Failure::Unknown { message: "timed out".into() };
        let failed = matches!(post, Post::AnswerLost | Post::RequestLost);
        let said = |result: Result<(), Failure>| if failed { Err(lost()) } else { result };
        let answer = match request {
            Request::Write(write) => {
                let result = if done { self.sim.write(&write) } else { Err(lost()) };
                Answer::Written(if failed { Err(lost()) } else { result })
            }
            Request::Delete(delete) => {
                let uid = delete.uid.clone();
                let result = if done { self.delete(&delete) } else { Ok(()) };
                Answer::Deleted { uid, result: said(result) }
            }
            Request::Annotate(name) => {
                let change = self.task.provenance.clone();
                let result = if done { self.sim.annotate(&name, &change) } else { Ok(()) };
                Answer::Annotated { revision: name.into(), result: said(result) }
            }
            Request::Remember(digest) => {
                if done {
                    self.sim.remembered.insert(digest);
                }
                Answer::Remembered(said(Ok(())))
            }
            Request::Forget(digest) => {
                if done {
                    self.sim.remembered.remove(&digest);
                }
                Answer::Remembered(said(Ok(())))
            }
            Request::Note(note) => {
                if done {
                    self.sim.note = Some(*note);
                }
                Answer::Noted(said(Ok(())))
            }
            Request::Ask(question) => self.ask(question),
            Request::CreatePuller(new) => {
                let node = new.node.clone();
                let result = if done { self.sim.create_puller(&new) } else { Err(lost()) };
                Answer::PullerCreated { node, result: if failed { Err(lost()) } else { result } }
            }
            Request::RemovePuller(uid) => {
                let result = if done { self.sim.remove_puller(&uid) } else { Ok(()) };
                Answer::PullerRemoved { uid, result: said(result) }
            }
            Request::ReadApprovals => {
                Answer::Approvals((!failed).then(|| self.sim.approvals.clone()))
            }
        };
        if post == Post::AnswerDelayed {
            self.delayed.push_back(answer);
        } else {
            self.feed(Event::Answer(answer), 0);
        }
        true
    }

    /// Removes the first request: the test answers it.
    pub(super) fn drop_request(&mut self) {
        self.requests.pop_front().expect("a request is pending");
    }

    /// Delivers the last delayed answer.
    pub(super) fn deliver(&mut self, age: usize) -> bool {
        let Some(answer) = self.delayed.pop_back() else { return false };
        self.feed(Event::Answer(answer), age);
        true
    }

    /// Answers a question: by what the test has set for the check, else it passes.
    fn ask(&mut self, question: CheckQuestion) -> Answer {
        let response = self.sim.respond(&question);
        self.answers.push((question.clone(), response.clone()));
        Answer::Checked { question: Box::new(question), response }
    }

    fn delete(&mut self, delete: &Delete) -> Result<(), Failure> {
        let before = self.sim.unavailable();
        let result = self.sim.delete(delete);
        let robbed = self.sim.unavailable();
        // A pod that was not Ready when it was evaluated may be Ready by now.
        let knowingly = delete.cost != Cost::Nothing;
        if result.is_ok() && robbed.len() > before.len() && knowingly {
            self.robbed.insert(delete.node.to_string());
            self.most_unavailable = self.most_unavailable.max(robbed.len());
        }
        self.deletes.push(delete.clone());
        self.count();
        result
    }

    /// Nodes on which the run deleted a pod, and that are Ready without an available one since
    /// then.
    pub(super) fn count(&mut self) {
        let unavailable = self.sim.unavailable();
        self.robbed.retain(|node| unavailable.contains(node));
        self.most_deleted_from = self.most_deleted_from.max(self.robbed.len());
    }

    pub(super) fn pass(&mut self, seconds: i64) {
        for _ in 0..seconds {
            self.sim.pass(1);
            self.count();
        }
    }

    /// One second without faults: requests are answered, observations are fresh.
    pub(super) fn settle(&mut self) {
        let is_idle = (0..1_000).any(|_| !self.deliver(0) && !self.post(Post::Delivered));
        assert!(is_idle, "requests without end");
        self.pass(1);
        if self.ended.is_none() {
            self.look();
        }
    }

    /// Runs without faults to the end.
    pub(super) fn finish(mut self) -> Self {
        self.look();
        self.until(|_| false);
        self
    }

    /// Runs without faults until a condition is true, or to the end.
    pub(super) fn until(&mut self, holds: impl Fn(&Self) -> bool) {
        for _ in 0..5_000 {
            if self.ended.is_some() || holds(self) {
                return;
            }
            self.settle();
        }
        panic!("neither the end nor the condition was reached: {:#?}", self.reports.last());
    }

    pub(super) fn outcome(&self) -> &Outcome {
        &self.ended.as_ref().expect("it has ended").outcome
    }

    pub(super) fn pause(&self) -> Option<PausedRollout> {
        PausedRollout::of(&self.sim.cluster.daemon_set).unwrap()
    }

    /// Number of pods by image.
    pub(super) fn images(&self) -> BTreeMap<String, usize> {
        let mut images = BTreeMap::new();
        for image in self.sim.running().into_values() {
            *images.entry(image).or_default() += 1;
        }
        images
    }

    pub(super) fn deleted_nodes(&self) -> Vec<&str> {
        self.deletes.iter().map(|delete| delete.node.as_str()).collect()
    }

    pub(super) fn deleted_uids(&self) -> BTreeSet<&Uid> {
        self.deletes.iter().map(|delete| &delete.uid).collect()
    }
}

/// The declared strategy, paused or not.
pub(super) fn declared(sim: &Sim) -> Value {
    let pause = PausedRollout::of(&sim.cluster.daemon_set).unwrap();
    pause.map_or_else(|| sim.strategy(), |pause| pause.declared)
}
