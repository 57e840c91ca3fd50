//! Verbs and resources of requests, named as in RBAC, and the counts of sent requests.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::Kind;

/// The verb of a request, as in RBAC rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// Reads one object.
    Get,
    /// Reads one page of a list.
    List,
    /// Reads a stream of changes.
    Watch,
    /// Creates an object.
    Create,
    /// Changes an object: server-side apply, merge patch or JSON patch.
    Patch,
    /// Deletes an object.
    Delete,
}

impl Verb {
    /// The verb as written in RBAC rules.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::List => "list",
            Self::Watch => "watch",
            Self::Create => "create",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }

    /// The HTTP method.
    pub(super) fn method(self) -> http::Method {
        match self {
            Self::Get | Self::List | Self::Watch => http::Method::GET,
            Self::Create => http::Method::POST,
            Self::Patch => http::Method::PATCH,
            Self::Delete => http::Method::DELETE,
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The resource of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// The resource of one of the kinds in a snapshot.
    Of(Kind),
    /// `pods/log`: the log of a container.
    PodLog,
    /// `scheduling.k8s.io/v1` PriorityClass: those that templates name.
    PriorityClass,
    /// `v1` ConfigMap: the approvals of a DaemonSet's steps.
    Approvals,
    /// `authorization.k8s.io/v1` `SelfSubjectAccessReview`: checks a permission of this user.
    AccessReview,
    /// The non-resource URL `/version`.
    Version,
}

impl Resource {
    /// The API group in RBAC rules; empty for the core group.
    pub fn group(self) -> &'static str {
        match self {
            Self::Of(kind) => kind.group(),
            Self::PodLog | Self::Approvals | Self::Version => "",
            Self::PriorityClass => "scheduling.k8s.io",
            Self::AccessReview => "authorization.k8s.io",
        }
    }

    /// The name of the resource in paths and in RBAC rules.
    pub fn name(self) -> &'static str {
        match self {
            Self::Of(kind) => kind.resource(),
            Self::PodLog => "pods/log",
            Self::PriorityClass => "priorityclasses",
            Self::Approvals => "configmaps",
            Self::AccessReview => "selfsubjectaccessreviews",
            Self::Version => "version",
        }
    }
}

/// `daemonsets.apps`, the notation of kubectl.
impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if self.group().is_empty() { Ok(()) } else { write!(f, ".{}", self.group()) }
    }
}

/// The number of requests sent, by verb and resource. Every attempt counts, retries included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts(BTreeMap<(Verb, Resource), u64>);

impl RequestCounts {
    /// The number of requests with this verb and resource.
    pub fn of(&self, verb: Verb, resource: Resource) -> u64 {
        self.0.get(&(verb, resource)).copied().unwrap_or_default()
    }

    /// The number of all requests.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// All counts above zero, in the order of verbs.
    pub fn iter(&self) -> impl Iterator<Item = (Verb, Resource, u64)> {
        self.0.iter().map(|(&(verb, resource), &count)| (verb, resource, count))
    }

    /// The requests sent since an earlier count of the same connection.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let more = self.iter().map(|(verb, resource, count)| {
            ((verb, resource), count.saturating_sub(earlier.of(verb, resource)))
        });
        Self(more.filter(|(_, count)| *count > 0).collect())
    }
}

/// Counts requests.
#[derive(Debug, Default)]
pub(super) struct Counter(Mutex<RequestCounts>);

impl Counter {
    pub(super) fn count(&self, verb: Verb, resource: Resource) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.0.entry((verb, resource)).or_default() += 1;
    }

    pub(super) fn counts(&self) -> RequestCounts {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_verb_and_resource() {
        let (counter, pods) = (Counter::default(), Resource::Of(Kind::Pod));
        counter.count(Verb::List, pods);
        let before = counter.counts();
        counter.count(Verb::Delete, pods);
        counter.count(Verb::Delete, pods);
        let after = counter.counts();
        assert_eq!((after.total(), after.of(Verb::Delete, pods)), (3, 2));
        let since: Vec<_> = after.since(&before).iter().collect();
        assert_eq!(since, [(Verb::Delete, pods, 2)]);
    }

    #[test]
    fn resources_are_named_as_in_rbac() {
        for (resource, want) in [
            (Resource::Of(Kind::Pod), "pods"),
            (Resource::Of(Kind::DaemonSet), "daemonsets.apps"),
            (Resource::Of(Kind::Lease), "leases.coordination.k8s.io"),
        ] {
            assert_eq!(resource.to_string(), want);
        }
    }
}
