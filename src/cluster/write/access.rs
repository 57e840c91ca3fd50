//! Asking what this user may do, so that nothing needs to be tried and denied (upstream:
//! `SelfSubjectAccessReview`).

use futures::stream::{self, StreamExt};
use serde_json::Value;

use super::{WritableCluster, attempted, body};
use crate::cluster::request::Call;
use crate::cluster::{Resource, Verb, WriteError, uri};
use crate::model::NamespaceName;

/// Questions that are under way at the same time.
const AT_ONCE: usize = 8;

/// Something that a user may or may not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// What to do.
    pub verb: Verb,
    /// To what.
    pub resource: Resource,
    /// Where; `None` is the whole cluster.
    pub namespace: Option<NamespaceName>,
    /// To which object; `None` is all of them.
    pub name: Option<String>,
}

/// What the server says of an [`Access`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The user may.
    Allowed,
    /// The user may not.
    Denied,
    /// The server does not say.
    Unknown {
        /// Why not.
        why: String,
    },
}

impl WritableCluster {
    /// Whether this user may do something.
    ///
    /// # Errors
    /// The server does not say.
    pub async fn may(&self, access: &Access) -> Result<bool, WriteError> {
        let resource = Resource::AccessReview;
        let call = Call {
            verb: Verb::Create,
            body: Some(("application/json", body::access_review(access))),
            ..Call::get(resource, uri::collection(resource, None))
        };
        let attempted = attempted(&call, None, "", true);
        let review: Value = self.requests().write(None, &call, attempted).await?;
        Ok(review["status"]["allowed"] == true)
    }

    /// What this user may do of all these, asked several at a time; in the order of the questions.
    pub async fn review(&self, all: Vec<Access>) -> Vec<Verdict> {
        let one = async |access: Access| match self.may(&access).await {
            Ok(true) => Verdict::Allowed,
            Ok(false) => Verdict::Denied,
            Err(error) => Verdict::Unknown { why: error.to_string() },
        };
        stream::iter(all).map(one).buffered(AT_ONCE).collect().await
    }
}
