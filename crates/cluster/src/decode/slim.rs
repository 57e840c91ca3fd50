//! Decodes single objects for a caller that stores them, such as the embedded cluster.

use serde_json::Value;

use super::{Object, ObjectError, SnapshotBuilder};
use crate::Kind;
use daemonset::model::Pod;

/// Decodes objects like those of a live cluster, and interns their texts.
#[derive(Debug, Default)]
pub struct SlimDecoder(SnapshotBuilder);

impl SlimDecoder {
    /// Converts a pod from a JSON value. `None` when it is invalid: decode its text for the error.
    pub fn pod(&mut self, values: &Value) -> Option<Pod> {
        self.0.pod(values)
    }

    /// Decodes an object; `None` for kinds that are not watched.
    pub fn decode(&mut self, kind: Kind, json: &str) -> Result<Option<Object>, ObjectError> {
        self.0.add(kind, 0, json)?;
        Ok(self.0.take_last(kind))
    }
}
