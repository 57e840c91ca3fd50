//! `ds-apply can-i`: the permissions that a run needs, and whether the user has them.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::session::Session;
use crate::error::Error;
use crate::exit::Exit;
use crate::flags::name::{GivenName, NAME};
use crate::flags::{ManagedByFlag, heading};
use crate::output::{Format, formats};
use cluster::{Permission, Verdict};
use daemonset::model::{DaemonSetKey, ManagedBy, NamespaceName};
use executor::permissions::{self, Errand, Finding, Need, Weight, Work};

/// List the permissions that a run needs, and whether you have them
///
/// Writes nothing. Exits with 1 when a required permission is missing or cannot be checked;
/// optional ones do not count.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Args {
    /// DaemonSets: NAME, ds/NAME or NAMESPACE/NAME; default: all of the namespace (-n)
    #[arg(value_name = NAME)]
    pub(super) names: Vec<GivenName>,

    /// Controller that creates pods and revisions
    #[arg(long, value_name = "CONTROLLER", default_value = "daemonset-controller")]
    managed_by: ManagedByFlag,

    /// Include the permissions that --prune needs
    #[arg(long)]
    prune: bool,

    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "text")]
    #[arg(value_parser = formats([Format::Text, Format::Json]))]
    #[arg(help_heading = heading::OUTPUT)]
    output: Format,
}

pub(super) async fn run(
    args: &Args,
    keys: &[DaemonSetKey],
    namespace: &NamespaceName,
    session: &mut Session,
) -> Result<Exit, Error> {
    let findings = session
        .unless_interrupted(async |_, cluster| {
            let needs = permissions::needs(&errands(args, keys, namespace));
            Ok(permissions::ask(cluster, needs).await)
        })
        .await?;
    let all = findings.iter().filter(|one| one.need.weight == Weight::Required);
    let all = all.map(|one| &one.verdict).all(|verdict| *verdict == Verdict::Allowed);
    let text = match args.output {
        Format::Json => format!("{:#}\n", document(&findings, all)),
        _text => text(&findings, all),
    };
    session.shell.printer.out(text).map_err(Error::Output)?;
    Ok(if all { Exit::Done } else { Exit::Failed })
}

/// Everything that a run can do to these DaemonSets, or to all of the namespace if there are none.
fn errands(args: &Args, keys: &[DaemonSetKey], namespace: &NamespaceName) -> Vec<Errand> {
    let managed_by: ManagedBy = args.managed_by.into();
    let mut works = vec![Work::Change { creates: true }];
    works.extend(args.prune.then_some(Work::Remove));
    let of = |work| {
        let named = keys.iter().map(move |key| Errand::with(key, managed_by, work));
        let named: Vec<Errand> = named.collect();
        if named.is_empty() {
            vec![Errand::any_in(namespace.clone(), managed_by, work)]
        } else {
            named
        }
    };
    works.into_iter().flat_map(of).collect()
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

fn document(findings: &[Finding], all: bool) -> Value {
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
    json!({ "allAllowed": all, "permissions": permissions })
}
