//! Names of objects, for the completion of a command line: one quick request.

use serde::Deserialize;

use super::request::Call;
use super::{Error, Kind, LiveCluster, Resource, uri};
use daemonset::model::NamespaceName;

/// The most names to choose from.
const MOST: u32 = 500;

#[derive(Deserialize)]
struct Named {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Metadata {
    #[serde(default)]
    namespace: String,
    name: String,
}

impl LiveCluster {
    /// Namespace and name of the first objects of a kind; all namespaces without one. Objects that
    /// are in no namespace have an empty one. Not retried: a completion has no time.
    ///
    /// # Errors
    /// The user is not permitted to list them, or the server does not answer.
    pub async fn names(
        &self,
        kind: Kind,
        namespace: Option<&NamespaceName>,
    ) -> Result<Vec<(NamespaceName, String)>, Error> {
        let uri = uri::with_query(kind.path(namespace), [("limit", Some(&MOST as _))]);
        let call = Call::list(Resource::Of(kind), uri);
        let answer = self.requests.attempt(&call).await;
        let answer = answer.map_err(|failure| self.requests.error(failure, &call))?;
        let Named { items } =
            serde_json::from_slice(&answer).unwrap_or(Named { items: Vec::new() });
        let names = items.into_iter().map(|Item { metadata }| metadata);
        Ok(names.map(|Metadata { namespace, name }| (namespace.into(), name)).collect())
    }
}
