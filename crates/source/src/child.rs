//! Waits for a child process, with a timeout.

use std::io;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::Duration;

const POLL: Duration = Duration::from_millis(10);

/// Waits for `child` and kills it after `timeout`, in which case it returns `None`. Uses no clock:
/// it adds up the time that it slept.
pub fn wait(mut child: Child, timeout: Duration) -> io::Result<Option<ExitStatus>> {
    let mut waited = Duration::ZERO;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if waited >= timeout {
            // It may have exited meanwhile; either way it is gone.
            let _ = child.kill();
            let _ = child.wait();
            return Ok(None);
        }
        thread::sleep(POLL);
        waited += POLL;
    }
}
