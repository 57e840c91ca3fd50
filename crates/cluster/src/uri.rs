//! Builds paths and queries of the API.

use std::fmt::{Display, Write as _};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::{Kind, Resource};
use daemonset::model::NamespaceName;

/// The characters to escape: all but the unreserved ones of RFC 3986.
const ESCAPED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The path of a resource's collection; without a namespace, of the whole cluster.
pub(super) fn collection(resource: Resource, namespace: Option<&NamespaceName>) -> String {
    let root = match resource {
        Resource::Of(kind) => return kind.path(namespace),
        // A subresource of pods, without a collection of its own.
        Resource::PodLog => return Kind::Pod.path(namespace),
        Resource::Approvals => "/api/v1",
        Resource::PriorityClass => "/apis/scheduling.k8s.io/v1",
        Resource::AccessReview => "/apis/authorization.k8s.io/v1",
        Resource::Version => return "/version".to_owned(),
    };
    match namespace {
        Some(namespace) => format!("{root}/namespaces/{namespace}/{}", resource.name()),
        None => format!("{root}/{}", resource.name()),
    }
}

/// The path of one object in a namespace.
pub(super) fn object(resource: Resource, namespace: &NamespaceName, name: &str) -> String {
    format!("{}/{}", collection(resource, Some(namespace)), utf8_percent_encode(name, &ESCAPED))
}

/// The path of a PriorityClass.
pub(super) fn priority_class(name: &str) -> String {
    format!("{}/{}", collection(Resource::PriorityClass, None), utf8_percent_encode(name, &ESCAPED))
}

/// Adds a query to a path; pairs without a value are omitted.
pub(super) fn with_query<'v>(
    mut path: String,
    pairs: impl IntoIterator<Item = (&'v str, Option<&'v dyn Display>)>,
) -> String {
    let mut separator = '?';
    for (key, value) in pairs {
        let Some(value) = value else { continue };
        let value = value.to_string();
        // Writing to a string cannot fail.
        let _ = write!(path, "{separator}{key}={}", utf8_percent_encode(&value, &ESCAPED));
        separator = '&';
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_escaped_and_absent_ones_left_out() {
        let path = object(Resource::Of(Kind::Lease), &"team".into(), "a/b");
        assert_eq!(path, "/apis/coordination.k8s.io/v1/namespaces/team/leases/a%2Fb");
        let selector = "app in (a,b)";
        let pairs: [(&str, Option<&dyn Display>); 3] =
            [("limit", Some(&5)), ("continue", None), ("labelSelector", Some(&selector))];
        let want = "/api/v1/pods?limit=5&labelSelector=app%20in%20%28a%2Cb%29";
        assert_eq!(with_query("/api/v1/pods".to_owned(), pairs), want);
    }
}
