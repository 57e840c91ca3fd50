//! The diff of the live object against the target, as `kubectl diff` prints it.

use super::page::{ASIDE, Line, Page, TextOptions};
use super::unified;
use planner::plan::{DaemonSetDiff, Diff};

/// The diff as text; empty when nothing changes.
///
/// The names of the two files are kubectl's, without the temporary folders.
pub fn diff_text(diff: &Diff, options: &TextOptions) -> String {
    let Diff { api_version: _, kind: _, source: _, cluster: _, daemon_sets, warnings: _ } = diff;
    let mut page = Page::default();
    for daemon_set in daemon_sets {
        one(&mut page, daemon_set);
    }
    page.write(*options)
}

/// The diff of one object as text.
pub(crate) fn one_text(diff: &DaemonSetDiff, options: TextOptions) -> String {
    let mut page = Page::default();
    one(&mut page, diff);
    page.write(options)
}

fn one(page: &mut Page, diff: &DaemonSetDiff) {
    let DaemonSetDiff { namespace, name, change: _, changes: _, live, target } = diff;
    if live.is_none() && target.is_none() {
        return;
    }
    let file = format!("apps.v1.DaemonSet.{namespace}.{name}");
    let [before, after] = ["LIVE", "MERGED"].map(|side| format!("{side}/{file}"));
    page.push(Line::at(0).whole().styled(ASIDE, format!("diff -u -N {before} {after}")));
    unified::difference(page, [&before, &after], live.as_ref(), target.as_ref());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::past;

    #[test]
    fn a_diff_has_the_format_of_kubectl() {
        insta::assert_snapshot!(diff_text(&past::diff(), &TextOptions::default()), @"
        diff -u -N LIVE/apps.v1.DaemonSet.logging.fluent-bit MERGED/apps.v1.DaemonSet.logging.fluent-bit
        --- LIVE/apps.v1.DaemonSet.logging.fluent-bit
        +++ MERGED/apps.v1.DaemonSet.logging.fluent-bit
        @@ -13,5 +13,5 @@
               - env:
                 - name: A
                   value: (sensitive value)
        -        image: fluent-bit:3.1
        +        image: fluent-bit:3.2
                 name: fluent-bit
        diff -u -N LIVE/apps.v1.DaemonSet.logging.new MERGED/apps.v1.DaemonSet.logging.new
        --- LIVE/apps.v1.DaemonSet.logging.new
        +++ MERGED/apps.v1.DaemonSet.logging.new
        @@ -0,0 +1 @@
        +kind: DaemonSet
        ");
    }

    #[test]
    fn unchanged_objects_have_no_diff() {
        let mut diff = past::diff();
        diff.daemon_sets.retain(|one| one.change == planner::plan::Change::None);
        assert_eq!(diff_text(&diff, &TextOptions::default()), "");
    }
}
