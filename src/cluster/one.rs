//! Reading one object.

use super::decode::{self, Object, ObjectError};
use super::failure::{Failure, Refusal};
use super::list::{self, List, Narrowed};
use super::live::Decoder;
use super::lock::LeaseRecord;
use super::request::{Call, Requests};
use super::{Error, Kind, LiveCluster, Permission, Resource, uri};
use crate::model::{DaemonSet, DaemonSetKey, NamespaceName, Revision, RevisionName, lease_name};

impl LiveCluster {
    /// The DaemonSet as it is now; `None` when there is none.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn daemon_set(&self, key: &DaemonSetKey) -> Result<Option<DaemonSet>, Error> {
        let resource = Resource::Of(Kind::DaemonSet);
        let found = self.requests.object(resource, &key.namespace, key.name.as_str()).await?;
        found.map(|json| self.requests.daemon_set_of(&json)).transpose()
    }

    /// The same for whoever may list DaemonSets and not get them.
    ///
    /// # Errors
    /// They cannot be listed.
    pub async fn daemon_set_listed(&self, key: &DaemonSetKey) -> Result<Option<DaemonSet>, Error> {
        let fields = format!("metadata.name={}", key.name);
        let narrowed = Narrowed { fields, ..Narrowed::default() };
        let namespace = Some(key.namespace.clone());
        let list = List { kind: Kind::DaemonSet, namespace, narrowed };
        let sink = || Decoder::new(&self.requests.server);
        let mut read = list::read(&self.requests, &list, self.page_size, &sink).await?;
        Ok(match read.gathered.take_last(Kind::DaemonSet) {
            Some(Object::DaemonSet(found)) => Some(found),
            Some(_) | None => None,
        })
    }

    /// The revision as it is now; `None` when there is none.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn revision(
        &self,
        namespace: &NamespaceName,
        name: &RevisionName,
    ) -> Result<Option<Revision>, Error> {
        let resource = Resource::Of(Kind::ControllerRevision);
        let found = self.requests.object(resource, namespace, name.as_str()).await?;
        found.map(|json| self.requests.revision_of(&json)).transpose()
    }

    /// The DaemonSet's lease: who holds it, and what is noted in it. `None` when it was never
    /// locked.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn lease(&self, key: &DaemonSetKey) -> Result<Option<LeaseRecord>, Error> {
        self.requests.lease(key).await
    }
}

impl Requests {
    /// The text of one object; `None` when there is none.
    pub(super) async fn object(
        &self,
        resource: Resource,
        namespace: &NamespaceName,
        name: &str,
    ) -> Result<Option<Vec<u8>>, Error> {
        let call = Call::get(resource, uri::object(resource, namespace, name));
        match self.send(&call).await {
            Ok(json) => Ok(Some(json)),
            Err(Failure::Status(Refusal { code: 404, .. })) => Ok(None),
            Err(Failure::Status(Refusal { code: 403, message, .. })) => {
                let namespace = Some(namespace.clone());
                let missing = vec![Permission { verb: call.verb, resource, namespace }];
                Err(Error::Forbidden { missing, message })
            }
            Err(failure) => Err(self.error(failure, &call)),
        }
    }

    pub(super) async fn lease(&self, key: &DaemonSetKey) -> Result<Option<LeaseRecord>, Error> {
        let name = lease_name(key.name.as_str());
        let Some(json) = self.object(Resource::Of(Kind::Lease), &key.namespace, &name).await?
        else {
            return Ok(None);
        };
        Self::lease_of(&json).map(Some)
    }

    pub(super) fn lease_of(json: &[u8]) -> Result<LeaseRecord, Error> {
        LeaseRecord::read(json).map_err(|error| Error::NotAnAnswer {
            request: format!("GET {}", Resource::Of(Kind::Lease)),
            reason: error.to_string(),
        })
    }

    pub(super) fn daemon_set_of(&self, json: &[u8]) -> Result<DaemonSet, Error> {
        self.decoded(decode::one_daemon_set(&String::from_utf8_lossy(json)))
    }

    /// A ledger, which it has to be.
    pub(super) fn ledger_of(&self, json: &[u8]) -> Result<DaemonSet, Error> {
        let found = self.decoded(decode::one_ledger(&String::from_utf8_lossy(json)))?;
        found.ok_or_else(|| Error::NotAnAnswer {
            request: format!("a write of {}", Resource::Of(Kind::Ledger)),
            reason: "it is no ledger".to_owned(),
        })
    }

    pub(super) fn revision_of(&self, json: &[u8]) -> Result<Revision, Error> {
        self.decoded(decode::one_revision(&String::from_utf8_lossy(json)))
    }

    fn decoded<T>(&self, decoded: Result<T, ObjectError>) -> Result<T, Error> {
        decoded.map_err(|object| Error::Object { origin: self.server.clone(), object })
    }
}
