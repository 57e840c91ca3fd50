//! Objects decoded one by one by whoever keeps them himself, as the embedded cluster does.

use serde_json::Value;

use super::{Gathered, Object, ObjectError};
use crate::cluster::Kind;
use crate::model::Pod;

/// Reads objects as those of a live cluster are read, and keeps one copy of each text in them.
#[derive(Debug, Default)]
pub(crate) struct SlimDecoder(Gathered);

impl SlimDecoder {
    /// The slim view of a pod that is at hand as values. `None` when its text has to be read, to say
    /// what is wrong with it.
    pub(crate) fn pod(&mut self, values: &Value) -> Option<Pod> {
        self.0.pod(values)
    }

    /// The slim view of an object; `None` for kinds that are not watched.
    pub(crate) fn decode(&mut self, kind: Kind, json: &str) -> Result<Option<Object>, ObjectError> {
        self.0.add(kind, 0, json)?;
        Ok(self.0.take_last(kind))
    }
}
