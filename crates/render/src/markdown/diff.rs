//! The diff of the live objects against the target as Markdown, collapsed by object.

use super::comment::{MARKDOWN_LIMIT, MarkdownOptions, document};
use super::fields::{Depth, fields};
use super::fit::{LengthVariants, fitted};
use super::markup::{fence, folded, html_code};
use super::notices;
use super::origin::{cluster as cluster_words, compared};
use crate::text::{self, TextOptions};
use crate::view::{Notice, Origin};
use planner::plan::{Change, DaemonSetDiff, Diff};
use planner::words::count;

/// Length reserved for everything except the diffs.
const BESIDES: usize = 6_000;

/// The diff as GitHub-flavoured Markdown, at most [`MARKDOWN_LIMIT`] bytes of it.
pub fn diff_markdown(diff: &Diff, options: &MarkdownOptions) -> String {
    let Diff { api_version: _, kind: _, source, cluster, daemon_sets, warnings } = diff;
    let changed: Vec<&DaemonSetDiff> =
        daemon_sets.iter().filter(|it| it.change != Change::None).collect();
    let all = count(daemon_sets.len(), "DaemonSet");
    let origin = Origin::of(source, cluster, daemon_sets.len());
    let notices = Notice::of_warnings(warnings, &cluster.zones);
    let cluster = cluster_words(&origin);
    let headline = match changed.len() {
        0 => format!("**{cluster}: no difference**: {all} checked."),
        some => format!("**{cluster}: {some} of {all} would change.**"),
    };
    let mut blocks = vec![headline];
    if changed.is_empty() && warnings.is_empty() {
        return document(&blocks, &options.comment);
    }
    let mut parts = vec![notices::warnings(&notices)];
    parts.extend(changed.iter().map(|it| variants(it)));
    let (shown, left_out) = fitted(&parts, MARKDOWN_LIMIT - BESIDES);
    blocks.extend(shown);
    if !left_out.is_empty() {
        blocks.push(format!("Diffs left out for length: {}.", count(left_out.len(), "DaemonSet")));
    }
    blocks.push(compared(&origin));
    document(&blocks, &options.comment)
}

fn variants(diff: &DaemonSetDiff) -> LengthVariants {
    let DaemonSetDiff { namespace, name, change: _, changes, live: _, target: _ } = diff;
    let summary = html_code(format!("{namespace}/{name}"));
    let summary = format!("{summary}: {}", count(changes.len(), "field"));
    let lines: Vec<String> =
        text::one_text(diff, TextOptions::default()).lines().map(str::to_owned).collect();
    let whole = folded(&summary, &fence("diff", &lines));
    let shorter = [Depth::Values, Depth::Paths, Depth::Counts];
    let shorter = shorter.map(|depth| folded(&summary, &fields(changes, None, depth).join("\n\n")));
    [whole].into_iter().chain(shorter).filter(|it| it.len() < MARKDOWN_LIMIT).collect()
}
