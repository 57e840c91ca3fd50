//! Whom a run asks the checks of a policy. The requests are elsewhere: to Prometheus, or to the fault
//! file of a rehearsal.

use std::pin::Pin;
use std::time::Duration;

use daemonset::model::{CheckQuestion, CheckResponse, Unanswered};

/// The longest time for an answer, whatever the limits of the one who asks are: a run must not wait
/// for ever.
const LONGEST: Duration = Duration::from_mins(2);

/// An answer that is under way.
pub type Asked<'a> = Pin<Box<dyn Future<Output = CheckResponse> + Send + 'a>>;

/// Asks the checks of a policy.
pub trait Ask: Send + Sync {
    /// Asks one question. Every failure is a response, too.
    fn ask<'a>(&'a self, question: &'a CheckQuestion) -> Asked<'a>;
}

/// Asks, with a limit of time.
pub(super) async fn answer(ask: &dyn Ask, question: &CheckQuestion) -> CheckResponse {
    tokio::time::timeout(LONGEST, ask.ask(question)).await.unwrap_or_else(|_| {
        let message = format!("no answer in {} s", LONGEST.as_secs());
        CheckResponse::Unanswered(Unanswered { message })
    })
}
