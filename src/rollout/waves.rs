//! Whom to delete next within the budget, and what a run waits for if nobody.
//!
//! First the outdated pods that are not Ready on nodes that are: they cost nothing if they have not
//! been Ready for a while, or are within the budget. Then available ones by wave and node name, while the budget has room. Both only as far as
//! the ramp allows: so many nodes may be in flight. Pods that are merely young wait until they are
//! available, and those that were Ready a moment ago until they are again. Not here: gates, and giving
//! back.

use jiff::{SignedDuration, Timestamp};

use super::effect::{Cost, Delete};
use super::gate::is_stuck;
use super::outcome::ControllerStep;
use super::sight::{Kubelet, Sight, Spot, Stand, count};
use super::state::{Request, Standstill, State};
use super::task::Extent;
use crate::model::{NodeName, Pod, PodReadiness};
use crate::planted::planted;

/// How many deletes may be out at once: so many can still land after the lock is lost.
pub(super) const MAX_REQUESTS: usize = 16;

/// How long an outdated pod that was Ready must not have been so before replacing it costs nothing:
/// after a long outage of the API, the pods of a whole fleet are NotReady for some seconds.
const UNREADY: SignedDuration = SignedDuration::from_secs(60);

/// Who replaces pods.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hands<'t> {
    /// This run, so many.
    Ours(&'t Extent),
    /// The controller, under the strategy that is live.
    Controllers,
}

/// What comes next.
#[derive(Debug, PartialEq)]
pub(super) enum Next {
    /// These go.
    Delete(Vec<Delete>),
    /// Something is on its way.
    Wait {
        /// When an outdated pod that is too young becomes available.
        until: Option<Timestamp>,
    },
    /// Nothing moves, though there is more to do.
    Stand(Standstill),
    /// There is nothing more to do.
    Clean,
}

/// Decides. Gates come first: nothing may have failed.
pub(super) fn next(sight: &Sight<'_>, state: &State, hands: Hands<'_>) -> Next {
    match hands {
        Hands::Ours(extent) => Wave::of(sight, state, extent).next(),
        Hands::Controllers => watch(sight, state),
    }
}

/// The wave in progress, if any outdated pod is left.
pub(super) fn current(sight: &Sight<'_>, state: &State) -> Option<u32> {
    if sight.outdated() == 0 {
        return None;
    }
    let ready = sight.spots.iter().filter(|spot| spot.kubelet == Kubelet::Ready);
    let waiting = state.pods.waiting.keys();
    let recovering = waiting.filter_map(|node| state.waves.get(node)).copied();
    ready.filter_map(|spot| spot.wave).chain(recovering).min()
}

/// What the controller does by itself.
fn watch(sight: &Sight<'_>, state: &State) -> Next {
    let outdated = sight.outdated();
    if !state.pods.waiting.is_empty() {
        Next::Wait { until: None }
    } else if outdated > 0 {
        Next::Stand(Standstill::Controller(ControllerStep::Roll { outdated }))
    } else {
        Next::Clean
    }
}

/// A step of the wave in progress.
struct Wave<'s, 'a> {
    sight: &'s Sight<'a>,
    state: &'s State,
    extent: &'s Extent,
    /// How many more may be deleted at all.
    left: usize,
}

impl<'s, 'a> Wave<'s, 'a> {
    fn of(sight: &'s Sight<'a>, state: &'s State, extent: &'s Extent) -> Self {
        let left = match extent {
            Extent::All | Extent::Nodes(_) => usize::MAX,
            Extent::Count(count) => {
                usize::try_from(count.saturating_sub(state.pods.count)).unwrap_or(usize::MAX)
            }
        };
        Self { sight, state, extent, left }
    }

    fn next(&self) -> Next {
        let stops = self.restarted() || lost_ready(self.sight).is_some();
        let stops = planted!(stops, "what restarts or flaps stops nothing" => false);
        let deletes = if stops { Vec::new() } else { self.deletes() };
        if !deletes.is_empty() {
            return Next::Delete(deletes);
        }
        // The gates put an end to every wait.
        let waits = !self.state.pods.waiting.is_empty();
        let recovering = planted!(waits, "done before the last pods are Ready" => false);
        let unsettled = if self.left > 0 { self.unsettled() } else { Vec::new() };
        if recovering || !unsettled.is_empty() || self.state.deletes_out() > 0 {
            return Next::Wait { until: unsettled.into_iter().min() };
        }
        let outdated = if self.left > 0 { count(self.open()) } else { 0 };
        let crowded = self.sight.spots.iter().any(|spot| is_crowded(spot) && self.is_ours(spot));
        if crowded {
            return Next::Stand(Standstill::Controller(ControllerStep::Roll { outdated }));
        }
        if planted!(outdated > 0, "given back when the budget is used up" => false) {
            let unavailable = self.sight.unavailable();
            return Next::Stand(Standstill::Budget { unavailable, outdated });
        }
        Next::Clean
    }

    /// Spots whose pod this run replaces, sooner or later.
    fn open(&self) -> impl Iterator<Item = (&'s Spot<'a>, &'a Pod)> {
        let open = self.sight.spots.iter().filter(|spot| self.is_ours(spot));
        open.filter_map(|spot| match spot.stand {
            Stand::Old(pod) => Some((spot, pod)),
            Stand::Well(_)
            | Stand::New(_)
            | Stand::Crowd { .. }
            | Stand::Leaving(_)
            | Stand::Ended(_)
            | Stand::Empty => None,
        })
    }

    fn is_ours(&self, spot: &Spot<'_>) -> bool {
        let wanted = match self.extent {
            Extent::All | Extent::Count(_) => true,
            Extent::Nodes(nodes) => nodes.contains(&spot.node.name),
        };
        wanted && spot.kubelet == Kubelet::Ready
    }

    /// Whether a pod that this run has made was restarted and is not available again: what is wrong
    /// with it may be wrong with the template.
    fn restarted(&self) -> bool {
        let renewed = &self.state.pods.renewed;
        let flies = self.sight.spots.iter().filter(|spot| spot.is_in_flight());
        let restarted = |spot: &Spot<'_>| match spot.stand {
            Stand::New(pod) => pod.restarts > 0 && renewed.contains(&spot.node.name),
            Stand::Well(_)
            | Stand::Old(_)
            | Stand::Crowd { .. }
            | Stand::Leaving(_)
            | Stand::Ended(_)
            | Stand::Empty => false,
        };
        flies.into_iter().any(restarted)
    }

    fn deletes(&self) -> Vec<Delete> {
        let room = MAX_REQUESTS.saturating_sub(self.state.deletes_out());
        let again: Vec<Delete> = self.again().take(room).collect();
        let room = room - again.len();
        let free = self.open().filter(|(_, pod)| {
            planted!(self.is_free(pod), "a young pod is deleted" => !self.sight.serves(pod))
        });
        let free = free.map(|(spot, pod)| (spot, self.delete(spot, pod, Cost::Nothing)));
        let mut ramp = self.ramp();
        let within = free.chain(self.paid()).filter(|(spot, _)| {
            // Where nothing comes back, nothing is proven.
            let takes_off = !spot.is_desired() || ramp > 0;
            ramp = ramp.saturating_sub(u32::from(spot.is_desired()));
            planted!(takes_off, "all at once, without a ramp" => true)
        });
        let within = within.map(|(_, delete)| delete).take(room.min(self.left));
        again.into_iter().chain(within).collect()
    }

    /// How many more nodes may be in flight.
    fn ramp(&self) -> u32 {
        let flying = count(self.sight.spots.iter().filter(|spot| spot.is_in_flight()));
        let available = self.state.pods.replaced.len();
        self.state.task.pace.ramp.window(available, self.sight.allowed).saturating_sub(flying)
    }

    /// Whether an outdated pod may go without one more node being without an available one: nobody
    /// misses it, or it is not Ready just now, and all that are not are within the budget.
    fn is_free(&self, pod: &Pod) -> bool {
        let within = self.sight.unavailable() <= self.sight.allowed;
        self.costs_nothing(pod) || (within && !pod.is_ready())
    }

    /// Whether nobody misses an outdated pod: it never was Ready, has not been for a while, or will
    /// not be again by itself.
    fn costs_nothing(&self, pod: &Pod) -> bool {
        match pod.readiness {
            PodReadiness::Ready { since: _ } => false,
            PodReadiness::NotReady { since: None } => true,
            PodReadiness::NotReady { since: Some(since) } => {
                let long = self.sight.now.duration_since(since) >= UNREADY;
                long || is_stuck(pod)
            }
        }
    }

    /// Deletes without a clear answer whose pod still stands. One that has become Ready since is
    /// not let go for nothing any more: it goes if it is available and the budget has room for all
    /// that are as good as gone; else it waits until it counts as alive again.
    fn again(&self) -> impl Iterator<Item = Delete> {
        let leaving = self.sight.spots.iter().filter_map(|spot| Some((spot, spot.leaving()?)));
        let stands = leaving.filter(|(_, pod)| !pod.terminating);
        let due = stands.filter(|(_, pod)| match self.state.pods.deleted.get(&pod.uid) {
            Some(Request::RetryAt(at)) => *at <= self.sight.now,
            Some(Request::Idle | Request::Out) | None => false,
        });
        let room = self.sight.unavailable() <= self.sight.allowed;
        let due = due.filter(move |(_, pod)| !pod.is_ready() || (room && self.sight.serves(pod)));
        due.map(|(spot, pod)| self.delete(spot, pod, Cost::Nothing))
    }

    /// Available ones of the wave in progress, as many as the budget has room for.
    fn paid(&self) -> impl Iterator<Item = (&'s Spot<'a>, Delete)> {
        let wave = self.wave();
        // In the order of the nodes, which is that of their names.
        let available: Vec<_> =
            self.open().filter(|(spot, pod)| self.sight.serves(pod) && spot.wave == wave).collect();
        let (unavailable, budget) = (self.sight.unavailable(), self.sight.allowed);
        let allowed = planted!(budget, "one more than the budget" => budget + 1);
        let room = usize::try_from(allowed.saturating_sub(unavailable)).unwrap_or(usize::MAX);
        available.into_iter().take(room).zip(unavailable..).map(
            move |((spot, pod), unavailable)| {
                (spot, self.delete(spot, pod, Cost::One { unavailable, allowed }))
            },
        )
    }

    /// The lowest wave that is not over: no available pod of a later one goes before.
    fn wave(&self) -> Option<u32> {
        let old = self.open().map(|(spot, _)| spot.wave);
        let waiting = self.state.pods.waiting.keys();
        let recovering = waiting.filter_map(|node| self.state.waves.get(node)).copied().map(Some);
        old.chain(recovering).min_by_key(|wave| wave.unwrap_or(u32::MAX))?
    }

    /// When each outdated pod that is neither available nor free to go will be one of the two.
    fn unsettled(&self) -> Vec<Timestamp> {
        let open = self.open().filter(|(_, pod)| !self.sight.serves(pod) && !self.is_free(pod));
        open.map(|(_, pod)| match pod.readiness {
            PodReadiness::NotReady { since } => since.unwrap_or(self.sight.now) + UNREADY,
            PodReadiness::Ready { since: _ } => self.sight.serves_at(pod).unwrap_or(self.sight.now),
        })
        .collect()
    }

    fn delete(&self, spot: &Spot<'_>, pod: &Pod, cost: Cost) -> Delete {
        Delete {
            pod: pod.name.clone(),
            uid: pod.uid.clone(),
            node: spot.node.name.clone(),
            reason: self.sight.why(spot, pod),
            cost,
        }
    }
}

/// How many nodes have lost a Ready pod within a minute, though they are Ready themselves and nobody
/// deleted it, if these are more than the budget: it is the fleet that is in trouble, and no time to
/// replace anything.
pub(super) fn lost_ready(sight: &Sight<'_>) -> Option<u32> {
    let lost = sight.spots.iter().filter(|spot| {
        let pod = match spot.stand {
            Stand::New(pod) | Stand::Old(pod) => pod,
            Stand::Well(_)
            | Stand::Crowd { .. }
            | Stand::Leaving(_)
            | Stand::Ended(_)
            | Stand::Empty => return false,
        };
        let lately = match pod.readiness {
            PodReadiness::NotReady { since: Some(since) } => {
                sight.now.duration_since(since) < UNREADY && !is_stuck(pod)
            }
            PodReadiness::NotReady { since: None } | PodReadiness::Ready { since: _ } => false,
        };
        spot.is_desired() && spot.kubelet == Kubelet::Ready && lately
    });
    Some(count(lost)).filter(|lost| *lost > sight.allowed)
}

fn is_crowded(spot: &Spot<'_>) -> bool {
    matches!(spot.stand, Stand::Crowd { new: _, old: Some(_) })
}

/// Outdated pods that are Ready on nodes that are not: as long as there are any, the strategy is
/// not given back.
pub(super) fn ready_on_unready_nodes(sight: &Sight<'_>) -> Vec<NodeName> {
    let unready = sight.spots.iter().filter(|spot| spot.kubelet != Kubelet::Ready);
    let ready = unready.filter(|spot| spot.old().is_some_and(Pod::is_ready));
    ready.map(|spot| spot.node.name.clone()).collect()
}
