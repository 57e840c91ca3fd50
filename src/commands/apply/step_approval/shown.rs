//! The evidence and the result of an approval, as text and as one JSON document.

use std::fmt::Write as _;

use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use super::request::Target;
use crate::commands::apply::approve::DRY_RUN;
use crate::error::Error;
use crate::output::Format;
use crate::shell::Shell;
use daemonset::model::short_commit;
use planner::approval::{ApprovalStatus, EarlierStep, Evidence, UpdatedNode};
use planner::plan::{ApiVersion, FieldChange, SourceInfo};
use planner::words::{agree, count};
use render::neutral;

/// Maximum number of nodes that are listed as text; JSON has all.
const MOST_NODES: usize = 20;

/// Characters of a digest that are shown as text: `sha256:` and twelve digits.
const SHORT_DIGEST: usize = 19;

/// What is shown about an approval.
pub(super) struct Shown<'a> {
    /// What is approved.
    pub target: &'a Target<'a>,
    /// The origin of the manifests.
    pub source: &'a SourceInfo,
    /// The format.
    pub output: Format,
}

impl Shown<'_> {
    /// Prints what is approved, and who runs it. With JSON, it is a part of the result.
    pub(super) fn evidence(&self, shell: &Shell) -> Result<(), Error> {
        match self.output {
            Format::Json => Ok(()),
            _text => shell.printer.out(self.text()).map_err(Error::Output),
        }
    }

    /// Prints why an earlier approval is void, if there is one.
    pub(super) fn void(&self, before: &ApprovalStatus, shell: &Shell) -> Result<(), Error> {
        match (before, self.output) {
            (ApprovalStatus::Given { .. } | ApprovalStatus::Missing, _) | (_, Format::Json) => {
                Ok(())
            }
            (ApprovalStatus::Void(why), _) => {
                shell.printer.out(format!("an earlier approval is void: {why}\n"))
            }
        }
        .map_err(Error::Output)
    }

    /// Prints that the step is approved, by whom and when.
    pub(super) fn result(
        &self,
        words: &str,
        (by, at): (&str, Timestamp),
        shell: &Shell,
    ) -> Result<(), Error> {
        let text = match self.output {
            Format::Json => format!("{:#}\n", self.document(Some((by, at)))),
            _text => {
                let (step, key) = (&self.target.step.step.name, self.target.plan.key());
                let line = format!("step {step} of {key} {words} by {by} at {at:.0}");
                format!("{}\n", neutral::line(&line))
            }
        };
        shell.printer.out(text).map_err(Error::Output)
    }

    /// Prints that nothing was approved: it was a dry run.
    pub(super) fn not_approved(&self, shell: &Shell) -> Result<(), Error> {
        match self.output {
            Format::Json => {
                shell.printer.out(format!("{:#}\n", self.document(None))).map_err(Error::Output)?;
            }
            _text => {}
        }
        shell.printer.remark(DRY_RUN);
        Ok(())
    }

    /// The document; without an approval of a dry run.
    fn document(&self, approved: Option<(&str, Timestamp)>) -> serde_json::Value {
        let (by, at) = approved.unzip();
        let Target { step, check, plan, evidence, noted: _ } = self.target;
        let SourceInfo { commit, subject, .. } = self.source;
        json!({
            "apiVersion": ApiVersion::V1Alpha1,
            "kind": "StepApproval",
            "daemonSet": plan.key().to_string(),
            "uid": check.uid,
            "step": step.step.name,
            "approvedBy": by,
            "approvedAt": at,
            "targetTemplate": check.template,
            "commit": commit,
            "subject": subject,
            "revision": plan.revision.target,
            "images": self.images().collect::<Vec<_>>(),
            "evidence": evidence,
        })
    }

    /// The images that change.
    fn images(&self) -> impl Iterator<Item = &FieldChange> {
        self.of_template().filter(|change| change.path.rsplit('.').next() == Some("image"))
    }

    /// The fields of the template that change.
    fn of_template(&self) -> impl Iterator<Item = &FieldChange> {
        self.target.plan.changes.iter().filter(|change| change.path.starts_with("spec.template."))
    }

    fn text(&self) -> String {
        let Target { step, check, plan, evidence, noted: _ } = self.target;
        let mut lines = vec![format!("step {} of {}", step.step, plan.key())];
        if let Some(commit) = &self.source.commit {
            let subject = self.source.subject.as_deref().unwrap_or_default();
            lines.push(format!("  commit {} {subject}", short_commit(commit)));
        }
        let number = plan.revision.target.number;
        let template: String = check.template.chars().take(SHORT_DIGEST).collect();
        lines.push(format!("  revision {number}, template {template}"));
        lines.extend(self.images().map(image));
        let more = self.of_template().count() - self.images().count();
        if more > 0 {
            lines.push(format!("  {} of the template", count(more, "more changed field")));
        }
        lines.extend(evidence.steps.iter().map(earlier));
        lines.extend(nodes(evidence, check.now));
        let lines = lines.iter().map(|line| neutral::line(line));
        lines.fold(String::new(), |mut text, line| {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{line}");
            text
        })
    }
}

fn image(change: &FieldChange) -> String {
    let FieldChange { path, before, after, masked: _ } = change;
    let value = |it: &Option<serde_json::Value>| {
        it.as_ref().and_then(serde_json::Value::as_str).unwrap_or("none").to_owned()
    };
    let path = path.strip_prefix("spec.template.spec.").unwrap_or(path);
    format!("  {path}: {} -> {}", value(before), value(after))
}

fn earlier(step: &EarlierStep) -> String {
    let EarlierStep { name, complete_at, done_at } = step;
    match (done_at, complete_at) {
        (Some(done), Some(complete)) => {
            format!("  step {name}: complete at {complete:.0}, done at {done:.0}")
        }
        (Some(done), None) => format!("  step {name}: done at {done:.0}"),
        (None, Some(complete)) => format!("  step {name}: complete at {complete:.0}, not done"),
        (None, None) => format!("  step {name}: not complete"),
    }
}

/// The nodes that run the target revision; those to look at come first.
fn nodes(evidence: &Evidence, now: Timestamp) -> Vec<String> {
    let all = &evidence.nodes;
    let restarts: u64 = all.iter().map(|node| u64::from(node.restarts)).sum();
    let number = all.len();
    let mut lines = vec![format!(
        "  {} {} this revision, {}",
        count(number, "node"),
        agree(number, "runs", "run"),
        count(restarts, "restart")
    )];
    lines.extend(all.iter().take(MOST_NODES).map(|UpdatedNode { node, ready_since, restarts }| {
        let ready = match ready_since {
            None => "not Ready".to_owned(),
            Some(since) => {
                let seconds = now.duration_since(*since).as_secs().max(0);
                format!("Ready for {:#}", SignedDuration::from_secs(seconds))
            }
        };
        format!("    {node}: {ready}, {}", count(*restarts, "restart"))
    }));
    if number > MOST_NODES {
        lines.push(format!("    and {} more", number - MOST_NODES));
    }
    lines
}
