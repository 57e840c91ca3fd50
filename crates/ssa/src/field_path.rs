//! The path of a field in an object: by name, and in lists by the element's key, value or index.
//!
//! Written `spec.template.spec.containers[agent].image`. Ordered as upstream orders path elements
//! (`fieldpath.PathElement.Compare`). The keys of lists are in `ssa::schema`.

use std::fmt;

use serde_json::Value;

/// A path from the root of an object down to a field.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FieldPath(pub Vec<PathStep>);

/// One step down a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PathStep {
    /// The field of this name, or the entry under this key.
    Field(String),
    /// The list element with these values of its key fields, sorted by field name.
    Key(Vec<(String, Literal)>),
    /// The element of a set with this value.
    Value(Literal),
    /// The list element at this position.
    Index(i64),
}

/// A scalar value that identifies a list element.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Literal {
    /// A whole number.
    Integer(i64),
    /// Any other number, as JSON writes it.
    Number(String),
    /// A text.
    Text(String),
    /// A boolean.
    Bool(bool),
    /// Any other value, as JSON; lists of valid objects have no such keys.
    Other(String),
}

impl FieldPath {
    /// The path of named fields, from the root.
    pub fn of_fields<'n>(names: impl IntoIterator<Item = &'n str>) -> Self {
        Self(names.into_iter().map(PathStep::field).collect())
    }

    /// The path in upstream's format: `.spec.template.spec.containers[name="agent"].image`.
    pub fn upstream(&self) -> String {
        self.0.iter().map(PathStep::upstream).collect()
    }

    /// Whether `self` is `ancestor` or below it.
    pub fn starts_with(&self, ancestor: &Self) -> bool {
        self.0.starts_with(&ancestor.0)
    }
}

impl PathStep {
    /// The step to a named field.
    pub fn field(name: impl Into<String>) -> Self {
        Self::Field(name.into())
    }

    /// (upstream: `PathElement.String`)
    fn upstream(&self) -> String {
        match self {
            Self::Field(name) => format!(".{name}"),
            Self::Key(keys) => {
                let keys: Vec<String> = keys
                    .iter()
                    .map(|(name, value)| format!("{name}={}", value.upstream()))
                    .collect();
                format!("[{}]", keys.join(","))
            }
            Self::Value(value) => format!("[={}]", value.upstream()),
            Self::Index(at) => format!("[{at}]"),
        }
    }

    /// Appends the step to the path; `first` if the path is empty.
    fn write(&self, first: bool, f: &mut dyn fmt::Write) -> fmt::Result {
        match self {
            Self::Field(name) if first => f.write_str(name),
            Self::Field(name) if is_plain(name) => write!(f, ".{name}"),
            Self::Field(name) => write!(f, "[{name}]"),
            Self::Key(keys) => {
                let values: Vec<_> = keys.iter().map(|(_, value)| value.to_string()).collect();
                write!(f, "[{}]", values.join("/"))
            }
            Self::Value(value) => write!(f, "[{value}]"),
            Self::Index(at) => write!(f, "[{at}]"),
        }
    }
}

/// `path` extended by one step; the empty path is the root.
pub fn extend_path(path: &str, step: &PathStep) -> String {
    let mut text = path.to_owned();
    // Writing to a string cannot fail.
    let _ = step.write(path.is_empty(), &mut text);
    text
}

/// Whether `name` needs no brackets; names with dots or slashes do:
/// `labels[app.kubernetes.io/name]`.
fn is_plain(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

impl fmt::Display for FieldPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().enumerate().try_for_each(|(at, step)| step.write(at == 0, f))
    }
}

impl From<&Value> for Literal {
    fn from(value: &Value) -> Self {
        match value {
            Value::Number(number) => match number.as_i64() {
                Some(whole) => Self::Integer(whole),
                None => Self::Number(number.to_string()),
            },
            Value::String(text) => Self::Text(text.clone()),
            Value::Bool(truth) => Self::Bool(*truth),
            Value::Null | Value::Array(_) | Value::Object(_) => Self::Other(value.to_string()),
        }
    }
}

impl Literal {
    /// The literal in upstream's format: strings in quotes.
    fn upstream(&self) -> String {
        match self {
            Self::Text(text) => format!("{text:?}"),
            Self::Integer(_) | Self::Number(_) | Self::Bool(_) | Self::Other(_) => self.to_string(),
        }
    }
}

/// Strings without quotes.
impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(whole) => whole.fmt(f),
            Self::Number(text) | Self::Text(text) | Self::Other(text) => f.write_str(text),
            Self::Bool(truth) => truth.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_of_step_has_its_form() {
        let key = |pairs: &[(&str, Value)]| {
            let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), value.into()));
            PathStep::Key(pairs.collect())
        };
        for (steps, want) in [
            (vec![], ""),
            (
                vec![PathStep::field("spec"), PathStep::field("minReadySeconds")],
                "spec.minReadySeconds",
            ),
            (vec![PathStep::field("labels"), PathStep::field("a.b/c")], "labels[a.b/c]"),
            (
                vec![
                    PathStep::field("containers"),
                    key(&[("name", json!("agent"))]),
                    PathStep::field("image"),
                ],
                "containers[agent].image",
            ),
            (
                vec![
                    PathStep::field("ports"),
                    key(&[("containerPort", json!(53)), ("protocol", json!("UDP"))]),
                ],
                "ports[53/UDP]",
            ),
            (vec![PathStep::field("args"), PathStep::Index(2)], "args[2]"),
            (
                vec![PathStep::field("finalizers"), PathStep::Value((&json!("a/b")).into())],
                "finalizers[a/b]",
            ),
        ] {
            let path = FieldPath(steps);
            assert_eq!(path.to_string(), want);
            let by_steps = path.0.iter().fold(String::new(), |text, step| extend_path(&text, step));
            assert_eq!(by_steps, want);
        }
    }
}
