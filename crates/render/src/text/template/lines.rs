//! Lines of a description with tabs, and the values in them.

use serde_json::{Map, Value};

use crate::text::page::{Line, Page};

/// Columns between tab stops.
const TAB: usize = 8;

/// Lines with tabs, as upstream writes them.
pub(super) struct Lines<'a>(pub &'a mut Page);

impl Lines<'_> {
    /// Adds a line, indented by `level` steps; tabs go to the next tab stop.
    pub(super) fn add(&mut self, level: usize, text: impl AsRef<str>) {
        let mut line = Line::at(0).whole().plain(" ".repeat(2 * level));
        for (nth, piece) in text.as_ref().split('\t').enumerate() {
            if nth > 0 {
                let stop = (line.width() / TAB + 1) * TAB;
                line = line.padded_to(stop);
            }
            line = line.plain(piece);
        }
        self.0.push(line);
    }

    /// `Title:`, a tab and the text, if it is set.
    pub(super) fn text_if_set(&mut self, level: usize, title: &str, value: &Value) {
        if let Some(text) = value.as_str().filter(|text| !text.is_empty()) {
            self.add(level, format!("{title}:\t{text}"));
        }
    }

    /// Title and pairs, one per line (upstream: `printLabelsMultiline`).
    pub(super) fn pairs(&mut self, title: &str, pairs: Option<&Map<String, Value>>) {
        let pairs = pairs.filter(|pairs| !pairs.is_empty());
        let lines =
            pairs.into_iter().flatten().map(|(key, value)| format!("{key}={}", plain(value)));
        self.titled(title, lines.collect());
    }

    /// `Title:`, a tab and the first text, the others below it; `<none>` without texts.
    pub(super) fn titled(&mut self, title: &str, texts: Vec<String>) {
        let texts = if texts.is_empty() { vec!["<none>".to_owned()] } else { texts };
        for (nth, text) in texts.iter().enumerate() {
            let head = if nth == 0 { format!("{title}:\t") } else { "\t".to_owned() };
            self.add(0, format!("{head}{text}"));
        }
    }
}

/// The elements of a list; empty for any other value.
pub(super) fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// A plain value as Go's `%v` prints it.
pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

/// Whether a reference to a Secret or ConfigMap is optional.
pub(super) fn is_optional(reference: &Value) -> bool {
    reference["optional"].as_bool().unwrap_or_default()
}
