//! A clock that counts the time while the machine is suspended, as leases do.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// A monotonic clock that also runs while the machine is suspended. The caller passes one in.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Duration + Send + Sync>);

impl Clock {
    /// The machine's clock.
    pub fn of_machine() -> Self {
        Self::new(since_boot)
    }

    /// Any other clock, such as a test's.
    pub fn new(read: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    /// The time since an arbitrary fixed moment.
    pub fn now(&self) -> Duration {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}

/// `CLOCK_BOOTTIME` counts suspends; so does the monotonic clock of macOS.
#[cfg(unix)]
fn since_boot() -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    #[cfg(any(target_os = "linux", target_os = "android"))]
    let clock = ClockId::Boottime;
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let clock = ClockId::Monotonic;
    clock_gettime(clock).try_into().unwrap_or_default()
}

/// The performance counter of Windows counts suspends.
#[cfg(not(unix))]
#[expect(clippy::disallowed_methods, reason = "the caller passes this clock in")]
fn since_boot() -> Duration {
    use std::sync::OnceLock;
    use std::time::Instant;
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_of_the_machine_runs() {
        let clock = Clock::of_machine();
        let before = clock.now();
        assert!(before > Duration::ZERO && clock.now() >= before);
    }
}
