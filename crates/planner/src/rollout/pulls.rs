//! Which nodes pull the images of the new pods now (`prePull` of the policy), and which are through.
//!
//! A node begins only after its images are there, or if its pod runs with the same ones. A node that
//! does not get them in time is dropped: it is skipped, as one that is not Ready. If that makes more
//! nodes than `skipUnreadyNodes` allows, nothing more begins.
//!
//! What a puller says is seen in the cluster, also by a run that is started again. Which nodes are
//! through is remembered by a run only: its puller is removed at once, and another one finds the
//! images there. Not here: the order of the nodes (`next_deletes`), and the pod ([`pre_pull`]).
//!
//! [`pre_pull`]: crate::pre_pull

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::event::Failure;
use super::outcome::NotPulled;
use super::request::RequestState;
use daemonset::model::{NodeName, PodName, PrePull, PullProblem, PullState, Puller, Uid};

/// Maximum number of pending creations.
const MAX_REQUESTS: usize = 16;

/// Time until a puller that was created, or has ended, is created again if there is none.
const AGAIN: SignedDuration = SignedDuration::from_secs(10);

/// Time after which the removal of a puller is tried again.
const REMOVE_AGAIN: SignedDuration = SignedDuration::from_secs(2);

/// Attempts to remove a puller at the end of a run. The next run finds what is left.
const REMOVALS: u32 = 3;

/// What a run knows about pulls, beside what it sees.
#[derive(Clone, Debug, Default)]
pub(super) struct Pulls {
    /// Nodes whose images are there.
    pulled: BTreeSet<NodeName>,
    /// Nodes that did not get them in time.
    pub(super) dropped: BTreeMap<NodeName, NotPulled>,
    /// The time since which each node pulls.
    since: BTreeMap<NodeName, Timestamp>,
    /// The creation of the puller of each node.
    creating: BTreeMap<NodeName, RequestState>,
    /// The last failed creation of each.
    create_failures: BTreeMap<NodeName, String>,
    /// Pullers that were created and may not be observed yet.
    created: BTreeMap<Uid, PodName>,
    /// Pullers that were sent a delete, with the number of attempts.
    removing: BTreeMap<Uid, (RequestState, u32)>,
    /// Nodes that may not begin: their images are not there.
    held_back: BTreeSet<NodeName>,
    /// Whether any of these still pulls.
    pub(super) is_pulling: bool,
    /// Number of nodes that may be skipped.
    pub(super) skippable: u32,
    /// Whether more are: nothing more begins.
    pub(super) is_over: bool,
    /// Whether the run is about to end.
    is_ending: bool,
}

/// What pulls are decided on.
#[derive(Clone, Copy, Debug)]
pub(super) struct PullInput<'a> {
    /// The nodes that begin next and need the images, in their order.
    pub next: &'a [NodeName],
    /// The pullers that are seen.
    pub pullers: &'a [Puller],
    /// The digest of the images.
    pub images: &'a str,
    pub pre_pull: PrePull,
    pub now: Timestamp,
}

/// The requests to make now.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PullRequests {
    /// Nodes that get a puller.
    pub create: Vec<NodeName>,
    /// Pullers that are removed.
    pub remove: Vec<(PodName, Uid)>,
    /// The number of these that are of no use any more, and were not asked to go before.
    pub left: usize,
    /// Nodes whose images are there now, with the time that it took in seconds.
    pub pulled: Vec<(NodeName, i64)>,
    /// Nodes that are dropped now.
    pub dropped: Vec<NodeName>,
    /// The time at which that changes by itself.
    pub wake: Option<Timestamp>,
}

impl Pulls {
    /// Whether a node may not begin, because its images are not there.
    pub(super) fn holds_back(&self, node: &NodeName) -> bool {
        self.is_over || self.held_back.contains(node)
    }

    /// Whether any request is pending.
    pub(super) fn awaits_answers(&self) -> bool {
        self.creating.values().any(|it| *it == RequestState::Out)
            || self.removing.values().any(|(it, _)| *it == RequestState::Out)
    }

    /// Whether this run has seen that a node got its images.
    pub(super) fn has_pulled(&self, node: &NodeName) -> bool {
        self.pulled.contains(node)
    }

    /// Decides the next pulls.
    pub(super) fn decide(&mut self, input: PullInput<'_>) -> PullRequests {
        let mut requests = PullRequests::default();
        let wanted: BTreeSet<&NodeName> = input.next.iter().collect();
        self.since.retain(|node, _| wanted.contains(node));
        self.forget_gone(input.pullers);
        let mut busy = self.see(&wanted, input, &mut requests);
        for node in input.next.iter().filter(|node| !busy.contains(*node)).collect::<Vec<_>>() {
            if self.waits_for_its_puller(node, input, &mut requests) {
                busy.insert(node.clone());
            }
        }
        self.begin(&busy, input, &mut requests);
        let is_left = |node: &&NodeName| !self.pulled.contains(*node);
        self.held_back = input.next.iter().filter(is_left).cloned().collect();
        self.is_pulling = self.held_back.iter().any(|node| !self.dropped.contains_key(node));
        requests
    }

    /// Removes all pullers that are seen or were created; returns whether one is still to be removed.
    pub(super) fn remove_all(
        &mut self,
        pullers: &[Puller],
        now: Timestamp,
    ) -> (PullRequests, bool) {
        self.is_ending = true;
        self.forget_gone(pullers);
        let seen = pullers.iter().filter(|it| !it.terminating);
        let seen = seen.map(|it| (it.uid.clone(), it.name.clone()));
        let all: BTreeMap<Uid, PodName> = seen.chain(self.created.clone()).collect();
        let mut requests = PullRequests::default();
        let mut is_left = false;
        for (uid, name) in all {
            match self.removing.get(&uid) {
                Some((RequestState::Idle, _) | (RequestState::RetryAt(_), REMOVALS..)) => {}
                Some((RequestState::Out | RequestState::RetryAt(_), _)) | None => {
                    is_left = true;
                    self.remove_left(name, uid, now, &mut requests);
                }
            }
        }
        (requests, is_left)
    }

    /// Takes the answer to the creation of a puller.
    pub(super) fn receive_created(
        &mut self,
        node: NodeName,
        result: Result<(PodName, Uid), Failure>,
        now: Timestamp,
    ) {
        match result {
            Ok((name, uid)) => {
                self.create_failures.remove(&node);
                self.created.insert(uid, name);
            }
            // It exists already, or goes: that is seen.
            Err(Failure::Conflict) => {}
            Err(failure) => {
                self.create_failures.insert(node.clone(), failure.to_string());
            }
        }
        self.creating.insert(node, RequestState::RetryAt(now + AGAIN));
    }

    /// Takes the answer to the removal of a puller.
    pub(super) fn receive_removed(
        &mut self,
        uid: &Uid,
        result: &Result<(), Failure>,
        now: Timestamp,
    ) {
        let Some((request, _)) = self.removing.get_mut(uid) else { return };
        *request = match result {
            Ok(()) | Err(Failure::Conflict | Failure::Gone) => {
                self.created.remove(uid);
                RequestState::Idle
            }
            Err(
                Failure::Forbidden { .. }
                | Failure::Refused { .. }
                | Failure::ChangesTemplate
                | Failure::Unknown { .. },
            ) => RequestState::RetryAt(now + REMOVE_AGAIN),
        };
    }

    /// Created pullers that are seen are no longer remembered.
    fn forget_gone(&mut self, pullers: &[Puller]) {
        for puller in pullers {
            self.created.remove(&puller.uid);
        }
        // A puller that was removed and is not seen any more has no further use.
        self.removing.retain(|uid, (request, _)| {
            *request != RequestState::Idle || pullers.iter().any(|it| it.uid == *uid)
        });
    }

    /// Looks at the pullers that are there; returns the nodes with one.
    fn see(
        &mut self,
        wanted: &BTreeSet<&NodeName>,
        input: PullInput<'_>,
        requests: &mut PullRequests,
    ) -> BTreeSet<NodeName> {
        let PullInput { pullers, images, pre_pull, now, .. } = input;
        let mut busy = BTreeSet::new();
        for puller in pullers {
            let Puller { name, uid, node, state, .. } = puller;
            let goes = puller.terminating || self.removing.contains_key(uid);
            let is_of_use =
                wanted.contains(node) && &*puller.images == images && self.is_open(node);
            if goes || !is_of_use {
                if is_of_use {
                    // It is created again once it is gone, unless that takes too long.
                    let since = *self.since.entry(node.clone()).or_insert(now);
                    if self.is_in_time(node, since, pre_pull, None, now, requests) {
                        busy.insert(node.clone());
                    }
                }
                if !puller.terminating {
                    self.remove_left(name.clone(), uid.clone(), now, requests);
                }
                continue;
            }
            let created = puller.created.unwrap_or(now);
            let since = *self.since.entry(node.clone()).or_insert(created);
            let problem = match state {
                PullState::Pulled => {
                    let seconds = now.duration_since(created).as_secs().max(0);
                    self.pulled.insert(node.clone());
                    requests.pulled.push((node.clone(), seconds));
                    self.remove(name.clone(), uid.clone(), now, requests);
                    continue;
                }
                PullState::Pulling(problem) => problem.clone(),
                PullState::Ended(problem) => Some(problem.clone()),
            };
            if let PullState::Ended(_) = state {
                // It is created again, until the time is over.
                self.creating.insert(node.clone(), RequestState::RetryAt(now + AGAIN));
                self.remove(name.clone(), uid.clone(), now, requests);
            }
            if self.is_in_time(node, since, pre_pull, problem, now, requests) {
                busy.insert(node.clone());
            } else {
                self.remove(name.clone(), uid.clone(), now, requests);
            }
        }
        busy
    }

    /// Whether a node without a puller will get one that was asked for, or may be soon.
    fn waits_for_its_puller(
        &mut self,
        node: &NodeName,
        input: PullInput<'_>,
        requests: &mut PullRequests,
    ) -> bool {
        let now = input.now;
        let Some(since) = self.since.get(node).copied().filter(|_| self.is_open(node)) else {
            return false;
        };
        let since = self.since_without_attempt(node, since, input.pre_pull, now);
        let message = self.create_failures.get(node).map_or("", String::as_str).into();
        let problem = PullProblem { message, ..PullProblem::default() };
        if !self.is_in_time(node, since, input.pre_pull, Some(problem), now, requests) {
            return false;
        }
        match self.creating.get(node) {
            Some(RequestState::Out) => true,
            Some(RequestState::RetryAt(at)) if now < *at => {
                requests.wake = requests.wake.into_iter().chain([*at]).min();
                true
            }
            Some(RequestState::RetryAt(_) | RequestState::Idle) | None => false,
        }
    }

    /// The time since which a node pulls, which begins again if its puller could not be created in
    /// time because the run waited for something else, such as the controller or a window.
    fn since_without_attempt(
        &mut self,
        node: &NodeName,
        since: Timestamp,
        pre_pull: PrePull,
        now: Timestamp,
    ) -> Timestamp {
        let limit = since + SignedDuration::from_secs(pre_pull.timeout.0.into());
        let due = match self.creating.get(node) {
            Some(RequestState::RetryAt(at)) => *at,
            Some(RequestState::Out | RequestState::Idle) | None => return since,
        };
        // A look that is a little late has missed nothing.
        if due < limit && due + AGAIN <= now && limit <= now {
            self.since.insert(node.clone(), now);
            return now;
        }
        since
    }

    /// Whether a node that pulls since then has time left; else it is dropped.
    fn is_in_time(
        &mut self,
        node: &NodeName,
        since: Timestamp,
        pre_pull: PrePull,
        problem: Option<PullProblem>,
        now: Timestamp,
        requests: &mut PullRequests,
    ) -> bool {
        let limit = since + SignedDuration::from_secs(pre_pull.timeout.0.into());
        if now < limit {
            requests.wake = requests.wake.into_iter().chain([limit]).min();
            return true;
        }
        let seconds = now.duration_since(since).as_secs();
        let problem = problem.unwrap_or_default();
        self.dropped.insert(node.clone(), NotPulled { seconds, problem });
        requests.dropped.push(node.clone());
        false
    }

    /// Creates pullers, as many as there is room for.
    fn begin(
        &mut self,
        busy: &BTreeSet<NodeName>,
        input: PullInput<'_>,
        requests: &mut PullRequests,
    ) {
        let PullInput { next, pre_pull, now, .. } = input;
        let out = self.creating.values().filter(|it| **it == RequestState::Out).count();
        let parallel = usize::try_from(pre_pull.parallel).unwrap_or(usize::MAX);
        let room = parallel.saturating_sub(busy.len()).min(MAX_REQUESTS.saturating_sub(out));
        let free = next.iter().filter(|node| self.is_open(node) && !busy.contains(*node));
        for node in free.take(room).cloned().collect::<Vec<_>>() {
            self.creating.insert(node.clone(), RequestState::Out);
            self.since.entry(node.clone()).or_insert(now);
            requests.create.push(node);
        }
    }

    /// Whether it is open whether a node gets its images.
    fn is_open(&self, node: &NodeName) -> bool {
        !self.is_over && !self.pulled.contains(node) && !self.dropped.contains_key(node)
    }

    /// Removes a puller that is of no use any more.
    fn remove_left(
        &mut self,
        name: PodName,
        uid: Uid,
        now: Timestamp,
        requests: &mut PullRequests,
    ) {
        requests.left += usize::from(!self.removing.contains_key(&uid));
        self.remove(name, uid, now, requests);
    }

    fn remove(&mut self, name: PodName, uid: Uid, now: Timestamp, requests: &mut PullRequests) {
        let is_ending = self.is_ending;
        let (request, attempts) =
            self.removing.entry(uid.clone()).or_insert((RequestState::RetryAt(now), 0));
        match *request {
            // Else a run never ends if two cannot be removed: one request is always pending.
            RequestState::RetryAt(_) if is_ending && *attempts >= REMOVALS => {}
            RequestState::RetryAt(at) if at <= now => {
                (*request, *attempts) = (RequestState::Out, *attempts + 1);
                requests.remove.push((name, uid));
            }
            RequestState::RetryAt(at) => {
                requests.wake = requests.wake.into_iter().chain([at]).min();
            }
            RequestState::Out | RequestState::Idle => {}
        }
    }
}
