//! What a request does and to what, in the words of RBAC; and how many of each were sent.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::Kind;

/// What a request does, as RBAC rules call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// One object.
    Get,
    /// One page of a list.
    List,
    /// A stream of changes.
    Watch,
    /// A new object.
    Create,
    /// A change of an object: server-side apply, merge patch or JSON patch.
    Patch,
    /// The end of an object.
    Delete,
}

impl Verb {
    /// The word in RBAC rules.
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

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Resource {
    /// One of the kinds that snapshots hold.
    Of(Kind),
    /// What the containers of a pod have printed.
    PodLog,
    /// `authorization.k8s.io/v1` `SelfSubjectAccessReview`: what this user may do.
    AccessReview,
    /// `/version`, which is no resource.
    Version,
}

impl Resource {
    /// The API group in RBAC rules; empty for the core group.
    pub fn group(self) -> &'static str {
        match self {
            Self::Of(kind) => kind.group(),
            Self::PodLog | Self::Version => "",
            Self::AccessReview => "authorization.k8s.io",
        }
    }

    /// The name in paths and in RBAC rules.
    pub fn name(self) -> &'static str {
        match self {
            Self::Of(kind) => kind.resource(),
            Self::PodLog => "pods/log",
            Self::AccessReview => "selfsubjectaccessreviews",
            Self::Version => "version",
        }
    }
}

/// `daemonsets.apps`, as RBAC and kubectl write it.
impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        if self.group().is_empty() { Ok(()) } else { write!(f, ".{}", self.group()) }
    }
}

/// How many requests were sent, by verb and resource. Each attempt counts: what was tried again
/// was sent again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestCounts(BTreeMap<(Verb, Resource), u64>);

impl RequestCounts {
    /// How many of this kind.
    pub fn of(&self, verb: Verb, resource: Resource) -> u64 {
        self.0.get(&(verb, resource)).copied().unwrap_or_default()
    }

    /// How many altogether.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// All of them that were sent at all, in the order of verbs.
    pub fn iter(&self) -> impl Iterator<Item = (Verb, Resource, u64)> {
        self.0.iter().map(|(&(verb, resource), &count)| (verb, resource, count))
    }

    /// What was sent since an earlier count of the same connection.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let more = self.iter().map(|(verb, resource, count)| {
            ((verb, resource), count.saturating_sub(earlier.of(verb, resource)))
        });
        Self(more.filter(|(_, count)| *count > 0).collect())
    }
}

/// Where requests are counted.
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
