//! `ds-plan checks`: what the checks of policies answer now, and how often they would have passed.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::ValueHint;
use jiff::{SignedDuration, Timestamp};

use crate::atomic_write;
use crate::check_flags::CheckFlags;
use crate::comparison::{self, Compared};
use crate::connection::Connection;
use crate::error::Error;
use crate::exit::Exit;
use crate::flags::{GlobalFlags, NarrowFlags, SourceFlags, heading};
use crate::input::Desired;
use crate::output::{self, Format, Options, formats};
use crate::prune::PruneFlags;
use crate::shell::Shell;
use checks::Client;
use daemonset::model::{DesiredDaemonSet, NeighbourQuery, Neighbours, Snapshot};
use planner::check_answers::{CheckAnswers, CheckAnswersKind, RecordedAnswer};
use planner::check_report::{
    self, Answering, CheckReport, CheckReportKind, CheckVerdict, CheckedNodes, DaemonSetChecks,
};
use planner::plan::{
    self, ApiVersion, ClusterSummary, DaemonSetPlan, Detail, Intent, Plan, Warning,
};
use planner::rollout::Extent;
use render::MarkdownOptions;

/// Ask the checks of the policies now, and tell how often each would have passed
///
/// Preconditions and gates of the policies in the source. Exits with 0 if all pass, with 4 if any
/// fails, and with 8 if any is unknown: its server does not answer, or its query has no series.
///
/// The answer is that of the newest sample; a gate of a rollout is judged over its whole step. With
/// --snapshot, only the nodes come from the recording: the checks are asked now all the same, and
/// those about other pods are unknown.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    source: SourceFlags,

    #[command(flatten)]
    narrow: NarrowFlags,

    #[command(flatten)]
    checks: CheckFlags,

    /// Also count how many samples of this time would have passed, failed and been unknown: 24h, 7d
    ///
    /// Each sample is judged by itself. A check that never passes, or always does, is a warning.
    /// Long times have fewer samples: 1,000 at most. Checks by HTTP and by program have no past.
    #[arg(long, value_name = "TIME", value_parser = over, help_heading = heading::OUTPUT)]
    over: Option<SignedDuration>,

    /// Also save the answers as JSON, atomically, for `ds-apply --rehearse --check-answers`
    ///
    /// Of queries only, for the time of --over. A rehearsal gets them from its beginning on.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(help_heading = heading::OUTPUT)]
    record: Option<PathBuf>,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    #[arg(value_parser = formats([
        Format::Text, Format::Json, Format::Yaml, Format::Markdown, Format::Html,
    ]))]
    #[arg(help_heading = heading::OUTPUT)]
    output: Format,
}

/// Parses `--over`: a duration, in which a day has 24 hours.
fn over(text: &str) -> Result<SignedDuration, String> {
    let error = || format!("`{text}` is not a duration such as 90m, 24h or 7d");
    let (days, rest) = match text.split_once('d') {
        Some((days, rest)) => (days.parse::<u16>().map_err(|_| error())?, rest),
        None => (0, text),
    };
    let rest = match rest {
        "" if days > 0 => SignedDuration::ZERO,
        rest => rest.parse().map_err(|_| error())?,
    };
    let length = SignedDuration::from_hours(24 * i64::from(days)).checked_add(rest);
    length.filter(SignedDuration::is_positive).ok_or_else(error)
}

pub(super) async fn run(args: &Args, global: &GlobalFlags, shell: &Shell) -> Result<Exit, Error> {
    let client = args.checks.client(args.source.has_policies_of_folder(), shell)?;
    let Read { plan, daemon_sets, snapshot, neighbours, now, warnings } =
        read(args, global, shell).await?;
    let neighbours = neighbours.as_deref().map_err(String::as_str);
    let answering = Answering { snapshot: &snapshot, neighbours };
    let asking = Asking { client, answering, now, over: args.over };
    let (report, answers) = asking.ask_all(&plan, &daemon_sets, warnings).await;
    if let Some(file) = &args.record {
        let written = atomic_write::write(file, &render::json(&answers)?);
        written.map_err(|source| Error::Save { file: file.clone(), source })?;
    }
    let exit = match report.verdict() {
        CheckVerdict::Pass => Exit::Done,
        CheckVerdict::Fail => Exit::Paused,
        CheckVerdict::Unknown => Exit::Waiting,
    };
    let verbose = global.is_verbose();
    let markdown = &MarkdownOptions { verbose, ..MarkdownOptions::default() };
    let options = Options { format: args.output, verbose, markdown, nodes: &[] };
    output::print(report, &options, shell)?;
    Ok(exit)
}

/// What was read from the source and the cluster.
struct Read {
    plan: Plan,
    daemon_sets: Vec<DesiredDaemonSet>,
    snapshot: Snapshot,
    /// The other pods that checks look at; or why they are not known.
    neighbours: Result<Vec<Neighbours>, String>,
    /// Now, by the server's clock; by the local one with a recording.
    now: Timestamp,
    warnings: Vec<Warning>,
}

async fn read(args: &Args, global: &GlobalFlags, shell: &Shell) -> Result<Read, Error> {
    let Compared { snapshot, desired, connection } =
        comparison::read(&args.source, None, &args.narrow, &PruneFlags::default(), global, shell)
            .await?;
    let Desired {
        daemon_sets,
        namespaces,
        base: _,
        removed: _,
        source,
        version: _,
        mut warnings,
        assignment: _,
        others: _,
    } = desired;
    let neighbours = neighbours(&connection, &daemon_sets).await;
    let now = match connection {
        Connection::Live(_) => snapshot.observed_at,
        Connection::Recorded(_) => shell.now,
    };
    let plan = plan::plan(plan::Input {
        snapshot: &snapshot,
        desired: &daemon_sets,
        created_namespaces: &namespaces,
        force_conflicts: &BTreeSet::new(),
        prune: None,
        base: None,
        removed: &BTreeSet::new(),
        source,
        warnings: Vec::new(),
        created_at: shell.now,
        extent: &Extent::All,
        intent: Intent::Preview,
        detail: Detail { all_nodes: true, show_values: plan::ShownValues::None },
    });
    // A rollout that goes back asks none of the checks.
    warnings.extend(plan.warnings.iter().filter(|it| it.code == plan::WAY_BACK).cloned());
    Ok(Read { plan, daemon_sets, snapshot, neighbours, now, warnings })
}

/// The other pods that the checks of all policies look at. One list for each selector.
async fn neighbours(
    connection: &Connection,
    daemon_sets: &[DesiredDaemonSet],
) -> Result<Vec<Neighbours>, String> {
    let checks = daemon_sets.iter().map(|one| one.policy_spec());
    let queries = NeighbourQuery::of_all(checks.collect::<Vec<_>>().iter().map(|policy| &**policy));
    match connection {
        Connection::Live(cluster) => {
            cluster.neighbours(&queries).await.map_err(|error| error.to_string())
        }
        Connection::Recorded(_) => Err("a recording has no other pods".to_owned()),
    }
}

/// How the checks are asked.
struct Asking<'a> {
    client: Client,
    /// The cluster, for the checks that it answers itself.
    answering: Answering<'a>,
    now: Timestamp,
    over: Option<SignedDuration>,
}

impl Asking<'_> {
    /// Asks the checks of all policies, one after the other.
    async fn ask_all(
        &self,
        plan: &Plan,
        daemon_sets: &[DesiredDaemonSet],
        mut warnings: Vec<Warning>,
    ) -> (CheckReport, CheckAnswers) {
        let mut answers = CheckAnswers {
            api_version: ApiVersion::V1Alpha1,
            kind: CheckAnswersKind::CheckAnswers,
            from: self.now,
            until: self.now,
            answers: Vec::new(),
        };
        let mut asked = Vec::new();
        for daemon_set in daemon_sets {
            let of_it = |plan: &&DaemonSetPlan| plan.key() == daemon_set.key;
            let nodes = plan.daemon_sets.iter().find(of_it).map(CheckedNodes::of);
            let one = self.ask(daemon_set, nodes.unwrap_or_default(), &mut answers, &mut warnings);
            asked.extend(one.await);
        }
        asked.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name)));
        let report = CheckReport {
            api_version: ApiVersion::V1Alpha1,
            kind: CheckReportKind::CheckReport,
            cluster: ClusterSummary::from(self.answering.snapshot),
            daemon_sets: asked,
            warnings,
        };
        (report, answers)
    }

    /// Asks the checks of one policy; `None` if it has none.
    async fn ask(
        &self,
        daemon_set: &DesiredDaemonSet,
        nodes: CheckedNodes,
        answers: &mut CheckAnswers,
        warnings: &mut Vec<Warning>,
    ) -> Option<DaemonSetChecks> {
        let policy = daemon_set.policy_spec();
        let to_ask = check_report::to_ask(&policy, &daemon_set.key, &nodes, self.now, self.over);
        let mut checks = Vec::new();
        for one in &to_ask {
            let response = match &one.question {
                Some(question) => Some(self.client.ask(question).await),
                None => None,
            };
            let asked = match response {
                Some(_) => one.asked(response.as_ref(), self.over.is_some()),
                None => one.observed(&daemon_set.key, &nodes, self.answering),
            };
            warnings.extend(check_report::warnings(&daemon_set.key, one.check, &asked));
            checks.push(asked);
            if let Some((question, response)) = one.question.as_ref().zip(response.as_ref())
                && let Some(answer) = RecordedAnswer::of(question, response)
            {
                answers.from = answers.from.min(question.from);
                answers.answers.push(answer);
            }
        }
        let (namespace, name) = (daemon_set.key.namespace.clone(), daemon_set.key.name.clone());
        let CheckedNodes { nodes, others, is_rolling_out } = nodes;
        let (nodes, others) = (nodes.len(), others.len());
        (!checks.is_empty()).then_some(DaemonSetChecks {
            namespace,
            name,
            nodes,
            others,
            is_rolling_out,
            checks,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_has_24_hours() {
        for (text, want) in [
            ("7d", Some(7 * 86_400)),
            ("1d12h", Some(36 * 3_600)),
            ("90m", Some(5_400)),
            ("1h30m", Some(5_400)),
            ("0s", None),
            ("0d", None),
            ("-1h", None),
            ("d", None),
            ("7days", None),
            ("7", None),
        ] {
            assert_eq!(over(text).ok().map(|it| it.as_secs()), want, "{text}");
        }
    }
}
