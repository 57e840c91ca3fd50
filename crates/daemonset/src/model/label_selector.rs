//! Label selectors, as text (upstream: `labels.Parse`) and as objects (upstream:
//! `metav1.LabelSelector`), and the syntax of labels.
//!
//! The text has equality (`=`, `==`, `!=`), sets (`in`, `notin`) and existence (`key`, `!key`). Not
//! supported: the numeric `>` and `<`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Labels;
use super::scheduling::null_as_default;

/// `spec.selector` of a DaemonSet (upstream: `metav1.LabelSelector`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LabelSelector {
    /// Labels that an object must have, all of them.
    pub match_labels: Labels,
    /// Requirements that must all hold.
    #[serde(deserialize_with = "null_as_default")]
    pub match_expressions: Vec<LabelSelectorRequirement>,
}

/// One requirement of a label selector.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LabelSelectorRequirement {
    /// Label key.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// Operands of `In` and `NotIn`.
    #[serde(deserialize_with = "null_as_default")]
    pub values: Vec<String>,
}

impl LabelSelector {
    /// Whether it has no requirement at all. Such a selector would match everything; the
    /// controller touches nothing then (upstream event `SelectingAll`).
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Whether `labels` satisfy every requirement; an unknown operator satisfies nothing.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.match_labels.iter().all(|(key, want)| labels.get(key) == Some(want))
            && self.match_expressions.iter().all(|requirement| requirement.holds(labels))
    }
}

/// `tier=node,zone In (a,b)`.
impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { match_labels, match_expressions } = self;
        let mut first = true;
        let mut comma = |f: &mut fmt::Formatter<'_>| {
            if std::mem::take(&mut first) { Ok(()) } else { f.write_str(",") }
        };
        for (key, value) in match_labels.iter() {
            comma(f)?;
            write!(f, "{key}={value}")?;
        }
        for LabelSelectorRequirement { key, operator, values } in match_expressions {
            comma(f)?;
            write!(f, "{key} {operator}")?;
            if !values.is_empty() {
                write!(f, " ({})", values.join(","))?;
            }
        }
        Ok(())
    }
}

impl LabelSelectorRequirement {
    fn holds(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        let listed = || value.is_some_and(|v| self.values.iter().any(|want| want == v));
        match self.operator.as_str() {
            "In" => listed(),
            "NotIn" => !listed(),
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _unknown => false,
        }
    }
}

/// A parse error of a selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseLabelSelectorError {
    /// Another token was expected.
    #[error("expected {expected}, found {}", quoted(found))]
    Unexpected {
        /// The tokens that are valid there.
        expected: ExpectedToken,
        /// The token that was found; empty at the end.
        found: String,
    },
    /// The key is not a valid label key.
    #[error("`{0}` is not a label key")]
    Key(String),
    /// The value is not a valid label value.
    #[error("`{0}` is not a label value")]
    Value(String),
}

/// The tokens that are valid at a place in a selector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpectedToken {
    /// A label key.
    Key,
    /// A label key, after a comma.
    NextKey,
    /// An operator.
    Operator,
    /// The parenthesis before a set of values.
    Open,
    /// A comma or the parenthesis after a set of values.
    CommaOrClose,
    /// A comma or the end.
    CommaOrEnd,
}

impl fmt::Display for ExpectedToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Key | Self::NextKey => "a label key",
            Self::Operator => "`=`, `==`, `!=`, `in` or `notin`",
            Self::Open => "`(`",
            Self::CommaOrClose => "`,` or `)`",
            Self::CommaOrEnd => "`,` or the end",
        })
    }
}

fn quoted(token: &str) -> String {
    if token.is_empty() { "the end".to_owned() } else { format!("`{token}`") }
}

/// Parses a comma-separated list of requirements, all of which must hold.
impl FromStr for LabelSelector {
    type Err = ParseLabelSelectorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut tokens = Tokens { rest: text };
        let mut selector = Self::default();
        if tokens.peek().is_empty() {
            return Ok(selector);
        }
        let mut expected = ExpectedToken::Key;
        loop {
            selector.match_expressions.push(requirement(&mut tokens, expected)?);
            match tokens.next() {
                "," => expected = ExpectedToken::NextKey,
                "" => return Ok(selector),
                other => return Err(unexpected(other, ExpectedToken::CommaOrEnd)),
            }
        }
    }
}

/// `!key`, `key`, or a key with an operator and its operands. `expected` is the error's if there is
/// no key.
fn requirement(
    tokens: &mut Tokens<'_>,
    expected: ExpectedToken,
) -> Result<LabelSelectorRequirement, ParseLabelSelectorError> {
    let requires = |key: &str, operator: &str, values| LabelSelectorRequirement {
        key: key.to_owned(),
        operator: operator.to_owned(),
        values,
    };
    if tokens.peek() == "!" {
        tokens.next();
        return Ok(requires(key(tokens, ExpectedToken::Key)?, "DoesNotExist", Vec::new()));
    }
    let key = key(tokens, expected)?;
    let operator = match tokens.peek() {
        "," | "" => return Ok(requires(key, "Exists", Vec::new())),
        "=" | "==" | "in" => "In",
        "!=" | "notin" => "NotIn",
        other => return Err(unexpected(other, ExpectedToken::Operator)),
    };
    let values = match tokens.next() {
        "in" | "notin" => set(tokens)?,
        _sign => vec![value(tokens)?],
    };
    Ok(requires(key, operator, values))
}

fn key<'t>(
    tokens: &mut Tokens<'t>,
    expected: ExpectedToken,
) -> Result<&'t str, ParseLabelSelectorError> {
    match tokens.next() {
        sign if !is_word(sign) => Err(unexpected(sign, expected)),
        word if is_label_key(word) => Ok(word),
        word => Err(ParseLabelSelectorError::Key(word.to_owned())),
    }
}

/// One value; a missing value is the empty value.
fn value(tokens: &mut Tokens<'_>) -> Result<String, ParseLabelSelectorError> {
    match tokens.peek() {
        sign if !is_word(sign) => Ok(String::new()),
        word if is_label_value(word) => Ok(tokens.next().to_owned()),
        word => Err(ParseLabelSelectorError::Value(word.to_owned())),
    }
}

/// `(a, b)`
fn set(tokens: &mut Tokens<'_>) -> Result<Vec<String>, ParseLabelSelectorError> {
    match tokens.next() {
        "(" => {}
        other => return Err(unexpected(other, ExpectedToken::Open)),
    }
    let mut values = Vec::new();
    loop {
        values.push(value(tokens)?);
        match tokens.next() {
            "," => {}
            ")" => return Ok(values),
            other => return Err(unexpected(other, ExpectedToken::CommaOrClose)),
        }
    }
}

fn unexpected(token: &str, expected: ExpectedToken) -> ParseLabelSelectorError {
    ParseLabelSelectorError::Unexpected { expected, found: token.to_owned() }
}

/// The operators and separators; longer ones first.
const SIGNS: [&str; 7] = ["==", "!=", "=", "!", "(", ")", ","];

fn is_word(token: &str) -> bool {
    !token.is_empty() && !SIGNS.contains(&token)
}

/// Signs and words; at the end, the empty token.
struct Tokens<'t> {
    rest: &'t str,
}

impl<'t> Tokens<'t> {
    fn peek(&self) -> &'t str {
        let text = self.rest.trim_start();
        if let Some(sign) = SIGNS.into_iter().find(|sign| text.starts_with(sign)) {
            return sign;
        }
        let ends = |c: char| c.is_whitespace() || "=!(),".contains(c);
        &text[..text.find(ends).unwrap_or(text.len())]
    }

    fn next(&mut self) -> &'t str {
        let token = self.peek();
        self.rest = &self.rest.trim_start()[token.len()..];
        token
    }
}

/// Maximum length of the name part of a key, and of a value.
const MAX_NAME: usize = 63;

/// Maximum length of the prefix of a key (upstream: `DNS1123SubdomainMaxLength`).
const MAX_PREFIX: usize = 253;

/// Whether `key` is `NAME` or `PREFIX/NAME`, where the prefix is a DNS subdomain (upstream:
/// `content.IsLabelKey`). Messages belong to validation.
pub fn is_label_key(key: &str) -> bool {
    match key.split_once('/') {
        Some((prefix, name)) => is_dns_subdomain(prefix) && is_name(name),
        None => is_name(key),
    }
}

/// Whether `value` is empty, or has the syntax of a name in a key (upstream:
/// `content.IsLabelValue`).
pub fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_name(value)
}

/// At most 63 characters of `[A-Za-z0-9._-]`, with a letter or digit at both ends.
fn is_name(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    text.len() <= MAX_NAME && text.bytes().all(inner) && has_alphanumeric_ends(text)
}

/// Lower-case DNS labels joined by dots (RFC 1123).
fn is_dns_subdomain(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    text.len() <= MAX_PREFIX
        && text.split('.').all(|label| label.bytes().all(inner) && has_alphanumeric_ends(label))
}

fn has_alphanumeric_ends(text: &str) -> bool {
    let ends = [text.bytes().next(), text.bytes().next_back()];
    ends.iter().all(|end| end.is_some_and(|b| b.is_ascii_alphanumeric()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_read_as_upstream_reads_them() {
        let labels: Labels = [("app", "agent"), ("tier", "node")].into_iter().collect();
        for (selector, want) in [
            (r#"{"matchLabels":{"app":"agent"}}"#, true),
            (r#"{"matchLabels":{"app":"agent","tier":"other"}}"#, false),
            (
                r#"{"matchExpressions":[{"key":"app","operator":"In","values":["x","agent"]}]}"#,
                true,
            ),
            (r#"{"matchExpressions":[{"key":"none","operator":"NotIn","values":["x"]}]}"#, true),
            (
                r#"{"matchExpressions":[{"key":"app","operator":"NotIn","values":["agent"]}]}"#,
                false,
            ),
            (r#"{"matchExpressions":[{"key":"tier","operator":"Exists","values":null}]}"#, true),
            (r#"{"matchExpressions":[{"key":"tier","operator":"DoesNotExist"}]}"#, false),
            (r#"{"matchExpressions":[{"key":"tier","operator":"Like","values":["node"]}]}"#, false),
        ] {
            let parsed: LabelSelector = serde_json::from_str(selector).unwrap();
            assert_eq!(parsed.matches(&labels), want, "{selector}");
        }
    }

    #[test]
    fn selectors_choose_as_kubectl_does() {
        let labels: Labels =
            [("app", "agent"), ("tier", ""), ("k8s.io/in", "in")].into_iter().collect();
        for (selector, want) in [
            ("", true),
            ("app=agent", true),
            ("app==agent", true),
            ("app = agent , tier", true),
            ("app=agent,tier=x", false),
            ("app!=agent", false),
            ("none!=agent", true),
            ("app in (x, agent)", true),
            ("app in(agent)", true),
            ("app notin (agent)", false),
            ("none notin (x)", true),
            ("none in (x,)", false),
            ("tier in (x,)", true),
            ("tier=", true),
            ("tier=,app", true),
            ("app", true),
            ("!app", false),
            ("! none", true),
            ("k8s.io/in=in", true),
            ("k8s.io/in in (in,notin)", true),
        ] {
            let parsed: LabelSelector =
                selector.parse().unwrap_or_else(|error| panic!("{selector}: {error}"));
            assert_eq!(parsed.matches(&labels), want, "{selector}");
        }
    }

    #[test]
    fn errors_name_the_token() {
        for (selector, want) in [
            ("=a", "expected a label key, found `=`"),
            ("a,", "expected a label key, found the end"),
            ("a b", "expected `=`, `==`, `!=`, `in` or `notin`, found `b`"),
            ("a=b c", "expected `,` or the end, found `c`"),
            ("a in b", "expected `(`, found `b`"),
            ("a in (b", "expected `,` or `)`, found the end"),
            ("a in (b c)", "expected `,` or `)`, found `c`"),
            ("a>1", "`a>1` is not a label key"),
            ("-a=b", "`-a` is not a label key"),
            ("a=b/c", "`b/c` is not a label value"),
        ] {
            let error = selector.parse::<LabelSelector>().unwrap_err();
            assert_eq!(error.to_string(), want, "{selector}");
        }
    }

    #[test]
    fn keys_and_values_follow_upstream() {
        let long = "a".repeat(64);
        for (text, key, value) in [
            ("app", true, true),
            ("App_1.x-y", true, true),
            ("example.com/app", true, false),
            ("Example.com/app", false, false),
            ("example..com/app", false, false),
            ("-a.b/app", false, false),
            ("a/b/c", false, false),
            ("/app", false, false),
            ("a/", false, false),
            ("", false, true),
            ("-5", false, false),
            ("+5", false, false),
            ("5", true, true),
            ("a b", false, false),
            (&long, false, false),
            (&long[1..], true, true),
        ] {
            assert_eq!((is_label_key(text), is_label_value(text)), (key, value), "{text:?}");
        }
    }
}
