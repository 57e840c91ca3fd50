//! Parses one YAML or JSON document to a tree, as kubectl does.
//!
//! Follows go-yaml v2 (upstream: `decoder.mapping`, `merge`, `alias`): the last of duplicate keys
//! is used, merge keys apply in the order in which they are written, keys become strings. Works on
//! the parser's events, because positions, duplicates and YAML 1.1 scalars are lost in higher
//! layers. Not here: splitting a file into documents (`documents`), resolving scalars (`scalar`).
//!
//! Manifests have to mean what they mean to kubectl, which reads YAML 1.1 through go-yaml v2. The
//! events come from `granit-parser`, the parser below `serde-saphyr`. The table of scalars was
//! generated with kubectl, and a test with the real kubectl generates it again.
//!
//! `serde-saphyr` reads recordings and writes `-o yaml`. `serde_yaml` would be the obvious choice,
//! but it is no longer maintained, reads YAML 1.2, and leaves `yes`, `on` or `1_000` unquoted,
//! which kubectl reads as something else. The tests use it as a second, independent parser: both
//! parsers and kubectl must agree on everything that is written here.

mod error;
mod line_ends;
mod merge_key;
mod tabs;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use granit_parser::{Event, Options, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};

use super::documents::Document;
use super::error::{Limit, MAX_ALIAS_WEIGHT, MAX_NESTING};
use super::scalar::{self, Scalar, ScalarError};
use super::tree::{Data, Entry, Mark, Node};
pub(super) use error::{YamlError, YamlProblem};

use error::syntax;
use line_ends::LineEnds;
use merge_key::{is_merge_key, merge};
use tabs::Tabs;

/// Maximum length of a mapping key in JSON, which has no limit itself; YAML's is 1024.
const MAX_JSON_KEY: usize = 64 << 10;
/// Limit of the bytes of one document that are parsed again because of quoted scalars.
const MAX_REREAD: usize = 32 << 20;
/// An indentation deeper than that of any line, in spaces.
const DEEP: usize = 256;

/// A parsed document.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) root: Rc<Node>,
    pub(super) duplicates: Vec<DuplicateKey>,
}

/// A duplicate key of one mapping.
#[derive(Debug)]
pub(super) struct DuplicateKey {
    pub(super) key: String,
    pub(super) at: Mark,
    pub(super) first: Mark,
}

/// Parses one document; `None` if it is empty. `alias_weight` is the expanded size of aliases in
/// this file so far.
///
/// The parser requires that continuation lines of quoted scalars are indented with spaces; go-yaml
/// does not, and real manifests (scripts in double quotes) depend on it. Leading blanks of such a
/// line are ignored, so each line that the parser rejects is indented and parsed again.
pub(super) fn parse(
    document: &Document<'_>,
    alias_weight: &mut usize,
) -> Result<Option<Tree>, YamlError> {
    let mut text = Cow::Borrowed(document.text);
    let (mut budget, mut last_line) = (MAX_REREAD, 0);
    loop {
        let mut weight = *alias_weight;
        let Failure { error, quoted_line } = match read(document, &text, &mut weight) {
            Ok(tree) => {
                *alias_weight = weight;
                return Ok(tree);
            }
            Err(failure) => failure,
        };
        let line = quoted_line.filter(|line| !ends_document(&text, *line));
        match line.filter(|line| *line > last_line && text.len() <= budget) {
            None => return Err(error.or_template(document)),
            Some(line) => {
                (budget, last_line) = (budget - text.len(), line);
                text = indent(&text, line).into();
            }
        }
    }
}

/// A parse error; `quoted_line` is set if it is only the indentation of that line (of the text,
/// from 1) inside a quoted scalar.
struct Failure {
    error: YamlError,
    quoted_line: Option<usize>,
}

fn read(
    document: &Document<'_>,
    text: &str,
    alias_weight: &mut usize,
) -> Result<Option<Tree>, Failure> {
    let mut options: Options = Options::default();
    options.set_emit_comments(false);
    if document.is_json {
        options.simple_key_max_lookahead = MAX_JSON_KEY;
    }
    let mut builder = Builder {
        events: Parser::new_from_str_with_options(text, options),
        start: document.start,
        anchors: HashMap::new(),
        alias_weight,
        duplicates: Vec::new(),
        quoted_line: None,
        line_ends: LineEnds::of(if document.is_json { "" } else { text }),
        tabs: Tabs::of(if document.is_json { "" } else { text }),
    };
    match builder.whole() {
        Ok(root) => {
            let mark_at = |at| Document { text, ..*document }.mark_at(at);
            if let Some((at, character)) = builder.line_ends.disputed(text) {
                return Err(Failure { error: disputed(mark_at(at), character), quoted_line: None });
            }
            if let Some(at) = builder.tabs.rejected() {
                let error = syntax(mark_at(at), "a tab in the indentation; use spaces");
                return Err(Failure { error, quoted_line: None });
            }
            Ok(root.map(|root| Tree { root, duplicates: builder.duplicates }))
        }
        Err(error) => Err(Failure { error, quoted_line: builder.quoted_line }),
    }
}

/// `true` for a line that begins with `...` and a blank, which ends a document even within quotes.
fn ends_document(text: &str, line: usize) -> bool {
    let content = text.lines().nth(line.saturating_sub(1));
    let after = content.and_then(|content| content.strip_prefix("..."));
    after.is_some_and(|after| after.is_empty() || after.starts_with([' ', '\t', '\r']))
}

/// Replaces the indentation of one line of `text` with enough spaces for any depth.
fn indent(text: &str, line: usize) -> String {
    let mut indented = String::with_capacity(text.len() + DEEP);
    for (number, content) in (1..).zip(text.split_inclusive('\n')) {
        if number == line {
            indented.extend(std::iter::repeat_n(' ', DEEP));
            indented.push_str(content.trim_start_matches([' ', '\t']));
        } else {
            indented.push_str(content);
        }
    }
    indented
}

struct Builder<'t, 'w> {
    events: Parser<'t, StrInput<'t>>,
    start: Mark,
    anchors: HashMap<usize, Rc<Node>>,
    alias_weight: &'w mut usize,
    duplicates: Vec<DuplicateKey>,
    /// Set if the parser rejects the indentation of a line inside a quoted scalar.
    quoted_line: Option<usize>,
    line_ends: LineEnds,
    tabs: Tabs<'t>,
}

impl<'t> Builder<'t, '_> {
    /// Parses the only document, and rejects text after it.
    fn whole(&mut self) -> Result<Option<Rc<Node>>, YamlError> {
        let root = self.document()?;
        if root.is_some() {
            self.end()?;
        }
        Ok(root)
    }

    fn next(&mut self) -> Result<(Event<'t>, Span), YamlError> {
        match self.events.next_event() {
            Some(Ok((event, span))) => {
                self.line_ends.note(&event, span);
                self.tabs.note(&event, span);
                Ok((event, span))
            }
            Some(Err(error)) => Err(self.scan_error(&error)),
            None => Err(syntax(self.start, "the document ends unexpectedly")),
        }
    }

    fn mark(&self, marker: &granit_parser::Marker) -> Mark {
        let first_line = marker.line() <= 1;
        Mark {
            line: self.start.line + marker.line().saturating_sub(1),
            column: marker.col() + if first_line { self.start.column } else { 1 },
        }
    }

    fn scan_error(&mut self, error: &ScanError) -> YamlError {
        use granit_parser::ErrorKind::{
            InvalidQuotedScalarIndent, RecursionLimitExceeded, TabInIndentation,
        };
        if matches!(error.kind(), InvalidQuotedScalarIndent | TabInIndentation) {
            self.quoted_line = Some(error.marker().line());
        }
        let at = self.mark(error.marker());
        match error.kind() {
            // The scanner has its own limit, and reads ahead.
            RecursionLimitExceeded => YamlError { at, problem: YamlProblem::Limit(Limit::Nesting) },
            _of_syntax => syntax(at, error.info()),
        }
    }

    /// The root of the first document.
    fn document(&mut self) -> Result<Option<Rc<Node>>, YamlError> {
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(None),
                Event::StreamStart | Event::DocumentStart(..) => {}
                node => return self.node(node, span, 0).map(Some),
            }
        }
    }

    /// Rejects text after the first document: kubectl would drop it silently.
    fn end(&mut self) -> Result<(), YamlError> {
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(()),
                Event::DocumentStart(..) => {
                    let at = self.mark(&span.start);
                    return Err(syntax(
                        at,
                        "a document follows `...` without `---`; kubectl would silently drop it",
                    ));
                }
                _ => {}
            }
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Rc<Node>, YamlError> {
        let at = self.mark(&span.start);
        let (node, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                let value = resolve(text, style, tag.as_deref())
                    .and_then(Scalar::into_value)
                    .map_err(|error| syntax(at, error.to_string()))?;
                (Node::scalar(at, value), anchor)
            }
            Event::SequenceStart(_, anchor, _) => (self.list(at, depth + 1)?, anchor),
            Event::MappingStart(_, anchor, _) => (self.map(at, depth + 1)?, anchor),
            Event::Alias(id) => return self.alias(id, at, depth),
            _ => return Err(syntax(at, "a value is missing here")),
        };
        let node = Rc::new(node);
        if anchor > 0 {
            self.anchors.insert(anchor, Rc::clone(&node));
        }
        Ok(node)
    }

    fn alias(&mut self, id: usize, at: Mark, depth: usize) -> Result<Rc<Node>, YamlError> {
        let Some(node) = self.anchors.get(&id) else {
            return Err(syntax(at, "an anchor's value contains itself"));
        };
        check_depth(depth + node.height, at)?;
        *self.alias_weight = self.alias_weight.saturating_add(node.weight);
        if *self.alias_weight > MAX_ALIAS_WEIGHT {
            return Err(YamlError { at, problem: YamlProblem::Limit(Limit::Aliases) });
        }
        Ok(Rc::clone(node))
    }

    fn list(&mut self, at: Mark, depth: usize) -> Result<Node, YamlError> {
        check_depth(depth, at)?;
        let mut items = Vec::new();
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(Node::list(at, items)),
                (event, span) => items.push(self.node(event, span, depth)?),
            }
        }
    }

    fn map(&mut self, at: Mark, depth: usize) -> Result<Node, YamlError> {
        check_depth(depth, at)?;
        let mut entries = BTreeMap::new();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                return Ok(Node::map(at, entries));
            }
            let key_at = self.mark(&span.start);
            let is_merge = is_merge_key(&event);
            let key = if is_merge { String::new() } else { self.key(event, key_at)? };
            let (event, span) = self.next()?;
            let node = self.node(event, span, depth)?;
            if is_merge {
                merge(&mut entries, &node)?;
                continue;
            }
            let entry = Entry { key_at, node, written_at: Some(key_at) };
            let before = entries.insert(key.clone(), entry);
            if let Some(first) = before.and_then(|before| before.written_at) {
                self.duplicates.push(DuplicateKey { key, at: key_at, first });
            }
        }
    }

    fn key(&mut self, event: Event<'t>, at: Mark) -> Result<String, YamlError> {
        let wrong = || syntax(at, ScalarError::Key.to_string());
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let scalar = resolve(text, style, tag.as_deref())
                    .map_err(|error| syntax(at, error.to_string()))?;
                if anchor > 0 {
                    let value = scalar.clone().into_value();
                    let value = value.map_err(|error| syntax(at, error.to_string()))?;
                    self.anchors.insert(anchor, Rc::new(Node::scalar(at, value)));
                }
                scalar.into_key().map_err(|error| syntax(at, error.to_string()))
            }
            Event::Alias(id) => match &self.alias(id, at, 0)?.data {
                Data::Scalar(serde_json::Value::String(text)) => Ok(text.clone()),
                Data::Scalar(value) if value.is_boolean() || value.is_i64() => {
                    Ok(value.to_string())
                }
                Data::Scalar(_) | Data::List(_) | Data::Map(_) => Err(wrong()),
            },
            Event::MappingStart(..) => Err(syntax(at, "a mapping cannot be a mapping's key")),
            _ => Err(wrong()),
        }
    }
}

fn resolve<'t>(
    text: Cow<'t, str>,
    style: ScalarStyle,
    tag: Option<&Tag>,
) -> Result<Scalar<'t>, ScalarError> {
    scalar::resolve(text, style == ScalarStyle::Plain, tag)
}

fn check_depth(depth: usize, at: Mark) -> Result<(), YamlError> {
    if depth > MAX_NESTING {
        return Err(YamlError { at, problem: YamlProblem::Limit(Limit::Nesting) });
    }
    Ok(())
}

fn disputed(at: Mark, character: char) -> YamlError {
    let code = u32::from(character);
    let message = format!(
        "a raw character U+{code:04X}: YAML parsers do not agree whether it ends the line; \
         write it as an escape in double quotes, or leave it out"
    );
    syntax(at, message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::super::go_number::number_text;
    use super::*;

    fn read(text: &str) -> Result<Value, String> {
        let document = Document { text, start: Mark { line: 1, column: 1 }, is_json: false };
        match parse(&document, &mut 0) {
            Ok(tree) => Ok(tree.map_or(Value::Null, |tree| tree.root.to_value())),
            Err(YamlError { at, problem }) => {
                let message = match problem {
                    YamlProblem::Syntax(message) => message,
                    YamlProblem::Limit(limit) => limit.to_string(),
                };
                Err(format!("{}:{} {message}", at.line, at.column))
            }
        }
    }

    /// The same value with every number as Go formats it.
    fn spelled(value: &Value) -> Value {
        match value {
            Value::Number(number) => match number.as_i64() {
                Some(_) => number.to_string().into(),
                None => {
                    number_text(&serde_json::Number::from_f64(number.as_f64().unwrap()).unwrap())
                        .into()
                }
            },
            Value::Array(items) => items.iter().map(spelled).collect(),
            Value::Object(map) => map.iter().map(|(k, v)| (k.clone(), spelled(v))).collect(),
            other => other.clone(),
        }
    }

    /// `kubectl_reads.json` contains the answers of kubectl; a control-plane test compares them.
    #[test]
    fn yaml_is_parsed_as_kubectl_does() {
        let rows: Vec<Value> = serde_json::from_str(include_str!("kubectl_reads.json")).unwrap();
        assert!(rows.len() > 60);
        let mut wrong = Vec::new();
        for row in &rows {
            let yaml = row["yaml"].as_str().unwrap();
            match (read(yaml), row.get("json")) {
                (Ok(value), Some(want)) if spelled(&value) == spelled(want) => {}
                (Err(_), None) => {}
                (got, want) => wrong.push(format!("{yaml:?}: {got:?}, kubectl {want:?}")),
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn errors_have_their_place() {
        let deep = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let chain = "a: &a {k: v}\nb: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]\n".to_owned();
        let bomb = ('c'..='k').fold(chain, |text, name| {
            let before = char::from(u8::try_from(name).unwrap() - 1);
            let aliases = vec![format!("*{before}"); 10].join(", ");
            format!("{text}{name}: &{name} [{aliases}]\n")
        });
        for (name, text, want) in [
            ("not closed", "a: [1\nb: 2", "2:"),
            ("a key twice removed", "a: 1\n  b: 2", "2:4"),
            ("another document", "a: 1\n...\nb: 2", "3:1 a document follows"),
            ("64 deep", &deep(65), "1:65 lists and mappings nest more than 64 deep"),
            ("64 deep by aliases", &format!("a: &a {}\nb: [[*a]]", deep(62)), "2:6 lists"),
            ("billion laughs", &bomb, "8:"),
            ("recursion", "a: &a [*a]", "1:8 an anchor's value contains itself"),
            ("placeholder", "x: {{ y }}", "1:5 a mapping cannot be a mapping's key; is this a"),
            ("template", "x: 1\n{{- if y }}", "2:3 \"-\" is only valid inside a block; is this a"),
            ("mapping as key", "x: {{y: 1}: 2}", "1:5 a mapping cannot be a mapping's key"),
            ("far too deep", &deep(1000), "1:256 lists and"),
            ("null key", "x: 1\n~: 2", "2:1 a mapping's key must be"),
            ("infinity", "x: .inf", "1:4 infinity cannot"),
            ("merge of a list", "x: &x [1]\ny:\n  <<: *x", "1:8 a merge key needs"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.starts_with(want), "{name}: {error}");
        }
        let limit = format!("more than {MAX_ALIAS_WEIGHT} values and bytes of text in one file");
        assert!(read(&bomb).unwrap_err().ends_with(&limit));
        assert!(read(&deep(64)).is_ok());
        assert_eq!(read("a: 1\n...\n# the end\n"), Ok(serde_json::json!({"a": 1})));
        assert_eq!(read("# nothing\n"), Ok(Value::Null));
    }

    #[test]
    fn duplicate_keys_are_noted_with_both_places() {
        let text = "a:\n  k: 1\n  <<: {m: 1, k: 0}\n  m: 2\n  k: 3\nb: {x: 1, 'x': 2}\n";
        let document = Document { text, start: Mark { line: 10, column: 1 }, is_json: false };
        let tree = parse(&document, &mut 0).unwrap().unwrap();
        let notes = tree.duplicates.iter().map(|DuplicateKey { key, at, first }| {
            format!("{key} {}:{} {}:{}", at.line, at.column, first.line, first.column)
        });
        // `m` overrides the value from the merge key, which is not a duplicate.
        assert_eq!(notes.collect::<Vec<_>>(), ["k 14:3 11:3", "x 15:11 15:5"]);
        let want = serde_json::json!({"a": {"k": 3, "m": 2}, "b": {"x": 2}});
        assert_eq!(tree.root.to_value(), want);
    }

    fn json() -> impl Strategy<Value = Value> {
        let text = "[ -~\u{a0}-\u{ff}\u{1f600}\n\t\"\\\\]{0,12}";
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            text.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::btree_map(text, inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// JSON keeps its meaning on one line or on many, indented by blanks or by tabs.
        #[test]
        fn json_is_read_as_json(value in json()) {
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            for text in [value.to_string(), pretty] {
                prop_assert_eq!(read(&text), Ok(value.clone()), "{}", text);
            }
        }
    }
}
