//! Which new pods have failed: not available in time, in a trouble that does not heal by itself,
//! restarting again and again, or not there at all.
//!
//! Only nodes that are Ready and should run a pod are asked; a node that is not is nobody's proof
//! against a template. Not here: what follows (`decide`).

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::outcome::Trouble;
use super::sight::{Kubelet, Sight, Spot, Stand};
use super::state::{Awaited, Creates, Pods, Waiting};
use crate::model::{NodeName, Pod, PolicySpec};
use crate::plan::not_available;

/// How long a reason that does not heal by itself may stand.
pub(super) const GRACE: SignedDuration = SignedDuration::from_secs(30);

/// What the kubelet says of a container that will not start, however long one waits.
const DOES_NOT_HEAL: [&str; 5] = [
    "ImagePullBackOff",
    "ErrImagePull",
    "InvalidImageName",
    "CreateContainerConfigError",
    "CrashLoopBackOff",
];

/// Whether a node without an available pod may have one soon: it is well, and its pod, if there is
/// one, has no trouble that stays.
pub(super) fn may_yet_serve(spot: &Spot<'_>) -> bool {
    let may_come = match spot.stand {
        Stand::Well(pod) | Stand::New(pod) | Stand::Old(pod) => !is_stuck(pod),
        Stand::Crowd { new, old } => [new, old].into_iter().flatten().any(|pod| !is_stuck(pod)),
        Stand::Leaving(_) | Stand::Ended(_) | Stand::Empty => spot.is_desired(),
    };
    spot.kubelet == Kubelet::Ready && may_come
}

/// Whether a pod has a trouble that does not heal by itself.
pub(super) fn is_stuck(pod: &Pod) -> bool {
    pod.trouble.as_ref().is_some_and(|trouble| DOES_NOT_HEAL.contains(&&*trouble.reason))
}

/// What the gates say.
#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// What has failed, by node.
    pub failed: BTreeMap<NodeName, Trouble>,
    /// When they say something else at the earliest, if nothing changes.
    pub next: Option<Timestamp>,
}

/// Asks every node, and remembers since when each waits. One on which no pod may be created yet waits
/// for its turn, and for nothing else.
pub(super) fn check(
    sight: &Sight<'_>,
    pods: &mut Pods,
    creates: &Creates,
    pace: &PolicySpec,
) -> Verdict {
    let mut gate = Gate { sight, pace, now: sight.now, verdict: Verdict::default() };
    let mut waiting = BTreeMap::new();
    for spot in sight.spots.iter().filter(|spot| spot.is_desired()) {
        if spot.kubelet != Kubelet::Ready {
            continue;
        }
        let (what, pod) = match spot.stand {
            Stand::Old(_) | Stand::Crowd { new: None, old: _ } => continue,
            Stand::Well(pod) => {
                gate.restarts(spot, pod);
                pods.troubled.remove(&pod.uid);
                continue;
            }
            Stand::New(pod) | Stand::Crowd { new: Some(pod), old: _ } if sight.serves(pod) => {
                gate.restarts(spot, pod);
                continue;
            }
            Stand::New(pod) | Stand::Crowd { new: Some(pod), old: _ } | Stand::Ended(pod) => {
                (Awaited::Pod, Some(pod))
            }
            Stand::Leaving(_) => (Awaited::Departure, None),
            Stand::Empty if !creates.may(&spot.node.name) => continue,
            Stand::Empty => (Awaited::Pod, None),
        };
        let name = &spot.node.name;
        let known = pods.waiting.get(name).filter(|waiting| waiting.what == what);
        let begun = || gate.begin(pod).max(pods.begin.unwrap_or(Timestamp::MIN));
        let since = known.map_or_else(begun, |waiting| waiting.since);
        waiting.insert(name.clone(), Waiting { since, what });
        gate.judge(spot, since, pods);
        let serves_at = pod.and_then(|pod| sight.serves_at(pod));
        gate.look_again(serves_at);
    }
    pods.waiting = waiting;
    let Gate { verdict, .. } = gate;
    verdict
}

struct Gate<'s, 'a> {
    sight: &'s Sight<'a>,
    pace: &'s PolicySpec,
    now: Timestamp,
    verdict: Verdict,
}

impl Gate<'_, '_> {
    /// When the time of a node began that was not known to wait: with its new pod, if that is young
    /// enough. One that is older has been well for a time, or is left from long ago.
    fn begin(&self, pod: Option<&Pod>) -> Timestamp {
        let created = pod.and_then(|pod| pod.created).filter(|created| *created <= self.now);
        created
            .filter(|created| self.now.duration_since(*created) <= self.deadline())
            .unwrap_or(self.now)
    }

    fn deadline(&self) -> SignedDuration {
        SignedDuration::from_secs(self.pace.progress_deadline.0.into())
    }

    fn judge(&mut self, spot: &Spot<'_>, since: Timestamp, pods: &mut Pods) {
        match spot.stand {
            Stand::New(pod) | Stand::Crowd { new: Some(pod), old: _ } => {
                self.does_not_heal(spot, pod, pods);
                self.restarts(spot, pod);
                self.too_late(spot, pod, since);
            }
            Stand::Ended(pod) => self.too_late(spot, pod, since),
            Stand::Leaving(pod) => self.still_terminating(spot, pod, since),
            Stand::Empty => self.no_pod(spot, since, pods),
            Stand::Well(_) | Stand::Old(_) | Stand::Crowd { new: None, old: _ } => {}
        }
    }

    /// Not available by the deadline. One that is Ready gets `minReadySeconds` on top: it has come
    /// in time, and only has to prove itself.
    fn too_late(&mut self, spot: &Spot<'_>, pod: &Pod, since: Timestamp) {
        let min_ready = self.sight.min_ready;
        let proving = if pod.is_ready() { min_ready } else { 0 };
        let limit = self.deadline() + SignedDuration::from_secs(proving.into());
        self.after(spot, since, limit, |seconds| Trouble::TooLate {
            pod: pod.name.clone(),
            seconds,
            reason: not_available(pod, min_ready),
        });
    }

    fn does_not_heal(&mut self, spot: &Spot<'_>, pod: &Pod, pods: &mut Pods) {
        if pod.is_ready() {
            pods.troubled.remove(&pod.uid);
            return;
        }
        if !is_stuck(pod) {
            return;
        }
        let since = *pods.troubled.entry(pod.uid.clone()).or_insert(self.now);
        let min_ready = self.sight.min_ready;
        self.after(spot, since, GRACE, |seconds| Trouble::DoesNotHeal {
            pod: pod.name.clone(),
            seconds,
            reason: not_available(pod, min_ready),
        });
    }

    /// More restarts than allowed, available between them or not. Those of a pod that is older than
    /// the deadline were seen in the course of its life and say nothing about the template.
    fn restarts(&mut self, spot: &Spot<'_>, pod: &Pod) {
        let young = |created| self.now.duration_since(created) <= self.deadline();
        if pod.restarts > self.pace.max_restarts && pod.created.is_none_or(young) {
            let trouble = Trouble::Restarts {
                pod: pod.name.clone(),
                restarts: pod.restarts,
                allowed: self.pace.max_restarts,
            };
            self.fail(spot, trouble);
        }
    }

    fn still_terminating(&mut self, spot: &Spot<'_>, pod: &Pod, since: Timestamp) {
        let template = self.sight.live.spec.template.raw();
        let grace = template.pointer("/spec/terminationGracePeriodSeconds");
        let grace = grace.and_then(serde_json::Value::as_u64).and_then(|it| u32::try_from(it).ok());
        let limit = self.deadline() + SignedDuration::from_secs(grace.unwrap_or(30).into());
        self.after(spot, since, limit, |seconds| Trouble::StillTerminating {
            pod: pod.name.clone(),
            seconds,
        });
    }

    /// No pod is created. When the controller says that the server refuses it, the grace is enough;
    /// its events name no node, so one that came while this node waited is taken to be about it.
    fn no_pod(&mut self, spot: &Spot<'_>, since: Timestamp, pods: &Pods) {
        let said = pods.create_failed.as_ref().filter(|said| said.at + GRACE >= since);
        let refused = said.is_some_and(|said| said.refused);
        let limit = if refused { GRACE.min(self.deadline()) } else { self.deadline() };
        self.after(spot, since, limit, |seconds| Trouble::NoPod {
            seconds,
            message: said.map(|said| said.message.clone()),
        });
    }

    /// Fails when `limit` is over, else remembers when that will be.
    fn after(
        &mut self,
        spot: &Spot<'_>,
        since: Timestamp,
        limit: SignedDuration,
        trouble: impl FnOnce(i64) -> Trouble,
    ) {
        let waited = self.now.duration_since(since);
        if waited >= limit {
            self.fail(spot, trouble(waited.as_secs()));
        } else {
            self.look_again(Some(since + limit));
        }
    }

    /// Something may be otherwise then.
    fn look_again(&mut self, at: Option<Timestamp>) {
        self.verdict.next = self.verdict.next.into_iter().chain(at).min();
    }

    /// The first trouble of a node stays.
    fn fail(&mut self, spot: &Spot<'_>, trouble: Trouble) {
        self.verdict.failed.entry(spot.node.name.clone()).or_insert(trouble);
    }
}
