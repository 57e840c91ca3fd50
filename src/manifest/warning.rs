//! What deserves a look in a manifest but is no error. The only place with the words for it.

use std::fmt;

use crate::model::Place;

use super::validate::FieldWarning;

/// One warning about a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// A mapping has a key twice; the last value counts, as with kubectl.
    DuplicateKey {
        /// The later key, which counts.
        place: Place,
        /// The key.
        key: String,
        /// Line of the earlier one.
        first_line: usize,
    },
    /// A field that the API does not know was dropped (under [`FieldValidation::Warn`]).
    ///
    /// [`FieldValidation::Warn`]: super::FieldValidation::Warn
    UnknownField {
        /// Where it stands.
        place: Place,
        /// Its path, and what it may have meant.
        field: UnknownField,
    },
    /// The API server takes it, and warns about it.
    Field {
        /// Where the field stands, or its nearest parent.
        place: Place,
        /// In the server's words.
        warning: FieldWarning,
    },
    /// Fields that the server writes itself were left out of the object.
    ServerFields {
        /// Where the object begins.
        place: Place,
        /// Their paths.
        fields: Vec<String>,
    },
    /// A document without `apiVersion` and `kind`, passed over.
    NotAnObject {
        /// Where it begins.
        place: Place,
    },
}

/// A field that the API does not know, and the one that was probably meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// Its path, such as `spec.template.spec.containers[0].imagePullPolice`.
    pub path: String,
    /// What may have been meant.
    pub hint: Option<FieldHint>,
}

/// What an unknown field may have meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldHint {
    /// A field of the same struct with a name like it.
    Nearest {
        /// That name.
        name: String,
    },
    /// It is a directive of a strategic merge patch (`$patch`, `$retainKeys`, …), so the document
    /// is a patch and no whole object.
    PatchDirective,
    /// The field exists, but at another depth.
    Elsewhere {
        /// Path at which it would be known.
        path: String,
    },
}

impl fmt::Display for UnknownField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "unknown field `{}`", self.path)?;
        match &self.hint {
            Some(FieldHint::Nearest { name }) => write!(f, "; did you mean `{name}`?"),
            Some(FieldHint::Elsewhere { path }) => write!(f, "; it belongs at `{path}`"),
            Some(FieldHint::PatchDirective) => {
                f.write_str("; it belongs in a patch, not in a whole object")
            }
            None => Ok(()),
        }
    }
}

impl Warning {
    /// A short stable name, for scripts; in camel case, as all names in a plan.
    pub fn code(&self) -> &'static str {
        match self {
            Self::DuplicateKey { .. } => "duplicateKey",
            Self::UnknownField { .. } => "unknownField",
            Self::Field { .. } => "fieldWarning",
            Self::ServerFields { .. } => "serverFields",
            Self::NotAnObject { .. } => "notAnObject",
        }
    }

    /// Where it is.
    pub fn place(&self) -> &Place {
        match self {
            Self::DuplicateKey { place, .. }
            | Self::UnknownField { place, .. }
            | Self::Field { place, .. }
            | Self::ServerFields { place, .. }
            | Self::NotAnObject { place } => place,
        }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DuplicateKey { place, key, first_line } => write!(
                f,
                "{place}: key `{key}` is already on line {first_line}; this later value counts"
            ),
            Self::UnknownField { place, field } => write!(f, "{place}: {field}; it is dropped"),
            Self::Field { place, warning } => write!(f, "{place}: {warning}"),
            Self::ServerFields { place, fields } => write!(
                f,
                "{place}: {} written by the server and left out",
                match fields.as_slice() {
                    [one] => format!("`{one}` is"),
                    many => format!("`{}` are", many.join("`, `")),
                }
            ),
            Self::NotAnObject { place } => {
                write!(f, "{place}: a document without apiVersion and kind is passed over")
            }
        }
    }
}
