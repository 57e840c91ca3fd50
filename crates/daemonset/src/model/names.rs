//! Names as types, so that names of nodes and pods cannot be confused. Clones share the text.

use std::borrow::Borrow;
use std::fmt;

use arcstr::ArcStr;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(
            Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(#[schemars(with = "String")] ArcStr);

        impl $name {
            /// The text of the name.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Whether the name is empty, as in a malformed object.
            pub fn is_empty(&self) -> bool {
                self.0.is_empty()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl From<ArcStr> for $name {
            fn from(text: ArcStr) -> Self {
                Self(text)
            }
        }

        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                &self.0
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl PartialEq<str> for $name {
            fn eq(&self, other: &str) -> bool {
                &*self.0 == other
            }
        }

        impl PartialEq<&str> for $name {
            fn eq(&self, other: &&str) -> bool {
                &*self.0 == *other
            }
        }
    };
}

name_type!(
    /// `metadata.name` of a node.
    NodeName
);
name_type!(
    /// `metadata.name` of a namespace.
    NamespaceName
);
name_type!(
    /// `metadata.name` of a pod, unique in its namespace at one moment.
    PodName
);
name_type!(
    /// `metadata.name` of a `DaemonSet`, unique in its namespace.
    DaemonSetName
);
name_type!(
    /// `metadata.name` of a `ControllerRevision`.
    RevisionName
);
name_type!(
    /// Value of the label `controller-revision-hash`, which identifies a pod's template.
    RevisionHash
);
