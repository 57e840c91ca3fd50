//! Who may do what: everything, but for what a rule denies (upstream's RBAC permits by rule; the
//! answers are the same).

use super::{Kind, Reason, Status};

/// What somebody wants to do, in the words of RBAC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`.
    pub verb: String,
    /// The API group; empty for the core group.
    pub group: String,
    /// The resource, with its subresource: `pods/eviction`.
    pub resource: String,
    /// The namespace; empty for the whole cluster.
    pub namespace: String,
    /// The object's name; empty for all of them.
    pub name: String,
}

/// Something that is denied. An empty list is everything; the lists of one rule hold together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Denial {
    /// To these users.
    pub users: Vec<String>,
    /// These verbs.
    pub verbs: Vec<String>,
    /// These resources, with their subresource if it is meant: `pods`, `pods/eviction`.
    pub resources: Vec<String>,
    /// In these namespaces; the empty one stands for requests to the whole cluster.
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
    /// Whether a user may.
    pub(super) fn permit(&self, user: &str, wanted: &Attributes) -> bool {
        !self.0.iter().any(|denial| denial.covers(user, wanted))
    }

    /// What is answered to a user who may not (upstream: `responsewriters.Forbidden`).
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
