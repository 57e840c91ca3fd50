//! The lists and watches of one DaemonSet, with selectors as narrow as the server supports.

use crate::list::{List, Narrowed};
use crate::request::Accept;
use crate::watch::Feed;
use crate::{Kind, Resource};
use daemonset::model::{
    DaemonSetKey, LabelSelector, LabelSelectorRequirement, ManagedBy, NeighbourQuery,
    PRE_PULL_LABEL, puller_label,
};

/// The DaemonSet to observe.
#[derive(Clone, Debug)]
pub struct WatchedDaemonSet {
    /// The DaemonSet's key. It need not exist yet.
    pub key: DaemonSetKey,
    /// Its manager: decides whether the DaemonSet object or its record is watched.
    pub managed_by: ManagedBy,
    /// `spec.selector`: selects pods and revisions. A pod that does not match does not belong to
    /// the DaemonSet even if it has its owner reference: the controller releases it.
    pub selector: LabelSelector,
    /// Whether to watch the events of the DaemonSet too, which RBAC may forbid.
    pub events: bool,
    /// Whether to watch the pods that pull images for the DaemonSet, too.
    pub pullers: bool,
    /// The other pods that the checks of its policy look at, in the whole cluster.
    pub neighbours: Vec<NeighbourQuery>,
}

/// The initial lists of a target; each is then watched.
pub(super) fn lists(target: &WatchedDaemonSet) -> Vec<List> {
    let namespace = Some(target.key.namespace.clone());
    let labels = label_selector(&target.selector);
    let selected = Narrowed { labels, ..Narrowed::default() };
    let name = target.managed_by.owner_name(&target.key.name);
    let named = Narrowed { fields: format!("metadata.name={name}"), ..Narrowed::default() };
    let object = match target.managed_by {
        ManagedBy::DaemonSetController => Kind::DaemonSet,
        ManagedBy::DsApply => Kind::DaemonSetRecord,
    };
    vec![
        List::all(Kind::Node, None),
        List { kind: object, namespace: namespace.clone(), narrowed: named },
        List {
            kind: Kind::ControllerRevision,
            namespace: namespace.clone(),
            narrowed: selected.clone(),
        },
        List { kind: Kind::Pod, namespace, narrowed: selected },
    ]
}

/// The watch that follows a list.
pub(super) fn feed_of(list: &List) -> Feed {
    let List { kind, namespace, narrowed } = list.clone();
    Feed { resource: Resource::Of(kind), namespace, narrowed, accept: Accept::of(kind) }
}

/// The pods that pull images for the DaemonSet.
pub(super) fn pullers(target: &WatchedDaemonSet) -> List {
    let labels = format!("{PRE_PULL_LABEL}={}", puller_label(&target.key.name));
    List {
        kind: Kind::Pod,
        namespace: Some(target.key.namespace.clone()),
        narrowed: Narrowed { labels, ..Narrowed::default() },
    }
}

/// The warning events about the DaemonSet. By name, because it may not exist yet.
pub(super) fn failed_creates(target: &WatchedDaemonSet) -> Feed {
    let name = &target.key.name;
    let fields = format!("involvedObject.kind=DaemonSet,involvedObject.name={name},type=Warning");
    Feed {
        resource: Resource::Of(Kind::Event),
        namespace: Some(target.key.namespace.clone()),
        narrowed: Narrowed { fields, ..Narrowed::default() },
        accept: Accept::Json,
    }
}

/// The selector as a query parameter (upstream: `labels.Selector.String`).
pub(super) fn label_selector(selector: &LabelSelector) -> String {
    let pairs = selector.match_labels.iter().map(|(key, value)| format!("{key}={value}"));
    let expressions = selector.match_expressions.iter().map(requirement);
    pairs.chain(expressions).collect::<Vec<_>>().join(",")
}

fn requirement(requirement: &LabelSelectorRequirement) -> String {
    let LabelSelectorRequirement { key, operator, values } = requirement;
    match operator.as_str() {
        "In" => format!("{key} in ({})", values.join(",")),
        "NotIn" => format!("{key} notin ({})", values.join(",")),
        "Exists" => key.clone(),
        "DoesNotExist" => format!("!{key}"),
        // The API has no other operators; an unknown one matches nothing.
        _unknown => format!("{key},!{key}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_are_written_as_the_server_reads_them() {
        for (selector, want) in [
            (r#"{"matchLabels":{"b":"2","a":"1"}}"#, "a=1,b=2"),
            (r#"{"matchLabels":{"a":""}}"#, "a="),
            (
                r#"{"matchLabels":{"a":"1"},"matchExpressions":[
                    {"key":"x.y/b","operator":"In","values":["1","2"]},
                    {"key":"c","operator":"NotIn","values":["3"]},
                    {"key":"d","operator":"Exists"},
                    {"key":"e","operator":"DoesNotExist"}]}"#,
                "a=1,x.y/b in (1,2),c notin (3),d,!e",
            ),
            (r#"{"matchExpressions":[{"key":"a","operator":"Like"}]}"#, "a,!a"),
        ] {
            assert_eq!(label_selector(&serde_json::from_str(selector).unwrap()), want);
        }
    }
}
