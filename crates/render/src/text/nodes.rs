//! Lines for groups of nodes.

use super::page::{Line, Page};
use crate::view::NodeGroup;

/// The reasons are aligned if no name before them is wider than this.
const MOST_ALIGNED: usize = 44;

/// The column in which reasons begin, counted from where the names begin.
pub(super) fn reason_column<'a, K: 'a>(
    groups: impl IntoIterator<Item = &'a NodeGroup<'a, K>>,
) -> usize {
    let widths = groups.into_iter().map(|group| group.names().chars().count());
    widths.filter(|width| *width <= MOST_ALIGNED).max().unwrap_or(0)
}

/// Adds the names and the reason of a group, which begins in the column `reasons`.
pub(super) fn group_line<K>(page: &mut Page, line: Line, group: &NodeGroup<'_, K>, reasons: usize) {
    page.push(line.plain(group.names()).padded_to(reasons).plain("   ").plain(&group.why));
}
