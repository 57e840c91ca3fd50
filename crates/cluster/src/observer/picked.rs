//! A list of pods of which only some are kept, read as the watch that follows it reads them.

use std::sync::Arc;

use crate::decode::{Encoded, ObjectError};
use crate::list::Sink;
use crate::request::Accept;
use crate::{Error, Kind};

/// What is kept of pods.
pub(super) trait Pick: Send + 'static {
    /// What is kept of one.
    type Pod: Send;

    /// Reads a pod; `None` if it is not kept.
    fn pick(&mut self, pod: Encoded<'_>) -> Result<Option<Self::Pod>, String>;

    /// The formats that it reads.
    const ACCEPTS: Accept;
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
    fn accepts(_kind: Kind) -> Accept {
        P::ACCEPTS
    }

    fn object(&mut self, kind: Kind, index: usize, object: Encoded<'_>) -> Result<(), Error> {
        let pod = self.pick.pick(object).map_err(|reason| Error::Object {
            origin: Arc::clone(&self.server),
            object: ObjectError { kind, index, name: None, path: String::new(), reason },
        })?;
        self.pods.extend(pod);
        Ok(())
    }

    fn append(&mut self, page: Self) {
        self.pods.extend(page.pods);
    }

    fn has_seen_record(&self) -> bool {
        false
    }

    fn version(&mut self, version: &str) {
        self.version = Some(version.to_owned());
    }
}
