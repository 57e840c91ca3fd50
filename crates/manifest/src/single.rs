//! Reads a file with exactly one YAML or JSON document, as kubectl parses it. For files that are
//! not manifests, such as a kustomization.

use serde_json::Value;

use super::documents::{self, Rejected};
use super::encoding;
use super::yaml::{self, Tree, YamlProblem};

/// The reason why a file does not contain exactly one document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct NotOneDocument {
    line: usize,
    problem: String,
}

/// The only document in `bytes`. Duplicate keys are an error, because parsers treat them
/// differently.
///
/// # Errors
/// The bytes are not valid text or YAML, contain no document or more than one, or aliases expand to
/// more than the limit.
pub fn single_document(bytes: &[u8]) -> Result<Value, NotOneDocument> {
    let not_one = |line: usize, problem: String| NotOneDocument { line, problem };
    let text = encoding::decode(bytes)
        .map_err(|(at, _)| not_one(at.line, "not valid UTF-8 or UTF-16".to_owned()))?;
    let mut found = None;
    let mut alias_weight = 0;
    for document in documents::split(&text) {
        let document =
            document.map_err(|Rejected { at, why }| not_one(at.line, why.to_string()))?;
        let tree = yaml::parse(&document, &mut alias_weight).map_err(|error| {
            not_one(
                error.at.line,
                match error.problem {
                    YamlProblem::Syntax(message) => message,
                    YamlProblem::Limit(_) => {
                        "nested too deeply, or aliases expand to more than the limit".to_owned()
                    }
                },
            )
        })?;
        let Some(Tree { root, duplicates }) = tree else { continue };
        if let Some(twice) = duplicates.first() {
            return Err(not_one(twice.at.line, format!("`{}` is given twice", twice.key)));
        }
        if found.is_some() {
            return Err(not_one(document.start.line, "a second document".to_owned()));
        }
        found = Some(root.to_value());
    }
    found.ok_or_else(|| not_one(1, "the document is empty".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_document_or_an_error() {
        let read = |text: &str| single_document(text.as_bytes()).map_err(|e| e.to_string());
        assert_eq!(read("---\n# x\na: [yes, *b]\n").map_err(|_| ()), Err(()));
        assert_eq!(read("# x\n---\na: [yes, 012]\n"), Ok(serde_json::json!({"a": [true, 10]})));
        for (text, want) in [
            ("", "line 1: the document is empty"),
            ("a: 1\n---\nb: 2\n", "line 3: a second document"),
            ("a: 1\nb: 2\na: 3\n", "line 3: `a` is given twice"),
            ("a: 1\n--- b\n", "line 2: only a comment may follow `---` on its line"),
        ] {
            assert_eq!(read(text), Err(want.to_owned()), "{text}");
        }
    }
}
