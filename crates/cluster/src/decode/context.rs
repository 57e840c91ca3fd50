//! What the decoders of all kinds share: the state of a list, and why an object fails.

use jiff::Timestamp;

use super::lenient;
use super::protobuf::Malformed;
use daemonset::model::Interner;

/// Why an object could not be decoded, without its name.
pub(super) enum Cause {
    /// The JSON does not match the kind.
    Shape,
    /// A required field is missing.
    Missing(&'static str),
    /// The text in a field cannot be parsed: the field's path, and the cause.
    Inside(&'static str, String),
    /// The protobuf message is not one.
    Malformed(Malformed),
}

impl From<serde_json::Error> for Cause {
    /// Drops the error: the slow path decodes again to find the path for the message.
    fn from(_: serde_json::Error) -> Self {
        Self::Shape
    }
}

impl From<Malformed> for Cause {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

/// State that is shared by the decoding of several objects.
pub(super) struct Context<'c> {
    pub(super) interner: &'c mut Interner,
    pub(super) newest: &'c mut Option<Timestamp>,
}

impl Context<'_> {
    /// Records a past time in an object. A recording was made at the newest one or later.
    pub(super) fn saw(&mut self, moment: impl Into<Option<Timestamp>>) {
        *self.newest = (*self.newest).max(moment.into().filter(lenient::is_plausible));
    }
}
