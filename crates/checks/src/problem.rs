//! Why a check has no answer. Every message is one line, and safe to show: text of others in it went
//! through [`quoted`](crate::quoted::quoted).

use std::time::Duration;

use daemonset::model::{CheckResponse, Unanswered};

/// The reason why a check has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Problem {
    /// The address is not an absolute URL.
    #[error("`{address}` is not an address such as https://prom.example")]
    NotAnAddress { address: String },
    /// The address contains a login.
    #[error("the address of {host} contains a user name; use --check-token {host}=FILE instead")]
    Login { host: String },
    /// A plain connection to a host that is not this machine, and not in the cluster.
    #[error(
        "http is only for this machine and for names of the cluster (*.svc, *.svc.cluster.local); \
         use https for {host}"
    )]
    Plain { host: String },
    /// The query has a placeholder that does not exist.
    #[error("`{{{{{name}}}}}` is not a placeholder: nodes, others, namespace or name")]
    Placeholder { name: String },
    /// The query has `{{` without `}}`.
    #[error("the query has `{{{{` without `}}}}`")]
    OpenPlaceholder,
    /// A name that Kubernetes does not accept would have to go into a query.
    #[error("`{name}` is not a name of Kubernetes, so it is not put into a query")]
    Name { name: String },
    /// The file of a token cannot be used.
    #[error("the token for {host} cannot be read: {reason}")]
    Token { host: String, reason: String },
    /// There are no certificates to trust.
    #[error("https needs the certificates of this machine ({reason}); SSL_CERT_FILE names a file")]
    Certificates { reason: String },
    /// No connection.
    #[error("{at} cannot be reached: {reason}")]
    Unreachable { at: String, reason: String },
    /// The connection ended before the answer did.
    #[error("{at} broke off its answer: {reason}")]
    BrokenOff { at: String, reason: String },
    /// The answer was not complete in time.
    #[error("{at} did not answer within {} s", limit.as_secs_f32())]
    Slow { at: String, limit: Duration },
    /// The answer is too large.
    #[error("{at} answered with more than {limit} MiB; let the query aggregate")]
    Large { at: String, limit: usize },
    /// The answer is compressed, which was not asked for.
    #[error("{at} answered compressed ({encoding}), which was not asked for")]
    Compressed { at: String, encoding: String },
    /// The answer is a redirect.
    #[error("{at} answered with a redirect (status {status}) to {target}, which is not followed")]
    Redirect { at: String, status: u16, target: String },
    /// The server wants a login, or another one.
    #[error("{at} answered with status {status}; --check-token {host}=FILE names a token")]
    NoToken { at: String, host: String, status: u16 },
    /// The answer is not 2xx.
    #[error("{at} answered with status {status}")]
    Status { at: String, status: u16 },
    /// Prometheus explains why it does not answer.
    #[error("{at} answered with an error ({kind}): {message}")]
    Refused { at: String, kind: String, message: String },
    /// The answer is a page.
    #[error("{at} answered with a page (HTML), not as Prometheus does")]
    Page { at: String },
    /// The answer is not JSON of the expected form.
    #[error("{at} did not answer as Prometheus does: {reason}")]
    Malformed { at: String, reason: String },
    /// Too many series.
    #[error("{at} answered with {found} series, more than {limit}; let the query aggregate")]
    ManySeries { at: String, found: usize, limit: usize },
    /// The observed cluster has the answer.
    #[error("it is seen in the cluster, without a request")]
    OfCluster,
    /// Programs are not allowed.
    #[error("it runs a program; --allow-commands allows that")]
    CommandsNotAllowed,
    /// The program is not there.
    #[error("the program `{program}` is not in an absolute folder of PATH")]
    NoProgram { program: String },
    /// A path of a program that would leave the folder of the source.
    #[error("`{program}` is not the name of a program, nor a path below the current folder")]
    ProgramPath { program: String },
    /// A path of a program, while the policies are not those of the current folder.
    #[error(
        "`{program}` is a file of the current folder, whose policies are not used (--repo, --rev, \
         --policy-from or --plan)"
    )]
    OtherSource { program: String },
    /// The program does not start.
    #[error("`{program}` cannot be started: {reason}")]
    NotStarted { program: String, reason: String },
    /// The program did not end in time.
    #[error("`{program}` did not end within {} s", limit.as_secs_f32())]
    SlowProgram { program: String, limit: Duration },
    /// The program ended in another way than with 0 or 1.
    #[error("`{program}` ended with {status}, neither 0 (pass) nor 1 (fail){output}")]
    ExitStatus { program: String, status: String, output: String },
}

impl From<Problem> for CheckResponse {
    fn from(problem: Problem) -> Self {
        Self::Unanswered(Unanswered { message: problem.to_string() })
    }
}
