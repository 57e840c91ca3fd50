//! Field changes of an object: as a diff, by their paths, or counted.

use std::collections::{BTreeMap, BTreeSet};

use super::comment::{MARKDOWN_LIMIT, MarkdownOptions};
use super::fit::LengthVariants;
use super::markup::{LONGEST, clipped, code, fence};
use crate::view::{BaseChange, FieldChange, diff_lines, field_title};
use planner::words::count;

/// The level of detail of one DaemonSet, from the most to the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Depth {
    /// Every node with its pods, and values in full length.
    Whole,
    /// Names of nodes in ranges, long values shortened.
    Values,
    /// Names of nodes in ranges; fields by their paths, and whether they are added, removed or
    /// changed.
    Paths,
    /// Everything counted: fields by the object that they belong to.
    Counts,
}

impl Depth {
    /// A text in each level to choose from, unless it is too long for any document.
    pub(super) fn variants(
        options: &MarkdownOptions,
        text: impl Fn(Self) -> String,
    ) -> LengthVariants {
        let all = [Self::Whole, Self::Values, Self::Paths, Self::Counts];
        let wanted = all.into_iter().skip(usize::from(!options.verbose));
        wanted.map(text).filter(|text| text.len() < MARKDOWN_LIMIT).collect()
    }
}

/// Number of path steps that identify the parent of a field:
/// `spec.template.spec.containers[agent]`.
const STEPS: usize = 4;
/// Maximum number of parents that are counted separately.
const MOST_COUNTED: usize = 8;

/// `changes` under a heading, and separately those that existed before the pull request.
///
/// Paths of the pull request are paths in manifests, paths of the plan are paths in the live
/// object; if one contains the other, both are the same change.
pub(super) fn fields(
    changes: &[FieldChange],
    base: Option<&BaseChange>,
    depth: Depth,
) -> Vec<String> {
    let Some(BaseChange { change: _, changes: asked }) = base else {
        return reported("Changes", changes.iter(), depth).into_iter().collect();
    };
    let paths: BTreeSet<&str> = asked.iter().map(|change| change.path.as_str()).collect();
    let (own, older): (Vec<&FieldChange>, Vec<&FieldChange>) =
        changes.iter().partition(|change| is_in(&change.path, &paths));
    let planned: BTreeSet<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    let already: Vec<&FieldChange> =
        asked.iter().filter(|change| !is_in(&change.path, &planned)).collect();
    [
        ("Changed by this pull request", own),
        ("Existing drift, applied with it", older),
        ("Changed by it, already in the cluster", already),
    ]
    .into_iter()
    .filter_map(|(heading, changes)| reported(heading, changes.into_iter(), depth))
    .collect()
}

/// Whether `path` is one of `paths`, or lies in one of them, or one of them in it.
fn is_in(path: &str, paths: &BTreeSet<&str>) -> bool {
    let above = path.char_indices().filter(|(_, c)| matches!(c, '.' | '['));
    let above = above.map(|(at, _)| &path[..at]);
    let mut below = paths.range(path..).map_while(|other| other.strip_prefix(path));
    above.into_iter().any(|above| paths.contains(above))
        || below.any(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// `changes` under a heading; `None` without changes.
pub(super) fn reported<'a>(
    heading: &str,
    changes: impl ExactSizeIterator<Item = &'a FieldChange>,
    depth: Depth,
) -> Option<String> {
    if changes.len() == 0 {
        return None;
    }
    let heading = format!("**{heading}** ({})", count(changes.len(), "field"));
    let lines: Vec<String> = match depth {
        Depth::Whole => changes.flat_map(|change| diff_lines(change, true)).collect(),
        Depth::Values => changes.flat_map(|change| diff_lines(change, false)).collect(),
        Depth::Paths => changes.map(|change| clipped(&field_title(change), LONGEST)).collect(),
        Depth::Counts => return Some(format!("{heading}: {}", counts(changes))),
    };
    Some(format!("{heading}\n\n{}", fence("diff", &lines)))
}

/// `` 12 in `spec.template.spec.containers[agent]` ``, the most first.
fn counts<'a>(changes: impl Iterator<Item = &'a FieldChange>) -> String {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    for change in changes {
        *places.entry(place(&change.path)).or_default() += 1;
    }
    let mut places: Vec<(&str, usize)> = places.into_iter().collect();
    places.sort_by_key(|(_, fields)| std::cmp::Reverse(*fields));
    let rest = places.split_off(places.len().min(MOST_COUNTED));
    let mut words: Vec<String> =
        places.iter().map(|(place, fields)| format!("{fields} in {}", code(place))).collect();
    if !rest.is_empty() {
        words.push(format!("{} elsewhere", rest.iter().map(|(_, fields)| fields).sum::<usize>()));
    }
    words.join(", ")
}

/// The first steps of a path.
fn place(path: &str) -> &str {
    let end = path.match_indices('.').nth(STEPS - 1).map_or(path.len(), |(at, _)| at);
    &path[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::change;
    use planner::plan::Change;

    fn base(changes: Vec<FieldChange>) -> BaseChange {
        BaseChange { change: Change::Update, changes }
    }

    #[test]
    fn changes_of_the_pull_request_are_separate_from_existing_drift() {
        let planned = [
            change("spec.a.image", "1", "2"),
            change("spec.b", serde_json::Value::Null, "whole"),
            change("spec.drift", 1, 2),
        ];
        let asked = base(vec![
            change("spec.a.image", "1", "2"),
            change("spec.b[x].c", "1", "2"),
            change("spec.live", 1, 2),
        ]);
        let reported = fields(&planned, Some(&asked), Depth::Values).join("\n\n");
        insta::assert_snapshot!(reported, @r#"
        **Changed by this pull request** (2 fields)

        ```diff
        @@ spec.a.image @@
        - "1"
        + "2"
        @@ spec.b @@
        + whole
        ```

        **Existing drift, applied with it** (1 field)

        ```diff
        @@ spec.drift @@
        - 1
        + 2
        ```

        **Changed by it, already in the cluster** (1 field)

        ```diff
        @@ spec.live @@
        - 1
        + 2
        ```
        "#);
    }

    #[test]
    fn each_depth_shows_less() {
        let changes: Vec<FieldChange> = (0..3)
            .map(|n| change(&format!("spec.template.spec.containers[a].env[E{n}].value"), n, n + 1))
            .collect();
        let reported = [Depth::Values, Depth::Paths, Depth::Counts]
            .map(|depth| fields(&changes, None, depth).join("\n\n"));
        insta::assert_snapshot!(reported.join("\n\n"), @"
        **Changes** (3 fields)

        ```diff
        @@ spec.template.spec.containers[a].env[E0].value @@
        - 0
        + 1
        @@ spec.template.spec.containers[a].env[E1].value @@
        - 1
        + 2
        @@ spec.template.spec.containers[a].env[E2].value @@
        - 2
        + 3
        ```

        **Changes** (3 fields)

        ```diff
        ~ spec.template.spec.containers[a].env[E0].value
        ~ spec.template.spec.containers[a].env[E1].value
        ~ spec.template.spec.containers[a].env[E2].value
        ```

        **Changes** (3 fields): 3 in `spec.template.spec.containers[a]`
        ");
        assert_eq!(fields(&[], None, Depth::Values), [""; 0]);
    }

    #[test]
    fn a_path_is_in_another_by_whole_steps() {
        let paths = BTreeSet::from(["spec.ab", "spec.c[x].d"]);
        for (path, want) in [
            ("spec.ab", true),
            ("spec.ab.c", true),
            ("spec.a", false),
            ("spec.abc", false),
            ("spec.c", true),
            ("spec.c[x]", true),
            ("spec.c[y]", false),
            ("spec", true),
        ] {
            assert_eq!(is_in(path, &paths), want, "{path}");
        }
    }
}
