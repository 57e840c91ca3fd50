//! Aborts a run that loops for ever at one moment of virtual time: no timeout would end it, because
//! virtual time does not advance.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::time::Instant;

/// The limit of polls at one moment; a run that does work needs some hundreds.
const MOST_POLLS: u32 = 2_000;

/// The error of a run that exceeded [`MOST_POLLS`] at one moment.
#[derive(Debug)]
pub(crate) struct Spins {
    /// The number of polls at that moment.
    pub(crate) polls: u32,
}

/// A future that ends with [`Spins`] when its run exceeds [`MOST_POLLS`] at one moment.
pub(crate) struct Bounded<R> {
    run: Pin<Box<R>>,
    moment: Instant,
    polls: u32,
}

impl<R: Future> Bounded<R> {
    pub(crate) fn new(run: R) -> Self {
        Self { run: Box::pin(run), moment: Instant::now(), polls: 0 }
    }
}

impl<R: Future> Future for Bounded<R> {
    type Output = Result<R::Output, Spins>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let now = Instant::now();
        if now != self.moment {
            (self.moment, self.polls) = (now, 0);
        }
        self.polls += 1;
        if self.polls > MOST_POLLS {
            return Poll::Ready(Err(Spins { polls: self.polls }));
        }
        self.run.as_mut().poll(context).map(Ok)
    }
}

#[test]
fn a_run_that_loops_for_ever_is_aborted() {
    let found = embedded::on_virtual_time(async {
        let busy = Bounded::new(async {
            loop {
                tokio::task::yield_now().await;
            }
        });
        let patient = Bounded::new(async {
            for _ in 0..2 * MOST_POLLS {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        });
        let _: Result<(), Spins> = patient.await;
        let busy: Result<(), Spins> = busy.await;
        busy.unwrap_err().polls
    });
    assert_eq!(found.unwrap(), MOST_POLLS + 1);
}
