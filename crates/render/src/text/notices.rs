//! The first line, and guards and warnings, a line each.

use super::page::{CHANGE, HALT, Line, NAME, Page, TextOptions};
use crate::view::{Notice, Origin};

/// The title, the source and the cluster.
pub(super) fn compared(title: &str, origin: &Origin<'_>, options: TextOptions) -> Line {
    let source = origin.source_words(options.verbose);
    Line::at(0).styled(NAME, title).plain(source).plain("; ").plain(origin.cluster_words())
}

/// Adds the guards.
pub(super) fn guards(page: &mut Page, guards: &[Notice<'_>]) {
    for guard in guards {
        let line = about(Line::at(0).styled(HALT, "Blocked: "), guard);
        let line = line.plain(". ").plain(guard.way_out());
        page.push(match guard.allow_flag {
            Some(flag) => line.plain(' ').styled(NAME, flag).plain('.'),
            None => line.plain('.'),
        });
    }
}

/// Adds the warnings.
pub(super) fn warnings(page: &mut Page, warnings: &[Notice<'_>]) {
    for warning in warnings {
        page.push(about(Line::at(0).styled(CHANGE, "Warning: "), warning));
    }
}

/// `logging/fluent-bit: MESSAGE (3 nodes: …)`.
fn about(mut line: Line, notice: &Notice<'_>) -> Line {
    if let Some(subject) = notice.subject(str::to_owned) {
        line = line.styled(NAME, subject).plain(": ");
    }
    line = line.plain(notice.message.trim_end_matches('.'));
    match notice.whereabouts() {
        Some(nodes) => line.plain(format!(" ({nodes})")),
        None => line,
    }
}
