//! Parts that several pages share: tiles with numbers, messages, diffs, tables.

use std::fmt::Display;

use super::markup::Html;
use crate::view::{FieldChange, Notice, Origin, diff_lines, names};
use planner::words::count;

/// Maximum number of fields of one DaemonSet that are shown with their values.
const MOST_FIELDS: usize = 400;

/// Tiles: a number each, with its unit.
pub(super) fn tiles<'a>(tiles: impl IntoIterator<Item = (&'a str, u64, &'a str)>) -> Html {
    let tiles = tiles.into_iter().map(|(symbol, number, words)| {
        let class = if number == 0 { "none" } else { "" };
        let symbol = Html::with("span", &[("class", "symbol"), ("aria-hidden", "true")], symbol);
        let number = Html::from([Html::of("b", number.to_string()), symbol]);
        let what = Html::of("dt", words);
        Html::with("div", &[("class", class)], [what, Html::of("dd", number)])
    });
    Html::class("dl", "tiles", tiles.collect::<Html>())
}

/// A section of the page with a heading.
pub(super) fn section(id: &'static str, heading: &str, content: Html) -> Html {
    if content.is_empty() {
        return content;
    }
    let title = format!("{id}-title");
    let heading = Html::with("h2", &[("id", &title)], heading);
    Html::with("section", &[("id", id), ("aria-labelledby", &title)], [heading, content])
}

/// Collapsed content.
pub(super) fn folded(summary: Html, content: Html) -> Html {
    Html::of("details", [Html::of("summary", summary), content])
}

/// A list; empty without items.
pub(super) fn list(items: impl IntoIterator<Item = Html>) -> Html {
    let items: Html = items.into_iter().map(|item| Html::of("li", item)).collect();
    if items.is_empty() { items } else { Html::of("ul", items) }
}

/// A table with a heading for each column. It can be scrolled by keyboard where it is too wide.
pub(super) fn table(
    caption: &str,
    heads: &[impl AsRef<str>],
    rows: impl Iterator<Item = Vec<Html>>,
) -> Html {
    let heads = heads.iter().map(|head| Html::with("th", &[("scope", "col")], head.as_ref()));
    let rows = rows.map(|cells| {
        let cells = cells.into_iter().enumerate().map(|(nth, cell)| match nth {
            0 => Html::with("th", &[("scope", "row")], cell),
            _ => Html::of("td", cell),
        });
        Html::of("tr", cells.collect::<Html>())
    });
    let parts = [
        Html::class("caption", "unseen", caption),
        Html::of("thead", Html::of("tr", heads.collect::<Html>())),
        Html::of("tbody", rows.collect::<Html>()),
    ];
    let around =
        [("class", "wide"), ("tabindex", "0"), ("role", "region"), ("aria-label", caption)];
    Html::with("div", &around, Html::of("table", parts))
}

/// Field changes as a diff.
pub(super) fn diff<'a>(
    changes: impl ExactSizeIterator<Item = &'a FieldChange>,
    verbose: bool,
) -> Html {
    let fields = changes.len();
    if fields == 0 {
        return Html::default();
    }
    let most = if verbose { fields } else { MOST_FIELDS };
    let lines = changes.take(most).flat_map(|change| diff_lines(change, verbose)).map(|line| {
        let tag = match line.as_bytes().first() {
            Some(b'+') => "ins",
            Some(b'-') => "del",
            Some(b'@') => "b",
            _ => "span",
        };
        Html::of(tag, line)
    });
    let mut lines: Vec<Html> = lines.collect();
    if fields > most {
        lines.push(Html::of("span", format!("and {}", count(fields - most, "more field"))));
    }
    let around =
        [("class", "diff"), ("tabindex", "0"), ("role", "region"), ("aria-label", "Fields")];
    Html::with("pre", &around, lines.into_iter().collect::<Html>())
}

/// `logging/fluent-bit: MESSAGE (3 nodes: …)`.
fn about(notice: &Notice<'_>) -> Html {
    let key = notice.daemon_set.map(|key| Html::of("code", key)).into_iter();
    let nodes =
        (!notice.nodes.is_empty()).then(|| Html::class("span", "aside", names(&notice.nodes)));
    key.chain([Html::of("span", notice.message)]).chain(nodes).collect()
}

/// Guards.
pub(super) fn guards(guards: &[Notice<'_>]) -> Html {
    if guards.is_empty() {
        return Html::default();
    }
    let items = guards.iter().map(|guard| {
        let flag = guard.allow_flag.map(|flag| {
            Html::class("span", "aside", [Html::of("span", "to allow it, pass"), code(flag)])
        });
        [about(guard)].into_iter().chain(flag).collect::<Html>()
    });
    let heading = format!("Blocked by {}", count(guards.len(), "guard"));
    Html::class("aside", "callout refused", [Html::of("h2", heading), list(items)])
}

/// Warnings, collapsed.
pub(super) fn warnings(warnings: &[Notice<'_>]) -> Html {
    if warnings.is_empty() {
        return Html::default();
    }
    let summary = Html::text(count(warnings.len(), "warning"));
    Html::class("aside", "callout warned", folded(summary, list(warnings.iter().map(about))))
}

/// The source, the observed cluster, and when it was observed.
pub(super) fn compared(origin: &Origin<'_>) -> impl Iterator<Item = String> {
    let at = origin.snapshot.is_none().then(|| format!("observed at {}", origin.observed_at));
    [origin.source_words(false), origin.cluster_words()].into_iter().chain(at)
}

/// A name from outside.
pub(super) fn code(text: impl Display) -> Html {
    Html::of("code", text.to_string())
}
