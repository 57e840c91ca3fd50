//! Conversion of warnings into those of the plan, and printing them on standard error.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use super::error::{WARNING, paragraph};
use super::printer::Printer;
use daemonset::model::{DaemonSetKey, DesiredDaemonSet};
use jiff::{SignedDuration, Timestamp};
use manifest::Policies;
use planner::plan::Warning;
use planner::words;
use source::{self, Renderer, Unrendered, Warning as Source};

/// Warnings about parts of the source that were skipped; with `every_file`, also about folders that
/// must be rendered but contain no DaemonSet as they are, and about sub-folders of one that is not read
/// recursively, which matter only then.
pub(super) fn of_source(read: &source::Read, every_file: bool) -> Vec<Warning> {
    let unrendered = read.unrendered.iter().filter_map(|folder| unrendered(folder, every_file));
    let is_wanted = |warning: &&Source| every_file || !matches!(warning, Source::SubFolder { .. });
    fold(read.warnings.iter().filter(is_wanted).map(source_warning).chain(unrendered))
}

/// Number of warnings of one code that are shown; the rest is counted.
const MAX_PRINTED: usize = 50;

/// Replaces the warnings of a code above the limit by their number: the repository is untrusted.
fn fold(warnings: impl Iterator<Item = Warning>) -> Vec<Warning> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut reported = Vec::new();
    for warning in warnings {
        let count = counts.entry(warning.code.clone()).or_default();
        *count += 1;
        if *count <= MAX_PRINTED {
            reported.push(warning);
        }
    }
    for (code, count) in counts.into_iter().filter(|(_, count)| *count > MAX_PRINTED) {
        let more = count - MAX_PRINTED;
        let what = match code.as_str() {
            "symbolicLink" => "symbolic links were",
            "submodule" => "submodules were",
            "subFolder" => "sub-folders were",
            "specialFile" => "files that are not regular were",
            "lfsPointer" => "Git LFS pointers' contents were",
            _ => "folders to render were",
        };
        reported.push(plain(&code, format!("{more} more {what} not read")));
    }
    reported
}

/// A warning if the command line names policies, and none of them applies to this DaemonSet: the command
/// reads no others.
pub(super) fn none_selects(policies: &Policies, desired: &DesiredDaemonSet) -> Option<Warning> {
    if policies.is_empty() || desired.policy.is_some() {
        return None;
    }
    Some(selects_none(&desired.key, "its pods are replaced without one"))
}

/// The same of a DaemonSet whose permissions are listed.
pub(super) fn not_selected(key: &DaemonSetKey) -> Warning {
    selects_none(key, "its permissions are listed without one")
}

fn selects_none(key: &DaemonSetKey, so: &str) -> Warning {
    let message = format!("no policy of --policy selects {key}; {so}");
    Warning { daemon_set: Some(key.to_string()), ..plain("noPolicySelects", message) }
}

/// Warnings of parsing the manifests.
pub(super) fn of_manifests(desired: &manifest::Desired) -> impl Iterator<Item = Warning> {
    desired.warnings.iter().map(|warning| plain(warning.code(), warning.to_string()))
}

/// A warning if DaemonSets at the merge base with a revision are invalid.
pub(super) fn invalid_at(revision: &str, errors: &[manifest::Error]) -> Option<Warning> {
    let (first, others) = errors.split_first()?;
    let more = match others.len() {
        0 => String::new(),
        others => format!(" (and {})", words::count(others, "more error")),
    };
    let message = format!(
        "what is invalid at the merge base with `{revision}` counts as new, and its labels there \
         are not considered: {first}{more}"
    );
    Some(plain("invalidBase", message))
}

fn source_warning(warning: &Source) -> Warning {
    let code = match warning {
        Source::Symlink { .. } => "symbolicLink",
        Source::Submodule { .. } => "submodule",
        Source::SubFolder { .. } => "subFolder",
        Source::Special { .. } => "specialFile",
        Source::LfsPointer { .. } => "lfsPointer",
        Source::WorkingTreeDiffers { .. } => "workingTreeDiffers",
        Source::WorkingTreeUnknown { .. } => "workingTreeUnknown",
    };
    let advice = match warning {
        Source::WorkingTreeDiffers { .. } => "; the plan is of the commit (plain files: -f)",
        Source::Submodule { .. } => "; plan it on its own with --repo",
        Source::SubFolder { .. } => "; read it with -R",
        Source::LfsPointer { .. } => "; check it out and use -f",
        Source::Symlink { .. } | Source::Special { .. } | Source::WorkingTreeUnknown { .. } => "",
    };
    plain(code, format!("{warning}{advice}"))
}

/// The warning about a folder that must be rendered; without `always`, only if it contains a
/// DaemonSet.
fn unrendered(folder: &Unrendered, always: bool) -> Option<Warning> {
    let files = folder.files.iter();
    let count: usize = files.map(|file| manifest::count_daemon_sets(&file.bytes)).sum();
    if count == 0 && !always {
        return None;
    }
    let found = words::count(count, "DaemonSet");
    let render = folder.render_command();
    let or = match folder.renderer {
        Renderer::Helm => "",
        Renderer::Kustomize => ", or with -k",
    };
    let message =
        format!("{folder}, {found} in it; render it first: `{render} | ds-plan -f -`{or}");
    Some(plain("notRendered", message))
}

fn plain(code: &str, message: String) -> Warning {
    Warning { code: code.to_owned(), message, daemon_set: None, nodes: Vec::new() }
}

/// Prints warnings on standard error.
pub(super) fn print(warnings: &[Warning], printer: Printer) {
    for warning in warnings {
        printer.remark(Shown(warning));
    }
}

/// Warns about notifications that were not delivered: some of those that were posted to a URL.
pub(super) fn print_undelivered(left: usize, posted: usize, problem: &str, printer: Printer) {
    let posted = words::count(posted, "notification");
    let message = format!("{left} of {posted} not delivered: {problem}");
    print(&[plain("notificationNotDelivered", message)], printer);
}

/// Whether a line about a rollout could not be written: reported once, as there is one standard output.
static IS_UNWRITTEN: AtomicBool = AtomicBool::new(false);

/// Prints a line about a rollout. A failed write does not stop a rollout: the first one is a warning.
pub(super) fn print_in_rollout(text: impl fmt::Display, printer: Printer) {
    let Err(error) = printer.out(text) else { return };
    if !IS_UNWRITTEN.swap(true, Ordering::Relaxed) {
        let message =
            format!("cannot write to standard output: {error}; this does not stop the run");
        print(&[plain("outputNotWritten", message)], printer);
    }
}

/// Age from which a recording is old: pods and nodes have changed since.
const OLD: SignedDuration = SignedDuration::from_hours(24);

/// Warns about a recording that is old. The warning is no part of a document, which depends on its
/// input alone.
pub(super) fn print_age(observed_at: Timestamp, now: Timestamp, printer: Printer) {
    if let Some(message) = old(observed_at, now) {
        print(&[plain("oldRecording", message)], printer);
    }
}

fn old(observed_at: Timestamp, now: Timestamp) -> Option<String> {
    let age = now.duration_since(observed_at);
    (age >= OLD).then(|| {
        let days = words::count(age.as_hours().unsigned_abs() / 24, "day");
        format!("the recording is {days} old: the cluster may have changed since {observed_at}")
    })
}

/// Difference of two clocks that is worth a warning.
const APART: SignedDuration = SignedDuration::from_secs(30);

/// Warns if the local clock and that of the API server differ. No decision depends on the local one.
pub(super) fn print_local_clock(local: Timestamp, server: Option<Timestamp>, printer: Printer) {
    if let Some(message) = server.and_then(|server| clocks_apart(local, server)) {
        print(&[plain("localClock", message)], printer);
    }
}

fn clocks_apart(local: Timestamp, server: Timestamp) -> Option<String> {
    let ahead = local.duration_since(server);
    let apart = SignedDuration::from_secs(ahead.abs().as_secs());
    let which = if ahead.is_negative() { "behind" } else { "ahead of" };
    (apart > APART).then(|| {
        format!(
            "the clock of this machine is {apart:#} {which} that of the API server, which counts: no \
             decision depends on the local clock"
        )
    })
}

struct Shown<'a>(&'a Warning);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Warning { code: _, message, daemon_set, nodes: _ } = self.0;
        match daemon_set {
            Some(key) if !message.contains(key.as_str()) => {
                paragraph(f, "", ("warning", WARNING), &format!("{key}: {message}"))
            }
            Some(_) | None => paragraph(f, "", ("warning", WARNING), message),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_that_are_half_a_minute_apart_are_reported() {
        let server: Timestamp = "2026-08-01T12:00:00Z".parse().unwrap();
        let text = |off: i64| clocks_apart(server + SignedDuration::from_secs(off), server);
        assert_eq!([text(0), text(30), text(-30)], [None, None, None]);
        for (off, which) in [
            (31, "31s ahead of"),
            (-31, "31s behind"),
            (24 * 3_600, "24h ahead of"),
            (-24 * 3_600, "24h behind"),
        ] {
            let text = text(off).unwrap();
            assert!(
                text.starts_with(&format!("the clock of this machine is {which} that")),
                "{text}"
            );
        }
    }

    #[test]
    fn a_recording_is_old_after_a_day() {
        let at = |hours: i64| Timestamp::from_second(hours * 3_600).unwrap();
        for (hours, want) in [
            (0, None),
            (-5, None),
            (23, None),
            (
                24,
                Some(
                    "the recording is 1 day old: the cluster may have changed since 1970-01-01T00:00:00Z",
                ),
            ),
            (
                71,
                Some(
                    "the recording is 2 days old: the cluster may have changed since 1970-01-01T00:00:00Z",
                ),
            ),
        ] {
            assert_eq!(old(at(0), at(hours)).as_deref(), want, "{hours}");
        }
    }
}
