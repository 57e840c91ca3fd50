//! Lines and columns in a recording, whose text is parsed in pieces.

use crate::decode::reason_alone;

/// The position of a byte in the file: line and column, both from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Place {
    /// The file's first byte.
    pub(super) const START: Self = Self { line: 1, column: 1 };

    /// The position after this many line breaks, and this many bytes after the last of them.
    pub(super) fn further(self, breaks: usize, bytes: usize) -> Self {
        match breaks {
            0 => Self { column: self.column + bytes, ..self },
            _ => Self { line: self.line + breaks, column: bytes + 1 },
        }
    }

    /// `reason` with this position, in the format of `serde_json`.
    pub(super) fn message(self, reason: &str) -> String {
        format!("{reason} at line {} column {}", self.line, self.column)
    }

    /// The message of an error in a text that begins here, with its position in the file.
    pub(super) fn of_error(self, error: &serde_json::Error) -> String {
        let within = Self { line: error.line(), column: error.column() };
        let place = if within.line == 1 {
            Self { column: self.column - 1 + within.column, ..self }
        } else {
            Self { line: self.line + within.line - 1, ..within }
        };
        place.message(&reason_alone(error))
    }
}
