//! Waiting for something that another program brings about.

use std::fmt::Debug;
use std::thread;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(50);

/// Asks `done` again and again until it says yes; panics with `what` when the time is up.
#[track_caller]
pub(crate) fn wait_until(what: &str, limit: Duration, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < limit, "waited {limit:?} in vain: {what}");
        thread::sleep(PAUSE);
    }
}

/// Reads a value again and again until it is `expected`; panics with the last one when the time
/// is up.
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
            "waited {limit:?} in vain: {what} is {value:?}, expected {expected:?}"
        );
        thread::sleep(PAUSE);
    }
}

/// `wait_until` for questions that are futures.
pub(crate) async fn wait_until_async(
    what: &str,
    limit: Duration,
    mut done: impl AsyncFnMut() -> bool,
) {
    let start = Instant::now();
    while !done().await {
        assert!(start.elapsed() < limit, "waited {limit:?} in vain: {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

#[test]
#[should_panic(expected = "waited 20ms in vain: the cows come home")]
fn waiting_in_vain_says_for_what() {
    wait_until("the cows come home", Duration::from_millis(20), || false);
}

#[test]
#[should_panic(expected = "waited 20ms in vain: the herd is 2, expected 3")]
fn waiting_in_vain_for_a_value_says_what_it_is() {
    wait_for("the herd", Duration::from_millis(20), 3, || 2);
}
