//! The only way to standard output and standard error.
//!
//! Text may carry ANSI styles; they reach a terminal that wants them and are taken out everywhere
//! else (`--color`, `NO_COLOR`, `CLICOLOR_FORCE`, `TERM`). Not here: any words.

use std::fmt;
use std::io::{self, BufWriter, Write};

use anstream::{AutoStream, ColorChoice};

use super::annotations::Annotations;
use super::called::Called;

/// Hands text to the two streams.
#[derive(Clone, Copy, Debug)]
pub(super) struct Printer {
    color: ColorChoice,
    called: Called,
    annotations: Option<Annotations>,
    /// Standard output is for something else.
    aside: bool,
    /// Nobody listens: a rehearsal that is one of thousands.
    silent: bool,
}

impl Printer {
    /// A printer that colours as `color` says.
    pub(super) fn new(color: ColorChoice) -> Self {
        Self { color, called: Called::Directly, annotations: None, aside: false, silent: false }
    }

    /// A printer that says nothing.
    pub(super) fn silent() -> Self {
        Self { silent: true, ..Self::new(ColorChoice::Never) }
    }

    /// The same for a program that was called so.
    pub(super) fn speaking_as(self, called: Called) -> Self {
        Self { called, ..self }
    }

    /// The same, but what it would write to standard output goes to standard error: standard output
    /// is kept for a document.
    pub(super) fn aside(self) -> Self {
        Self { aside: true, ..self }
    }

    /// The same for a run whose errors a CI system marks.
    pub(super) fn marking(self, annotations: Option<Annotations>) -> Self {
        Self { annotations, ..self }
    }

    /// Which system that is.
    pub(super) fn annotations(self) -> Option<Annotations> {
        self.annotations
    }

    /// By which name the user knows the program.
    pub(super) fn called(self) -> Called {
        self.called
    }

    /// Writes `text` to standard output: what was asked for, and nothing else.
    pub(super) fn out(self, text: impl fmt::Display) -> io::Result<()> {
        if self.silent {
            return Ok(());
        }
        if self.aside {
            self.err(text);
            return Ok(());
        }
        let mut stream = BufWriter::new(AutoStream::new(io::stdout().lock(), self.color));
        forgiving(write!(stream, "{text}").and_then(|()| stream.flush()))
    }

    /// Standard output for data that is written piece by piece.
    pub(super) fn stdout(self) -> impl Write {
        let Self { color: _, called: _, annotations: _, aside: _, silent } = self;
        let stdout: Box<dyn Write> =
            if silent { Box::new(io::sink()) } else { Box::new(io::stdout().lock()) };
        Forgiving(BufWriter::new(stdout))
    }

    /// Writes `text` to standard error: warnings, errors, advice.
    pub(super) fn err(self, text: impl fmt::Display) {
        if self.silent {
            return;
        }
        let mut stream = BufWriter::new(AutoStream::new(io::stderr().lock(), self.color));
        // When even standard error is gone, there is nobody left to tell.
        drop(write!(stream, "{text}").and_then(|()| stream.flush()));
    }
}

/// A reader that went away (`ds-plan | head`) has read what it wanted; that is no failure.
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
