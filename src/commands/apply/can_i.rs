//! `ds-apply can-i`: the permissions that a run needs, and whether the user has them.

mod errands;

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::flags::PolicyFlags;
use super::session::Session;
use crate::error::Error;
use crate::exit::Exit;
use crate::flags::name::{GivenName, NAME};
use crate::flags::{ManagedByFlag, heading};
use crate::input::policies;
use crate::output::{Format, formats};
use crate::warnings;
use cluster::{Permission, Verdict};
use daemonset::model::{DaemonSetKey, NamespaceName};
use errands::Known;
use executor::permissions::{self, Finding, Need, Weight};

/// Printed below the table if no policy was given.
const WITHOUT_POLICIES: &str =
    "Policies are not part of this; --policy FILE adds what a run needs under one";

/// List the permissions that a run needs, and whether you have them
///
/// Writes nothing. Exits with 1 when a required permission is missing or cannot be checked;
/// optional ones do not count. What a run needs under a policy (prePull, approvals, checks of pods,
/// sharedBudget, managedBy) is part of the list only with --policy. A policy that selects by labels
/// counts for DaemonSets that exist.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// DaemonSets: NAME, ds/NAME or NAMESPACE/NAME; default: all of the namespace (-n)
    #[arg(value_name = NAME)]
    pub(super) names: Vec<GivenName>,

    /// Controller of the DaemonSets, overriding their policies; default: daemonset-controller
    #[arg(long, value_name = "CONTROLLER")]
    managed_by: Option<ManagedByFlag>,

    /// Include the permissions that --prune needs
    #[arg(long)]
    prune: bool,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    #[arg(value_parser = formats([Format::Text, Format::Json]))]
    #[arg(help_heading = heading::OUTPUT)]
    output: Format,

    #[command(flatten)]
    policies: PolicyFlags,
}

pub(super) async fn run(
    args: &Args,
    keys: &[DaemonSetKey],
    namespace: &NamespaceName,
    session: &mut Session,
) -> Result<Exit, Error> {
    let policies = &policies::of_files(&args.policies.policy, &session.shell)?;
    let read = errands::namespaces(keys, namespace, policies);
    let managed_by = args.managed_by.map(Into::into);
    let records = errands::may_select_records(policies, managed_by);
    let existing = session
        .unless_interrupted(async |_, cluster| errands::existing(read, records, cluster).await)
        .await?;
    let known = Known { policies, existing, managed_by, prune: args.prune };
    let not_selected = known.not_selected(keys)?.into_iter().map(warnings::not_selected);
    warnings::print(&not_selected.collect::<Vec<_>>(), session.shell.printer);
    let needs = permissions::needs(&known.errands(keys, namespace)?);
    let findings = session
        .unless_interrupted(async |_, cluster| Ok(permissions::ask(cluster, needs).await))
        .await?;
    let all = findings.iter().filter(|one| one.need.weight == Weight::Required);
    let all = all.map(|one| &one.verdict).all(|verdict| *verdict == Verdict::Allowed);
    let text = match args.output {
        Format::Json => format!("{:#}\n", document(&findings, all, !policies.is_empty())),
        _text if policies.is_empty() => {
            format!("{}\n{WITHOUT_POLICIES}\n", text(&findings, all))
        }
        _text => text(&findings, all),
    };
    session.shell.printer.out(text).map_err(Error::Output)?;
    Ok(if all { Exit::Done } else { Exit::Failed })
}

/// A table with one row per permission.
fn text(findings: &[Finding], all: bool) -> String {
    let head = ["RESOURCE", "VERB", "NAMESPACE", "ALLOWED", "FOR"].map(str::to_owned);
    let rows: Vec<[String; 5]> = std::iter::once(head).chain(findings.iter().map(row)).collect();
    let widths = [0, 1, 2, 3].map(|at| rows.iter().map(|row| row[at].len()).max().unwrap_or(0));
    let mut text = String::new();
    for [resource, verb, namespace, allowed, purpose] in &rows {
        let [a, b, c, d] = widths;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{resource:a$}  {verb:b$}  {namespace:c$}  {allowed:d$}  {purpose}");
    }
    if !all {
        let short = findings
            .iter()
            .filter(|one| one.need.weight == Weight::Required && one.verdict != Verdict::Allowed);
        let roles: std::collections::BTreeSet<_> = short.map(|one| one.need.role).collect();
        let roles = roles.iter().map(|role| format!("{} ({})", role.name(), role.file()));
        let _ = writeln!(text, "\nClusterRole: {}", roles.collect::<Vec<_>>().join(", "));
    }
    text
}

fn row(finding: &Finding) -> [String; 5] {
    let Finding { need, verdict } = finding;
    let Need { permission, names: _, purpose, weight, role: _ } = need;
    let Permission { verb, resource, namespace } = permission;
    let optional = match weight {
        Weight::Required => "",
        Weight::Optional => " (optional)",
    };
    [
        resource.to_string(),
        verb.to_string(),
        namespace.as_ref().map_or_else(|| "*".to_owned(), ToString::to_string),
        word(verdict).to_owned(),
        format!("{purpose}{optional}"),
    ]
}

fn word(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Allowed => "yes",
        Verdict::Denied => "no",
        Verdict::Unknown { why: _ } => "unknown",
    }
}

fn document(findings: &[Finding], all: bool, with_policies: bool) -> Value {
    let one = |finding: &Finding| {
        let Finding { need, verdict } = finding;
        let Need { permission, names: _, purpose, weight, role } = need;
        let Permission { verb, resource, namespace } = permission;
        let mut one = json!({
            "verb": verb.as_str(),
            "apiGroup": resource.group(),
            "resource": resource.name(),
            "namespace": namespace,
            "allowed": word(verdict),
            "optional": *weight == Weight::Optional,
            "for": purpose.to_string(),
            "clusterRole": role.name(),
        });
        if let Verdict::Unknown { why } = verdict {
            one["why"] = why.clone().into();
        }
        one
    };
    let permissions: Vec<Value> = findings.iter().map(one).collect();
    json!({ "allAllowed": all, "withPolicies": with_policies, "permissions": permissions })
}
