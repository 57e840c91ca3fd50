//! Deletes pods that do not tolerate a `NoExecute` taint of their node, or only for a time
//! (upstream: `tainteviction`, `processPodOnNode`).

use std::time::Duration;

use super::moment::{CONTROLLER_MANAGER, Moment, Work};
use super::scheduler::tolerations;
use crate::{Change, DeleteOptions, Event, Kind, ObjectKey, Target};
use daemonset::controller::tolerations::tolerates;
use daemonset::model::{Node, Pod, Taint, TaintEffect, Toleration};

/// Handles an event of a node whose taints have changed, or of a pod that was bound to a tainted
/// node.
pub(super) fn hear(event: &Event, moment: &mut Moment<'_>) {
    if event.change == Change::Deleted {
        moment.agenda.remove(&Work::Evict(event.object.key().clone()));
        return;
    }
    if let Some(node) = event.object.node() {
        let before = event.previous.as_deref().and_then(|it| it.node());
        let had = before.is_some_and(|before| before.taints.iter().any(executes));
        if before.is_none_or(|before| before.taints != node.taints)
            && (had || node.taints.iter().any(executes))
        {
            look_at(node, moment);
        }
    } else if let Some(pod) = event.object.pod() {
        let before = event.previous.as_deref().and_then(|it| it.pod());
        let node = pod.node().filter(|_| pod.is_bound() && !before.is_some_and(Pod::is_bound));
        if let Some(node) = node.and_then(|name| moment.cache.node(name))
            && node.taints.iter().any(executes)
        {
            schedule(event.object.key().clone(), node, moment);
        }
    }
}

/// Checks every tainted node.
pub(super) fn begin(moment: &mut Moment<'_>) {
    let cache = moment.cache;
    for node in cache.nodes.iter().filter(|node| node.taints.iter().any(executes)) {
        look_at(node, moment);
    }
}

/// Checks every pod of a node.
fn look_at(node: &Node, moment: &mut Moment<'_>) {
    let here = moment.cache.all_pods();
    let here = here.filter(|pod| pod.is_bound() && pod.node() == Some(&node.name));
    let keys: Vec<ObjectKey> =
        here.map(|pod| ObjectKey::new(pod.namespace.as_str(), pod.name.as_str())).collect();
    for key in keys {
        schedule(key, node, moment);
    }
}

fn schedule(key: ObjectKey, node: &Node, moment: &mut Moment<'_>) {
    let Some(pod) = moment.store.at(Kind::Pod, &key) else { return };
    let tolerations = tolerations(&pod.spec());
    let work = Work::Evict(key);
    match eviction(&node.taints, &tolerations) {
        // An earlier eviction takes precedence.
        Eviction::After(wait) => moment.agenda.add(moment.now + wait, work),
        Eviction::Never => moment.agenda.remove(&work),
    }
}

/// Evicts a pod.
pub(super) fn evict(key: &ObjectKey, moment: &mut Moment<'_>) {
    let target = Target::new(Kind::Pod, key.namespace(), key.name());
    let deleted = moment
        .store
        .verbs(moment.now, CONTROLLER_MANAGER)
        .delete(target, &DeleteOptions::default());
    if let Err(error) = deleted {
        tracing::debug!(pod = %key, %error, "a pod cannot be evicted");
    }
}

fn executes(taint: &Taint) -> bool {
    taint.effect == TaintEffect::NoExecute
}

/// The time of a pod's eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Eviction {
    After(Duration),
    Never,
}

/// The first toleration that matches a taint is used; of all used ones, the shortest.
fn eviction(taints: &[Taint], tolerations: &[Toleration]) -> Eviction {
    let mut shortest: Option<u64> = None;
    for taint in taints.iter().filter(|taint| executes(taint)) {
        let Some(used) = tolerations.iter().find(|it| tolerates(it, taint)) else {
            return Eviction::After(Duration::ZERO);
        };
        if let Some(seconds) = used.toleration_seconds {
            let seconds = u64::try_from(seconds).unwrap_or(0);
            shortest = Some(shortest.map_or(seconds, |known| known.min(seconds)));
        }
    }
    shortest.map_or(Eviction::Never, |seconds| Eviction::After(Duration::from_secs(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemonset::controller::test_cluster::taint;

    #[test]
    fn evictions_follow_taints_and_tolerations() {
        let tolerated = |key: &str, toleration_seconds| Toleration {
            key: key.to_owned(),
            operator: "Exists".to_owned(),
            toleration_seconds,
            ..Toleration::default()
        };
        let after = |seconds| Eviction::After(Duration::from_secs(seconds));
        for (name, taints, tolerations, want) in [
            ("no taint", &[][..], vec![], Eviction::Never),
            ("another effect", &["a:NoSchedule"], vec![], Eviction::Never),
            ("not tolerated", &["a:NoExecute"], vec![], after(0)),
            ("tolerated", &["a:NoExecute"], vec![tolerated("a", None)], Eviction::Never),
            ("for a while", &["a:NoExecute"], vec![tolerated("a", Some(300))], after(300)),
            ("not at all", &["a:NoExecute"], vec![tolerated("a", Some(-1))], after(0)),
            (
                "the shortest of several",
                &["a:NoExecute", "b:NoExecute"],
                vec![tolerated("a", Some(300)), tolerated("b", Some(60))],
                after(60),
            ),
            (
                "the first that covers",
                &["a:NoExecute"],
                vec![tolerated("a", None), tolerated("", Some(5))],
                Eviction::Never,
            ),
        ] {
            let taints: Vec<Taint> = taints.iter().map(|text| taint(text)).collect();
            assert_eq!(eviction(&taints, &tolerations), want, "{name}");
        }
    }
}
