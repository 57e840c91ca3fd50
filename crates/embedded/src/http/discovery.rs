//! API discovery (upstream: `APIGroupList`, `APIResourceList`).

use serde_json::{Value, json};

use super::route::Discovery;
use crate::{Group, Kind};

/// The answer to a discovery request.
pub(super) fn answer(what: Discovery) -> Value {
    match what {
        Discovery::Core => json!({"kind": "APIVersions", "versions": ["v1"]}),
        Discovery::Groups => {
            let named = Group::ALL.into_iter().filter(|group| !group.name().is_empty());
            let groups: Vec<Value> = named.map(described).collect();
            json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
        }
        Discovery::Group(group) => json!({
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": group.api_version(),
            "resources": resources(group),
        }),
    }
}

fn described(group: Group) -> Value {
    let version = json!({
        "groupVersion": group.api_version(),
        "version": group.api_version().rsplit('/').next(),
    });
    json!({"name": group.name(), "versions": [version], "preferredVersion": version})
}

fn resources(group: Group) -> Vec<Value> {
    if group == Group::Authorization {
        return vec![json!({
            "name": "selfsubjectaccessreviews", "singularName": "selfsubjectaccessreview",
            "namespaced": false, "kind": "SelfSubjectAccessReview", "verbs": ["create"],
        })];
    }
    let kinds = Kind::ALL.into_iter().filter(|kind| kind.group() == group);
    kinds.flat_map(of_kind).collect()
}

fn of_kind(kind: Kind) -> Vec<Value> {
    let resource = |name: String, kind_name: &str, namespaced: bool, verbs: &[&str]| {
        json!({
            "name": name, "singularName": kind_name.to_lowercase(), "namespaced": namespaced,
            "kind": kind_name, "verbs": verbs,
        })
    };
    let (name, namespaced) = (kind.resource(), kind.is_namespaced());
    let all = ["create", "delete", "get", "list", "patch", "update", "watch"];
    let mut resources = vec![resource(name.to_owned(), kind.as_str(), namespaced, &all)];
    if kind.has_status() {
        let verbs = ["get", "patch", "update"];
        resources.push(resource(format!("{name}/status"), kind.as_str(), namespaced, &verbs));
    }
    if kind == Kind::Pod {
        resources.push(resource("pods/binding".to_owned(), "Binding", true, &["create"]));
        resources.push(resource("pods/eviction".to_owned(), "Eviction", true, &["create"]));
    }
    resources
}
