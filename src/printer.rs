//! All writes to standard output and standard error.
//!
//! Text may contain ANSI styles; they are removed unless the terminal supports them and the user
//! wants them (`--color`, `NO_COLOR`, `CLICOLOR_FORCE`, `TERM`). Not here: the texts.

use std::fmt;
use std::io::{self, BufWriter, Write};

use anstream::{AutoStream, ColorChoice};

use super::annotations::Annotations;
use super::invocation::Invocation;

/// Writes text to the two streams.
#[derive(Clone, Copy, Debug)]
pub(super) struct Printer {
    color: ColorChoice,
    called: Invocation,
    annotations: Option<Annotations>,
    /// Text for standard output goes to standard error.
    on_stderr: bool,
    /// Nothing is printed, for embedded runs in tests.
    silent: bool,
    /// Only results and errors are printed (`--quiet`).
    quiet: bool,
}

impl Printer {
    /// A printer with this colour choice.
    pub(super) fn new(color: ColorChoice) -> Self {
        Self {
            color,
            called: Invocation::Directly,
            annotations: None,
            on_stderr: false,
            silent: false,
            quiet: false,
        }
    }

    /// A printer that prints nothing.
    pub(super) fn silent() -> Self {
        Self { silent: true, ..Self::new(ColorChoice::Never) }
    }

    /// The same printer for a program that was called by this name.
    pub(super) fn called_as(self, called: Invocation) -> Self {
        Self { called, ..self }
    }

    /// The same printer, but text for standard output goes to standard error: standard output is
    /// reserved for a document.
    pub(super) fn on_stderr(self) -> Self {
        Self { on_stderr: true, ..self }
    }

    /// The same printer for a run whose errors a CI system annotates.
    pub(super) fn annotating(self, annotations: Option<Annotations>) -> Self {
        Self { annotations, ..self }
    }

    /// The same printer, which leaves out [remarks](Self::remark) if `quiet`.
    pub(super) fn quiet(self, quiet: bool) -> Self {
        Self { quiet, ..self }
    }

    /// Whether only results and errors are printed.
    pub(super) fn is_quiet(self) -> bool {
        self.quiet
    }

    /// The CI system that annotates errors, if any.
    pub(super) fn annotations(self) -> Option<Annotations> {
        self.annotations
    }

    /// The name by which the program was called.
    pub(super) fn called(self) -> Invocation {
        self.called
    }

    /// Writes `text` to standard output: the result of the command, and nothing else.
    pub(super) fn out(self, text: impl fmt::Display) -> io::Result<()> {
        if self.silent {
            return Ok(());
        }
        if self.on_stderr {
            self.err(text);
            return Ok(());
        }
        let mut stream = BufWriter::new(AutoStream::new(io::stdout().lock(), self.color));
        forgiving(write!(stream, "{text}").and_then(|()| stream.flush()))
    }

    /// What [`out`](Self::out) writes to, as a stream, for large data.
    pub(super) fn stdout(self) -> impl Write {
        let Self { color: _, called: _, annotations: _, on_stderr, silent, quiet: _ } = self;
        let stream: Box<dyn Write> = match (silent, on_stderr) {
            (true, _) => Box::new(io::sink()),
            (false, true) => Box::new(io::stderr().lock()),
            (false, false) => Box::new(io::stdout().lock()),
        };
        Forgiving(BufWriter::new(stream))
    }

    /// Writes `text` to standard error: warnings and other remarks; nothing with `--quiet`.
    pub(super) fn remark(self, text: impl fmt::Display) {
        if !self.quiet {
            self.err(text);
        }
    }

    /// Writes `text` to standard error: errors with their hints, and questions.
    pub(super) fn err(self, text: impl fmt::Display) {
        if self.silent {
            return;
        }
        let mut stream = BufWriter::new(AutoStream::new(io::stderr().lock(), self.color));
        // A failed write to standard error cannot be reported anywhere.
        drop(write!(stream, "{text}").and_then(|()| stream.flush()));
    }
}

/// Ignores a broken pipe: the reader (`ds-plan | head`) has read what it wanted.
fn forgiving(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

struct Forgiving<W>(W);

impl<W: Write> Write for Forgiving<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        forgiving(self.0.flush())
    }
}
