//! Loopback ports reserved for this process.
//!
//! They are below the range of ephemeral ports: otherwise a client that connects to a server during
//! its restart could sometimes be given that very port. A lock on a file reserves a port among all
//! test processes of a user, also while its server is down.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

use super::cache;

/// Below 32768, where Linux begins to use ports for connections; enough for about 400 at a time.
const RANGE: Range<u16> = 26_000..28_000;

/// A port that is reserved until drop.
pub(crate) struct Port {
    number: u16,
    /// Locked; the kernel unlocks it however the process ends.
    _lock: File,
}

impl Port {
    /// A free port that no other test gets.
    pub(crate) fn free() -> Self {
        let folder = cache::folder().join("ports");
        cache::make(&folder);
        for _ in RANGE {
            let number = next_candidate();
            let lock = cache::lock_file(&folder.join(number.to_string()));
            let ours = lock.try_lock().is_ok();
            if ours && TcpListener::bind((Ipv4Addr::LOCALHOST, number)).is_ok() {
                return Self { number, _lock: lock };
            }
        }
        panic!("no free loopback port in {RANGE:?}");
    }

    /// The port's number.
    pub(crate) fn number(&self) -> u16 {
        self.number
    }
}

/// The next port to try; test processes start at different ones.
fn next_candidate() -> u16 {
    static STEPS: AtomicU16 = AtomicU16::new(0);
    let length = u32::try_from(RANGE.len()).expect("ports have 16 bits");
    let start = process::id().wrapping_mul(2_654_435_761) >> 16;
    let step = u32::from(STEPS.fetch_add(1, Ordering::Relaxed));
    RANGE.start + u16::try_from((start + step) % length).expect("less than the length")
}

#[test]
fn a_port_is_given_out_once() {
    let (one, other) = (Port::free(), Port::free());
    assert_ne!(one.number(), other.number());
    let again = cache::lock_file(&cache::folder().join(format!("ports/{}", one.number())));
    assert!(again.try_lock().is_err(), "the port is locked by another process");
}
