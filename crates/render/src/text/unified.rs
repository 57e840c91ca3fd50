//! Two objects as a unified diff of their YAML, as `diff -u` writes it.
//!
//! Single fields are in `fields`.

use anstyle::Style;
use serde_json::Value;
use similar::{ChangeTag, TextDiff};

use super::page::{ASIDE, GAIN, LOSS, Line, NAME, Page};
use crate::data;
use crate::view::mark_end;
use planner::words::count;

/// Equal lines around lines that differ, as `diff -u` has them.
const CONTEXT: usize = 3;
/// Objects with more lines than this, both together, are not compared: the time grows quadratically
/// with the size, which the author of the manifest controls.
const MOST_COMPARED: usize = 20_000;

/// Adds the difference to `page`, with `names` as the names of both objects. Nothing if they are
/// equal.
pub(super) fn difference(
    page: &mut Page,
    names: [&str; 2],
    before: Option<&Value>,
    after: Option<&Value>,
) {
    let [old, new] = [before, after].map(text);
    if old == new {
        return;
    }
    let lines = old.lines().count() + new.lines().count();
    page.push(Line::at(0).whole().styled(NAME, "--- ").styled(NAME, names[0]));
    page.push(Line::at(0).whole().styled(NAME, "+++ ").styled(NAME, names[1]));
    if lines > MOST_COMPARED {
        page.push(
            Line::at(0).styled(ASIDE, format!("too long to compare: {}", count(lines, "line"))),
        );
        return;
    }
    let diff = TextDiff::from_lines(&old, &new);
    for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        page.push(Line::at(0).whole().styled(ASIDE, hunk.header()));
        for line in hunk.iter_changes() {
            let (style, sign) = match line.tag() {
                ChangeTag::Equal => (Style::new(), ' '),
                ChangeTag::Delete => (LOSS, '-'),
                ChangeTag::Insert => (GAIN, '+'),
            };
            let text = mark_end(line.value().trim_end_matches('\n'));
            page.push(Line::at(0).whole().styled(style, sign).styled(style, text));
        }
    }
}

/// The object as kubectl prints it; empty without an object, as `diff -N` reads a missing file.
fn text(object: Option<&Value>) -> String {
    let Some(object) = object else { return String::new() };
    // Converting plain JSON to YAML fails only when out of memory.
    data::yaml_of(object).unwrap_or_else(|_| object.to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::text::page::TextOptions;

    fn shown(before: Option<&Value>, after: Option<&Value>) -> String {
        let mut page = Page::default();
        difference(&mut page, ["LIVE", "MERGED"], before, after);
        page.write(TextOptions::default())
    }

    #[test]
    fn context_lines_around_differences() {
        let object = |image: &str| json!({"a": 1, "b": 2, "c": 3, "d": 4, "list": [{"image": image, "name": "x"}], "z": 5});
        insta::assert_snapshot!(shown(Some(&object("v1")), Some(&object("v2"))), @"
        --- LIVE
        +++ MERGED
        @@ -3,6 +3,6 @@
         c: 3
         d: 4
         list:
        -- image: v1
        +- image: v2
           name: x
         z: 5
        ");
        insta::assert_snapshot!(shown(None, Some(&json!({"a": {"b": []}}))), @"
        --- LIVE
        +++ MERGED
        @@ -0,0 +1,2 @@
        +a:
        +  b: []
        ");
        assert_eq!(shown(Some(&object("v1")), Some(&object("v1"))), "");
    }

    #[test]
    fn objects_that_are_too_long_are_not_compared() {
        let long = |word: &str| Value::from(vec![word; 11_000]);
        assert!(shown(Some(&long("a")), Some(&long("b"))).ends_with("22,000 lines\n"));
    }
}
