//! Decodes bytes to text as kubectl does (upstream: `unicode.BOMOverride` in `FileVisitor`): UTF-8,
//! or UTF-16 with a byte order mark. Other bytes are an error here; kubectl would replace them.

use std::borrow::Cow;

use super::error::EncodingProblem;
use super::tree::Mark;

/// The text of a file, without its byte order mark.
pub(super) fn decode(bytes: &[u8]) -> Result<Cow<'_, str>, (Mark, EncodingProblem)> {
    match bytes {
        [0xFF, 0xFE, text @ ..] => utf16(text, u16::from_le_bytes),
        [0xFE, 0xFF, text @ ..] => utf16(text, u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, text @ ..] | text => utf8(text),
    }
}

fn utf8(bytes: &[u8]) -> Result<Cow<'_, str>, (Mark, EncodingProblem)> {
    std::str::from_utf8(bytes).map(Cow::Borrowed).map_err(|error| {
        let valid = String::from_utf8_lossy(&bytes[..error.valid_up_to()]);
        (end_of(&valid), EncodingProblem::NotUtf8)
    })
}

fn utf16(
    bytes: &[u8],
    read: fn([u8; 2]) -> u16,
) -> Result<Cow<'static, str>, (Mark, EncodingProblem)> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let units = pairs.iter().map(|pair| read(*pair));
    let mut text = String::with_capacity(bytes.len());
    for character in char::decode_utf16(units) {
        match character {
            Ok(character) => text.push(character),
            Err(_) => return Err((end_of(&text), EncodingProblem::NotUtf16)),
        }
    }
    if rest.is_empty() { Ok(text.into()) } else { Err((end_of(&text), EncodingProblem::NotUtf16)) }
}

/// The position right after `text`.
fn end_of(text: &str) -> Mark {
    let line = text.matches('\n').count() + 1;
    let last = text.rsplit('\n').next().unwrap_or_default();
    Mark { line, column: last.chars().count() + 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_in_three_encodings() {
        for (name, bytes, want) in [
            ("plain", &b"a: \xC3\xA9"[..], "a: é"),
            ("with a mark", b"\xEF\xBB\xBFa: 1", "a: 1"),
            ("UTF-16, little end first", b"\xFF\xFEa\0:\0\x3D\xD8\x00\xDE", "a:\u{1F600}"),
            ("UTF-16, big end first", b"\xFE\xFF\0a\0:", "a:"),
            ("nothing", b"", ""),
        ] {
            assert_eq!(decode(bytes).unwrap(), want, "{name}");
        }
    }

    #[test]
    fn other_bytes_are_an_error_with_its_place() {
        let mark = |line, column| Mark { line, column };
        for (bytes, want) in [
            (&b"a: 1\nb: \xE9t\xE9"[..], (mark(2, 4), EncodingProblem::NotUtf8)),
            (b"\xFF\xFEa\0\x3D\xD8a\0", (mark(1, 2), EncodingProblem::NotUtf16)),
            (b"\xFF\xFEa\0b", (mark(1, 2), EncodingProblem::NotUtf16)),
        ] {
            assert_eq!(decode(bytes), Err(want), "{bytes:?}");
        }
    }
}
