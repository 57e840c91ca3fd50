//! The log of requests and decisions on standard error: `-v`, `-vv` and `RUST_LOG`.
//!
//! Only events of this project's own crates are logged. Those never contain headers, bodies or
//! templates, so no setting can make credentials or secret values appear.

use std::io;

use tracing::{Level, Metadata};
use tracing_subscriber::filter::{EnvFilter, FilterExt as _, filter_fn};
use tracing_subscriber::fmt::{self, time};
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::registry;

use crate::error::Error;
use crate::printer::Printer;
use crate::shell::Shell;

/// The environment variable that selects what is logged.
const VARIABLE: &str = "RUST_LOG";

/// The crates whose events are logged.
const OWN: [&str; 11] = [
    "checks",
    "cluster",
    "daemonset",
    "ds_plan",
    "embedded",
    "executor",
    "host",
    "manifest",
    "planner",
    "source",
    "ssa",
];

/// Starts the log, if `-v` is given `verbose` times, or `RUST_LOG` is set.
///
/// # Errors
/// `RUST_LOG` is not a filter.
pub(super) fn begin(verbose: u8, shell: &Shell) -> Result<(), Error> {
    let Some(filter) = filter(verbose, shell)? else { return Ok(()) };
    let printer = shell.printer;
    let lines = fmt::layer()
        .with_writer(move || Lines(printer))
        .with_ansi(false)
        .with_target(false)
        .with_timer(time::uptime())
        .with_filter(filter.and(filter_fn(is_own)));
    // Fails only if there is a log already.
    let _ = tracing::subscriber::set_global_default(registry().with(lines));
    Ok(())
}

fn filter(verbose: u8, shell: &Shell) -> Result<Option<EnvFilter>, Error> {
    let level = match verbose {
        0 => None,
        1 => Some(Level::INFO),
        _ => Some(Level::DEBUG),
    };
    let of_flag = level.map(|level| EnvFilter::new(level.as_str()));
    let Some(text) = shell.variable(VARIABLE) else { return Ok(of_flag) };
    let text = text.to_string_lossy();
    let filter = EnvFilter::try_new(&text).map_err(|_| Error::LogFilter(text.into_owned()))?;
    Ok(Some(filter))
}

fn is_own(event: &Metadata<'_>) -> bool {
    let name = event.target().split("::").next().unwrap_or_default();
    OWN.contains(&name)
}

/// Writes whole lines by the printer.
struct Lines(Printer);

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.err(render::neutral::text(&String::from_utf8_lossy(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
