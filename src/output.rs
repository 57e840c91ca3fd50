//! The output of commands: one path for all documents, in the formats that each has.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde::Serialize;

use crate::error::Error;
use crate::printer::Printer;
use crate::shell::Shell;
use crate::warnings;
use daemonset::model::Node;
use planner::check_report::CheckReport;
use planner::plan::{Diff, Drift, Explanation, History, Plan, StatusReport, Warning};
use render::{HtmlOptions, MarkdownOptions, TextOptions};

/// An output format. A command offers some of them ([`formats`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people on a terminal.
    Text,
    /// For programs; for a run, one object per line.
    Json,
    /// The same as JSON, in YAML.
    Yaml,
    /// For comments on pull requests.
    Markdown,
    /// A page for browsers.
    Html,
    /// One name per line, for scripts.
    Name,
}

impl Format {
    /// All formats, in the order of the help.
    pub(crate) const ALL: [Self; 6] =
        [Self::Text, Self::Json, Self::Yaml, Self::Markdown, Self::Html, Self::Name];

    fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
            Self::Yaml => "yaml",
            Self::Markdown => "markdown",
            Self::Html => "html",
            Self::Name => "name",
        }
    }
}

/// Accepts these formats only, which is what the help and the completions list.
pub(crate) fn formats<const N: usize>(
    offered: [Format; N],
) -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(offered.map(Format::as_str)).map(move |name| {
        let named = offered.into_iter().find(|format| format.as_str() == name);
        named.unwrap_or(Format::Text)
    })
}

/// What a command prints. JSON and YAML are the serialized document. A layout that a document does
/// not have is its text; its command does not offer that format.
pub(crate) trait Document: Serialize {
    /// Takes the warnings out of the document.
    fn take_warnings(&mut self) -> Vec<Warning>;

    fn text(&self, options: &TextOptions) -> String;

    fn markdown(&self, _options: &MarkdownOptions) -> String {
        self.text(&TextOptions::default())
    }

    fn html(&self, _options: &HtmlOptions<'_>) -> Result<String, render::Error> {
        Ok(self.text(&TextOptions::default()))
    }

    fn name(&self) -> String {
        self.text(&TextOptions::default())
    }
}

/// Options of the layouts.
pub(crate) struct Options<'a> {
    /// The layout to print.
    pub(crate) format: Format,
    /// Whether nothing is summarized (`--verbose`).
    pub(crate) verbose: bool,
    pub(crate) markdown: &'a MarkdownOptions,
    /// The nodes of the cluster, for HTML.
    pub(crate) nodes: &'a [Node],
}

/// Prints a document. Text and names leave out the warnings, which go to standard error.
///
/// # Errors
/// It cannot be laid out or written.
pub(crate) fn print<D: Document>(
    document: D,
    options: &Options<'_>,
    shell: &Shell,
) -> Result<(), Error> {
    lay_out(document, options, &shell.text_options(options.verbose), shell)
}

/// As [`print`], for a document without Markdown and HTML.
///
/// # Errors
/// As [`print`].
pub(crate) fn print_plain<D: Document>(
    document: D,
    format: Format,
    text: &TextOptions,
    shell: &Shell,
) -> Result<(), Error> {
    let markdown = &MarkdownOptions::default();
    let options = Options { format, verbose: text.verbose, markdown, nodes: &[] };
    lay_out(document, &options, text, shell)
}

fn lay_out<D: Document>(
    mut document: D,
    options: &Options<'_>,
    text: &TextOptions,
    shell: &Shell,
) -> Result<(), Error> {
    let Options { format, verbose, markdown, nodes } = *options;
    if matches!(format, Format::Text | Format::Name) {
        warnings::print(&document.take_warnings(), shell.printer);
    }
    let text = match format {
        Format::Text => document.text(text),
        Format::Json => return print_json(&document, shell.printer),
        Format::Yaml => render::yaml(&document)?,
        Format::Markdown => document.markdown(markdown),
        Format::Html => document.html(&HtmlOptions { nodes, verbose })?,
        Format::Name => document.name(),
    };
    shell.printer.out(text).map_err(Error::Output)
}

/// Prints JSON while it is made: a plan of a large fleet has many megabytes.
fn print_json<D: Document>(document: &D, printer: Printer) -> Result<(), Error> {
    match render::write_json(document, printer.stdout()) {
        Err(render::Error::Output(error)) => Err(Error::Output(error)),
        written => Ok(written?),
    }
}

impl Document for Plan {
    fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    fn text(&self, options: &TextOptions) -> String {
        render::plan_text(self, options)
    }

    fn markdown(&self, options: &MarkdownOptions) -> String {
        render::plan_markdown(self, options)
    }

    fn html(&self, options: &HtmlOptions<'_>) -> Result<String, render::Error> {
        render::plan_html(self, options)
    }

    fn name(&self) -> String {
        render::plan_name(self)
    }
}

impl Document for Drift {
    fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    fn text(&self, options: &TextOptions) -> String {
        render::drift_text(self, options)
    }

    fn markdown(&self, options: &MarkdownOptions) -> String {
        render::drift_markdown(self, options)
    }

    fn html(&self, options: &HtmlOptions<'_>) -> Result<String, render::Error> {
        render::drift_html(self, options)
    }

    fn name(&self) -> String {
        render::drift_name(self)
    }
}

impl Document for Diff {
    fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    fn text(&self, options: &TextOptions) -> String {
        render::diff_text(self, options)
    }

    fn markdown(&self, options: &MarkdownOptions) -> String {
        render::diff_markdown(self, options)
    }
}

impl Document for StatusReport {
    fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    fn text(&self, options: &TextOptions) -> String {
        render::status_text(self, options)
    }

    fn name(&self) -> String {
        render::status_name(self)
    }
}

impl Document for History {
    fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    fn text(&self, options: &TextOptions) -> String {
        render::history_text(self, options)
    }
}

impl Document for CheckReport {
    fn take_warnings(&mut self) -> Vec<Warning> {
        std::mem::take(&mut self.warnings)
    }

    fn text(&self, options: &TextOptions) -> String {
        render::checks_text(self, options)
    }

    fn markdown(&self, options: &MarkdownOptions) -> String {
        render::checks_markdown(self, options)
    }

    fn html(&self, _options: &HtmlOptions<'_>) -> Result<String, render::Error> {
        Ok(render::checks_html(self))
    }
}

impl Document for Explanation {
    fn take_warnings(&mut self) -> Vec<Warning> {
        Vec::new()
    }

    fn text(&self, options: &TextOptions) -> String {
        render::explain_text(self, options)
    }
}
