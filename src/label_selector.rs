//! `-l`: label selectors as kubectl writes them (upstream: `labels.Parse`).
//!
//! Equality (`=`, `==`, `!=`), sets (`in`, `notin`) and existence (`key`, `!key`). Not supported:
//! the numeric `>` and `<`.

use daemonset::model::{LabelSelector, LabelSelectorRequirement, is_label_key, is_label_value};

/// A parse error of a selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Error {
    /// Another token was expected.
    #[error("expected {expected}, found {found}")]
    Unexpected {
        /// The tokens that are valid there.
        expected: &'static str,
        /// The token that was found.
        found: String,
    },
    /// The key is not a valid label key.
    #[error("`{0}` is not a label key")]
    Key(String),
    /// The value is not a valid label value.
    #[error("`{0}` is not a label value")]
    Value(String),
}

/// Parses a comma-separated list of requirements, all of which must match.
pub(super) fn parse(text: &str) -> Result<LabelSelector, Error> {
    let mut tokens = Tokens { rest: text };
    let mut selector = LabelSelector::default();
    if tokens.peek() == Token::End {
        return Ok(selector);
    }
    loop {
        selector.match_expressions.push(requirement(&mut tokens)?);
        match tokens.next() {
            Token::Comma => {}
            Token::End => return Ok(selector),
            other => return Err(other.instead_of("`,` or the end")),
        }
    }
}

/// `!key`, `key`, or a key with an operator and its operands.
fn requirement(tokens: &mut Tokens<'_>) -> Result<LabelSelectorRequirement, Error> {
    if tokens.peek() == Token::Not {
        tokens.next();
        return Ok(requires(key(tokens)?, "DoesNotExist", Vec::new()));
    }
    let key = key(tokens)?;
    let operator = match tokens.peek() {
        Token::Comma | Token::End => return Ok(requires(key, "Exists", Vec::new())),
        Token::Equals | Token::Word("in") => "In",
        Token::NotEquals | Token::Word("notin") => "NotIn",
        other => return Err(other.instead_of("`=`, `==`, `!=`, `in` or `notin`")),
    };
    let values = match tokens.next() {
        Token::Word(_) => set(tokens)?,
        _sign => vec![value(tokens)?],
    };
    Ok(requires(key, operator, values))
}

fn requires(key: String, operator: &str, values: Vec<String>) -> LabelSelectorRequirement {
    LabelSelectorRequirement { key, operator: operator.to_owned(), values }
}

fn key(tokens: &mut Tokens<'_>) -> Result<String, Error> {
    match tokens.next() {
        Token::Word(word) if is_label_key(word) => Ok(word.to_owned()),
        Token::Word(word) => Err(Error::Key(word.to_owned())),
        other => Err(other.instead_of("a label key")),
    }
}

/// One value; a missing value is the empty value.
fn value(tokens: &mut Tokens<'_>) -> Result<String, Error> {
    match tokens.peek() {
        Token::Word(word) if is_label_value(word) => {
            tokens.next();
            Ok(word.to_owned())
        }
        Token::Word(word) => Err(Error::Value(word.to_owned())),
        _nothing => Ok(String::new()),
    }
}

/// `(a, b)`
fn set(tokens: &mut Tokens<'_>) -> Result<Vec<String>, Error> {
    match tokens.next() {
        Token::Open => {}
        other => return Err(other.instead_of("`(`")),
    }
    let mut values = Vec::new();
    loop {
        values.push(value(tokens)?);
        match tokens.next() {
            Token::Comma => {}
            Token::Close => return Ok(values),
            other => return Err(other.instead_of("`,` or `)`")),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Equals,
    NotEquals,
    Not,
    Open,
    Close,
    Comma,
    End,
}

impl Token<'_> {
    fn instead_of(self, expected: &'static str) -> Error {
        let found = match self {
            Self::Word(word) => format!("`{word}`"),
            Self::Equals => "`=`".to_owned(),
            Self::NotEquals => "`!=`".to_owned(),
            Self::Not => "`!`".to_owned(),
            Self::Open => "`(`".to_owned(),
            Self::Close => "`)`".to_owned(),
            Self::Comma => "`,`".to_owned(),
            Self::End => "the end".to_owned(),
        };
        Error::Unexpected { expected, found }
    }
}

struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    /// The operators and separators; longer ones first.
    const SIGNS: [(&'static str, Token<'static>); 7] = [
        ("==", Token::Equals),
        ("!=", Token::NotEquals),
        ("=", Token::Equals),
        ("!", Token::Not),
        ("(", Token::Open),
        (")", Token::Close),
        (",", Token::Comma),
    ];

    fn peek(&self) -> Token<'a> {
        Self { rest: self.rest }.next()
    }

    fn next(&mut self) -> Token<'a> {
        self.rest = self.rest.trim_start();
        if self.rest.is_empty() {
            return Token::End;
        }
        for (sign, token) in Self::SIGNS {
            if let Some(rest) = self.rest.strip_prefix(sign) {
                self.rest = rest;
                return token;
            }
        }
        let ends = |c: char| c.is_whitespace() || "=!(),".contains(c);
        let (word, rest) = self.rest.split_at(self.rest.find(ends).unwrap_or(self.rest.len()));
        self.rest = rest;
        Token::Word(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemonset::model::Labels;

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
            let parsed = parse(selector).unwrap_or_else(|error| panic!("{selector}: {error}"));
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
            assert_eq!(parse(selector).unwrap_err().to_string(), want, "{selector}");
        }
    }
}
