//! Looks up the PriorityClasses that templates name.

use std::collections::{BTreeMap, BTreeSet};

use super::failure::{Failure, Refusal};
use super::request::Call;
use super::{Error, LiveCluster, Resource, uri};

impl LiveCluster {
    /// Whether each of these PriorityClasses exists. Those that the user may not read are left out.
    ///
    /// # Errors
    /// The server does not answer, or not as expected.
    pub async fn priority_classes(
        &self,
        names: BTreeSet<String>,
    ) -> Result<BTreeMap<String, bool>, Error> {
        let mut known = BTreeMap::new();
        for name in names {
            let call = Call::get(Resource::PriorityClass, uri::priority_class(&name));
            let exists = match self.requests.send(&call).await {
                Ok(_) => true,
                Err(Failure::Status(Refusal { code: 404, .. })) => false,
                Err(Failure::Status(Refusal { code: 403, .. })) => continue,
                Err(failure) => return Err(self.requests.error(failure, &call)),
            };
            known.insert(name, exists);
        }
        Ok(known)
    }
}
