//! Asks the checks of a policy that somebody outside of the cluster answers: Prometheus, an HTTP
//! endpoint, a program.
//!
//! Whoever answers is not trusted: [`Client::ask`] always returns, in limited time and memory, and
//! what is not a usable answer is [`Unanswered`](daemonset::model::Unanswered) with one line that is
//! safe to show. It decides nothing about the rollout: whether an answer is a pass or a fail is
//! judged in `planner`. The server's clock is an argument, in the question.
//!
//! The same transport posts notifications about a run ([`Webhook`]), under the same limits.
//!
//! The client is ours, on the crates that the cluster's client uses: it has to refuse what other
//! clients do by themselves (redirects, unpacking, proxies, retries).

mod address;
mod placeholders;
mod problem;
mod program;
mod prometheus;
mod quoted;
mod token;
mod transport;
mod web;
mod webhook;

use std::time::Duration;

pub use program::Commands;
pub use token::{HostToken, NotHostAndFile};
pub use webhook::{NotAWebhook, SIGNATURE_HEADER, SigningKey, Undelivered, Webhook};

use daemonset::model::{CheckEndpoint, CheckQuestion, CheckResponse, Unanswered};
use problem::Problem;
use quoted::quoted;
use transport::Transport;

/// Time that an answer may take.
pub const TIME_LIMIT: Duration = Duration::from_secs(10);

/// What the person who started the run allows.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Tokens (`--check-token`).
    pub tokens: Vec<HostToken>,
    /// Where programs are; `None` if none may run (without `--allow-commands`).
    pub commands: Option<Commands>,
    /// Time that an answer may take: [`TIME_LIMIT`], less in tests.
    pub time_limit: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { tokens: Vec::new(), commands: None, time_limit: TIME_LIMIT }
    }
}

/// Asks checks.
#[derive(Debug)]
pub struct Client {
    transport: Transport,
    commands: Option<Commands>,
    time_limit: Duration,
}

impl Default for Client {
    /// A client without tokens, which runs no programs.
    fn default() -> Self {
        Self::new(Settings::default())
    }
}

impl Client {
    /// A client; nothing is sent or read yet.
    pub fn new(settings: Settings) -> Self {
        let Settings { tokens, commands, time_limit } = settings;
        Self { transport: Transport::new(tokens), commands, time_limit }
    }

    /// Asks a check once.
    pub async fn ask(&self, question: &CheckQuestion) -> CheckResponse {
        let asked = match &question.endpoint {
            CheckEndpoint::Prometheus { address, query } => {
                let asked = prometheus::ask(&self.transport, address, query, question);
                self.in_time(asked, address).await.map(CheckResponse::Series)
            }
            CheckEndpoint::Http { url, status } => {
                let asked = web::ask(&self.transport, url, *status, question);
                self.in_time(asked, url).await
            }
            CheckEndpoint::Command(words) => match &self.commands {
                Some(commands) => commands.ask(words, question, self.time_limit).await,
                None => Err(Problem::CommandsNotAllowed),
            },
            CheckEndpoint::Cluster => Err(Problem::OfCluster),
        };
        let response = asked.unwrap_or_else(CheckResponse::from);
        if let CheckResponse::Unanswered(Unanswered { message }) = &response {
            tracing::debug!("check {}: {message}", quoted(&question.name));
        }
        response
    }

    async fn in_time<T>(
        &self,
        asked: impl Future<Output = Result<T, Problem>>,
        address: &str,
    ) -> Result<T, Problem> {
        let slow = |_| {
            let at = address::without_secrets(address);
            Problem::Slow { at, limit: self.time_limit }
        };
        tokio::time::timeout(self.time_limit, asked).await.map_err(slow)?
    }
}
