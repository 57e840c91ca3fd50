//! Reads single objects.

use super::decode::{self, Object, ObjectError};
use super::failure::{Failure, Refusal};
use super::list::{self, List, Narrowed};
use super::live::Decoder;
use super::lock::LiveLease;
use super::request::{Call, Requests};
use super::{Error, Kind, LiveCluster, Permission, Resource, uri};
use daemonset::model::{
    DaemonSet, DaemonSetKey, NamespaceName, Revision, RevisionName, lease_name,
};

impl LiveCluster {
    /// Reads a DaemonSet; `None` when it does not exist.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn daemon_set(&self, key: &DaemonSetKey) -> Result<Option<DaemonSet>, Error> {
        let resource = Resource::Of(Kind::DaemonSet);
        let found = self.requests.object(resource, &key.namespace, key.name.as_str()).await?;
        found.map(|json| self.requests.daemon_set_of(&json)).transpose()
    }

    /// As [`daemon_set`](Self::daemon_set), for a user who may list DaemonSets but not get them.
    ///
    /// # Errors
    /// DaemonSets cannot be listed.
    pub async fn daemon_set_listed(&self, key: &DaemonSetKey) -> Result<Option<DaemonSet>, Error> {
        let fields = format!("metadata.name={}", key.name);
        let narrowed = Narrowed { fields, ..Narrowed::default() };
        let namespace = Some(key.namespace.clone());
        let list = List { kind: Kind::DaemonSet, namespace, narrowed };
        let sink = || Decoder::new(&self.requests.server);
        let mut read = list::read(&self.requests, &list, self.page_size, &sink).await?;
        Ok(match read.snapshot_builder.take_last(Kind::DaemonSet) {
            Some(Object::DaemonSet(found)) => Some(found),
            Some(_) | None => None,
        })
    }

    /// Reads all DaemonSets of a namespace, in any order.
    ///
    /// # Errors
    /// DaemonSets cannot be listed.
    pub async fn daemon_sets_in(&self, namespace: &NamespaceName) -> Result<Vec<DaemonSet>, Error> {
        self.daemon_sets_of(&List::all(Kind::DaemonSet, Some(namespace.clone()))).await
    }

    /// Reads all records of a namespace, each as the DaemonSet that it stands for, in any order. One
    /// that cannot be decoded is left out.
    ///
    /// # Errors
    /// ConfigMaps cannot be listed.
    pub async fn records_in(&self, namespace: &NamespaceName) -> Result<Vec<DaemonSet>, Error> {
        self.daemon_sets_of(&List::records(Some(namespace.clone()))).await
    }

    async fn daemon_sets_of(&self, list: &List) -> Result<Vec<DaemonSet>, Error> {
        let sink = || Decoder::new(&self.requests.server);
        let mut read = list::read(&self.requests, list, self.page_size, &sink).await?;
        let mut found = Vec::new();
        while let Some(Object::DaemonSet(one)) = read.snapshot_builder.take_last(list.kind) {
            found.push(one);
        }
        Ok(found)
    }

    /// Reads a revision; `None` when it does not exist.
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

    /// Reads the DaemonSet's lease, with its holder and annotations. `None` when the DaemonSet was
    /// never locked.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn lease(&self, key: &DaemonSetKey) -> Result<Option<LiveLease>, Error> {
        self.requests.lease(key).await
    }
}

impl Requests {
    /// The JSON of one object; `None` when it does not exist.
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

    pub(super) async fn lease(&self, key: &DaemonSetKey) -> Result<Option<LiveLease>, Error> {
        let name = lease_name(key.name.as_str());
        let Some(json) = self.object(Resource::Of(Kind::Lease), &key.namespace, &name).await?
        else {
            return Ok(None);
        };
        Self::lease_of(&json).map(Some)
    }

    pub(super) fn lease_of(json: &[u8]) -> Result<LiveLease, Error> {
        LiveLease::read(json).map_err(|error| Error::NotAnAnswer {
            request: format!("GET {}", Resource::Of(Kind::Lease)),
            reason: error.to_string(),
        })
    }

    pub(super) fn daemon_set_of(&self, json: &[u8]) -> Result<DaemonSet, Error> {
        self.decoded(decode::one_daemon_set(&String::from_utf8_lossy(json)))
    }

    /// Decodes a record ConfigMap; an error for any other ConfigMap.
    pub(super) fn record_of(&self, json: &[u8]) -> Result<DaemonSet, Error> {
        let found = self.decoded(decode::one_record(&String::from_utf8_lossy(json)))?;
        found.ok_or_else(|| Error::NotAnAnswer {
            request: format!("a write of {}", Resource::Of(Kind::DaemonSetRecord)),
            reason: "the ConfigMap is not a record of ds-apply".to_owned(),
        })
    }

    pub(super) fn revision_of(&self, json: &[u8]) -> Result<Revision, Error> {
        self.decoded(decode::one_revision(&String::from_utf8_lossy(json)))
    }

    fn decoded<T>(&self, decoded: Result<T, ObjectError>) -> Result<T, Error> {
        decoded.map_err(|object| Error::Object { origin: self.server.clone(), object })
    }
}
