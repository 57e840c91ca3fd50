//! Waiting for a condition that another program brings about.

use std::fmt::Debug;
use std::thread;
use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_millis(50);

/// Polls `done` until it is true; panics with `what` at the timeout.
#[track_caller]
pub(crate) fn wait_until(what: &str, limit: Duration, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < limit, "timed out after {limit:?}: {what}");
        thread::sleep(INTERVAL);
    }
}

/// Reads a value until it is `expected`; panics with the last one at the timeout.
#[track_caller]
pub(crate) fn wait_for<T, E>(what: &str, limit: Duration, expected: E, mut read: impl FnMut() -> T)
where
    T: PartialEq<E> + Debug,
    E: Debug,
{
    let start = Instant::now();
    loop {
        let value = read();
        if value == expected {
            return;
        }
        assert!(
            start.elapsed() < limit,
            "timed out after {limit:?}: {what} is {value:?}, expected {expected:?}"
        );
        thread::sleep(INTERVAL);
    }
}

/// `wait_until` for async conditions.
pub(crate) async fn wait_until_async(
    what: &str,
    limit: Duration,
    mut done: impl AsyncFnMut() -> bool,
) {
    let start = Instant::now();
    while !done().await {
        assert!(start.elapsed() < limit, "timed out after {limit:?}: {what}");
        tokio::time::sleep(INTERVAL).await;
    }
}

#[test]
#[should_panic(expected = "timed out after 20ms: the condition")]
fn a_timeout_names_the_condition() {
    wait_until("the condition", Duration::from_millis(20), || false);
}

#[test]
#[should_panic(expected = "timed out after 20ms: the value is 2, expected 3")]
fn a_timeout_names_the_value() {
    wait_for("the value", Duration::from_millis(20), 3, || 2);
}
