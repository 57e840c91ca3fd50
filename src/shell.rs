//! The process of the programs: clock, environment, terminal, signals and output.
//!
//! The rest of the code gets these as values.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, IsTerminal};
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::thread;
use std::time::Instant;

use jiff::Timestamp;
use tokio::runtime;
use tokio::sync::{mpsc, oneshot};

use super::error::Error;
use super::exit::Exit;
use super::notifications::Notifications;
use super::printer::Printer;
use daemonset::model::mask::Salt;
use executor::Interrupt;
use render::TextOptions;
use source::Streams;

/// The environment of a command.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a separate fact")]
pub(super) struct Shell {
    /// The printer for standard output and standard error.
    pub(super) printer: Printer,
    /// All environment variables at the start.
    pub(super) environment: BTreeMap<OsString, OsString>,
    /// What was read from standard input and pipes.
    pub(super) streams: Streams,
    /// The folder in which relative paths start.
    pub(super) current_dir: PathBuf,
    /// The start of the run, by the local clock. Only for what has no time of the server.
    pub(super) now: Timestamp,
    /// The same, by a clock that nobody sets; none where time is virtual.
    pub(super) started: Option<Instant>,
    /// Whether the user can be asked: standard input and standard error are a terminal.
    pub(super) terminal: bool,
    /// Whether a progress bar can be drawn: standard output and standard error are a terminal that
    /// supports it.
    pub(super) draws: bool,
    /// Whether the run is a rehearsal, on an embedded cluster.
    pub(super) rehearsal: bool,
    /// Columns of the terminal of standard output; `None` if it is not a terminal.
    pub(super) width: Option<usize>,
    /// Whether every node is listed (`--verbose`).
    pub(super) verbose: bool,
    /// The endpoints that are notified of a run (`--notify`).
    pub(super) notifications: Option<Notifications>,
}

impl Shell {
    /// Reads the environment of the process, once.
    ///
    /// # Errors
    /// There is no current folder.
    #[expect(clippy::disallowed_methods, reason = "the shell is where these are read")]
    pub(super) fn of_process(printer: Printer) -> io::Result<Self> {
        Ok(Self {
            printer,
            environment: std::env::vars_os().collect(),
            streams: Streams::default(),
            current_dir: std::env::current_dir()?,
            // Whole seconds, as everywhere in Kubernetes.
            now: Timestamp::from_second(Timestamp::now().as_second()).unwrap_or_default(),
            started: Some(Instant::now()),
            terminal: io::stdin().is_terminal() && io::stderr().is_terminal(),
            draws: io::stdout().is_terminal()
                && io::stderr().is_terminal()
                && std::env::var_os("TERM").is_none_or(|term| term != "dumb"),
            rehearsal: false,
            width: terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0.into()),
            verbose: false,
            notifications: None,
        })
    }

    /// The time by the local clock.
    pub(super) fn local_time(&self) -> Timestamp {
        let since = self.started.map(|started| started.elapsed()).unwrap_or_default();
        self.now.checked_add(since).unwrap_or(self.now)
    }

    /// An environment variable that is set and not empty.
    pub(super) fn variable(&self, name: &str) -> Option<&OsStr> {
        let value = self.environment.get(OsStr::new(name))?;
        (!value.is_empty()).then_some(value)
    }

    /// A random salt; the only use of random numbers.
    pub(super) fn salt() -> Result<Salt, Error> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(Error::Random)?;
        Ok(Salt::from_bytes(bytes))
    }

    /// The layout of text for standard output.
    pub(super) fn text_options(&self, verbose: bool) -> TextOptions {
        let verbose = verbose || self.verbose;
        // Styles are always rendered; the printer removes them if they are not wanted.
        TextOptions { verbose, color: true, width: self.width, ..TextOptions::default() }
    }

    /// `$XDG_CACHE_HOME`, else `~/.cache`; relative ones are ignored, as the XDG rules say.
    pub(super) fn cache_dir(&self) -> Option<PathBuf> {
        let own = self.variable("XDG_CACHE_HOME").map(PathBuf::from);
        let home = self.variable("HOME").map(|home| PathBuf::from(home).join(".cache"));
        own.filter(|path| path.is_absolute()).or(home)
    }
}

/// Runs `work` to its end, or until a signal interrupts it.
///
/// `ds-plan` writes nothing to a cluster, so an interrupted run just ends. The signals are handled
/// because process 1 of a container would otherwise ignore them.
pub(super) fn run_until_interrupted(
    work: impl Future<Output = Exit> + Send + 'static,
) -> io::Result<Exit> {
    let signals = runtime::Builder::new_current_thread().enable_all().build()?;
    signals.block_on(async {
        // Signal handlers are installed before the work starts, so that no signal is missed.
        let mut interruption = Interruption::listen()?;
        tokio::select! {
            done = start_on_a_thread(work)? => match done.map_err(io::Error::other)? {
                Ok(exit) => Ok(exit),
                Err(panic) => panic::resume_unwind(panic),
            },
            exit = interruption.wait() => exit,
        }
    })
}

/// Runs `work` on a thread of its own, so that signals are handled while it computes. Its requests
/// and its decoding share that thread: with several, each piece of an answer would wake another
/// one (`cargo bench --bench live`).
fn start_on_a_thread(
    work: impl Future<Output = Exit> + Send + 'static,
) -> io::Result<oneshot::Receiver<thread::Result<Exit>>> {
    let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
    let (sender, receiver) = oneshot::channel();
    thread::Builder::new().name("work".to_owned()).spawn(move || {
        let done = panic::catch_unwind(AssertUnwindSafe(|| runtime.block_on(work)));
        // The receiver is dropped when a signal has interrupted the run.
        let _ = sender.send(done);
    })?;
    Ok(receiver)
}

/// Runs `work`, which receives the first two signals and stops safely, and returns its outcome; for
/// [`Exit::Interrupted`], the outcome of the signal.
///
/// An interrupted process must not just end during a rollout. The third signal ends it.
pub(super) fn run_with_interrupts<W>(
    work: impl FnOnce(mpsc::Receiver<Interrupt>) -> W,
) -> io::Result<Exit>
where
    W: Future<Output = Exit> + Send + 'static,
{
    const MAX_INTERRUPTS: usize = 2;
    let runtime = runtime::Builder::new_multi_thread().enable_all().build()?;
    let exit = runtime.block_on(async {
        let mut interruption = Interruption::listen()?;
        let (sender, receiver) = mpsc::channel(MAX_INTERRUPTS);
        let mut work = tokio::spawn(work(receiver));
        let mut signal = Exit::Interrupted;
        let mut reported = 0;
        loop {
            tokio::select! {
                done = &mut work => return match done {
                    Ok(Exit::Interrupted) => Ok(signal),
                    Ok(exit) => Ok(exit),
                    Err(failed) => match failed.try_into_panic() {
                        Ok(panic) => panic::resume_unwind(panic),
                        Err(cancelled) => Err(io::Error::other(cancelled)),
                    },
                },
                exit = interruption.wait() => {
                    signal = exit?;
                    reported += 1;
                    if reported > MAX_INTERRUPTS {
                        return Ok(signal);
                    }
                    // The channel is full only if the work no longer receives, because it is
                    // ending.
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
