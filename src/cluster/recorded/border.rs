//! Where an object ends in JSON text: what one thread has to find out so that others can decode.
//!
//! Only strings and brackets are looked at. Whether the text is JSON at all is for the decoder.

use memchr::memchr2;

/// The way through one object, whose text may come in pieces. Begins at its `{`.
#[derive(Debug, Default)]
pub(super) struct Border {
    depth: usize,
    within: Within,
}

#[derive(Debug, Default)]
enum Within {
    #[default]
    Structure,
    String,
    /// After a backslash.
    Escape,
}

impl Border {
    /// Goes on through `bytes`: where the object ends in them, or `None` when it does not.
    pub(super) fn end_in(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            match self.within {
                Within::Escape => {
                    at += 1;
                    self.within = Within::String;
                }
                Within::String => {
                    at += memchr2(b'"', b'\\', &bytes[at..])? + 1;
                    self.within =
                        if bytes[at - 1] == b'"' { Within::Structure } else { Within::Escape };
                }
                Within::Structure => {
                    at += self.structure(&bytes[at..]);
                    if self.depth == 0 {
                        return Some(at);
                    }
                }
            }
        }
        None
    }

    /// Goes on to the next string, or to the end of the object: how many bytes that are.
    fn structure(&mut self, bytes: &[u8]) -> usize {
        for (at, byte) in bytes.iter().enumerate() {
            match byte {
                b'"' => {
                    self.within = Within::String;
                    return at + 1;
                }
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth -= 1;
                    if self.depth == 0 {
                        return at + 1;
                    }
                }
                _ => {}
            }
        }
        bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn strings_hide_brackets() {
        for (text, want) in [
            ("{}", Some(2)),
            ("{},{}", Some(2)),
            (r#"{"a":[{"b":"}]"}]} "#, Some(18)),
            (r#"{"a":"\"}"}"#, Some(11)),
            (r#"{"a":"\\"}"#, Some(10)),
            (r#"{"a":"\\\"}"#, None),
            (r#"{"a":[1,2"#, None),
            ("{", None),
            // Told by the decoder, which finds it at the same byte.
            (r#"{"a":1]"#, Some(7)),
        ] {
            assert_eq!(Border::default().end_in(text.as_bytes()), want, "{text}");
        }
    }

    proptest! {
        #[test]
        fn pieces_make_no_difference(
            text in r#"[\{\}\[\]"\\a]{0,20}"#,
            cuts in prop::collection::vec(0..22_usize, 0..4),
        ) {
            let text = format!("{{{text}");
            let whole = Border::default().end_in(text.as_bytes());
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let mut border = Border::default();
            let in_pieces = cuts.windows(2).find_map(|piece| {
                let end = border.end_in(&text.as_bytes()[piece[0]..piece[1]])?;
                Some(piece[0] + end)
            });
            prop_assert_eq!(in_pieces, whole);
        }
    }
}
