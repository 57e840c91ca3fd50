//! Warnings about one DaemonSet: they do not block `ds-apply`, but should be read before it.

pub(super) mod clocks;
pub(super) mod host_ports;
pub(super) mod newer_fields;
mod node_selector;
pub(super) mod priority_class;
pub(super) mod requests;
pub(super) mod services;
pub(super) mod unchecked;
pub(super) mod unreadable;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use super::daemon_set_view::DaemonSetView;
use super::document::{Action, Change, DaemonSetPlan, Strategy, Warning, Wave};
use crate::words::{agree, count};
use daemonset::controller::node_pods::Fleet;
use daemonset::model::{
    ClusterInfo, DaemonSet, DaemonSetKey, DesiredDaemonSet, ManagedBy, Namespace, NamespaceName,
    NodeName, Place, Pod, PolicySpec, Snapshot, TEMPLATE_GENERATION_LABEL,
};
pub(super) use node_selector::Conflict;
use node_selector::Reader;

/// Maximum length of a DaemonSet's name. It is followed by a hyphen and a hash of ten characters in
/// the names of its revisions, which may have 253 characters.
const LONGEST_NAME: usize = 242;

/// Code of the warning about a namespace that does not exist.
pub const NAMESPACE_MISSING: &str = "namespaceMissing";

/// Maximum number of reasons that are listed separately.
const MOST_REASONS: usize = 3;

/// Minor versions of Kubernetes 1 whose rules are implemented.
const MINORS: RangeInclusive<u32> = 28..=36;

/// Warnings about the server, and about objects that cannot be read.
pub(super) fn of_cluster(snapshot: &Snapshot) -> Vec<Warning> {
    let server = about_server(&snapshot.cluster).into_iter();
    server.chain(unreadable::warnings(snapshot)).collect()
}

/// Warnings about what the nodes have: ports of the host, and resources.
pub(super) fn of_nodes(
    desired: &[&DesiredDaemonSet],
    snapshot: &Snapshot,
    fleet: &Fleet<'_>,
) -> Vec<Warning> {
    let mut found = host_ports::warnings(desired, snapshot, fleet);
    found.extend(requests::warnings(desired, snapshot, fleet));
    found
}

/// Warnings about live DaemonSets that a pull request removes from the source: the plan has nothing
/// else about them, unless it deletes them.
pub(super) fn removed<'a>(
    removed: &'a BTreeSet<DaemonSetKey>,
    plans: &'a [DaemonSetPlan],
    snapshot: &'a Snapshot,
) -> impl Iterator<Item = Warning> + 'a {
    let is_kept = move |key: &&DaemonSetKey| {
        snapshot.daemon_set(key).is_some_and(|live| !live.terminating)
            && plans.iter().all(|plan| plan.key() != **key)
    };
    removed.iter().filter(is_kept).map(|key| Warning {
        code: "removedFromSource".to_owned(),
        message: "the pull request removes it from the source, but it keeps running as it is: \
                  `--prune` deletes only what `ds-apply --source-id` has marked"
            .to_owned(),
        daemon_set: Some(key.to_string()),
        nodes: Vec::new(),
    })
}

/// A warning when the version of the server is not a supported one.
pub(super) fn about_server(cluster: &ClusterInfo) -> Option<Warning> {
    let version = cluster.version.as_deref()?;
    let known = minor(version).is_some_and(|minor| MINORS.contains(&minor));
    (!known).then(|| Warning {
        code: "serverVersion".to_owned(),
        message: format!(
            "the server is Kubernetes {version}; ds-plan implements the rules of 1.{} to 1.{}",
            MINORS.start(),
            MINORS.end()
        ),
        daemon_set: None,
        nodes: Vec::new(),
    })
}

/// The `36` of `v1.36.3`, of `v1.36+`, and of `v1.36.0-rc.1+k3s1`.
fn minor(version: &str) -> Option<u32> {
    let rest = version.trim_start_matches('v').strip_prefix("1.")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().ok()
}

/// All warnings about the DaemonSet of `daemon_set_view`.
pub(super) fn about(
    daemon_set_view: &DaemonSetView<'_>,
    live: Option<&DaemonSet>,
    snapshot: &Snapshot,
    created: &BTreeMap<NamespaceName, Place>,
) -> Vec<Warning> {
    let key = daemon_set_view.owner.key;
    let mut warnings = Vec::new();
    let mut warn = |code: &str, message: String, nodes: Vec<NodeName>| {
        let daemon_set = Some(key.to_string());
        warnings.push(Warning { code: code.to_owned(), message, daemon_set, nodes });
    };
    if live.is_some_and(|live| live.terminating) {
        let message = format!("{key} is being deleted: its controller no longer reconciles it");
        warn("daemonSetTerminating", message, Vec::new());
    }
    about_namespace(daemon_set_view, snapshot, created, &mut warn);
    if key.name.as_str().len() > LONGEST_NAME {
        let message = format!(
            "the name has more than {LONGEST_NAME} characters: the controller cannot create a \
             revision for it, and so no pods"
        );
        warn("nameTooLong", message, Vec::new());
    }
    about_pods(daemon_set_view, &mut warn);
    warnings
}

/// Warnings about a namespace that is missing, terminating, or keeps pods off nodes.
fn about_namespace(
    daemon_set_view: &DaemonSetView<'_>,
    snapshot: &Snapshot,
    created: &BTreeMap<NamespaceName, Place>,
    warn: &mut impl FnMut(&str, String, Vec<NodeName>),
) {
    let key = daemon_set_view.owner.key;
    let namespace = snapshot.namespaces.iter().find(|namespace| namespace.name == key.namespace);
    match namespace {
        None if snapshot.coverage.namespaces => {
            let advice = created.get(&key.namespace).map(|place| {
                let file = &place.path;
                format!(
                    "; it is in {file} of the same source: apply that first, ds-apply only applies \
                     DaemonSets"
                )
            });
            let advice = advice.unwrap_or_default();
            let message = format!("namespace {} does not exist{advice}", key.namespace);
            warn(NAMESPACE_MISSING, message, Vec::new());
        }
        Some(namespace) if namespace.terminating => {
            let message = format!(
                "namespace {} is being deleted: no pod can be created in it",
                key.namespace
            );
            warn("namespaceTerminating", message, Vec::new());
        }
        Some(_) | None => {}
    }
    for conflict in namespace.map(|it| namespace_conflicts(daemon_set_view, it)).unwrap_or_default()
    {
        let message = conflict_words(&key.namespace, &conflict);
        warn("namespaceNodeSelector", message, conflict.nodes);
    }
}

/// A warning when the policy, or `--max-unavailable`, allows more than the DaemonSet itself: the
/// stricter of the two applies.
pub(super) fn unused_budget(plan: &DaemonSetPlan, policy: &PolicySpec) -> Option<Warning> {
    let Strategy::RollingUpdate { max_unavailable, max_surge: 0, desired } = plan.strategy else {
        return None;
    };
    let wanted = policy.max_unavailable?;
    let wanted_nodes = wanted.scaled(desired).max(1);
    (wanted_nodes > max_unavailable.max(1)).then(|| Warning {
        code: "maxUnavailableUnused".to_owned(),
        message: format!(
            "maxUnavailable {wanted} of the policy or the command line ({}) is not used, because the \
             DaemonSet's own limit is stricter: {}",
            count(wanted_nodes, "node"),
            max_unavailable.max(1),
        ),
        daemon_set: Some(plan.key().to_string()),
        nodes: Vec::new(),
    })
}

/// The code of [`way_back`].
pub const WAY_BACK: &str = "wayBack";

/// A note that most of the policy does not apply to the way back from a template that failed.
pub(super) fn way_back(daemon_set: &DaemonSetKey) -> Warning {
    Warning {
        code: WAY_BACK.to_owned(),
        message: "the last good template is live already, and pods of the one that failed are replaced, as \
                  by `ds-apply undo`: within the budgets of the policy, without its steps, windows and checks"
            .to_owned(),
        daemon_set: Some(daemon_set.to_string()),
        nodes: Vec::new(),
    }
}

/// A warning about steps of a DaemonSet with `maxSurge`: in those before the last, a node has no pod
/// until its new one is available.
pub(super) fn gaps_before_surge(plan: &DaemonSetPlan) -> Option<Warning> {
    let Strategy::RollingUpdate { max_unavailable: _, max_surge: 1.., desired: _ } = plan.strategy
    else {
        return None;
    };
    let deleting: Vec<&Wave> = plan.waves.iter().filter(|wave| wave.max_surge == 0).collect();
    let nodes: Vec<NodeName> = deleting.iter().flat_map(|wave| &wave.nodes).cloned().collect();
    let at_a_time = deleting.iter().map(|wave| wave.max_unavailable).max()?;
    let names: Vec<&str> = deleting.iter().filter_map(|wave| wave.step.as_deref()).collect();
    let message = format!(
        "in {} {}, pods are deleted before the new ones start: {} {} without a pod meanwhile, at most \
         {at_a_time} at a time. Only the last step uses `maxSurge`, because the DaemonSet controller \
         chooses the nodes of a surge",
        agree(names.len(), "step", "steps"),
        names.join(", "),
        count(nodes.len(), "node"),
        agree(nodes.len(), "is", "are"),
    );
    let daemon_set = Some(plan.key().to_string());
    Some(Warning { code: "stepsBeforeSurge".to_owned(), message, daemon_set, nodes })
}

/// Warnings about pods that are adopted, released, not possible anywhere, or counted as updated.
fn about_pods(
    daemon_set_view: &DaemonSetView<'_>,
    warn: &mut impl FnMut(&str, String, Vec<NodeName>),
) {
    let key = daemon_set_view.owner.key;
    if !daemon_set_view.pods.adopted.is_empty() {
        let message = format!("{key} adopts {}", orphans(daemon_set_view.pods.adopted.len()));
        warn("adoptsOrphans", message, nodes_of(&daemon_set_view.pods.adopted));
    }
    if !daemon_set_view.pods.released.is_empty() {
        let pods = daemon_set_view.pods.released.len();
        let message = format!(
            "{key} releases {} that no longer {} its selector; {} running",
            count(pods, "pod"),
            agree(pods, "matches", "match"),
            agree(pods, "it keeps", "they keep"),
        );
        warn("releasesPods", message, nodes_of(&daemon_set_view.pods.released));
    }
    if let Some(message) = nowhere_to_run(daemon_set_view) {
        warn("noEligibleNode", message, Vec::new());
    }
    let old: Vec<&Pod> = daemon_set_view.counted_as_updated().collect();
    if !old.is_empty() {
        let message = format!(
            "{} {} from another template, but the built-in controller counts them as updated by \
             their label {TEMPLATE_GENERATION_LABEL}: it does not replace them, and `kubectl \
             rollout status` does not wait for them",
            count(old.len(), "pod"),
            agree(old.len(), "comes", "come")
        );
        warn("countedAsUpdated", message, nodes_of(&old));
    }
}

/// The most frequent reasons why no node may start a pod; none when a node may.
fn nowhere_to_run(daemon_set_view: &DaemonSetView<'_>) -> Option<String> {
    let view = daemon_set_view.view();
    let total = view.placements.len();
    if total == 0 || view.placements.iter().any(|placement| placement.may_start) {
        return None;
    }
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for obstacle in view.placements.iter().filter_map(|placement| placement.obstacle.as_ref()) {
        *counts.entry(obstacle.to_string()).or_default() += 1;
    }
    let mut counts: Vec<(String, usize)> = counts.into_iter().collect();
    counts.sort_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
    let other = counts.iter().skip(MOST_REASONS).map(|(_, count)| count).sum::<usize>();
    let mut reasons: Vec<String> = counts
        .into_iter()
        .take(MOST_REASONS)
        .map(|(reason, count)| if count == total { reason } else { format!("{count}: {reason}") })
        .collect();
    if other > 0 {
        reasons.push(format!("{other}: other reasons"));
    }
    let reasons = reasons.join("; ");
    Some(match total {
        1 => format!("the only node cannot run its pods: {reasons}"),
        more => format!("none of the {} can run its pods: {reasons}", count(more, "node")),
    })
}

/// A warning when more pods than the budget are created, or several pods of a new DaemonSet: the
/// DaemonSet controller does not limit creation. `ds-apply` as the controller does.
pub(super) fn creates_at_once(plan: &DaemonSetPlan) -> Option<Warning> {
    let budget = match plan.strategy {
        Strategy::OnDelete => 1,
        Strategy::RollingUpdate { max_unavailable, max_surge, desired: _ } => {
            max_unavailable.max(max_surge)
        }
    };
    let creates = plan.nodes.iter().filter(|node| node.action == Action::Create);
    let nodes: Vec<NodeName> = creates.map(|node| node.name.clone()).collect();
    let is_new = plan.change == Change::Create;
    let budget = if is_new { 1 } else { budget };
    let few = u32::try_from(nodes.len()).is_ok_and(|count| count <= budget);
    let paces_itself = match plan.managed_by {
        ManagedBy::DaemonSetController => false,
        ManagedBy::DsApply => true,
    };
    if few || paces_itself {
        return None;
    }
    let pods = count(nodes.len(), "pod");
    let message = if is_new {
        format!("{pods} are created at once: the DaemonSet controller creates pods without a limit")
    } else {
        format!(
            "{pods} are created at once on nodes that have none: the budget of {budget} limits \
             replacements only"
        )
    };
    let daemon_set = Some(format!("{}/{}", plan.namespace, plan.name));
    Some(Warning { code: "createsAtOnce".to_owned(), message, daemon_set, nodes })
}

/// The node selectors of `namespace` that exclude eligible nodes of the DaemonSet.
pub(super) fn namespace_conflicts<'a>(
    daemon_set_view: &DaemonSetView<'_>,
    namespace: &'a Namespace,
) -> Vec<Conflict<'a>> {
    let view = daemon_set_view.view();
    let own = &daemon_set_view.owner.spec.template.placement.node_selector;
    node_selector::conflicts(namespace, own, view.fleet.nodes(), view.placements)
}

fn conflict_words(namespace: &NamespaceName, conflict: &Conflict<'_>) -> String {
    let Conflict { reader, selector, contradicts, nodes } = conflict;
    let annotation = reader.annotation();
    let nodes = match nodes.len() {
        1 => "1 eligible node does not match".to_owned(),
        more => format!("{more} eligible nodes do not match"),
    };
    match (reader, contradicts) {
        (Reader::PodNodeSelector, false) => format!(
            "namespace {namespace} requires nodes with `{selector}` ({annotation}), and {nodes}: \
             if the admission plugin PodNodeSelector is enabled, the pods there stay Pending"
        ),
        (Reader::PodNodeSelector, true) => format!(
            "namespace {namespace} requires nodes with `{selector}` ({annotation}), which \
             conflicts with the nodeSelector of the DaemonSet: if the admission plugin \
             PodNodeSelector is enabled, no pod can be created"
        ),
        (Reader::OpenShift, _) => format!(
            "namespace {namespace} requires nodes with `{selector}` ({annotation}), and {nodes}: \
             the DaemonSet controller of OpenShift skips them, others do not"
        ),
    }
}

fn orphans(pods: usize) -> String {
    let words = agree(pods, "matches its selector and has", "match its selector and have");
    format!("{} that {words} no owner", count(pods, "pod"))
}

fn nodes_of(pods: &[&Pod]) -> Vec<NodeName> {
    let mut nodes: Vec<NodeName> = pods.iter().filter_map(|pod| pod.node()).cloned().collect();
    nodes.sort();
    nodes.dedup();
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_outside_the_range_are_warned_about() {
        for (version, warned) in [
            ("v1.27.16", true),
            ("v1.28.0", false),
            ("v1.36.3", false),
            ("v1.30.4-eks-a737599", false),
            ("v1.31.1+k3s1", false),
            ("v1.36+", false),
            ("v1.37.0-alpha.1", true),
            ("v1.3", true),
            ("v2.0.0", true),
            ("unknown", true),
        ] {
            let version = Some(version.to_owned());
            let cluster = ClusterInfo { version: version.clone(), ..ClusterInfo::default() };
            assert_eq!(about_server(&cluster).is_some(), warned, "{version:?}");
        }
        assert_eq!(about_server(&ClusterInfo::default()), None, "version not recorded");
    }
}
