//! A list of pods of which only some are kept, read as the watch that follows it reads them.

use std::sync::Arc;

use crate::decode::ObjectError;
use crate::list::{Encoded, Sink};
use crate::request::Accept;
use crate::{Error, Kind};

/// What is kept of pods.
pub(super) trait Pick: Send + 'static {
    /// What is kept of one.
    type Pod: Send;

    /// Reads a pod; `None` if it is not kept.
    fn pick(&mut self, json: &str) -> Result<Option<Self::Pod>, String>;
}

/// Receives the pods of one list.
pub(super) struct PickedPods<P: Pick> {
    server: Arc<str>,
    pick: P,
    pods: Vec<P::Pod>,
    version: Option<String>,
}

impl<P: Pick> PickedPods<P> {
    pub(super) fn new(server: &Arc<str>, pick: P) -> Self {
        Self { server: Arc::clone(server), pick, pods: Vec::new(), version: None }
    }

    /// The pods, and the version where a watch continues.
    pub(super) fn finish(self) -> (Vec<P::Pod>, Option<String>) {
        (self.pods, self.version)
    }
}

impl<P: Pick> Sink for PickedPods<P> {
    /// Always JSON, as the watch that follows.
    fn accepts(_kind: Kind) -> Accept {
        Accept::Json
    }

    fn object(&mut self, kind: Kind, index: usize, object: Encoded<'_>) -> Result<(), Error> {
        let read = match object {
            Encoded::Json(json) => self.pick.pick(json),
            Encoded::Protobuf(_) => Err("is protobuf instead of JSON".to_owned()),
        };
        let pod = read.map_err(|reason| Error::Object {
            origin: Arc::clone(&self.server),
            object: ObjectError { kind, index, name: None, path: String::new(), reason },
        })?;
        self.pods.extend(pod);
        Ok(())
    }

    /// Only pages of protobuf are decoded apart, of which this keeps no objects.
    fn append(&mut self, page: Self) {
        debug_assert!(page.pods.is_empty(), "an object of protobuf is an error");
    }

    fn has_seen_record(&self) -> bool {
        false
    }

    fn version(&mut self, version: &str) {
        self.version = Some(version.to_owned());
    }
}
