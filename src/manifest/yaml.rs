//! One YAML or JSON document to a tree, as kubectl's reader sees it.
//!
//! After go-yaml v2 (upstream: `decoder.mapping`, `merge`, `alias`): the last of duplicate keys
//! counts, merge keys write in the order in which they stand, keys become texts. Works on the
//! parser's events, because places, duplicates and YAML 1.1 scalars are lost above them. Not here:
//! splitting a file into documents (`documents`), the meaning of scalars (`scalar`).

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use granit_parser::{Event, Options, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};

use super::documents::Document;
use super::error::{Limit, MAX_NESTING};
use super::scalar::{self, Scalar, ScalarError};
use super::tree::{Data, Entry, Mark, Node};

/// How much aliases may expand to in one file, in nodes and bytes of text.
const MAX_ALIAS_WEIGHT: usize = 8 << 20;
/// Longest mapping key on one line; YAML says 1024, JSON knows no bound.
const MAX_KEY: usize = 64 << 10;

/// A document that has been read.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) root: Rc<Node>,
    pub(super) duplicates: Vec<DuplicateKey>,
}

/// A key that stands twice in one mapping.
#[derive(Debug)]
pub(super) struct DuplicateKey {
    pub(super) key: String,
    pub(super) at: Mark,
    pub(super) first: Mark,
}

/// Why a document cannot be read, and where.
#[derive(Debug)]
pub(super) struct YamlError {
    pub(super) at: Mark,
    pub(super) problem: YamlProblem,
}

#[derive(Debug)]
pub(super) enum YamlProblem {
    Syntax(String),
    Limit(Limit),
}

/// Reads one document; `None` when there is nothing in it. `alias_weight` is what aliases have
/// expanded to in this file so far.
pub(super) fn parse(
    document: &Document<'_>,
    alias_weight: &mut usize,
) -> Result<Option<Tree>, YamlError> {
    let mut options: Options = granit_parser::options! { simple_key_max_lookahead: MAX_KEY };
    options.set_emit_comments(false);
    let mut builder = Builder {
        events: Parser::new_from_str_with_options(document.text, options),
        start: document.start,
        anchors: HashMap::new(),
        alias_weight,
        duplicates: Vec::new(),
    };
    let Some(root) = builder.document()? else { return Ok(None) };
    builder.end()?;
    Ok(Some(Tree { root, duplicates: builder.duplicates }))
}

struct Builder<'t, 'w> {
    events: Parser<'t, StrInput<'t>>,
    start: Mark,
    anchors: HashMap<usize, Rc<Node>>,
    alias_weight: &'w mut usize,
    duplicates: Vec<DuplicateKey>,
}

impl<'t> Builder<'t, '_> {
    fn next(&mut self) -> Result<(Event<'t>, Span), YamlError> {
        match self.events.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(self.scan_error(&error)),
            None => Err(syntax(self.start, "the document ends too early")),
        }
    }

    fn mark(&self, marker: &granit_parser::Marker) -> Mark {
        let first_line = marker.line() <= 1;
        Mark {
            line: self.start.line + marker.line().saturating_sub(1),
            column: marker.col() + if first_line { self.start.column } else { 1 },
        }
    }

    fn scan_error(&self, error: &ScanError) -> YamlError {
        syntax(self.mark(error.marker()), error.info())
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

    /// Nothing may follow the first document: kubectl would drop it in silence.
    fn end(&mut self) -> Result<(), YamlError> {
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamEnd => return Ok(()),
                Event::DocumentStart(..) => {
                    let at = self.mark(&span.start);
                    return Err(syntax(
                        at,
                        "a document follows `...` without `---`; kubectl would drop it in silence",
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
            let entry = Entry { key_at, node, merged: false };
            if let Some(before) = entries.insert(key.clone(), entry)
                && !before.merged
            {
                self.duplicates.push(DuplicateKey { key, at: key_at, first: before.key_at });
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

/// `<<`, plain or with its own tag (upstream: `isMerge`).
fn is_merge_key(event: &Event<'_>) -> bool {
    let Event::Scalar(text, style, _, tag) = event else { return false };
    text == "<<"
        && match tag {
            None => *style == ScalarStyle::Plain,
            Some(tag) => tag.suffix() == "merge",
        }
}

/// Writes the mapping (or mappings, the last one first) under `<<` over what is there so far.
fn merge(entries: &mut BTreeMap<String, Entry>, value: &Node) -> Result<(), YamlError> {
    let wrong = |at| syntax(at, "a merge key needs a mapping, or a list of mappings");
    let mut write = |from: &Node| match &from.data {
        Data::Map(merged) => {
            for (key, entry) in merged {
                entries.insert(key.clone(), Entry { merged: true, ..entry.clone() });
            }
            Ok(())
        }
        Data::Scalar(_) | Data::List(_) => Err(wrong(from.at)),
    };
    match &value.data {
        Data::List(items) => items.iter().rev().try_for_each(|item| write(item)),
        Data::Map(_) | Data::Scalar(_) => write(value),
    }
}

fn check_depth(depth: usize, at: Mark) -> Result<(), YamlError> {
    if depth > MAX_NESTING {
        return Err(YamlError { at, problem: YamlProblem::Limit(Limit::Nesting) });
    }
    Ok(())
}

fn syntax(at: Mark, message: impl Into<String>) -> YamlError {
    YamlError { at, problem: YamlProblem::Syntax(message.into()) }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::go_number::number_text;
    use super::*;

    fn read(text: &str) -> Result<Value, String> {
        let document = Document { text, start: Mark { line: 1, column: 1 } };
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

    /// The same value with every number as Go writes it.
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

    /// `scalars.json` holds what kubectl answered; a control-plane test asks it again.
    #[test]
    fn scalars_and_keys_mean_what_they_mean_to_kubectl() {
        let rows: Vec<Value> = serde_json::from_str(include_str!("scalars.json")).unwrap();
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
}
