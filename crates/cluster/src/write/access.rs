//! Checks the permissions of this user before any write (upstream: `SelfSubjectAccessReview`).

use futures::stream::{self, StreamExt};
use serde_json::{Value, json};

use super::WritableCluster;
use crate::request::Call;
use crate::write_error::Attempted;
use crate::{Resource, Verb, WriteError, uri};
use daemonset::model::NamespaceName;

/// The number of concurrent reviews.
const AT_ONCE: usize = 8;

/// A permission to check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The RBAC verb.
    pub verb: Verb,
    /// The RBAC resource.
    pub resource: Resource,
    /// The namespace; `None` is the whole cluster.
    pub namespace: Option<NamespaceName>,
    /// The object's name; `None` is all objects.
    pub name: Option<String>,
}

/// The server's answer to an [`Access`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The user has the permission.
    Allowed,
    /// The user does not have the permission.
    Denied,
    /// The review failed.
    Unknown {
        /// The error of the review.
        why: String,
    },
}

impl WritableCluster {
    /// Whether this user has a permission.
    ///
    /// # Errors
    /// The review failed.
    pub async fn may(&self, access: &Access) -> Result<bool, WriteError> {
        let resource = Resource::AccessReview;
        let call = Call {
            verb: Verb::Create,
            body: Some(("application/json", review(access))),
            ..Call::get(resource, uri::collection(resource, None))
        };
        let attempted = Attempted::by(&call, None, "", true);
        let review: Value = self.requests().write(None, &call, attempted).await?;
        Ok(review["status"]["allowed"] == true)
    }

    /// Checks all these permissions concurrently. The results are in the same order.
    pub async fn review(&self, all: Vec<Access>) -> Vec<Verdict> {
        let one = async |access: Access| match self.may(&access).await {
            Ok(true) => Verdict::Allowed,
            Ok(false) => Verdict::Denied,
            Err(error) => Verdict::Unknown { why: error.to_string() },
        };
        stream::iter(all).map(one).buffered(AT_ONCE).collect().await
    }
}

/// The body of a `SelfSubjectAccessReview`.
fn review(access: &Access) -> Vec<u8> {
    let Access { verb, resource, namespace, name } = access;
    let (group, resource) = (resource.group(), resource.name());
    let (resource, subresource) = match resource.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource)),
        None => (resource, None),
    };
    let mut review = json!({
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {
            "verb": verb.as_str(),
            "group": group,
            "resource": resource,
            "namespace": namespace,
            "name": name,
        }},
    });
    if let Some(subresource) = subresource {
        review["spec"]["resourceAttributes"]["subresource"] = subresource.into();
    }
    review.to_string().into()
}
