//! How many zones are disturbed at once, and how many nodes in each.

use std::collections::{BTreeMap, BTreeSet};

use daemonset::model::NodeName;
use embedded::{Kind, Store};
use jiff::{SignedDuration, Timestamp};

use super::here::zone_of;
use super::progress::Unfinished;
use super::{Begin, Here, ROUNDED};
use crate::budget::{share, skippable};
use crate::rules::{DomainRule, Rules};

/// How long the program may count a zone as open that was disturbed.
const LATELY: SignedDuration = SignedDuration::from_secs(60);

/// For how long a pod that is Ready may not be available for the program: the first one of a run has to
/// stay up for ten seconds.
const YOUNG: SignedDuration = SignedDuration::from_secs(11);

/// The zones.
#[derive(Default)]
pub(super) struct Zones {
    all: BTreeMap<String, Zone>,
}

#[derive(Default)]
struct Zone {
    /// When a node of it was down last.
    down_at: Option<Timestamp>,
    /// The highest number of desired nodes so far.
    desired: u64,
}

/// The zones of these nodes, which are not Ready, without the first ones by name, which are skipped.
pub(super) fn zones_with(
    mut unready: Vec<NodeName>,
    rules: &Rules,
    desired: usize,
    store: &Store,
) -> BTreeSet<String> {
    unready.sort();
    let counted = unready.iter().skip(skippable(&rules.others, desired as u64));
    let nodes = counted.filter_map(|name| store.get(Kind::Node, "", name.as_str())?.node());
    nodes.map(|node| zone_of(node).to_owned()).collect()
}

/// The soaks of zones in one rollout.
#[derive(Default)]
pub(super) struct ZoneSoaks {
    all: BTreeMap<String, Soaking>,
}

#[derive(Default)]
struct Soaking {
    is_complete: bool,
    is_done: bool,
}

impl Zones {
    /// Counts the desired nodes.
    pub(super) fn look(&mut self, here: &[Here<'_>]) {
        for one in here {
            let desired = here.iter().filter(|it| it.zone == one.zone).count() as u64;
            let zone = self.all.entry(one.zone.to_owned()).or_default();
            zone.desired = zone.desired.max(desired);
        }
    }

    /// Notes that a node of a zone may be down.
    pub(super) fn disturb(&mut self, zone: &str, now: Timestamp) {
        self.all.entry(zone.to_owned()).or_default().down_at = Some(now);
    }

    /// Whether the program may still count a zone as disturbed.
    fn may_be_open(&self, zone: &str, seen: Timestamp) -> bool {
        self.all.get(zone).and_then(|zone| zone.down_at).is_some_and(|at| at >= seen)
    }

    /// The budgets: they hold on the way back, too.
    pub(super) fn over_limits(
        &self,
        begin: &Begin<'_, '_>,
        rules: &Rules,
        seen: Timestamp,
    ) -> Option<String> {
        let Begin { here, it, is_available, down, .. } = *begin;
        let domains = rules.domains.as_ref()?;
        let is_down = |one: &&Here<'_>| down.contains(&one.node.name);
        let others = || here.iter().filter(|one| one.node.name != it.node.name).filter(is_down);
        let disturbed: BTreeSet<&str> = others().map(|one| one.zone).collect();
        let zone = self.all.get(it.zone)?;
        if !self.may_be_open(it.zone, seen)
            && !disturbed.contains(it.zone)
            && disturbed.len() >= domains.at_once
        {
            return Some(format!(" in {:?}, beside {disturbed:?}", it.zone));
        }
        let limit = share(domains.max_unavailable.as_ref()?, zone.desired).max(1);
        let count = others().filter(|one| one.zone == it.zone).count() as u64;
        (is_available && count >= limit)
            .then(|| format!(", {count} nodes of {:?} are down, {limit} allowed", it.zone))
    }
}

impl ZoneSoaks {
    /// Updates the soaks of zones.
    pub(super) fn look(&mut self, here: &[Here<'_>], rules: &Rules, now: Timestamp) {
        let Some(DomainRule { soak, .. }) = rules.domains else { return };
        let soak = SignedDuration::from_secs(soak);
        // A zone of which all nodes have left, or no longer take a pod, has nothing that soaks.
        self.all.retain(|zone, _| here.iter().any(|one| *one.zone == **zone));
        for zone in here.iter().map(|one| one.zone).collect::<BTreeSet<_>>() {
            let counted = || here.iter().filter(|one| one.zone == zone && one.is_ready);
            let up_for = counted().map(|one| one.up_for(now)).min();
            let has_soaked = up_for.is_some_and(|time| time.saturating_add(ROUNDED) >= soak);
            let soaking = self.all.entry(zone.to_owned()).or_default();
            soaking.is_complete = up_for.is_some() && counted().all(Here::has_new);
            soaking.is_done |= soaking.is_complete && has_soaked;
        }
    }

    /// Without steps, zones come one after the other: in their order, and after the soak of those
    /// before. Where several may be open at once, one does not wait for images that another pulls, or
    /// for a sibling that comes first on the nodes of another.
    pub(super) fn out_of_order(
        &self,
        begin: &Begin<'_, '_>,
        rules: &Rules,
        (zones, unfinished): (&Zones, &Unfinished),
    ) -> Option<String> {
        let Begin { here, it, down, with_unready, waiting, is_skipped, now, .. } = *begin;
        let domains = rules.domains.as_ref().filter(|_| rules.steps.is_empty())?;
        let is_down = |one: &&Here<'_>| down.contains(&one.node.name);
        let mut open: BTreeSet<&str> = here.iter().filter(is_down).map(|one| one.zone).collect();
        let is_soaking = |soaking: &Soaking| soaking.is_complete && !soaking.is_done;
        let soaking = self.all.iter().filter(|(_, it)| is_soaking(it) && domains.soak > 0);
        open.extend(soaking.map(|(name, _)| name.as_str()));
        if open.contains(it.zone) || zones.may_be_open(it.zone, now - LATELY) {
            return None;
        }
        if open.len() >= domains.at_once {
            return Some(format!(" in {:?}, while {open:?} are open", it.zone));
        }
        let rank = |zone: &str| (zone.is_empty(), Some(zone) != domains.first, zone.to_owned());
        let waits = |other: &&Here<'_>| {
            let begins = other.is_ready && other.is_outdated() && !is_skipped(&other.node.name);
            begins && rank(other.zone) < rank(it.zone)
        };
        // A zone with a pod that is not available is begun, also if the program need not know of it yet;
        // and so is one whose delete was refused, or with a node that is not Ready and counts.
        let is_young = |one: &Here<'_>| !one.is_up() || one.up_for(now) < YOUNG;
        let is_begun_by = |one: &Here<'_>| is_young(one) || unfinished.contains(&one.node.name);
        let is_begun = |zone: &str| {
            let is_open = open.contains(zone) || with_unready.contains(zone);
            is_open || here.iter().any(|one| one.zone == zone && is_begun_by(one))
        };
        let earlier = here.iter().filter(waits).filter(|other| !is_begun(other.zone));
        let (later, may_begin): (Vec<_>, Vec<_>) =
            earlier.partition(|other| waiting.contains(&other.node.name));
        // While it waits, a zone takes its place among those that may be open at once.
        let places: BTreeSet<&str> = later.iter().map(|other| other.zone).collect();
        let is_full = open.len() + places.len() >= domains.at_once;
        let before = may_begin.first().or_else(|| later.first().filter(|_| is_full))?;
        Some(format!(" in {:?}, before {:?} has begun", it.zone, before.zone))
    }
}
