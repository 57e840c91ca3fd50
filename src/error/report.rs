//! Errors as they are printed: message, causes and hints.

use std::borrow::Cow;
use std::fmt;

use anstyle::{AnsiColor, Style};

use super::Error;
use crate::exit::Exit;
use crate::hints;
use crate::printer::Printer;
use render::neutral;

const ERROR: Style = AnsiColor::Red.on_default().bold();
const HINT: Style = AnsiColor::Cyan.on_default().bold();
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();

/// An error as it is printed: message, causes, hints. Control characters of the input are escaped.
pub(crate) struct Report<'a>(pub(crate) &'a Error);

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        paragraph(f, "", ("error", ERROR), &self.0.to_string())?;
        let mut cause = std::error::Error::source(self.0);
        while let Some(error) = cause {
            paragraph(f, "  ", ("caused by", Style::new()), &error.to_string())?;
            cause = error.source();
        }
        for hint in hints::hints(self.0) {
            paragraph(f, "", ("hint", HINT), &hint)?;
        }
        Ok(())
    }
}

/// Prints an error, and its annotation for a pipeline; returns the outcome of the run.
pub(crate) fn report(error: &Error, printer: Printer) -> Exit {
    printer.err(printer.called().with_called_name(&Report(error).to_string()));
    printer.err(printer.annotations().map(|system| system.of(error)).unwrap_or_default());
    error.exit()
}

/// `label: text`, further lines indented by two more.
pub(crate) fn paragraph(
    f: &mut fmt::Formatter<'_>,
    indent: &str,
    (label, style): (&str, Style),
    text: &str,
) -> fmt::Result {
    let mut lines = text.lines().map(shortened);
    let first = lines.next().unwrap_or_default();
    let first = neutral::line(&first);
    writeln!(f, "{indent}{style}{label}{style:#}: {first}")?;
    for line in lines {
        writeln!(f, "{indent}  {}", neutral::line(&line))?;
    }
    Ok(())
}

/// The longest line of a message, in characters. Messages can quote input of any length.
const LONGEST_LINE: usize = 8_000;

fn shortened(line: &str) -> Cow<'_, str> {
    match line.char_indices().nth(LONGEST_LINE) {
        None => line.into(),
        Some((end, _)) => format!("{}… ({} bytes more)", &line[..end], line.len() - end).into(),
    }
}
