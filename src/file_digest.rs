//! The SHA-256 of a file, which identifies an approved plan.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// The optional prefix of a digest.
const PREFIX: &str = "sha256:";

/// Number of hexadecimal digits of a SHA-256.
const DIGITS: usize = 64;

/// A SHA-256 as 64 hexadecimal digits in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileDigest(String);

impl FileDigest {
    /// The digest of a file with this content.
    pub(super) fn of(content: &[u8]) -> Self {
        let digits = Sha256::digest(content).iter().fold(String::new(), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        });
        Self(digits)
    }
}

impl FromStr for FileDigest {
    type Err = &'static str;

    /// Parses a digest with or without the prefix `sha256:`, in upper or lower case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.strip_prefix(PREFIX).unwrap_or(text);
        if digits.len() != DIGITS || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err("a SHA-256 has 64 hexadecimal digits");
        }
        Ok(Self(digits.to_ascii_lowercase()))
    }
}

impl fmt::Display for FileDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_read_as_they_are_printed() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let digest = FileDigest::of(b"");
        assert_eq!(digest.to_string(), format!("sha256:{empty}"));
        for text in [empty.to_owned(), empty.to_uppercase(), digest.to_string()] {
            assert_eq!(text.parse(), Ok(digest.clone()), "{text}");
        }
        for text in ["", "sha256:", &empty[1..], &format!("{empty}0"), &empty.replace('e', "g")] {
            assert!(text.parse::<FileDigest>().is_err(), "{text}");
        }
    }
}
