//! A violation of a rule, in the API server's words (upstream: `field.Error`).
//!
//! The invalid value is kept apart from the rest of the text, so that a caller can hide it.

use std::fmt;

/// A field that the API server would reject, with the reason. Its `Display` is upstream's text:
/// `spec.template.spec.containers[0].name: Required value`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldError {
    /// Path as upstream reports it, quirks included: some paths do not have an index or a map's
    /// key.
    pub path: String,
    /// Type of the error.
    pub kind: ErrorKind,
    /// The value as upstream prints it: quoted text, a number, or JSON. `None` if upstream prints
    /// none for this type of error, or after [`FieldError::without_value`].
    pub value: Option<String>,
    /// Detailed reason; empty if the type of the error is sufficient.
    pub detail: String,
    /// Origin of the rule.
    pub refused_by: RefusedBy,
}

/// The type of a field error (upstream: `field.ErrorType`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ErrorKind {
    /// The field is missing or empty.
    Required,
    /// The value is malformed, or contradicts another field.
    Invalid,
    /// The value is not one of the supported values.
    NotSupported,
    /// The field is not allowed here.
    Forbidden,
    /// The value must be unique and is not.
    Duplicate,
    /// The referenced object does not exist.
    NotFound,
    /// The string has too many bytes.
    TooLong,
    /// The list has too many items.
    TooMany,
}

/// The origin of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RefusedBy {
    /// The API server rejects the field on create.
    ApiServer,
    /// Only `ds-plan` rejects it: the API server accepts it on create and fails on it later.
    DsPlan,
}

impl ErrorKind {
    /// The reason in the causes of a `Status` (upstream: `metav1.CauseType`).
    pub fn reason(self) -> &'static str {
        match self {
            Self::Required => "FieldValueRequired",
            Self::Invalid => "FieldValueInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::Duplicate => "FieldValueDuplicate",
            Self::NotFound => "FieldValueNotFound",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Required => "Required value",
            Self::Invalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::Duplicate => "Duplicate value",
            Self::NotFound => "Not found",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        })
    }
}

impl FieldError {
    /// The error without the path (upstream: `ErrorBody`): the message of a `Status` cause.
    pub fn body(&self) -> String {
        let Self { path: _, kind, value, detail, refused_by: _ } = self;
        let mut body = kind.to_string();
        for part in value.iter().chain((!detail.is_empty()).then_some(detail)) {
            body.push_str(": ");
            body.push_str(part);
        }
        body
    }

    /// The same error without its value, for fields whose values must not be shown.
    #[must_use]
    pub fn without_value(&self) -> Self {
        Self { value: None, ..self.clone() }
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.body())
    }
}

impl std::error::Error for FieldError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_upstreams_and_the_value_can_be_removed() {
        for (kind, value, detail, text, masked) in [
            (ErrorKind::Required, None, "", "a.b: Required value", "a.b: Required value"),
            (ErrorKind::Forbidden, None, "why", "a.b: Forbidden: why", "a.b: Forbidden: why"),
            (
                ErrorKind::Invalid,
                Some("\"x\""),
                "why",
                "a.b: Invalid value: \"x\": why",
                "a.b: Invalid value: why",
            ),
            (
                ErrorKind::Duplicate,
                Some("\"x\""),
                "",
                "a.b: Duplicate value: \"x\"",
                "a.b: Duplicate value",
            ),
            (ErrorKind::NotFound, Some("\"x\""), "", "a.b: Not found: \"x\"", "a.b: Not found"),
        ] {
            let error = FieldError {
                path: "a.b".to_owned(),
                kind,
                value: value.map(str::to_owned),
                detail: detail.to_owned(),
                refused_by: RefusedBy::ApiServer,
            };
            assert_eq!(error.to_string(), text);
            assert_eq!(error.without_value().to_string(), masked);
        }
    }
}
