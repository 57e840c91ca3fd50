//! Splits a file's text into documents as kubectl does (upstream: `YAMLOrJSONDecoder`,
//! `YAMLReader`): consecutive JSON objects first, then YAML documents between lines that begin with
//! `---`. The first two objects may be JSON that only YAML takes, such as one with a trailing comma. Not here: parsing a document (`yaml`).

use serde::de::IgnoredAny;

use super::tree::Mark;

/// The text of one document, and its position in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Document<'t> {
    pub(super) text: &'t str,
    pub(super) start: Mark,
    /// `true` for a JSON document.
    pub(super) is_json: bool,
}

/// A part of a file that kubectl rejects, although it may be YAML.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rejected {
    pub(super) at: Mark,
    pub(super) why: Rejection,
}

/// The reason why kubectl rejects a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Rejection {
    /// A separator line with text after `---`.
    #[error("only a comment may follow `---` on its line")]
    Separator,
    /// Anything else than JSON after several JSON objects.
    #[error("not a JSON object; after two JSON objects, kubectl reads nothing else")]
    AfterJson,
}

/// The documents of `text`, in order, including empty ones.
pub(super) fn split(text: &str) -> Vec<Result<Document<'_>, Rejected>> {
    let (mut documents, rest) = json_objects(text);
    let blank = rest.text.len() - rest.text.trim_start().len();
    if documents.len() > 1 && blank < rest.text.len() {
        documents.push(Err(Rejected { at: rest.mark_at(blank), why: Rejection::AfterJson }));
    } else {
        split_yaml(rest, &mut documents);
    }
    documents
}

/// The JSON objects at the beginning, and the rest of the text.
fn json_objects(text: &str) -> (Vec<Result<Document<'_>, Rejected>>, Document<'_>) {
    let start = Mark { line: 1, column: 1 };
    let mut rest = Document { text, start, is_json: false };
    let mut objects = Vec::new();
    if !text.trim_start().starts_with('{') {
        return (objects, rest);
    }
    let mut stream = serde_json::Deserializer::from_str(text).into_iter::<IgnoredAny>();
    let mut consumed = 0;
    while let Some(Ok(_)) = stream.next() {
        let (object, after) = rest.split_at(stream.byte_offset() - consumed);
        consumed = stream.byte_offset();
        objects.push(Ok(Document { is_json: true, ..object }));
        rest = after;
    }
    (objects, rest)
}

fn split_yaml<'t>(whole: Document<'t>, documents: &mut Vec<Result<Document<'t>, Rejected>>) {
    let mut rest = whole;
    let mut at = 0;
    for line in whole.text.split_inclusive('\n') {
        let Some(after) = line.strip_prefix("---") else {
            at += line.len();
            continue;
        };
        let (document, separator) = rest.split_at(at);
        let (_, next) = separator.split_at(line.len());
        documents.push(Ok(document));
        let after = after.trim();
        if !after.is_empty() && !after.starts_with('#') {
            documents.push(Err(Rejected { at: separator.start, why: Rejection::Separator }));
        }
        (rest, at) = (next, 0);
    }
    documents.push(Ok(rest));
}

impl Document<'_> {
    fn split_at(self, at: usize) -> (Self, Self) {
        let (text, rest) = self.text.split_at(at);
        let start = self.mark_at(at);
        (Self { text, ..self }, Self { text: rest, start, is_json: false })
    }

    /// The position in the file of the byte `at` of the text.
    pub(super) fn mark_at(&self, at: usize) -> Mark {
        let before = &self.text[..at];
        match before.rsplit_once('\n') {
            Some((_, last)) => Mark {
                line: self.start.line + before.matches('\n').count(),
                column: last.chars().count() + 1,
            },
            None => {
                Mark { line: self.start.line, column: self.start.column + before.chars().count() }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str) -> Vec<String> {
        split(text)
            .into_iter()
            .map(|part| match part {
                Ok(document) => {
                    let Mark { line, column } = document.start;
                    format!("{line}:{column} {}", document.text.trim())
                }
                Err(Rejected { at, why: Rejection::Separator }) => {
                    format!("{}:{} bad separator", at.line, at.column)
                }
                Err(Rejected { at, why: Rejection::AfterJson }) => {
                    format!("{}:{} after JSON", at.line, at.column)
                }
            })
            .collect()
    }

    #[test]
    fn files_are_split_as_kubectl_splits_them() {
        for (name, text, want) in [
            ("one", "a: 1\n", &["1:1 a: 1"][..]),
            ("two", "a: 1\n---\nb: 2\n", &["1:1 a: 1", "3:1 b: 2"]),
            ("comment on the line", "--- # x\na: 1", &["1:1 ", "2:1 a: 1"]),
            ("windows", "a: 1\r\n---\r\nb: 2", &["1:1 a: 1", "3:1 b: 2"]),
            ("indented is text", "a: |\n  ---\n", &["1:1 a: |\n  ---"]),
            ("more on the line", "--- {a: 1}\n", &["1:1 ", "1:1 bad separator", "2:1 "]),
            ("longer line", "a: 1\n----\n", &["1:1 a: 1", "2:1 bad separator", "3:1 "]),
            (
                "JSON objects",
                "{}\n {\"a\":\n1} {}",
                &["1:1 {}", "1:3 {\"a\":\n1}", "3:3 {}", "3:6 "],
            ),
            ("JSON, then YAML", "{}\n---\na: 1", &["1:1 {}", "1:3 ", "3:1 a: 1"]),
            ("an object that only YAML takes", "{}\n{a: 1}\n", &["1:1 {}", "1:3 {a: 1}"]),
            ("a third one", "{}\n{}\n {a: 1}\n", &["1:1 {}", "1:3 {}", "3:2 after JSON"]),
            ("YAML after two", "{} {}\n---\na: 1", &["1:1 {}", "1:3 {}", "2:1 after JSON"]),
            ("flow YAML is not JSON", "{a: 1}\n", &["1:1 {a: 1}"]),
        ] {
            assert_eq!(parts(text), want, "{name}");
        }
    }
}
