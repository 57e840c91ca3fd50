//! Parses a request's path and query as the API server does (upstream:
//! `RequestInfoFactory.NewRequestInfo`).

use std::collections::BTreeMap;

use http::Method;
use percent_encoding::percent_decode_str;

use crate::rules::Attributes;
use crate::{Group, Kind, Reason, Status};

/// The requested resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// Objects, or one of them.
    Objects(Objects),
    /// A `SelfSubjectAccessReview`.
    AccessReview,
    /// `/version`.
    Version,
}

/// Objects of one kind, or one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objects {
    /// Kind of the objects.
    pub kind: Kind,
    /// Namespace; empty for all, or for cluster-scoped kinds.
    pub namespace: String,
    /// Name; empty for all objects.
    pub name: String,
    /// Subresource, such as `status`; empty for the object itself.
    pub subresource: String,
}

impl Objects {
    /// The resource as in RBAC and messages: `pods/binding`.
    pub fn resource(&self) -> String {
        match self.subresource.as_str() {
            "" => self.kind.resource().to_owned(),
            subresource => format!("{}/{subresource}", self.kind.resource()),
        }
    }

    /// The attributes for authorization.
    pub(super) fn attributes(&self, verb: &str) -> Attributes {
        // The namespace of a Namespace is its own name.
        let is_namespace = self.kind == Kind::Namespace;
        let namespace = if is_namespace { &self.name } else { &self.namespace };
        Attributes {
            verb: verb.to_owned(),
            group: self.kind.group().name().to_owned(),
            resource: self.resource(),
            namespace: namespace.clone(),
            name: self.name.clone(),
        }
    }
}

/// The values of a query; for duplicate keys the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(BTreeMap<String, String>);

impl Query {
    /// Parses a query.
    pub(super) fn of(text: &str) -> Self {
        let mut all = BTreeMap::new();
        for pair in text.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let [key, value] = [key, value].map(|text| decoded(&text.replace('+', " ")));
            all.entry(key).or_insert(value);
        }
        Self(all)
    }

    /// The value under a key; empty when there is none.
    pub fn get(&self, key: &str) -> &str {
        self.0.get(key).map(String::as_str).unwrap_or_default()
    }

    /// `true` if the value is `true` in one of Go's spellings.
    pub fn is(&self, key: &str) -> bool {
        matches!(self.get(key), "true" | "1" | "True" | "TRUE" | "t" | "T")
    }
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// The RBAC verb of a method on objects or on one of them.
pub(super) fn verb(method: &Method, objects: &Objects, query: &Query) -> Option<&'static str> {
    Some(match (method.as_str(), objects.name.is_empty()) {
        ("GET", _) if query.is("watch") => "watch",
        ("GET", true) => "list",
        ("GET", false) => "get",
        ("POST", _) => "create",
        ("PUT", false) => "update",
        ("PATCH", false) => "patch",
        ("DELETE", true) => "deletecollection",
        ("DELETE", false) => "delete",
        _ => return None,
    })
}

/// Parses a path.
///
/// # Errors
/// 404: the path is not served.
pub(super) fn route(path: &str) -> Result<Route, Status> {
    let parts: Vec<String> = path.trim_matches('/').split('/').map(decoded).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    let (group, rest) = match parts.as_slice() {
        ["version"] => return Ok(Route::Version),
        ["api", version, rest @ ..] => (group_of(version), rest),
        ["apis", group, version, rest @ ..] => (group_of(&format!("{group}/{version}")), rest),
        _ => (None, &[][..]),
    };
    if let ["apis", "scheduling.k8s.io", "v1", "priorityclasses", name] = parts.as_slice() {
        return Err(not_loaded(name));
    }
    let group = group.ok_or_else(no_such_path)?;
    match rest {
        ["selfsubjectaccessreviews"] if group == Group::Authorization => Ok(Route::AccessReview),
        ["namespaces", name] => objects(group, "", &["namespaces", name]),
        ["namespaces", name, sub @ ("status" | "finalize")] => {
            objects(group, "", &["namespaces", name, sub])
        }
        ["namespaces", namespace, rest @ ..] => objects(group, namespace, rest),
        rest => objects(group, "", rest),
    }
}

fn group_of(api_version: &str) -> Option<Group> {
    Group::ALL.into_iter().find(|group| group.api_version() == api_version)
}

fn objects(group: Group, namespace: &str, rest: &[&str]) -> Result<Route, Status> {
    let (resource, name, subresource) = match rest {
        [resource] => (*resource, "", ""),
        [resource, name] => (*resource, *name, ""),
        [resource, name, subresource] => (*resource, *name, *subresource),
        _ => return Err(no_such_path()),
    };
    let kind = Kind::of_resource(group, resource).ok_or_else(no_such_path)?;
    let misplaced = if kind.is_namespaced() {
        namespace.is_empty() && !name.is_empty()
    } else {
        !namespace.is_empty()
    };
    if misplaced {
        return Err(no_such_path());
    }
    let [namespace, name, subresource] = [namespace, name, subresource].map(str::to_owned);
    Ok(Route::Objects(Objects { kind, namespace, name, subresource }))
}

/// The answer for a PriorityClass: none is loaded, which does not mean that it does not exist.
fn not_loaded(name: &str) -> Status {
    let why = "the embedded cluster has no PriorityClasses";
    let message = format!("priorityclasses.scheduling.k8s.io {name:?} is forbidden: {why}");
    Status::new(Reason::Forbidden, message)
}

/// The answer for unknown paths (upstream: `NewGenericServerResponse`).
pub(super) fn no_such_path() -> Status {
    Status::new(Reason::NotFound, "the server could not find the requested resource")
}

/// The answer to a method that a resource does not have.
pub(super) fn method_not_allowed() -> Status {
    let why = "the server does not allow this method on the requested resource";
    Status::new(Reason::MethodNotAllowed, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_parsed() {
        for (path, want) in [
            ("/api/v1/pods", Some("pods//")),
            ("/api/v1/namespaces/a/pods", Some("pods/a/")),
            ("/api/v1/namespaces/a/pods/b", Some("pods/a/b")),
            ("/api/v1/namespaces/a/pods/b/binding", Some("pods/binding/a/b")),
            ("/api/v1/namespaces", Some("namespaces//")),
            ("/api/v1/namespaces/a", Some("namespaces//a")),
            ("/api/v1/namespaces/a/status", Some("namespaces/status//a")),
            ("/api/v1/nodes/n%2Fx", Some("nodes//n/x")),
            ("/apis/apps/v1/namespaces/a/daemonsets/b/status", Some("daemonsets/status/a/b")),
            // Namespaced objects have no path without a namespace, and the reverse.
            ("/api/v1/pods/b", None),
            ("/api/v1/namespaces/a/nodes", None),
            ("/apis/apps/v1/pods", None),
            ("/apis/apps/v1/deployments", None),
            ("/apis/apps/v1beta1/daemonsets", None),
            ("/apis/batch/v1/jobs", None),
            ("/api/v1", None),
            ("/apis", None),
            ("/", None),
        ] {
            let got = match route(path) {
                Ok(Route::Objects(it)) => {
                    Some(format!("{}/{}/{}", it.resource(), it.namespace, it.name))
                }
                Ok(other) => panic!("{path}: {other:?}"),
                Err(status) => {
                    assert_eq!(status.code, 404, "{path}");
                    None
                }
            };
            assert_eq!(got.as_deref(), want, "{path}");
        }
    }

    #[test]
    fn queries_are_decoded() {
        let query = Query::of("labelSelector=app%20in%20%28a%2Cb%29&watch=1&x&a+b=c+d&watch=0");
        assert_eq!(query.get("labelSelector"), "app in (a,b)");
        assert!(query.is("watch") && !query.is("x") && !query.is("y"));
        assert_eq!(query.get("a b"), "c d");
    }
}
