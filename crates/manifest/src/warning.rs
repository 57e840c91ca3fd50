//! Warnings about manifests and their messages.

use std::fmt;

use daemonset::model::Place;

/// One warning about a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Warning {
    /// A duplicate key of a mapping; the last value is used, as with kubectl.
    DuplicateKey {
        /// Position of the later key, whose value is used.
        place: Place,
        /// The key.
        key: String,
        /// Line of the earlier one.
        first_line: usize,
    },
    /// A field that the API does not have was dropped (with [`FieldValidation::Warn`]).
    ///
    /// [`FieldValidation::Warn`]: super::FieldValidation::Warn
    UnknownField {
        /// Position of the field.
        place: Place,
        /// Path of the field, and a suggestion.
        field: UnknownField,
    },
    /// The API server accepts the field with a warning, or `ds-plan` does not check it.
    Field {
        /// Position of the field, or of its nearest parent.
        place: Place,
        /// The warning.
        warning: FieldWarning,
    },
    /// Fields that only the server writes were ignored.
    ServerFields {
        /// Position of the object.
        place: Place,
        /// Paths of the fields.
        fields: Vec<String>,
    },
    /// A document that is not a Kubernetes object was skipped.
    NotAnObject {
        /// Position of the document.
        place: Place,
    },
}

/// A field that is accepted with a warning. Its `Display` is the warning, in the server's words if
/// it is the server's.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldWarning {
    /// Path of the field.
    pub path: String,
    /// Text of the warning.
    pub message: String,
}

impl fmt::Display for FieldWarning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)
    }
}

/// A field that the API does not have, and a suggestion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// Path of the field, such as `spec.template.spec.containers[0].imagePullPolice`.
    pub path: String,
    /// The suggestion.
    pub hint: Option<FieldHint>,
}

/// A suggestion for an unknown field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldHint {
    /// A field of the same struct with a similar name.
    Nearest {
        /// Name of that field.
        name: String,
    },
    /// The field is a directive of a strategic merge patch (`$patch`, `$retainKeys`, …), so the
    /// document is a patch and not a complete object.
    PatchDirective,
    /// The field exists at another depth.
    Elsewhere {
        /// Path of the known field.
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
                f.write_str("; it belongs in a patch, not in a complete object")
            }
            None => Ok(()),
        }
    }
}

impl Warning {
    /// A stable name in camel case, for scripts.
    pub fn code(&self) -> &'static str {
        match self {
            Self::DuplicateKey { .. } => "duplicateKey",
            Self::UnknownField { .. } => "unknownField",
            Self::Field { .. } => "fieldWarning",
            Self::ServerFields { .. } => "serverFields",
            Self::NotAnObject { .. } => "notAnObject",
        }
    }

    /// Position of the warning.
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
                "{place}: key `{key}` is already on line {first_line}; this later value is used"
            ),
            Self::UnknownField { place, field } => write!(f, "{place}: {field}; it is dropped"),
            Self::Field { place, warning } => write!(f, "{place}: {warning}"),
            Self::ServerFields { place, fields } => write!(
                f,
                "{place}: {} written by the server and ignored",
                match fields.as_slice() {
                    [one] => format!("`{one}` is"),
                    many => format!("`{}` are", many.join("`, `")),
                }
            ),
            Self::NotAnObject { place } => {
                write!(f, "{place}: a document that is not a Kubernetes object is skipped")
            }
        }
    }
}
