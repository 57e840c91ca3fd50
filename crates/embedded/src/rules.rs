//! Authorization: everything is allowed except what a rule denies (upstream's RBAC allows by rule;
//! the answers are the same).

use super::{Kind, Reason, Status};

/// Attributes of a request, in RBAC's terms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub(crate) verb: String,
    /// The API group; empty for the core group.
    pub(crate) group: String,
    /// The resource, with its subresource: `pods/binding`.
    pub(crate) resource: String,
    /// The namespace; empty for the whole cluster.
    pub(crate) namespace: String,
    /// The object's name; empty for all of them.
    pub(crate) name: String,
}

/// A rule that denies requests. An empty list matches everything; all lists of a rule must match.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Denial {
    /// Users that are denied.
    pub users: Vec<String>,
    /// Denied verbs.
    pub verbs: Vec<String>,
    /// Denied resources, with their subresource if it is meant: `pods`, `pods/binding`.
    pub resources: Vec<String>,
    /// Namespaces of the rule; the empty one means cluster-wide requests.
    pub namespaces: Vec<String>,
}

impl Denial {
    fn covers(&self, user: &str, wanted: &Attributes) -> bool {
        let Self { users, verbs, resources, namespaces } = self;
        let has = |list: &[String], text: &str| list.is_empty() || list.iter().any(|it| it == text);
        has(users, user)
            && has(verbs, &wanted.verb)
            && has(resources, &wanted.resource)
            && has(namespaces, &wanted.namespace)
    }
}

/// All rules.
#[derive(Clone, Debug, Default)]
pub(super) struct Rules(pub(super) Vec<Denial>);

impl Rules {
    /// `true` if a user is allowed to.
    pub(super) fn permit(&self, user: &str, wanted: &Attributes) -> bool {
        !self.0.iter().any(|denial| denial.covers(user, wanted))
    }

    /// The answer to a user who is denied (upstream: `responsewriters.Forbidden`).
    pub(super) fn check(&self, user: &str, kind: Kind, wanted: &Attributes) -> Result<(), Status> {
        if self.permit(user, wanted) {
            return Ok(());
        }
        let Attributes { verb, group, resource, namespace, name } = wanted;
        let scope = match namespace.as_str() {
            "" => "at the cluster scope".to_owned(),
            namespace => format!("in the namespace {namespace:?}"),
        };
        let why = format!(
            "User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {scope}"
        );
        let status = Status::forbidden(kind, name, &why);
        debug_assert_eq!(status.reason, Reason::Forbidden);
        Err(status)
    }
}
