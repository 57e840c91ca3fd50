//! Why YAML cannot be parsed, and where.

use crate::documents::Document;
use crate::error::Limit;
use crate::tree::Mark;

/// The reason why a document cannot be parsed, and its position.
#[derive(Debug)]
pub(crate) struct YamlError {
    pub(crate) at: Mark,
    pub(crate) problem: YamlProblem,
}

#[derive(Debug)]
pub(crate) enum YamlProblem {
    Syntax(String),
    Limit(Limit),
}

impl YamlError {
    /// Adds a hint about templates if the reported line contains template markers.
    pub(super) fn or_template(self, document: &Document<'_>) -> Self {
        let line = self.at.line.saturating_sub(document.start.line);
        let is_template = document.text.lines().nth(line).is_some_and(|line| line.contains("{{"));
        match self.problem {
            YamlProblem::Syntax(message) if is_template => {
                let message = format!("{message}; is this a `{{{{ }}}}` that was not rendered?");
                Self { problem: YamlProblem::Syntax(message), ..self }
            }
            YamlProblem::Syntax(_) | YamlProblem::Limit(_) => self,
        }
    }
}

pub(super) fn syntax(at: Mark, message: impl Into<String>) -> YamlError {
    YamlError { at, problem: YamlProblem::Syntax(message.into()) }
}
