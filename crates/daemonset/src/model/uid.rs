//! The identity of an object, small: a cluster has hundreds of thousands.

use std::fmt;
use std::num::NonZeroU64;

use arcstr::ArcStr;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// `metadata.uid`: an object's identity, never used again after it is deleted.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema)]
#[schemars(transparent)]
pub struct Uid(#[schemars(with = "String")] Form);

/// Each text has one form only, so that equal texts are equal. In order, UUIDs come before other texts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Form {
    /// A UUID in the form in which API servers write it. Its second half is never zero, not even by
    /// chance: there is its variant. So the other form takes no byte of its own.
    Uuid(u64, NonZeroU64),
    /// Any other text.
    Text(ArcStr),
}

impl Uid {
    /// Whether it is empty, as in a malformed object.
    pub fn is_empty(&self) -> bool {
        self.with_text(str::is_empty)
    }

    /// Calls `read` with its text.
    pub fn with_text<R>(&self, read: impl FnOnce(&str) -> R) -> R {
        match &self.0 {
            Form::Uuid(high, low) => {
                let uuid = Uuid::from_u64_pair(*high, low.get());
                read(uuid.hyphenated().encode_lower(&mut [0; Hyphenated::LENGTH]))
            }
            Form::Text(text) => read(text),
        }
    }
}

impl From<&str> for Uid {
    fn from(text: &str) -> Self {
        let uuid = Uuid::try_parse_ascii(text.as_bytes()).ok().and_then(|uuid| {
            let (high, low) = uuid.as_u64_pair();
            NonZeroU64::new(low).map(|low| Self(Form::Uuid(high, low)))
        });
        // Other forms of a UUID, such as with capital letters, are other texts.
        uuid.filter(|uid| uid == text).unwrap_or_else(|| Self(Form::Text(text.into())))
    }
}

impl From<String> for Uid {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl PartialEq<str> for Uid {
    fn eq(&self, other: &str) -> bool {
        self.with_text(|text| text == other)
    }
}

impl PartialEq<&str> for Uid {
    fn eq(&self, other: &&str) -> bool {
        self == *other
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_text(|text| f.pad(text))
    }
}

impl fmt::Debug for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.with_text(|text| fmt::Debug::fmt(text, f))
    }
}

impl Serialize for Uid {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.with_text(|text| serializer.serialize_str(text))
    }
}

impl<'de> Deserialize<'de> for Uid {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_is_its_text_whatever_its_form() {
        let uuid = "0b9e6d1c-6f43-4c38-a57c-51f4c7a4e3b2";
        let no_variant = "0b9e6d1c-6f43-4c38-0000-000000000000";
        let forms = [uuid, &uuid.to_uppercase(), &uuid.replace('-', ""), no_variant, "", "u", "é"];
        for text in forms {
            let read = Uid::from(text);
            assert_eq!((read.to_string(), format!("{read:?}")), (text.into(), format!("{text:?}")));
            assert_eq!(matches!(read.0, Form::Uuid(..)), text == uuid, "{text}");
            let json = serde_json::to_string(&read).unwrap();
            assert_eq!(json, serde_json::to_string(text).unwrap());
            assert_eq!(serde_json::from_str::<Uid>(&json).unwrap(), read);
            for other in forms {
                let also = Uid::from(other);
                assert_eq!((read == other, read == also), (text == other, text == other));
            }
        }
        assert!(Uid::from("").is_empty() && !Uid::from(uuid).is_empty());
        assert_eq!(size_of::<Uid>(), 16);
    }
}
