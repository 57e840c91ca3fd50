//! What the programs take from their process: one clock, one environment, one way out.
//!
//! Everything below the shell gets these as values. Not here: what is done with them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use jiff::Timestamp;
use tokio::sync::mpsc;

use super::error::Error;
use super::exit::Exit;
use super::printer::Printer;
use crate::apply::Interrupt;
use crate::model::mask::Salt;
use crate::render::TextOptions;

/// The process around a command.
#[derive(Clone, Debug)]
pub(super) struct Shell {
    /// The way to standard output and standard error.
    pub(super) printer: Printer,
    /// All environment variables, as they were at the start.
    pub(super) environment: BTreeMap<OsString, OsString>,
    /// Where relative paths start.
    pub(super) current_dir: PathBuf,
    /// When the run began.
    pub(super) now: Timestamp,
    /// Whether somebody can be asked: standard input and standard error are a terminal.
    pub(super) terminal: bool,
    /// Whether something can be drawn and redrawn: standard output and standard error are a
    /// terminal that understands more than lines.
    pub(super) draws: bool,
    /// Columns of the terminal that standard output is; `None` when it is none.
    pub(super) width: Option<usize>,
}

impl Shell {
    /// Looks around once.
    ///
    /// # Errors
    /// There is no current folder.
    #[expect(clippy::disallowed_methods, reason = "the shell is where these are read")]
    pub(super) fn of_process(printer: Printer) -> io::Result<Self> {
        Ok(Self {
            printer,
            environment: std::env::vars_os().collect(),
            current_dir: std::env::current_dir()?,
            // Whole seconds, as everywhere in Kubernetes.
            now: Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default(),
            terminal: io::stdin().is_terminal() && io::stderr().is_terminal(),
            draws: io::stdout().is_terminal()
                && io::stderr().is_terminal()
                && std::env::var_os("TERM").is_none_or(|term| term != "dumb"),
            width: terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0.into()),
        })
    }

    /// An environment variable that is set and not empty.
    pub(super) fn variable(&self, name: &str) -> Option<&OsStr> {
        let value = self.environment.get(OsStr::new(name))?;
        (!value.is_empty()).then_some(value)
    }

    /// A salt that nobody can guess: the one place for random numbers.
    pub(super) fn salt() -> Result<Salt, Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(Error::Random)?;
        Ok(Salt::from_bytes(bytes))
    }

    /// How text is laid out for the reader of standard output.
    pub(super) fn text_options(&self, verbose: bool) -> TextOptions {
        // Styles are always there; the printer takes them out where they are not wanted.
        TextOptions { verbose, color: true, width: self.width }
    }

    /// `$XDG_CACHE_HOME`, else `~/.cache`; relative ones are ignored, as the XDG rules say.
    pub(super) fn cache_dir(&self) -> Option<PathBuf> {
        let own = self.variable("XDG_CACHE_HOME").map(PathBuf::from);
        let home = self.variable("HOME").map(|home| PathBuf::from(home).join(".cache"));
        own.filter(|path| path.is_absolute()).or(home)
    }
}

/// Runs `work` to its end, or until somebody interrupts it.
///
/// Nothing is written to a cluster here, so an interrupted run just ends. The signals are handled
/// because process 1 of a container would otherwise ignore them.
pub(super) fn run_until_interrupted(
    work: impl Future<Output = Exit> + Send + 'static,
) -> io::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let exit = runtime.block_on(async {
        // Listening begins before the work does, so that no signal falls in between.
        let mut interruption = Interruption::listen()?;
        tokio::select! {
            done = tokio::spawn(work) => match done {
                Ok(exit) => Ok(exit),
                Err(failed) => match failed.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(cancelled) => Err(io::Error::other(cancelled)),
                },
            },
            exit = interruption.wait() => exit,
        }
    });
    runtime.shutdown_background();
    exit
}

/// Runs `work`, which is told of the first signals and stops as it can, and returns its exit
/// status; with [`Exit::Interrupted`], that of the signal that it was.
///
/// While a rollout goes on, an interrupted process must not just end. The third signal ends it.
pub(super) fn run_with_interrupts<W>(
    work: impl FnOnce(mpsc::Receiver<Interrupt>) -> W,
) -> io::Result<Exit>
where
    W: Future<Output = Exit> + Send + 'static,
{
    const PATIENCE: usize = 2;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let exit = runtime.block_on(async {
        let mut interruption = Interruption::listen()?;
        let (sender, receiver) = mpsc::channel(PATIENCE);
        let mut work = tokio::spawn(work(receiver));
        let mut signal = Exit::Interrupted;
        let mut told = 0;
        loop {
            tokio::select! {
                done = &mut work => return match done {
                    Ok(Exit::Interrupted) => Ok(signal),
                    Ok(exit) => Ok(exit),
                    Err(failed) => match failed.try_into_panic() {
                        Ok(panic) => std::panic::resume_unwind(panic),
                        Err(cancelled) => Err(io::Error::other(cancelled)),
                    },
                },
                exit = interruption.wait() => {
                    signal = exit?;
                    told += 1;
                    if told > PATIENCE {
                        return Ok(signal);
                    }
                    // Full only when nobody listens any more, and then the work is at its end.
                    let _ = sender.try_send(Interrupt);
                }
            }
        }
    });
    runtime.shutdown_background();
    exit
}

/// The signals that ask the process to end.
#[cfg(unix)]
struct Interruption {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Interruption {
    fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn wait(&mut self) -> io::Result<Exit> {
        Ok(tokio::select! {
            _ = self.interrupt.recv() => Exit::Interrupted,
            _ = self.terminate.recv() => Exit::Terminated,
        })
    }
}

/// The signal that asks the process to end.
#[cfg(not(unix))]
struct Interruption;

#[cfg(not(unix))]
impl Interruption {
    fn listen() -> io::Result<Self> {
        Ok(Self)
    }

    async fn wait(&mut self) -> io::Result<Exit> {
        tokio::signal::ctrl_c().await?;
        Ok(Exit::Interrupted)
    }
}
