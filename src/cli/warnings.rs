//! Warnings of the rooms, as the plan carries them and as standard error shows them.

use std::fmt;

use super::error::{WARNING, paragraph};
use super::printer::Printer;
use crate::manifest;
use crate::plan::Warning;
use crate::source::{self, Renderer, Unrendered, Warning as Source};

/// What reading the source passed over.
pub(super) fn of_source(read: &source::Read) -> Vec<Warning> {
    let unrendered = read.unrendered.iter().filter_map(unrendered);
    read.warnings.iter().map(source_warning).chain(unrendered).collect()
}

/// What reading the manifests noticed.
pub(super) fn of_manifests(desired: &manifest::Desired) -> impl Iterator<Item = Warning> {
    desired.warnings.iter().map(|warning| plain(warning.code(), warning.to_string()))
}

fn source_warning(warning: &Source) -> Warning {
    let code = match warning {
        Source::Symlink { .. } => "symbolicLink",
        Source::Submodule { .. } => "submodule",
        Source::Special { .. } => "specialFile",
        Source::LfsPointer { .. } => "lfsPointer",
        Source::WorkingTreeDiffers { .. } => "workingTreeDiffers",
        Source::WorkingTreeUnknown { .. } => "workingTreeUnknown",
    };
    let advice = match warning {
        Source::WorkingTreeDiffers { .. } => "; the commit is planned (plain files: -f)",
        Source::Submodule { .. } => "; plan it on its own with --repo",
        Source::LfsPointer { .. } => "; check it out and use -f",
        Source::Symlink { .. } | Source::Special { .. } | Source::WorkingTreeUnknown { .. } => "",
    };
    plain(code, format!("{warning}{advice}"))
}

/// A folder that must be rendered, unless nothing in it looks like a DaemonSet.
fn unrendered(folder: &Unrendered) -> Option<Warning> {
    let files = folder.files.iter();
    let count: usize = files.map(|file| manifest::count_daemon_sets(&file.bytes)).sum();
    let found = match count {
        0 => return None,
        1 => "1 DaemonSet".to_owned(),
        count => format!("{count} DaemonSets"),
    };
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

/// Shows warnings where they do not disturb the output.
pub(super) fn print(warnings: &[Warning], printer: Printer) {
    for warning in warnings {
        printer.err(Shown(warning));
    }
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
