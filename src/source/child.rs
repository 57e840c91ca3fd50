//! Waits for a program that was started, but not for ever.

use std::io;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::Duration;

const POLL: Duration = Duration::from_millis(10);

/// Waits for `child`, and ends it after `timeout`; `None` then. No clock: time is what was slept.
pub(crate) fn wait(mut child: Child, timeout: Duration) -> io::Result<Option<ExitStatus>> {
    let mut waited = Duration::ZERO;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if waited >= timeout {
            // It may have ended by itself meanwhile; either way it is gone.
            let _ = child.kill();
            let _ = child.wait();
            return Ok(None);
        }
        thread::sleep(POLL);
        waited += POLL;
    }
}
