//! Objects decoded one by one by whoever keeps them himself, as the embedded cluster does.

use serde_json::Value;

use super::{Gathered, Object, ObjectError};
use crate::cluster::Kind;

/// Reads objects as those of a live cluster are read, and keeps one copy of each text in them.
#[derive(Debug, Default)]
pub(crate) struct SlimDecoder(Gathered);

impl SlimDecoder {
    /// The slim view of an object, which is at hand as values and as their text; `None` for kinds
    /// that are not watched.
    ///
    /// Pods, of which there are most, are read from their values: most of a text is passed over, and
    /// has to be looked at for that.
    pub(crate) fn decode(
        &mut self,
        kind: Kind,
        values: &Value,
        json: &str,
    ) -> Result<Option<Object>, ObjectError> {
        if kind == Kind::Pod
            && let Some(pod) = self.0.pod(values)
        {
            return Ok(Some(Object::Pod(pod)));
        }
        self.0.add(kind, 0, json)?;
        Ok(self.0.take_last(kind))
    }
}
