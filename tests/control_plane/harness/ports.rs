//! Loopback ports that nobody else uses.
//!
//! They come from below the range from which the kernel takes the near ends of connections:
//! a client that dials a server which is just restarting would otherwise sometimes be given that
//! very port. A lock on a file keeps a port for its owner among all test processes of a user, also
//! while its server is down.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::process;
use std::sync::atomic::{AtomicU16, Ordering};

use super::cache;

/// Below 32768, where Linux begins to take ports for connections; room for some 400 at a time.
const RANGE: Range<u16> = 26_000..28_000;

/// A port of one's own until drop.
pub(crate) struct Port {
    number: u16,
    /// Locked; the kernel unlocks it whatever ends the process.
    _lock: File,
}

impl Port {
    /// A port that is free now, and that no other test will be given.
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

/// The next port to try; test processes begin at different places.
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
    assert!(again.try_lock().is_err(), "the port is not locked");
}
